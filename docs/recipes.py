"""Reshape published logs into tables that ``judgesense import --format table`` reads.

    python docs/recipes.py llmbar ../shared/logs/llmbar/judgments.csv llmbar.parquet
    judgesense import llmbar.parquet --format table --labels A,B --out llmbar

    python docs/recipes.py flakyjudge ../shared/logs/flakyjudge flaky.parquet
    judgesense import flaky.parquet --format table --labels PASS,FAIL --out flaky

RAG-Eval's tables have one column per judge and need no recipe: see `RAG_EVAL`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from judgesense.files.tables import read_table
from judgesense.importers.log import import_log
from judgesense.log.schema import CONTRAST, INTERVENTION

RAG_EVAL = {
    "task": ":relevance_rating",
    "item_id": "{dataset}/{query_id}/{doc_id}",
    "cluster_id": "{dataset}/{query_id}",
    "template_id": ":the-one-prompt",
    "gold": "human",
    "raw_decision": "*",
}
"""The columns of RAG-Eval-LLM-Judge's wide tables, whose ratings are 0 to 3. A blank cell is an
ERROR: the source does not say why the judge gave no score."""

ORIGINAL, FIELDS_REVERSED = "original", "fields_reversed"
CONTROLS = ("control_negated", "control_swapped")
"""flakyjudge's contrasts: the criterion negated, or another criterion."""
_SHARED = ("e1", "e3", "e2", "e4")
"""flakyjudge's experiments share one answer to each original prompt: it is taken from the first of
these that has it."""


def llmbar(judgments: Path) -> Iterator[dict[str, Any]]:
    """LLMBar's preferences: output 1 is shown first in the order AB and second in BA.

    An empty winner is an answer that LLMBar could not read: UNCLEAR. The Rating strategies rate
    each output alone and have no option order, so each pair is imported once, as AB. Equal or
    missing ratings are UNCLEAR; LLMBar counts the output shown second as their winner. The
    templates are LLMBar's strategies, which are not pure paraphrases.
    """
    for record in read_table(judgments):
        row = record.values
        rated = row["prompt"].startswith("Rating")
        unrated = rated and (not row["score_2"] or row["score_1"] in ("", row["score_2"]))
        for order, column in (("AB", "winner_noswap"), ("BA", "winner_swap"))[: 1 if rated else 2]:
            shown = {"1": order[0], "2": order[1], "": None}
            winner = None if unrated else shown[row[column]]
            yield {
                "judge": row["judge"],
                "task": "preference",
                "item_id": f"{row['dataset']}/{row['item']}",
                "template_id": row["prompt"],
                "system_id": row["dataset"],
                "order": order,
                "gold": shown[row["label"]],
                "raw_decision": winner,
                "status": None if winner else "unclear",
            }


def flakyjudge(folder: Path, verdicts: bool = True) -> Iterator[dict[str, Any]]:
    """flakyjudge's scores from 1 to 5, or as verdicts: a score above 2.5 passes.

    Rewordings are templates. Controls are contrast variants of the original criterion, reversed
    fields an equivalent one, and the prompt with rubric and reference answer an intervention. At
    temperature 1 the judge is ``NAME@T=1``. Padded and condensed answers are items of their own in
    the cluster of the original, without gold: people rated the original. Gold is the mean human
    rating, rounded, or its verdict. Items about the same query are a cluster. A missing score is
    UNCLEAR: flakyjudge read no digit in the answer.
    """
    rows = [
        {name: None if value != value else value for name, value in record.values.items()}
        for path in sorted(folder.glob("e[1-4]_scores.parquet"))
        for record in read_table(path)
    ]
    first: dict[str, str] = {}
    clusters = {
        record.values["item_id"]: first.setdefault(record.values["query"], record.values["item_id"])
        for record in read_table(folder / "items_perturb.jsonl")
    }
    answered = {
        (row["experiment"], row["judge"], row["item_id"]) for row in rows if _is_original(row)
    }
    for row in rows:
        experiment, judge, item = row["experiment"], row["judge"], row["item_id"]
        earlier = _SHARED[: _SHARED.index(experiment)] if _is_original(row) else ()
        if row.get("condition") == "order_standard" or any(
            (name, judge, item) in answered for name in earlier
        ):
            continue
        score, human = row["score_direct"], row.get("human_label")
        yield {
            "judge": judge,
            "task": "criterion",
            "template_id": ORIGINAL,
            "item_id": item,
            "cluster_id": clusters.get(item, item),
            "gold": None if human is None or human < 0 else _label(human, verdicts),
            "raw_text": row.get("raw_text"),
            "input_tokens": row.get("input_tokens"),
            "output_tokens": row.get("output_tokens"),
            "repeat": 0,
            "variant": "rewording",
            "variant_class": "equivalent",
            "raw_decision": None if score is None else _label(score, verdicts),
            "status": "unclear" if score is None else None,
            **_differences(row),
        }


