"""Wordings looked at one by one: how far each agrees with the consensus of the others.

A table of decisions has one row per wording and one column per cell (item and option order). The
consensus for a wording is the most frequent decision of the *other* wordings on that cell. A
wording that contradicts it, departs from it or cannot be read is flagged one at a time, worst
first, and leaves the consensus before the next one is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from judgesense.statistics.arrays import Bools, Codes, Floats
from judgesense.statistics.comparison import holm
from judgesense.statistics.inputs import cluster_codes
from judgesense.statistics.intervals import wilson_from_sums
from judgesense.statistics.kappa import disagreement_weights, kappa_from_table
from judgesense.statistics.selection import lower_than_rest
from judgesense.statistics.wording_rules import Rules

Flag = Literal["fine", "outlier", "inverted", "unreadable"]

NOT_JUDGED, UNDECIDED = -1, -2
"""In place of a label's code: the wording was not asked there, or gave no verdict."""

_AT_ONCE = 1_000_000

_TESTS = 2
"""Each wording is tested for being inverted and for being an outlier: p-values are doubled."""

_DEFAULTS = Rules()


@dataclass(frozen=True)
class WordingFigures:
    """One wording beside the consensus of the others.

    `agreement` is the share of its decisions that match the consensus (half a match where two
    labels tie), with its 95% interval; `kappa` is quadratic on an ordinal scale. `p_adjusted` is
    the corrected p-value of what was tested: for an inverted wording that it contradicts the
    consensus (Holm), for every other one that it agrees less than the other wordings do (max-T);
    both are doubled, for two tests.
    `readable` is the share of its answers with a decision. Undefined figures are None.
    """

    flag: Flag
    agreement: float | None
    ci_low: float | None
    ci_high: float | None
    kappa: float | None
    p_adjusted: float | None
    readable: float | None
    n_prompts: int


def screen(
    decisions: Any,
    clusters: Any = None,
    *,
    n_labels: int,
    ordinal: bool = False,
    voters: Any = None,
    gold: Any = None,
    rules: Rules = _DEFAULTS,
    n_resamples: int = 999,
    seed: int = 0,
) -> list[WordingFigures]:
    """Compare every wording with the consensus of the others, and flag those that stand apart.

    *Unreadable*: most answers give no decision. *Inverted*: kappa with the
    consensus is below 0 (permutation of the consensus over clusters, Holm-corrected) and the
    reversed decisions agree with it. *Outlier*: agreement well below the median of the others,
    and significantly lower than theirs: max-T over the wordings, by permuting wordings
    within clusters (Westfall & Young 1993). Flagged wordings leave the consensus one at a time. If
    at least half of the voters seem inverted, `gold` tells which half it is; without gold all are
    called inverted, since they contradict each other.

    Args:
        decisions: label codes 0..L-1, `NOT_JUDGED` or `UNDECIDED`, shape (wordings, cells).
        n_labels: number of labels L; on an ordinal scale codes follow its order.
        ordinal: whether kappa is quadratic and "reversed" means the scale turned round.
        voters: which wordings form the consensus, shape (wordings,); None for all.
        gold: gold label codes, -1 where unknown, shape (cells,), or None.
        rules: when a wording is flagged.

    Returns:
        One `WordingFigures` per row of `decisions`. With too few clusters none is inverted or an
        outlier; with fewer than three voters none is an outlier.

    >>> good = [0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0] * 4
    >>> found = screen([good, good, [1 - code for code in good]], n_labels=2)
    >>> [row.flag for row in found], found[2].kappa
    (['fine', 'fine', 'inverted'], -1.0)
    """
    table = _Table(decisions, clusters, n_labels, ordinal)
    n = len(table.codes)
    unreadable = table.unread > rules.unreadable
    flags: list[Flag] = np.where(unreadable, "unreadable", "fine").tolist()
    p_values: list[float | None] = [None] * n
    votes = np.ones(n, bool) if voters is None else np.asarray(voters, dtype=bool)
    votes = votes & ~unreadable
    at_first = int(votes.sum())
    rng = np.random.default_rng(seed)
    while table.k >= rules.fewest:
        compared = [j for j in range(n) if flags[j] == "fine"]
        beside = {j: table.beside(j, votes) for j in compared}
        draws = max(n_resamples, 100 * len(compared))  # Enough for Holm's smallest p-value.
        p_values_inverted = [table.p_opposite(*beside[j], rules, rng, draws) for j in compared]
        adjusted = holm([_TESTS * p for p in p_values_inverted])
        p_inverted = {j: p or 0.0 for j, p in zip(compared, adjusted, strict=True)}
        worst = [j for j in compared if p_inverted[j] < rules.significant]
        if worst:
            j = min(worst, key=lambda j: table.kappa(*beside[j][:2]) or 0.0)
            flags[j], p_values[j] = "inverted", p_inverted[j]
            votes[j] = False
            continue
        outlier, tested = _outlier(table, votes, beside, rules, rng, n_resamples)
        for j, p in tested.items():
            p_values[j] = p
        if outlier is None:
            break
        flags[outlier] = "outlier"
        votes[outlier] = False
    inverted = [j for j in range(n) if flags[j] == "inverted"]
    if inverted and 2 * len(inverted) >= at_first:
        votes = _settle_halves(table, flags, votes, inverted, gold)
    return [
        replace(table.figures(j, votes), flag=flags[j], p_adjusted=p_values[j]) for j in range(n)
    ]


