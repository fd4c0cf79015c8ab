"""Cells: every figure of one judge, task, scoring, option order and kind of label."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.decisions.frames import Codes, Log, Pairs, data_hash
from judgesense.decisions.streams import (
    Stream,
    agreement,
    distinct,
    mapped_shares,
    option_shares,
)
from judgesense.report_file import CELL_KEYS, KAPPA_UNDEFINED
from judgesense.statistics.agreement import soft_jss
from judgesense.statistics.bias import position_bias
from judgesense.statistics.signature import signature
from judgesense.tasks import NO_ORDER, UNCLEAR
from judgesense.trust.conclusion import verdict
from judgesense.version import __version__

POOLED = "both"
"""The order of a cell over both option orders."""


NO_PAIRS = "there are no template pairs to compare"
NOT_JUDGED = "no pair was judged on both sides"


@dataclass(frozen=True)
class View:
    """A stream's part in one option order, or in both."""

    order: str
    pairs: npt.NDArray[np.bool_]
    rows: npt.NDArray[np.bool_]


def views(log: Log, pairs: Pairs, stream: Stream) -> list[View]:
    """The option orders of a stream's pairs; last, both together. The last is the main one."""
    counts = np.bincount(pairs.order[stream.known], minlength=len(log.orders))
    seen = [log.orders[code] for code in np.flatnonzero(counts)]
    seen.sort(key=lambda order: (order == NO_ORDER, order))
    single = [
        View(order, pairs.order == code, log.order[stream.rows] == code)
        for order in seen
        for code in [log.orders.index(order)]
    ]
    if len(single) < 2:
        whole = View(
            seen[0] if seen else NO_ORDER,
            np.ones(len(pairs), bool),
            np.ones(len(stream.rows), bool),
        )
        return single or [whole]
    every_row = np.ones(len(stream.rows), bool)
    return [*single, View(POOLED, np.ones(len(pairs), bool), every_row)]


class Hashes:
    """The ``data`` part of signatures, computed once for each set of pairs."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, bytes], str] = {}

    def of(self, stream: Stream, view: View, pairs: Pairs) -> str:
        """The hash of a view's pairs: of the planned ones, or of those judged where none were."""
        used = view.pairs if pairs.planned else view.pairs & stream.known
        key = (stream.task.name, view.order, hashlib.sha256(np.packbits(used).tobytes()).digest())
        if key not in self._known:
            rows = np.flatnonzero(used)
            self._known[key] = data_hash(*(side.take(rows) for side in pairs.prompt_ids))
        return self._known[key]


def stream_cells(
    log: Log, pairs: Pairs, stream: Stream, every: list[View], run_id: str, hashes: Hashes
) -> Iterator[dict[str, Any]]:
    """A stream's cells: raw and mapped in every order of `views`."""
    soft = _soft_inputs(log, pairs, stream)
    same = stream.same_labels
    for view in every:
        shown = _prompt_figures(log, stream, view)
        both = {"raw": _agreement(log, pairs, stream, view, "raw")}
        both["mapped"] = (
            dict(both["raw"]) if same else _agreement(log, pairs, stream, view, "mapped")
        )
        degenerate = _degenerate(both)
        for kind, figures in both.items():
            cell = {
                "run_id": run_id,
                "judge": stream.judge,
                "task": stream.task.name,
                "scoring": stream.scoring,
                "order": view.order,
                "labels": kind,
                **figures,
                **shown,
                "soft_jss": _soft(soft, pairs, view, stream, kind, len(log.labels)),
                "degenerate": figures["degenerate"] or degenerate,
                "signature": signature(
                    task=stream.task.name.replace("|", "/").replace("\n", " "),
                    n=figures["n_pairs"],
                    items=figures["n_items"],
                    labels=kind,
                    scoring=stream.scoring,
                    undecided="excluded",
                    templates="fixed",
                    ci="wilson-cluster",
                    data=hashes.of(stream, view, pairs),
                    v=__version__,
                ),
            }
            cell["verdict"] = verdict(cell)
            yield {key: cell[key] for key in CELL_KEYS}


def _agreement(log: Log, pairs: Pairs, stream: Stream, view: View, kind: str) -> dict[str, Any]:
    used = view.pairs & stream.known
    planned = int(view.pairs.sum()) if pairs.planned else int(used.sum())
    first, second = (side[used] for side in stream.sides(kind))
    decided = ~(log.undecided[first] | log.undecided[second])
    figures: dict[str, Any] = dict.fromkeys(
        ("jss", "ci_low", "ci_high", "flip_rate", "kappa", "jss_low", "jss_high")
    )
    figures.update(n_pairs=0, n_unclear=0, n_refused=0, n_error=0)
    figures["degenerate"] = NOT_JUDGED if planned else NO_PAIRS
    if len(first):
        found = agreement(log, first, second, pairs.cluster[used]).to_dict()
        figures = {key: found[key] for key in figures}
    figures["n_items"] = distinct(pairs.item[used][decided])
    figures["n_clusters"] = distinct(pairs.cluster[used][decided])
    figures["coverage"] = figures["n_pairs"] / planned if planned else None
    return figures


