"""What settles the check `steady`: how many items, or how many wordings."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from judgesense.decisions.view import distinct
from judgesense.statistics.arrays import Bools, Codes
from judgesense.statistics.intervals import wilson_cluster
from judgesense.statistics.planning import (
    PROBABILITY,
    ShareDesign,
    items_for_share,
    share_chances,
)
from judgesense.text import join, percent
from judgesense.trust.thresholds import FEWEST_RANDOM, MOST_ITEMS

_MOST_WORDINGS = 100


def steady_plan(
    agree: Bools,
    clusters: Codes,
    items: Codes,
    template_a: Codes,
    template_b: Codes,
    *,
    threshold: float,
    confidence_level: float = 0.95,
) -> tuple[dict[str, int | None], str]:
    """How many items, or wordings, put the interval of JSS on one side of a threshold.

    Args:
        agree: whether the two wordings of each decided pair agree, shape (n,).
        clusters: cluster of each pair, shape (n,).
        items: item of each pair, shape (n,).
        template_a: one wording of each pair, shape (n,).
        template_b: the other, shape (n,).
        threshold: within (0, 1).
        confidence_level: of the two-sided interval.

    Returns:
        ``items_needed`` with its range and ``wordings_needed``, with 80% probability, as in the
        details of a check in ``report.json``; and a sentence. Items are those in all, the run's
        included; wordings settle it on the run's own items. Empty without an interval to start
        from (one cluster).

    >>> rng = np.random.default_rng(0)
    >>> items = np.arange(300) // 3
    >>> found, text = steady_plan(rng.random(300) < 0.87, items, items, np.tile([0, 0, 1], 100),
    ...                           np.tile([1, 2, 2], 100), threshold=0.8)
    >>> found["items_needed_low"] < found["items_needed"] < found["items_needed_high"]
    True
    """
    k, n_items = distinct(clusters), distinct(items)
    design = design_of(agree, clusters, items, template_a, template_b)
    if design is None or not 0 < threshold < 1:
        return {}, ""
    needed = items_for_share(design, threshold=threshold, confidence_level=confidence_level, seen=k)
    items_of = [each and max(n_items + 1, math.ceil(each * (n_items / k))) for each in needed]
    planned, low, high = (each if each and each <= MOST_ITEMS else None for each in items_of)
    wordings = None
    if design.wording_variance > 0:
        counts = np.arange(design.wordings + 1, _MOST_WORDINGS + 1)
        now = design.wordings * (design.wordings - 1)
        wider = replace(design, wordings=counts, pairs=design.pairs * (counts * (counts - 1) / now))
        chances = share_chances(wider, k, threshold=threshold, confidence_level=confidence_level)
        enough = np.flatnonzero(chances >= PROBABILITY)
        wordings = int(counts[enough[0]]) if len(enough) else None
    found = {
        "items_needed": planned,
        "items_needed_low": low,
        "items_needed_high": high,
        "wordings_needed": wordings,
    }
    ways = []
    if planned is not None:
        between = f"{low} to {f'more than {MOST_ITEMS}' if high is None else high}; now {n_items}"
        ways.append(f"about {planned} items ({between})")
    if wordings is not None:
        ways.append(f"{wordings} wordings")
    if not ways:
        return found, "no number of items or wordings is likely to settle it"
    return found, f"{join(ways, 'or')} settle it with {percent(PROBABILITY)} probability"


def design_of(
    agree: Bools,
    clusters: Codes,
    items: Codes,
    template_a: Codes,
    template_b: Codes,
) -> ShareDesign | None:
    """The design that a run's pairs were drawn from, as far as they tell."""
    fixed = wilson_cluster(agree, clusters) if len(agree) else None
    if fixed is None or fixed.effective_n is None or fixed.icc is None:
        return None
    k, share, n = distinct(clusters), float(agree.mean()), fixed.effective_n
    if share in (0.0, 1.0):
        # A share of 1 in a sample does not promise a share of 1.
        share = (n * share + 0.5) / (n + 1)
    wordings = len(np.union1d(template_a, template_b))
    pure = cell = 0.0
    if wordings >= FEWEST_RANDOM:
        pure, cell = _over_wordings(agree, clusters, template_a, template_b)
    design = ShareDesign(
        share, max(1.0, len(agree) / k), 0.0, wordings, pure * wordings, cell * wordings * k,
    )  # fmt: skip
    if agree.all() or not agree.any():
        # Pairs without exception tell nothing of how alike those of an item are: assume the worst.
        return replace(design, icc=1.0)
    # `wilson_cluster` prints a correlation above the true one with few clusters: undo that.
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        if replace(design, icc=middle).printed_icc(k, share) < fixed.icc:
            low = middle
        else:
            high = middle
    return replace(design, icc=high if high < 1e-6 else low)


def _over_wordings(
    agree: Bools,
    clusters: Codes,
    template_a: Codes,
    template_b: Codes,
) -> tuple[float, float]:
    """The jackknife variance of JSS over wordings in two parts: of wordings, and of cells.

    Leaving out a wording changes JSS because the wording differs, and because its answers to these
    items happen to. The second part, seen in how the change varies over clusters, shrinks with more
    items. Both are 0 where one wording is in all pairs.
    """
    _, cluster = np.unique(clusters, return_inverse=True)
    templates, both = np.unique(np.concatenate([template_a, template_b]), return_inverse=True)
    one, two = np.split(both, 2)
    k, n_wordings, n = int(cluster.max()) + 1, len(templates), len(agree)
    gap = agree - agree.mean()
    changes = np.zeros((n_wordings, k))
    for code in range(n_wordings):
        rest = (one != code) & (two != code)
        if not rest.any():
            return 0.0, 0.0
        changes[code] = np.bincount(cluster, gap * (rest / rest.sum() - 1 / n), minlength=k)
    changes -= changes.mean(axis=0)
    whole = (n_wordings - 1) / n_wordings * float((changes.sum(axis=1) ** 2).sum())
    cell = (n_wordings - 1) / n_wordings * float((k * changes.var(axis=1, ddof=1)).sum())
    return max(0.0, whole - cell), cell
