"""The figures behind a stream's cells: template pairs, single wordings, flipped examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.log.answers import Answers, agreement, distinct
from judgesense.log.pairs import mapped_shares
from judgesense.log.rows import Log
from judgesense.measure.cells import CellPart
from judgesense.statistics.agreement import sampled_jss

EXAMPLES_A_STREAM = 3
LONGEST_TEXT = 4000
ROW = "log_row"
"""The column that numbers a log's rows before any is left out; not one of a log's own."""


def template_pairs(part: CellPart) -> list[dict[str, Any]]:
    """JSS of every pair of templates; ``template_a`` comes first in the alphabet."""
    log, pairs = part.log, part.pairs
    rows = np.flatnonzero(part.used)
    if not len(rows):
        return []
    by_name = np.argsort(np.array(log.templates))
    rank = np.argsort(by_name)
    one, two = rank[pairs.template_a[rows]], rank[pairs.template_b[rows]]
    key = np.minimum(one, two) * len(rank) + np.maximum(one, two)
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    result = []
    for kind in ("raw", "mapped"):
        first, second = part.stream.sides(kind)
        for group in np.split(order, starts[1:]):
            own = rows[group]
            low, high = divmod(int(key[group[0]]), len(rank))
            found = agreement(log, first[own], second[own], pairs.cluster[own])
            result.append(
                {
                    **part.names,
                    "labels": kind,
                    "template_a": log.templates[by_name[low]],
                    "template_b": log.templates[by_name[high]],
                    **{key: found[key] for key in ("jss", "ci_low", "ci_high", "n_pairs")},
                }
            )
    return result


def template_figures(part: CellPart, table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each template by itself: its agreement with the others (mapped), and with gold.

    ``agreement`` is the mean JSS of the template's pairs in ``table``, ``accuracy`` the share of
    its decided prompts that match gold, ``inverted`` whether an answer means the
    opposite of what it means to most templates.
    """
    log, stream = part.log, part.stream
    graded = ~log.undecided[stream.decision] & (log.gold[stream.rows] >= 0)
    template = log.template[stream.rows]
    size = len(log.templates)
    shown = np.bincount(template, minlength=size)
    hits = graded & (stream.decision == log.gold[stream.rows])
    right = np.bincount(template[hits], minlength=size)
    total = np.bincount(template[graded], minlength=size)
    agreed = dict.fromkeys(log.templates, 0.0)
    weights = dict.fromkeys(log.templates, 0)
    for row in table:
        one, two = row["template_a"], row["template_b"]
        if row["labels"] == "mapped" and row["jss"] is not None and one != two:
            for name in (one, two):
                agreed[name] += row["jss"] * row["n_pairs"]
                weights[name] += row["n_pairs"]
    result = []
    for code in np.flatnonzero(shown):
        name = log.templates[code]
        result.append(
            {
                **part.names,
                "template": name,
                "agreement": agreed[name] / weights[name] if weights[name] else None,
                "accuracy": float(right[code] / total[code]) if total[code] else None,
                "inverted": name in stream.inverted,
                "n_prompts": int(shown[code]),
            }
        )
    return sorted(result, key=lambda row: str(row["template"]))


def diagnostics(part: CellPart, cell: Mapping[str, Any]) -> dict[str, Any]:
    """What advice needs beside the cells; ``cell`` is the one of this part.

    ``gold_share`` is the share of the commonest gold label: what a constant answer would score.
    ``n_cut_off`` counts answers that the token cap ended before they decided anything.
    """
    log, stream = part.log, part.stream
    gold = log.gold[stream.rows]
    counts = np.bincount(gold[gold >= 0], minlength=len(log.labels))
    top = int(counts.argmax())
    rows = pa.array(stream.rows)
    mass = log.table["option_mass"].take(rows).drop_null().to_numpy()
    cut = log.table["truncated"].take(rows).to_numpy(zero_copy_only=False)
    accuracy_ci = [cell["accuracy_ci_low"], cell["accuracy_ci_high"]]
    return {
        **part.names,
        "n_prompts": len(stream.rows),
        "n_cut_off": int((log.undecided[stream.decision] & (cut == True)).sum()),  # noqa: E712
        "n_planned": part.n_planned,
        "n_judged": int(part.used.sum()),
        "gold_label": str(log.labels[top]) if counts[top] else None,
        "gold_share": float(counts[top] / counts.sum()) if counts[top] else None,
        "n_items": distinct(log.item[stream.rows]),
        "accuracy_ci": accuracy_ci if cell["accuracy"] is not None else None,
        "option_mass": float(np.median(mass)) if len(mass) else None,
        "orders": [
            log.orders[code] for code in np.flatnonzero(np.bincount(log.order[stream.rows]))
        ],
        "comparative": stream.task.comparative,
        "n_labels": len(stream.task.labels),
    }


