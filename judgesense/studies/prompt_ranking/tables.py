"""Tables, findings and figures of prompt-ranking, from grids of item-level scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from judgesense.statistics.intervals import Interval, mean_t_cluster, wilson_cluster
from judgesense.statistics.ranking import RankingStability, lcb_sweep, ranking_stability
from judgesense.statistics.selection import (
    PairFlips,
    SelectionGain,
    pair_flips,
    redrawn_scores,
    seed_scores,
    selection_gain,
)
from judgesense.statistics.tables import Floats
from judgesense.studies.common.result import Picture, Result, Table, Value, published
from judgesense.studies.prompt_ranking.grid import Grid
from judgesense.text import join, percent

if TYPE_CHECKING:
    from judgesense.studies.prompt_ranking import Plan

STUDY, TITLE = "prompt-ranking", "Stability of prompt rankings"
SWEEP = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
REDRAWS = 500
"""Sets of seeds over which expectations are taken: five seeds are too few to compare selections."""

GAPS = (0.0, 0.01, 0.02, 0.05, 0.10, 1.01)
"""Edges of the gaps between two prompts' mean scores; the last bin is open upwards."""


@dataclass(frozen=True)
class Measured:
    """One grid at one subset size: the study's seeds, and many redrawn sets of them."""

    grid: Grid
    model: str
    size: int
    scores: Floats
    redrawn: Floats
    stability: RankingStability
    gain: SelectionGain
    flips: PairFlips

    @property
    def key(self) -> tuple[str, str, int]:
        """The first cells of a row."""
        return (self.grid.name, self.model, self.size)

    @property
    def overlap(self) -> float:
        """The share of items that two seeds' subsets share on average."""
        return self.size / len(self.grid.items)


def measure(grid: Grid, model: str, size: int, plan: Plan, k: int) -> Measured:
    """Subsample a grid and measure its rankings; ``k`` is the size of the top sets."""
    seeds = [(plan.seed, number) for number in range(plan.seeds)]
    scores = seed_scores(grid.scores, size, seeds)
    redrawn = redrawn_scores(grid.scores, size, plan.seeds, REDRAWS, plan.seed)
    return Measured(
        grid, model, size, scores, redrawn,
        ranking_stability(scores, k=k, z=plan.z),
        selection_gain(redrawn, plan.z), pair_flips(grid.scores, redrawn),
    )  # fmt: skip


def result_of(
    grids: Sequence[Grid],
    names: Mapping[str, str],
    plan: Plan,
    settings: Mapping[str, Any],
    texts: Mapping[str, str],
) -> Result:
    """The study's result. ``names`` are the models' short names, ``texts`` the wordings."""
    # One k: a column holds the same measure in every row.
    k = min(plan.k, min(len(grid.prompts) for grid in grids))
    cells = [
        measure(grid, names[grid.model], size, plan, k)
        for grid in grids
        for size in sorted(plan.sizes)
    ]
    found = {
        **settings,
        "subset sizes": list(plan.sizes),
        "seeds": plan.seeds,
        "z": plan.z,
        "seed": plan.seed,
    }
    tables = [
        _stability(cells, k), _consistency(cells, k), _selection(cells), _sweep(cells),
        _near_ties(cells), _prompts(grids, names, cells, texts),
    ]  # fmt: skip
    if settings.get("prompts"):
        tables.append(_published(cells))
    result = Result(STUDY, TITLE, found, tables)
    result.findings = list(_findings(cells, k))
    result.limits = list(_limits(cells, grids))
    result.pictures = list(_pictures(cells, k))
    return result


