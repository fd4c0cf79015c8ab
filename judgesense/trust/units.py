"""The verdicts of a remedy, as a stream that the trust card's checks take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from judgesense.decisions import CONTRAST, SCHEMA
from judgesense.decisions.stream import Stream
from judgesense.decisions.streams import view
from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.calibration import UNDECIDED
from judgesense.tasks import UNCLEAR
from judgesense.trust.grid import NOT_ASKED, Grid, Wording


@dataclass(frozen=True)
class Unit:
    """What gives one verdict per item after a remedy: the verdicts of one wording or panel.

    ``name`` stands for a template; ``codes`` are verdicts in the items' own order, shape (n,).
    ``orders`` are the option orders that the verdict holds for: one as asked, both if averaged.
    ``contrast`` marks another question than the other units ask. ``tied`` are the items whose two
    best labels are equally probable, so that the verdict is the first; None for votes.
    """

    name: str
    orders: tuple[str, ...]
    codes: Codes
    wording: int | None = None
    contrast: bool = False
    tied: Bools | None = None


def _declared(wording: Wording | None, contrast: bool) -> tuple[str | None, str | None]:
    """The variant of a unit and its class."""
    if wording is None:
        return None, None
    return (wording.variant or "contrast", CONTRAST) if contrast else (
        wording.variant, wording.variant_class
    )  # fmt: skip


def stream_of(grid: Grid, units: list[Unit]) -> Stream | None:
    """The verdicts of units as a stream, which the trust card's checks take; None without any."""
    n, tables = len(grid), []
    labels = np.array([*grid.labels, UNCLEAR], dtype=object)
    flip = np.arange(len(grid.labels) + 1)
    flip[:2] = [1, 0]
    items = pa.array(grid.items.tolist(), pa.string())
    clusters = pa.array([str(code) for code in grid.clusters.tolist()], pa.string())
    for unit in units:
        known = np.flatnonzero(unit.codes != NOT_ASKED)
        if not len(known):
            continue
        wording = grid.wordings[unit.wording] if unit.wording is not None else None
        raws = np.array(
            [*(grid.raw[unit.wording] if unit.wording is not None else grid.labels), UNCLEAR],
            dtype=object,
        )
        variant, variant_class = _declared(wording, unit.contrast)
        for order in unit.orders:
            turned = flip if order == "BA" else np.arange(len(flip))
            codes = turned[unit.codes[known]]
            gold = grid.gold[known]
            shown = np.where(gold >= 0, turned[gold], UNDECIDED)
            m = len(known)
            at = pa.array(known)
            columns = {
                "judge": pa.repeat(grid.judge, m),
                "task": pa.repeat(grid.task, m),
                "scoring": pa.repeat(grid.scoring, m),
                "prompt_id": pa.repeat(f"{unit.name}:{order}", m),
                "item_id": items.take(at),
                "cluster_id": clusters.take(at),
                "template_id": pa.repeat(wording.template if wording else unit.name, m),
                "order": pa.repeat(order, m),
                "repeat": pa.repeat(pa.scalar(0, pa.int32()), m),
                "raw_decision": pa.array(raws[codes].tolist(), pa.string()),
                "decision": pa.array(labels[codes].tolist(), pa.string()),
                "status": pa.array(
                    ["unclear" if c < 0 else "ok" for c in unit.codes[known].tolist()], pa.string()
                ),
                "gold": pa.array(
                    [grid.labels[c] if c >= 0 else None for c in shown.tolist()], pa.string()
                ),
                "variant": pa.repeat(pa.scalar(variant, pa.string()), m),
                "variant_class": pa.repeat(pa.scalar(variant_class, pa.string()), m),
            }
            tables.append(
                pa.table(
                    {
                        name: columns.get(name, pa.nulls(m, SCHEMA.field(name).type))
                        for name in SCHEMA.names
                    },
                    schema=SCHEMA,
                )
            )
    if not tables or not n:
        return None
    record = {"tasks": {grid.task: {"labels": list(grid.labels), "comparative": grid.comparative}}}
    judged = view(pa.concat_tables(tables), None, record).judged
    return judged[0] if judged else None
