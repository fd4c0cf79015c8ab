"""Whether the judged systems rank alike under every wording of the judge's prompt."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.inputs import cluster_codes, encode
from judgesense.statistics.ranks import competition_ranks, leaders

_CELLS_AT_ONCE = 4_000_000
"""Scores shuffled at once: 32 MB."""


@dataclass(frozen=True)
class Consequence:
    """Rankings of the judged systems, one under each wording (template).

    `winner_change_rate` and `ranking_change_rate` are the shares of template pairs under which the
    winner (all of them, if systems tie), or anything in the ranking, differs. `winners` lists the
    best systems under each of `templates`; `modal_winner` is the most frequent of these sets.
    `scores` are mean scores, one row per template, one column per system. An undefined figure is
    None, and `degenerate` says why, and how many outputs lack a score under a template.

    `repeat_change_rate` is the share of pairs of repeats of one template under which anything in
    the ranking differs: what asking the same prompt again does. `p_value` tests whether the
    templates change the order of the systems by more than the items' chance differences do; None
    if all templates rank alike.
    """

    systems: list[str]
    templates: list[str]
    scores: list[list[float]]
    winners: list[list[str]]
    modal_winner: list[str]
    winner_change_rate: float | None
    ranking_change_rate: float | None
    repeat_change_rate: float | None
    p_value: float | None
    degenerate: str | None


def consequence(
    scores: Any,
    system_ids: Any,
    template_ids: Any,
    item_ids: Any,
    *,
    repeat_ids: Any = None,
    n_permutations: int = 999,
    seed: int = 0,
) -> Consequence:
    """Measure how often the ranking of systems, or the winner, depends on the judge's wording.

    A system's score under a template is the mean over its outputs that were judged under every
    template, so that templates differ only in the judge's answers. Noise raises a change rate.

    The p-value is that of a permutation test: within each item, the
    answers of all its outputs under one template stay together, and templates are shuffled. Its
    null hypothesis is that no template favours a system, so that rankings differ only because the
    judge's answers to these items happen to differ, as they also may if asked again. The statistic
    sums |difference between two systems' scores under one template - that under another| over all
    systems and templates where the two systems change their order. A template that is stricter
    with all systems counts as no difference.

    Args:
        scores: one per row: a number (1 and 0 for a two-label task), or None if undecided.
        system_ids: the system whose output was judged, one string per row.
        template_ids: the wording, one string per row.
        item_ids: the item that the output answers, one string or integer per row; systems may share
            items. Rows of one item, system and template (orders, repeats) are averaged.
        repeat_ids: which repeat of its prompt the row is, one string or integer per row; None
            leaves `repeat_change_rate` undefined.
        n_permutations: number of shuffles behind the p-value.

    >>> systems, templates = ["x", "y"] * 4, ["t1", "t1", "t2", "t2"] * 2
    >>> result = consequence([1, 0, 0, 1] * 2, systems, templates, [1, 1, 1, 1, 2, 2, 2, 2])
    >>> result.winners, result.winner_change_rate
    ([['x'], ['y']], 1.0)
    """
    systems: dict[str, int] = {}
    templates: dict[str, int] = {}
    system = encode(system_ids, "system_ids", systems)
    template = encode(template_ids, "template_ids", templates)
    value = np.array([np.nan if score is None else score for score in scores], np.float64)
    n = len(value)
    item, _ = cluster_codes(item_ids, n)
    n_systems, n_templates = len(systems), len(templates)

    repeat_rate = None
    if repeat_ids is not None:
        repeat, _ = cluster_codes(repeat_ids, n)
        repeat_rate = _repeat_changes(value, system, template, item, repeat)

    stats, n_outputs, n_excluded = _stats(value, system, template, item, n_systems, n_templates)
    names, wordings = list(systems), list(templates)
    reasons = []
    if n_excluded:
        reasons.append(f"{n_excluded} of {n_outputs} outputs lack a score under a template")
    absent = np.flatnonzero(stats[:, -1].sum(axis=0) == 0)
    if len(absent):
        unscored = ", ".join(names[index] for index in absent)
        reasons.append(f"no output scored under every template for: {unscored}")
        reason = "; ".join(reasons)
        return Consequence(names, wordings, [], [], [], None, None, repeat_rate, None, reason)
    totals = stats.sum(axis=0)
    means = totals[:-1] / totals[-1]
    winners = [sorted(names[s] for s in np.flatnonzero(row)) for row in leaders(means)]
    winner_rate = ranking_rate = p_value = None
    if n_templates < 2:
        reasons.append("one template: no other wording to compare with")
    elif n_systems < 2:
        reasons.append("one system: no ranking")
    else:
        winner_rate, ranking_rate = _changes(means)
        if ranking_rate > 0 and len(stats) > 1:
            p_value = _shuffled_p(stats, n_permutations, seed)
    return Consequence(
        systems=names,
        templates=wordings,
        scores=means.tolist(),
        winners=winners,
        modal_winner=list(Counter(map(tuple, winners)).most_common(1)[0][0]),
        winner_change_rate=winner_rate,
        ranking_change_rate=ranking_rate,
        repeat_change_rate=repeat_rate,
        p_value=p_value,
        degenerate="; ".join(reasons) or None,
    )


def _stats(
    value: Floats, system: Codes, template: Codes, item: Codes, n_systems: int, n_templates: int
) -> tuple[Floats, int, int]:
    """Sums of scores, shape (items, templates + 1, systems); last the numbers of outputs.

    Outputs (a system's answer to an item) without a score under a template are left out: the
    numbers of all outputs, and of these, come with it.
    """
    outputs, output = np.unique(item * n_systems + system, return_inverse=True)
    cell = output * n_templates + template
    has_score = ~np.isnan(value)
    size = len(outputs) * n_templates
    tally = np.bincount(cell[has_score], minlength=size)
    sums = np.bincount(cell[has_score], value[has_score], minlength=size)
    is_complete = (tally.reshape(-1, n_templates) > 0).all(axis=1)
    grid = (sums / np.maximum(tally, 1)).reshape(-1, n_templates)[is_complete]
    _, of_item = np.unique(outputs[is_complete] // n_systems, return_inverse=True)
    stats = np.zeros((int(of_item.max(initial=-1)) + 1, n_systems, n_templates + 1))
    stats[of_item, outputs[is_complete] % n_systems] = np.column_stack([grid, np.ones(len(grid))])
    return stats.transpose(0, 2, 1), len(outputs), int((~is_complete).sum())


def _repeat_changes(
    value: Floats, system: Codes, template: Codes, item: Codes, repeat: Codes
) -> float | None:
    """Share of pairs of repeats of one template that rank the systems differently.

    Each pair is compared on the outputs that both repeats scored under this template.
    """
    known = ~np.isnan(value)
    n_systems = int(system.max()) + 1
    output = item * n_systems + system
    changed = []
    for wording in range(int(template.max()) + 1):
        rows = np.flatnonzero(known & (template == wording))
        for pair in combinations(np.unique(repeat[rows]), 2):
            rows_of_pair = [rows[repeat[rows] == code] for code in pair]
            both = np.intersect1d(*(output[side] for side in rows_of_pair))
            means = np.full((2, n_systems), np.nan)
            for at, side in enumerate(rows_of_pair):
                shared = side[np.isin(output[side], both)]
                tally = np.bincount(system[shared], minlength=n_systems)
                sums = np.bincount(system[shared], value[shared], minlength=n_systems)
                np.divide(sums, tally, out=means[at], where=tally > 0)
            if n_systems > 1 and not np.isnan(means).any():
                changed.append(_changes(means)[1])
    return float(np.mean(changed)) if changed else None


def _shuffled_p(stats: Floats, n_permutations: int, seed: int) -> float:
    """p-value of `_swaps` with templates shuffled within items; ``stats`` as of `_stats`."""
    sums, outputs = stats[:, :-1], stats[:, -1]
    counts = outputs.sum(axis=0)
    n_items, n_templates, _ = sums.shape
    # Whether a template is stricter with all systems does not matter: level it before shuffling.
    strictness = (sums.sum(axis=0) / counts).mean(axis=1)
    sums = sums - strictness[:, None] * outputs[:, None]
    observed = _swaps(sums.sum(axis=0)[None] / counts)[0]
    rng = np.random.default_rng(seed)
    step = max(1, _CELLS_AT_ONCE // sums.size)
    extreme = 0
    for start in range(0, n_permutations, step):
        size = (min(step, n_permutations - start), n_items, n_templates)
        shuffled = rng.permuted(np.broadcast_to(np.arange(n_templates), size), axis=2)
        means = np.take_along_axis(sums[None], shuffled[..., None], axis=2).sum(axis=1) / counts
        extreme += int((_swaps(means) >= observed - 1e-9).sum())
    return (1 + extreme) / (1 + n_permutations)


def _swaps(means: Floats) -> Floats:
    """Size of the changes of order, summed over two systems and two templates; (B, T, S) means."""
    sizes = np.zeros(len(means))
    for a, b in combinations(range(means.shape[2]), 2):
        gap = np.round(means[..., a] - means[..., b], 9)
        for t, u in combinations(range(means.shape[1]), 2):
            # From a tie to a lead is half a change of order: levelled scores hardly ever tie.
            share = np.abs(np.sign(gap[:, t]) - np.sign(gap[:, u])) / 2
            sizes += share * np.abs(gap[:, t] - gap[:, u])
    return sizes


def _changes(means: Floats) -> tuple[float, float]:
    """Shares of template pairs with another winner and another ranking, from (T, S) means."""
    ranks = competition_ranks(means)
    rows, others = np.triu_indices(len(means), 1)
    winner = ((ranks[rows] == 1) != (ranks[others] == 1)).any(axis=1)
    return float(winner.mean()), float((ranks[rows] != ranks[others]).any(axis=1).mean())