def _stability(cells: Sequence[Measured], k: int) -> Table:
    rows: list[Sequence[Value]] = []
    for cell in cells:
        s = cell.stability
        rows.append(
            (*cell.key, cell.overlap, s.spearman_mean, s.spearman_std, s.kendall_mean,
             s.kendall_std, s.top1_pairwise_mean, s.top1_pairwise_std, s.topk_pairwise_mean,
             s.topk_pairwise_std)
        )  # fmt: skip
    return Table(
        "stability",
        "Rankings of the prompts between seeds (the layout of Table 1)",
        ("task", "model", "size", "shared items", "Spearman", "± std", "Kendall", "± std ",
         "same top-1", "± std  ", f"top-{k} overlap", "± std   "),
        rows,
        f"Mean ± population std over the {_pairs(cells)} pairs of seeds. Shared items: the share "
        "of a subset that another seed's subset holds too, on average; it makes seeds agree.",
    )  # fmt: skip


def _consistency(cells: Sequence[Measured], k: int) -> Table:
    rows = [
        (*cell.key, s.top1_global, s.topk_global, s.unique_top1, s.n_conditions)
        for cell in cells
        for s in (cell.stability,)
    ]
    return Table(
        "consistency",
        "Whether seeds agree on the best prompt (the layout of Table 2)",
        ("task", "model", "size", "top-1 consistency", f"top-{k} consistency", "unique top-1",
         "seeds"),
        rows,
        "Consistency: the share of seeds with the most frequent winner, and the mean overlap with "
        f"the most frequent top-{k} set. Unique top-1: how many prompts win under some seed.",
    )  # fmt: skip


def _selection(cells: Sequence[Measured]) -> Table:
    rows: list[Sequence[Value]] = []
    for cell in cells:
        s, g = cell.stability, cell.gain
        rows.append(
            (*cell.key, s.loso_mean_mean, s.loso_mean_std, s.loso_lcb_mean, s.loso_lcb_std,
             g.by_mean, g.by_lcb, g.gain, g.low, g.high, g.better, g.equal, g.worse)
        )  # fmt: skip
    z = cells[0].stability.z
    return Table(
        "selection",
        "Choosing by the mean against LCB, scored on the seed left out (the layout of Table 3)",
        ("task", "model", "size", "mean", "± std", f"LCB z={z:g}", "± std ", "mean, redrawn",
         "LCB, redrawn", "gain", "low", "high", "LCB better", "equal", "worse"),
        rows,
        f"Left: the study's seeds. Right: expectations over {REDRAWS} redrawn sets of as many "
        "seeds from the same grid; low to high hold the middle 95% of the sets' gains, and the "
        "last columns are shares of the sets.",
    )  # fmt: skip


def _sweep(cells: Sequence[Measured]) -> Table:
    rows: list[Sequence[Value]] = []
    for cell in cells:
        own = [row["loso_mean"] for row in lcb_sweep(cell.scores, SWEEP)]
        redrawn = [selection_gain(cell.redrawn, z).by_lcb for z in SWEEP]
        rows += [(*cell.key, "the study's", *own), (*cell.key, "redrawn", *redrawn)]
    return Table(
        "sweep",
        "The weight z of the variance penalty: score on the seed left out",
        ("task", "model", "size", "seeds", *(f"z = {z:g}" for z in SWEEP)),
        rows,
        f"z = 0 chooses by the mean. Redrawn: expectation over {REDRAWS} sets of seeds.",
        digits=4,
    )


def _near_ties(cells: Sequence[Measured]) -> Table:
    rows: list[Sequence[Value]] = []
    for cell in cells:
        flips = cell.flips
        for low, high in pairwise(GAPS):
            inside = (flips.gap >= low) & (flips.gap < (high if high <= 1 else np.inf))
            rows.append((*cell.key, _bin(low, high), *_share(flips, inside)))
        rows.append((*cell.key, "not told apart by all items", *_share(flips, flips.near_tied)))
    return Table(
        "near_ties",
        "Where the instability lies: pairs of prompts by the gap between them",
        ("task", "model", "size", "gap between the means", "pairs", "share of pairs",
         "how often a pair flips", "share of all flips"),
        rows,
        "Gap: difference of two prompts' means over all items of the grid. A pair flips between "
        f"two seeds that order it oppositely (ties are no order), over {REDRAWS} redrawn sets of "
        "seeds. Not told apart: the 95% interval of the gap, paired over all items, holds 0.",
    )  # fmt: skip


