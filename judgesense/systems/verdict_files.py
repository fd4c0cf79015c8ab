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
from judgesense.text import join
from judgesense.trust.grid import label_shares

REQUIRED = ("item_id", "verdict")
"""The columns that a file must have."""


def as_id(value: Any) -> Any:
    """Ids and labels as text: 4 and 4.0 are the label "4", true is "true"."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() else repr(value)
    return str(value) if isinstance(value, int) else value


def _label(value: Any) -> Any:
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


def _empty(value: Any) -> Any:
    """An empty cell of a CSV file is no value; NaN is none either."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return None if isinstance(value, str) and not value.strip() else value


Id = Annotated[str, BeforeValidator(as_id), BeforeValidator(_empty)]
SomeId = Annotated[str | None, BeforeValidator(as_id), BeforeValidator(_empty)]
SomeLabel = Annotated[str | None, BeforeValidator(_label), BeforeValidator(_empty)]
Number = Annotated[FiniteFloat | None, BeforeValidator(_empty)]


class VerdictRow(Shape):
    """A row of a file of verdicts."""

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


_READ: Mapping[str, TypeAdapter[Any]] = {
    name: TypeAdapter(get_type_hints(VerdictRow, include_extras=True)[name])
    for name in SCHEMA.names
}


def read_verdicts(
    source: str | Path,
    *,
    judge: str | None = None,
    task: str | None = None,
    scoring: str | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str = "utf-8",
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
        encoding: of CSV and JSONL.

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
    return _of_file(path, judge, task, columns or {}, encoding)


def _of_file(
    path: Path, judge: str | None, task: str | None, columns: Mapping[str, str], encoding: str
) -> VerdictTable:
    if unknown := sorted(columns.keys() - set(SCHEMA.names)):
        raise JudgeSenseError(
            f"columns: {unknown[0]!r} is not a column of verdicts; choose from "
            f"{', '.join(SCHEMA.names)}"
        )
    named = {name: columns.get(name, name) for name in SCHEMA.names}
    values: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    places: list[str] = []
    shown: list[Mapping[str, Any]] = []
    for rows in read_table_rows(path, encoding):
        _require_columns(rows, {name: named[name] for name in (*REQUIRED, *columns)})
        for name, found in named.items():
            values[name] += _checked(name, rows, found, named)
        others = {k: v for k, v in rows.columns.items() if k not in {*named, *named.values()}}
        shown += [
            {k: v for k, v in zip(others, row, strict=True) if v is not None and v is not ABSENT}
            for row in (zip(*others.values(), strict=True) if others else ((),) * len(rows))
        ]
        places += rows.places
    judges_and_tasks = zip(values["judge"], values["task"], strict=True)
    keep = chosen([(a or "", b or "") for a, b in judges_and_tasks], judge, task, str(path))
    if len(keep) < len(places):
        values = {name: [column[n] for n in keep] for name, column in values.items()}
        places, shown = [places[n] for n in keep], [shown[n] for n in keep]
    _refuse_repeats(values, places)
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
        shown=tuple(shown) if any(shown) else (),
    )


def _require_columns(rows: Rows, wanted: Mapping[str, str]) -> None:
    """Raise JudgeSenseError, naming the row, if one lacks a column that is required or named."""
    if all(ABSENT not in rows.columns.get(yours, (ABSENT,)) for yours in wanted.values()):
        return
    for record in rows.records():
        absent = {ours: yours for ours, yours in wanted.items() if yours not in record.values}
        if absent:
            raise JudgeSenseError(
                f"{record.place}: no column {join([repr(yours) for yours in absent.values()])}; "
                f"its columns: {', '.join(map(str, record.values))}. Name yours with --columns "
                f"{','.join(f'{name}=YOURS' for name in absent)}"
            )


