"""Rows of CSV, TSV, JSON lines, Parquet and Excel files, each with its place for error messages."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import require_file
from judgesense.files.documents import parse_json, read_json
from judgesense.files.encoding import encoding_of
from judgesense.files.workbook import header_of_two, workbook_rows

_FORMULA, _BEGINS = re.compile(r"'*[=+\-@\t\r＝＋－＠]."), frozenset("'=+-@\t\r＝＋－＠")
"""The start of a cell that a spreadsheet would compute, after any apostrophes."""

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".xlsx", ".manifest")
DATASET_FILES = ("state.json", "dataset_dict.json")
"""One of them is in a folder that ``save_to_disk`` of the library datasets wrote."""

UNREADABLE = (pa.ArrowException, OSError, ValueError, OverflowError, KeyError)
"""What Arrow raises for a damaged file. A name in the footer that is not UTF-8 is a ValueError, a
time that Python cannot hold an OverflowError, an unknown time zone a KeyError."""

ABSENT = object()
"""The value of a column in a row that lacks it."""

_START = 1 << 14
"""Characters of a sheet in which its delimiter is looked for."""

AT_ONCE = 2048
"""Rows read at a time."""

Batch = TypeVar("Batch", pa.Table, pa.RecordBatch)
Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Record:
    """One row of a foreign file: its values by name, and its file and row or line."""

    values: Mapping[str, Any]
    place: str


@dataclass(frozen=True, slots=True)
class Rows:
    """Consecutive rows of a foreign file, by column: quicker than one `Record` after another.

    A column holds `ABSENT` where a row lacks it.
    """

    columns: Mapping[str, list[Any]]
    places: Sequence[str]

    def __len__(self) -> int:
        return len(self.places)

    def records(self) -> list[Record]:
        """The rows one by one."""
        columns = self.columns.values()
        values = zip(*columns, strict=True) if columns else ((),) * len(self)
        return [
            Record({k: v for k, v in zip(self.columns, row, strict=True) if v is not ABSENT}, place)
            for row, place in zip(values, self.places, strict=True)
        ]


def in_rows(records: Iterable[Record]) -> Iterator[Rows]:
    """Records as rows, some at a time. Those before an error come before it."""
    for some in _at_once(records):
        columns: dict[str, list[Any]] = {}
        places = []
        for at, record in enumerate(some):
            places.append(record.place)
            for name, value in record.values.items():
                columns.setdefault(name, [ABSENT] * len(some))[at] = value
        yield Rows(columns, places)


def _at_once(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Some entries at a time. Those before an error come before it."""
    entries = iter(entries)
    some: list[Entry] = []
    try:
        while True:
            some = []
            some.extend(islice(entries, AT_ONCE))  # Keeps what it has taken before an error.
            if not some:
                return
            yield some
    except (JudgeSenseError, UnicodeDecodeError, csv.Error):
        if some:
            yield some
        raise


def read_table(path: Path) -> Iterator[Record]:
    """The rows of a table file, read by its suffix; rows count from 1, without the header.

    A CSV file may be separated by commas, semicolons or tabs, and be in one of the encodings of
    `encoding_of`. A JSON file is a list of objects, or has one, by
    itself or at ``data``. A folder is a dataset that ``datasets`` saved.

    Raises JudgeSenseError for an unknown suffix, an empty or damaged file, text that is
    not UTF-8, a CSV row with more or fewer cells than the header, and a JSON line that is not an
    object.
    """
    for rows in read_table_rows(path):
        yield from rows.records()


def read_table_rows(path: Path) -> Iterator[Rows]:
    """The rows of `read_table`, some at a time. Raises as `read_table`."""
    if is_dataset(path):
        reader: Callable[[Path], Iterator[Rows]] = _dataset_rows
    else:
        require_file(path)
        suffix = path.suffix.lower()
        if suffix not in (*SUFFIXES, ".json"):
            raise JudgeSenseError(
                f"{path}: unknown suffix {suffix!r}; use one of {', '.join(SUFFIXES)}"
            )
        reader = _READERS.get(suffix, _csv_rows)
    number = 0
    for rows in reader(path):
        number += len(rows)
        yield rows
    if number == 0:
        raise JudgeSenseError(f"{path} has no rows")


def is_dataset(path: Path) -> bool:
    """Whether a folder was written by ``save_to_disk`` of the library datasets."""
    return any((path / name).is_file() for name in DATASET_FILES)


