"""What prompt-ranking shows: its tables, figures, findings and limits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from judgesense.reporting.study_result import Record, Value
from judgesense.statistics.arrays import Bools
from judgesense.statistics.intervals import mean_t_cluster, wilson_cluster
from judgesense.statistics.ranking import PairFlips
from judgesense.statistics.ranks import chosen, competition_ranks
from judgesense.statistics.sensitivity import prompt_sensitivity
from judgesense.studies.common.figures import Lines
from judgesense.studies.common.study import Figure, Study, Tables, published, table
from judgesense.studies.prompt_ranking.grid import (
    FEW_SHOT,
    REDRAWS,
    SHOTS,
    RankedPrompts,
    Ranking,
)
from judgesense.text import join, number, percent, signed

STUDY = "prompt-ranking"

GAPS = (0.0, 0.01, 0.02, 0.05, 0.10, 1.01)
"""Edges of the gaps between two prompts' mean scores; the last bin is open upwards."""


def _figures(ranking: Ranking, *names: str) -> Iterator[Record]:
    """A record per cell, with the figures of these names."""
    for cell in ranking.cells:
        yield {**cell.key, **{name: cell.figures[name] for name in names}}


@table(
    "stability",
    "Rankings of the prompts between seeds (the layout of Table 1)",
    lambda ranking: (
        f"Mean ± population std over the {ranking.seeds * (ranking.seeds - 1) // 2} pairs of "
        f"seeds; the top sets have {ranking.k} prompts. shared items: the mean share of a subset "
        "that is also in another seed's subset; shared items make seeds agree."
    ),
    spearman_mean="Spearman",
    spearman_std="± std",
    kendall_mean="Kendall",
    kendall_std="± std",
    top1_pairwise_mean="same top-1",
    top1_pairwise_std="± std",
    topk_pairwise_mean="top set overlap",
    topk_pairwise_std="± std",
)
def stability(ranking: Ranking) -> Iterator[Record]:
    """Rank correlations and common winners between seeds."""
    measures = ("spearman", "kendall", "top1_pairwise", "topk_pairwise")
    names = [f"{name}_{kind}" for name in measures for kind in ("mean", "std")]
    return _figures(ranking, "shared_items", *names)


@table(
    "consistency",
    "Whether seeds agree on the best prompt (the layout of Table 2)",
    lambda ranking: (
        "Consistency: the share of seeds with the most frequent winner, and the mean overlap with "
        f"the most frequent set of the {ranking.k} best. unique top-1: how many prompts win under "
        "at least one seed."
    ),
    top1_global="top-1 consistency",
    topk_global="top set consistency",
    unique_top1="unique top-1",
    n_conditions="seeds",
)
def consistency(ranking: Ranking) -> Iterator[Record]:
    """How many prompts win, and how often the same one does."""
    return _figures(ranking, "top1_global", "topk_global", "unique_top1", "n_conditions")


@table(
    "selection",
    "Choosing by the mean or by LCB, scored on the seed left out (the layout of Table 3)",
    lambda ranking: (
        f"LCB: lower confidence bound, by z. The first two means use the study's "
        f"seeds; the redrawn ones are expectations over {REDRAWS} sets of as many seeds from the "
        "same scores. The middle 95% of the sets' gains lie from gain low to gain high; the last "
        "three columns are shares of the sets."
    ),
    z="z",
    loso_mean_mean="mean",
    loso_mean_std="± std",
    loso_lcb_mean="LCB",
    loso_lcb_std="± std",
    mean_redrawn="mean, redrawn",
    lcb_redrawn="LCB, redrawn",
    lcb_better="LCB better",
    lcb_worse="LCB worse",
)
def selection(ranking: Ranking) -> Iterator[Record]:
    """The prompt chosen by the mean against the one chosen by LCB, with each z."""
    loso = [f"loso_{name}_{kind}" for name in ("mean", "lcb") for kind in ("mean", "std")]
    gains = ("gain", "gain_low", "gain_high", "lcb_better", "equal", "lcb_worse")
    for cell in ranking.cells:
        for z, figures in cell.by_z.items():
            names = (*loso, "mean_redrawn", "lcb_redrawn", *gains)
            yield {**cell.key, "z": z, **{name: figures[name] for name in names}}


