"""Choose items on which no shallow feature gives the gold label away.

Items of public sets carry shortcuts: in MT-Bench the longer answer wins 3 times in 4.
:func:`match_items` adds items one by one, the gold labels in turn, each time the one of some drawn
at random that best cancels what length, shared words, sentences and punctuation already tell about
gold. It keeps as many of them as the audit finds at chance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from judgesense.statistics.arrays import Floats
from judgesense.tasks import Item
from judgesense_dataset.audit.shortcuts import (
    BAND,
    GradedText,
    feature_table,
    gold_ranks,
    hits,
    words,
)
from judgesense_dataset.pairing import judged_texts
from judgesense_dataset.sources.loader import Collected, generator, shuffled
from judgesense_dataset.templates import TaskTemplates

FEWEST = 24
"""Items are given up for balance down to this number."""

MOST_OF_A_LEVEL = 1.25
"""How many times its even share a level of a scale may have, where another is scarce."""

_POOL = 10_000
"""A larger source is sampled down to this number first."""

_DRAWN = 32
"""How many candidates a step compares."""


def match_items(entry: TaskTemplates, items: Sequence[Item], n: int, seed: int) -> Collected:
    """Choose ``n`` of a source's items, or the most for which every feature can be at chance.

    Labels are balanced, items come from many clusters, and no text is shown in two clusters. Below
    24 items the features are balanced as well as the number allows.

    Args:
        entry: the task with its templates.
        items: all items of the source, with gold labels.
        n: the number of items, at least 1.
        seed: draws the items.
    """
    rng = generator(seed, f"match:{entry.task.name}")
    items = shuffled(items, rng)[:_POOL]
    graded = [
        GradedText(
            item.cluster_id,
            item.gold or "",
            texts,
            words(*(value for value in item.fields.values() if value.strip() not in texts)),
        )
        for item in items
        for texts in [judged_texts(entry.task, item)]
    ]
    table, gold = feature_table(graded), gold_ranks(graded, entry.task.labels)
    comparative = entry.task.comparative
    chosen = _drawn(graded, table, gold, n, len(entry.task.labels), comparative, rng)

    def excess(size: int) -> float:
        """How far from chance the worst feature of the first items is."""
        first = chosen[:size]
        shares = []
        for values in table[first].T:
            right, tries = hits(values, gold[first], comparative)
            shares.append(right.sum() / max(1, tries.sum()) - 0.5)
        return float(np.abs(shares).max())

    smallest = min(FEWEST, len(chosen))
    sizes = range(len(chosen), smallest - 1, -1)
    balanced = next((size for size in sizes if excess(size) <= BAND[1] - 0.5), None)
    size = balanced or smallest
    note = (
        f"{size} of {len(items)} items were chosen such that length, shared words, sentences and "
        "punctuation do not give the gold label away"
    )
    if balanced is None:
        note += ", as far as so few items allow"
    elif size < n:
        note += f"; {n} were requested, but no larger number could be balanced"
    return Collected(shuffled([items[at] for at in chosen[:size]], rng), [note + "."])


def _drawn(
    graded: Sequence[GradedText],
    table: Floats,
    gold: np.ndarray,
    n: int,
    n_labels: int,
    comparative: bool,
    rng: np.random.Generator,
) -> list[int]:
    """Up to n items in the order in which they were added."""
    from scipy.stats import rankdata

    # What each item adds to every feature's lead over chance.
    values = np.sign(table)
    if not comparative:  # Ranks within -1 to 1, halves for ties.
        values = (2 * rankdata(table, axis=0) - 1) / len(table) - 1
    leads = (2 * gold[:, None] / (n_labels - 1) - 1) * values
    _, cluster = np.unique([one.cluster_id for one in graded], return_inverse=True)
    owners = defaultdict(list)
    for at, one in enumerate(graded):
        for text in one.texts:
            owners[text].append(at)
    free = np.ones(len(graded), dtype=bool)
    used, total = np.zeros(cluster.max() + 1), np.zeros(table.shape[1])
    counts = np.zeros(n_labels, dtype=int)
    # Of two labels each has half; on a scale a scarce level may have less.
    most = -(-n // 2) if n_labels == 2 else max(1, MOST_OF_A_LEVEL * n / n_labels)
    chosen: list[int] = []
    while len(chosen) < n:
        label = next(
            (
                at
                for at in np.argsort(counts, kind="stable")
                if counts[at] + 1 <= most and (free & (gold == at)).any()
            ),
            None,
        )
        if label is None or (n_labels == 2 and counts[label] > counts.min()):
            break
        able = np.flatnonzero(free & (gold == label))
        able = rng.choice(able, min(_DRAWN, len(able)), replace=False)
        # Clusters that are already shown come later.
        cost = ((total + leads[able]) ** 2).sum(axis=1) + used[cluster[able]]
        best = int(able[cost.argmin()])
        chosen.append(best)
        total += leads[best]
        counts[label] += 1
        used[cluster[best]] += 1
        free[best] = False
        for text in graded[best].texts:
            for other in owners[text]:
                free[other] &= cluster[other] == cluster[best]
    return chosen
