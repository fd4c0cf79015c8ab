"""Whether the items of a comparison were chosen by what they show, so that they are no sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from judgesense.statistics.arrays import Bools, Floats
from judgesense.statistics.attribution import anchors_differ
from judgesense.statistics.labelled import NOT_RANDOM
from judgesense.text import number, percent

Chosen = Literal["missing", "unchanged"]
"""How a file shows that items were asked again by their old value: the others are missing, or have
the old value."""

_OFF = 0.001
_BOTH_WAYS = 0.1
"""The share of moves in the rarer direction from which they look like noise, not like a shift."""

_LONGER = 1.5
_MOST_KINDS, _APART = 10, 0.3
"""Values of a column that holds kinds of items; and how much more frequent one is among anchors."""


def chosen_by_value(old: Floats, new: Floats, absent: Floats) -> Chosen | None:
    """Whether items were asked again by their old values, after which an unchanged judge's values
    move towards the mean. ``absent`` are the old values of items that have no new one.

    >>> old, moves = np.arange(1.0, 6).repeat(12), np.tile([1.0, -1, 0, 0], 15)
    >>> chosen_by_value(old, np.where(old <= 3, old + moves, old), np.array([]))
    'unchanged'
    >>> chosen_by_value(old, old + moves, np.array([])) is None
    True
    """
    mask = np.append(np.ones(len(old), bool), np.zeros(len(absent), bool))
    p = anchors_differ(np.append(old, absent), mask) if len(absent) else None
    if p is not None and p < NOT_RANDOM:
        return "missing"
    moved, levels = old != new, np.unique(old)
    n, k = len(old), int(moved.sum())
    ups = int((new > old).sum())
    # A shift of some levels moves them one way; noise moves them both ways, wherever it is asked.
    if len(levels) < 3 or min(ups, k - ups) < max(2, _BOTH_WAYS * k):
        return None
    from scipy.special import gammaln

    for ends in ([old >= cut for cut in levels[1:]], [old <= cut for cut in levels[:-1]]):
        for end in ends:
            m = int(end.sum())
            if moved[end].any() or n - m < k:
                continue
            logs = gammaln([n - m + 1, n - k + 1, n - m - k + 1, n + 1])
            if np.exp(logs[0] + logs[1] - logs[2] - logs[3]) < _OFF:
                return "unchanged"
    return None


def anchors_unlike(
    texts: Mapping[str, Sequence[str]], outputs: Sequence[str], is_anchor: Bools
) -> str | None:
    """How the items whose output is the same differ from the others, in words; None if in nothing.

    ``texts`` are the columns, with a text for each item; of ``outputs`` lengths are compared, of
    columns with a few values their shares.
    """
    if is_anchor.all() or not is_anchor.any():
        return None
    for name, column in texts.items():
        if name in outputs:
            words = np.array([len(text.split()) for text in column], np.float64)
            p = anchors_differ(np.log1p(words), is_anchor)
            one, two = (float(np.median(words[mask])) for mask in (is_anchor, ~is_anchor))
            far = max(one, two) >= _LONGER * max(1.0, min(one, two))
            if far and p is not None and p < NOT_RANDOM / len(texts):
                sizes = f"{number(one, 0)} words, not {number(two, 0)}"
                return f"the length of {name!r} (median {sizes})"
        elif 1 < len(kinds := {*column}) <= _MOST_KINDS:
            for kind in sorted(kinds):
                held = np.array([text == kind for text in column], np.float64)
                shares = [float(held[mask].mean()) for mask in (is_anchor, ~is_anchor)]
                p = anchors_differ(held, is_anchor)
                is_clear = p is not None and p < NOT_RANDOM / len(texts) / len(kinds)
                if is_clear and abs(shares[0] - shares[1]) >= _APART:
                    of = " and ".join(map(percent, shares))
                    return f"{name!r} ({kind!r} is {of} of them)"
    return None
