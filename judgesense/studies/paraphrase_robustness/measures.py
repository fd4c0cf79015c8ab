"""What a judged grid says: the paper's figures, configuration by configuration and over all.

"All Prompts Are Created Equal?" (Bhat and Varma), sections 3 and 4. A configuration is a judge on
an attribute; exact accuracy is against the human score as a level, tolerance against the raters'
mean as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from judgesense.statistics.classical import TestResult, anova, chi_square, cohens_d, wilcoxon
from judgesense.statistics.comparison import bonferroni
from judgesense.statistics.robustness import (
    TOLERANCES,
    Robustness,
    paraphrase_robustness,
    tolerance_accuracies,
)
from judgesense.studies.paraphrase_robustness.attributes import GROUPS
from judgesense.studies.paraphrase_robustness.grid import Floats, Gaps, Grid, Scores
from judgesense_dataset.embedded import VERIFIABILITIES

RESAMPLES = 2000
DRAWS = 200
"""How often scores are drawn from the options' probabilities for the same-prompt control."""


@dataclass(frozen=True)
class Configuration:
    """A judge on an attribute, measured.

    ``unrounded`` is accuracy against the raters' means as they are; ``within`` the share of scores
    at most τ from them, by τ; ``constant`` the accuracy of always giving the commonest level, and
    ``one_score`` the share of the judge's commonest score.
    """

    scores: Scores
    found: Robustness
    unrounded: float
    within: Mapping[float, float]
    constant: float
    one_score: float

    @property
    def kind(self) -> str:
        """How verifiable the attribute is."""
        return self.scores.attribute.verifiability

    @property
    def group(self) -> str:
        """The attribute's task."""
        return self.scores.attribute.group

    @property
    def insensitive(self) -> bool:
        """Whether it hardly moves and yet is right no oftener than one constant score."""
        return (self.found.consistency or 0.0) >= 0.9 and self.found.accuracy <= self.constant


def measure(grid: Grid, tolerance: float = 0.5) -> list[Configuration]:
    """Every configuration with at least one item on which all paraphrases were decided."""
    return [_measure(cell, tolerance) for cell in grid.cells if cell.items]


def _measure(cell: Scores, tolerance: float) -> Configuration:
    found = paraphrase_robustness(
        cell.scores, cell.gold, tolerance=tolerance, item_ids=list(cell.clusters),
        n_resamples=RESAMPLES,
    )  # fmt: skip
    _, golds = np.unique(cell.gold, return_counts=True)
    _, given = np.unique(cell.scores, return_counts=True)
    return Configuration(
        scores=cell,
        found=found,
        unrounded=float((cell.scores == cell.human[:, None]).mean()),
        within=tolerance_accuracies(cell.scores, cell.human, sorted({*TOLERANCES, tolerance})),
        constant=float(golds.max() / golds.sum()),
        one_score=float(given.max() / given.sum()),
    )


def kinds_of(found: Iterable[Configuration]) -> list[str]:
    """The kinds of attributes that occur, most verifiable first."""
    present = {one.kind for one in found}
    return [kind for kind in VERIFIABILITIES if kind in present]


def groups_of(found: Iterable[Configuration]) -> list[str]:
    """The tasks that occur."""
    present = {one.group for one in found}
    return [group for group in GROUPS if group in present]


@dataclass(frozen=True)
class Effect:
    """What a factor explains of accuracy; ``test`` is None where there is too little to test."""

    factor: str
    over: str
    form: str
    test: TestResult | None


def effects(found: Sequence[Configuration]) -> list[Effect]:
    """One-way ANOVAs of accuracy by task and by kind, over configurations and over items.

    Over configurations a number is one configuration's accuracy; over items the mean accuracy of
    an item (and kind) over all judges, paraphrases and attributes (Limitations, "Small
    sample-size").
    """
    by: dict[str, Callable[[Configuration], str]] = {
        "task": lambda one: one.group,
        "verifiability": lambda one: one.kind,
        "judge": lambda one: one.scores.judge,
    }
    results = []
    for factor, key in by.items():
        cells: dict[str, list[float]] = {}
        items: dict[str, dict[tuple[str, str], list[float]]] = {}
        for one in found:
            cells.setdefault(key(one), []).append(one.found.accuracy)
            right = (one.scores.scores == one.scores.gold[:, None]).mean(axis=1)
            for item, share in zip(one.scores.items, right, strict=True):
                own = items.setdefault(key(one), {}).setdefault((one.group, item), [])
                own.append(float(share))
        means = [[float(np.mean(own)) for own in group.values()] for group in items.values()]
        results.append(Effect(factor, "configurations", "classic", _anova(list(cells.values()))))
        if factor != "judge":
            results.append(Effect(factor, "items", "classic", _anova(means)))
            results.append(Effect(factor, "items", "Welch", _anova(means, welch=True)))
    return results


def _anova(groups: Sequence[Sequence[float]], welch: bool = False) -> TestResult | None:
    enough = len(groups) >= 2 and sum(map(len, groups)) > len(groups)
    if not enough or (welch and min(map(len, groups)) < 2):
        return None
    return anova(groups, welch=welch)


@dataclass(frozen=True)
class Contrast:
    """Two kinds of attributes: the difference of their mean accuracies over configurations.

    ``d`` is Cohen's, ``p_value`` Welch's test corrected by Bonferroni.
    """

    first: str
    second: str
    difference: float
    d: float | None
    p_value: float | None


