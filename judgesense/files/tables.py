"""Rows of CSV, TSV, JSON lines and Parquet files, each with its place for error messages."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from judgesense.errors import JudgeSenseError
from judgesense.files.json import parse_json

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")


@dataclass(frozen=True, slots=True)
class Record:
    """One entry of a foreign file: its values by name, and its file and row or line."""

    values: Mapping[str, Any]
    place: str


ABSENT = object()
"""What a column holds for an entry that does not have it."""

AT_ONCE = 2048
"""Entries that are read by column at a time."""


class Rows(Protocol):
    """Consecutive entries of a foreign file, by column: quicker than one `Record` after another."""

    @property
    def places(self) -> Sequence[str]:
        """The entries' places, as in `Record`."""

    def column(self, name: str) -> list[Any] | None:
        """A column's values, `ABSENT` where an entry lacks it; None if all do."""

    def records(self) -> Sequence[Record]:
        """The entries one by one."""


@dataclass(frozen=True, slots=True)
class RecordRows:
    """Records as `Rows`."""

    entries: Sequence[Record]

    @property
    def places(self) -> Sequence[str]:
        """The records' places."""
        return [entry.place for entry in self.entries]

    def column(self, name: str) -> list[Any] | None:
        """A column's values."""
        values = [entry.values.get(name, ABSENT) for entry in self.entries]
        return None if all(value is ABSENT for value in values) else values

    def records(self) -> Sequence[Record]:
        """The records themselves."""
        return self.entries


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows of a table, all with the same columns; the first is row ``number`` of the file."""

    columns: Mapping[str, list[Any]]
    path: Path
    number: int

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @property
    def places(self) -> Sequence[str]:
        """File and row, from 1."""
        return [f"{self.path}, row {n}" for n in range(self.number, self.number + len(self))]

    def column(self, name: str) -> list[Any] | None:
        """A column's values."""
        return self.columns.get(name)

    def records(self) -> Sequence[Record]:
        """The rows as records."""
        values = zip(*self.columns.values(), strict=True)
        return [
            Record(dict(zip(self.columns, row, strict=True)), place)
            for row, place in zip(values, self.places, strict=True)
        ]


def in_rows(records: Iterable[Record]) -> Iterator[Rows]:
    """Records, some at a time. Those before an error come before it."""
    found: list[Record] = []
    try:
        for record in records:
            found.append(record)
            if len(found) == AT_ONCE:
                yield RecordRows(found)
                found = []
    except JudgeSenseError:
        if found:
            yield RecordRows(found)
        raise
    if found:
        yield RecordRows(found)


def require_file(path: Path) -> None:
    """Raise JudgeSenseError unless ``path`` is a file that is not empty."""
    # Unlike pathlib, false for a name that is too long for the file system.
    if not os.path.isfile(path):
        if os.path.isdir(path):
            raise JudgeSenseError(f"{path} is a folder; name a file")
        if os.path.exists(path):
            raise JudgeSenseError(
                f"{path} is a pipe or a device, not a file; save its content to a file"
            )
        raise JudgeSenseError(f"no file {path}")
    if path.stat().st_size == 0:
        raise JudgeSenseError(f"{path} is empty")


def require_columns(record: Record, names: Sequence[str], what: str) -> None:
    """Raise JudgeSenseError unless the record has these columns; ``what`` says what needs them."""
    if missing := [name for name in names if name not in record.values]:
        raise JudgeSenseError(
            f"{record.place}: not {what}, which has {', '.join(names)}; missing: "
            f"{', '.join(missing)}"
        )


def read_table(path: Path, encoding: str = "utf-8") -> Iterator[Record]:
    """The rows of a table file, read by its suffix; rows count from 1, without the header.

    A CSV file may be separated by commas, semicolons or tabs.

    Raises JudgeSenseError for an unknown suffix, an empty or damaged file, text in another
    encoding, a CSV row with more or fewer cells than the header, and a JSON line that is not an
    object.
    """
    suffix = _suffix(path)
    if suffix in (".jsonl", ".ndjson"):
        yield from read_json_lines(path, encoding)
    elif suffix == ".parquet":
        for rows in _parquet_rows(path):
            yield from rows.records()
    else:
        lines = _csv_cells(path, encoding, suffix)
        header = next(lines)
        for number, cells in enumerate(lines, 1):
            yield Record(dict(zip(header, cells, strict=True)), f"{path}, row {number}")


def read_table_rows(path: Path, encoding: str = "utf-8") -> Iterator[Rows]:
    """The rows of `read_table`, some at a time. Raises as `read_table`."""
    suffix = _suffix(path)
    if suffix in (".jsonl", ".ndjson"):
        yield from in_rows(read_json_lines(path, encoding))
    elif suffix == ".parquet":
        yield from _parquet_rows(path)
    else:
        yield from _csv_rows(path, encoding, suffix)


