"""Variance components: how much of a judge's scores comes from item, template, order or rerun."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from judgesense.statistics.agreement import UNDECIDED
from judgesense.statistics.arrays import Floats
from judgesense.statistics.result import ResultMapping
from judgesense.statistics.tables import numbers

FACTORS = ("item", "template", "order")


@dataclass(frozen=True, eq=False)
class Components(ResultMapping):
    """Variance components of a crossed grid.

    `variances` maps a source to its estimate, negative estimates set to 0 (and listed in
    `negative`): `item`, `template`, `order`, their pairs (`item:template`, ...) if the grid
    separates them from the residual, `residual` (the highest interaction), and `rerun` (the same
    prompt asked again). With one rerun `rerun` is None and `residual` includes its noise. `shares`
    are parts of the sum, None if nothing varies.
    """

    variances: dict[str, float | None]
    shares: dict[str, float | None]
    negative: list[str]
    levels: dict[str, int]


def components(scores: npt.ArrayLike) -> Components:
    """Split the variance of scores over a crossed grid, all factors random, reruns within cells.

    Analysis-of-variance estimates from expected mean squares (Brennan 2001, "Generalizability
    Theory", section 3.3): variance of a source = alternating sum of the mean squares of the sources
    that contain it, divided by the number of scores a level of it averages over.

    Args:
        scores: shape (items, templates), (items, templates, orders) or (items, templates, orders,
            reruns); at least two items and two templates; 0/1 for a decision.

    Returns:
        The components.

    Raises:
        ValueError: another shape, a missing (NaN) cell, or fewer than two items or templates.

    >>> components([[1, 1], [0, 0], [1, 1]]).shares["item"]
    1.0
    """
    try:
        ndim = np.ndim(scores)
    except ValueError:
        raise ValueError("scores is ragged: pass one score in every cell of the grid") from None
    if ndim not in (2, 3, 4):
        raise ValueError(
            f"scores has {ndim} dimensions: pass items x templates (x orders (x reruns))"
        )
    grid = numbers(scores, "scores", ndim)
    return _estimate(_four_axes(grid, "scores")[..., None])


def label_components(labels: npt.ArrayLike) -> Components:
    """Variance components of nominal decisions: those of each label's 0/1 column, summed.

    The total is the Gini-Simpson index of the labels (Light & Margolin 1971, CATANOVA), so a share
    is a share of the chance that two decisions differ.

    Args:
        labels: strings, in a shape that `components` takes; undecided cells are not allowed.

    Returns:
        The components.

    Raises:
        ValueError: as `components`; also a cell that is not a string or not a decision.

    >>> label_components([["A", "B"], ["A", "B"]]).shares["template"]
    1.0
    """
    grid = np.asarray(labels, dtype=object)
    if grid.ndim not in (2, 3, 4) or grid.size == 0:
        raise ValueError(
            f"labels has shape {grid.shape}: pass items x templates (x orders (x reruns))"
        )
    for place, value in enumerate(grid.ravel().tolist()):
        if not isinstance(value, str) or value in UNDECIDED:
            at = "][".join(str(int(axis)) for axis in np.unravel_index(place, grid.shape))
            raise ValueError(
                f"labels[{at}] is {value!r}, not a decision: pass a label, or leave out the item"
            )
    grid = _four_axes(grid, "labels")
    return _estimate(
        np.stack([grid == name for name in sorted(set(grid.ravel()))], -1).astype(float)
    )


def _four_axes(grid: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    items, templates = grid.shape[:2]
    if items < 2 or templates < 2:
        raise ValueError(
            f"{name} covers {items} item(s) and {templates} template(s): pass at least two of each"
        )
    return grid.reshape(grid.shape + (1,) * (4 - grid.ndim))


def _estimate(grid: Floats) -> Components:
    """Components of a grid of shape (items, templates, orders, reruns, columns), columns summed."""
    size = dict(zip((*FACTORS, "rerun"), grid.shape, strict=False))
    factors = [name for name in FACTORS if size[name] > 1]
    sources = [s for r in range(1, len(factors) + 1) for s in combinations(factors, r)]
    axis = {name: place for place, name in enumerate((*FACTORS, "rerun"))}
    means = {
        source: grid.mean(
            axis=tuple(axis[name] for name in axis if name not in source), keepdims=True
        )
        for source in [(), *sources]
    }
    scores_per_level = {
        source: int(np.prod([size[name] for name in size if name not in source]))
        for source in sources
    }
    square: dict[tuple[str, ...], float] = {}
    for source in sources:
        effect = sum(
            (-1) ** (len(source) - len(part)) * means[part]
            for r in range(len(source) + 1)
            for part in combinations(source, r)
        )
        degrees = int(np.prod([size[name] - 1 for name in source]))
        square[source] = float((effect**2).sum()) * scores_per_level[source] / degrees
    top = tuple(factors)
    rerun = None
    if size["rerun"] > 1:
        cells = int(np.prod(grid.shape[:3]))
        rerun = float(((grid - means[top]) ** 2).sum()) / (cells * (size["rerun"] - 1))
    raw: dict[str, float | None] = {}
    for source in sources:
        value = sum(
            (-1) ** (len(wider) - len(source)) * square[wider]
            for wider in sources
            if set(source) <= set(wider)
        )
        if source == top and rerun is not None:
            value -= rerun  # below the top the rerun noise cancels
        raw["residual" if source == top else ":".join(source)] = value / scores_per_level[source]
    raw["rerun"] = rerun
    scale = max(abs(value) for value in raw.values() if value is not None)
    negative = [n for n, value in raw.items() if value is not None and value < -1e-12 * scale]
    variances = {n: None if value is None else max(0.0, value) for n, value in raw.items()}
    total = sum(value for value in variances.values() if value is not None)
    shares = {n: None if v is None or total == 0 else v / total for n, v in variances.items()}
    return Components(variances, shares, negative, size)


def generalisability(
    variances: Mapping[str, float | None],
    n_templates: int,
    n_orders: int = 1,
    n_reruns: int = 1,
    absolute: bool = False,
) -> float | None:
    """How well scores averaged over several templates separate the items.

    Relative: G = v(item) / (v(item) + error), the error being all sources with the item in them,
    each divided by the number of levels it is averaged over. Absolute ("dependability", Phi) adds
    the sources without the item (Brennan 2001, section 4.1).

    Args:
        variances: of `components`.
        n_templates: templates to average over.
        n_orders: option orders to average over.
        n_reruns: reruns of each prompt.
        absolute: count template and order shifts as error too.

    Returns:
        The coefficient in [0, 1]; None if nothing varies.

    Raises:
        ValueError: counts below 1, or no `item` among the variances.

    >>> generalisability({"item": 0.3, "template": 0.1, "residual": 0.3}, n_templates=3)
    0.75
    """
    item = variances.get("item")
    if item is None:
        raise ValueError("variances has no 'item': pass `components(...).variances`")
    counts = {"template": n_templates, "order": n_orders, "rerun": n_reruns}
    error = sum(
        error_terms(variances, counts, with_item=True).values(),
        sum(error_terms(variances, counts, with_item=False).values()) if absolute else 0.0,
    )
    return item / (item + error) if item + error > 0 else None


def error_terms(
    variances: Mapping[str, float | None], counts: Mapping[str, int], *, with_item: bool
) -> dict[str, float]:
    """Error variances of one item's mean over `counts` templates, orders and reruns, by source.

    `with_item` picks the sources that differ from item to item, else those common to all items.

    Raises:
        ValueError: a count that is not an integer of at least 1.

    >>> counts = {"template": 2, "order": 1, "rerun": 1}
    >>> error_terms({"item": 1.0, "template": 0.5, "residual": 0.2}, counts, with_item=True)
    {'residual': 0.1}
    """
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise ValueError(f"n_{name}s is {count!r}: pass an integer of at least 1")
    crossed = "order" in variances
    terms = {}
    for name, value in variances.items():
        if value is None or name == "item":
            continue
        if name in ("residual", "rerun"):
            parts = {"item", "template", *(["order"] if crossed else [])}
            parts |= {"rerun"} if name == "rerun" else set()
        else:
            parts = set(name.split(":"))
        if ("item" in parts) == with_item:
            divisor = int(np.prod([counts[part] for part in parts - {"item"}]))
            terms[name] = value / divisor
    return terms
