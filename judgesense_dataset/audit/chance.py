"""How far a judge gets without reading: shallow rules and a small model against the gold label.

Every rule is scored on one scale, where chance is 0.5 whatever the labels. For two options, the
score is the share of items whose gold option the rule picks. For a single text, it is the share of
pairs of items with different gold labels that the rule ranks as gold does (for two labels the area
under the ROC curve; for more, Harrell et al. 1982). Ties count one half.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.errors import MissingExtraError
from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.intervals import wilson
from judgesense_dataset.audit.shortcuts import MIN_ITEMS, GradedText, overlap, stable_key

BAND = (0.44, 0.56)
"""A rule inside this band is at chance."""

PASS, FAIL, OPEN = "pass", "fail", "open"

FEATURES = ("length", "overlap", "sentences", "punctuation")
POSITION, SYSTEM, MODEL = "position", "system", "model"

_SENTENCE_END = re.compile(r"[.!?…]+(?=\s|$)|[。！？]")
_PUNCTUATION = re.compile(r"[^\w\s]")
_FOLDS, _REPEATS = 5, 5
_RARE = 5
"""A system with fewer texts tells nothing about others (a passage's id is such a system)."""


@dataclass(frozen=True, slots=True)
class Shortcut:
    """How often a rule agrees with gold; chance is 0.5.

    ``state`` is ``pass`` inside :data:`BAND`, ``fail`` outside it if the 95% interval excludes 0.5,
    and ``open`` outside it otherwise: there are too few items to tell.
    """

    name: str
    accuracy: float
    ci_low: float | None
    ci_high: float | None
    items: int

    @property
    def state(self) -> str:
        """``pass``, ``fail`` or ``open``."""
        if BAND[0] <= self.accuracy <= BAND[1]:
            return PASS
        known = self.ci_low is not None and self.ci_high is not None
        return FAIL if known and not self.ci_low <= 0.5 <= self.ci_high else OPEN  # type: ignore[operator]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, with the state."""
        names = ("accuracy", "ci_low", "ci_high", "items", "state")
        return {name: getattr(self, name) for name in names}


def text_features(text: str, context: frozenset[str]) -> tuple[float, ...]:
    """A text's :data:`FEATURES`: log characters, share of the context's words, sentences, and
    punctuation marks per 100 characters.

    >>> text_features("Yes. It is.", frozenset({"is", "who"}))[1:3]
    (0.5, 2.0)
    """
    return (
        float(np.log1p(len(text))),
        overlap(text, context),
        float(max(1, len(_SENTENCE_END.findall(text)))),
        100 * len(_PUNCTUATION.findall(text)) / max(1, len(text)),
    )


def feature_table(cases: Sequence[GradedText]) -> Floats:
    """Shape (cases, features): of two options, the first one's features minus the second one's."""
    each = [[text_features(text, case.context) for text in case.texts] for case in cases]
    table = np.array(each, dtype=float)
    return table[:, 0] - table[:, 1] if table.shape[1] == 2 else table[:, 0]


def shortcuts(cases: Sequence[GradedText], labels: Sequence[str]) -> dict[str, Shortcut]:
    """Every feature, the source system and the cross-validated model, by name.

    The model is linear in the four features, and so is the rule for systems in their indicators.
    Both are cross-validated in 5 folds of whole clusters, 5 times over; they need 20 clusters.
    Without scikit-learn, the two are left out.

    Args:
        cases: one an item, all with one text or all with two.
        labels: the task's labels; the first one names the first option.
    """
    gold = np.array([labels.index(case.gold) for case in cases])
    if not cases or (len(cases[0].texts) == 1 and len(set(gold.tolist())) < 2):
        return {}
    clusters = _codes([case.cluster_id for case in cases])
    comparative = len(cases[0].texts) == 2
    table = feature_table(cases)
    # Labels of a two-way question begin with YES: a higher score should mean the first label.
    gold = -gold if len(labels) == 2 else gold
    found = {}
    for name, values in zip(FEATURES, table.T, strict=True):
        if values.any() if comparative else values.min() < values.max():
            found[name] = measured(name, *_hits(values, gold, comparative), clusters, comparative)
    folds = _folds([case.cluster_id for case in cases])
    if folds is not None:
        tables = {SYSTEM: system_table(cases), MODEL: table}
        for name, columns in tables.items():
            if columns is None:
                continue
            scored = _cross_validated(columns, gold, folds, comparative)
            if scored is not None:
                found[name] = measured(name, *scored, clusters, comparative)
    return found


def measured(
    name: str, hits: Floats, tries: Floats, clusters: Codes, comparative: bool
) -> Shortcut:
    """The share of hits with Wilson's interval on the effective sample (t at clusters - 1).

    The variance is that of a ratio of cluster totals; a pair of items counts in both, so the
    influence of an item is twice its share (Sen 1960).
    """
    from scipy.special import stdtrit

    share = float(hits.sum() / tries.sum())
    k = int(clusters.max()) + 1
    if k < 2:
        return Shortcut(name, share, None, None, len(hits))
    degree = 1 if comparative else 2
    influence = degree * (hits - share * tries) / tries.sum()
    spread = float((np.bincount(clusters, influence) ** 2).sum()) * k / (k - 1)
    # Where every cluster says the same, the clusters are the sample.
    n = k if spread <= 0 or share in (0, 1) else share * (1 - share) / spread
    low, high = wilson(share, n, float(stdtrit(k - 1, 0.975)))
    return Shortcut(name, share, low, high, len(hits))


def position(golds: Sequence[bool], clusters: Sequence[str]) -> Shortcut:
    """How often the option shown first is the gold one, over rows."""
    hits = np.array(golds, dtype=float)
    return measured(POSITION, hits, np.ones_like(hits), _codes(clusters), True)


def _hits(values: Floats, gold: npt.NDArray[Any], comparative: bool) -> tuple[Floats, Floats]:
    """Hits and tries of each item, for scores that should rise with gold."""
    if comparative:
        signs = np.where(gold == 0, 1, -1)
        return (np.sign(values) * signs + 1) / 2, np.ones(len(values))
    hits, tries = np.zeros(len(values)), np.zeros(len(values))
    for low, high in combinations(sorted(set(gold.tolist())), 2):
        for one, other, sign in ((low, high, 1), (high, low, -1)):
            mine, theirs = gold == one, np.sort(sign * values[gold == other])
            # Of the other label's scores, those above mine; ties count one half.
            at = sign * values[mine]
            above = len(theirs) - np.searchsorted(theirs, at, "right")
            level = len(theirs) - np.searchsorted(theirs, at, "left")
            hits[mine] += (above + level) / 2
            tries[mine] += len(theirs)
    return hits, tries


def _cross_validated(
    table: Floats, gold: npt.NDArray[Any], folds: Sequence[Codes], comparative: bool
) -> tuple[Floats, Floats] | None:
    """Hits and tries of a linear model that never saw the item's cluster, over all repeats."""
    try:
        import sklearn.linear_model  # noqa: F401
    except ImportError:
        return None
    spread = table.std(axis=0)
    if not (spread > 0).any():
        return None
    table = table[:, spread > 0] / spread[spread > 0]
    hits, tries = np.zeros(len(table)), np.zeros(len(table))
    for fold in folds:
        for at in range(_FOLDS):
            train, test = fold != at, fold == at
            if not comparative and len(set(gold[train].tolist())) < 2:
                continue
            scores = _scores(table[train], gold[train], table[test], comparative)
            # Pairs within a fold only: models of different folds have different origins.
            right, tried = _hits(np.round(scores, 12), gold[test], comparative)
            hits[test] += right
            tries[test] += tried
    if comparative:
        hits, tries = hits / np.maximum(tries, 1), np.minimum(tries, 1)
    return (hits, tries) if tries.sum() else None


def fitted_scores(table: Floats, gold: npt.NDArray[Any], comparative: bool) -> Floats:
    """The scores of the linear model fitted on all cases, to balance them by.

    ``gold`` are places in the task's labels. Scores rise towards the first option, the first of
    two labels, or the higher level. Raises MissingExtraError without scikit-learn.
    """
    try:
        import sklearn.linear_model  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "data", "matching items") from error
    spread = table.std(axis=0)
    table = table / np.where(spread > 0, spread, 1)
    coded = -gold if len(set(gold.tolist())) == 2 else gold
    return _scores(table, coded, table, comparative)


