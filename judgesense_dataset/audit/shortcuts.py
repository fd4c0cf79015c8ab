"""How far a judge gets without reading: shallow features of the judged text against gold.

A dataset on which a feature predicts gold rewards judges that follow the feature. Chance is 0.5
whatever the labels: for two options, a feature's accuracy is the share of items whose gold option
has more of it; for a single text, the share of pairs of items with different gold labels that it
ranks as gold does (for two labels the area under the ROC curve; for more, Harrell et al. 1982).
Ties count one half.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from judgesense.statistics.arrays import Floats
from judgesense.statistics.intervals import wilson

FEATURES = {
    "length": "the longer text",
    "overlap": "the text that shares more words with the query",
    "sentences": "the text with more sentences",
    "punctuation": "the text with more punctuation",
}
BAND = (0.44, 0.56)
"""A feature inside this band is at chance."""

_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"[.!?…]+(?=\s|$)|[。！？]")
_PUNCTUATION = re.compile(r"[^\w\s]")


Graded = tuple[str, str, tuple[str, ...], frozenset[str]]
"""Of an item the cluster, the gold label, the judged text (or the two options of a comparison), and
the words of what is shown beside it."""


def words(*texts: str) -> frozenset[str]:
    """The words of texts in lower case."""
    return frozenset(word for text in texts for word in _WORD.findall(text.lower()))


def text_features(text: str, query: frozenset[str]) -> tuple[float, ...]:
    """A text's :data:`FEATURES`: characters, share of the query's words, sentences, and
    punctuation marks per 100 characters.

    >>> text_features("Yes. It is.", frozenset({"is", "who"}))[:3]
    (11.0, 0.5, 2.0)
    """
    return (
        float(len(text)),
        len(query & words(text)) / max(1, len(query)),
        float(max(1, len(_SENTENCE_END.findall(text)))),
        100 * len(_PUNCTUATION.findall(text)) / max(1, len(text)),
    )


def shortcuts(
    graded: Sequence[Graded], labels: Sequence[str]
) -> Iterator[tuple[str, float, float, float]]:
    """The features whose accuracy is outside :data:`BAND` with an interval that excludes 0.5: name,
    accuracy, and its 95% interval over clusters.

    ``graded`` is one an item, all with one text or all with two; the first of the task's ``labels``
    names the first option.
    """
    if not graded:
        return
    clusters, golds, texts, queries = zip(*graded, strict=True)
    comparative = len(texts[0]) == 2
    if not comparative and len(set(golds)) < 2:
        return
    # More of a feature should mean the higher level, or the first of two labels.
    ranks = np.array([labels.index(label) for label in golds])
    gold = 1 - ranks if len(labels) == 2 else ranks
    # Of two options, the first one's features minus the second one's: shape (items, features).
    each = [
        [text_features(text, query) for text in own]
        for own, query in zip(texts, queries, strict=True)
    ]
    table = np.array(each, dtype=float)
    table = table[:, 0] - table[:, 1] if comparative else table[:, 0]
    codes = np.unique(np.array(clusters), return_inverse=True)[1]
    for name, values in zip(FEATURES, table.T, strict=True):
        if values.any() if comparative else values.min() < values.max():
            share, low, high = _share(*hits(values, gold, comparative), codes, comparative)
            if not (BAND[0] <= share <= BAND[1] or low <= 0.5 <= high):
                yield name, share, low, high


def hits(values: Floats, gold: npt.NDArray[np.intp], comparative: bool) -> tuple[Floats, Floats]:
    """Hits and tries of each item, for values that should rise with gold; shape (items,)."""
    if comparative:
        return (np.sign(values) * (2 * gold - 1) + 1) / 2, np.ones(len(values))
    right, tries = np.zeros(len(values)), np.zeros(len(values))
    for low, high in combinations(np.unique(gold), 2):
        for one, other, sign in ((low, high, 1), (high, low, -1)):
            here, others = gold == one, np.sort(sign * values[gold == other])
            above = len(others) - np.searchsorted(others, sign * values[here], "right")
            level = len(others) - np.searchsorted(others, sign * values[here], "left")
            right[here] += (above + level) / 2
            tries[here] += len(others)
    return right, tries


def _share(
    right: Floats, tries: Floats, clusters: npt.NDArray[np.intp], comparative: bool
) -> tuple[float, float, float]:
    """The share of hits with Wilson's interval on the effective sample.

    The variance is that of a ratio of cluster totals; a pair of items counts in both, so the
    influence of an item is twice its share (Sen 1960).
    """
    share = float(right.sum() / tries.sum())
    k = int(clusters.max()) + 1
    influence = (1 if comparative else 2) * (right - share * tries) / tries.sum()
    spread = float((np.bincount(clusters, influence) ** 2).sum()) * k / max(1, k - 1)
    # Where every cluster says the same, the clusters are the sample.
    n = k if spread <= 0 or share in (0, 1) else share * (1 - share) / spread
    return share, *wilson(share, n, 1.96)
