"""How far a judge gets without reading: shallow rules and a small model against the gold label.

A dataset on which a shallow rule predicts gold rewards judges that follow the rule. `rules` asks
how often the simplest of them name the gold label. `shortcuts` scores every feature on one scale,
where chance is 0.5 whatever the labels: for two options, the share of items whose gold option the
feature picks; for a single text, the share of pairs of items with different gold labels that it
ranks as gold does (for two labels the area under the ROC curve; for more, Harrell et al. 1982).
Ties count one half.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.errors import MissingExtraError
from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.intervals import wilson

BAND = (0.44, 0.56)
"""A rule inside this band is at chance."""

PASS, FAIL, OPEN = "pass", "fail", "open"
FEATURES = ("length", "overlap", "sentences", "punctuation")
POSITION, SYSTEM, MODEL = "position", "system", "model"

MIN_CLUSTERS = 20
"""Below this number of clusters, cross-validated rules are not tried."""

_FOLDS, _REPEATS = 5, 5
_RARE = 5
"""A system with fewer texts tells nothing about others (a passage's id is such a system)."""

_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"[.!?…]+(?=\s|$)|[。！？]")
_PUNCTUATION = re.compile(r"[^\w\s]")


@dataclass(frozen=True, slots=True)
class GradedText:
    """The judged text of an item (or the two options of a comparison) with its gold label.

    ``context`` are the words of the query; ``systems`` wrote the texts, in their order.
    """

    cluster_id: str
    gold: str
    texts: tuple[str, ...]
    context: frozenset[str]
    systems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """How often a rule names the gold label, over ``n`` items.

    ``baseline`` is the share of the most frequent label, and ``p`` the one-sided exact binomial
    probability of as many hits at that rate.
    """

    name: str
    accuracy: float
    baseline: float
    n: int
    p: float

    @property
    def notable(self) -> bool:
        """Whether the rule beats the baseline by 10 points with p < 0.01 (0.05 below 10 items)."""
        return self.accuracy >= self.baseline + 0.1 and self.p < (0.01 if self.n >= 10 else 0.05)


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
        return OPEN if self.contains_chance else FAIL

    @property
    def contains_chance(self) -> bool:
        """Whether 0.5 lies in the interval, or there is none."""
        return self.ci_low is None or self.ci_high is None or self.ci_low <= 0.5 <= self.ci_high

    def to_dict(self) -> dict[str, Any]:
        """As JSON values, with the state."""
        names = ("accuracy", "ci_low", "ci_high", "items", "state")
        return {name: getattr(self, name) for name in names}


def words(text: str) -> list[str]:
    """The words of a text in lower case."""
    return _WORD.findall(text.lower())


def overlap(text: str, context: frozenset[str]) -> float:
    """The share of the context's words that occur in the text."""
    return len(context & set(words(text))) / len(context) if context else 0.0


def rules(cases: Sequence[GradedText], labels: Sequence[str]) -> list[Rule]:
    """Every applicable rule: length, overlap with the context, single words."""
    if not cases:
        return []
    scores: dict[str, list[list[float]]] = {
        "length": [[float(len(text)) for text in case.texts] for case in cases],
        "overlap": [[overlap(text, case.context) for text in case.texts] for case in cases],
    }
    places = _cluster_places(cases)
    many = int(places.max()) + 1 >= MIN_CLUSTERS
    golds = np.array([case.gold for case in cases])
    guesses: dict[str, npt.NDArray[Any]] = {}
    applied = []
    if len(cases[0].texts) == 2:
        for name, values in scores.items():
            first, second = np.array(values).T
            guessed = np.where(first > second, labels[0], labels[1])
            if (apart := first != second).any():
                applied.append(_rule(name, (guessed == golds)[apart].tolist(), 0.5))
        if many:
            margins = _word_margins(cases, labels, places % _FOLDS)
            guesses["words"] = np.where(margins >= 0, labels[0], labels[1])
    elif many:
        values = {"length": np.log1p(scores["length"]), "overlap": np.array(scores["overlap"])}
        for name, column in values.items():
            if column.min() < column.max():
                guesses[name] = _nearest(golds, column.ravel(), places % _FOLDS)
        seen, of_words = _naive_bayes([c.texts[0] for c in cases], golds, places % _FOLDS)
        guesses["words"] = seen[of_words.argmax(axis=1)]
    baseline = max(Counter(golds.tolist()).values()) / len(cases)
    return applied + [
        _rule(name, (guessed == golds).tolist(), baseline) for name, guessed in guesses.items()
    ]


