"""The scores of prompt-ranking: every prompt on every item, from a model or from a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import FiniteFloat

from judgesense.answers.matching import match_likelihood
from judgesense.answers.matching.choice import match_choice
from judgesense.answers.matching.numbers import match_number
from judgesense.answers.matching.result import AnswerMatch
from judgesense.comparison.paired import grouped
from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Shape, read_yaml, validate
from judgesense.files.tables import read_table
from judgesense.files.typed_rows import Id, SomeId
from judgesense.reporting.study_result import Value
from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.ranking import (
    PairFlips,
    RankingStability,
    pair_flips,
    ranking_stability,
    redrawn_scores,
    seed_scores,
    selection_gain,
)
from judgesense.statistics.ranks import chosen
from judgesense.studies.common.question_sets import BenchmarkItem, ask_all, option_logprobs
from judgesense.text import fill
from local_judges.responder import Question

TASKS = ("gsm8k", "mmlu")
"""The paper's tasks."""
MORE_TASKS = ("arc-challenge",)
"""Tasks that the paper lacks; multiple choice, asked by the prompts of mmlu."""
FEW_SHOT, SHOTS = "+few-shot", 4
"""What follows a task's name if its prompts show solved questions first, and how many they show."""
SCORINGS = ("generate", "options")
LETTERS = ("A", "B", "C", "D")

_PROMPTS = Path(__file__).parent / "prompts.yaml"


@dataclass(frozen=True)
class PromptScores:
    """Scores of M prompts on N items by one model on one task; ``scores`` has shape (M, N).

    ``unread`` is the share of answers that could not be read (they score 0), ``cut`` the share
    that the token cap cut off; both None for scores from a file or from options.
    """

    task: str
    model: str
    scoring: str
    prompts: tuple[str, ...]
    items: tuple[str, ...]
    scores: Floats
    unread: float | None = None
    cut: float | None = None
    left_out: int = 0

    @property
    def name(self) -> str:
        """Task and scoring, as tables name them."""
        return f"{self.task}, {self.scoring}" if self.scoring else self.task

    @property
    def series(self) -> str:
        """Model and task, as figures and findings name them; the file of scores without either."""
        return f"{self.model} on {self.name}" if self.model else self.name


def provenance() -> str:
    """Where the wordings of the prompts are from."""
    return str(read_yaml(_PROMPTS)["wordings"])


@cache
def prompts_of(task: str) -> Mapping[str, str]:
    """The 20 wordings of a task by prompt name ("gsm8k-01", ...); few-shot ones have the same."""
    task = task.removesuffix(FEW_SHOT)
    texts = read_yaml(_PROMPTS)["tasks"]["mmlu" if task in MORE_TASKS else task]
    return {f"{task}-{number:02d}": text for number, text in enumerate(texts, 1)}


def render(text: str, item: BenchmarkItem, shown: Sequence[BenchmarkItem] = ()) -> str:
    """The message of a prompt and an item; options are lines "A. ...".

    The items ``shown`` come first, each in the same wording and with its answer: a letter, or the
    final number without the way to it.
    """
    lines = (f"{letter}. {option}" for letter, option in zip(LETTERS, item.options, strict=False))
    answers = (each.answers[0] if each.correct is None else LETTERS[each.correct] for each in shown)
    pairs = zip(shown, answers, strict=True)
    solved = "".join(f"{render(text, each)}\n{answer}\n\n" for each, answer in pairs)
    return solved + fill(text, {"question": item.question, "options": "\n".join(lines)})


def ask(
    task: str,
    responders: Sequence[Any],
    items: Sequence[BenchmarkItem],
    prompts: Mapping[str, str],
    scorings: Sequence[str],
    max_tokens: int,
    out: Path,
    note: Callable[[str], None],
    seed: int = 0,
    shown: Sequence[BenchmarkItem] = (),
) -> Iterator[PromptScores]:
    """Ask every prompt with every item once, after the solved items ``shown``, and score the
    answers by each scoring.

    Items on which any prompt of a model got an error are left out for all its prompts. ``seed``
    fixes what is drawn above temperature 0.

    Raises JudgeSenseError if no item is left, if two responders are one model, or if an engine
    without option probabilities is asked for options.
    """
    numbers = task.startswith("gsm8k")
    by_options = not numbers and "options" in scorings
    texts = numbers or "generate" in scorings
    questions = [
        Question(item.item_id, name, render(text, item, shown), LETTERS if by_options else ())
        for name, text in prompts.items()
        for item in items
    ]
    logs = ask_all(
        responders,
        questions,
        out,
        task,
        max_tokens=max_tokens if texts else 1,
        seed=seed,
        note=note,
    )
    for model, rows in logs.items():
        failed = {item for (_, item), row in rows.items() if row["text"] is None}
        common = [item for item in items if item.item_id not in failed]
        if not common:
            raise JudgeSenseError(
                f"{model}, {task}: no item was answered under every prompt; see the error column "
                f"of its answers in {out / 'answers'}"
            )
        cells = [rows[name, item.item_id] for name in prompts for item in common]
        item_of_cell = common * len(prompts)
        ids = tuple(item.item_id for item in common)
        of_model = partial(PromptScores, task, model, prompts=tuple(prompts), items=ids)
        if texts:
            match = _match_texts([cell["text"] for cell in cells], item_of_cell, numbers)
            yield of_model(
                scoring="generate",
                scores=_table(match, common),
                unread=match.n_unread / match.n,
                cut=sum(cell["finish_reason"] == "length" for cell in cells) / len(cells),
                left_out=len(failed),
            )
        if by_options:
            logprobs = [values for cell in cells if (values := option_logprobs(cell)) is not None]
            if len(logprobs) < len(cells):
                raise JudgeSenseError(
                    f"{model} gives no option probabilities; use --scoring generate"
                )
            match = match_likelihood(logprobs, [item.correct or 0 for item in item_of_cell])
            scores = _table(match, common)
            yield of_model(scoring="options", scores=scores, left_out=len(failed))