def _share(flips: PairFlips, inside: Any) -> tuple[int, float, float | None, float | None]:
    n = int(inside.sum())
    rate = float(flips.flips[inside].mean()) if n else None
    return n, n / len(flips.gap), rate, flips.share_of_flips(inside)


def _bin(low: float, high: float) -> str:
    return f"{low:.2f} to {high:.2f}" if high <= 1 else f"{low:.2f} and more"


def _prompts(
    grids: Sequence[Grid],
    names: Mapping[str, str],
    cells: Sequence[Measured],
    texts: Mapping[str, str],
) -> Table:
    rows: list[Sequence[Value]] = []
    for grid in grids:
        own = [cell for cell in cells if cell.grid is grid]
        wins = sum(
            (np.bincount(cell.scores.argmax(axis=1), minlength=len(grid.prompts)) for cell in own),
            np.zeros(len(grid.prompts), dtype=np.intp),
        )
        for at in np.argsort(-grid.scores.mean(axis=1), kind="stable").tolist():
            interval = _interval(grid.scores[at])
            text = " ".join(texts.get(grid.prompts[at], "").split())
            rows.append(
                (grid.name, names[grid.model], grid.prompts[at], float(grid.scores[at].mean()),
                 interval.low, interval.high, int(wins[at]), text)
            )  # fmt: skip
    return Table(
        "prompts",
        "Every prompt on all items of the grid, best first",
        ("task", "model", "prompt", "mean score", "low", "high", "wins", "wording"),
        rows,
        "95% intervals over items: Wilson's where scores are 0 or 1, else Student's t. Wins: over "
        "all seeds and sizes.",
    )


def _interval(scores: Floats) -> Interval:
    if np.isin(scores, (0.0, 1.0)).all():
        return wilson_cluster(scores == 1.0)
    return mean_t_cluster(scores)


def _published(cells: Sequence[Measured]) -> Table:
    rows: list[Sequence[Value]] = []
    for key, figure in published(STUDY).items():
        task, size, model, measure_name = key.split("/")
        own = [
            value
            for cell in cells
            if cell.grid.task == task and cell.size == int(size)
            if (value := _ours(cell, measure_name)) is not None
        ]
        rows.append(
            (task, int(size), model, measure_name.replace("_", " "), figure.value, figure.place,
             min(own) if own else None, max(own) if own else None)
        )  # fmt: skip
    return Table(
        "published",
        "What the paper states, beside ours",
        ("task", "size", "paper's model", "measure", "paper", "place", "ours, lowest",
         "ours, highest"),
        rows,
        "Other models, other prompts and other items: the figures are set side by side, not "
        "compared. Ours are the lowest and the highest of this study's models at that size.",
    )  # fmt: skip


def _ours(cell: Measured, name: str) -> float | None:
    fields = {
        "spearman": "spearman_mean", "kendall": "kendall_mean", "loso_lcb": "loso_lcb_mean",
        "loso_mean": "loso_mean_mean", "top1_global_at_most": "top1_global",
    }  # fmt: skip
    value: float | None = getattr(cell.stability, fields.get(name, name))
    return value


