"""The paper's figures, per configuration and over all configurations.

"All Prompts Are Created Equal?" (Bhat and Varma), sections 3 and 4. A configuration is a judge on
an attribute, measured as a record under the column ids of the tables. Exact accuracy compares with
the human score as a level, tolerance with the raters' mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from judgesense.log.folder import Run
from judgesense.statistics.arrays import Floats
from judgesense.statistics.robustness import (
    TOLERANCES,
    paraphrase_robustness,
    tolerance_accuracies,
)
from judgesense.studies.common.study import mean
from judgesense.studies.paraphrase_robustness.grid import Scores
from judgesense.text import short_names
from judgesense_dataset.embedded import VERIFIABILITIES

RESAMPLES = 2000
DRAWS = 200
"""How often scores are drawn from the option probabilities for the same-prompt control."""

Record = dict[str, Any]


def configuration(cell: Scores, tolerance: float = 0.5, seed: int = 0) -> Record:
    """A judge on an attribute: the columns of the table, and ``cell``, ``group``, ``within`` and
    ``gaps`` (see `asked_gaps` and `drawn_gaps`).

    ``unrounded`` is the accuracy against the raters' means; ``within`` the share of scores at most
    τ from them, by τ; ``constant_accuracy`` that of always giving the most frequent human level;
    ``top_score`` the share of the judge's most frequent score. ``insensitive`` says that its scores
    hardly move, yet are right no more often than a constant score.
    """
    robustness = paraphrase_robustness(
        cell.scores,
        cell.gold,
        tolerance=tolerance,
        item_ids=list(cell.clusters),
        n_resamples=RESAMPLES,
    )
    _, gold_counts = np.unique(cell.gold, return_counts=True)
    _, counts = np.unique(cell.scores, return_counts=True)
    within = tolerance_accuracies(cell.scores, cell.human, sorted({*TOLERANCES, tolerance}))
    constant = float(gold_counts.max() / gold_counts.sum())
    return {
        "attribute": cell.attribute.name,
        "kind": cell.attribute.verifiability,
        "judge": cell.judge,
        "accuracy": robustness.accuracy,
        "ci_low": robustness.accuracy_ci_low,
        "ci_high": robustness.accuracy_ci_high,
        "gap": robustness.win_rate_gap,
        "gap_by_chance": robustness.win_rate_gap_chance,
        "sensitivity": robustness.sensitivity,
        "consistency": robustness.consistency,
        "constant_accuracy": constant,
        "unrounded": float((cell.scores == cell.human[:, None]).mean()),
        "top_score": float(counts.max() / counts.sum()),
        "option_mass": cell.mass,
        "near": within[tolerance],
        "stable": robustness.stable,
        "n_items": len(cell.items),
        "n_left_out": cell.left_out,
        "cell": cell,
        "group": cell.attribute.group,
        "within": within,
        "gaps": asked_gaps(cell) or drawn_gaps(cell, seed),
        "insensitive": (robustness.consistency or 0.0) >= 0.9 and robustness.accuracy <= constant,
    }


def means(rows: Sequence[Record], *figures: str) -> Record:
    """The mean over records of each figure, by column id."""
    return {name: mean(row[name] for row in rows) for name in figures}


def grouped(
    rows: Iterable[Record], column: str, order: Iterable[str] = ()
) -> dict[str, list[Record]]:
    """The records by the value of a column, in the given order or in that of the records."""
    groups: dict[str, list[Record]] = {name: [] for name in order}
    for row in rows:
        groups.setdefault(row[column], []).append(row)
    return {name: members for name, members in groups.items() if members}


def item_accuracies(rows: Iterable[Record]) -> list[float]:
    """The accuracy of each item of a task, over paraphrases and configurations."""
    shares: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        accuracies = (row["cell"].scores == row["cell"].gold[:, None]).mean(axis=1)
        for item, share in zip(row["cell"].items, accuracies, strict=True):
            shares.setdefault((row["group"], item), []).append(float(share))
    return [float(np.mean(accuracies_of_item)) for accuracies_of_item in shares.values()]


OPEN, PROPRIETARY = "open", "proprietary"

_SERVES = {
    OPEN: ("api.groq.com", "api.novita.ai", "router.huggingface.co"),
    PROPRIETARY: ("api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com"),
}
"""What the endpoints of known judges serve; the maker of both kinds (Mistral) is not here."""


def weights_of(run: Run) -> dict[str, str]:
    """Whether a run's judges have open weights, by short name; judges not known are left out."""
    kinds = {host: kind for kind, hosts in _SERVES.items() for host in hosts}
    kinds |= {"transformers": OPEN, "vllm": OPEN}
    entries = {judge["name"]: judge.get("describe") or {} for judge in run.record.get("judges", [])}
    kind_by_judge = {}
    for name, short in short_names(entries).items():
        description = entries[name]
        at = urlsplit(str(description.get("endpoint"))).hostname or str(description.get("engine"))
        if at in kinds:
            kind_by_judge[short] = kinds[at]
    return kind_by_judge


