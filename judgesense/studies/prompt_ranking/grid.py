"""The grids of prompt-ranking: a score for every prompt and item, asked for or from a file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml

from judgesense.errors import JudgeSenseError
from judgesense.importers.files import read_table
from judgesense.matching.choice import match_choice
from judgesense.matching.likelihood import match_likelihood
from judgesense.matching.numbers import match_number
from judgesense.matching.result import AnswerMatch
from judgesense.statistics.tables import Floats
from judgesense.studies.common.question_sets import BenchmarkItem, Drawn, fill
from local_judges.responder import Question, respond

TASKS = ("gsm8k", "mmlu")
SCORINGS = ("generate", "options")
LETTERS = ("A", "B", "C", "D")

_PROMPTS = Path(__file__).parent / "prompts.yaml"
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "gsm8k": ("{question}",),
    "mmlu": ("{question}", "{options}"),
}


@dataclass(frozen=True)
class Grid:
    """Scores of M prompts on N items, ``scores`` of shape (M, N), for one task and model.

    ``unread`` is the share of answers that could not be read (they score 0), ``cut`` the share
    that the token cap cut off; None where the scores come from a file or from options.
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


@cache
def prompts_of(task: str) -> Mapping[str, str]:
    """The 20 wordings of a task by prompt name ("gsm8k-01", ...)."""
    texts = yaml.safe_load(_PROMPTS.read_text("utf-8"))["tasks"][task]
    return {f"{task}-{number:02d}": text for number, text in enumerate(texts, 1)}


def prompts_from(path: Path, task: str) -> Mapping[str, str]:
    """One's own wordings: a YAML file ``tasks: {task: [text, ...]}`` like the study's own.

    Raises JudgeSenseError for a file that cannot be read, a task without at least two prompts,
    and a prompt that does not show the question (or the options).
    """
    if not path.is_file():
        raise JudgeSenseError(f"no file {path}")
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise JudgeSenseError(f"{path}: not YAML ({error})") from error
    tasks = content.get("tasks") if isinstance(content, dict) else None
    texts = tasks.get(task) if isinstance(tasks, dict) else None
    if not isinstance(texts, list) or len(texts) < 2:
        raise JudgeSenseError(f"{path}, tasks.{task}: must be a list of at least two prompts")
    for number, text in enumerate(texts, 1):
        for place in _FIELDS[task]:
            if not isinstance(text, str) or place not in text:
                raise JudgeSenseError(
                    f"{path}, tasks.{task}, prompt {number}: does not show {place}: {text!r:.80}"
                )
    return {f"{task}-{number:02d}": text for number, text in enumerate(texts, 1)}


def render(text: str, item: BenchmarkItem) -> str:
    """The message that a prompt makes of an item; options are lines "A. ..."."""
    lines = (f"{letter}. {option}" for letter, option in zip(LETTERS, item.options, strict=False))
    return fill(text, {"question": item.question, "options": "\n".join(lines)})


