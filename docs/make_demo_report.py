"""Make the demo report of the leaderboard: ``python docs/make_demo_report.py runs/demo``.

Run ``make demo`` first.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from hub_scripts.leaderboard.sources import DEMO
from judgesense.report_file import LISTS, identity, main_cells
from judgesense.reporting.build import measure_run

_OF_A_RUN = ("run_id", "started", "dataset", "data_hash", "versions")


def embed(run_dir: Path, to: Path = DEMO) -> None:
    """Measure a run from its decisions and write the parts that the pages need to one small file.

    Left out are cells of single option orders, raw template pairs, third examples, the remedies and
    wordings (the pages show neither) and the machine's details.
    """
    report = measure_run(run_dir)
    run = report["runs"][0]
    kept: dict[str, Any] = {key: run[key] for key in _OF_A_RUN if key in run}
    kept["judges"] = [
        {"name": judge["name"], "describe": {"engine": judge["describe"].get("engine")}}
        for judge in run.get("judges", [])
    ]
    small = {
        "schema": report["schema"],
        **{name: report[name] for name in LISTS},
        "advice": [],
        "remedies": [],
        "wordings": [],
        "diagnostics": [],
        "to_settle": [],
        "examples": list(_first(report["examples"], 2)),
        "cells": [cell for both in main_cells(report).values() for cell in both.values()],
        "template_pairs": [row for row in report["template_pairs"] if row["labels"] == "mapped"],
        "runs": [kept],
    }
    text = json.dumps(_rounded(small), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # One entry per line makes changes readable.
    to.write_text(text.replace("},{", "},\n{") + "\n", "utf-8")


def _first(entries: list[dict[str, Any]], most: int) -> Iterator[dict[str, Any]]:
    """The first entries of each case."""
    for _, group in groupby(entries, key=identity):
        yield from islice(group, most)


def _rounded(value: Any) -> Any:
    """Numbers with five digits: pages show three."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    embed(Path(sys.argv[1]))
