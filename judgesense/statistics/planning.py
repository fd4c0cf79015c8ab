"""How many items and templates a given precision needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judgesense.statistics.intervals import wilson
from judgesense.statistics.labels import check_level
from judgesense.statistics.variance import error_terms

_MOST_ITEMS = 10_000_000


@dataclass(frozen=True)
class Design:
    """Items and templates for an interval of the wanted width; None if no number suffices."""

    templates: int
    items: int | None
    prompts: int | None


def plan(
    variances: Mapping[str, float | None],
    width: float,
    templates: Sequence[int] = (1, 2, 3, 5, 10, 20),
    *,
    n_orders: int = 1,
    n_reruns: int = 1,
    fixed_templates: bool = True,
    confidence_level: float = 0.95,
) -> list[Design]:
    """Find the number of items for a mean score of the wanted precision, per number of templates.

    Variance of the mean over I items = (v(item) + the item's error terms) / I, plus, if templates
    are a sample of all wordings, the terms common to all items (`error_terms`);
    interval = mean +- t(I - 1) * its root.

    Args:
        variances: of `variance.components`.
        width: wanted full width of the interval, in units of the score.
        templates: numbers of templates to consider.
        n_orders: option orders judged for each.
        n_reruns: reruns of each prompt.
        fixed_templates: True for an interval about these templates, False for one about all
            wordings like them (no number of items then makes up for too few templates).
        confidence_level: within (0, 1).

    Returns:
        One design per number of templates; the one with the fewest prompts is the cheapest.

    Raises:
        ValueError: a width that is not positive, counts below 1, or no `item` variance.

    >>> variances = {"item": 0.1, "template": 0.01, "residual": 0.1}
    >>> [design.items for design in plan(variances, 0.1, [1, 5])]
    [310, 187]
    """
    from scipy.special import stdtrit

    _check_positive(width, "width")
    level = check_level(confidence_level)
    item = variances.get("item")
    if item is None:
        raise ValueError("variances has no 'item': pass `components(...).variances`")
    designs = []
    for n_templates in templates:
        counts = {"template": n_templates, "order": n_orders, "rerun": n_reruns}
        own = item + sum(error_terms(variances, counts, with_item=True).values())
        common = 0.0
        if not fixed_templates:
            common = sum(error_terms(variances, counts, with_item=False).values())

        def fits(k: int, own: float = own, common: float = common) -> bool:
            quantile = float(stdtrit(k - 1, (1 + level) / 2))
            return 2 * quantile * math.sqrt(own / k + common) <= width

        k = smallest(fits)
        prompts = None if k is None else k * n_templates * n_orders * n_reruns
        designs.append(Design(n_templates, k, prompts))
    return designs


def items_needed(
    share: float,
    pairs_per_item: float = 1,
    icc: float = 0.0,
    *,
    threshold: float,
    confidence_level: float = 0.95,
) -> int | None:
    """Find how many items would settle on which side of a threshold a JSS lies.

    This is the smallest number of items for which the clustered Wilson interval excludes the
    threshold, if the share, the pairs per item and the intra-cluster correlation stay the same.

    Args:
        share: the JSS, in [0, 1].
        pairs_per_item: mean number of pairs per item.
        icc: intra-cluster correlation, in [0, 1] (`Interval.icc`).
        threshold: within (0, 1).
        confidence_level: within (0, 1).

    Returns:
        Number of items; None above ten million (the share equals the threshold).

    Raises:
        ValueError: an argument out of its range.

    >>> items_needed(0.9, pairs_per_item=10, icc=0.3, threshold=0.8)
    26
    """
    ends = _planned_interval(share, pairs_per_item, icc, check_level(confidence_level))
    if not 0 < threshold < 1:
        raise ValueError(f"threshold is {threshold!r}: pass a number between 0 and 1")

    def settled(k: int) -> bool:
        low, high = ends(k)
        return low > threshold or high < threshold

    return smallest(settled)


def items_for_width(
    share: float,
    width: float,
    pairs_per_item: float = 1,
    icc: float = 0.0,
    *,
    confidence_level: float = 0.95,
) -> int | None:
    """Find how many items give a JSS interval of at most the wanted full width.

    Args:
        share: the expected JSS, in [0, 1].
        width: wanted high - low, within (0, 1).
        pairs_per_item: number of pairs per item.
        icc: expected intra-cluster correlation, in [0, 1].
        confidence_level: within (0, 1).

    Returns:
        Number of items; None above ten million.

    Raises:
        ValueError: an argument out of its range.

    >>> items_for_width(0.9, 0.1)
    144
    """
    ends = _planned_interval(share, pairs_per_item, icc, check_level(confidence_level))
    _check_positive(width, "width")

    def fits(k: int) -> bool:
        low, high = ends(k)
        return high - low <= width

    return smallest(fits)


def _planned_interval(
    share: float, pairs_per_item: float, icc: float, level: float
) -> Callable[[int], tuple[float, float]]:
    from scipy.special import stdtrit

    for name, value, low, high in (
        ("share", share, 0, 1),
        ("icc", icc, 0, 1),
        ("pairs_per_item", pairs_per_item, 1, math.inf),
    ):
        numeric = isinstance(value, (int, float, np.integer, np.floating))
        if not numeric or isinstance(value, bool) or not low <= value <= high or value == math.inf:
            raise ValueError(f"{name} is {value!r}: pass a number from {low} to {high}")

    def ends(k: int) -> tuple[float, float]:
        n_eff = k * pairs_per_item / (1 + (pairs_per_item - 1) * icc)
        return wilson(share, n_eff, float(stdtrit(k - 1, (1 + level) / 2)))

    return ends


def smallest(holds: Callable[[int], bool], most: int = _MOST_ITEMS) -> int | None:
    """Smallest k >= 2 for which `holds(k)`, found by bisection; once true, it must stay true.

    Returns:
        The number; None if it lies above ``most``, as far as doubling tells.

    >>> smallest(lambda k: k * k >= 50), smallest(lambda k: False)
    (8, None)
    """
    high = 2
    while not holds(high):
        high *= 2
        if high > most:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def _check_positive(value: float, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ValueError(f"{name} is {value!r}: pass a positive number")
