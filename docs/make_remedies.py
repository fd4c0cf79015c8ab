"""The tables of docs/results/remedies.md, from folders of runs.

    python docs/make_remedies.py RUN...

The first table has, for each judge and task of the runs, asking as before, a few remedies that were
chosen beforehand, and the cheapest that passes the trust card. The second checks promises: a
remedy is fitted to half of the items, which state its accuracy (cross-fitted), and applied to the
other half.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.decisions.view import Stream, view
from judgesense.run_folder.folder import read_run
from judgesense.statistics.intervals import wilson_cluster
from judgesense.statistics.selection import folds_of
from judgesense.text import join, number, percent, short_names
from judgesense.trust.fitting import Remedy, crossfitted, decide, fit, order_groups
from judgesense.trust.grid import NOT_ASKED, Grid, grid_of
from judgesense.trust.remedies import cheapest_that_passes, remedies
from judgesense.trust.wordings import Wordings

FIXED = ("as asked", "calibrated", "both orders", "calibrated, expected score")
PROMISES = (Remedy(both=True), Remedy(calibrated=True))


def main() -> None:
    """Print both tables for the run folders named as arguments."""
    streams = list(_streams(sys.argv[1:]))
    print(
        "| data | judge | task | items | remedy | prompts per item | right | gain | JSS | trust |"
    )
    print("| --- | --- | --- | ---: | --- | ---: | ---: | ---: | ---: | --- |")
    for data, judge, stream in streams:
        mislabelled = Wordings.of(stream).mislabelled
        for row in _told(remedies(stream, mislabelled=mislabelled)):
            print(_line(data, judge, stream.task.name, row))
    print(
        "\n| data | judge | task | remedy | promised, half of the items | found, the other half |"
    )
    print("| --- | --- | --- | --- | ---: | ---: |")
    kept = promises = 0
    for data, judge, stream in streams:
        grid = grid_of(stream, frozenset(Wordings.of(stream).mislabelled))
        for remedy in PROMISES:
            if remedy.both and not grid.both_orders:
                continue
            *told, held = _promise(grid, remedy)
            kept += held
            promises += 1
            cells = (data, judge, stream.task.name, remedy.name, *told)
            print(f"| {' | '.join(cells)} |")
    print(f"\nThe two intervals overlap in {kept} of {promises} rows.")


def _streams(folders: list[str]) -> Iterator[tuple[str, str, Stream]]:
    for folder in folders:
        run = read_run(Path(folder))
        source = run.record.get("dataset") or {}
        data = f"embedded {source['version']}" if source.get("name") == "embedded" else "real"
        judged = view(run.log, run.pairs, run.record).judged
        short = short_names(sorted({stream.judge for stream in judged}))
        for stream in judged:
            yield data, short[stream.judge].split("@")[0], stream


def _told(rows: list[dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """As asked, the remedies of FIXED, and the cheapest that passes."""
    best = cheapest_that_passes(rows)
    for row in rows:
        if row["accuracy"] is not None and (row["remedy"] in FIXED or row is best):
            yield row


def _line(data: str, judge: str, task: str, row: Mapping[str, Any]) -> str:
    gain = "–"
    if row["gain"] is not None:
        ends = [f"{100 * row[key]:+.0f}" for key in ("gain", "gain_ci_low", "gain_ci_high")]
        gain = f"{ends[0]} [{ends[1]}, {ends[2]}]".replace("-", "−")
    cells = [
        data, judge, task, str(row["n_items"]), row["remedy"], str(row["prompts_per_item"]),
        percent(row["accuracy"]), gain, number(row["jss"], 2) if row["jss"] is not None else "–",
        (row["trust"] or "–") + (f" ({join(row['because'])})" if row["because"] else ""),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _promise(grid: Grid, remedy: Remedy) -> tuple[str, str, bool]:
    """What half of the items promise, what the other half shows, and whether the intervals of the
    two overlap."""
    clusters = np.unique(grid.clusters)
    chosen = np.random.default_rng(0).permutation(clusters)[: len(clusters) // 2]
    inside = np.isin(grid.clusters, chosen)
    old, new = grid.take(np.flatnonzero(inside)), grid.take(np.flatnonzero(~inside))
    group, panel = order_groups(grid, remedy)[0], (0,)
    held = crossfitted(old, folds_of(old.clusters)) if remedy.calibrated else old
    plain = Remedy(both=remedy.both)
    promised, first = _right(old, decide(held, panel, fit(held, plain, panel, group)).codes)
    found, second = _right(new, decide(new, panel, fit(old, remedy, panel, group)).codes)
    return promised, found, first[0] <= second[1] and second[0] <= first[1]


def _right(grid: Grid, codes: np.ndarray) -> tuple[str, tuple[float, float]]:
    known = (codes != NOT_ASKED) & (grid.gold >= 0)
    hits = codes[known] == grid.gold[known]
    ends = wilson_cluster(hits, grid.clusters[known])
    assert ends.low is not None
    assert ends.high is not None
    told = f"{percent(hits.mean())} [{percent(ends.low)}, {percent(ends.high)}], n = {len(hits)}"
    return told, (ends.low, ends.high)


if __name__ == "__main__":
    main()
