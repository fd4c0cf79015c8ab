"""What to subsample, and how stable the rankings of the subsets are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.reporting.result import Value
from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.ranking import (
    PairFlips,
    RankingStability,
    SelectionGain,
    pair_flips,
    ranking_stability,
    redrawn_scores,
    seed_scores,
    selection_gain,
)
from judgesense.statistics.ranks import chosen
from judgesense.studies.prompt_ranking.grid import (
    FEW_SHOT,
    MORE_TASKS,
    SCORINGS,
    TASKS,
    PromptScores,
)

SIZES = (50, 100, 200)
ITEMS, MAX_TOKENS = 500, 256

REDRAWS = 500
"""Sets of seeds over which expectations are taken: five seeds are too few to compare selections."""


@dataclass(frozen=True)
class RankingPlan:
    """What to ask and how to subsample it.

    Args:
        tasks: of gsm8k, mmlu and arc-challenge; with ``+few-shot``, its prompts show four solved
            questions first.
        limit: items per task.
        sizes: items per subset.
        seeds: subsets per size, at least 3: one is left out to test the choice.
        scorings: how multiple choice is read (generate, options); GSM8K is always read from text.
        max_tokens: the most tokens of an answer.
        z: the weight of the standard error in LCB.
        k: the size of the top sets.
        seed: fixes the items and the subsets.

    Raises:
        JudgeSenseError: an unknown task or scoring, or a number out of range.
    """

    tasks: tuple[str, ...] = TASKS
    limit: int = ITEMS
    sizes: tuple[int, ...] = SIZES
    seeds: int = 5
    scorings: tuple[str, ...] = ("generate",)
    max_tokens: int = MAX_TOKENS
    z: float = 1.0
    k: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        for what, given, known in (
            ("task", self.tasks, [t + v for t in (*TASKS, *MORE_TASKS) for v in ("", FEW_SHOT)]),
            ("scoring", self.scorings, SCORINGS),
        ):
            if unknown := [name for name in given if name not in known]:
                raise JudgeSenseError(
                    f"unknown {what} {unknown[0]!r}; choose from {', '.join(known)}"
                )
        if not self.sizes or min(self.sizes) < 2:
            raise JudgeSenseError(f"sizes must be numbers of at least 2, got {list(self.sizes)}")
        for name, least in {"seeds": 3, "max_tokens": 1, "k": 1}.items():
            if getattr(self, name) < least:
                raise JudgeSenseError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if not 0 <= self.z < math.inf:
            raise JudgeSenseError(f"z must be a finite number of at least 0, got {self.z}")

    def check_sizes(self, n_items: int, where: str) -> None:
        """Raise JudgeSenseError unless every subset is smaller than the set of items."""
        if max(self.sizes) >= n_items:
            raise JudgeSenseError(
                f"{where}: subsets of {max(self.sizes)} of {n_items} items are the same for every "
                "seed; use more items or smaller sizes"
            )


@dataclass(frozen=True)
class RankedPrompts:
    """The scores of one model on one task, subsampled at one size.

    ``scores`` (seeds, prompts) are the means on the study's subsets, ``redrawn`` (draws, seeds,
    prompts) those of many redrawn sets of seeds.
    """

    grid: PromptScores
    size: int
    scores: Floats
    redrawn: Floats
    stability: RankingStability
    gain: SelectionGain
    flips: PairFlips

    @property
    def key(self) -> dict[str, Value]:
        """The first fields of a row."""
        return {"task": self.grid.name, "model": self.grid.model, "size": self.size}

    @property
    def name(self) -> str:
        """Model and task, as figures and findings name them."""
        return self.grid.series

    @property
    def overlap(self) -> float:
        """The mean share of items that two seeds' subsets have in common."""
        return self.size / len(self.grid.items)

    @cached_property
    def figures(self) -> Mapping[str, Any]:
        """Every figure by its column id: the fields of `RankingStability`, and of the gain."""
        gain = self.gain
        return {
            **vars(self.stability), "shared_items": self.overlap, "mean_redrawn": gain.by_mean,
            "lcb_redrawn": gain.by_lcb, "gain": gain.gain, "gain_low": gain.low,
            "gain_high": gain.high, "lcb_better": gain.better, "equal": gain.equal,
            "lcb_worse": gain.worse,
        }  # fmt: skip

    @property
    def winners(self) -> Codes:
        """The index of the best prompt under each seed."""
        return chosen(self.scores)


@dataclass(frozen=True)
class Ranking:
    """All models, tasks and sizes; ``k`` is the size of the top sets.

    ``texts`` are the wordings by prompt name, empty for a score table.
    """

    cells: tuple[RankedPrompts, ...]
    seeds: int
    z: float
    k: int
    texts: Mapping[str, str]

    @cached_property
    def series(self) -> list[list[RankedPrompts]]:
        """The cells by model and task, sizes ascending."""
        groups: dict[str, list[RankedPrompts]] = {}
        for cell in self.cells:
            groups.setdefault(cell.name, []).append(cell)
        return list(groups.values())


def measure(grids: Sequence[PromptScores], plan: RankingPlan, texts: Mapping[str, str]) -> Ranking:
    """Subsample every grid at every size.

    The top sets have the same size in all cells: at most that of the shortest list of prompts.
    """
    k = min(plan.k, min(len(grid.prompts) for grid in grids))
    seeds = [(plan.seed, number) for number in range(plan.seeds)]
    cells = []
    for grid in grids:
        for size in sorted(plan.sizes):
            scores = seed_scores(grid.scores, size, seeds)
            redrawn = redrawn_scores(grid.scores, size, plan.seeds, REDRAWS, plan.seed)
            cells.append(
                RankedPrompts(
                    grid, size, scores, redrawn, ranking_stability(scores, k=k, z=plan.z),
                    selection_gain(redrawn, plan.z), pair_flips(grid.scores, redrawn),
                )
            )  # fmt: skip
    return Ranking(tuple(cells), plan.seeds, plan.z, k, texts)
