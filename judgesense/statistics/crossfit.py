"""Cross-fitting: choose on some items, score on the others, so that the choice is not flattered.

The best of several equally good alternatives looks better on the items that chose it. Here each
item is scored under the choice that the other items make, so the mean is that of the *procedure*
(choose, then use). It is about a choice from (folds - 1) / folds of the items.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from judgesense.statistics.arrays import Codes, Floats

FOLDS, REPEATS = 5, 10
LEAST_CLUSTERS = 10
"""With fewer clusters, leaving some out changes what is left too much."""

Choose = Callable[[Codes], int]


def crossfit_weights(
    clusters: Sequence[Hashable], n_choices: int, choose: Choose, seed: int = 0
) -> Floats | None:
    """How often each item was scored under each choice that the other items made.

    Args:
        clusters: one per item; the items of a cluster are in the same fold.
        n_choices: the number of alternatives.
        choose: from the rows to choose on (indices of items) to the index of the alternative.
        seed: fixes the ten random divisions into five folds.

    Returns:
        Shares, shape (items, alternatives), each row adding up to 1; None with fewer than ten
        clusters. ``(weights * scores).sum(axis=1)`` are the cross-fitted scores of the items.

    >>> scores = np.array([[1.0, 0.0]] * 20)
    >>> weights = crossfit_weights(range(20), 2, lambda rows: int(scores[rows].mean(0).argmax()))
    >>> float((weights * scores).sum(axis=1).mean())
    1.0
    """
    names = list(dict.fromkeys(clusters))
    if len(names) < LEAST_CLUSTERS:
        return None
    index = {name: at for at, name in enumerate(names)}
    cluster = np.array([index[name] for name in clusters])
    counts = np.zeros((len(cluster), n_choices))
    rng = np.random.default_rng([seed, *b"crossfit"])
    for _ in range(REPEATS):
        fold = (rng.permutation(len(names)) % FOLDS)[cluster]
        for held in range(FOLDS):
            counts[fold == held, choose(np.flatnonzero(fold != held))] += 1
    weights: Floats = counts / REPEATS
    return weights
