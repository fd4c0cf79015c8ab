"""What can be wrong with a file: values, keys and columns, bits, and files that are hostile whole.

A mutation is a name and a function that makes the changed file. All follow from the file and the
seed.
"""

from __future__ import annotations

import csv
import io
import json
import random
import zipfile
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

Mutation = tuple[str, Callable[[], bytes]]

WRONG: list[Any] = [
    None,
    True,
    -1,
    0,
    3,
    10**30,
    10**400,
    1.5,
    -0.0,
    float("nan"),
    float("inf"),
    "",
    " ",
    "x",
    "\ud800",
    "a\0b",
    "long " * 40_000,
    "2026-01-01T00:00:00Z",
    [],
    [[]],
    [None],
    [1, "x"],
    {},
    {"": None},
    {"a": {"a": [1]}},
    [[[[["deep"]]]]],
]
"""Values that do not belong in most fields."""

_CELLS = [
    "",
    " ",
    "x",
    "-1",
    "0",
    "1.5",
    "NaN",
    "inf",
    "1e400",
    "9" * 400,
    "true",
    "[]",
    "{}",
    '{"a": 1',
    "a\0b",
    "long " * 40_000,
    '"',
    "a,b",
    "line\nbreak",
    "\udcff",
    "\ufeff",
    "2026-01-01",
]

