"""Strategies that ask more than once: panels, self-consistency, a fuser; their gains and costs.

"All Prompts Are Created Equal?" (Bhat and Varma), section 5. In arrays of scores, NaN is a missing
vote; in arrays of shares, an item on which a strategy has no score. A cost is an array of tokens
and US dollars, the latter NaN without a price.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.comparison.paired import grouped
from judgesense.statistics.arrays import Floats
from judgesense.statistics.intervals import mean_t_cluster
from judgesense.statistics.ranks import chosen
from judgesense.statistics.selection import crossfit_weights

METHODS = ("majority", "mean", "median")
SINGLE, BEST, SELF, FUSER = "single judge", "best judge", "self-consistency", "fuser"
CONSTANT = "constant score"
"""The strategy that asks no judge: always the most frequent human level."""

Shares = tuple[Floats, Floats]
"""The shares of right and of close scores, by item; NaN without a score."""

_SLACK = 1e-9


def aggregate(votes: Floats, method: str) -> Floats:
    """Combine the votes of the last axis into one score; NaN without any vote.

    Args:
        votes: shape (..., votes), NaN where a vote is missing.
        method: ``majority`` (the most frequent score; of several, the one nearest to the median,
            then the lower), ``mean`` or ``median``; the latter two need not be levels.

    >>> aggregate(np.array([[1.0, 1.0, 3.0], [2.0, np.nan, 3.0]]), "majority").tolist()
    [1.0, 2.0]
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no vote at all: NaN on purpose
        if method == "mean":
            mean: Floats = np.nanmean(votes, axis=-1)
            return mean
        median: Floats = np.nanmedian(votes, axis=-1)
    levels = np.unique(votes[~np.isnan(votes)])
    if method == "median" or not len(levels):
        return median
    counts = (votes[..., None] == levels).sum(axis=-2)
    # Counts differ by at least 1, so that nearness only decides between equal counts.
    nearness = np.nan_to_num(np.abs(levels - median[..., None])) / (2 * (np.ptp(levels) + 1))
    result: Floats = np.where(np.isnan(median), np.nan, levels[np.argmax(counts - nearness, -1)])
    return result


