"""Shallow rules that predict the gold label, and near-duplicate texts.

A dataset on which a shallow rule predicts gold rewards judges that follow the rule. The rules are
the simplest: the longer option, the option that shares more words with the query, and a naive Bayes
classifier on single words, cross-validated over clusters.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

_WORD = re.compile(r"\w+")
_FOLDS = 5
MIN_ITEMS = 20
"""Below this number of clusters, cross-validated rules are not tried."""


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


def words(text: str) -> list[str]:
    """The words of a text in lower case."""
    return _WORD.findall(text.lower())


def rules(cases: Sequence[GradedText], labels: Sequence[str]) -> list[Rule]:
    """Every applicable rule: length, overlap with the context, single words."""
    if not cases:
        return []
    comparative = len(cases[0].texts) == 2
    found = []
    lengths = [[float(len(text)) for text in case.texts] for case in cases]
    overlaps = [[overlap(text, case.context) for text in case.texts] for case in cases]
    if comparative:
        found.append(_compared("length", cases, lengths, labels))
        found.append(_compared("overlap", cases, overlaps, labels))
    if len({case.cluster_id for case in cases}) >= MIN_ITEMS:
        folds = _folds(cases)
        if comparative:
            # The more chosen-like option.
            guesses = np.where(_word_margins(cases, labels, folds) >= 0, labels[0], labels[1])
        else:
            found.append(_nearest("length", cases, np.log1p(lengths), folds))
            found.append(_nearest("overlap", cases, np.array(overlaps), folds))
            guesses = _labels_by_words(cases, folds)
        found.append(_rule("words", cases, guesses))
    return [rule for rule in found if rule is not None]


def overlap(text: str, context: frozenset[str]) -> float:
    """The share of the context's words that occur in the text."""
    return len(context & set(words(text))) / len(context) if context else 0.0


def _compared(
    name: str, cases: Sequence[GradedText], scores: Sequence[Sequence[float]], labels: Sequence[str]
) -> Rule | None:
    """Choose the option with the higher score; ties are left out. Chance is one in two."""
    hits = [
        labels[0 if first > second else 1] == case.gold
        for case, (first, second) in zip(cases, scores, strict=True)
        if first != second
    ]
    return _tested(name, sum(hits), len(hits), 0.5) if hits else None


def _nearest(
    name: str, cases: Sequence[GradedText], scores: np.ndarray, folds: np.ndarray
) -> Rule | None:
    """Choose the label whose mean score, over the other folds, is nearest."""
    values = scores.ravel()
    if values.min() == values.max():
        return None
    golds = np.array([case.gold for case in cases])
    guesses = np.empty(len(cases), dtype=object)
    for fold in range(_FOLDS):
        train, test = folds != fold, folds == fold
        seen = sorted(set(golds[train]))
        means = np.array([values[train & (golds == label)].mean() for label in seen])
        nearest = np.abs(values[test][:, None] - means).argmin(axis=1)
        guesses[test] = [seen[at] for at in nearest]
    return _rule(name, cases, guesses)


def word_scores(cases: Sequence[GradedText], labels: Sequence[str]) -> np.ndarray | None:
    """Each case's score by single words, learnt on other clusters; None with too few of them.

    Scores rise towards the first option, the first of two labels, or the higher level.
    """
    if len({case.cluster_id for case in cases}) < MIN_ITEMS:
        return None
    folds = _folds(cases)
    if len(cases[0].texts) == 2:
        return _word_margins(cases, labels, folds)
    golds = np.array([labels.index(case.gold) for case in cases])
    seen, scores = _naive_bayes([case.texts[0] for case in cases], golds, folds)
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected: np.ndarray = scores @ seen / scores.sum(axis=1)
    return -expected if len(labels) == 2 else expected


def _word_margins(
    cases: Sequence[GradedText], labels: Sequence[str], folds: np.ndarray
) -> np.ndarray:
    """Naive Bayes on chosen against rejected options: the first option's lead."""
    texts = [text for case in cases for text in case.texts]
    gold = np.array([case.gold == label for case in cases for label in labels])
    _, scores = _naive_bayes(texts, gold, folds.repeat(2))
    margin: np.ndarray = scores[:, 1] - scores[:, 0]
    return margin[::2] - margin[1::2]


def _labels_by_words(cases: Sequence[GradedText], folds: np.ndarray) -> np.ndarray:
    """Naive Bayes guesses at the label of each text."""
    golds = np.array([case.gold for case in cases])
    seen, scores = _naive_bayes([case.texts[0] for case in cases], golds, folds)
    return seen[scores.argmax(axis=1)]


