"""Measure the published logs for the leaderboard: ``python docs/make_board.py LOGS``.

LOGS has the folders llmbar, flakyjudge, rag_eval_9judges and pandalm. Writes
``hub_scripts/leaderboard/published_logs.json``: the ranked rows, cards and remedies of their
judges.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import recipes

from hub_scripts.leaderboard import rows as board
from hub_scripts.leaderboard.records import LOG, Row
from hub_scripts.leaderboard.runs import gold_tables
from judgesense.importers.log import import_log
from judgesense.measure.assessment import Assessment, ReportContents
from judgesense.measure.report_file import plain, report_json
from judgesense.reporting.report import measure_run
from judgesense.statistics.alternative_annotator import alternative_annotator

OUT = Path(board.__file__).parent / "published_logs.json"
PEOPLE = ("annotator_1", "annotator_2", "annotator_3")
JUDGES = {"gpt_3.5_turbo": "gpt-3.5-turbo", "pandalm_7b": "PandaLM-7B"}

SOURCES: dict[str, dict[str, str]] = {
    "llmbar": {
        "title": "LLMBar",
        "task": "preference",
        "licence": "MIT",
        "url": "https://github.com/princeton-nlp/LLMBar",
        "about": "which of two outputs follows an instruction; half of the items adversarial; "
        "8 to 15 prompting strategies, both orders",
    },
    "pandalm": {
        "title": "PandaLM's test set",
        "task": "preference",
        "licence": "Apache-2.0",
        "url": "https://github.com/WeOpenML/PandaLM",
        "about": "which of two answers to an instruction is better; labels of three people",
    },
    "rag-eval": {
        "title": "RAG-Eval",
        "task": "relevance",
        "licence": "CC-BY-4.0",
        "url": "https://github.com/asukul/RAG-Eval-LLM-Judge",
        "about": "how relevant a passage is to a query, 0 to 3; one prompt",
    },
    "flakyjudge": {
        "title": "flakyjudge",
        "task": "pass-fail criterion",
        "licence": "MIT",
        "url": "https://github.com/ShivaSankeerth/flakyjudge",
        "about": "whether an answer meets a criterion (1 to 5, above 2.5 passes); 8 wordings",
    },
}


def pandalm(file: Path) -> Iterator[dict[str, Any]]:
    """PandaLM's verdicts beside the majority of its three people."""
    with file.open(encoding="utf-8", newline="") as source:
        for row in csv.DictReader(source):
            gold, votes = Counter(row[name] for name in PEOPLE).most_common(1)[0]
            for column, judge in JUDGES.items():
                yield {
                    "judge": judge,
                    "task": "preference",
                    "item_id": row["id"],
                    "cluster_id": f"{row['instruction']}\n{row['input']}",
                    "template_id": "the-one-prompt",
                    "gold": gold if votes > 1 else None,
                    "raw_decision": row[column] or None,
                    "status": None if row[column] else "error",
                }


def import_pandalm(folder: Path, out: Path) -> None:
    """Import PandaLM's log into ``out``."""
    table = recipes.write(pandalm(folder / "verdicts.csv"), out.with_suffix(".parquet"))
    import_log(table, "table", out, labels=("1", "2", "TIE"))


IMPORTS: dict[str, Callable[[Path, Path], Any]] = {
    "llmbar": lambda logs, out: recipes.import_llmbar(logs / "llmbar" / "judgments.csv", out),
    "flakyjudge": lambda logs, out: recipes.import_flakyjudge(logs / "flakyjudge", out),
    "rag-eval": lambda logs, out: recipes.import_rag_eval(logs / "rag_eval_9judges", out),
    "pandalm": lambda logs, out: import_pandalm(logs / "pandalm", out),
}


def beside_people(file: Path) -> dict[str, str]:
    """Whether PandaLM's judges could replace one of its three people, by judge."""
    with file.open(encoding="utf-8", newline="") as source:
        every = list(csv.DictReader(source))
    found = {}
    for column, judge in JUDGES.items():
        rows = [row for row in every if row[column]]
        labels = [[row[name] for row in rows] for name in PEOPLE]
        clusters = [f"{row['instruction']}\n{row['input']}" for row in rows]
        verdicts = [row[column] for row in rows]
        at = {
            n / 100: alternative_annotator(verdicts, labels, epsilon=n / 100, clusters=clusters)
            for n in range(101)
        }
        passes = min(epsilon for epsilon, one in at.items() if one and one.winning_rate >= 0.5)
        found[judge] = (
            f"; in the alternative annotator test it wins against {at[0.2].winning_rate:.0%} of "
            f"three people at ε 0.2, and passes from ε {passes:.2f}"
        )
    return found


def main(logs: Path) -> None:
    """Import, measure, rank, and write the file."""
    rows: list[Row] = []
    reports: dict[str, Any] = {}
    beside = beside_people(logs / "pandalm" / "verdicts.csv")
    for key, source in SOURCES.items():
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / key
            IMPORTS[key](logs, out)
            report, gold = measure_run(out), gold_tables(out)
        run = f"published/{key}"
        entries = [
            (replace(row, pairs=key), tables)
            for row, tables in board.entries(report, run, gold)
            if "@T=1" not in row.judge
        ]
        rows += [
            replace(
                row,
                task=source["task"],
                kind=LOG,
                data=source["title"],
                source=key,
                labels=board.PEOPLE,
                weights=None,
            )
            for row in board.ranked_rows(entries)
        ]
        judges = {row.judge for row, _ in entries}
        conclusions = [
            conclusion(entry, run, source["task"], beside if key == "pandalm" else {})
            for entry in report.assessments
            if entry.judge in judges
        ]
        values = report_json(ReportContents(measured=tuple(conclusions)))
        reports[run] = {name: values[name] for name in ("schema", "cells", "trust", "remedies")}
        print(key, len(judges), "judges")
    content = {"sources": SOURCES, "rows": plain(rows), "reports": reports}
    OUT.write_text(json.dumps(content, ensure_ascii=False, indent=0) + "\n", "utf-8")


def conclusion(entry: Assessment, run: str, task: str, beside: Mapping[str, str]) -> Assessment:
    """What a judge's page shows of an assessment: its card and its remedies."""
    card = replace(entry.card, text=entry.card.text + beside.get(entry.judge, ""))
    remedies = tuple(replace(row, checks=None) for row in entry.remedies)
    return Assessment(run, entry.judge, task, entry.scoring, (), card, remedies=remedies)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
