"""Which traits are over-represented among some items, one item a cluster on each side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from judgesense.statistics.arrays import Bools, Codes, Floats
from judgesense.statistics.groups import SMALLEST

_FEWEST_HITS = 3
"""Hits with a trait that are needed to say that they share it."""


@dataclass(frozen=True)
class Enriched:
    """For each trait, shape (f,): the items with it, the share of hits with and without it, and
    the one-sided p-value of "no more hits with it" (1 where there are too few to say)."""

    n: Codes
    share: Floats
    rest: Floats
    p: Floats


def enriched(hits: Bools, traits: Bools, clusters: Codes) -> Enriched:
    """Fisher's exact test of each trait, one-sided.

    Items that share a cluster are no draws of their own. Of a cluster's items with a trait one is
    drawn at random, and one of those without it: that they resemble each other makes the test
    stricter, never laxer. The shares are those of all items.

    Args:
        hits: which items are of the kind in question, shape (n,).
        traits: which item has which trait, shape (f, n).
        clusters: a code per item, shape (n,).

    >>> hits = np.arange(60) < 12
    >>> result = enriched(hits, np.stack([hits, ~hits]), np.arange(60))
    >>> result.share.tolist(), result.rest.tolist(), bool(result.p[0] < 1e-10), result.p[1].item()
    ([1.0, 0.0], [0.0, 1.0], True, 1.0)
    """
    from scipy.stats import hypergeom

    size, total = len(hits), int(hits.sum())
    n = traits.sum(axis=1)
    n_hits = traits[:, hits].sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        share, rest = n_hits / n, (total - n_hits) / (size - n)
    mask = (n >= SMALLEST) & (size - n >= SMALLEST) & (n_hits >= _FEWEST_HITS) & (share > rest)
    p = np.ones(len(traits))
    order = np.random.default_rng(0).permutation(size)
    is_single = len(np.unique(clusters)) == size
    for at in np.flatnonzero(mask):
        rows = order
        if not is_single:
            # The first of each cluster and side in the random order.
            _, first = np.unique(clusters[order] * 2 + traits[at, order], return_index=True)
            rows = order[first]
        has_trait, is_hit = traits[at, rows], hits[rows]
        p[at] = hypergeom.sf(
            (has_trait & is_hit).sum() - 1, len(rows), is_hit.sum(), has_trait.sum()
        )
    return Enriched(n, share, rest, p)