HOSTILE: list[tuple[str, bytes]] = [
    ("empty", b""),
    ("blank lines", b"\n\n\n"),
    ("NUL bytes", b"\0" * 4096),
    ("UTF-16", "judge,task\n{}".encode("utf-16")),
    ("no UTF-8", b"\xff\xfe\xfd" * 100),
    ("lists 100,000 deep", b"[" * 100_000 + b"]" * 100_000),
    ("objects 100,000 deep", b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    ("an integer of 100,000 digits", b'{"a": ' + b"9" * 100_000 + b"}"),
    ("a row that is a number", b"1\n"),
    ("a row that is null", b"null\n"),
    ("a row that is a text", b'"text"\n'),
    ("a row that is a list", b"[1, 2]\n"),
    ("an empty object", b"{}\n"),
    ("an empty list", b"[]\n"),
    ("a line of 20 MB", b'"' + b"x" * 20_000_000),
    (
        "aliases that expand",
        b"a0: &a0 [x, x]\n"
        + b"".join(
            f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n".encode() for n in range(1, 12)
        ),
    ),
    ("a key twice", b"tasks: {}\ntasks: {}\n"),
    ("a YAML object", b"!!python/object/apply:os.system ['true']\n"),
    ("flow 100,000 deep", b"a: " + b"{a: " * 100_000),
    ("parquet's mark alone", b"PAR1" + b"\xff" * 64 + b"PAR1"),
    ("zip's mark alone", b"PK\x03\x04" + b"\0" * 64),
]


def mutations(content: bytes, name: str, rng: random.Random, flips: int) -> Iterator[Mutation]:
    """Every wrong value in every place of a file, then hostile files, then random bit flips.

    Args:
        content: the file as it should be.
        name: its name; the suffix says how it is read.
        rng: chooses the bits, and where a file is cut off.
        flips: number of bit flips.
    """
    suffix = name.rsplit(".", 1)[-1]
    if suffix in ("json", "jsonl"):
        yield from _json_mutations(content, lines=suffix == "jsonl")
    elif suffix in ("yaml", "yml"):
        for what, change in _changes(yaml.safe_load(content)):
            yield what, lambda change=change: _yaml(change())
    elif suffix == "csv":
        yield from _csv_mutations(content)
    elif suffix == "parquet":
        yield from _parquet_mutations(content)
    elif suffix in ("eval", "zip"):
        yield from _zip_mutations(content)
    for what, whole in HOSTILE:
        yield what, lambda whole=whole: whole
    for _ in range(flips):
        at = rng.randrange(8 * len(content))
        yield f"bit {at}", partial(_flipped, content, at)
    for _ in range(max(1, flips // 10)):
        at = rng.randrange(len(content))
        yield f"cut at byte {at}", lambda at=at: content[:at]


def _flipped(content: bytes, at: int) -> bytes:
    flipped = bytearray(content)
    flipped[at // 8] ^= 1 << at % 8
    return bytes(flipped)


def _yaml(document: Any) -> bytes:
    return yaml.safe_dump(document, sort_keys=False).encode("utf-8", "surrogatepass")


def _json_mutations(content: bytes, lines: bool) -> Iterator[Mutation]:
    if not lines:
        for what, change in _changes(json.loads(content)):
            yield what, lambda change=change: json.dumps(change()).encode()
        return
    rows = content.splitlines()

    def with_row(at: int, change: Callable[[], Any]) -> bytes:
        row = json.dumps(change()).encode()
        return b"\n".join([*rows[:at], row, *rows[at + 1 :]]) + b"\n"

    # The second row too: a reader that looks at the first alone believes the others.
    for at in {0, min(1, len(rows) - 1)}:
        for what, change in _changes(json.loads(rows[at])):
            yield f"row {at + 1}, {what}", partial(with_row, at, change)
    yield "rows doubled", lambda: b"\n".join([*rows, *rows]) + b"\n"


def _changes(document: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    for path in _paths(document):
        for wrong in WRONG:
            yield f"{_written(path)} = {_short(wrong)}", partial(_with, document, path, wrong)
        if path:
            yield f"{_written(path)} gone", partial(_with, document, path, _GONE)


_GONE = object()


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place; of a list only the first two, and of a mapping the first 40."""
    yield path
    if isinstance(value, dict):
        for key in list(value)[:40]:
            yield from _paths(value[key], (*path, key))
    elif isinstance(value, list):
        for at in range(min(2, len(value))):
            yield from _paths(value[at], (*path, at))


def _with(value: Any, path: Sequence[Any], new: Any) -> Any:
    if not path:
        return new
    copy = value.copy()
    if len(path) == 1 and new is _GONE:
        del copy[path[0]]
    else:
        copy[path[0]] = _with(value[path[0]], path[1:], new)
    return copy


def _written(path: Sequence[Any]) -> str:
    return ".".join(map(str, path)) or "the whole"


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) < 30 else f"{text[:27]}..."


def _csv_mutations(content: bytes) -> Iterator[Mutation]:
    rows = list(csv.reader(io.StringIO(content.decode())))

    def with_cell(row: int, column: int, cell: str) -> bytes:
        changed = [list(r) for r in rows]
        changed[row][column] = cell
        return _csv(changed)

    for column, name in enumerate(rows[0]):
        for row in (1, len(rows) - 1):
            for cell in _CELLS:
                yield f"row {row}, {name} = {_short(cell)}", partial(with_cell, row, column, cell)
        gone = [r[:column] + r[column + 1 :] for r in rows]
        yield f"column {name} gone", partial(_csv, gone)
        yield f"column {name} twice", partial(_csv, [[*r, r[column]] for r in rows])
    yield "a cell too many", partial(_csv, [*rows[:-1], [*rows[-1], "more"]])
    yield "a cell too few", partial(_csv, [*rows[:-1], rows[-1][:-1]])
    yield "header alone", partial(_csv, rows[:1])
    yield "a quote left open", lambda: content + b'"open'


def _csv(rows: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "surrogateescape")


def _parquet_mutations(content: bytes) -> Iterator[Mutation]:
    table = pq.read_table(io.BytesIO(content))
    n = table.num_rows
    invalid = pa.Array.from_buffers(
        pa.string(),
        n,
        [
            None,
            pa.array(range(0, 2 * n + 1, 2), pa.int32()).buffers()[1],
            pa.py_buffer(b"\xff\xfe" * n),
        ],
    )
    columns: dict[str, pa.Array] = {
        "null": pa.nulls(n),
        "null text": pa.nulls(n, pa.string()),
        "text": pa.array(["x"] * n),
        "no text": pa.array([""] * n),
        "integers": pa.array(range(n)),
        "minus": pa.array([-1] * n),
        "huge": pa.array([2**62] * n),
        "NaN": pa.array([float("nan")] * n),
        "infinite": pa.array([float("inf")] * n),
        "booleans": pa.array([True] * n),
        "lists": pa.array([["x"]] * n),
        "no lists": pa.array([[]] * n, pa.list_(pa.string())),
        "mappings": pa.array([{"a": 1}] * n),
        "invalid UTF-8": invalid,
        "bytes": pa.array([b"\xff"] * n),
        "NULs": pa.array(["a\0b"] * n),
        "days": pa.array([10**6] * n, pa.date32()),
        "odd times": pa.array([2**62] * n, pa.timestamp("ns", "UTC")),
        "unknown zone": pa.array([0] * n, pa.timestamp("s", "Mars/Phobos")),
        "decimals": pa.array([Decimal(10) ** 70] * n, pa.decimal256(76, 0)),
        "categories": pa.array(["x"] * n).dictionary_encode(),
        "long": pa.array(["long " * 40_000] + ["x"] * (n - 1)) if n else pa.nulls(0),
    }
    for at, field in enumerate(table.schema):
        for what, column in columns.items():
            yield (
                f"{field.name}: {what}",
                partial(_parquet, table.set_column(at, field.name, column)),
            )
            if column.type == field.type and n > 1:
                one = pa.concat_arrays([column[:1], table.column(at).combine_chunks()[1:]])
                yield (
                    f"{field.name}, row 1: {what}",
                    partial(_parquet, table.set_column(at, field.name, one)),
                )
        yield f"{field.name} gone", partial(_parquet, table.remove_column(at))
        yield f"{field.name} twice", partial(_parquet, table.append_column(field, table.column(at)))
    yield "rows doubled", partial(_parquet, pa.concat_tables([table, table]))
    yield "no rows", partial(_parquet, table[:0])
    yield "rows halved", partial(_parquet, table[: n // 2])
    yield "no columns", partial(_parquet, table.select([]))


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _zip_mutations(content: bytes) -> Iterator[Mutation]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    whole = [(what, lambda data=data: data) for what, data in HOSTILE]

    def with_member(name: str, change: Callable[[], bytes]) -> bytes:
        return _zip({**members, name: change()})

    for name in members:
        rest = {other: data for other, data in members.items() if other != name}
        yield f"{name} gone", partial(_zip, rest)
        if name.endswith(".json"):
            for what, change in [*_json_mutations(members[name], lines=False), *whole]:
                yield f"{name}, {what}", partial(with_member, name, change)


def _zip(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()
