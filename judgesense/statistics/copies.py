"""Which texts are copies of each other: the same one, or nearly, under several ids."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Sequence
from itertools import pairwise

import numpy as np

from judgesense.statistics.arrays import Codes

_NEAR = 0.5
"""Two texts are nearly the same from this share of their pairs of words on (Jaccard's)."""

FILLED = 1 / 3
"""`near_copies` of items: half of the pairs of words of each are the other's, as where one form is
filled in with other names and numbers."""

_RARE = 20
"""A pair of words in more texts than this belongs to what all of them share, such as a form."""

_FEWEST = 5
"""Rare pairs of words that a text needs to be compared."""

_WORD = re.compile(r"\w+")


def folded(text: str) -> str:
    """A text without what does not make it another one: case, width, space.

    >>> folded(" The  CAT\\nsat. ")
    'the cat sat.'
    """
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def linked(*keys: Sequence[Hashable]) -> Codes:
    """Codes of the groups of rows that share any key with another row of the group, shape (n,).

    >>> linked(["q1", "q2", "q3", "q4"], ["a", "b", "b", "c"]).tolist()
    [0, 1, 1, 2]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    names: dict[Hashable, int] = {}
    ends = np.array(
        [
            [names.setdefault((place, key), len(names)) for key in column]
            for place, column in enumerate(keys)
        ],
        dtype=np.int64,
    )
    one, two = np.tile(ends[0], len(keys) - 1), ends[1:].ravel()
    graph = coo_array((np.ones(len(one)), (one, two)), shape=(len(names), len(names)))
    return _in_order(connected_components(graph, directed=False)[1][ends[0]])


def near_copies(texts: Sequence[str], most: int = _RARE, near: float = _NEAR) -> Codes:
    """Codes of the groups of texts that are nearly the same, shape (n,).

    Texts are compared by their pairs of words, without those that more than ``most`` texts share:
    ``near`` is the share of the pairs of both that they have in common (Jaccard's).

    >>> text = "The parcel arrived two weeks late and nobody answered my letters about it."
    >>> near_copies([text, "Thanks, all is well.", text.replace("two", "three")]).tolist()
    [0, 1, 0]
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    pairs = [{hash(pair) for pair in pairwise(_words(text))} for text in texts]
    sizes = list(map(len, pairs))
    if not sum(sizes):
        return np.arange(len(texts))
    found = np.fromiter((pair for each in pairs for pair in each), np.int64, sum(sizes))
    rows = np.repeat(np.arange(len(texts)), sizes)
    names, columns = np.unique(found, return_inverse=True)
    table = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(texts), len(names)))
    held = np.bincount(columns)
    table = table[:, (held > 1) & (held <= most)].tocsr()
    own = np.bincount(rows, (held <= most)[columns], minlength=len(texts))
    both = (table @ table.T).tocoo()
    union = own[both.row] + own[both.col] - both.data
    alike = (both.data >= near * union) & (np.minimum(own[both.row], own[both.col]) >= _FEWEST)
    graph = csr_array((both.data[alike], (both.row[alike], both.col[alike])), shape=both.shape)
    return _in_order(connected_components(graph, directed=False)[1])


def _in_order(groups: Codes) -> Codes:
    """The groups' codes in the order in which they appear."""
    _, first, codes = np.unique(groups, return_index=True, return_inverse=True)
    order: Codes = np.argsort(np.argsort(first))[codes].astype(np.int64)
    return order


def _words(text: str) -> list[str]:
    return _WORD.findall(folded(text))
