"""The shape of ``report.json``: its version, the keys of a cell, and how one is read back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.decisions.streams import BASELINES
from judgesense.errors import JudgeSenseError

VERSION = 1

CELL_KEYS = (
    "run_id", "judge", "task", "scoring", "order", "labels", "jss", "ci_low", "ci_high",
    "flip_rate", "kappa", "jss_low", "jss_high", "soft_jss", "noise_floor", "accuracy",
    "first_position_rate", "position_consistency", "n_pairs", "n_items", "n_clusters",
    "n_unclear", "n_refused", "n_error", "coverage", "degenerate", "verdict", "signature",
)  # fmt: skip
"""Keys of a cell, all always there; undefined is None."""

LISTS = (
    "cells", "advice", "findings", "template_pairs", "templates", "examples", "diagnostics",
    "to_settle", "repeated", "runs", "notes",
)  # fmt: skip
"""The lists of a report. ``advice`` is ``findings`` as plain sentences."""

KAPPA_UNDEFINED = ": kappa is undefined"
"""How `agreement.jss` ends its reason where there is one label throughout."""

REPORT_FILE = "report.json"


Key = tuple[str, str, str, str]
"""Run, judge, task and scoring."""


def task_rank(name: str) -> tuple[bool, str]:
    """Coherence comes first: it is where judges differ (JudgeSense, section 5.1, finding 1)."""
    return name != "coherence", name


def identity(entry: Mapping[str, Any]) -> Key:
    """Run, judge, task and scoring of an entry of any of the report's lists."""
    return entry["run_id"], entry["judge"], entry["task"], entry["scoring"]


def main_cells(report: Mapping[str, Any]) -> dict[Key, dict[str, dict[str, Any]]]:
    """The raw and the mapped cell of each case, over both orders where there are two."""
    found: dict[Key, dict[str, dict[str, Any]]] = {}
    for cell in report["cells"]:
        entry = found.setdefault(identity(cell), {})
        # A pooled cell follows those of the single orders.
        entry[cell["labels"]] = cell
    return found


def load_report(run_dir: Path) -> dict[str, Any]:
    """The ``report.json`` of a folder.

    Raises JudgeSenseError if there is none, if it is no report, or if a newer version wrote it.
    """
    path = run_dir / REPORT_FILE
    try:
        report = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise JudgeSenseError(
            f"{run_dir} holds neither decisions nor a {REPORT_FILE}; is it the --out folder of a "
            "run that has judged something?"
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise JudgeSenseError(
            f"{path} is damaged ({error}); delete it and give the report command again"
        ) from error
    return as_report(report, path)


def as_report(report: Any, path: Path) -> dict[str, Any]:
    """A report that was read from ``path``, with every list that it lacks empty.

    Raises JudgeSenseError if it is no report, or if a newer version wrote it.
    """
    version = report.get("schema") if isinstance(report, Mapping) else None
    if not isinstance(version, int) or not isinstance(report.get("cells"), list):
        raise JudgeSenseError(f"{path} is no report of JudgeSense: it has no schema and cells")
    if version > VERSION:
        raise JudgeSenseError(
            f"{path} has schema {version}, written by a newer JudgeSense than this one, which "
            f"knows schema {VERSION}; upgrade judgesense, or move that file away to measure anew"
        )
    return {**{name: [] for name in LISTS}, **report}


def check_not_newer(run_dir: Path) -> None:
    """Refuse to overwrite the report of a newer version; a missing or damaged one is fine."""
    try:
        found = json.loads((run_dir / REPORT_FILE).read_text("utf-8"))
    except (OSError, json.JSONDecodeError, UnicodeDecodeError):
        return
    version = found.get("schema") if isinstance(found, Mapping) else None
    if isinstance(version, int) and version > VERSION:
        load_report(run_dir)


def merge(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several reports as one: their lists one after another, equal baselines once."""
    whole: dict[str, Any] = {"schema": VERSION, **{name: [] for name in LISTS}}
    seen = set()
    for report in reports:
        for name in LISTS:
            for entry in report.get(name, []):
                if isinstance(entry, Mapping) and entry.get("judge") in BASELINES:
                    same = {key: value for key, value in entry.items() if key != "run_id"}
                    known = json.dumps([name, same], sort_keys=True)
                    if known in seen:
                        continue
                    seen.add(known)
                whole[name].append(entry)
    return whole
