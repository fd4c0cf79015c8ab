"""The metrics: one entry each, for Python, `evaluate` and their Spaces, and one folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.answers.matching import match_answers
from judgesense.errors import JudgeSenseError
from judgesense.statistics.agreement import jss
from judgesense.statistics.bias import position_bias
from judgesense.statistics.inputs import encode, is_ordered, numbers
from judgesense.statistics.ranking import ranking_stability
from judgesense.statistics.result import ResultMapping
from judgesense.statistics.robustness import paraphrase_robustness
from judgesense.statistics.sensitivity import prompt_sensitivity

Check = Callable[[Any, str], None]
"""Raises ValueError, with the argument's name, for rows that the metric cannot take."""


@dataclass(frozen=True)
class Metric:
    """A metric: its function, the rows that it takes, and the page of its Space.

    ``inputs`` are its row arguments, each with what refuses bad rows of it. On the page a visitor
    pastes lines of comma-separated cells: ``line`` says what one holds, ``cells`` how many it has
    (None: any), and ``rows`` turns them into the function's arguments.
    """

    function: Callable[..., ResultMapping]
    inputs: Mapping[str, Check]
    title: str
    line: str
    example: str
    rows: Callable[[list[list[str]]], dict[str, Any]]
    cells: int | None = None


def text_rows(values: Any, name: str) -> None:
    """Raise ValueError unless every row is a string."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "U" and values.ndim == 1:
        return
    _check_list(values, name)
    for row, value in enumerate(values):
        if not isinstance(value, str):
            raise ValueError(
                f"{name}[{row}] is {value!r} ({type(value).__name__}), not a string: pass text, "
                "and 'UNCLEAR' for a decision that could not be read"
            )


def label_rows(values: Any, name: str) -> None:
    """Raise ValueError unless every row is a string, a whole number or a boolean."""
    _check_list(values, name)
    encode(values, name)


def answer_rows(values: Any, name: str) -> None:
    """Raise ValueError unless the rows are labels, or all of them lists of labels."""
    _check_list(values, name)
    if not len(values) or not is_ordered(next(iter(values))):
        return label_rows(values, name)
    for row, answers in enumerate(values):
        if isinstance(answers, (str, bytes)) or not hasattr(answers, "__len__"):
            raise ValueError(
                f"{name}[{row}] is {answers!r} and {name}[0] is a list: pass a list of accepted "
                "answers in every row, or a string in every row"
            )
        label_rows(answers, f"{name}[{row}]")


def number_rows(values: Any, name: str) -> None:
    """Raise ValueError unless every row is a finite number."""
    numbers(values, name)


def score_rows(values: Any, name: str) -> None:
    """Raise ValueError unless the rows are lists of finite numbers of equal length."""
    numbers(values, name, 2)


def _check_list(values: Any, name: str) -> None:
    if not is_ordered(values):
        raise ValueError(f"{name} is a {type(values).__name__}: pass a list of one string per row")


def parse_numbers(rows: list[list[str]]) -> list[list[float]]:
    """Cells as numbers.

    Raises:
        ValueError: a cell that is not a number; names line and cell.

    >>> parse_numbers([["1", "2.5"]])
    [[1.0, 2.5]]
    """
    table: list[list[float]] = []
    for line, row in enumerate(rows, 1):
        table.append([])
        for place, cell in enumerate(row, 1):
            try:
                table[-1].append(float(cell))
            except ValueError:
                raise ValueError(f"line {line}, cell {place}: {cell!r} is not a number") from None
    return table


def _by_column(*names: str) -> Callable[[list[list[str]]], dict[str, Any]]:
    return lambda rows: dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _robustness_rows(rows: list[list[str]]) -> dict[str, Any]:
    table = parse_numbers(rows)
    return {"predictions": [row[1:] for row in table], "references": [row[0] for row in table]}


def _model_rows(rows: list[list[str]]) -> dict[str, Any]:
    scores = parse_numbers([row[1:] for row in rows])
    return {"predictions": scores, "models": [row[0] for row in rows]}


METRICS: Mapping[str, Metric] = {
    "jss": Metric(
        jss,
        {"predictions": label_rows, "references": label_rows},
        "Judge Sensitivity Score",
        "One pair per line: item, decision under prompt a, decision under prompt b",
        "item-1,YES,YES\nitem-1,YES,NO\nitem-2,NO,NO\nitem-2,NO,NO\nitem-3,YES,YES\n"
        "item-3,UNCLEAR,YES\n",
        _by_column("item_ids", "references", "predictions"),
        cells=3,
    ),
    "paraphrase_robustness": Metric(
        paraphrase_robustness,
        {"predictions": score_rows, "references": number_rows},
        "Paraphrase robustness",
        "One item per line: human score, then the judge's score under each paraphrase",
        "4,4,4,5\n2,2,3,2\n5,5,5,5\n3,2,3,3\n1,1,1,1\n",
        _robustness_rows,
    ),
    "prompt_sensitivity": Metric(
        prompt_sensitivity,
        {"predictions": score_rows},
        "Prompt sensitivity",
        "One model per line: its name, then its accuracy under each prompt",
        "llama,0.61,0.58,0.64\nqwen,0.70,0.71,0.66\ngemma,0.55,0.57,0.52\n",
        _model_rows,
    ),
    "ranking_stability": Metric(
        ranking_stability,
        {"predictions": score_rows},
        "Ranking stability",
        "One condition (seed, subset) per line: the score of each prompt",
        "0.20,0.50,0.40,0.44\n0.30,0.40,0.50,0.45\n0.10,0.60,0.50,0.43\n",
        lambda rows: {"predictions": parse_numbers(rows)},
    ),
    "position_bias": Metric(
        position_bias,
        {"predictions": label_rows, "references": label_rows},
        "Position bias",
        "One pair per line: decision in order AB, decision in order BA",
        "A,B\nA,A\nB,A\nA,B\nTIE,A\n",
        _by_column("references", "predictions"),
        cells=2,
    ),
    "answer_match": Metric(
        match_answers,
        {"predictions": text_rows, "references": answer_rows},
        "Answer match",
        'One response per line: "response", answer; quote a response that contains commas',
        '"The answer is (B).",B\n"I would pick C, because water boils at 100 degrees.",C\n'
        '"None of these is right.",A\n',
        _by_column("predictions", "references"),
        cells=2,
    ),
}
"""The metrics by name."""


def metric_path(name: str) -> str:
    """The absolute path of a metric's folder, for `evaluate.load`; works in a wheel and a checkout.

    Raises:
        JudgeSenseError: an unknown metric.

    >>> Path(metric_path("jss")).name
    'jss'
    """
    package = Path(__file__).resolve().parents[1]
    installed = package / "_metrics"
    home = installed if installed.is_dir() else package.parent / "metrics"
    if name not in METRICS:
        raise JudgeSenseError(f"unknown metric {name!r}; choose one of {', '.join(METRICS)}")
    folder = home / name
    if not (folder / f"{name}.py").is_file():
        raise JudgeSenseError(f"{folder} is missing: reinstall judgesense")
    return str(folder)
