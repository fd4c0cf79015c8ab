"""Rows of CSV, TSV, JSON lines and Parquet files, each with its place for error messages."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.json_files import parse_json

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")


@dataclass(frozen=True, slots=True)
class Record:
    """One entry of a foreign file: its values by name, and its file and row or line."""

    values: Mapping[str, Any]
    place: str


def require_file(path: Path) -> None:
    """Raise JudgeSenseError unless ``path`` is a file that is not empty."""
    # Unlike pathlib, false for a name that is too long for the file system.
    if not os.path.isfile(path):
        pipe = os.path.exists(path) and not os.path.isdir(path)
        hint = ": it is a pipe or a device; save its content to a file" if pipe else ""
        raise JudgeSenseError(f"no file {path}{hint}")
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
    require_file(path)
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        yield from _read_csv(path, encoding, "\t" if suffix == ".tsv" else ",")
    elif suffix in (".jsonl", ".ndjson"):
        yield from read_json_lines(path, encoding)
    elif suffix == ".parquet":
        yield from _read_parquet(path)
    else:
        raise JudgeSenseError(
            f"{path}: unknown suffix {suffix!r}; a table is one of {', '.join(SUFFIXES)}"
        )


def read_json_lines(path: Path, encoding: str = "utf-8") -> Iterator[Record]:
    """The objects of a JSON-lines file; blank lines are skipped. Raises as `read_table`."""
    require_file(path)
    found = False
    try:
        with path.open(encoding=_with_bom(encoding)) as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                place = f"{path}, line {number}"
                values = parse_json(line, place)
                if not isinstance(values, dict):
                    raise JudgeSenseError(
                        f"{place}: expected a JSON object, got {type(values).__name__}"
                    )
                found = True
                yield Record(values, place)
    except UnicodeDecodeError as error:
        raise _wrong_encoding(path, encoding, error) from error
    if not found:
        raise JudgeSenseError(f"{path} has no rows")


def read_json(path: Path) -> Any:
    """A JSON file's value. Raises JudgeSenseError as `read_table`."""
    require_file(path)
    try:
        return parse_json(path.read_text("utf-8-sig"), str(path))
    except UnicodeDecodeError as error:
        raise _wrong_encoding(path, "utf-8", error) from error


def _read_csv(path: Path, encoding: str, delimiter: str) -> Iterator[Record]:
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
            number = 0
            for cells in rows:
                if not cells:
                    continue
                number += 1
                if len(cells) != len(header):
                    raise JudgeSenseError(
                        f"{path}, row {number} (line {rows.line_num}): {len(cells)} cells, but "
                        f"the header has {len(header)}; quote cells that contain {delimiter!r}"
                    )
                yield Record(dict(zip(header, cells, strict=True)), f"{path}, row {number}")
            if number == 0:
                raise JudgeSenseError(f"{path} has no rows")
    except UnicodeDecodeError as error:
        raise _wrong_encoding(path, encoding, error) from error
    except csv.Error as error:
        raise JudgeSenseError(f"{path}, line {rows.line_num}: not CSV ({error})") from error


def _read_parquet(path: Path) -> Iterator[Record]:
    import pyarrow.parquet as pq

    from judgesense.parquet_files import UNREADABLE, sound

    number = 0
    try:
        for batch in pq.ParquetFile(path).iter_batches():
            for values in sound(batch, str(path)).to_pylist():
                number += 1
                yield Record(values, f"{path}, row {number}")
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
