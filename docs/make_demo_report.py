"""Embed runs in the leaderboard: ``python docs/make_demo_report.py DIR...``.

Each run becomes a folder of ``hub_scripts/leaderboard/data/embedded``, with its decisions, so that
its judges can be compared. The docs say which runs these are.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from hub_scripts.leaderboard.sources import EMBEDDED
from hub_scripts.local_paths import without_paths
from judgesense.decisions.log import PARTS, part_files
from judgesense.reporting.report import measure_run
from judgesense.run_folder.folder import PAIRS_FILE, RUN_FILE
from judgesense.run_folder.report import LISTS, REPORT_FILE, identity, main_cells
from judgesense.trust.rules import AS_ASKED

_OF_A_RUN = ("run_id", "started", "dataset", "data_hash", "versions")


def embed(run_dir: Path, into: Path = EMBEDDED) -> None:
    """Measure a run from its decisions and write what the pages and comparisons need.

    Left out are cells of single option orders, raw template pairs, third examples, wordings and
    remedies except the one that a trust card names, and the machine's details.
    """
    to = into / run_dir.name
    (to / PARTS).mkdir(parents=True)
    for part in part_files(run_dir):
        shutil.copyfile(part, to / PARTS / part.name)
    shutil.copyfile(run_dir / PAIRS_FILE, to / PAIRS_FILE)
    record = without_paths(json.loads((run_dir / RUN_FILE).read_text("utf-8")))
    if "digests" in record:
        # The prompts are left out, since no page needs them.
        record["digests"] = {
            name: digest for name, digest in record["digests"].items() if (to / name).exists()
        }
    (to / RUN_FILE).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")
    report = measure_run(run_dir)
    run = report["runs"][0]
    kept: dict[str, Any] = {key: run[key] for key in _OF_A_RUN if key in run}
    kept["judges"] = [
        {
            "name": judge["name"],
            "describe": {
                key: without_paths(judge["describe"].get(key))
                for key in ("engine", "weights", "origin", "dtype")
            },
        }
        for judge in run.get("judges", [])
    ]
    small = {
        "schema": report["schema"],
        **{name: report[name] for name in LISTS},
        "advice": [],
        "remedies": list(_named(report)),
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
    (to / REPORT_FILE).write_text(text.replace("},{", "},\n{") + "\n", "utf-8")


def _named(report: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The remedies that make a judge usable which is not usable as asked."""
    named = {identity(card): card["remedy"] for card in report["trust"]}
    for row in report["remedies"]:
        if row["remedy"] == named.get(identity(row)) != AS_ASKED:
            yield {key: value for key, value in row.items() if key != "checks"}


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
    for name in sys.argv[1:]:
        embed(Path(name))
