"""What stands behind a stream's figures: template pairs, single wordings, flipped examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from judgesense.decisions.frames import Codes, Log, Pairs
from judgesense.decisions.streams import Stream, agreement, distinct
from judgesense.report_file import CELL_KEYS
from judgesense.reporting.cells import View
from judgesense.statistics.intervals import wilson_cluster
from judgesense.trust.conclusion import items_to_settle

EXAMPLES_A_STREAM = 3
LONGEST_TEXT = 4000


def template_pairs(
    log: Log, pairs: Pairs, stream: Stream, view: View, run_id: str
) -> list[dict[str, Any]]:
    """JSS of every pair of templates (the first in the alphabet is ``template_a``)."""
    rows = np.flatnonzero(view.pairs & stream.known)
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
        first, second = stream.sides(kind)
        for part in np.split(order, starts[1:]):
            own = rows[part]
            low, high = divmod(int(key[part[0]]), len(rank))
            found = agreement(log, first[own], second[own], pairs.cluster[own])
            result.append(
                {
                    **_identity(stream, run_id, view),
                    "labels": kind,
                    "template_a": log.templates[by_name[low]],
                    "template_b": log.templates[by_name[high]],
                    "jss": found.jss,
                    "ci_low": found.ci_low,
                    "ci_high": found.ci_high,
                    "n_pairs": found.n_pairs,
                }
            )
    return result


def wordings(
    log: Log,
    pairs: Pairs,
    stream: Stream,
    view: View,
    run_id: str,
    table: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    """Each template by itself: agreement with the others (mapped), and with gold.

    ``agreement`` is the mean JSS of the template's pairs, ``accuracy`` the share of its decided
    prompts that match gold, ``polarity`` whether its label map inverts answers.
    """
    decided = (stream.decision >= 0) & ~log.undecided[stream.decision]
    gold = log.gold[stream.rows]
    graded = decided & (gold >= 0)
    template = log.template[stream.rows]
    size = len(log.templates)
    shown = np.bincount(template, minlength=size)
    right = np.bincount(template[graded & (stream.decision == gold)], minlength=size)
    total = np.bincount(template[graded], minlength=size)
    inverted = _inverted(log, pairs)
    mapped = [row for row in table if row["labels"] == "mapped" and row["jss"] is not None]
    result = []
    for code in np.flatnonzero(shown):
        name = log.templates[code]
        own = [row for row in mapped if name in (row["template_a"], row["template_b"])]
        own = [row for row in own if row["template_a"] != row["template_b"]]
        weight = sum(row["n_pairs"] for row in own)
        result.append(
            {
                **_identity(stream, run_id, view),
                "template": name,
                "agreement": sum(r["jss"] * r["n_pairs"] for r in own) / weight if weight else None,
                "accuracy": float(right[code] / total[code]) if total[code] else None,
                "inverted": name in inverted,
                "n_prompts": int(shown[code]),
            }
        )
    return sorted(result, key=lambda row: str(row["template"]))


def _inverted(log: Log, pairs: Pairs) -> set[str]:
    """Templates whose label map sends some answer to another label."""
    moved = (pairs.forward != np.arange(pairs.forward.shape[1])).any(axis=1)
    found: set[str] = set()
    for maps, templates in ((pairs.map_a, pairs.template_a), (pairs.map_b, pairs.template_b)):
        found.update(
            log.templates[code] for code in np.flatnonzero(np.bincount(templates[moved[maps]]))
        )
    return found


def diagnostics(log: Log, pairs: Pairs, stream: Stream, view: View, run_id: str) -> dict[str, Any]:
    """What an advice rests on beside the cells.

    ``gold_share`` is the share of the commonest gold label: what a constant answer would score.
    ``n_cut_off`` counts answers that the token cap ended before they decided anything.
    """
    gold = log.gold[stream.rows]
    counts = np.bincount(gold[gold >= 0], minlength=len(log.labels))
    top = int(counts.argmax())
    mass = log.table["option_mass"].take(pa.array(stream.rows)).drop_null().to_numpy()
    used = view.pairs & stream.known
    cut = log.table["truncated"].take(pa.array(stream.rows)).to_numpy(zero_copy_only=False)
    return {
        **_identity(stream, run_id, view),
        "n_prompts": len(stream.rows),
        "n_cut_off": int((log.undecided[stream.decision] & (cut == True)).sum()),  # noqa: E712
        "n_planned": len(pairs) if pairs.planned else int(used.sum()),
        "n_judged": int(used.sum()),
        "gold_label": str(log.labels[top]) if counts[top] else None,
        "gold_share": float(counts[top] / counts.sum()) if counts[top] else None,
        "n_items": distinct(log.item[stream.rows]),
        "accuracy_ci": _accuracy_interval(log, stream),
        "option_mass": float(np.median(mass)) if len(mass) else None,
        "orders": [
            log.orders[code] for code in np.flatnonzero(np.bincount(log.order[stream.rows]))
        ],
        "comparative": stream.task.comparative,
        "n_labels": len(stream.task.labels),
    }


def _accuracy_interval(log: Log, stream: Stream) -> list[float | None] | None:
    gold = log.gold[stream.rows]
    graded = (stream.decision >= 0) & ~log.undecided[stream.decision] & (gold >= 0)
    if not graded.any():
        return None
    spread = wilson_cluster(
        stream.decision[graded] == gold[graded], log.cluster[stream.rows][graded]
    )
    return [spread.low, spread.high]


def settle(
    log: Log, pairs: Pairs, stream: Stream, view: View, cell: dict[str, Any]
) -> dict[str, Any]:
    """An entry of ``to_settle``: how many items would settle a cell that is undecided."""
    used = view.pairs & stream.known
    first, second = (side[used] for side in stream.sides(cell["labels"]))
    decided = ~(log.undecided[first] | log.undecided[second])
    agree = first[decided] == second[decided]
    of_pairs = (codes[used][decided] for codes in (pairs.cluster, pairs.item))
    return {key: cell[key] for key in CELL_KEYS[:6]} | {"items": items_to_settle(agree, *of_pairs)}


def examples(
    log: Log,
    pairs: Pairs,
    stream: Stream,
    view: View,
    run_id: str,
) -> list[dict[str, Any]]:
    """Pairs on which the mapped verdict flips: the surest of them, one an item."""
    if stream.row_a is None or stream.row_b is None:
        return []
    first, second = stream.mapped_a, stream.mapped_b
    flips = view.pairs & stream.known & (first != second)
    flips &= ~(log.undecided[first] | log.undecided[second])
    index = np.flatnonzero(flips)
    if not len(index):
        return []
    row_a, row_b = stream.row_a[index], stream.row_b[index]
    sure = np.minimum(_margins(log, row_a), _margins(log, row_b))
    index = index[np.argsort(-sure, kind="stable")]
    _, at = np.unique(pairs.item[index], return_index=True)
    chosen = index[np.sort(at)[:EXAMPLES_A_STREAM]]
    return [_example(log, pairs, stream, run_id, view, int(row)) for row in chosen]


def _margins(log: Log, rows: Codes) -> npt.NDArray[np.float64]:
    margins = log.table["margin"].take(pa.array(rows)).to_numpy().astype(np.float64)
    sure: npt.NDArray[np.float64] = np.nan_to_num(margins, nan=0.0)
    return sure


def _example(
    log: Log,
    pairs: Pairs,
    stream: Stream,
    run_id: str,
    view: View,
    pair: int,
) -> dict[str, Any]:
    assert stream.row_a is not None
    assert stream.row_b is not None
    row_a, row_b = int(stream.row_a[pair]), int(stream.row_b[pair])
    gold = log.gold[row_a]
    return {
        **_identity(stream, run_id, view),
        "order": log.orders[pairs.order[pair]],
        "item_id": log.items[log.item[row_a]],
        "gold": str(log.labels[gold]) if gold >= 0 else None,
        "a": _side(log, row_a, pairs.template_a[pair], stream.mapped_a[pair]),
        "b": _side(log, row_b, pairs.template_b[pair], stream.mapped_b[pair]),
    }


def _side(log: Log, row: int, template: int, decision: int) -> dict[str, Any]:
    record = log.table.select(["prompt_id", "raw_text", "margin"]).slice(row, 1).to_pylist()[0]
    return {
        "template": log.templates[template],
        "prompt_id": record["prompt_id"],
        "text": None,
        "answer": None if record["raw_text"] is None else record["raw_text"][:LONGEST_TEXT],
        "raw": str(log.labels[log.raw[row]]),
        "decision": str(log.labels[decision]),
        "margin": record["margin"],
    }


def _identity(stream: Stream, run_id: str, view: View) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "judge": stream.judge,
        "task": stream.task.name,
        "scoring": stream.scoring,
        "order": view.order,
    }