def _degenerate(both: dict[str, dict[str, Any]]) -> str | None:
    """Why neither figure tells anything: one label throughout, before or after the label maps."""
    for kind, figures in both.items():
        if figures["degenerate"] is not None:
            # What is said of one kind of label need not hold of the other: its kappa may exist.
            text: str = figures["degenerate"].removesuffix(KAPPA_UNDEFINED)
            return text.replace("every decision", f"every {kind} decision")
    return None


def _prompt_figures(log: Log, stream: Stream, view: View) -> dict[str, float | None]:
    """Accuracy, position figures and the noise floor: of single prompts, not of pairs."""
    rows, decision = stream.rows[view.rows], stream.decision[view.rows]
    decided = (decision >= 0) & ~log.undecided[decision]
    graded = decided & (log.gold[rows] >= 0)
    hits = decision[graded] == log.gold[rows][graded]
    result: dict[str, float | None] = {
        "accuracy": float(hits.mean()) if len(hits) else None,
        "first_position_rate": None,
        "position_consistency": None,
        "noise_floor": _noise(log, stream, view),
    }
    if stream.task.comparative:
        # A tie, or an answer outside the label map, is on no side: as in `position_bias`.
        words = log.labels[decision[decided]]
        chosen = words[np.isin(words, stream.task.labels[:2])]
        if len(chosen):
            result["first_position_rate"] = float((chosen == stream.task.labels[0]).mean())
        if view.order == POOLED:
            result |= _position(log, stream, rows, decision)
    return result


def _position(log: Log, stream: Stream, rows: Codes, decision: Codes) -> dict[str, float | None]:
    """Position consistency, and the first-position rate over what was shown in both orders."""
    labels = stream.task.labels
    if len(labels) < 2 or not {"AB", "BA"} <= set(log.orders):
        return {}
    key = log.item[rows] * len(log.templates) + log.template[rows]
    sides = []
    for order in ("AB", "BA"):
        index = np.flatnonzero(log.order[rows] == log.orders.index(order))
        distinct, at = np.unique(key[index], return_index=True)
        sides.append((distinct, index[at]))
    common, in_ab, in_ba = np.intersect1d(
        sides[0][0], sides[1][0], assume_unique=True, return_indices=True
    )
    if not len(common):
        return {}
    ab, ba = sides[0][1][in_ab], sides[1][1][in_ba]
    # What is neither option (a tie, an answer outside the label map) prefers neither place.
    known = [word if word in labels[:2] else UNCLEAR for word in log.labels]
    words = np.array(known, dtype=object)[decision]
    found = position_bias(words[ba], words[ab], item_ids=log.cluster[rows][ab], options=labels[:2])
    if not found.n:
        return {}
    return {
        "first_position_rate": found.first_position_rate,
        "position_consistency": found.position_consistency,
    }


def _noise(log: Log, stream: Stream, view: View) -> float | None:
    """Flip rate of the same prompt between the first and later repeats."""
    if stream.reruns is None:
        return None
    first, later = stream.reruns
    if view.order not in (POOLED, NO_ORDER) and view.order in log.orders:
        kept = log.order[first] == log.orders.index(view.order)
        first, later = first[kept], later[kept]
    if not len(first):
        return None
    return agreement(log, log.raw[first], log.raw[later], log.cluster[first]).flip_rate


SoftInputs = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], Codes]


def _soft_inputs(log: Log, pairs: Pairs, stream: Stream) -> SoftInputs | None:
    """Option probabilities at both sides of every pair (NaN where there are none)."""
    if stream.scoring != "options" or stream.row_a is None or stream.row_b is None:
        return None
    if not len(pairs):
        return None
    shares, columns = option_shares(log, stream.rows)
    if not len(columns):
        return None
    place = np.full(len(log.raw) + 1, -1)
    place[stream.rows] = np.arange(len(stream.rows))
    shares = np.vstack([shares, np.full((1, len(columns)), np.nan)])
    return shares[place[stream.row_a]], shares[place[stream.row_b]], columns


def _soft(
    inputs: SoftInputs | None,
    pairs: Pairs,
    view: View,
    stream: Stream,
    kind: str,
    n_labels: int,
) -> float | None:
    if inputs is None:
        return None
    first, second, columns = inputs
    used = view.pairs & stream.known & ~np.isnan(first[:, 0]) & ~np.isnan(second[:, 0])
    if not used.any():
        return None
    first, second = first[used], second[used]
    if kind == "mapped":
        first = mapped_shares(first, columns, pairs.map_a[used], pairs, n_labels)
        second = mapped_shares(second, columns, pairs.map_b[used], pairs, n_labels)
    return soft_jss(first, second, pairs.cluster[used]).soft_jss
