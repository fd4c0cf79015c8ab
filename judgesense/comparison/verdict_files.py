"""The one reader of verdicts: a file of ``judgesense judge``, a run, or a table of your own.

Decisions about systems and the monitoring of a judge start from `read_verdicts`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
from pydantic import BeforeValidator, FiniteFloat, create_model

from judgesense.comparison.verdict_table import (
    SCHEMA,
    VerdictTable,
    chosen,
    labels_of,
    number_of,
    objects,
)
from judgesense.errors import JudgeSenseError
from judgesense.files.data import RUNS, Data, kept
from judgesense.files.documents import Count, S, Shape, fit
from judgesense.files.tables import SUFFIXES, Record, read_table, read_table_rows
from judgesense.importers.column_names import columns_of
from judgesense.importers.columns import NAMES, ROW
from judgesense.importers.recognise import recognise
from judgesense.log.folder import read_run
from judgesense.log.rows import Answers
from judgesense.log.stream import Stream
from judgesense.recipes.grid import label_shares
from judgesense.tasks import is_scale


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
    number = number_of(text)
    # Spreadsheets write the label 4 as 4.0.
    return str(int(number)) if number is not None and number.is_integer() else text.strip()


Id = Annotated[str, BeforeValidator(as_id), BeforeValidator(_empty)]
SomeId = Annotated[str | None, BeforeValidator(as_id), BeforeValidator(_empty)]
SomeLabel = Annotated[str | None, BeforeValidator(_as_label), BeforeValidator(_empty)]
Number = Annotated[FiniteFloat | None, BeforeValidator(_empty)]


_KINDS: dict[pa.DataType, Any] = {
    pa.string(): SomeId,
    pa.float64(): Number,
    pa.bool_(): Annotated[bool | None, BeforeValidator(_empty)],
    pa.int32(): Annotated[Count | None, BeforeValidator(_empty)],
}
_FIELDS: dict[str, Any] = {
    **{field.name: (_KINDS[field.type], None) for field in SCHEMA},
    "item_id": (Id, ...),
    "verdict": (SomeLabel, ...),
    "gold": (SomeLabel, None),
}
_VerdictRow = create_model("_VerdictRow", __base__=Shape, **_FIELDS)
"""A row of a file of verdicts: the columns of `SCHEMA`, of which two are needed."""


def read_verdicts(
    source: Data,
    *,
    judge: str | None = None,
    task: str | None = None,
    scoring: str | None = None,
    columns: Mapping[str, str] | None = None,
) -> VerdictTable:
    """Read the verdicts of one judge on one task.

    Args:
        source: a file of ``judgesense judge`` or your own (Parquet, JSONL, CSV, TSV), a list of
            dicts, a DataFrame or a ``datasets.Dataset``, with at least ``item_id`` and ``verdict``;
            rows in memory are kept in a file in ``runs``. Or the folder of a run or an
            import, whose equivalent wordings are all read.
        judge: a judge of the source, with or without its fingerprint; needed if it has several.
        task: a task of the source; needed if it has several.
        scoring: ``options`` or ``generate``, for a run with both (options).
        columns: your names of the columns, ``{"verdict": "rating"}``; `ROW` numbers the rows. Usual
            names are recognised, as ``judgesense check`` does.

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
    path = kept(source, RUNS, "verdicts")
    if path.is_dir():
        # All equivalent wordings, repeats included.
        streams = read_run(path).judged
        return table_of_stream(one_stream(streams, judge, task, scoring, str(path)), path)
    if not path.is_file():
        raise JudgeSenseError(
            f"no file or folder {path}; name a file of verdicts ({', '.join(SUFFIXES)}) or the "
            "--out folder of a run"
        )
    rows, columns = [], dict(columns or {})
    recognised, judge = _recognised(path, columns, judge)
    columns = recognised | columns
    for read, record in read_rows(path, _VerdictRow, columns, "--columns"):
        row = read.model_dump()
        row["verdict"] = row["verdict"] or ("ERROR" if row["error"] else "UNCLEAR")
        row["cluster_id"] = row["cluster_id"] or row["item_id"]
        row["repeat"] = row["repeat"] or 0
        if row["margin"] is not None and row["margin"] > 1:
            # Files of 0.2 have nats, in which only an unsure verdict is below 1.
            row["margin"] = math.tanh(row["margin"] / 2)
        rows.append((row, record.place))
    names = [(row["judge"] or "", row["task"] or "") for row, _ in rows]
    keep = chosen(names, judge, task, str(path))
    _refuse_repeats([rows[n] for n in keep])
    table = pa.Table.from_pylist([rows[n][0] for n in keep], schema=SCHEMA)
    return VerdictTable(
        table, labels_of(table, str(path)), str(path), *names[keep[0]], columns=recognised
    )