def _is_original(row: Mapping[str, Any]) -> bool:
    """Whether a row has the answer to the original prompt at temperature 0."""
    return (
        (row.get("condition") == "repeat_t0" and row.get("repeat_idx") == 0)
        or row.get("prompt_mode") == "bare"
        or ORIGINAL in (row.get("variant_type"), row.get("kind"))
    )


def _differences(row: Mapping[str, Any]) -> dict[str, Any]:
    """What distinguishes a row from the original prompt."""
    names = ("prompt_mode", "condition", "variant_type", "kind")
    match (row["experiment"], next(row[name] for name in names if row.get(name))):
        case ("e1", "bare") | ("e3" | "e4", "original"):
            return {}
        case ("e1", "parity"):
            return {"variant": "rubric_and_reference", "variant_class": INTERVENTION}
        case ("e2", "repeat_t0"):
            return {"repeat": row["repeat_idx"]}
        case ("e2", "repeat_t1"):
            return {"judge": f"{row['judge']}@T=1", "repeat": row["repeat_idx"]}
        case ("e2", "order_reversed"):
            return {"variant": FIELDS_REVERSED}
        case ("e3", control) if control in CONTROLS:
            return {"variant": control, "variant_class": CONTRAST}
        case ("e3", wording):
            return {"template_id": wording}
        case ("e4", kind):
            return {"item_id": f"{row['item_id']}/{kind}", "gold": None}
        case other:
            raise ValueError(f"unknown experiment or condition {other}")


def _label(score: float, verdicts: bool) -> str:
    return ("FAIL", "PASS")[score > 2.5] if verdicts else str(round(score))


def import_llmbar(judgments: Path, out: Path) -> dict[str, Any]:
    """Import LLMBar's judgments into the folder ``out``; returns its ``run.json``."""
    table = write(llmbar(judgments), out.with_suffix(".parquet"))
    return import_log(table, "table", out, labels=("A", "B"))


def import_flakyjudge(folder: Path, out: Path, verdicts: bool = True) -> dict[str, Any]:
    """Import flakyjudge's tables into the folder ``out``; returns its ``run.json``."""
    table = write(flakyjudge(folder, verdicts), out.with_suffix(".parquet"))
    labels = ("PASS", "FAIL") if verdicts else ("1", "2", "3", "4", "5")
    return import_log(table, "table", out, labels=labels)


def import_rag_eval(wide: Path, out: Path) -> dict[str, Any]:
    """Import one of RAG-Eval's wide tables into the folder ``out``; returns its ``run.json``."""
    return import_log(wide, "table", out, columns=RAG_EVAL, labels=("0", "1", "2", "3"))


def write(rows: Iterator[dict[str, Any]], path: Path) -> Path:
    """Write rows as a Parquet file; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


if __name__ == "__main__":
    name, source, target = sys.argv[1:]
    write({"llmbar": llmbar, "flakyjudge": flakyjudge}[name](Path(source)), Path(target))