def _rule(name: str, right: Sequence[bool], baseline: float) -> Rule:
    from scipy.special import bdtrc

    hits, n = sum(right), len(right)
    # The probability of more than hits - 1, without scipy.stats, which takes a second to load.
    chance = float(bdtrc(hits - 1, n, baseline)) if hits else 1.0
    return Rule(name, hits / n, baseline, n, chance)


def _nearest(golds: npt.NDArray[Any], values: Floats, folds: Codes) -> npt.NDArray[Any]:
    """The label whose mean score, over the other folds, is nearest."""
    guesses = np.empty(len(golds), dtype=object)
    for fold in range(_FOLDS):
        train, test = folds != fold, folds == fold
        seen = sorted(set(golds[train]))
        means = np.array([values[train & (golds == label)].mean() for label in seen])
        nearest = np.abs(values[test][:, None] - means).argmin(axis=1)
        guesses[test] = [seen[at] for at in nearest]
    return guesses


def word_scores(cases: Sequence[GradedText], labels: Sequence[str]) -> Floats | None:
    """Each case's score by single words, learnt on other clusters; None with too few of them.

    Scores rise towards the first option, the first of two labels, or the higher level.
    """
    places = _cluster_places(cases)
    if int(places.max()) + 1 < MIN_CLUSTERS:
        return None
    if len(cases[0].texts) == 2:
        return _word_margins(cases, labels, places % _FOLDS)
    golds = np.array([labels.index(case.gold) for case in cases])
    seen, scores = _naive_bayes([case.texts[0] for case in cases], golds, places % _FOLDS)
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected: Floats = scores @ seen / scores.sum(axis=1)
    return -expected if len(labels) == 2 else expected


def _word_margins(cases: Sequence[GradedText], labels: Sequence[str], folds: Codes) -> Floats:
    """Naive Bayes on chosen against rejected options: the first option's lead."""
    texts = [text for case in cases for text in case.texts]
    gold = np.array([case.gold == label for case in cases for label in labels])
    scores = _naive_bayes(texts, gold, folds.repeat(2))[1]
    margin: Floats = scores[:, 1] - scores[:, 0]
    return margin[::2] - margin[1::2]


def _naive_bayes(
    texts: Sequence[str], classes: npt.NDArray[Any], folds: Codes
) -> tuple[npt.NDArray[Any], Floats]:
    """The classes, and each text's log score of each class, trained on the other folds.

    A word counts once per text: its frequency within a text says little.
    """
    from scipy.sparse import csr_array

    number: dict[str, int] = {}
    bags = [[number.setdefault(w, len(number)) for w in sorted(set(words(t)))] for t in texts]
    ends = np.cumsum([0, *map(len, bags)])
    columns = np.array([column for bag in bags for column in bag], dtype=np.int64)
    counts = csr_array((np.ones(len(columns)), columns, ends), shape=(len(texts), len(number)))
    seen = np.unique(classes)
    scores = np.full((len(texts), len(seen)), -np.inf)
    for fold in range(_FOLDS):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        for at, label in enumerate(seen):
            rows = train[classes[train] == label]
            if len(rows):
                rates = 1 + counts[rows].sum(axis=0)
                prior = np.log(len(rows) / len(train))
                scores[test, at] = counts[test] @ np.log(rates / rates.sum()) + prior
    return seen, scores


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
    clusters = [case.cluster_id for case in cases]
    comparative = len(cases[0].texts) == 2
    table = feature_table(cases)
    # Labels of a two-way question begin with YES: a higher score should mean the first label.
    gold = -gold if len(labels) == 2 else gold
    measured = {}
    for name, values in zip(FEATURES, table.T, strict=True):
        if values.any() if comparative else values.min() < values.max():
            measured[name] = _measure(
                name, *_hits(values, gold, comparative), clusters, comparative
            )
    places = _cluster_places(cases)
    n = int(places.max()) + 1
    if n >= MIN_CLUSTERS:
        rng = np.random.default_rng(0)
        folds = [(rng.permutation(n) % _FOLDS)[places] for _ in range(_REPEATS)]
        for name, columns in ((SYSTEM, system_table(cases)), (MODEL, table)):
            if columns is not None and (
                held_out := _cross_validated(columns, gold, folds, comparative)
            ):
                measured[name] = _measure(name, *held_out, clusters, comparative)
    return measured


