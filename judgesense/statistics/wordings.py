"""Wordings looked at one by one: which contradict the others, and which ask something else.

A table of decisions has one row per wording and one column per cell (item and option order). The
consensus for a wording is the most frequent decision of the *other* wordings on that cell. A
wording may be stricter than the others and still order the items as they do; only gold labels tell
whether it is right. So without gold a wording is suspicious only if its *association* with the
consensus is low: the covariance as a share of the highest (or lowest) that both label frequencies
allow (Loevinger's H; Cole 1949).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from judgesense.statistics.arrays import Bools, Codes, Floats, row_means
from judgesense.statistics.camps import Rules, camps_of, p_above
from judgesense.statistics.comparison import holm
from judgesense.statistics.inputs import cluster_codes
from judgesense.statistics.intervals import wilson_from_sums
from judgesense.statistics.kappa import disagreement_weights, kappa_from_table
from judgesense.statistics.selection import lower_than_rest

Flag = Literal["fine", "outlier", "inverted", "unreadable"]

NOT_JUDGED, UNDECIDED = -1, -2
"""In place of a label's code: the wording was not asked there, or gave no verdict."""

_AT_ONCE = 1_000_000

_LARGE_CLUSTERS = 4
"""From this many cells per cluster on, one cell of each says too little: whole ones are tested."""

_TESTS = 2
"""Each wording is tested for being inverted and for being an outlier: p-values are doubled."""

_DEFAULTS = Rules()