def _match_texts(
    texts: Sequence[str], items: Sequence[BenchmarkItem], numbers: bool
) -> AnswerMatch:
    """Whether each text answers its item: by the final number, or by the letter it chooses."""
    if numbers:
        return match_number(texts, [item.answers for item in items])
    letters, options = [LETTERS[item.correct or 0] for item in items], [i.options for i in items]
    return match_choice(texts, letters, options=options, labels="letters")


def _table(match: AnswerMatch, items: Sequence[BenchmarkItem]) -> Floats:
    """The scores of a match by prompt and item."""
    return np.array(match.per_example, dtype=np.float64).reshape(-1, len(items))


class _Score(Shape):
    prompt: Id
    item: Id
    score: FiniteFloat
    task: SomeId = None
    model: SomeId = None


def read_scores(path: Path) -> list[PromptScores]:
    """Read a table with the columns prompt, item and score, and optionally model and task (else
    the name of the file).

    CSV, TSV, JSONL or Parquet, a row per prompt and item; scores are finite numbers, higher is
    better. Raises JudgeSenseError naming the row, or the prompt and item, of a score that is
    missing, not a number, or repeated.
    """
    groups: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for record in read_table(path):
        row = validate(_Score, record.values, record.place, "a score of a prompt on an item")
        cells = groups.setdefault((row.task or path.name, row.model or ""), {})
        if (row.prompt, row.item) in cells:
            raise JudgeSenseError(
                f"{record.place}: prompt {row.prompt!r} on item {row.item!r} appears twice"
            )
        cells[row.prompt, row.item] = row.score
    tables = []
    for (task, model), cells in groups.items():
        prompts = tuple(dict.fromkeys(prompt for prompt, _ in cells))
        items = tuple(dict.fromkeys(item for _, item in cells))
        if len(prompts) < 2:
            raise JudgeSenseError(
                f"{path}: {task}, {model} has one prompt only; a ranking needs two"
            )
        if missing := [(p, i) for p in prompts for i in items if (p, i) not in cells]:
            prompt, item = missing[0]
            raise JudgeSenseError(
                f"{path}: no score of prompt {prompt!r} on item {item!r}; every prompt needs a "
                "score on every item"
            )
        table = np.array([[cells[prompt, item] for item in items] for prompt in prompts])
        tables.append(PromptScores(task, model, "", prompts, items, table))
    return tables


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
        more_z: other weights, to compare the choices that they lead to.
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
    more_z: tuple[float, ...] = ()
    k: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        for noun, names, choices in (
            ("task", self.tasks, [t + v for t in (*TASKS, *MORE_TASKS) for v in ("", FEW_SHOT)]),
            ("scoring", self.scorings, SCORINGS),
        ):
            if unknown := [name for name in names if name not in choices]:
                raise JudgeSenseError(
                    f"unknown {noun} {unknown[0]!r}; choose from {', '.join(choices)}"
                )
        if not self.sizes or min(self.sizes) < 2:
            raise JudgeSenseError(f"sizes must be numbers of at least 2, got {list(self.sizes)}")
        for name, floor in {"seeds": 3, "max_tokens": 1, "k": 1}.items():
            if getattr(self, name) < floor:
                raise JudgeSenseError(f"{name} must be at least {floor}, got {getattr(self, name)}")
        for z in (self.z, *self.more_z):
            if not 0 <= z < math.inf:
                raise JudgeSenseError(f"z must be a finite number of at least 0, got {z}")

    def check_sizes(self, n_items: int, place: str) -> None:
        """Raise JudgeSenseError unless every subset is smaller than the set of items."""
        if max(self.sizes) >= n_items:
            raise JudgeSenseError(
                f"{place}: subsets of {max(self.sizes)} of {n_items} items are the same for every "
                "seed; use more items or smaller sizes"
            )


@dataclass(frozen=True)
class RankedPrompts:
    """The scores of one model on one task, subsampled at one size.

    ``scores`` (seeds, prompts) are the means on the study's subsets; ``by_z`` are the figures of
    choosing by LCB with each z.
    """

    grid: PromptScores
    size: int
    scores: Floats
    stability: RankingStability
    gain: Mapping[str, float]
    flips: PairFlips
    by_z: Mapping[float, Mapping[str, float]]

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
        return {**vars(self.stability), "shared_items": self.overlap, **self.gain}

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
        return list(grouped((cell.name for cell in self.cells), self.cells).values())


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
                    grid,
                    size,
                    scores,
                    ranking_stability(scores, k=k, z=plan.z),
                    selection_gain(redrawn, plan.z),
                    pair_flips(grid.scores, redrawn),
                    {
                        z: vars(ranking_stability(scores, k=k, z=z)) | selection_gain(redrawn, z)
                        for z in sorted({plan.z, *plan.more_z})
                    },
                )
            )
    return Ranking(tuple(cells), plan.seeds, plan.z, k, texts)