def plurality(votes: Floats, gold: Floats) -> Floats:
    """The share of right answers of the most frequent label, where codes stand for names.

    Args:
        votes: codes, shape (n, judges); NaN is a missing vote, but not all of a row.
        gold: codes, shape (n,).

    Returns:
        Shape (n,): 1 / k if the gold label is one of the k most frequent, else 0, as breaking ties
        at random would give.

    >>> plurality(np.array([[0.0, 0.0, 2.0], [0.0, 2.0, np.nan]]), np.array([0.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    counts = (votes[..., None] == np.unique(votes[~np.isnan(votes)])).sum(axis=1)
    ahead = counts.max(axis=1)
    tied = (counts == ahead[:, None]).sum(axis=1)
    shares: Floats = ((votes == gold[:, None]).sum(axis=1) == ahead) / tied
    return shares


def by_judge(values: Floats) -> Floats:
    """Numbers per item, shape (n,), whose mean is the mean of the judges' means, each over the
    items that it answered; ``values`` has shape (n, judges), NaN without an answer.

    An item's number is the mean of the judges' means, plus what its answers add to them, so that
    intervals over clusters hold for judges with unequal numbers of answers.

    >>> float(by_judge(np.array([[1.0, 0.0], [1.0, np.nan], [0.0, np.nan]])).mean().round(6))
    0.333333
    """
    is_given = ~np.isnan(values)
    values, is_given = values[:, is_given.any(axis=0)], is_given[:, is_given.any(axis=0)]
    means = np.nanmean(values, axis=0)
    parts = np.where(is_given, values - means, 0.0) * (len(values) / is_given.sum(axis=0))
    numbers: Floats = means.mean() + parts.mean(axis=1)
    return numbers


@dataclass(frozen=True)
class Outcome:
    """A strategy on an attribute (or on a set of a log), item by item, and its cost per item.

    ``exact`` and ``near`` (n,) are shares over the paraphrases and judges that a strategy is
    averaged over, NaN where it has no score; ``gain`` and ``near_gain`` (n,) are these over the
    single judges, each compared on the items that it answered. ``gap`` is the win-rate gap, None
    if all paraphrases are used at once. ``judge`` names the best judge on all items.
    """

    strategy: str
    name: str
    kind: str
    clusters: tuple[str, ...]
    exact: Floats
    near: Floats
    gain: Floats
    near_gain: Floats
    gap: float | None
    calls: float
    cost: Floats
    judge: str = ""

    @property
    def n(self) -> int:
        """The number of items with a score."""
        return int((~np.isnan(self.exact)).sum())

    def interval(
        self, values: Floats, low: float = 0.0
    ) -> tuple[float, float | None, float | None]:
        """The mean of ``exact`` or ``gain``, and its 95% t interval over clusters within ``low``
        and 1."""
        scored = np.flatnonzero(~np.isnan(values))
        ends = mean_t_cluster(values[scored], [self.clusters[at] for at in scored])
        mean = float(values[scored].mean())
        if ends.low is None or ends.high is None:
            return mean, None, None
        return mean, max(low, ends.low), min(1.0, ends.high)

    def mean(self, field: str) -> float:
        """The mean of ``exact``, ``near``, ``gain`` or ``near_gain``."""
        return float(np.nanmean(getattr(self, field)))

    def figures(self) -> dict[str, float | None]:
        """Accuracy and gain with their intervals, and the close scores: columns of a table."""
        names = ("accuracy", "ci_low", "ci_high", "gain", "gain_low", "gain_high")
        values = (*self.interval(self.exact), *self.interval(self.gain, -1.0))
        return {**dict(zip(names, values, strict=True)), "near": self.mean("near")}


def by_strategy(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """The outcomes of each strategy, in their order."""
    return grouped((outcome.strategy for outcome in outcomes), outcomes)


@dataclass(frozen=True)
class Ballot:
    """The judges' scores of the items of an attribute, or of a set of a log.

    ``votes`` has shape (n items, k wordings, m judges); without a ``scale``, scores are codes of
    names. ``human`` (n,) are the raters' means, ``gold`` (n,) the same as levels. ``costs`` (m, 2)
    are each judge's per answer.
    """

    name: str
    kind: str
    judges: tuple[str, ...]
    items: tuple[str, ...]
    clusters: tuple[str, ...]
    votes: Floats
    gold: Floats
    human: Floats
    costs: Floats
    tolerance: float
    scale: bool = True

    def outcome(
        self,
        strategy: str,
        shares: Shares,
        calls: float,
        cost: Floats,
        gap: float | None = None,
        judge: str = "",
    ) -> Outcome:
        """The outcome of a strategy from its shares of right and of close scores, shape (n,)."""
        is_scored = ~np.isnan(shares[0])
        gains = np.full((2, len(is_scored)), np.nan)
        for row, strategy_shares, judge_shares in zip(gains, shares, self._alone(), strict=True):
            row[is_scored] = by_judge(strategy_shares[is_scored, None] - judge_shares[is_scored])
        names = strategy, self.name, self.kind, self.clusters
        return Outcome(*names, *shares, gains[0], gains[1], gap, calls, cost, judge)

    def shares(self, scores: Floats) -> Shares:
        """Right scores (equal to the gold level when rounded, halves up) and close ones (within
        the tolerance of the human mean): 1 or 0, NaN of NaN. ``scores`` has shape (n, ...)."""
        shape = (-1,) + (1,) * (scores.ndim - 1)
        is_right = np.floor(scores + 0.5) == self.gold.reshape(shape)
        is_close = np.abs(scores - self.human.reshape(shape)) <= self.tolerance + _SLACK
        is_missing = np.isnan(scores)
        return np.where(is_missing, np.nan, is_right), np.where(is_missing, np.nan, is_close)

    def _alone(self) -> Shares:
        """Each judge's shares over the wordings, shape (n, m)."""
        right, close = self.shares(self.votes)
        return right.mean(axis=1), close.mean(axis=1)

    def outcomes(self) -> Iterator[Outcome]:
        """Every strategy that needs no further judging; panels need three judges, as the majority
        of two is one of them."""
        k, m = self.votes.shape[1:]
        levels, counts = np.unique(self.gold, return_counts=True)
        frequent = np.full(len(self.gold), levels[np.argmax(counts)])
        yield self.outcome(CONSTANT, self.shares(frequent), 0, np.zeros(2))
        judge_shares, total_cost = self._alone(), self.costs.sum(axis=0)
        gaps = np.ptp(self.shares(self.votes)[0].mean(axis=0), axis=0)
        single = by_judge(judge_shares[0]), by_judge(judge_shares[1])
        yield self.outcome(SINGLE, single, 1, total_cost / m, float(gaps.mean()))
        if m > 1:
            yield from self._best_judge(judge_shares, gaps)
        for method in (METHODS if self.scale else METHODS[:1]) if m > 2 else ():
            right, close = self.shares(aggregate(self.votes, method))
            if not self.scale:
                right = close = plurality(self.votes[:, 0], self.gold)[:, None]
            gap = float(np.ptp(right.mean(axis=0)))
            shares = right.mean(axis=1), close.mean(axis=1)
            yield self.outcome(f"panel, {method}", shares, m, total_cost, gap)
        if k > 1:
            right, close = self.shares(aggregate(self.votes.swapaxes(1, 2), "majority"))
            yield self.outcome(SELF, (by_judge(right), by_judge(close)), k, total_cost * k / m)

    def _best_judge(self, judge_shares: Shares, gaps: Floats) -> Iterator[Outcome]:
        """The most accurate judge: each item is scored by the judge that the other items choose.

        Only judges that answered half of the items are choices. With fewer than ten clusters the
        choice is made on all items.
        """
        right, close = judge_shares
        has_score = ~np.isnan(right)
        candidates = np.flatnonzero(has_score.mean(axis=0) >= 0.5)
        if not len(candidates):
            return

        def choose(rows: Any) -> int:
            scored = has_score[rows][:, candidates]
            sums = np.where(scored, right[rows][:, candidates], 0.0).sum(axis=0)
            return int(chosen(sums / np.maximum(scored.sum(axis=0), 1)))

        at = choose(np.arange(len(right)))
        weights = crossfit_weights(self.clusters, len(candidates), choose)
        if weights is None:
            weights = np.tile((np.arange(len(candidates)) == at).astype(float), (len(right), 1))
        weights = np.where(has_score[:, candidates], weights, 0.0)
        total = weights.sum(axis=1)

        def weighted(values: Floats) -> Floats:
            sums = (weights * np.nan_to_num(values[:, candidates])).sum(axis=1)
            shares: Floats = np.where(total > 0, sums / np.where(total > 0, total, 1), np.nan)
            return shares

        best = int(candidates[at])
        shares = weighted(right), weighted(close)
        yield self.outcome(BEST, shares, 1, self.costs[best], float(gaps[best]), self.judges[best])


def crossfit_accuracy(outcomes: Sequence[Outcome]) -> float | None:
    """The accuracy of choosing the most accurate of several strategies on other items than it is
    scored on; None without a strategy or with fewer than ten clusters."""
    if not outcomes:
        return None
    scores = np.stack([outcome.exact for outcome in outcomes], axis=1)
    scored = np.flatnonzero(~np.isnan(scores).any(axis=1))
    clusters = [outcomes[0].clusters[at] for at in scored]
    scores = scores[scored]
    weights = crossfit_weights(
        clusters, len(outcomes), lambda rows: int(chosen(scores[rows].mean(axis=0)))
    )
    return None if weights is None else float((weights * scores).sum(axis=1).mean())