@table(
    "near_ties",
    "Which pairs of prompts flip, by the gap between them",
    "gap: difference of two prompts' means over all items. A pair flips if two seeds order it "
    f"oppositely (a tie is no flip); rates are over {REDRAWS} redrawn sets of seeds. not told "
    "apart: the 95% interval of the gap, paired over all items, contains 0.",
    gap="gap between the means",
    n_pairs="pairs",
    flip_rate="how often a pair flips",
    share_of_flips="share of all flips",
)
def near_ties(ranking: Ranking) -> Iterator[Record]:
    """How often pairs of prompts flip, by the gap between them."""
    for cell in ranking.cells:
        flips = cell.flips
        for low, high in pairwise(GAPS):
            inside = (flips.gap >= low) & (flips.gap < (high if high <= 1 else np.inf))
            gap = f"{low:.2f} to {high:.2f}" if high <= 1 else f"{low:.2f} or more"
            yield {**cell.key, "gap": gap, **_flips(flips, inside)}
        ties = _flips(flips, flips.near_tied)
        yield {**cell.key, "gap": "not told apart by all items", **ties}


def _flips(flips: PairFlips, pairs: Bools) -> dict[str, Value]:
    n = int(pairs.sum())
    return {
        "n_pairs": n,
        "share_of_pairs": n / len(flips.gap),
        "flip_rate": float(flips.flips[pairs].mean()) if n else None,
        "share_of_flips": flips.share_of_flips(pairs),
    }


@table(
    "prompts",
    "Every prompt on all items, best first",
    "95% intervals over items: Wilson's where scores are 0 or 1, else Student's t. wins: over all "
    "seeds and sizes.",
    score="mean score",
)
def prompts(ranking: Ranking) -> Iterator[Record]:
    """Every prompt on all items."""
    for cells in ranking.series:
        grid = cells[0].grid
        winners = np.concatenate([cell.winners for cell in cells])
        wins = np.bincount(winners, minlength=len(grid.prompts))
        means = grid.scores.mean(axis=1)
        for at in np.argsort(competition_ranks(means), kind="stable").tolist():
            scores = grid.scores[at]
            binary = np.isin(scores, (0.0, 1.0)).all()
            interval = wilson_cluster(scores == 1.0) if binary else mean_t_cluster(scores)
            yield {
                "task": grid.name,
                "model": grid.model,
                "prompt": grid.prompts[at],
                "score": float(means[at]),
                "ci_low": interval.low,
                "ci_high": interval.high,
                "wins": int(wins[at]),
                "wording": " ".join(ranking.texts.get(grid.prompts[at], "").split()),
            }


@table(
    "published",
    "The paper's figures beside this study's",
    "Models, prompts and items differ, so the figures cannot be compared directly. ours: the "
    "lowest and the highest of this study's models at that size.",
    model="paper's model",
    lowest="ours, lowest",
    highest="ours, highest",
)
def paper_figures(ranking: Ranking) -> Iterator[Record]:
    """The figures that the paper states; none beside a score table of other tasks."""
    for key, figure in published(STUDY).items() if ranking.texts else ():
        task, size, model, measure = key.split("/")
        values = [
            value
            for cell in ranking.cells
            if cell.grid.task == task and cell.size == int(size)
            if (value := cell.figures[measure.removesuffix("_at_most")]) is not None
        ]
        yield {
            "task": task,
            "size": int(size),
            "model": model,
            "measure": measure.replace("_", " "),
            **figure.beside(values),
        }


@table(
    "few_shot",
    f"Few-shot prompting: {SHOTS} solved questions before each question",
    "Examples are an intervention that may change answers, so they have a shift, not a JSS. "
    "shift: few-shot minus zero-shot, the mean over prompts, with a 95% t interval over the items "
    "of both. changed: share of scores that differ. helped: prompts that score higher with "
    "examples. Spearman: between the prompts' means with and without examples.",
)
def few_shot(ranking: Ranking) -> Iterator[Record]:
    """Every task asked with and without examples."""
    grids = {cells[0].name: cells[0].grid for cells in ranking.series}
    for grid in grids.values():
        plain = grids.get(grid.series.replace(FEW_SHOT, ""))
        if plain is None or plain is grid:
            continue
        items = [item for item in plain.items if item in grid.items]
        plain_scores, scores = (
            side.scores[:, [side.items.index(item) for item in items]] for side in (plain, grid)
        )
        shift = mean_t_cluster((scores - plain_scores).mean(axis=0))
        means = plain_scores.mean(axis=1), scores.mean(axis=1)
        best = [grid.prompts[int(chosen(values))] for values in means]
        yield {
            "task": plain.name,
            "model": grid.model,
            "zero_shot": float(plain_scores.mean()),
            "few_shot": float(scores.mean()),
            "shift": float((scores - plain_scores).mean()),
            "ci_low": shift.low,
            "ci_high": shift.high,
            "changed": float((plain_scores != scores).mean()),
            "helped": int((means[1] > means[0]).sum()),
            "n_prompts": len(grid.prompts),
            "spearman": prompt_sensitivity(np.transpose(means)).mean_spearman,
            "best_zero_shot": best[0],
            "best_few_shot": best[1],
            "n_items": len(items),
        }


