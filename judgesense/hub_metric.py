"""What the metric modules for `evaluate` share: every row is checked before evaluate changes it."""

from __future__ import annotations

import csv
import inspect
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.matching import METHODS
from judgesense.scores import METRICS
from judgesense.statistics.tables import is_ordered, number_column, number_table


def text_rows(values: Any, name: str) -> None:
    """Raise ValueError unless every row is a string."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "U" and values.ndim == 1:
        return
    _check_list(values, name, "string")
    if not all(issubclass(kind, str) for kind in set(map(type, values))):
        row, value = next((r, v) for r, v in enumerate(values) if not isinstance(v, str))
        raise ValueError(
            f"{name}[{row}] is {value!r} ({type(value).__name__}), not a string: pass text, and "
            "'UNCLEAR' for a decision that could not be read"
        )


def answer_rows(values: Any, name: str) -> None:
    """Raise ValueError unless the rows are strings, or all of them lists of strings."""
    _check_list(values, name, "string")
    if not len(values) or isinstance(next(iter(values)), str):
        return text_rows(values, name)
    for row, answers in enumerate(values):
        if isinstance(answers, (str, bytes)) or not hasattr(answers, "__len__"):
            raise ValueError(
                f"{name}[{row}] is {answers!r} and {name}[0] a list: pass a list of accepted "
                "answers in every row, or a string in every row"
            )
        text_rows(answers, f"{name}[{row}]")


def number_rows(values: Any, name: str) -> None:
    """Raise ValueError unless every row is a finite number."""
    number_column(values, name)


def score_rows(values: Any, name: str) -> None:
    """Raise ValueError unless the rows are lists of finite numbers of equal length."""
    number_table(values, name, "row", "column")


def _check_list(values: Any, name: str, of: str) -> None:
    if not is_ordered(values):
        raise ValueError(f"{name} is a {type(values).__name__}: pass a list with one {of} a row")


class CheckedRows:
    """What the modules for `evaluate` share; stands before `evaluate.Metric` among the bases.

    evaluate checks the type of row 0 only and turns every other row into text or a number (NaN
    becomes "nan", ["x"] becomes "['x']"), so rows are checked before it sees them. Rows stay in
    memory, where no other process can meet them, unless several processes share one evaluation.
    `evaluate.combine` sends each option to every module, so options of sibling metrics are let
    pass; an option that none of them has is refused.
    """

    row_checks: tuple[tuple[str, Callable[[Any, str], None]], ...]
    """Names of inputs, each with the function that refuses bad rows of it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["keep_in_memory"] = kwargs.get("num_process", 1) == 1
        super().__init__(*args, **kwargs)

    def add_batch(self, *, predictions: Any = None, references: Any = None, **others: Any) -> None:
        """Add rows; see `evaluate.EvaluationModule.add_batch`."""
        rows = {"predictions": predictions, "references": references}
        rows = {name: rows[name] for name, _ in self.row_checks}
        for name, check in self.row_checks:
            check(rows[name], name)
            if not len(rows[name]):
                raise ValueError(f"{name} is empty: pass at least one row")
        lengths = {name: len(values) for name, values in rows.items()}
        if len(set(lengths.values())) > 1:
            told = " and ".join(f"{name} has {n} rows" for name, n in lengths.items())
            raise ValueError(f"{told}: pass one of each for every row")
        # evaluate looks for row 0 by its label, which a filtered pandas series may not have.
        plain = {name: _plain(values) for name, values in rows.items()}
        super().add_batch(**plain, **others)  # type: ignore[misc]

    def add(self, *, prediction: Any = None, reference: Any = None, **others: Any) -> None:
        """Add one row; see `evaluate.EvaluationModule.add`."""
        row = {"predictions": prediction, "references": reference}
        for name, check in self.row_checks:
            check([row[name]], name)
        super().add(prediction=prediction, reference=reference, **others)  # type: ignore[misc]

    def compute(self, *, predictions: Any = None, references: Any = None, **options: Any) -> Any:
        """Compute the metric; see `evaluate.EvaluationModule.compute`."""
        if predictions is None and references is None and not len(self):  # type: ignore[arg-type]
            raise ValueError("there are no rows: pass predictions, or call add_batch first")
        own = _options(self._compute)  # type: ignore[attr-defined]
        every = own.union(*map(_options, (*METRICS.values(), *METHODS.values())))
        if unknown := sorted(set(options) - every):
            raise ValueError(
                f"there is no option {unknown[0]!r}; there are {', '.join(sorted(own))}"
            )
        kept = {name: value for name, value in options.items() if name in own}
        return super().compute(predictions=predictions, references=references, **kept)  # type: ignore[misc]


def _plain(values: Any) -> Any:
    if isinstance(values, (list, np.ndarray)):
        return values
    return values.to_numpy().tolist() if hasattr(values, "to_numpy") else list(values)


def _options(function: Callable[..., Any]) -> set[str]:
    parameters = inspect.signature(function).parameters.values()
    rows = ("self", "predictions", "references")
    return {p.name for p in parameters if p.name not in rows and p.kind is not p.VAR_KEYWORD}


def parse_rows(text: str) -> list[list[str]]:
    """Lines of comma-separated cells, without blank lines and surrounding spaces: an app's input.

    Raises:
        ValueError: there is no line, or lines differ in their number of cells (names the line).
    """
    rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text.strip()))]
    rows = [row for row in rows if any(row)]
    if not rows:
        raise ValueError("there are no rows: give one line for each row")
    for line, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise ValueError(
                f"line {line} has {len(row)} cells and line 1 has {len(rows[0])}: "
                "give every line the same cells, separated by commas"
            )
    return rows


def parse_numbers(rows: list[list[str]]) -> list[list[float]]:
    """Cells as numbers.

    Raises:
        ValueError: a cell that is no number; names line and cell.
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


def card(app_file: str) -> str:
    """The text of the README.md beside an app, without its front matter."""
    return (Path(app_file).parent / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2]