@dataclass(frozen=True)
class WordingFigures:
    """One wording beside the consensus of the others.

    `agreement` is the share of its decisions that match the consensus (half a match where two
    labels tie), with its 95% interval; `kappa` is quadratic on an ordinal scale. `p_adjusted` is
    the corrected p-value of what was tested: for an inverted wording that it contradicts the
    consensus (Holm), for every other one that it is right (without gold: agrees) less often than
    the other wordings (max-T); both are doubled, for two tests.
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
    family: int = 1,
    n_resamples: int = 999,
    seed: int = 0,
) -> tuple[list[WordingFigures], list[list[int]]]:
    """Compare every wording with the consensus of the others, and flag those that stand apart.

    *Unreadable*: most answers give no decision. *Inverted*: it agrees with the consensus reliably
    less than independent answers would (Holm-corrected), its association is clearly negative, and
    its decisions turned round agree better. Where gold is reliably on the side of the inverted
    ones, the others are inverted; without gold, half of the wordings against the other half are
    all inverted. *Outlier* with gold: its accuracy is clearly and significantly lower than that of
    the others (max-T, by permuting wordings within clusters, Westfall & Young 1993). Without gold:
    its agreement is, and its association is less than half of theirs. With gold, a wording that is
    as right as the others is neither.

    Where a third of the voters or more would be outliers, none is: they form *camps*. Without gold
    there are also camps, and no outliers, if groups of wordings agree clearly more within than
    between them, on items that did not form the groups.

    Args:
        decisions: label codes 0..L-1, `NOT_JUDGED` or `UNDECIDED`, shape (wordings, cells).
        n_labels: number of labels L; on an ordinal scale codes follow its order.
        ordinal: whether kappa is quadratic and "reversed" means the scale turned round.
        voters: which wordings form the consensus, shape (wordings,); None for all.
        gold: gold label codes, -1 where unknown, shape (cells,), or None.
        family: the number of tables that are reported together: an outlier's p-value is multiplied
            by it (Bonferroni), so that 20 tables of equal wordings have no more than one has.

    Returns:
        One `WordingFigures` per row of `decisions`, and the camps as lists of rows, largest first.
        With too few clusters none is inverted or an outlier; with fewer than four voters none is
        an outlier.

    >>> good = [0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0] * 4
    >>> result, camps = screen([good, good, [1 - code for code in good]], n_labels=2)
    >>> [row.flag for row in result], result[2].kappa, camps
    (['fine', 'fine', 'inverted'], -1.0, [])
    """
    votes = None if voters is None else np.asarray(voters, dtype=bool)
    table = _Table(decisions, clusters, n_labels, ordinal, gold, votes, rules)
    camps: list[list[int]] = []
    if table.k >= rules.fewest and n_labels:
        rng = np.random.default_rng(seed)
        table.flag_inverted(rng, n_resamples)
        camps = table.flag_outliers(rng, max(n_resamples, 100 * family), family)
    return [table.figures(j) for j in range(len(table.codes))], camps


def association(joint: Any, ordinal: bool = False) -> float:
    """How far two labellings go together, as a share of what their label frequencies allow.

    (c - d) / (c - l) for the disagreement d (quadratic on a scale), c that of independent labels,
    and l the lowest that the frequencies allow, or the highest if d > c (Loevinger 1948, Cole
    1949). Unlike kappa, it is 1 if one labelling is only stricter than the other; 0 if one is
    constant. ``joint`` is a contingency table, shape (L, L), not all 0.
    """
    table = np.asarray(joint, dtype=np.float64)
    table = table / table.sum()
    n = len(table)
    weights = disagreement_weights(n, ordinal)
    p, q = table.sum(axis=1), table.sum(axis=0)
    observed, chance = float((table * weights).sum()), float(p @ weights @ q)
    above = observed <= chance
    if ordinal:
        # The frequencies matched in the same order, or in the opposite one.
        ends = np.cumsum(p), np.cumsum(q if above else q[::-1])
        edges = np.sort(np.concatenate([[0.0], *ends]))
        a, b = (
            np.minimum(np.searchsorted(end, (edges[1:] + edges[:-1]) / 2), n - 1) for end in ends
        )
        limit = float(np.diff(edges) @ weights[a, b if above else n - 1 - b])
    else:
        limit = 1 - float((np.minimum(p, q) if above else np.maximum(p + q - 1, 0)).sum())
    room = abs(chance - limit)
    return (chance - observed) / room if room > 1e-9 else 0.0


class _Table:
    """Decisions by wording and cell, the flags so far, and who votes on the consensus."""

    def __init__(
        self,
        decisions: Any,
        clusters: Any,
        n_labels: int,
        ordinal: bool,
        gold: Any,
        votes: Bools | None,
        rules: Rules,
    ) -> None:
        self.codes = np.asarray(decisions, dtype=np.int64)
        n, cells = self.codes.shape
        self.clusters, self.k = cluster_codes(clusters, cells)
        self.n_labels, self.ordinal, self.rules = n_labels, ordinal, rules
        self.weights = disagreement_weights(n_labels, ordinal)
        n_judged = (self.codes != NOT_JUDGED).sum(axis=1)
        self.unread = (self.codes == UNDECIDED).sum(axis=1) / np.maximum(n_judged, 1)
        unreadable = self.unread > rules.unreadable
        self.flags: list[Flag] = np.where(unreadable, "unreadable", "fine").tolist()
        self.p_values: list[float | None] = [None] * n
        self.votes = ~unreadable if votes is None else votes & ~unreadable
        labels = np.full(cells, -1) if gold is None else np.asarray(gold, dtype=np.int64)
        has_gold = (self.codes != NOT_JUDGED) & (labels >= 0)
        # An answer without a decision is wrong.
        self.hits = np.where(has_gold, self.codes == labels, np.nan)
        self.graded = bool(has_gold.any())

    def consensus(self, j: int) -> Floats:
        """The most frequent labels of the voters other than j, shape (cells, L); ties share 1."""
        is_voter = self.votes.copy()
        is_voter[j] = False
        if not self.n_labels:
            return np.zeros((self.codes.shape[1], 0))
        counts = (self.codes[is_voter][:, :, None] == np.arange(self.n_labels)).sum(axis=0)
        top = (counts == counts.max(axis=1, keepdims=True)) & (counts > 0)
        shares: Floats = top / np.maximum(top.sum(axis=1, keepdims=True), 1)
        return shares

    def beside(self, j: int) -> tuple[Codes, Floats, Codes]:
        """Wording j's decisions, the consensus of the others, and the cells where both exist."""
        shares = self.consensus(j)
        cells = np.flatnonzero((self.codes[j] >= 0) & (shares.sum(axis=1) > 0))
        return self.codes[j][cells], shares[cells], cells

    def joint(self, codes: Codes, shares: Floats) -> Floats:
        """The contingency table of decisions and a consensus."""
        counts = np.zeros((self.n_labels, self.n_labels))
        np.add.at(counts, codes, shares)
        return counts

    def kappa(self, codes: Codes, shares: Floats) -> float | None:
        """Kappa of decisions with a consensus."""
        return kappa_from_table(self.joint(codes, shares), self.weights)

    def flag_inverted(self, rng: np.random.Generator, n_resamples: int) -> None:
        """Flag inverted wordings, the one that contradicts most first; they lose their vote."""
        at_first, flags = self.votes.copy(), self.flags
        while compared := [j for j, flag in enumerate(flags) if flag == "fine"]:
            beside = {j: self.beside(j) for j in compared}
            draws = max(n_resamples, 100 * len(compared))  # Enough for Holm's smallest p-value.
            opposite = [_TESTS * self.p_opposite(*beside[j], rng, draws) for j in compared]
            p = {j: p or 0.0 for j, p in zip(compared, holm(opposite), strict=True)}
            if not (worst := [j for j in compared if p[j] < self.rules.significant]):
                break
            j = min(worst, key=lambda j: self.kappa(*beside[j][:2]) or 0.0)
            flags[j], self.p_values[j], self.votes[j] = "inverted", p[j], False
        inverted = [j for j, flag in enumerate(flags) if flag == "inverted"]
        others = np.flatnonzero(self.votes).tolist()
        if not inverted or not others:
            return
        gap = self.gold_gap(inverted, others)
        if gap > 0 or (gap == 0 and 2 * sum(at_first[inverted]) >= at_first.sum()):
            for j in others:
                flags[j] = "inverted"
            if gap == 0:
                return
            # Gold speaks for those that seemed inverted.
            for j in inverted:
                flags[j], self.p_values[j], self.votes[j] = "fine", None, at_first[j]
            self.votes[others] = False
            inverted, others = others, inverted
        if self.graded:
            accuracy = row_means(self.hits)
            median = np.nanmedian(accuracy[others])
            for j in inverted:
                if accuracy[j] >= median:
                    flags[j], self.p_values[j], self.votes[j] = "fine", None, at_first[j]

    def gold_gap(self, rows: list[int], other_rows: list[int]) -> int:
        """Whether gold is reliably for some wordings (1), for others (-1), or for neither (0)."""
        gaps = row_means(self.hits[rows].T) - row_means(self.hits[other_rows].T)
        is_defined = ~np.isnan(gaps)
        p = p_above(gaps[is_defined], self.clusters[is_defined])
        return (p < self.rules.significant / 2) - (p > 1 - self.rules.significant / 2)

    def p_opposite(
        self, codes: Codes, shares: Floats, cells: Codes, rng: np.random.Generator, n: int
    ) -> float:
        """p-value of "it agrees no less than independent answers would".

        1 unless the association is clearly negative and turned decisions agree better. The
        consensus is permuted over clusters, one random cell of each at a time; the excess of
        disagreement in large clusters is compared with Student's t instead.
        """
        clusters, rows = self.clusters[cells], np.arange(len(codes))
        _, sizes = np.unique(clusters, return_counts=True)
        if (
            len(sizes) < self.rules.fewest
            or association(self.joint(codes, shares), self.ordinal) > -self.rules.opposite
        ):
            return 1.0
        cost = shares @ self.weights.T
        observed = cost[rows, codes]
        if (self.ordinal or self.n_labels == 2) and (
            cost[rows, self.n_labels - 1 - codes].mean() >= observed.mean()
        ):
            # Several labels without an order have no reverse.
            return 1.0
        if len(codes) >= _LARGE_CLUSTERS * len(sizes):
            of_label = cost.mean(axis=0)
            of_cell = cost @ np.bincount(codes, minlength=self.n_labels) / len(codes)
            return p_above(observed - of_cell - of_label[codes] + of_cell.mean(), clusters)
        order = np.argsort(clusters, kind="stable")
        codes, cost, starts = codes[order], cost[order], np.cumsum(sizes) - sizes
        hits, step = 0, max(1, _AT_ONCE // len(sizes))
        for start in range(0, n, step):
            shape = (min(step, n - start), len(sizes))
            sample = starts + (rng.random(shape) * sizes).astype(np.int64)
            labels = codes[sample]
            sample_cost = cost[sample, labels].sum(axis=1)
            permuted_cost = cost[rng.permuted(sample, axis=1), labels].sum(axis=1)
            hits += int((permuted_cost >= sample_cost - 1e-9).sum())
        return (1 + hits) / (1 + n)

    def flag_outliers(
        self, rng: np.random.Generator, n_resamples: int, family: int
    ) -> list[list[int]]:
        """Flag outliers, the worst first, unless the wordings form camps: these are returned."""
        members = np.flatnonzero(self.votes).tolist()
        if len(members) < 3:
            return []
        codes = self.codes[members]
        if not self.graded:
            camps = camps_of(codes, self.clusters, self.n_labels, self.rules)
            if camps:
                return [[members[at] for at in camp] for camp in camps]
        remaining = list(members)
        while len(remaining) >= 3:
            scores = self.hits[remaining] if self.graded else self.matches(remaining)
            shared = (~np.isnan(scores)).sum(axis=0) >= 2
            if not shared.any():
                break
            scores = scores[:, shared]
            cell_means = np.nanmean(scores, axis=0)
            # A missing score takes the mean of its cell and so says nothing about any wording.
            complete = np.where(np.isnan(scores), cell_means, scores)
            sums = np.zeros((self.k, len(remaining)))
            np.add.at(sums, self.clusters[shared], complete.T)
            p = np.minimum(1.0, _TESTS * family * lower_than_rest(sums, rng, n_resamples))
            means = row_means(scores - cell_means)  # Wordings may be judged on other cells.
            apart = (p < self.rules.significant) & self.lower(means, remaining)
            for j, value in zip(remaining, p.tolist(), strict=True):
                self.p_values[j] = value
            if not apart.any():
                break
            worst = remaining.pop(int(np.where(apart, means, np.inf).argmin()))
            self.votes[worst] = False
        out = [j for j in members if j not in remaining]
        if 3 * len(out) >= len(members):
            self.votes[out] = True
            camps = camps_of(codes, self.clusters, self.n_labels) if out else []
            return [[members[at] for at in camp] for camp in camps]
        for j in out:
            self.flags[j] = "outlier"
        return []

    def matches(self, rows: list[int]) -> Floats:
        """How far decisions match the consensus of the others, shape (rows, cells); else NaN."""
        scores = np.full((len(rows), self.codes.shape[1]), np.nan)
        for row, j in enumerate(rows):
            codes, shares, cells = self.beside(j)
            scores[row, cells] = shares[np.arange(len(codes)), codes]
        return scores

    def lower(self, means: Floats, rows: list[int]) -> Bools:
        """Which wordings lie clearly below the median of the others."""

        def medians_of_others(values: Floats) -> Floats:
            return np.array([np.nanmedian(np.delete(values, at)) for at in range(len(values))])

        is_lower: Bools = medians_of_others(means) - means >= self.rules.lower
        if not self.graded and is_lower.any():
            # A stricter wording orders the items as the others do: it may be the right one.
            links = np.zeros(len(rows))
            for at, j in enumerate(rows):
                codes, shares, _ = self.beside(j)
                if len(codes):
                    links[at] = association(self.joint(codes, shares), self.ordinal)
            is_lower &= links < medians_of_others(links) / 2
        return is_lower

    def figures(self, j: int) -> WordingFigures:
        """Wording j beside the consensus of the voters."""
        n_prompts = int((self.codes[j] != NOT_JUDGED).sum())
        codes, shares, cells = self.beside(j)
        empty = WordingFigures(
            self.flags[j],
            None,
            None,
            None,
            None,
            self.p_values[j],
            1 - float(self.unread[j]) if n_prompts else None,
            n_prompts,
        )
        if not len(codes):
            return empty
        matches = shares[np.arange(len(codes)), codes]
        _, groups = np.unique(self.clusters[cells], return_inverse=True)
        spread = wilson_from_sums(np.bincount(groups, matches), np.bincount(groups))
        return replace(
            empty,
            agreement=float(matches.mean()),
            ci_low=spread.low,
            ci_high=spread.high,
            kappa=self.kappa(codes, shares),
        )
