"""Can a judge stand in for one of several people? The alternative annotator test.

Source: Calderon, Reichart & Dror 2025, "The Alternative Annotator Test for LLM-as-a-Judge: How to
Statistically Justify Replacing Human Annotators with LLMs" (ACL 2025, arXiv:2501.10970).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Floats
from judgesense.statistics.inputs import cluster_codes

FEWEST_PEOPLE = 3
"""With two people the test asks only which of them the judge resembles (the paper's FAQ)."""

FEWEST_ITEMS = 15
"""A person with fewer labelled items (or clusters) is left out: no test of them says much."""

MOST_ENUMERATED = 250
"""With more items, the score test's normal approximation replaces the enumeration."""

EPSILON = 0.2
"""What replacing a person is worth: 0.2 for experts, 0.15 for skilled people, 0.1 for a crowd."""

_FDR = 0.05


@dataclass(frozen=True)
class AlternativeAnnotator:
    """The test's outcome; by person, in the order of the labels, None for a person left out.

    ``winning_rate`` is the share of people against whom the judge wins: it represents the others
    better than the person does, less epsilon, after Benjamini and Yekutieli's correction
    (``p_adjusted`` at most 0.05). The judge may replace a person if that is at least 0.5, unless a
    ``constant`` answer passes as well and the judge is not reliably closer to people than it.
    ``advantage_probability`` is how often it represents the others at least as well.
    """

    epsilon: float
    winning_rate: float
    advantage_probability: float
    p_values: tuple[float | None, ...]
    p_adjusted: tuple[float | None, ...]
    n_items: tuple[int, ...]
    constant: str | None = None

    @property
    def passes(self) -> bool:
        """Whether the judge wins against at least half of the people."""
        return self.winning_rate >= 0.5


def alternative_annotator(
    verdicts: Sequence[str],
    labels: Sequence[Sequence[str | None]],
    *,
    epsilon: float = EPSILON,
    scale: Sequence[str] = (),
    clusters: Any = None,
) -> AlternativeAnnotator | None:
    """Leave each person out in turn, and compare the judge and the person with the others.

    On an item, whoever matches more of the other people's labels wins; both win a tie. On a scale
    the smaller root mean square distance wins. An item counts for a person if somebody else
    labelled it too.

    Args:
        verdicts: the judge's verdicts, shape (n,); one that is no label matches nobody.
        labels: people's labels, shape (people, n); None where a person gave none.
        epsilon: how much worse than a person the judge may be, in [0, 1].
        scale: the labels in order, if they are ordinal.
        clusters: one id per row; rows of a cluster are averaged first, None for independent rows.

    Returns:
        The outcome, or None with fewer than `FEWEST_PEOPLE` people who share items.
    """
    answers = np.array(verdicts, dtype=object)
    table = np.array(labels, dtype=object).reshape(len(labels), len(answers))
    codes, _ = cluster_codes(clusters, len(answers))
    result = _test(answers, table, codes, epsilon, scale)
    if result is None or not result.passes:
        return result
    constant, is_beaten = _best_constant(answers, table, codes, scale)
    always = np.full(len(answers), constant, dtype=object)
    if not is_beaten and (rival := _test(always, table, codes, epsilon, scale)) and rival.passes:
        return replace(result, constant=constant)
    return result


def _best_constant(answers: Any, table: Any, codes: Any, scale: Sequence[str]) -> tuple[str, bool]:
    """The label that is closest to people's, and whether the judge is reliably closer."""
    labelled = (table != np.array(None)).any(axis=0)
    answers, table, codes = answers[labelled], table[:, labelled], codes[labelled]
    labels = dict.fromkeys(label for row in table for label in row if label is not None)
    closest = {label: _closeness(np.full(len(answers), label), table, scale) for label in labels}
    constant = max(closest, key=lambda label: closest[label].mean())
    judge, always = _closeness(answers, table, scale), closest[constant]
    losses, gains = _by_cluster(always > judge, codes), _by_cluster(judge > always, codes)
    return constant, _p_value(losses, gains, 0.0) <= _FDR


def _test(
    answers: Any, table: Any, codes: Any, epsilon: float, scale: Sequence[str]
) -> AlternativeAnnotator | None:
    """The test of a judge's verdicts, whatever a constant answer reaches."""
    has_label = table != np.array(None)
    p_values: list[float | None] = []
    advantages, counts = [], []
    for person in range(len(table)):
        others = np.arange(len(table)) != person
        is_shared = has_label[person] & has_label[others].any(axis=0)
        other_labels = np.where(has_label[others][:, is_shared], table[others][:, is_shared], None)
        judge = _closeness(answers[is_shared], other_labels, scale)
        human = _closeness(table[person, is_shared], other_labels, scale)
        wins = _by_cluster(judge >= human, codes[is_shared])
        losses, gains = (
            _by_cluster(winner > loser, codes[is_shared])
            for winner, loser in ((human, judge), (judge, human))
        )
        counts.append(len(wins))
        p_values.append(_p_value(losses, gains, epsilon) if len(wins) >= FEWEST_ITEMS else None)
        if p_values[-1] is not None:
            advantages.append(float(wins.mean()))
    tested = [p for p in p_values if p is not None]
    if len(tested) < FEWEST_PEOPLE:
        return None
    from scipy.stats import false_discovery_control  # takes a second to load

    # People share items, so any dependence between them is allowed for.
    corrected = iter(false_discovery_control(tested, method="by").tolist())
    adjusted = [None if p is None else next(corrected) for p in p_values]
    won = sum(p <= _FDR for p in adjusted if p is not None)
    return AlternativeAnnotator(
        epsilon,
        won / len(tested),
        float(np.mean(advantages)),
        tuple(p_values),
        tuple(adjusted),
        tuple(counts),
    )


def _closeness(answers: Any, others: Any, scale: Sequence[str]) -> Floats:
    """How close one label is to the others' of each item: the share that is the same, or on a scale
    minus the root mean square distance. Shape (items,)."""
    has_label = others != np.array(None)
    if not scale:
        matches: Floats = ((others == answers) & has_label).sum(axis=0) / has_label.sum(axis=0)
        return matches
    place_of = {label: float(code) for code, label in enumerate(scale)}
    places = np.array([place_of.get(label, np.inf) for label in answers])
    other_places = np.array([[place_of.get(label, 0.0) for label in row] for row in others])
    squares = np.where(has_label, (other_places - places) ** 2, 0.0).sum(axis=0)
    distance: Floats = -np.sqrt(squares / has_label.sum(axis=0))
    return distance


def _by_cluster(column: Any, codes: Any) -> Floats:
    _, groups = np.unique(codes, return_inverse=True)
    means: Floats = np.bincount(groups, column.astype(float)) / np.bincount(groups)
    return means


def _p_value(losses: Floats, gains: Floats, epsilon: float) -> float:
    """One-sided p of the judge's mean loss being at least epsilon.

    ``losses`` and ``gains`` say of each item whether only the person or only the judge is the
    closer one; of a cluster, the share of its items.
    """
    n = len(losses)
    difference = losses - gains
    # Means of clusters vary less than single items: they count as more items, of which each is a
    # loss, a gain or neither. Rounding goes against the judge.
    single = losses.mean() + gains.mean() - difference.mean() ** 2
    worth = n if (spread := difference.var()) <= 0 else n * max(1.0, single / spread)
    if np.array_equal(difference, np.round(difference)):
        worth = n
    size = int(worth)
    n_losses, n_gains = int(np.ceil(losses.mean() * size - 1e-9)), int(gains.mean() * size + 1e-9)
    return mean_loss_p(n_losses, n_gains, size, epsilon)


def mean_loss_p(lost: int, gained: int, n: int, epsilon: float) -> float:
    """The exact p of H0: a loss is at least epsilon more probable than a gain.

    Of n items, ``lost`` are losses, ``gained`` gains and the others neither. The score statistic of
    Tango (1998, Statistics in Medicine 17:891) orders the outcomes; their probability is the
    largest over all probabilities of a gain, so the test holds its level at every n and however
    rare losses are. Beyond `MOST_ENUMERATED` items it is the score test's own.

    >>> round(mean_loss_p(1, 4, 20, 0.2), 3)
    0.006
    """
    from scipy.special import ndtr

    observed = float(_scores(np.array([lost]), np.array([gained]), n, epsilon)[0])
    if n > MOST_ENUMERATED:
        return float(ndtr(observed))
    losses, gains = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    possible = losses + gains <= n
    losses, gains = losses[possible], gains[possible]
    extreme = _scores(losses, gains, n, epsilon) <= observed + 1e-9
    losses, gains = losses[extreme], gains[extreme]
    # The probabilities of a gain that H0 allows at its edge, dense where they are small.
    possible_q = (1 - epsilon) / 2 * np.linspace(0.001, 1, 60) ** 2
    return min(1.0, max(_mass(losses, gains, n, q, epsilon) for q in possible_q))


def _scores(losses: Any, gains: Any, n: int, epsilon: float) -> Floats:
    """Tango's score statistic of each outcome: negative where losses are fewer than H0 says."""
    # The most probable q = P(gain) under P(loss) = q + epsilon solves a q^2 + b q + c = 0.
    a = 2.0 * n
    b = -losses - gains + (2 * n - losses + gains) * epsilon
    c = -gains * epsilon * (1 - epsilon)
    q = (np.sqrt(np.maximum(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
    variance = n * (2 * q + epsilon * (1 - epsilon))
    spread = np.sqrt(np.maximum(variance, 1e-12))
    scores: Floats = (losses - gains - n * epsilon) / spread
    return scores


def _mass(losses: Any, gains: Any, n: int, q: float, epsilon: float) -> float:
    """The probability of some outcomes where a gain has probability q and a loss q + epsilon."""
    from scipy.special import gammaln, xlogy

    ties = n - losses - gains
    logs = gammaln(n + 1) - gammaln(losses + 1) - gammaln(gains + 1) - gammaln(ties + 1)
    logs = logs + xlogy(losses, q + epsilon) + xlogy(gains, q)
    logs = logs + xlogy(ties, max(1 - 2 * q - epsilon, 0.0))
    return float(np.exp(logs).sum())