def _recognised(
    path: Path, given: Mapping[str, str], judge: str | None
) -> tuple[dict[str, str], str | None]:
    """The columns of a file that have other names, recognised as `judgesense check` does, and the
    judge, if it does not name one of several columns of verdicts.

    ``gold`` is the one column with people's labels, if its words are the verdicts'.
    """
    blocks = list(read_table_rows(path))
    names = {name for rows in blocks for name in rows.columns}
    if not names >= {*given.values()} - {ROW}:
        return {}, judge
    found = {name: column for name, column in columns_of(blocks)[0].items() if name in names}
    known = {name: name for name in SCHEMA.names if name in found} | dict(given)
    judged, people, roles = recognise(
        found,
        str(path),
        [],
        flag="--columns verdict=",
        verdicts=[known["verdict"]] if "verdict" in known else [],
        people=[known["gold"]] if "gold" in known else [],
        columns={role: known[name] for role, name in FIELDS.items() if name in known},
    )
    columns = fields_of(roles)
    if len(judged) > 1:
        if judge not in judged:
            raise JudgeSenseError(
                f"{path} has several judges; choose one with --judge: {', '.join(judged)}"
            )
        judged, judge = [judge], None
    columns["verdict"] = judged[0]
    if len(people) == 1 and {*found[people[0]].words} & {*found[judged[0]].words}:
        columns["gold"] = people[0]
    item = known.get("item_id", columns.get("item_id"))
    if columns.get("cluster_id") == item:
        del columns["cluster_id"]  # The item is the cluster by default.
    return {n: c for n, c in columns.items() if n not in known and c != ROW}, judge


FIELDS = {
    "item_id": "item_id",
    "system_id": "system_id",
    "order": "order",
    "repeat": "repeat",
    "judge": "judge",
    "task": "task",
    "template_id": "wording",
    "cluster_id": "cluster_id",
}
"""Column of the decision log -> column of a table of verdicts."""


def fields_of(roles: Mapping[str, str]) -> dict[str, str]:
    """Column of a table of verdicts -> column of a file, whose ``roles`` were recognised."""
    return {
        name: (NAMES.findall(roles[role]) or [roles[role]])[0]
        for role, name in FIELDS.items()
        if roles.get(role, ":")[:1] != ":"
    }


def read_rows(
    path: Path, shape: type[S], columns: Mapping[str, str], flag: str
) -> Iterator[tuple[S, Record]]:
    """The rows of a table file as objects of a shape, each with its record.

    ``columns`` are the file's names of some of the shape's columns, which the option ``flag`` sets;
    columns without a default must be there. Raises JudgeSenseError for no such field or column, or
    a cell that does not fit; file, row and column are named.
    """
    fields = shape.model_fields
    if unknown := sorted(columns.keys() - fields.keys()):
        raise JudgeSenseError(
            f"{flag}: {unknown[0]!r} is not a column; choose from {', '.join(fields)}"
        )
    required = [name for name, field in fields.items() if field.is_required() or name in columns]
    for number, record in enumerate(read_table(path), 1):
        values = {**record.values, ROW: number} if ROW in columns.values() else record.values
        if absent := [name for name in required if columns.get(name, name) not in values]:
            raise JudgeSenseError(
                f"{record.place}: no column "
                f"{' and '.join(repr(columns.get(name, name)) for name in absent)}; its columns: "
                f"{', '.join(map(str, values))}. Name yours with {flag} {absent[0]}=YOURS"
            )
        renamed = {name: values[yours] for name, yours in columns.items()}
        yield fit(shape, {**values, **renamed}, record.place, "a row of the table"), record


_KEY = ("item_id", "system_id", "wording", "order", "repeat")


def _refuse_repeats(rows: Sequence[tuple[dict[str, Any], str]]) -> None:
    """Raise JudgeSenseError if two rows, each with its place, judge the same output alike."""
    first: dict[tuple[Any, ...], str] = {}
    for row, place in rows:
        key = tuple(row[name] or None for name in _KEY)
        if (before := first.setdefault(key, place)) != place:
            named = ", ".join(f"{n} {cell!r}" for n, cell in zip(_KEY, key, strict=True) if cell)
            raise JudgeSenseError(
                f"{place}: a second verdict on {named}, already in {before.split(', ')[-1]}; "
                "remove one, or name the column that tells them apart: --columns system_id=YOURS"
            )


def one_stream(
    streams: Sequence[Stream], judge: str | None, task: str | None, scoring: str | None, source: str
) -> Stream:
    """The stream of a judge, task and scoring, by default options.

    Raises JudgeSenseError if one is not there, or if there are several and none is named.
    """
    scorings = sorted({stream.scoring for stream in streams})
    if scoring not in (None, *scorings):
        raise JudgeSenseError(
            f"{source} has no scoring {scoring!r}; choose from {', '.join(scorings)}"
        )
    streams = [stream for stream in streams if scoring in (None, stream.scoring)]
    # Options carry probabilities: they come first where a run has both.
    streams.sort(key=lambda stream: stream.scoring != "options")
    named = [(stream.judge, stream.task.name) for stream in streams]
    return streams[chosen(named, judge, task, source)[0]]


def table_of_stream(stream: Stream, folder: Path, left_out: Collection[str] = ()) -> VerdictTable:
    """The verdicts of a stream, one row for each of its `answers`, repeats included.

    Those under the wordings in ``left_out`` are left out.
    """
    labels = stream.task.labels
    answers = stream.answers(repeats=True)
    if left_out:
        kept = ~np.isin(answers.template, list(left_out))
        answers = Answers.at(stream.log, answers.rows[kept])
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
    # A log has nats: of two labels, this is the difference of their probabilities.
    columns["margin"] = [m if m is None else math.tanh(m / 2) for m in columns["margin"]]
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
    return VerdictTable(
        table,
        labels,
        str(folder),
        stream.judge,
        stream.task.name,
        stated=True,
        scoring=stream.scoring,
        prompt_ids=objects(answers.column("prompt_id").to_pylist()),
        left_out=tuple(sorted(left_out)),
    )


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
