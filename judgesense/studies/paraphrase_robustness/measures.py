"""The paper's figures, per configuration and over all configurations.

"All Prompts Are Created Equal?" (Bhat and Varma), sections 3 and 4. A configuration is a judge on
an attribute. Exact accuracy compares with the human score as a level, tolerance with the raters'
mean. Functions that return records use the column ids of the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Floats
from judgesense.statistics.classical import (
    TestResult,
    anova,
    bonferroni,
    chi_square,
    cohens_d,
    wilcoxon,
)
from judgesense.statistics.robustness import (
    TOLERANCES,
    Robustness,
    paraphrase_robustness,
    tolerance_accuracies,
)
from judgesense.studies.paraphrase_robustness.attributes import GROUPS
from judgesense.studies.paraphrase_robustness.grid import Gaps, Grid, Scores
from judgesense_dataset.embedded import VERIFIABILITIES

RESAMPLES = 2000
DRAWS = 200
"""How often scores are drawn from the option probabilities for the same-prompt control."""

Record = dict[str, Any]


@dataclass(frozen=True)
class Configuration:
    """A judge on an attribute, measured.

    ``unrounded`` is the accuracy against the raters' means; ``within`` the share of scores at most
    τ from them, by τ; ``constant`` the accuracy of always giving the most frequent human level;
    ``one_score`` the share of the judge's most frequent score.
    """

    scores: Scores
    found: Robustness
    unrounded: float
    within: Mapping[float, float]
    constant: float
    one_score: float

    @property
    def kind(self) -> str:
        """The verifiability of the attribute."""
        return self.scores.attribute.verifiability

    @property
    def group(self) -> str:
        """The attribute's task."""
        return self.scores.attribute.group

    @property
    def insensitive(self) -> bool:
        """Whether its scores hardly move, yet are right no more often than a constant score."""
        return (self.found.consistency or 0.0) >= 0.9 and self.found.accuracy <= self.constant

    @cached_property
    def figures(self) -> Record:
        """Its figures by column id."""
        return {
            **robustness_figures(self.found), "constant_accuracy": self.constant,
            "unrounded": self.unrounded, "top_score": self.one_score,
            "option_mass": self.scores.mass,
        }  # fmt: skip


def robustness_figures(found: Robustness) -> Record:
    """The figures that tables show of a configuration, by column id."""
    return {
        "accuracy": found.accuracy, "ci_low": found.accuracy_ci_low,
        "ci_high": found.accuracy_ci_high, "gap": found.win_rate_gap,
        "gap_by_chance": found.win_rate_gap_chance, "sensitivity": found.sensitivity,
        "consistency": found.consistency,
    }  # fmt: skip


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of the defined values, or None."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def means(found: Sequence[Configuration], *figures: str) -> Record:
    """The mean over configurations of each figure, by column id."""
    return {name: mean(one.figures[name] for one in found) for name in figures}


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


def effects(found: Sequence[Configuration]) -> list[Record]:
    """One-way ANOVAs of accuracy by task and by kind, over configurations and over items.

    Over configurations, a number is the accuracy of one configuration; over items, the mean
    accuracy of an item (and kind) over all judges, paraphrases and attributes (Limitations, "Small
    sample-size").

    Returns:
        Records with factor, over, form and the fields of `anova_record`.
    """
    by: dict[str, Callable[[Configuration], str]] = {
        "task": lambda one: one.group,
        "verifiability": lambda one: one.kind,
        "judge": lambda one: one.scores.judge,
    }
    results: list[Record] = []
    for factor, key in by.items():
        cells: dict[str, list[float]] = {}
        items: dict[str, dict[tuple[str, str], list[float]]] = {}
        for one in found:
            cells.setdefault(key(one), []).append(one.found.accuracy)
            right = (one.scores.scores == one.scores.gold[:, None]).mean(axis=1)
            for item, share in zip(one.scores.items, right, strict=True):
                own = items.setdefault(key(one), {}).setdefault((one.group, item), [])
                own.append(float(share))
        over_items = [[float(np.mean(own)) for own in group.values()] for group in items.values()]
        cases = [("configurations", "classic", list(cells.values()))]
        if factor != "judge":
            cases += [("items", form, over_items) for form in ("classic", "Welch")]
        results += [
            {"factor": factor, "over": over, "form": form,
             **anova_record(groups, welch=form == "Welch")}
            for over, form, groups in cases
        ]  # fmt: skip
    return results


