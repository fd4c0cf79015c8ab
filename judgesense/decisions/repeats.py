"""Which rows of a decision log answer the same prompt: the first answer and the later ones."""

from __future__ import annotations

import numpy as np

from judgesense.decisions.frames import Log
from judgesense.statistics.arrays import Bools, Codes


def prompt_key(log: Log, rows: Codes) -> Codes:
    """One number for each prompt and item."""
    key = (log.stimulus[rows] * len(log.items) + log.item[rows]) * len(log.templates)
    key = (key + log.template[rows]) * len(log.orders) + log.order[rows]
    return key * len(log.variants) + log.variant[rows]


def joined(keys: Codes, left: Codes, right: Codes) -> tuple[Codes, Codes]:
    """All pairs of a row on the left and one on the right with the same key."""
    ranked = left[np.argsort(keys[left], kind="stable")]
    start = np.searchsorted(keys[ranked], keys[right], "left")
    count = np.searchsorted(keys[ranked], keys[right], "right") - start
    offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return ranked[np.repeat(start, count) + offset], np.repeat(right, count)


def first_answers(log: Log, rows: Codes) -> Bools:
    """Which rows are the first answer to their prompt and item; its repeat need not be 0."""
    repeats = log.repeat[rows]
    if (repeats == repeats[0]).all():
        return np.ones(len(rows), bool)
    keys, place = np.unique(prompt_key(log, rows), return_inverse=True)
    least = np.full(len(keys), repeats.max())
    np.minimum.at(least, place, repeats)
    first: Bools = repeats == least[place]
    return first


def repeated_answers(log: Log, once: Codes, later: Codes) -> tuple[Codes, Codes] | None:
    """The first and each later answer to the same prompt and item, as rows of the log."""
    if not len(later):
        return None
    ranked = once[np.argsort(prompt_key(log, once), kind="stable")]
    place = np.searchsorted(prompt_key(log, ranked), prompt_key(log, later))
    known = log.stimulus[later] >= 0
    return ranked[place][known], later[known]