def contrasts(found: Sequence[Configuration]) -> list[Contrast]:
    """Every two kinds of attributes against each other."""
    accuracies = {
        kind: [one.found.accuracy for one in found if one.kind == kind] for kind in kinds_of(found)
    }
    pairs = list(combinations(accuracies, 2))
    tests = [_anova([accuracies[a], accuracies[b]], welch=True) for a, b in pairs]
    corrected = bonferroni([test.p_value if test else None for test in tests])
    return [
        Contrast(
            a, b, float(np.mean(accuracies[a]) - np.mean(accuracies[b])),
            cohens_d(accuracies[a], accuracies[b]) if len(accuracies[a] + accuracies[b]) > 2
            else None,
            p,
        )
        for (a, b), p in zip(pairs, corrected, strict=True)
    ]  # fmt: skip


def stability(
    found: Sequence[Configuration],
) -> tuple[dict[str, tuple[int, int]], TestResult | None]:
    """Stable configurations and all, by kind, and the chi-square test between kinds."""
    counts = {
        kind: (sum(one.found.stable is True for one in own), len(own))
        for kind in kinds_of(found)
        if (own := [one for one in found if one.kind == kind])
    }
    if len(counts) < 2:
        return counts, None
    return counts, chi_square([[yes, n - yes] for yes, n in counts.values()])


@dataclass(frozen=True)
class Correlation:
    """How two figures go together over configurations; None where one of them is constant."""

    among: str
    figure: str
    n: int
    pearson: float | None
    pearson_p: float | None
    spearman: float | None
    spearman_p: float | None


def correlations(found: Sequence[Configuration]) -> list[Correlation]:
    """Accuracy against win-rate gap and against sensitivity: over all, and for each judge."""
    judges = list(dict.fromkeys(one.scores.judge for one in found))
    among = {"all": list(found)} | {
        judge: [one for one in found if one.scores.judge == judge] for judge in judges
    }
    return [
        correlate(name, figure, [(one.found.accuracy, getattr(one.found, field)) for one in own])
        for name, own in among.items()
        for figure, field in (("win-rate gap", "win_rate_gap"), ("sensitivity", "sensitivity"))
    ]


def correlate(among: str, figure: str, points: Sequence[tuple[float, float | None]]) -> Correlation:
    """Pearson's r and Spearman's ρ of the defined points, with p-values."""
    pairs = np.array([(x, y) for x, y in points if y is not None], dtype=float)
    if len(pairs) < 3 or (np.ptp(pairs, axis=0) == 0).any():
        return Correlation(among, figure, len(pairs), None, None, None, None)
    from scipy.stats import pearsonr, spearmanr

    r, rho = pearsonr(*pairs.T), spearmanr(*pairs.T)
    return Correlation(
        among, figure, len(pairs), float(r.statistic), float(r.pvalue), float(rho.statistic),
        float(rho.pvalue),
    )  # fmt: skip


@dataclass(frozen=True)
class Control:
    """Mean win-rate gaps when the wording changes and when it does not, over n configurations.

    ``items`` counts those of all n together; a configuration's two gaps are over the same ones.
    """

    kind: str
    n: int
    items: int
    reworded: float
    same: float
    larger: int
    test: TestResult


def control(
    found: Sequence[Configuration],
    gaps: Mapping[str, Mapping[str, Gaps]] | None = None,
    seed: int = 0,
) -> list[Control]:
    """Paraphrase against same-prompt spread, by kind and over all (Same-Prompt Variability).

    With ``gaps`` (judge -> attribute -> gaps, the base wording asked k times) those are taken.
    Without, both are drawn from the options' probabilities, as a judge that samples at
    temperature 1 among the levels would answer: one score for each of the k paraphrases, and k for
    the base wording; the mean gap of 200 such draws, over the items that the base wording decided.
    Configurations without either are left out.
    """
    rows: list[tuple[str, Gaps]] = []
    for one in found:
        own = (
            _drawn_gaps(one.scores, seed)
            if gaps is None
            else gaps.get(one.scores.judge, {}).get(one.scores.attribute.name)
        )
        if own is not None:
            rows.append((one.kind, own))
    results = []
    for kind in (*VERIFIABILITIES, "all"):
        of_kind = [own for name, own in rows if kind in (name, "all")]
        if of_kind:
            a = np.array([own.reworded for own in of_kind])
            b = np.array([own.same for own in of_kind])
            results.append(
                Control(
                    kind, len(of_kind), sum(own.items for own in of_kind), float(a.mean()),
                    float(b.mean()), int((a > b).sum()), wilcoxon(a, b),
                )
            )  # fmt: skip
    return results


def _drawn_gaps(cell: Scores, seed: int) -> Gaps | None:
    """The mean gap of scores drawn for k paraphrases, and for the base wording k times.

    None without probabilities, or where the base wording decided no item.
    """
    if cell.shares is None:
        return None
    decided = np.isfinite(cell.base)
    if not decided.any():
        return None
    rng = np.random.default_rng(seed)
    n, k = int(decided.sum()), cell.scores.shape[1]
    gold = np.searchsorted(cell.levels, cell.gold[decided])
    own = cell.shares[decided]

    def gap(shares: Floats) -> float:
        # A score matters only by being right: a Bernoulli draw with the gold level's probability.
        right = shares[np.arange(n), :, gold]
        drawn = (rng.random((DRAWS, n, k)) < right).mean(axis=1)
        return float(np.ptp(drawn, axis=1).mean())

    return Gaps(gap(own[:, 1:]), gap(np.repeat(own[:, :1], k, axis=1)), n)
