"""Would the best prompt be chosen again? Rankings of prompts over subsets of a benchmark.

Source: "On the Stability of Prompt Ranking in Large Language Model Evaluation", arXiv:2606.24381.
Every prompt is asked with every item once; seeds and sizes are subsets of that one grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.studies.common.question_sets import check_models, draw, folder_names
from judgesense.studies.common.result import Result
from judgesense.studies.prompt_ranking.grid import (
    SCORINGS,
    TASKS,
    Grid,
    ask,
    prompts_from,
    prompts_of,
    read_scores,
)
from judgesense.text import short_names

Note = Callable[[str], None]

SIZES = (50, 100, 200)
ITEMS, QUICK_ITEMS, QUICK_SIZES = 500, 8, (3, 6)
MAX_TOKENS, QUICK_TOKENS = 256, 24


@dataclass(frozen=True)
class Plan:
    """What is asked and how it is subsampled.

    ``items`` are drawn a task; ``sizes`` are those of the subsets, ``seeds`` how many subsets;
    ``scorings`` are how MMLU is read (GSM8K is always read from text); ``z`` is the LCB's weight
    and ``k`` the size of the top sets.
    """

    tasks: tuple[str, ...] = TASKS
    items: int = ITEMS
    sizes: tuple[int, ...] = SIZES
    seeds: int = 5
    scorings: tuple[str, ...] = ("generate",)
    max_tokens: int = MAX_TOKENS
    z: float = 1.0
    k: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        if unknown := [task for task in self.tasks if task not in TASKS]:
            raise JudgeSenseError(f"unknown task {unknown[0]!r}; known: {', '.join(TASKS)}")
        if unknown := [scoring for scoring in self.scorings if scoring not in SCORINGS]:
            raise JudgeSenseError(
                f"unknown scoring {unknown[0]!r}; known: {', '.join(SCORINGS)} (or both)"
            )
        if not self.sizes or min(self.sizes) < 2:
            raise JudgeSenseError(f"--sizes must be numbers from 2, got {list(self.sizes)}")
        if self.seeds < 3:
            raise JudgeSenseError(
                f"--seeds must be at least 3 (one is left out to test the choice), got {self.seeds}"
            )
        if self.max_tokens < 1:
            raise JudgeSenseError(f"--max-tokens must be at least 1, got {self.max_tokens}")
        if not 0 <= self.z < math.inf:
            raise JudgeSenseError(f"--z must be a finite number from 0, got {self.z}")
        if self.k < 1:
            raise JudgeSenseError(f"k must be at least 1, got {self.k}")

    def check_sizes(self, n_items: int, where: str) -> None:
        """Raise JudgeSenseError unless subsets smaller than the items can be drawn."""
        if max(self.sizes) >= n_items:
            raise JudgeSenseError(
                f"{where}: subsets of {max(self.sizes)} of {n_items} items are the same for every "
                "seed; give more items or smaller --sizes"
            )


def prompt_ranking(
    responders: Sequence[Any],
    out: str | Path,
    *,
    plan: Plan | None = None,
    prompts: str | Path | None = None,
    mirror: str | Path | None = None,
    note: Note = print,
) -> Result:
    """Ask 20 prompts a task with every item, and measure how stable their ranking is.

    Args:
        responders: names, Hub ids, folders, GGUF files or functions.
        out: the study's folder; given again, it goes on, and a finished one is measured anew.
        plan: sizes, seeds, tasks and scorings.
        prompts: a YAML file with prompts of one's own, in the format of the study's.
        mirror: a folder with the sets, in place of the Hub.
        note: hears how it goes on.

    Raises:
        JudgeSenseError: for bad input, before a model is loaded.
    """
    from judgesense.studies.prompt_ranking.tables import result_of

    plan, out = plan or Plan(), Path(out)
    if not responders:
        raise JudgeSenseError("no responder given; name a model with --responder, or give --scores")
    check_models(responders)
    plan.check_sizes(plan.items, "--items")
    wordings = {
        task: prompts_of(task) if prompts is None else prompts_from(Path(prompts), task)
        for task in plan.tasks
    }
    drawn = {task: draw(task, plan.items, plan.seed, mirror, out) for task in plan.tasks}

    def asked() -> Iterator[Grid]:
        for task in plan.tasks:
            for responder, name in zip(responders, folder_names(responders), strict=True):
                folder = out / "answers" / f"{task}-{name}"
                yield from ask(
                    task, responder, drawn[task], wordings[task], plan.scorings,
                    plan.max_tokens, folder, note, plan.seed,
                )  # fmt: skip

    grids = list(asked())
    cells = [(grid.name, grid.model) for grid in grids]
    if twice := [model for name, model in cells if cells.count((name, model)) > 1]:
        raise JudgeSenseError(f"two responders are {twice[0]}; give it once")
    names = short_names({grid.model for grid in grids})
    settings: dict[str, Any] = {
        "responders": sorted(names),
        "prompts": [f"{len(texts)} of {task}" for task, texts in wordings.items()],
        "items": [f"{task}: {found.words}" for task, found in drawn.items()],
        "max_tokens": plan.max_tokens,
    }
    texts = {name: text for found in wordings.values() for name, text in found.items()}
    return result_of(grids, names, plan, settings, texts)


def rank_scores(path: str | Path, *, plan: Plan | None = None) -> Result:
    """Measure a score table of one's own (prompt, item, score): no model is asked.

    Sizes that the table's items do not allow are an error, as for :func:`prompt_ranking`.
    """
    from judgesense.studies.prompt_ranking.tables import result_of

    plan, path = plan or Plan(), Path(path)
    grids = read_scores(path)
    for grid in grids:
        plan.check_sizes(len(grid.items), f"{path} ({grid.task}, {grid.model})")
    settings = {
        "scores": str(path),
        "items": [f"{grid.task}, {grid.model}: {len(grid.items)}" for grid in grids],
    }
    return result_of(grids, {grid.model: grid.model for grid in grids}, plan, settings, {})
