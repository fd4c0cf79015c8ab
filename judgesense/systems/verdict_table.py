"""The one reader of verdicts: a file of ``judgesense judge``, a run, or a table of your own.

Decisions about systems and the monitoring of a judge start from `read_verdicts`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
from pydantic import BeforeValidator

from judgesense.errors import JudgeSenseError
from judgesense.shapes import Shape, fit
from judgesense.systems.verdict_runs import verdicts_of_run
from judgesense.systems.verdict_schema import SCHEMA, VerdictTable, chosen, labels_of
from judgesense.table_files import SUFFIXES, read_table
from judgesense.text import join

__all__ = ["SCHEMA", "VerdictTable", "read_verdicts"]

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
Number = Annotated[float | None, BeforeValidator(_empty)]


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
    repeat: Annotated[int | None, BeforeValidator(_empty)] = None
    gold: SomeLabel = None


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
            which none is chosen.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "mine.csv")
    ...     _ = file.write_text("item_id,system_id,verdict\\n1,a,YES\\n1,b,NO\\n")
    ...     read_verdicts(file).values().tolist()
    [1.0, 0.0]
    """
    path = Path(source)
    if path.is_dir():
        return verdicts_of_run(path, judge, task, scoring)
    if not path.is_file():
        raise JudgeSenseError(
            f"no file or folder {path}; name a file of verdicts ({', '.join(SUFFIXES)}) or the "
            "--out folder of a run"
        )
    return _of_file(path, judge, task, columns or {}, encoding)


def _of_file(
    path: Path,
    judge: str | None,
    task: str | None,
    columns: Mapping[str, str],
    encoding: str,
) -> VerdictTable:
    if unknown := sorted(columns.keys() - set(SCHEMA.names)):
        raise JudgeSenseError(
            f"columns: {unknown[0]!r} is not a column of verdicts; choose from "
            f"{', '.join(SCHEMA.names)}"
        )
    rows: list[dict[str, Any]] = []
    places: list[str] = []
    shown: list[Mapping[str, Any]] = []
    renamed = {yours: ours for ours, yours in columns.items()}
    for record in read_table(path, encoding):
        values = {renamed.get(name, name): value for name, value in record.values.items()}
        wanted = {name: columns.get(name, name) for name in (*REQUIRED, *columns)}
        absent = {name: yours for name, yours in wanted.items() if yours not in record.values}
        if absent:
            raise JudgeSenseError(
                f"{record.place}: no column {join([repr(yours) for yours in absent.values()])}; "
                f"its columns: {', '.join(map(str, record.values))}. Name yours with --columns "
                f"{','.join(f'{name}=YOURS' for name in absent)}"
            )
        row = fit(VerdictRow, values, record.place, "a row of verdicts").model_dump()
        row["verdict"] = row["verdict"] or ("ERROR" if row["error"] else "UNCLEAR")
        rows.append(row)
        places.append(record.place)
        shown.append({k: v for k, v in values.items() if k not in SCHEMA.names and v is not None})
    keep = chosen([(row["judge"] or "", row["task"] or "") for row in rows], judge, task, str(path))
    rows, places, shown = ([each[n] for n in keep] for each in (rows, places, shown))  # type: ignore[assignment]
    refuse_repeats(rows, places)
    for row in rows:
        row["cluster_id"] = row["cluster_id"] or row["item_id"]
        row["repeat"] = row["repeat"] or 0
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    return VerdictTable(
        table,
        labels_of(table, str(path)),
        str(path),
        rows[0]["judge"] or "",
        rows[0]["task"] or "",
        shown=tuple(shown) if any(shown) else (),
    )


_KEY = ("item_id", "system_id", "wording", "order", "repeat")


def refuse_repeats(rows: Sequence[Mapping[str, Any]], places: Sequence[str]) -> None:
    """Raise JudgeSenseError if two rows judge the same output in the same way."""
    first: dict[tuple[Any, ...], str] = {}
    for row, place in zip(rows, places, strict=True):
        key = tuple(row[name] or None for name in _KEY)
        if key in first:
            named = ", ".join(f"{n} {v!r}" for n, v in zip(_KEY, key, strict=True) if v is not None)
            lacking = [n for n in ("system_id", "wording", "repeat") if row[n] is None]
            flags = " or ".join(f"--columns {name}=YOURS" for name in lacking)
            raise JudgeSenseError(
                f"{place}: a second verdict on {named}, already in {first[key].split(', ')[-1]}; "
                "remove one"
                + (f", or name the column that tells them apart: {flags}" if flags else "")
            )
        first[key] = place
