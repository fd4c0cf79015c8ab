"""The one reader of verdicts: a file of ``judgesense judge``, a run, or a table of your own.

Decisions about systems and the monitoring of a judge start from `read_verdicts`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import numpy as np
import pyarrow as pa
from pydantic import BeforeValidator, FiniteFloat, TypeAdapter, ValidationError

from judgesense.decisions.view import Stream, view
from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Count, Shape, fit
from judgesense.files.tables import ABSENT, SUFFIXES, Rows, read_table_rows
from judgesense.run_folder.folder import read_run
from judgesense.systems.verdict_table import SCHEMA, VerdictTable, chosen, labels_of
from judgesense.tasks import is_scale
from judgesense.trust.grid import label_shares


def _empty(value: Any) -> Any:
    """An empty cell of a CSV file is no value; NaN is none either."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return None if isinstance(value, str) and not value.strip() else value


def as_id(value: Any) -> Any:
    """Ids and labels as text: 4 and 4.0 are the label "4", true is "true"."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value) if isinstance(value, int) else value


def _as_label(value: Any) -> Any:
    text = as_id(value)
    if not isinstance(text, str):
        return text
    text = text.strip()
    try:
        number = float(text)
    except ValueError:
        return text
    # Spreadsheets write the label 4 as 4.0.
    return str(int(number)) if math.isfinite(number) and number.is_integer() else text


Id = Annotated[str, BeforeValidator(as_id), BeforeValidator(_empty)]
SomeId = Annotated[str | None, BeforeValidator(as_id), BeforeValidator(_empty)]
SomeLabel = Annotated[str | None, BeforeValidator(_as_label), BeforeValidator(_empty)]
Number = Annotated[FiniteFloat | None, BeforeValidator(_empty)]


class VerdictRow(Shape):
    """A row of a file of verdicts: the columns of `SCHEMA`, in its order."""

    item_id: Id
    verdict: SomeLabel
    probability: Number = None
    margin: Number = None
    score: Number = None
    ask_person: Annotated[bool | None, BeforeValidator(_empty)] = None
    cost_usd: Number = None
    error: SomeId = None
    cluster_id: SomeId = None
    system_id: SomeId = None
    judge: SomeId = None
    task: SomeId = None
    wording: SomeId = None
    order: SomeId = None
    repeat: Annotated[Count | None, BeforeValidator(_empty)] = None
    gold: SomeLabel = None


def read_verdicts(
    source: str | Path,
    *,
    judge: str | None = None,
    task: str | None = None,
    scoring: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> VerdictTable:
    """Read the verdicts of one judge on one task.

    Args:
        source: a file of ``judgesense judge`` or your own (Parquet, JSONL, CSV, TSV) with at least
            ``item_id`` and ``verdict``; or the folder of a run or an import, whose equivalent
            wordings are all read.
        judge: a judge of the source, with or without its fingerprint; needed if it has several.
        task: a task of the source; needed if it has several.
        scoring: ``options`` or ``generate``, for a run with both (options).
        columns: your names of the columns, ``{"verdict": "rating"}``.

    Returns:
        The table, in the file's order. An empty ``verdict`` is read as UNCLEAR.

    Raises:
        JudgeSenseError: no such source, a missing column, a row that does not fit (file, row and
            field are named), a verdict on the same output twice, or several judges or tasks of
            which none is named.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "mine.csv")
    ...     _ = file.write_text("item_id,system_id,verdict\\n1,a,YES\\n1,b,NO\\n")
    ...     read_verdicts(file).values().tolist()
    [1.0, 0.0]
    """
    path = Path(source)
    if path.is_dir():
        return _of_run(path, judge, task, scoring)
    if not path.is_file():
        raise JudgeSenseError(
            f"no file or folder {path}; name a file of verdicts ({', '.join(SUFFIXES)}) or the "
            "--out folder of a run"
        )
    values, places, others = read_columns(path, VerdictRow, columns or {}, "--columns")
    judges_and_tasks = zip(values["judge"], values["task"], strict=True)
    keep = chosen([(a or "", b or "") for a, b in judges_and_tasks], judge, task, str(path))
    values = {name: [column[n] for n in keep] for name, column in values.items()}
    _refuse_repeats(values, [places[n] for n in keep])
    cells = zip(values["verdict"], values["error"], strict=True)
    values["verdict"] = [v or ("ERROR" if failed else "UNCLEAR") for v, failed in cells]
    ids = zip(values["cluster_id"], values["item_id"], strict=True)
    values["cluster_id"] = [cluster or item for cluster, item in ids]
    values["repeat"] = [value or 0 for value in values["repeat"]]
    table = pa.Table.from_pydict(values, schema=SCHEMA)
    return VerdictTable(
        table,
        labels_of(table, str(path)),
        str(path),
        values["judge"][0] or "",
        values["task"][0] or "",
        shown=tuple(others[n] for n in keep),
    )


def read_columns(
    path: Path, shape: type[Shape], columns: Mapping[str, str], flag: str
) -> tuple[dict[str, list[Any]], list[str], list[dict[str, Any]]]:
    """A file's columns by the names of a shape's fields, each cell checked by its field.

    Args:
        path: a table file.
        shape: the fields that are read; those without a default must be there.
        columns: the file's names of some of them.
        flag: the option that sets ``columns``.

    Returns:
        The columns (None where a file lacks one), the place of each row (file and row), and each
        row's other cells.

    Raises:
        JudgeSenseError: no such field or column, or a cell that does not fit; file, row and column
            are named.
    """
    fields = shape.model_fields
    if unknown := sorted(columns.keys() - fields.keys()):
        raise JudgeSenseError(
            f"{flag}: {unknown[0]!r} is not a column; choose from {', '.join(fields)}"
        )
    named = {name: columns.get(name, name) for name in fields}
    required = {name for name, field in fields.items() if field.is_required()} | columns.keys()
    hints = get_type_hints(shape, include_extras=True)
    readers = {name: TypeAdapter[Any](hints[name]) for name in fields}
    values: dict[str, list[Any]] = {name: [] for name in fields}
    places: list[str] = []
    others: list[dict[str, Any]] = []
    for rows in read_table_rows(path):
        if any(ABSENT in rows.columns.get(named[name], (ABSENT,)) for name in required):
            _refuse_absent(rows, [named[name] for name in fields if name in required], flag)
        for name in fields:
            values[name] += _checked(name, rows, named, readers[name], shape)
        rest = {k: v for k, v in rows.columns.items() if k not in {*named, *named.values()}}
        others += [
            {k: column[at] for k, column in rest.items() if column[at] not in (None, ABSENT)}
            for at in range(len(rows))
        ]
        places += rows.places
    return values, places, others


def _refuse_absent(rows: Rows, names: Sequence[str], flag: str) -> None:
    """Raise JudgeSenseError for the first row that lacks one of the columns."""
    for record in rows.records():
        if absent := [name for name in names if name not in record.values]:
            raise JudgeSenseError(
                f"{record.place}: no column {' and '.join(map(repr, absent))}; its columns: "
                f"{', '.join(map(str, record.values))}. Name yours with {flag} {absent[0]}=YOURS"
            )


def _checked(
    name: str, rows: Rows, named: Mapping[str, str], reader: TypeAdapter[Any], shape: type[Shape]
) -> list[Any]:
    """A column's cells, each distinct one checked once; JudgeSenseError names the row."""
    known: dict[tuple[type, Any], Any] = {}
    cells = []
    for at, cell in enumerate(rows.columns.get(named[name], [None] * len(rows))):
        cell = None if cell is ABSENT else cell
        try:
            if (type(cell), cell) not in known:
                known[type(cell), cell] = reader.validate_python(cell)
        except (ValidationError, TypeError):  # TypeError: a cell that holds a list or an object
            values = rows.records()[at].values
            row = {ours: values[theirs] for ours, theirs in named.items() if theirs in values}
            cells.append(getattr(fit(shape, row, rows.places[at], "a row of the table"), name))
        else:
            cells.append(known[type(cell), cell])
    return cells


