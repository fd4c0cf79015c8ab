"""Report files to a board: every file is read once, and again when it changes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from hub_scripts.leaderboard.board import (
    Board,
    BoardEntry,
    BoardRun,
    day_of,
    entries_of,
    published_entries,
)
from hub_scripts.report_shape import check_report, read_report, strict_json
from judgesense.decisions.log import part_files
from judgesense.errors import JudgeSenseError
from judgesense.run_folder.report import VERSION

MOST_RUNS = 2000


def board_of(
    where: str, paths: Iterable[tuple[str, Path, bool]], notes: tuple[str, ...] = ()
) -> Board:
    """The board of reports (key, path, whether it has decisions) and of the published figures."""
    entries: list[BoardEntry] = []
    runs: dict[str, BoardRun] = {}
    refused = []
    stamps = []
    for key, path, decisions in paths:
        try:
            stamp = _stamp(path)
            found = _read(path, key, decisions, stamp)
        except OSError as error:
            found = f"{path.name} cannot be read ({error.strerror})"
        if len(runs) == MOST_RUNS:
            found = f"only {MOST_RUNS:,} runs are shown"
        if isinstance(found, str):
            refused.append((key, found))
            continue
        runs[key], own = found
        entries += own
        stamps.append((key, *stamp))
    return Board(
        where=where,
        stamp=f"{hash((where, tuple(stamps), tuple(refused), notes)):x}",
        entries=(*entries, *published_entries()),
        runs=runs,
        refused=tuple(refused),
        notes=notes,
    )


def report_of(run: BoardRun) -> dict[str, Any]:
    """The whole report of a run. Raises JudgeSenseError if its file is gone or invalid."""
    try:
        return _whole(run.path, _stamp(run.path))
    except OSError as error:
        raise JudgeSenseError(f"the report of {run.key} is gone ({error.strerror})") from error


@lru_cache(maxsize=4096)
def _read(
    path: Path, key: str, decisions: bool, stamp: tuple[int, int]
) -> tuple[BoardRun, tuple[BoardEntry, ...]] | str:
    """A run and its entries, or why it is refused; ``stamp`` (time, size) detects a change."""
    try:
        report = _whole(path, stamp)
    except JudgeSenseError as error:
        return str(error)
    return BoardRun(key, path, decisions, day_of(report)), tuple(entries_of(report, key))


@lru_cache(maxsize=32)
def _whole(path: Path, stamp: tuple[int, int]) -> dict[str, Any]:
    """A report; one of an earlier schema is measured anew if its decisions lie beside it."""
    if part_files(path.parent) and _is_older(path):
        from judgesense.reporting.report import measure_run

        report = measure_run(path.parent)
        check_report(report, path.name)
        return report
    return read_report(path)


def _is_older(path: Path) -> bool:
    found = strict_json(path)
    schema = found.get("schema") if isinstance(found, dict) else None
    return isinstance(schema, int) and schema < VERSION


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size
