"""The one reader of verdicts: a file of ``judgesense judge``, a run, or a table of your own.

Decisions about systems and the monitoring of a judge start from `read_verdicts`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import pyarrow as pa
from pydantic import BeforeValidator, FiniteFloat, TypeAdapter, ValidationError

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Count, Shape, fit
from judgesense.files.tables import ABSENT, SUFFIXES, Record, Rows, read_table_rows
from judgesense.systems.verdict_runs import verdicts_of_run
from judgesense.systems.verdict_schema import SCHEMA, VerdictTable, chosen, labels_of
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
    name: TypeAdapter(kind)
    for name, kind in get_type_hints(VerdictRow, include_extras=True).items()
    if name in SCHEMA.names
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
    blocks = [_block(rows, columns) for rows in read_table_rows(path, encoding)]
    whole = {name: [v for block in blocks for v in block.values[name]] for name in SCHEMA.names}
    places = [place for block in blocks for place in block.places]
    named = zip(whole["judge"], whole["task"], strict=True)
    keep = chosen([(own or "", about or "") for own, about in named], judge, task, str(path))
    shown: list[Mapping[str, Any]] = []
    if any(any(block.shown) for block in blocks):
        shown = [row for block in blocks for row in block.shown or [{}] * len(block.places)]
        shown = [shown[n] for n in keep]
    if len(keep) < len(places):
        whole = {name: [values[n] for n in keep] for name, values in whole.items()}
        places = [places[n] for n in keep]
    _refuse_repeats(whole, places)
    whole["cluster_id"] = [
        a or b for a, b in zip(whole["cluster_id"], whole["item_id"], strict=True)
    ]
    whole["repeat"] = [value or 0 for value in whole["repeat"]]
    table = pa.Table.from_pydict(whole, schema=SCHEMA)
    return VerdictTable(
        table,
        labels_of(table, str(path)),
        str(path),
        whole["judge"][0] or "",
        whole["task"][0] or "",
        shown=tuple(shown) if any(shown) else (),
    )


@dataclass(frozen=True)
class _Block:
    """Some rows of a file: the columns of `SCHEMA`, places, and what else there is by row."""

    values: Mapping[str, Sequence[Any]]
    places: Sequence[str]
    shown: Sequence[Mapping[str, Any]] = ()


def _block(rows: Rows, columns: Mapping[str, str]) -> _Block:
    """Check some rows. Raises JudgeSenseError, naming the first that does not fit."""
    return _by_column(rows, columns) or _one_by_one(rows.records(), columns)


def _by_column(rows: Rows, columns: Mapping[str, str]) -> _Block | None:
    """Check each distinct value of a column once; None if one does not fit."""
    renamed = {yours: ours for ours, yours in columns.items()}
    named = {renamed.get(name, name): values for name, values in rows.columns.items()}
    required = {*(columns.get(name, name) for name in REQUIRED), *columns.values()}
    if len(named) < len(rows.columns) or not required <= rows.columns.keys():
        return None
    if any(ABSENT in values for values in rows.columns.values()):
        return None
    found: dict[str, Sequence[Any]] = {}
    for name in SCHEMA.names:
        if name not in named:
            found[name] = [None] * len(rows)
            continue
        kinds = set(map(type, named[name])) - {type(None)}
        if len(kinds) > 1 or not kinds <= {str, int, float, bool}:
            return None
        read = _READ[name].validate_python
        try:
            said = {value: read(value) for value in set(named[name])}
        except ValidationError:
            return None
        found[name] = [said[value] for value in named[name]]
    found["verdict"] = [
        verdict or ("ERROR" if error else "UNCLEAR")
        for verdict, error in zip(found["verdict"], found["error"], strict=True)
    ]
    others = {name: values for name, values in named.items() if name not in SCHEMA.names}
    shown = [
        {name: row[at] for at, name in enumerate(others) if row[at] is not None}
        for row in zip(*others.values(), strict=True)
    ]
    return _Block(found, rows.places, shown)


def _one_by_one(records: Sequence[Record], columns: Mapping[str, str]) -> _Block:
    rows: list[dict[str, Any]] = []
    shown: list[Mapping[str, Any]] = []
    renamed = {yours: ours for ours, yours in columns.items()}
    for record in records:
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
        shown.append({k: v for k, v in values.items() if k not in SCHEMA.names and v is not None})
    found = {name: [row[name] for row in rows] for name in SCHEMA.names}
    return _Block(found, [record.place for record in records], shown)


_KEY = ("item_id", "system_id", "wording", "order", "repeat")


def _refuse_repeats(whole: Mapping[str, Sequence[Any]], places: Sequence[str]) -> None:
    """Raise JudgeSenseError if two rows judge the same output in the same way."""

    def keys() -> Iterator[tuple[Any, ...]]:
        return zip(*([value or None for value in whole[name]] for name in _KEY), strict=True)

    if len(set(map(hash, keys()))) == len(places):
        return
    first: dict[tuple[Any, ...], str] = {}
    for key, place in zip(keys(), places, strict=True):
        if key in first:
            named = ", ".join(f"{n} {v!r}" for n, v in zip(_KEY, key, strict=True) if v is not None)
            own = dict(zip(_KEY, key, strict=True))
            lacking = [n for n in ("system_id", "wording") if own[n] is None]
            lacking += ["repeat"] if whole["repeat"][places.index(place)] is None else []
            flags = " or ".join(f"--columns {name}=YOURS" for name in lacking)
            raise JudgeSenseError(
                f"{place}: a second verdict on {named}, already in {first[key].split(', ')[-1]}; "
                "remove one"
                + (f", or name the column that tells them apart: {flags}" if flags else "")
            )
        first[key] = place