def _scores(train: Floats, gold: npt.NDArray[Any], test: Floats, comparative: bool) -> Floats:
    """The scores of ``test`` by a model of ``train``; the first option's code is 0."""
    from sklearn.linear_model import LogisticRegression, Ridge

    if not comparative:
        predicted: Floats = Ridge().fit(train, gold).predict(test)
        return predicted
    # Each comparison in both orders, so that the model cannot learn the position.
    said = np.concatenate([gold == 0, gold != 0])
    fitted = LogisticRegression(fit_intercept=False).fit(np.vstack([train, -train]), said)
    scores: Floats = fitted.decision_function(test)
    return scores


def system_table(cases: Sequence[GradedText]) -> Floats | None:
    """Indicators of the systems: of two options, the first one's minus the second one's."""
    uses = Counter(system for case in cases for system in case.systems)
    known = sorted(system for system, n in uses.items() if n >= _RARE and system)
    if len(known) < 2:
        return None
    table = np.zeros((len(cases), len(known)))
    for at, case in enumerate(cases):
        for place, system in enumerate(case.systems):
            if system in known:
                table[at, known.index(system)] += 1 - 2 * place
    return table


def _folds(clusters: Sequence[str]) -> list[Codes] | None:
    """The fold of each case, by repeat; None below 20 clusters. The file's order plays no part."""
    ordered = sorted(set(clusters), key=stable_key)
    if len(ordered) < MIN_ITEMS:
        return None
    rng = np.random.default_rng(0)
    place = {cluster: at for at, cluster in enumerate(ordered)}
    codes = np.array([place[cluster] for cluster in clusters])
    return [(rng.permutation(len(ordered)) % _FOLDS)[codes] for _ in range(_REPEATS)]


def _codes(ids: Sequence[str]) -> Codes:
    return np.unique(np.array(ids, dtype=object).astype(str), return_inverse=True)[1]