def position(first_is_gold: Sequence[bool], clusters: Sequence[str]) -> Shortcut:
    """How often the option shown first is the gold one, over rows."""
    hits = np.array(first_is_gold, dtype=float)
    return _measure(POSITION, hits, np.ones_like(hits), clusters, True)


def _measure(
    name: str, hits: Floats, tries: Floats, cluster_ids: Sequence[str], comparative: bool
) -> Shortcut:
    """The share of hits with Wilson's interval on the effective sample (t at clusters - 1).

    The variance is that of a ratio of cluster totals; a pair of items counts in both, so the
    influence of an item is twice its share (Sen 1960).
    """
    from scipy.special import stdtrit

    clusters = np.unique(np.array(cluster_ids, dtype=object).astype(str), return_inverse=True)[1]
    share = float(hits.sum() / tries.sum())
    k = int(clusters.max()) + 1
    if k < 2:
        return Shortcut(name, share, None, None, len(hits))
    influence = (1 if comparative else 2) * (hits - share * tries) / tries.sum()
    spread = float((np.bincount(clusters, influence) ** 2).sum()) * k / (k - 1)
    # Where every cluster says the same, the clusters are the sample.
    n = k if spread <= 0 or share in (0, 1) else share * (1 - share) / spread
    low, high = wilson(share, n, float(stdtrit(k - 1, 0.975)))
    return Shortcut(name, share, low, high, len(hits))


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
            try:
                scores = _model_scores(table[train], gold[train], table[test], comparative)
            except MissingExtraError:
                return None
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
    spread = table.std(axis=0)
    table = table / np.where(spread > 0, spread, 1)
    coded = -gold if len(set(gold.tolist())) == 2 else gold
    return _model_scores(table, coded, table, comparative)


def _model_scores(train: Floats, gold: npt.NDArray[Any], test: Floats, comparative: bool) -> Floats:
    """The scores of ``test`` by a model of ``train``; the first option's code is 0."""
    try:
        from sklearn.linear_model import LogisticRegression, Ridge
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "data", "matching items") from error
    scores: Floats
    if comparative:
        # Each comparison in both orders, so that the model cannot learn the position.
        chosen = np.concatenate([gold == 0, gold != 0])
        fitted = LogisticRegression(fit_intercept=False).fit(np.vstack([train, -train]), chosen)
        scores = fitted.decision_function(test)
    else:
        scores = Ridge().fit(train, gold).predict(test)
    return scores


def _cluster_places(cases: Sequence[GradedText]) -> Codes:
    """Each case's cluster, numbered in the order of hashes: a file's order decides no folds."""
    clusters = {case.cluster_id for case in cases}
    ordered = sorted(clusters, key=lambda one: hashlib.sha256(one.encode()).hexdigest())
    place: Mapping[str, int] = {cluster: at for at, cluster in enumerate(ordered)}
    return np.array([place[case.cluster_id] for case in cases])