_KEY = ("item_id", "system_id", "wording", "order", "repeat")


def _refuse_repeats(values: Mapping[str, Sequence[Any]], places: Sequence[str]) -> None:
    """Raise JudgeSenseError if two rows judge the same output in the same way."""
    first: dict[tuple[Any, ...], str] = {}
    for place, *cells in zip(places, *(values[name] for name in _KEY), strict=True):
        key = tuple(cell or None for cell in cells)
        if (before := first.setdefault(key, place)) != place:
            named = ", ".join(f"{n} {cell!r}" for n, cell in zip(_KEY, key, strict=True) if cell)
            raise JudgeSenseError(
                f"{place}: a second verdict on {named}, already in {before.split(', ')[-1]}; "
                "remove one, or name the column that tells them apart: --columns system_id=YOURS"
            )


def _of_run(folder: Path, judge: str | None, task: str | None, scoring: str | None) -> VerdictTable:
    """The verdicts of a judge in a run's folder, under its equivalent wordings, repeats included.

    Raises JudgeSenseError as `read_verdicts`.
    """
    run = read_run(folder)
    streams = view(run.figures, run.pairs, run.record).judged
    scorings = sorted({stream.scoring for stream in streams})
    if scoring not in (None, *scorings):
        raise JudgeSenseError(
            f"{folder} has no scoring {scoring!r}; choose from {', '.join(scorings)}"
        )
    streams = [stream for stream in streams if scoring in (None, stream.scoring)]
    # Options carry probabilities: they come first where a run has both.
    streams.sort(key=lambda stream: stream.scoring != "options")
    named = [(stream.judge, stream.task.name) for stream in streams]
    return table_of_stream(streams[chosen(named, judge, task, str(folder))[0]], folder)