def anova_record(groups: Sequence[Sequence[float]], welch: bool = False) -> Record:
    """A one-way ANOVA as the fields f, df, p, eta_squared and n; None with too few numbers."""
    test = _anova(groups, welch)
    if test is None:
        return {"f": None, "df": "–", "p": None, "eta_squared": None, "n": None}
    return {
        "f": test.statistic,
        "df": ", ".join(f"{x:.4g}" for x in test.df) or "–",
        "p": test.p_value,
        "eta_squared": test.effect,
        "n": test.n,
    }


def _anova(groups: Sequence[Sequence[float]], welch: bool = False) -> TestResult | None:
    enough = len(groups) >= 2 and sum(map(len, groups)) > len(groups)
    if not enough or (welch and min(map(len, groups)) < 2):
        return None
    return anova(groups, welch=welch)


def contrasts(found: Sequence[Configuration]) -> list[Record]:
    """Every two kinds of attributes against each other, over configurations.

    Returns:
        Records with first, second, difference of the mean accuracies, cohens_d, and p_adjusted of
        Welch's test (Bonferroni).
    """
    accuracies = {
        kind: [one.found.accuracy for one in found if one.kind == kind] for kind in kinds_of(found)
    }
    pairs = list(combinations(accuracies, 2))
    tests = [_anova([accuracies[a], accuracies[b]], welch=True) for a, b in pairs]
    corrected = bonferroni([test.p_value if test else None for test in tests])
    return [
        {
            "first": a,
            "second": b,
            "difference": float(np.mean(accuracies[a]) - np.mean(accuracies[b])),
            "cohens_d": cohens_d(accuracies[a], accuracies[b])
            if len(accuracies[a] + accuracies[b]) > 2
            else None,
            "p_adjusted": p,
        }
        for (a, b), p in zip(pairs, corrected, strict=True)
    ]


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


def correlations(found: Sequence[Configuration]) -> list[Record]:
    """Accuracy against gap and against sensitivity, over all configurations and per judge.

    Returns:
        Records with among, figure and the fields of `correlate`.
    """
    judges = list(dict.fromkeys(one.scores.judge for one in found))
    among = {"all": list(found)} | {
        judge: [one for one in found if one.scores.judge == judge] for judge in judges
    }
    return [
        {"among": name, "figure": figure,
         **correlate([(one.found.accuracy, one.figures[figure]) for one in own])}
        for name, own in among.items()
        for figure in ("gap", "sensitivity")
    ]  # fmt: skip


def correlate(points: Iterable[tuple[float, float | None]]) -> Record:
    """n, pearson, pearson_p, spearman and spearman_p of the defined points.

    Coefficients and p-values are None with fewer than three points or a constant figure.
    """
    pairs = np.array([(x, y) for x, y in points if y is not None], dtype=float)
    names = ("pearson", "pearson_p", "spearman", "spearman_p")
    if len(pairs) < 3 or (np.ptp(pairs, axis=0) == 0).any():
        return {"n": len(pairs), **dict.fromkeys(names)}
    from scipy.stats import pearsonr, spearmanr

    r, rho = pearsonr(*pairs.T), spearmanr(*pairs.T)
    values = (r.statistic, r.pvalue, rho.statistic, rho.pvalue)
    return {"n": len(pairs), **dict(zip(names, map(float, values), strict=True))}


def control(
    found: Sequence[Configuration],
    gaps: Mapping[str, Mapping[str, Gaps]] | None = None,
    seed: int = 0,
) -> list[Record]:
    """The spread over paraphrases against that of the same prompt (Same-Prompt Variability).

    With ``gaps`` (judge -> attribute -> gaps, the base wording asked k times) those are used.
    Otherwise both are drawn from the option probabilities, as a judge that samples at temperature 1
    among the levels would answer: one score per paraphrase, and k scores for the base wording; the
    mean gap of 200 such draws, over the items that the base wording decided. Configurations with
    neither are left out.

    Returns:
        Records per kind of attribute and over all: kind, n_configurations, n_items (of all
        configurations together), gap_reworded, gap_same, difference, ratio, n_larger
        (configurations with the larger gap when reworded) and Wilcoxon's p.
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
            reworded, same = float(a.mean()), float(b.mean())
            results.append(
                {
                    "kind": kind,
                    "n_configurations": len(of_kind),
                    "n_items": sum(own.items for own in of_kind),
                    "gap_reworded": reworded,
                    "gap_same": same,
                    "difference": reworded - same,
                    "ratio": reworded / same if same else None,
                    "n_larger": int((a > b).sum()),
                    "p": wilcoxon(a, b).p_value,
                }
            )
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
