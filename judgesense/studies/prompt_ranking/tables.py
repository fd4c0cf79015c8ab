"""The tables of prompt-ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Floats
from judgesense.statistics.intervals import Interval, mean_t_cluster, wilson_cluster
from judgesense.statistics.ranking import PairFlips, lcb_sweep, selection_gain
from judgesense.statistics.ranks import competition_ranks
from judgesense.studies.common.result import Column, Record, Table, Value, published
from judgesense.studies.prompt_ranking.grid import PromptScores
from judgesense.studies.prompt_ranking.measures import REDRAWS, Measured

STUDY = "prompt-ranking"
SWEEP = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)

GAPS = (0.0, 0.01, 0.02, 0.05, 0.10, 1.01)
"""Edges of the gaps between two prompts' mean scores; the last bin is open upwards."""

_KEY = ("task", "model", "size")


def _mean_std(field: str, heading: str) -> tuple[Column, Column]:
    return Column(f"{field}_mean", heading), Column(f"{field}_std", "± std")


def _table(
    name: str, title: str, cells: Sequence[Measured], columns: Sequence[Column], note: str
) -> Table:
    """A row per cell, with the figures that the columns name."""
    rows = [{**c.key, **{one.id: c.figures[one.id] for one in columns}} for c in cells]
    return Table(name, title, (*_KEY, *columns), rows, note)


def stability_table(cells: Sequence[Measured]) -> Table:
    """Rank correlations and common winners between seeds."""
    first = cells[0].stability
    return _table(
        "stability",
        "Rankings of the prompts between seeds (the layout of Table 1)",
        cells,
        [
            Column("shared_items"),
            *_mean_std("spearman", "Spearman"),
            *_mean_std("kendall", "Kendall"),
            *_mean_std("top1_pairwise", "same top-1"),
            *_mean_std("topk_pairwise", f"top-{first.k} overlap"),
        ],
        f"Mean ± population std over the {first.n_conditions * (first.n_conditions - 1) // 2} "
        "pairs of seeds. shared items: the mean share of a subset that is also in another seed's "
        "subset; it makes seeds agree.",
    )


def consistency_table(cells: Sequence[Measured]) -> Table:
    """How many prompts win, and how often the same one does."""
    k = cells[0].stability.k
    return _table(
        "consistency",
        "Whether seeds agree on the best prompt (the layout of Table 2)",
        cells,
        [
            Column("top1_global", "top-1 consistency"),
            Column("topk_global", f"top-{k} consistency"),
            Column("unique_top1", "unique top-1"),
            Column("n_conditions", "seeds"),
        ],
        "Consistency: the share of seeds with the most frequent winner, and the mean overlap with "
        f"the most frequent top-{k} set. unique top-1: how many prompts win under some seed.",
    )


def selection_table(cells: Sequence[Measured]) -> Table:
    """The prompt chosen by the mean against the one chosen by LCB."""
    return _table(
        "selection",
        "Choosing by the mean against LCB, scored on the seed left out (the layout of Table 3)",
        cells,
        [
            *_mean_std("loso_mean", "mean"),
            *_mean_std("loso_lcb", f"LCB z={cells[0].stability.z:g}"),
            Column("mean_redrawn", "mean, redrawn"),
            Column("lcb_redrawn", "LCB, redrawn"),
            *(Column(name) for name in ("gain", "gain_low", "gain_high")),
            Column("lcb_better", "LCB better"),
            Column("equal"),
            Column("lcb_worse", "LCB worse"),
        ],
        f"The first two means use the study's seeds; the redrawn ones are expectations over "
        f"{REDRAWS} sets of as many seeds from the same scores. gain low to gain high holds the "
        "middle 95% of the sets' gains; the last three columns are shares of the sets.",
    )


def sweep_table(cells: Sequence[Measured]) -> Table:
    """The held-out score by the weight z."""
    columns = [Column(f"z_{z:g}".replace(".", "_"), f"z = {z:g}") for z in SWEEP]
    rows: list[Record] = []
    for cell in cells:
        own = [row["loso_mean"] for row in lcb_sweep(cell.scores, SWEEP)]
        redrawn = [selection_gain(cell.redrawn, z).by_lcb for z in SWEEP]
        for seeds, values in (("the study's", own), ("redrawn", redrawn)):
            scores = {one.id: value for one, value in zip(columns, values, strict=True)}
            rows.append({**cell.key, "seeds": seeds, **scores})
    return Table(
        "sweep",
        "The weight z of the variance penalty: score on the seed left out",
        (*_KEY, "seeds", *columns),
        rows,
        f"z = 0 chooses by the mean. redrawn: expectation over {REDRAWS} sets of seeds.",
        digits=4,
    )