def contrasts(rows: Sequence[Record]) -> Iterator[Record]:
    """Every two kinds of attributes against each other, over configurations: the difference of the
    mean accuracies, Cohen's d, and p of Welch's test (Bonferroni)."""
    from scipy.stats import ttest_ind

    accuracies = {
        kind: [row["accuracy"] for row in members]
        for kind, members in grouped(rows, "kind", VERIFIABILITIES).items()
    }
    varied = {kind: len(set(members)) > 1 for kind, members in accuracies.items()}
    pairs = list(combinations(accuracies, 2))
    n_tests = sum(varied[a] and varied[b] for a, b in pairs)
    for a, b in pairs:
        x, y = accuracies[a], accuracies[b]
        difference = float(np.mean(x) - np.mean(y))
        squares, n = np.var(x) * len(x) + np.var(y) * len(y), len(x + y)
        d = p = None
        if n > 2 and (varied[a] or varied[b]):
            d = difference / float(np.sqrt(squares / (n - 2)))
        if varied[a] and varied[b]:
            p = min(1.0, float(ttest_ind(x, y, equal_var=False).pvalue) * n_tests)
        yield {"first": a, "second": b, "difference": difference, "cohens_d": d, "p_adjusted": p}


def stability(rows: Sequence[Record]) -> tuple[dict[str, tuple[int, int]], Any]:
    """Stable configurations and all, by kind, and scipy's chi-square test between kinds.

    The test is None with one kind, or if no or every configuration is stable.
    """
    from scipy.stats import chi2_contingency

    counts = {
        kind: (sum(row["stable"] is True for row in members), len(members))
        for kind, members in grouped(rows, "kind", VERIFIABILITIES).items()
    }
    table = np.array([[yes, n - yes] for yes, n in counts.values()])
    if len(counts) < 2 or not table.any(axis=0).all():
        return counts, None
    return counts, chi2_contingency(table, correction=False)


def control(rows: Sequence[Record]) -> Iterator[Record]:
    """The spread over paraphrases against that of the same prompt (Same-Prompt Variability).

    A record per kind of attribute and over all, of the configurations with gaps: ``n_items`` of
    all configurations together, ``n_larger`` configurations with the larger gap when reworded, and
    Wilcoxon's p.
    """
    from scipy.stats import wilcoxon

    for kind in (*VERIFIABILITIES, "all"):
        gaps = [r["gaps"] for r in rows if r["gaps"] is not None and kind in (r["kind"], "all")]
        if gaps:
            a, b, items = np.array(gaps).T
            reworded, same = float(a.mean()), float(b.mean())
            yield {
                "kind": kind,
                "n_configurations": len(gaps),
                "n_items": int(items.sum()),
                "gap_reworded": reworded,
                "gap_same": same,
                "difference": reworded - same,
                "ratio": reworded / same if same else None,
                "n_larger": int((a > b).sum()),
                "p": float(wilcoxon(a, b).pvalue) if (a != b).any() else None,
            }


def asked_gaps(cell: Scores) -> tuple[float, float, int] | None:
    """The gap over the paraphrases and over as many answers to the base wording, and the number of
    items, those that the base wording decided every time.

    None if the base wording was not asked again, or decided no item every time.
    """
    if cell.again is None or not (is_decided := np.isfinite(cell.again).all(axis=1)).any():
        return None
    gold = cell.gold[is_decided, None]
    reworded, same = (
        float(np.ptp((scores[is_decided] == gold).mean(axis=0)))
        for scores in (cell.scores, cell.again)
    )
    return reworded, same, int(is_decided.sum())


def drawn_gaps(cell: Scores, seed: int) -> tuple[float, float, int] | None:
    """The mean gap of scores drawn for k paraphrases, and for the base wording k times, as a judge
    that samples at temperature 1 among the levels would answer; and the number of items, those
    that the base wording decided.

    None without probabilities, or where the base wording decided no item.
    """
    is_decided = np.isfinite(cell.base)
    if cell.shares is None or not is_decided.any():
        return None
    rng = np.random.default_rng(seed)
    n, k = int(is_decided.sum()), cell.scores.shape[1]
    levels = [float(label) for label in cell.attribute.templates.task.labels]
    gold = np.searchsorted(levels, cell.gold[is_decided])
    cell_shares = cell.shares[is_decided]

    def gap(shares: Floats) -> float:
        # A score matters only by being right: a Bernoulli draw with the gold level's probability.
        p_right = shares[np.arange(n), :, gold]
        accuracies = (rng.random((DRAWS, n, k)) < p_right).mean(axis=1)
        return float(np.ptp(accuracies, axis=1).mean())

    return gap(cell_shares[:, 1:]), gap(np.repeat(cell_shares[:, :1], k, axis=1)), n
