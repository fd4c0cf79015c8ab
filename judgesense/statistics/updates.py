"""What an update of a judge moves, beyond what another change of the prompt moves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from judgesense.statistics.arrays import Bools, Floats
from judgesense.statistics.inputs import cluster_codes

FEWEST_RANDOM = 4
"""From this number of wordings on, they count as a sample of wordings."""

NOISE_FACTOR = 2.0
"""The most that noise alone changes, in units of what rewording changes.

Let p and q be the probabilities of an item's labels under two wordings. Asked again, the first
differs with 1 - sum p², the second differs from it with 1 - sum p q. The latter is at least
1 - max p, the former at most (1 - max p)(1 + max p), so at most twice that.
"""


class Excess(NamedTuple):
    """How much more often verdicts move by one change than by another.

    ``moved`` and ``other`` are both shares, ``excess`` their difference; None where nothing was
    compared. The ends are None with a single cluster. ``random`` says whether wordings count as a
    sample.
    """

    moved: float | None
    other: float | None
    excess: float | None
    low: float | None
    high: float | None
    n_clusters: int
    random: bool


def excess_moves(
    moved: Any,
    clusters: Any,
    other: Any,
    other_clusters: Any,
    *,
    wordings: Any = None,
    other_wordings: tuple[Any, Any] | None = None,
    factor: float = 1.0,
    error: float = 0.05,
) -> Excess:
    """How much more often an update moves verdicts than another change does, on the same items.

    The excess is a difference of two ratios over clusters, with its linearised variance (Cochran
    1977, section 6.14). Before the upper end is computed, one cluster is added in which the update
    moves everything and the other change nothing; before the lower end, the opposite. Moves are
    rare and come in whole clusters, and a t interval without that cluster is too short where few
    were seen (`benchmarks/updates` has how often each is wrong). From four wordings on, the
    variance over wordings is added (the jackknife's, or that of more rewordings like these if it
    is larger), with Satterthwaite's degrees of freedom: the claim is about wordings like these.

    Args:
        moved, other: whether the update, and the other change, moved each verdict, shapes (n,) and
            (m,); the two kinds of clusters are ids of one kind.
        wordings: shape (n,), the wording of each verdict; None for a claim about these wordings.
        other_wordings: both wordings of each pair, shape (m,) each; None as `wordings`.
        factor: how many times the other change's share is subtracted. The same prompt asked again
            changes at most `NOISE_FACTOR` times what rewording does.
        error: the chance that the lower end lies above the truth, and as much for the upper end.

    >>> result = excess_moves([1, 0, 0, 0], list("pqrs"), [1, 0, 0, 0, 0, 1], list("pqrsps"))
    >>> round(result.excess, 3), result.low < 0 < result.high
    (-0.083, True)
    """
    from scipy.special import stdtrit

    sides = np.asarray(moved, bool), np.asarray(other, bool)
    n = [len(side) for side in sides]
    codes, k = cluster_codes([*clusters, *other_clusters], sum(n))
    side_codes = codes[: n[0]], codes[n[0] :]
    sums = np.stack(
        [
            np.bincount(codes, weights, minlength=k)
            for codes, side in zip(side_codes, sides, strict=True)
            for weights in (side, None)
        ]
    ).astype(np.float64)
    shares = float(sides[0].mean()), float(sides[1].mean())
    over_wordings, n_wordings = 0.0, 0
    if wordings is not None and other_wordings is not None:
        over_wordings, n_wordings = _wording_variance(sides, wordings, other_wordings)
    ends: list[float | None] = [None, None]
    if k > 1:
        for place, sign in enumerate((-1, 1)):
            mean, over_items = _with_pseudo_cluster(sums, sign, factor)
            total = over_items + over_wordings
            reach = 0.0
            if total > 0:
                shares_of_df = over_items**2 / k + over_wordings**2 / max(n_wordings - 1, 1)
                reach = float(stdtrit(total**2 / shares_of_df, 1 - error)) * float(np.sqrt(total))
            ends[place] = float(np.clip(mean + sign * reach, -1, 1))
    random = n_wordings >= FEWEST_RANDOM
    return Excess(*shares, shares[0] - factor * shares[1], ends[0], ends[1], k, random)


def _with_pseudo_cluster(sums: Floats, sign: int, factor: float) -> tuple[float, float]:
    """The excess and its variance over clusters, with one cluster more that has moved one way."""
    sizes = sums[[1, 3]].mean(axis=1)
    hits = (1.0, 0.0) if sign > 0 else (0.0, 1.0)
    extra = np.array([hits[0] * sizes[0], sizes[0], hits[1] * sizes[1], sizes[1]])
    x, n_x, y, n_y = np.column_stack([sums, extra])
    p, q = x.sum() / n_x.sum(), y.sum() / n_y.sum()
    residuals = (x - p * n_x) / n_x.sum() - factor * (y - q * n_y) / n_y.sum()
    k = len(x)
    return float(p - factor * q), float(k / (k - 1) * (residuals**2).sum())


def _wording_variance(
    sides: tuple[Bools, Bools],
    wordings: Any,
    pairs: tuple[Any, Any],
) -> tuple[float, int]:
    """Variance of the excess over wordings, and their number; 0 for too few of them."""
    names = [*wordings, *pairs[0], *pairs[1]]
    codes, count = cluster_codes(names, len(names))
    if count < FEWEST_RANDOM:
        return 0.0, count
    of_update, a, b = np.split(codes, [len(wordings), len(wordings) + len(pairs[0])])
    excesses = []
    for wording in range(count):
        masks = of_update != wording, (a != wording) & (b != wording)
        if not (masks[0].any() and masks[1].any()):
            return 0.0, 0
        shares = (side[mask].mean() for side, mask in zip(sides, masks, strict=True))
        excesses.append(float(next(shares)) - float(next(shares)))
    values = np.array(excesses)
    jackknife = float((count - 1) / count * ((values - values.mean()) ** 2).sum())
    # An update that is one more rewording of each wording varies as these do, although the ones
    # drawn may look alike: twice the variance of the mean share that differs from a wording.
    sums = np.bincount(a, sides[1], minlength=count) + np.bincount(b, sides[1], minlength=count)
    pairs_of = np.bincount(a, minlength=count) + np.bincount(b, minlength=count)
    differs = sums[pairs_of > 0] / pairs_of[pairs_of > 0]
    return max(jackknife, 2 * float(differs.var(ddof=1)) / count), count