def _checked(name: str, rows: Rows, found: str, named: Mapping[str, str]) -> list[Any]:
    """A column's cells, each distinct one checked once; JudgeSenseError names the row."""
    known: dict[tuple[type, Any], Any] = {}
    cells = []
    for at, cell in enumerate(rows.columns.get(found, [None] * len(rows))):
        cell = None if cell is ABSENT else cell
        try:
            if (type(cell), cell) not in known:
                known[type(cell), cell] = _READ[name].validate_python(cell)
            cells.append(known[type(cell), cell])
        except (ValidationError, TypeError):  # TypeError: a cell that holds a list or an object
            values = rows.records()[at].values
            row = {ours: values[yours] for ours, yours in named.items() if yours in values}
            cells.append(getattr(fit(VerdictRow, row, rows.places[at], "a row of verdicts"), name))
    return cells


_KEY = ("item_id", "system_id", "wording", "order", "repeat")


def _refuse_repeats(values: Mapping[str, Sequence[Any]], places: Sequence[str]) -> None:
    """Raise JudgeSenseError if two rows judge the same output in the same way."""
    first: dict[tuple[Any, ...], str] = {}
    for at, key in enumerate(zip(*(values[name] for name in _KEY), strict=True)):
        given = dict(zip(_KEY, (value or None for value in key), strict=True))
        if (before := first.setdefault(tuple(given.values()), places[at])) == places[at]:
            continue
        named = ", ".join(f"{name} {value!r}" for name, value in given.items() if value is not None)
        lacking = [name for name in ("system_id", "wording") if given[name] is None]
        lacking += ["repeat"] if values["repeat"][at] is None else []
        flags = " or ".join(f"--columns {name}=YOURS" for name in lacking)
        raise JudgeSenseError(
            f"{places[at]}: a second verdict on {named}, already in {before.split(', ')[-1]}; "
            "remove one" + (f", or name the column that tells them apart: {flags}" if flags else "")
        )


def _of_run(folder: Path, judge: str | None, task: str | None, scoring: str | None) -> VerdictTable:
    """The verdicts of a judge in a run's folder, under its equivalent wordings, repeats included.

    Raises JudgeSenseError as `read_verdicts`.
    """
    run = read_run(folder)
    streams = view(run.figures, run.pairs, run.record).judged
    if scoring is not None:
        scorings = sorted({stream.scoring for stream in streams})
        if scoring not in scorings:
            raise JudgeSenseError(
                f"{folder} has no scoring {scoring!r}; choose from {', '.join(scorings)}"
            )
        streams = [stream for stream in streams if stream.scoring == scoring]
    # Options carry probabilities: they come first where a run has both.
    streams.sort(key=lambda stream: stream.scoring != "options")
    named = [(stream.judge, stream.task.name) for stream in streams]
    return table_of_stream(streams[chosen(named, judge, task, str(folder))[0]], folder)


def table_of_stream(stream: Stream, folder: Path) -> VerdictTable:
    """The verdicts of a stream, one row for each of its `answers`, repeats included."""
    log, labels = stream.log, stream.task.labels
    answers = stream.answers(repeats=True)
    orders = answers.order.tolist()
    known = [name for name in SCHEMA.names if name in log.table.column_names]
    values = {name: answers.column(name).to_pylist() for name in known}

    def in_own_order(found: Sequence[str]) -> list[str | None]:
        """Labels in the item's own order: in BA the two labels change places."""
        swapped = dict(zip(labels, reversed(labels), strict=True))
        turn = stream.task.comparative and len(labels) == 2
        return [
            swapped.get(label, label) if turn and order == "BA" else label or None
            for label, order in zip(found, orders, strict=True)
        ]

    columns = {
        **values,
        **_option_columns(stream, answers.rows, answers.label.tolist()),
        "verdict": in_own_order(answers.label.tolist()),
        "gold": in_own_order(answers.gold.tolist()),
        "cluster_id": [c or i for c, i in zip(values["cluster_id"], answers.item, strict=True)],
        "system_id": [name or None for name in values["system_id"]],
        "wording": answers.template.tolist(),
        "repeat": answers.repeat.tolist(),
    }
    nothing = [None] * len(orders)
    table = pa.table(
        {f.name: pa.array(columns.get(f.name, nothing), f.type) for f in SCHEMA}, schema=SCHEMA
    )
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
