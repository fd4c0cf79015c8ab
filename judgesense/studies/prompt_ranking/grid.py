"""The scores of prompt-ranking: every prompt on every item, from a model or from a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import read_yaml
from judgesense.files.tables import read_table
from judgesense.matching import match_likelihood
from judgesense.matching.choice import match_choice
from judgesense.matching.numbers import match_number
from judgesense.matching.result import AnswerMatch
from judgesense.statistics.arrays import Floats
from judgesense.studies.common.question_sets import (
    BenchmarkItem,
    ask_all,
    fill,
)
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
    solved = "".join(f"{render(text, each)}\n{_answer(each)}\n\n" for each in shown)
    return solved + fill(text, {"question": item.question, "options": "\n".join(lines)})


def _answer(item: BenchmarkItem) -> str:
    return item.answers[0] if item.correct is None else LETTERS[item.correct]


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
        responders, questions, out, task, max_tokens=max_tokens if texts else 1, seed=seed,
        note=note,
    )  # fmt: skip
    for model, rows in logs.items():
        failed = {item for (_, item), row in rows.items() if row["text"] is None}
        kept = [item for item in items if item.item_id not in failed]
        if not kept:
            raise JudgeSenseError(
                f"{model}, {task}: no item was answered under every prompt; see the error column "
                f"of its answers in {out / 'answers'}"
            )
        cells = [rows[name, item.item_id] for name in prompts for item in kept]
        wanted = kept * len(prompts)

        scored = partial(
            PromptScores,
            task=task,
            model=model,
            prompts=tuple(prompts),
            items=tuple(item.item_id for item in kept),
            left_out=len(failed),
        )
        if texts:
            result = _read(numbers, [cell["text"] for cell in cells], wanted)
            cut = sum(cell["finish_reason"] == "length" for cell in cells) / len(cells)
            yield scored(
                scoring="generate", scores=_by_prompt(result, len(kept)), cut=cut,
                unread=result.n_unread / result.n,
            )  # fmt: skip
        if by_options:
            if any(cell["option_logprobs"] is None for cell in cells):
                raise JudgeSenseError(
                    f"{model} gives no option probabilities; use scoring generate"
                )
            logprobs = [[each["logprob"] for each in cell["option_logprobs"]] for cell in cells]
            result = match_likelihood(logprobs, [item.correct or 0 for item in wanted])
            yield scored(scoring="options", scores=_by_prompt(result, len(kept)))


def _read(numbers: bool, said: Sequence[str], items: Sequence[BenchmarkItem]) -> AnswerMatch:
    if numbers:
        return match_number(said, [item.answers for item in items])
    right = [LETTERS[item.correct or 0] for item in items]
    return match_choice(said, right, options=[item.options for item in items], labels="letters")


def _by_prompt(result: AnswerMatch, n_items: int) -> Floats:
    return np.array(result.per_example, dtype=np.float64).reshape(-1, n_items)


def read_scores(path: Path) -> list[PromptScores]:
    """Read a table with the columns prompt, item and score, and optionally model and task (else
    the name of the file).

    CSV, TSV, JSONL or Parquet, a row per prompt and item; scores are finite numbers, higher is
    better. Raises JudgeSenseError naming the row, or the prompt and item, of a score that is
    missing, not a number, or repeated.
    """
    cells: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for record in read_table(path):
        values = record.values
        for column in ("prompt", "item", "score"):
            if values.get(column) in (None, ""):
                raise JudgeSenseError(
                    f"{record.place}, column {column}: no value; a score table needs the columns "
                    f"prompt, item and score, this one has {', '.join(map(str, values))}"
                )
        group = (str(values.get("task") or path.name), str(values.get("model") or ""))
        cell = (str(values["prompt"]), str(values["item"]))
        score = _number(values["score"], record.place)
        if cell in cells.setdefault(group, {}):
            raise JudgeSenseError(
                f"{record.place}: prompt {cell[0]!r} on item {cell[1]!r} appears twice"
            )
        cells[group][cell] = score
    return [_scores_of(path, task, model, found) for (task, model), found in cells.items()]


def _number(value: Any, place: str) -> float:
    try:
        score = float(value)
    except (OverflowError, TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        raise JudgeSenseError(f"{place}, column score: {value!r} is not a finite number")
    return score


def _scores_of(
    path: Path, task: str, model: str, cells: Mapping[tuple[str, str], float]
) -> PromptScores:
    prompts = tuple(dict.fromkeys(prompt for prompt, _ in cells))
    items = tuple(dict.fromkeys(item for _, item in cells))
    if len(prompts) < 2:
        raise JudgeSenseError(f"{path}: {task}, {model} has one prompt only; a ranking needs two")
    if missing := [(p, i) for p in prompts for i in items if (p, i) not in cells]:
        prompt, item = missing[0]
        raise JudgeSenseError(
            f"{path}: no score of prompt {prompt!r} on item {item!r}; every prompt needs a score "
            "on every item"
        )
    table = np.array([[cells[prompt, item] for item in items] for prompt in prompts])
    return PromptScores(task, model, "", prompts, items, table)
