"""Verdicts that people labelled too: logs beside the checkout, and SummEval's summaries."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
from common import MIRROR

from judgesense.comparison.outputs import Outputs, outputs_of
from judgesense.comparison.verdicts import read_verdicts
from judgesense.statistics.arrays import Floats

HUMAN = "summeval_human.csv"
LOGS = MIRROR.parent / "logs"


def rag_eval() -> dict[str, tuple[list[str], list[str], list[str], Floats, Floats]]:
    """Judge -> items, queries, datasets, verdicts and human labels, where the judge has a score."""
    rows = []
    for path in sorted((LOGS / "rag_eval_9judges").glob("*_wide.csv")):
        with path.open(encoding="utf-8") as source:
            rows += list(csv.DictReader(source))
    judges = [name for name in rows[0] if name not in ("dataset", "query_id", "doc_id", "human")]
    found = {}
    for judge in judges:
        own = [row for row in rows if row[judge]]
        found[judge] = (
            [f"{row['query_id']}/{row['doc_id']}" for row in own],
            [f"{row['dataset']}/{row['query_id']}" for row in own],
            [row["dataset"] for row in own],
            np.array([float(row[judge]) for row in own]),
            np.array([float(row["human"]) for row in own]),
        )
    return found


def flakyjudge() -> dict[str, tuple[Floats, Floats]]:
    """Judge -> verdicts and human labels from 1 to 5 of e1, both known."""
    import pyarrow.parquet as pq

    table = pq.read_table(LOGS / "flakyjudge" / "e1_scores.parquet").to_pylist()
    found: dict[str, list[tuple[float, float]]] = {}
    for row in table:
        score, human = row["score_direct"], row["human_label"]
        if row["prompt_mode"] == "parity" and score is not None and human is not None and human > 0:
            found.setdefault(row["judge"], []).append((score, human))
    return {judge: tuple(np.array(pairs).T) for judge, pairs in found.items()}  # type: ignore[misc]


def rag_units(
    file: Path, said: dict[str, Any], panel: dict[str, dict[str, float]], judges: list[str]
) -> tuple[Outputs, Floats]:
    """TREC-COVID's and TREC RAG's passages as two systems' outputs, judged by some judges."""
    human: dict[str, tuple[str, float]] = {}
    for judge in judges:
        items, _, datasets, _, told = said[judge]
        human.update(zip(items, zip(datasets, told, strict=True), strict=True))
    with file.open("w", newline="", encoding="utf-8") as sink:
        writer = csv.writer(sink)
        writer.writerow(["item_id", "system_id", "wording", "verdict"])
        for item, (dataset, _) in human.items():
            if dataset != "beir-scifact":  # people rated all of it 3
                for judge in judges:
                    if item in panel[judge]:
                        writer.writerow([item, dataset, judge, panel[judge][item]])
    units = outputs_of(read_verdicts(file))
    return units, np.array([human[item][1] for item in units.items])


def write_summeval(folder: Path) -> None:
    """Every other system's summaries as items, and people's mean coherence of each."""
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    rows = pq.read_table(MIRROR / "mteb/summeval/default/test.parquet").to_pylist()
    with (
        (folder / "summeval.jsonl").open("w", encoding="utf-8") as items,
        (folder / HUMAN).open("w", newline="", encoding="utf-8") as human,
    ):
        told = csv.writer(human, lineterminator="\n")
        told.writerow(["item_id", "system_id", "label"])
        for row in rows:
            for system in range(0, len(row["coherence"]), 2):
                item = {
                    "task": "coherence",
                    "item_id": f"summeval-{row['id']}-{system:02d}",
                    "cluster_id": f"summeval-{row['id']}",
                    "system_id": f"system-{system:02d}",
                    "summary": row["machine_summaries"][system].strip(),
                }
                items.write(json.dumps(item) + "\n")
                told.writerow([item["item_id"], item["system_id"], row["coherence"][system]])