def _naive_bayes(
    texts: Sequence[str], classes: np.ndarray, folds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
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


def _folds(cases: Sequence[GradedText]) -> np.ndarray:
    """The fold of each case; the cases of one cluster share it."""
    clusters = sorted({case.cluster_id for case in cases}, key=stable_key)
    fold = {cluster: at % _FOLDS for at, cluster in enumerate(clusters)}
    return np.array([fold[case.cluster_id] for case in cases])


def stable_key(text: str) -> str:
    """A sort key by hash, so that a file's order (say by label) does not decide the folds."""
    return hashlib.sha256(text.encode()).hexdigest()


def _rule(name: str, cases: Sequence[GradedText], guesses: np.ndarray) -> Rule:
    golds = [case.gold for case in cases]
    hits = sum(guess == gold for guess, gold in zip(guesses, golds, strict=True))
    return _tested(name, hits, len(cases), max(Counter(golds).values()) / len(cases))


def _tested(name: str, hits: int, n: int, baseline: float) -> Rule:
    from scipy.special import bdtrc

    # The probability of more than hits - 1, without scipy.stats, which takes a second to load.
    chance = float(bdtrc(hits - 1, n, baseline)) if hits else 1.0
    return Rule(name, hits / n, baseline, n, chance)


_PERMUTATIONS, _BANDS = 64, 16
_MIX = np.random.default_rng(1).integers(1, 1 << 63, _PERMUTATIONS // _BANDS, dtype=np.uint64)
_AT_ONCE = 256
"""Texts whose hashes are mixed at a time."""
_PRIME = np.uint64((1 << 61) - 1)


def near_duplicates(
    texts: Mapping[str, str], threshold: float = 0.8
) -> list[tuple[str, str, float]]:
    """Pairs of ids whose texts share most of their three-word runs, with the Jaccard index.

    Candidates come from MinHash bands (linear in the number of texts) and are then compared
    exactly; a pair at the threshold is a candidate with probability 99.98%.
    """
    ids = list(texts)
    sketches = _sketches(list(texts.values()))
    rows = _PERMUTATIONS // _BANDS
    candidates: set[tuple[int, int]] = set()
    for band in range(_BANDS):
        # Equal sums of unequal rows only add a candidate.
        sums = sketches[:, band * rows : (band + 1) * rows] @ _MIX
        _, bucket, sizes = np.unique(sums, return_inverse=True, return_counts=True)
        shared = np.flatnonzero(sizes[bucket] > 1)
        order = shared[np.argsort(bucket[shared], kind="stable")]
        for members in np.split(order, np.flatnonzero(np.diff(bucket[order])) + 1):
            for place, first in enumerate(members.tolist()):
                candidates |= {(first, other) for other in members[place + 1 : place + 51].tolist()}
    shingles = {at: _shingles(texts[ids[at]]) for at in {at for pair in candidates for at in pair}}
    close = []
    for first, second in sorted(candidates):
        a, b = shingles[first], shingles[second]
        if (index := len(a & b) / len(a | b)) >= threshold:
            close.append((ids[first], ids[second], index))
    return close


def _sketches(texts: Sequence[str]) -> np.ndarray:
    """The MinHash of each text, shape (texts, permutations)."""
    rng = np.random.default_rng(0)
    factor = rng.integers(1, 1 << 32, _PERMUTATIONS, dtype=np.uint64)
    shift = rng.integers(0, 1 << 61, _PERMUTATIONS, dtype=np.uint64)
    found = np.empty((len(texts), _PERMUTATIONS), dtype=np.uint64)
    for start in range(0, len(texts), _AT_ONCE):
        shingles = [_shingles(text) for text in texts[start : start + _AT_ONCE]]
        starts = np.cumsum([0, *map(len, shingles)])
        hashes = np.fromiter(chain.from_iterable(shingles), dtype=np.uint64, count=starts[-1])
        mixed = (hashes[:, None] * factor + shift) % _PRIME
        found[start : start + _AT_ONCE] = np.minimum.reduceat(mixed, starts[:-1], axis=0)
    return found


def _shingles(text: str) -> frozenset[int]:
    """Hashes of all runs of three words; a shorter text is one run."""
    found = words(text) or [text]
    runs = (" ".join(found[at : at + 3]) for at in range(max(1, len(found) - 2)))
    return frozenset(zlib.crc32(run.encode()) for run in runs)