def consensus_scores(decisions: Any, n_labels: int, voters: Any = None) -> Floats:
    """How far each decision matches the consensus of the other wordings, shape (wordings, cells).

    1 for the most frequent label of the others, 1/m if it is one of m that tie, 0 for another
    label or `UNDECIDED`; NaN where the wording was not judged or no other decided.

    >>> consensus_scores([[0, 1], [0, 0], [1, -2]], 2).tolist()
    [[0.5, 0.0], [0.5, 0.0], [0.0, 0.0]]
    """
    table = _Table(decisions, None, n_labels, False)
    votes = np.ones(len(table.codes), bool) if voters is None else np.asarray(voters, dtype=bool)
    scores = np.full(table.codes.shape, np.nan)
    for j, own in enumerate(table.codes):
        shares = table.consensus(j, votes)
        known = (shares.sum(axis=1) > 0) & (own != NOT_JUDGED)
        cells = np.flatnonzero(known)
        matched = np.append(shares, np.zeros((len(shares), 2)), axis=1)[cells, own[cells]]
        scores[j, cells] = np.where(own[cells] >= 0, matched, 0.0)
    return scores


class _Table:
    """Decisions by wording and cell, with the share of answers without a decision."""

    def __init__(self, decisions: Any, clusters: Any, n_labels: int, ordinal: bool) -> None:
        self.codes = np.asarray(decisions, dtype=np.int64)
        self.clusters, self.k = cluster_codes(clusters, self.codes.shape[1])
        self.n_labels, self.ordinal = n_labels, ordinal
        self.weights = disagreement_weights(n_labels, ordinal)
        answered = (self.codes != NOT_JUDGED).sum(axis=1)
        self.unread = (self.codes == UNDECIDED).sum(axis=1) / np.maximum(answered, 1)

    def consensus(self, j: int, votes: Bools) -> Floats:
        """The most frequent labels of the voters other than j, shape (cells, L); ties share 1."""
        others = votes.copy()
        others[j] = False
        if not self.n_labels:
            return np.zeros((self.codes.shape[1], 0))
        counts = (self.codes[others][:, :, None] == np.arange(self.n_labels)).sum(axis=0)
        top = (counts == counts.max(axis=1, keepdims=True)) & (counts > 0)
        shares: Floats = top / np.maximum(top.sum(axis=1, keepdims=True), 1)
        return shares

    def beside(self, j: int, votes: Bools) -> tuple[Codes, Floats, Codes]:
        """Wording j's decisions, the consensus of the others and the clusters, where both exist."""
        shares = self.consensus(j, votes)
        cells = (self.codes[j] >= 0) & (shares.sum(axis=1) > 0)
        return self.codes[j][cells], shares[cells], self.clusters[cells]

    def kappa(self, own: Codes, shares: Floats) -> float | None:
        """Kappa of decisions with a consensus."""
        joint = np.zeros((self.n_labels, self.n_labels))
        np.add.at(joint, own, shares)
        return kappa_from_table(joint, self.weights)

    def p_opposite(
        self,
        own: Codes,
        shares: Floats,
        clusters: Any,
        rules: Rules,
        rng: np.random.Generator,
        n: int,
    ) -> float:
        """p-value of "kappa is not below 0"; 1 unless the reversed decisions agree.

        The consensus is permuted over clusters, one random cell of each cluster at a time.
        """
        kappa = self.kappa(own, shares) if len(own) else None
        if kappa is None or kappa >= 0:
            return 1.0
        if self.n_labels > 2 and not self.ordinal:
            # Several labels without an order have no reverse.
            reversal_agrees = kappa < -rules.opposite / (self.n_labels - 1)
        else:
            turned = self.kappa(self.n_labels - 1 - own, shares)
            reversal_agrees = turned is not None and turned > rules.opposite
        if not reversal_agrees:
            return 1.0
        order = np.argsort(clusters, kind="stable")
        own, shares = own[order], shares[order]
        sizes = np.unique(clusters[order], return_counts=True)[1]
        if len(sizes) < rules.fewest:
            return 1.0
        starts = np.cumsum(sizes) - sizes
        cost = shares @ self.weights.T
        hits, step = 0, max(1, _AT_ONCE // len(sizes))
        for start in range(0, n, step):
            shape = (min(step, n - start), len(sizes))
            cells = starts + (rng.random(shape) * sizes).astype(np.int64)
            said = own[cells]
            seen = cost[cells, said].sum(axis=1)
            drawn = cost[rng.permuted(cells, axis=1), said].sum(axis=1)
            hits += int((drawn >= seen - 1e-9).sum())
        return (1 + hits) / (1 + n)

    def figures(self, j: int, votes: Bools) -> WordingFigures:
        """Wording j beside the consensus of the voters."""
        n_prompts = int((self.codes[j] != NOT_JUDGED).sum())
        own, shares, clusters = self.beside(j, votes)
        empty = WordingFigures(
            "fine", None, None, None, None, None,
            1 - float(self.unread[j]) if n_prompts else None, n_prompts,
        )  # fmt: skip
        if not len(own):
            return empty
        matched = shares[np.arange(len(own)), own]
        _, groups = np.unique(clusters, return_inverse=True)
        spread = wilson_from_sums(np.bincount(groups, matched), np.bincount(groups))
        return replace(
            empty,
            agreement=float(matched.mean()),
            ci_low=spread.low,
            ci_high=spread.high,
            kappa=self.kappa(own, shares),
        )


def _outlier(
    table: _Table,
    votes: Bools,
    beside: dict[int, tuple[Codes, Floats, Any]],
    rules: Rules,
    rng: np.random.Generator,
    n: int,
) -> tuple[int | None, dict[int, float]]:
    """The wording that agrees least, if significantly and clearly less than the others."""
    members = [j for j in np.flatnonzero(votes).tolist() if len(beside[j][0])]
    if len(members) < 3:
        return None, {}
    scores = np.full((len(members), table.codes.shape[1]), np.nan)
    for row, j in enumerate(members):
        shares = table.consensus(j, votes)
        cells = np.flatnonzero((table.codes[j] >= 0) & (shares.sum(axis=1) > 0))
        scores[row, cells] = shares[cells, table.codes[j][cells]]
    shared = (~np.isnan(scores)).sum(axis=0) >= 2
    scores = scores[:, shared]
    if not scores.size:
        return None, {}
    # A missing score takes the mean of its cell and so says nothing about any wording.
    filled = np.where(np.isnan(scores), np.nanmean(scores, axis=0), scores)
    sums = np.zeros((table.k, len(members)))
    np.add.at(sums, table.clusters[shared], filled.T)
    p_values = np.minimum(1.0, _TESTS * lower_than_rest(sums, rng, n))
    means = np.nanmean(scores, axis=1)
    apart = [
        row
        for row in range(len(members))
        if p_values[row] < rules.significant
        and np.median(np.delete(means, row)) - means[row] >= rules.lower
    ]
    worst = members[min(apart, key=lambda row: float(means[row]))] if apart else None
    return worst, dict(zip(members, p_values.tolist(), strict=True))


def _settle_halves(
    table: _Table, flags: list[Flag], votes: Bools, inverted: list[int], gold: Any
) -> Bools:
    """Which half is inverted: the one that contradicts gold; without gold, both."""
    others = np.flatnonzero(votes).tolist()
    one, two = (
        None if gold is None else _kappa_with_gold(table, members, gold)
        for members in (inverted, others)
    )
    if one is None or two is None:
        for j in others:
            flags[j] = "inverted"
        return votes
    if one <= two:
        return votes
    for j in inverted:
        flags[j] = "fine"
    for j in others:
        flags[j] = "inverted"
    turned = votes.copy()
    turned[others], turned[inverted] = False, True
    return turned


def _kappa_with_gold(table: _Table, members: list[int], gold: Any) -> float | None:
    """The mean kappa of wordings with gold labels, on their decided cells that have one."""
    labels = np.asarray(gold, dtype=np.int64)
    kappas = []
    for j in members:
        cells = (table.codes[j] >= 0) & (labels >= 0)
        if cells.any():
            kappas.append(table.kappa(table.codes[j][cells], np.eye(table.n_labels)[labels[cells]]))
    known = [kappa for kappa in kappas if kappa is not None]
    return float(np.mean(known)) if known else None