def table_of_stream(stream: Stream, folder: Path) -> VerdictTable:
    """The verdicts of a stream, one row for each of its `answers`, repeats included."""
    labels = stream.task.labels
    answers = stream.answers(repeats=True)
    orders = answers.order.tolist()
    swapped = dict(zip(labels, reversed(labels), strict=True))
    turns = stream.task.comparative and len(labels) == 2

    def in_own_order(given: Sequence[str]) -> list[str | None]:
        """Labels in the item's own order: in BA the two labels change places."""
        return [
            swapped.get(label, label) if turns and order == "BA" else label or None
            for label, order in zip(given, orders, strict=True)
        ]

    columns: dict[str, list[Any]] = {name: [None] * len(orders) for name in SCHEMA.names}
    for name in SCHEMA.names:
        if name in stream.log.table.column_names:
            columns[name] = answers.column(name).to_pylist()
    clusters = zip(columns["cluster_id"], answers.item, strict=True)
    columns |= {
        **_option_columns(stream, answers.rows, answers.label.tolist()),
        "verdict": in_own_order(answers.label.tolist()),
        "gold": in_own_order(answers.gold.tolist()),
        "cluster_id": [cluster or item for cluster, item in clusters],
        "system_id": [name or None for name in columns["system_id"]],
        "wording": answers.template.tolist(),
        "repeat": answers.repeat.tolist(),
    }
    table = pa.Table.from_pydict(columns, schema=SCHEMA)
    return VerdictTable(table, labels, str(folder), stream.judge, stream.task.name, stated=True)


def _option_columns(stream: Stream, rows: Any, verdicts: list[str]) -> dict[str, list[Any]]:
    """The expected score on a scale and the probability of the verdict; nothing without options."""
    shares = label_shares(stream, rows) if len(rows) else None
    if shares is None:
        return {}
    labels = stream.task.labels
    place = {label: code for code, label in enumerate(labels)}
    codes = np.array([place.get(verdict, -1) for verdict in verdicts])
    columns = {"probability": np.where(codes >= 0, shares[np.arange(len(rows)), codes], np.nan)}
    if stream.task.ordinal and is_scale(labels):
        columns["score"] = shares @ np.array([float(label) for label in labels])
    return {
        name: [None if np.isnan(value) else value for value in column.tolist()]
        for name, column in columns.items()
    }