def _agreement(ranking: Ranking, tables: Tables) -> Iterator[Record]:
    measures = {
        "spearman_mean": "Spearman's ρ between seeds",
        "top1_pairwise_mean": "seed pairs with the same winner",
    }
    for name, text in measures.items():
        for row, cell in zip(tables["stability"].rows, ranking.cells, strict=True):
            yield {
                "measure": text,
                "series": cell.name,
                "size": row["size"],
                "value": row[name],
            }


def _of_file(ranking: Ranking, caption: str) -> str:
    """The caption, which names the tasks of a score table: its file, unless it has tasks."""
    tasks = "" if ranking.texts else join(sorted({cell.grid.task for cell in ranking.cells}))
    return f"{tasks}: {caption}" if tasks else caption


FIGURES = (
    Figure(
        "stability-by-size",
        lambda ranking: _of_file(
            ranking, "Agreement between seeds by subset size: rank correlation, and the same winner"
        ),
        _agreement,
        Lines(
            x="size",
            y="value",
            series="series",
            panel="measure",
            xlabel="items of a subset",
            ylabel="agreement",
        ),
    ),
    Figure(
        "flips-by-gap",
        lambda ranking: _of_file(
            ranking,
            "How often two seeds order two prompts oppositely, by their gap on all items",
        ),
        lambda _, results: (row for row in results["near_ties"].rows if row["gap"][0].isdigit()),
        Lines(
            x="gap",
            y="flip_rate",
            series=lambda row: " on ".join(filter(None, (row["model"], row["task"]))),
            panel=lambda row: f"{row['size']} items",
            xlabel="gap between the means",
            ylabel="share of seed pairs that flip",
        ),
    ),
)


def findings(ranking: Ranking, _: Tables) -> Iterator[str]:
    """How stable the rankings are, where pairs flip, and whether LCB chooses better."""
    for cells in ranking.series:
        small, large = cells[0], cells[-1]
        last = [large] if large is not small else []
        rho = join([f"{number(c.stability.spearman_mean, 2)} at {c.size}" for c in (small, *last)])
        wins = join([f"{c.stability.unique_top1} at {c.size}" for c in (small, *last)])
        yield (
            f"for {small.name}, the rank correlation between seeds is {rho} items. Of "
            f"{len(small.grid.prompts)} prompts, the number that win under at least one of "
            f"{ranking.seeds} seeds is {wins} items"
        )
        ties = small.flips.near_tied
        share = small.flips.share_of_flips(ties)
        if share is not None:
            yield (
                f"for {small.name}, {percent(share)} of all flips at {small.size} items are "
                f"between near-ties, the {percent(float(ties.mean()))} of prompt pairs that even "
                f"all {len(small.grid.items)} items do not tell apart"
            )
    gains = [(cell.gain["gain_low"], cell.gain["gain_high"], cell) for cell in ranking.cells]
    clear = [_where(cell) for low, high, cell in gains if low > 0 or high < 0]
    ends = sorted(ranking.cells, key=lambda cell: cell.gain["gain"])
    bottom, top = (f"{signed(c.gain['gain'], 4)} ({_where(c)})" for c in (ends[0], ends[-1]))
    yield (
        f"the expected gain of choosing by LCB (z = {ranking.z:g}) rather than by the mean, over "
        f"{REDRAWS} sets of seeds, is from {bottom} to {top}. The middle 95% of the sets excludes "
        "0 " + (f"for {join(clear)}" if clear else "in no case")
    )


def _where(cell: RankedPrompts) -> str:
    return f"{cell.name}, {cell.size} items"


def limits(ranking: Ranking, _: Tables) -> Iterator[str]:
    """What the figures do not show."""
    largest = max(ranking.cells, key=lambda cell: cell.overlap)
    if largest.overlap > 0.1:
        yield (
            f"subsets come from {len(largest.grid.items)} items: two seeds' subsets of "
            f"{largest.size} share {percent(largest.overlap)} of their items, so they agree more "
            "than fresh samples would"
        )
    for cells in ranking.series:
        grid, where = cells[0].grid, f"for {cells[0].name}"
        if grid.unread or grid.cut:
            yield (
                f"{where}, {percent(grid.unread)} of the answers could not be read and score 0; "
                f"the token cap cut off {percent(grid.cut)}"
            )
        if grid.left_out:
            yield (
                f"{where}, {grid.left_out} items had an error under some prompt and are left out "
                "for all prompts"
            )
    yield (
        "the intervals and expectations hold for these prompts; they do not cover other wordings "
        "of the same task"
    )


SPEC = Study(
    STUDY,
    "Stability of prompt rankings",
    (stability, consistency, selection, near_ties, few_shot, prompts, paper_figures),
    FIGURES,
    (findings,),
    (limits,),
)