def examples(part: CellPart) -> list[dict[str, Any]]:
    """Pairs with a flipped mapped verdict: the surest ones, at most one per item."""
    log, pairs, stream = part.log, part.pairs, part.stream
    assert stream.row_a is not None
    assert stream.row_b is not None
    flipped = part.of_pairs & stream.decided() & (stream.mapped_a != stream.mapped_b)
    index = np.flatnonzero(flipped)
    margins = []
    for rows in (stream.row_a, stream.row_b):
        known = log.table["margin"].take(pa.array(rows[index])).to_numpy().astype(np.float64)
        margins.append(np.nan_to_num(known, nan=0.0))
    index = index[np.argsort(-np.minimum(*margins), kind="stable")]
    _, at = np.unique(pairs.item[index], return_index=True)
    found = []
    for pair in index[np.sort(at)[:EXAMPLES_A_STREAM]]:
        row_a, row_b = int(stream.row_a[pair]), int(stream.row_b[pair])
        gold = log.gold[row_a]
        found.append(
            {
                **part.names,
                "order": log.orders[pairs.order[pair]],
                "item_id": log.items[log.item[row_a]],
                "gold": str(log.labels[gold]) if gold >= 0 else None,
                "a": _side(log, row_a, pairs.template_a[pair], stream.mapped_a[pair]),
                "b": _side(log, row_b, pairs.template_b[pair], stream.mapped_b[pair]),
            }
        )
    return found


def _side(log: Log, row: int, template: int, decision: int) -> dict[str, Any]:
    record = log.table.select(["prompt_id", "margin", ROW]).slice(row, 1).to_pylist()[0]
    return {
        "template": log.templates[template],
        "prompt_id": record["prompt_id"],
        "text": None,
        "answer": None,
        ROW: record[ROW],
        "raw": str(log.labels[log.raw[row]]),
        "decision": str(log.labels[decision]),
        "margin": record["margin"],
    }


def repeated_figures(stream: Answers, run: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A stream's JSS over every draw of its prompts, raw and mapped; nothing without repeats."""
    log, pairs = stream.log, stream.pairs
    if stream.reruns is None or not len(pairs):
        return
    rows = np.concatenate([stream.rows, stream.reruns[1]])
    rows = rows[log.stimulus[rows] >= 0]
    # A prompt that several items share is logged for each, but drawn once per repeat.
    draw = log.stimulus[rows] * (int(log.repeat.max()) + 1) + log.repeat[rows]
    _, once = np.unique(draw, return_index=True)
    rows = rows[once]
    drawn = np.bincount(log.stimulus[rows])
    n_draws = int(drawn.max())
    if stream.variants and drawn[drawn > 0].min() < n_draws:
        return  # Only the base wording was asked again: see jss_repeat.
    undecided = log.undecided[log.raw[rows]]
    rows = rows[~undecided]
    counts = np.zeros((log.n_stimuli, len(log.labels)))
    np.add.at(counts, (log.stimulus[rows], log.raw[rows]), 1)
    first, second = counts[pairs.first], counts[pairs.second]
    labels = np.arange(len(log.labels))
    temperature = None
    for entry in run.get("judges") or []:
        if entry.get("name") == stream.judge:
            temperature = entry.get("describe", {}).get("decoding", {}).get("temperature")
    known = {"run_id": str(run.get("run_id") or "-"), "judge": stream.judge}
    known |= {"task": stream.task.name, "scoring": stream.scoring}
    for kind in ("raw", "mapped"):
        if kind == "mapped":
            first = mapped_shares(first, labels, pairs.map_a, pairs, len(labels))
            second = mapped_shares(second, labels, pairs.map_b, pairs, len(labels))
        yield {
            **known,
            "labels": kind,
            **sampled_jss(first, second, pairs.cluster),
            "n_draws": n_draws,
            "n_undecided": int(undecided.sum()),
            "temperature": temperature,
        }