def _findings(cells: Sequence[Measured], k: int) -> Iterator[str]:
    for grid in dict.fromkeys(cell.grid.name + "\0" + cell.model for cell in cells):
        name, model = grid.split("\0")
        own = [cell for cell in cells if cell.key[:2] == (name, model)]
        small, large = own[0], own[-1]
        yield (
            f"for {model} on {name}, rank correlation between seeds is {_rho(small)} at "
            f"{small.size} items"
            + (f" and {_rho(large)} at {large.size}" if large is not small else "")
            + f"; {small.stability.unique_top1} of {len(small.grid.prompts)} prompts win under "
            f"some of {small.stability.n_conditions} seeds at {small.size} items"
            + (f", {large.stability.unique_top1} at {large.size}" if large is not small else "")
        )
        near = small.flips.near_tied
        share = small.flips.share_of_flips(near)
        if share is not None:
            yield (
                f"for {model} on {name}, {percent(share)} of all flips at {small.size} items lie "
                f"among the {percent(float(near.mean()))} of prompt pairs that all "
                f"{len(small.grid.items)} items do not tell apart"
            )
    clear = [cell for cell in cells if cell.gain.low > 0 or cell.gain.high < 0]
    best = max(cells, key=lambda cell: cell.gain.gain)
    worst = min(cells, key=lambda cell: cell.gain.gain)
    yield (
        f"LCB (z = {cells[0].stability.z:g}) against the mean, in expectation over {REDRAWS} sets "
        f"of seeds: from {_signed(worst.gain.gain)} ({_where(worst)}) to "
        f"{_signed(best.gain.gain)} ({_where(best)}); "
        + (
            f"the middle 95% of the sets leave out 0 for {join([_where(cell) for cell in clear])}"
            if clear
            else "nowhere does the middle 95% of the sets leave out 0"
        )
    )


def _rho(cell: Measured) -> str:
    value = cell.stability.spearman_mean
    return "undefined" if value is None else f"{value:z.2f}".replace("-", "−")


def _signed(value: float) -> str:
    return f"{value:+z.4f}".replace("-", "−")


def _where(cell: Measured) -> str:
    return f"{cell.model} on {cell.grid.name}, {cell.size} items"


def _limits(cells: Sequence[Measured], grids: Sequence[Grid]) -> Iterator[str]:
    largest = max(cells, key=lambda cell: cell.overlap)
    if largest.overlap > 0.1:
        yield (
            f"subsets come from {len(largest.grid.items)} items: two seeds' subsets of "
            f"{largest.size} share {percent(largest.overlap)} of their items, so their agreement "
            "is higher than that of fresh samples"
        )
    for grid in grids:
        if grid.unread or grid.cut:
            yield (
                f"for {grid.model} on {grid.name}, {percent(grid.unread)} of the answers could not "
                f"be read and score 0; the token cap cut off {percent(grid.cut)}"
            )
        if grid.left_out:
            yield (
                f"for {grid.model} on {grid.name}, {grid.left_out} items had an error under some "
                "prompt and were left out for all"
            )
    yield (
        "the intervals and expectations hold for these prompts; other wordings of the same task "
        "are not covered"
    )


def _pairs(cells: Sequence[Measured]) -> int:
    k = cells[0].stability.n_conditions
    return k * (k - 1) // 2


def _pictures(cells: Sequence[Measured], k: int) -> Iterator[Picture]:
    from judgesense.studies.prompt_ranking import figures as pictures

    smallest = min(cell.size for cell in cells)
    for cell in cells:
        if cell.size == smallest:
            name = _file_name(f"ranks-{cell.grid.name}-{cell.model}")
            yield Picture(
                name,
                f"{cell.grid.name}, {cell.model}: ranks of the prompts under each seed's "
                f"{cell.size} items; prompts that win under some seed are coloured",
                partial(pictures.ranks, cell),
            )
    yield Picture(
        "stability-by-size",
        "Agreement between seeds by subset size: rank correlation, and the same winner",
        partial(pictures.by_size, list(cells)),
    )
    yield Picture(
        "flips-by-gap",
        f"How often two seeds of {smallest} items order a pair of prompts oppositely, against the "
        "gap between the prompts on all items",
        partial(pictures.flips, [cell for cell in cells if cell.size == smallest]),
    )
    yield Picture(
        "lcb-sweep",
        f"What the LCB wins over the mean on the seed left out, by its weight z (expectation over "
        f"{REDRAWS} sets of seeds)",
        partial(pictures.sweep, list(cells), SWEEP),
    )


def _file_name(text: str) -> str:
    return "".join(c if c.isalnum() or c in "-." else "-" for c in text).replace("--", "-")