def ask(
    task: str,
    responder: Any,
    drawn: Drawn,
    prompts: Mapping[str, str],
    scorings: Sequence[str],
    max_tokens: int,
    out: Path,
    note: Callable[[str], None],
    seed: int = 0,
) -> Iterator[Grid]:
    """Ask every prompt with every item once, and score the answers: a grid for each scoring.

    Items on which any prompt got an error instead of an answer are left out for all prompts.
    ``seed`` fixes what is drawn above temperature 0.
    Raises JudgeSenseError if no item is left, or if options are asked of an engine without them.
    """
    by_options = task == "mmlu" and "options" in scorings
    texts = task == "gsm8k" or "generate" in scorings
    questions = [
        Question(item.item_id, name, render(text, item), LETTERS if by_options else ())
        for name, text in prompts.items()
        for item in drawn.items
    ]
    log = respond(
        responder, questions, out, max_tokens=max_tokens if texts else 1, seed=seed, note=note
    )
    rows = _by_cell(log)
    failed = {item for (_, item), row in rows.items() if row["text"] is None}
    items = [item for item in drawn.items if item.item_id not in failed]
    if not items:
        raise JudgeSenseError(f"{out}: no item was answered under every prompt; see its run.json")
    cells = [rows[name, item.item_id] for name in prompts for item in items]
    wanted = items * len(prompts)
    shape = (len(prompts), len(items))
    model = str(log["model"][0])
    names, ids = tuple(prompts), tuple(item.item_id for item in items)
    if texts:
        said = [cell["text"] for cell in cells]
        result = _read(task, said, wanted)
        cut = sum(cell["finish_reason"] == "length" for cell in cells) / len(cells)
        yield Grid(
            task, model, "generate", names, ids, _table(result, shape),
            result.n_unread / result.n, cut, len(failed),
        )  # fmt: skip
    if by_options:
        if any(cell["option_logprobs"] is None for cell in cells):
            raise JudgeSenseError(
                f"{model} gives no probabilities of options; give --scoring generate"
            )
        logprobs = [[each["logprob"] for each in cell["option_logprobs"]] for cell in cells]
        result = match_likelihood(logprobs, [item.correct or 0 for item in wanted])
        yield Grid(task, model, "options", names, ids, _table(result, shape), left_out=len(failed))


def _by_cell(log: pa.Table) -> dict[tuple[str, str], dict[str, Any]]:
    columns = ["template_id", "item_id", "text", "finish_reason", "option_logprobs"]
    return {(row["template_id"], row["item_id"]): row for row in log.select(columns).to_pylist()}


def _read(task: str, said: Sequence[str], items: Sequence[BenchmarkItem]) -> AnswerMatch:
    if task == "gsm8k":
        return match_number(said, [item.answers for item in items])
    right = [LETTERS[item.correct or 0] for item in items]
    return match_choice(said, right, options=[item.options for item in items], labels="letters")


def _table(result: AnswerMatch, shape: tuple[int, int]) -> Floats:
    return np.array(result.per_example, dtype=np.float64).reshape(shape)


def read_scores(path: Path) -> list[Grid]:
    """Grids from a table with the columns prompt, item and score, and if there model and task.

    CSV, TSV, JSONL or Parquet, a row for each prompt and item; scores are finite numbers, higher
    is better. Raises JudgeSenseError naming the row (or the cell) that is missing, not a number or
    there twice.
    """
    cells: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for record in read_table(path):
        values = record.values
        for column in ("prompt", "item", "score"):
            if values.get(column) in (None, ""):
                raise JudgeSenseError(
                    f"{record.place}, column {column}: no value; a score table has the columns "
                    f"prompt, item and score, this one has {', '.join(map(str, values))}"
                )
        group = (str(values.get("task") or path.stem), str(values.get("model") or "-"))
        cell = (str(values["prompt"]), str(values["item"]))
        score = _number(values["score"], record.place)
        if cell in cells.setdefault(group, {}):
            raise JudgeSenseError(
                f"{record.place}: prompt {cell[0]!r} on item {cell[1]!r} stands there twice"
            )
        cells[group][cell] = score
    return [_grid_of(path, task, model, found) for (task, model), found in cells.items()]


def _number(value: Any, place: str) -> float:
    try:
        score = float(value)
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        raise JudgeSenseError(f"{place}, column score: {value!r} is not a finite number")
    return score


def _grid_of(path: Path, task: str, model: str, cells: Mapping[tuple[str, str], float]) -> Grid:
    prompts = tuple(dict.fromkeys(prompt for prompt, _ in cells))
    items = tuple(dict.fromkeys(item for _, item in cells))
    if len(prompts) < 2:
        raise JudgeSenseError(f"{path}: {task}, {model} has one prompt only; there is no ranking")
    for prompt in prompts:
        for item in items:
            if (prompt, item) not in cells:
                raise JudgeSenseError(
                    f"{path}: no score of prompt {prompt!r} on item {item!r}; every prompt needs "
                    "one on every item"
                )
    table = np.array([[cells[prompt, item] for item in items] for prompt in prompts])
    return Grid(task, model, "", prompts, items, table)
