"""``report.json``: its version and keys, and its one reader and merger."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import file_bytes
from judgesense.files.documents import parse_json
from judgesense.log.view import BASELINES

VERSION = 2

CELL_KEYS = (
    "run_id",
    "judge",
    "task",
    "scoring",
    "order",
    "labels",
    "jss",
    "ci_low",
    "ci_high",
    "ci_low_random",
    "ci_high_random",
    "flip_rate",
    "kappa",
    "kappa_ci_low",
    "kappa_ci_high",
    "jss_low",
    "jss_high",
    "jss_repeat",
    "delta_jss",
    "delta_ci_low",
    "delta_ci_high",
    "soft_jss",
    "noise_floor",
    "accuracy",
    "accuracy_ci_low",
    "accuracy_ci_high",
    "first_position_rate",
    "position_consistency",
    "position_ci_low",
    "position_ci_high",
    "n_pairs",
    "n_items",
    "n_clusters",
    "n_unclear",
    "n_refused",
    "n_error",
    "coverage",
    "degenerate",
    "signature",
)
"""Keys of every cell; undefined is None.

``ci_low`` and ``ci_high`` hold for these wordings, ``ci_low_random`` and ``ci_high_random`` for
wordings like these. ``kappa`` is between the two wordings of each pair; the kappa with the gold
labels is the estimate of the check ``right`` in ``trust``. ``accuracy`` is that of the decided
prompts; the check counts those without a verdict as wrong. ``jss_repeat`` is the JSS of the same
prompt asked again, ``delta_jss`` is ``jss - jss_repeat``. ``position_ci_low`` and
``position_ci_high`` belong to ``position_consistency``.
"""

LISTS = (
    "trust",
    "wordings",
    "recommendation",
    "remedies",
    "people",
    "where_wrong",
    "variants",
    "attacks",
    "cells",
    "advice",
    "findings",
    "template_pairs",
    "templates",
    "examples",
    "diagnostics",
    "next",
    "plan",
    "repeated",
    "runs",
    "notes",
)
"""The lists of a report: conclusions first, then figures.

``trust`` has the trust card of each judge, task and scoring, and ``people`` each judge beside each
person (`judgesense.measure.people`). ``attacks`` has each kind of attack
(`judgesense.measure.resistant`). ``advice`` is ``findings`` as plain
sentences.
"""

KAPPA_UNDEFINED = ": kappa is undefined"
"""How `agreement.jss` ends its reason if all decisions are the same label."""

REPORT_FILE = "report.json"


Key = tuple[str, str, str, str]
"""Run, judge, task and scoring."""


def task_rank(name: str) -> tuple[bool, str]:
    """Sort key of tasks: coherence first, where judges differ most (JudgeSense, section 5.1)."""
    return name != "coherence", name


def identity(entry: Mapping[str, Any]) -> Key:
    """Run, judge, task and scoring of an entry of any of the report's lists."""
    return entry["run_id"], entry["judge"], entry["task"], entry["scoring"]


def main_cells(report: Mapping[str, Any]) -> dict[Key, dict[str, dict[str, Any]]]:
    """The raw and the mapped cell of each case, over both orders if both were judged."""
    found: dict[Key, dict[str, dict[str, Any]]] = {}
    for cell in report["cells"]:
        entry = found.setdefault(identity(cell), {})
        # A pooled cell follows those of the single orders.
        entry[cell["labels"]] = cell
    return found


def load_report(run_dir: Path) -> dict[str, Any]:
    """The ``report.json`` of a folder, with every list that it lacks as an empty one.

    Raises JudgeSenseError if it is missing or damaged, is not a report, or has another schema.
    """
    path = run_dir / REPORT_FILE
    try:
        report = parse_json(file_bytes(path), path.name)
    except FileNotFoundError:
        raise JudgeSenseError(
            f"{run_dir} holds neither decisions nor a {REPORT_FILE}; name the --out folder of a run"
        ) from None
    except (OSError, JudgeSenseError) as error:
        raise JudgeSenseError(
            f"{path} is damaged ({error}); delete it and rerun: judgesense report {run_dir}"
        ) from error
    if not _is_report(report):
        raise JudgeSenseError(
            f"{path} is not a JudgeSense report: its schema or its cells are missing. Move it "
            f"away, then measure the run again: judgesense report {run_dir}"
        )
    if report["schema"] != VERSION:
        age = "a newer" if report["schema"] > VERSION else "an earlier"
        raise JudgeSenseError(
            f"{path} has schema {report['schema']}, written by {age} JudgeSense (this one reads "
            f"schema {VERSION}). Upgrade judgesense, or measure the run again where its "
            "decisions are: move the file away, then run judgesense report DIR"
        )
    return {**{name: [] for name in LISTS}, **report}


def saved_report(run_dir: Path) -> dict[str, Any] | None:
    """The ``report.json`` of a folder; None if it is missing, damaged, no report, or older.

    A report of an earlier schema has to be measured again. Raises JudgeSenseError if it has a newer
    schema.
    """
    try:
        report = parse_json(file_bytes(run_dir / REPORT_FILE), REPORT_FILE)
    except (OSError, JudgeSenseError):
        return None
    return load_report(run_dir) if _is_report(report) and report["schema"] >= VERSION else None


def _is_report(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("schema"), int)
        and isinstance(value.get("cells"), list)
    )


def merge(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several reports as one: their lists joined in order, equal baselines kept once."""
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
