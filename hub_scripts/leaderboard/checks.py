"""Check a submitted run, one line per check, up to the first that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hub_scripts.report_shape import check_report, strict_json
from hub_scripts.results import results_publication
from judgesense.decisions.log import OPTIONAL, SCHEMA, part_files
from judgesense.decisions.view import BASELINES
from judgesense.errors import JudgeSenseError
from judgesense.files.tables import UNREADABLE
from judgesense.run_folder.folder import (
    PAIR_SCHEMA,
    PAIRS_FILE,
    PROMPT_SCHEMA,
    PROMPTS_FILE,
    RUN_FILE,
)
from judgesense.run_folder.report import REPORT_FILE, as_report
from judgesense.text import s

MOST_ROWS = 300_000
LARGEST_TABLE = 512 << 20
"""Bytes of a table's columns, unpacked, as its metadata states them."""


@dataclass(frozen=True)
class RunCheck:
    """One line: the name of the check, whether the run passed, and what was found.

    The last line of a run that passes has the ``tag`` under which it would be published.
    """

    name: str
    passed: bool
    said: str
    tag: str | None = None


def _load(run_dir: Path) -> dict[str, Any]:
    return as_report(strict_json(run_dir / REPORT_FILE), Path(REPORT_FILE))


def _report(run_dir: Path) -> str:
    report = _load(run_dir)
    return f"valid JSON, schema {report['schema']}"


def _cells(run_dir: Path) -> str:
    report = _load(run_dir)
    check_report(report, REPORT_FILE)
    judges = {cell["judge"] for cell in report["cells"]} - set(BASELINES)
    if not judges:
        raise JudgeSenseError(f"{REPORT_FILE} has no judge")
    tasks = {cell["task"] for cell in report["cells"]}
    return (
        f"{len(report['cells'])} cells with valid keys and values; "
        f"{_counted(len(judges), 'judge')}, {_counted(len(tasks), 'task')}"
    )


def _record(run_dir: Path) -> str:
    path = run_dir / RUN_FILE
    if not path.exists():
        return "none; the folder names the run"
    if not isinstance(strict_json(path), dict):
        raise JudgeSenseError(f"{RUN_FILE} is not a JSON object")
    return "valid JSON"


def _decisions(run_dir: Path) -> str:
    parts = part_files(run_dir)
    if not parts:
        raise JudgeSenseError(
            "no decision log (decisions/part-*.parquet), so its figures cannot be recomputed"
        )
    room = MOST_ROWS
    for part in parts:
        room -= _check_table(part, SCHEMA, room)
    return f"{MOST_ROWS - room:,} rows in {_counted(len(parts), 'part')} with the right columns"


def _pairs(run_dir: Path) -> str:
    said = "none; all template pairs of an item count"
    for name, schema in ((PROMPTS_FILE, PROMPT_SCHEMA), (PAIRS_FILE, PAIR_SCHEMA)):
        path = run_dir / name
        if path.exists():
            rows = _check_table(path, schema, MOST_ROWS)
            if schema is PAIR_SCHEMA:
                said = f"{rows:,} rows with the right columns"
    return said


def _check_table(path: Path, schema: pa.Schema, room: int) -> int:
    """The number of rows of a Parquet file, of which only the metadata is read."""
    try:
        with pq.ParquetFile(
            path, thrift_string_size_limit=16 << 20, thrift_container_size_limit=1_000_000
        ) as file:
            metadata, found = file.metadata, file.schema_arrow
    except UNREADABLE as error:
        raise JudgeSenseError(f"{path.name} is not a Parquet file ({_first(error)})") from error
    if metadata.num_rows > room:
        raise JudgeSenseError(
            f"{path.name} has {metadata.num_rows:,} rows; the limit here is {MOST_ROWS:,}. "
            "Publish the run with: judgesense publish results DIR"
        )
    size = sum(metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups))
    if not 0 <= size <= LARGEST_TABLE:
        raise JudgeSenseError(
            f"{path.name} would unpack to {size:,} bytes; the limit is {LARGEST_TABLE:,}"
        )
    for field in schema:
        place = found.get_field_index(field.name)
        if place < 0 and field.name in OPTIONAL:
            continue
        if place < 0:
            raise JudgeSenseError(f"{path.name} lacks the column {field.name!r}")
        if not _same_type(found.field(place).type, field.type):
            raise JudgeSenseError(
                f"{path.name}: the column {field.name!r} has type {found.field(place).type}, "
                f"not {field.type}"
            )
    return int(metadata.num_rows)


def _same_type(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_null(found):
        return True
    if pa.types.is_list(wanted) and pa.types.is_list(found):
        return _same_type(found.value_type, wanted.value_type)
    if pa.types.is_struct(wanted) and pa.types.is_struct(found):
        return [f.name for f in found] == [f.name for f in wanted] and all(
            _same_type(one.type, two.type) for one, two in zip(found, wanted, strict=True)
        )
    texts = (pa.string(), pa.large_string())
    return bool(found == wanted or (found in texts and wanted in texts))


_CHECKS: Mapping[str, Callable[[Path], str]] = {
    "report.json": _report,
    "cells": _cells,
    "run.json": _record,
    "decisions": _decisions,
    "pairs": _pairs,
}
FIGURES = "figures and signatures"
NAMES = (*_CHECKS, FIGURES)


def checks(run_dir: Path, repo_id: str) -> Iterator[RunCheck]:
    """The checks of a run's folder, in the order of `NAMES`, up to the first that fails."""
    try:
        for name, check in _CHECKS.items():
            yield RunCheck(name, True, check(run_dir))
        name = FIGURES
        tag = results_publication(run_dir, repo_id).tag
    except JudgeSenseError as error:
        # People who submit a run do not know the folder of their upload here.
        said = str(error).replace(f"{run_dir}/", "").replace(str(run_dir), "the run")
        yield RunCheck(name, False, said)
    else:
        said = f"all follow from the decisions; the run would be published as {tag}"
        yield RunCheck(name, True, said, tag)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{s(number)}"


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