def near_ties_table(cells: Sequence[Measured]) -> Table:
    """How often pairs of prompts flip, by the gap between them."""
    rows: list[Record] = []
    for cell in cells:
        flips = cell.flips
        bins = {
            f"{low:.2f} to {high:.2f}" if high <= 1 else f"{low:.2f} or more": (flips.gap >= low)
            & (flips.gap < (high if high <= 1 else np.inf))
            for low, high in pairwise(GAPS)
        }
        bins["not told apart by all items"] = flips.near_tied
        rows += [{**cell.key, "gap": gap, **_flips(flips, pairs)} for gap, pairs in bins.items()]
    return Table(
        "near_ties",
        "Which pairs of prompts flip, by the gap between them",
        (*_KEY, Column("gap", "gap between the means"), Column("n_pairs", "pairs"),
         "share_of_pairs", Column("flip_rate", "how often a pair flips"),
         Column("share_of_flips", "share of all flips")),
        rows,
        "gap: difference of two prompts' means over all items. A pair flips between two seeds that "
        f"order it oppositely (ties are no order), over {REDRAWS} redrawn sets of seeds. not told "
        "apart: the 95% interval of the gap, paired over all items, contains 0.",
    )  # fmt: skip


def _flips(flips: PairFlips, pairs: Any) -> dict[str, Value]:
    n = int(pairs.sum())
    return {
        "n_pairs": n,
        "share_of_pairs": n / len(flips.gap),
        "flip_rate": float(flips.flips[pairs].mean()) if n else None,
        "share_of_flips": flips.share_of_flips(pairs),
    }


def prompts_table(
    grids: Sequence[PromptScores],
    names: Mapping[str, str],
    cells: Sequence[Measured],
    texts: Mapping[str, str],
) -> Table:
    """Every prompt on all items; ``texts`` are the wordings by prompt name."""
    rows = []
    for grid in grids:
        winners = np.concatenate([cell.winners for cell in cells if cell.grid is grid])
        wins = np.bincount(winners, minlength=len(grid.prompts))
        means = grid.scores.mean(axis=1)
        for at in np.argsort(competition_ranks(means), kind="stable").tolist():
            interval = _interval(grid.scores[at])
            text = " ".join(texts.get(grid.prompts[at], "").split())
            rows.append(
                (grid.name, names[grid.model], grid.prompts[at], float(means[at]), interval.low,
                 interval.high, int(wins[at]), text)
            )  # fmt: skip
    return Table(
        "prompts",
        "Every prompt on all items, best first",
        ("task", "model", "prompt", Column("score", "mean score"), "ci_low", "ci_high", "wins",
         "wording"),
        rows,
        "95% intervals over items: Wilson's where scores are 0 or 1, else Student's t. wins: over "
        "all seeds and sizes.",
    )  # fmt: skip


def _interval(scores: Floats) -> Interval:
    if np.isin(scores, (0.0, 1.0)).all():
        return wilson_cluster(scores == 1.0)
    return mean_t_cluster(scores)


def published_table(cells: Sequence[Measured]) -> Table:
    """The figures that the paper states, beside this study's."""
    rows = []
    for key, figure in published(STUDY).items():
        task, size, model, measure = key.split("/")
        own = [
            value
            for cell in cells
            if cell.grid.task == task and cell.size == int(size)
            if (value := cell.figures[measure.removesuffix("_at_most")]) is not None
        ]
        rows.append(
            (task, int(size), model, measure.replace("_", " "), figure.value, figure.place,
             min(own, default=None), max(own, default=None))
        )  # fmt: skip
    return Table(
        "published",
        "The paper's figures beside this study's",
        ("task", "size", Column("model", "paper's model"), "measure", "paper", "place",
         Column("lowest", "ours, lowest"), Column("highest", "ours, highest")),
        rows,
        "Other models, other prompts and other items: the figures are shown side by side, not "
        "compared. Ours are the lowest and the highest of this study's models at that size.",
    )  # fmt: skip