def _suffix(path: Path) -> str:
    """The suffix of a table file. Raises JudgeSenseError for any other."""
    require_file(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise JudgeSenseError(
            f"{path}: unknown suffix {suffix!r}; a table is one of {', '.join(SUFFIXES)}"
        )
    return suffix


def read_json_lines(path: Path, encoding: str = "utf-8") -> Iterator[Record]:
    """The objects of a JSON-lines file; blank lines are skipped. Raises as `read_table`."""
    for line, place in read_lines(path, encoding):
        yield Record(object_of(line, place), place)


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[str, str]]:
    """The lines of a file with their places; blank ones are skipped.

    Raises JudgeSenseError for an empty file and for text in another encoding.
    """
    require_file(path)
    found = False
    try:
        with path.open(encoding=_with_bom(encoding)) as lines:
            for number, line in enumerate(lines, 1):
                if not line.isspace():
                    found = True
                    yield line, f"{path}, line {number}"
    except UnicodeDecodeError as error:
        raise _wrong_encoding(path, encoding, error) from error
    if not found:
        raise JudgeSenseError(f"{path} has no rows")


def object_of(line: str, place: str) -> dict[str, Any]:
    """The JSON object on a line. Raises JudgeSenseError for anything else."""
    values = parse_json(line, place)
    if not isinstance(values, dict):
        raise JudgeSenseError(f"{place}: expected a JSON object, got {type(values).__name__}")
    return values


def read_json(path: Path) -> Any:
    """A JSON file's value. Raises JudgeSenseError as `read_table`."""
    require_file(path)
    try:
        return parse_json(path.read_text("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise _wrong_encoding(path, "utf-8", error) from error


def _csv_rows(path: Path, encoding: str, suffix: str) -> Iterator[TableRows]:
    lines = _csv_cells(path, encoding, suffix)
    header, number, found = next(lines), 1, list[list[str]]()

    def table() -> TableRows:
        columns = map(list, zip(*found, strict=True))
        return TableRows(dict(zip(header, columns, strict=True)), path, number)

    try:
        for cells in lines:
            found.append(cells)
            if len(found) == AT_ONCE:
                yield table()
                number, found = number + len(found), []
    except JudgeSenseError:
        # The rows before it may have an error of their own, which comes first.
        if found:
            yield table()
        raise
    if found:
        yield table()


def _csv_cells(path: Path, encoding: str, suffix: str) -> Iterator[list[str]]:
    """The cells of the header, and then of each row that is not blank."""
    delimiter = "\t" if suffix == ".tsv" else ","
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        with path.open(encoding=_with_bom(encoding), newline="") as source:
            rows = csv.reader(source, delimiter=delimiter, strict=True)
            header = next(rows, [])
            if len(header) == 1 and (other := next((c for c in ";\t" if c in header[0]), None)):
                # Spreadsheets write these where a comma is the decimal point.
                source.seek(0)
                rows = csv.reader(source, delimiter=(delimiter := other), strict=True)
                header = next(rows)
            if repeated := {name for name in header if header.count(name) > 1}:
                raise JudgeSenseError(
                    f"{path}: the column {sorted(repeated)[0]!r} appears twice in the header"
                )
            yield header
            number, width = 0, len(header)
            for cells in rows:
                if not cells:
                    continue
                number += 1
                if len(cells) != width:
                    raise JudgeSenseError(
                        f"{path}, row {number} (line {rows.line_num}): {len(cells)} cells, but "
                        f"the header has {width}; quote cells that contain {delimiter!r}"
                    )
                yield cells
            if number == 0:
                raise JudgeSenseError(f"{path} has no rows")
    except UnicodeDecodeError as error:
        raise _wrong_encoding(path, encoding, error) from error
    except csv.Error as error:
        raise JudgeSenseError(f"{path}, line {rows.line_num}: not CSV ({error})") from error


def _parquet_rows(path: Path) -> Iterator[TableRows]:
    import pyarrow.parquet as pq

    from judgesense.files.parquet import UNREADABLE, sound

    number = 0
    try:
        for batch in pq.ParquetFile(path).iter_batches(AT_ONCE):
            columns = sound(batch, str(path)).to_pydict()
            yield TableRows(columns, path, number + 1)
            number += len(batch)
    except JudgeSenseError:
        raise
    except UNREADABLE as error:
        raise JudgeSenseError(f"{path}: not a readable Parquet file ({error})") from error
    if number == 0:
        raise JudgeSenseError(f"{path} has no rows")


def _with_bom(encoding: str) -> str:
    try:
        "x".encode(encoding)  # of an empty text Python looks nothing up
    except (LookupError, ValueError) as error:
        raise JudgeSenseError(
            f"unknown text encoding {encoding!r}; such as utf-8, latin-1, cp1252 or utf-16"
        ) from error
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding


def _wrong_encoding(path: Path, encoding: str, error: UnicodeDecodeError) -> JudgeSenseError:
    return JudgeSenseError(
        f"{path}: byte {error.start} (0x{error.object[error.start]:02x}) is not {encoding}; save "
        "the file as UTF-8, or set --encoding (latin-1, cp1252, utf-16, ...) if the command has it"
    )