def _dataset_rows(path: Path) -> Iterator[Rows]:
    splits = [path]
    if (index := path / DATASET_FILES[1]).is_file():
        splits = [path / name for name in read_json(index)["splits"]]
    for folder in splits:
        first = 1
        for part in read_json(folder / DATASET_FILES[0])["_data_files"]:
            file = folder / part["filename"]
            try:
                with pa.memory_map(str(file)) as source:
                    for batch in pa.ipc.open_stream(source):
                        places = [f"{file}, row {n}" for n in range(first, first + len(batch))]
                        yield Rows(check_table(batch, str(file)).to_pydict(), places)
                        first += len(batch)
            except UNREADABLE as error:
                raise JudgeSenseError(f"{file} cannot be read as Arrow ({error})") from error


def _document_rows(path: Path) -> Iterator[Rows]:
    listed = read_json(path)
    if isinstance(listed, dict):
        lists = [each for each in listed.values() if isinstance(each, list)]
        listed = listed.get("data", lists[0] if len(lists) == 1 else None)
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise JudgeSenseError(f"{path}: expected a list of JSON objects")
    return in_rows(Record(values, f"{path}, row {n}") for n, values in enumerate(listed, 1))


def _json_lines(path: Path) -> Iterator[Record]:
    try:
        with path.open(encoding=encoding_of(path)) as lines:
            for number, line in enumerate(lines, 1):
                if line.isspace():
                    continue
                place = f"{path}, line {number}"
                values = parse_json(line.rstrip("\n"), place)
                if not isinstance(values, dict):
                    raise JudgeSenseError(
                        f"{place}: expected a JSON object, got {type(values).__name__}"
                    )
                yield Record(values, place)
    except UnicodeDecodeError as error:
        raise _not_utf8(path, error) from error


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as CSV text, in which no cell is a formula to a spreadsheet.

    Text that begins as a formula does gets an apostrophe in front, as a person would type it;
    `read_table` takes it off again. Numbers stay as they are.

    >>> csv_text(["text"], [{"text": "=1+1"}, {"text": -1}])
    "text\\n'=1+1\\n-1\\n"
    """
    sheet = io.StringIO()
    writer = csv.writer(sheet, lineterminator="\n")
    # A carriage return ends a row for every reader, but this writer quotes its own line end alone.
    quoted = csv.writer(sheet, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for cells in chain([columns], (map(row.get, columns) for row in rows)):
        written = [_inert(cell) for cell in cells]
        has_return = any(isinstance(cell, str) and "\r" in cell for cell in written)
        (quoted if has_return else writer).writerow(written)
    return sheet.getvalue()


def _inert(cell: Any) -> Any:
    if not isinstance(cell, str) or cell[:1] not in _BEGINS or not _FORMULA.match(cell):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def cell_text(cell: str) -> str:
    """The text of a cell of `csv_text`."""
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell


def _filled(cells: Sequence[str]) -> int:
    return sum(bool(cell) for cell in cells)


def _csv_rows(path: Path) -> Iterator[Rows]:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        with path.open(encoding=encoding_of(path), newline="") as source:
            delimiter = _delimiter(source, delimiter)
            reader = csv.reader(source, delimiter=delimiter, strict=True)
            header = next(reader, [])
            while header.count("") > 1:  # A title may stand above the header.
                below = next((cells for cells in reader if any(cells)), [])
                if two := header_of_two(header, below):
                    header = two
                    break
                if 2 * _filled(header) > _filled(below) or any(map(str.isdecimal, below)):
                    break
                header = below
            if repeated := {name for name in header if header.count(name) > 1}:
                raise JudgeSenseError(
                    f"{path}: the {sorted(repeated)[0]!r} column appears twice in the header"
                )
            first, lines, width = 1, reader.line_num, len(header)
            for some in _at_once(reader):
                wrong = None
                if not set(map(len, some)) <= {0, width}:
                    wrong = next(n for n, cells in enumerate(some) if len(cells) not in (0, width))
                if kept := [cells for cells in some[:wrong] if any(cells)]:
                    if any(cell[:1] == "'" for cells in kept for cell in cells):
                        kept = [list(map(cell_text, cells)) for cells in kept]
                    columns = map(list, zip(*kept, strict=True))
                    places = [f"{path}, row {n}" for n in range(first, first + len(kept))]
                    yield Rows(dict(zip(map(cell_text, header), columns, strict=True)), places)
                    first += len(kept)
                if wrong is not None:
                    lines += sum(1 + "".join(cells).count("\n") for cells in some[: wrong + 1])
                    raise JudgeSenseError(
                        f"{path}, row {first} (line {lines}): {len(some[wrong])} cells, but "
                        f"the header has {width}; quote cells that contain {delimiter!r}"
                    )
                lines = reader.line_num
    except UnicodeDecodeError as error:
        raise _not_utf8(path, error) from error
    except csv.Error as error:
        raise JudgeSenseError(f"{path}, line {reader.line_num}: invalid CSV ({error})") from error


def _delimiter(source: TextIO, usual: str) -> str:
    """The character between the cells of a sheet: the ``usual`` one, or what spreadsheets write
    where a comma is the decimal point, if that gives more of the first rows one width."""
    start = source.readlines(_START)
    source.seek(0)
    alike: dict[str, float] = {}
    for delimiter in dict.fromkeys((usual, *";\t")):
        try:
            widths = Counter(map(len, csv.reader(start, delimiter=delimiter)))
        except csv.Error:
            continue
        widths[1] += widths.pop(0, 0)  # A blank line.
        if start and (delimiter == usual or delimiter in start[0]):
            alike[delimiter] = max((n for width, n in widths.items() if width > 1), default=0)
    return max(alike, key=lambda each: alike[each], default=usual)


def _parquet_rows(path: Path) -> Iterator[Rows]:
    first = 1
    try:
        for batch in pq.ParquetFile(path).iter_batches(AT_ONCE):
            places = [f"{path}, row {n}" for n in range(first, first + len(batch))]
            yield Rows(check_table(batch, str(path)).to_pydict(), places)
            first += len(batch)
    except JudgeSenseError:
        raise
    except UNREADABLE as error:
        raise unreadable(path, error) from error


_READERS: Mapping[str, Callable[[Path], Iterator[Rows]]] = {
    ".json": _document_rows,
    ".jsonl": lambda path: in_rows(_json_lines(path)),
    ".ndjson": lambda path: in_rows(_json_lines(path)),
    ".manifest": lambda path: in_rows(_json_lines(path)),
    ".parquet": _parquet_rows,
    ".xlsx": lambda path: in_rows(Record(*row) for row in workbook_rows(path)),
}


def _not_utf8(path: Path, error: UnicodeDecodeError) -> JudgeSenseError:
    return JudgeSenseError(
        f"{path}: byte {error.start} (0x{error.object[error.start]:02x}) is not UTF-8; save the "
        "file as UTF-8"
    )


def read_parquet(path: Path, columns: Sequence[str] | None = None, hint: str = "") -> pa.Table:
    """The table in a Parquet file, or those of some columns that it has, checked by `sound`.

    ``hint`` ends the error of a file that cannot be read. Raises JudgeSenseError.
    """
    require_file(path)
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read(columns=None if columns is None else list(columns))
    except UNREADABLE as error:
        raise unreadable(path, error, hint) from error
    return check_table(table, str(path))


def column_names(path: Path) -> list[str]:
    """The columns of a Parquet file, from its footer alone. Raises JudgeSenseError."""
    require_file(path)
    try:
        return list(pq.read_schema(path).names)
    except UNREADABLE as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: Exception, hint: str = "") -> JudgeSenseError:
    """The error of a Parquet file that cannot be read; ``hint`` ends it."""
    reason = " ".join(str(error).split())
    return JudgeSenseError(f"{path} cannot be read as Parquet ({reason}){hint}")


def check_table(rows: Batch, where: str) -> Batch:
    """The rows, if no two columns share a name and all text is UTF-8.

    Arrow checks neither when it reads; later, half of its functions fail on such columns and the
    others do not notice. Raises JudgeSenseError naming ``where`` and the column.
    """
    names = rows.schema.names
    if doubled := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise JudgeSenseError(f"{where}: the {doubled[0]!r} column appears twice; keep one")
    for name, column in zip(names, rows.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid as error:
            raise JudgeSenseError(f"{where}, {name}: the column is damaged ({error})") from error
    return rows


def in_schema(table: pa.Table, schema: pa.Schema, where: str) -> pa.Table:
    """The columns of a schema, in its order and types; the table has them all.

    Whole numbers and the like become text where text belongs; times and nested values do not.
    Raises JudgeSenseError naming ``where`` and the column of the wrong type.

    >>> in_schema(pa.table({"id": [1]}), pa.schema([("id", pa.string())]), "t.parquet")["id"][0]
    <pyarrow.StringScalar: '1'>
    """
    columns = []
    for field in schema:
        column = table[field.name]
        try:
            if field.type == pa.string() and not _is_text(column.type):
                raise pa.ArrowInvalid("write the column as text")
            columns.append(column.cast(field.type))
        except UNREADABLE as error:
            wanted = "text" if field.type == pa.string() else field.type
            raise JudgeSenseError(
                f"{where}, {field.name}: the column has the wrong type: expected {wanted}, found "
                f"{column.type} ({' '.join(str(error).split())})"
            ) from error
    return pa.Table.from_arrays(columns, schema=schema)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    tests = ("string", "large_string", "string_view", "binary", "integer", "floating", "null")
    return any(getattr(pa.types, f"is_{name}")(kind) for name in tests)
