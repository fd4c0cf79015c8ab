"""How many items or labels settle a question, and the smallest difference that a sample shows.

A question is settled if the interval of an estimate excludes a threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from judgesense.statistics.arrays import Floats

PROBABILITY = 0.8
"""Probability with which a plan settles its question."""

MOST_CLUSTERS = 200_000
"""A plan that needs more is no plan."""


@dataclass(frozen=True)
class Pilot:
    """An estimate with its interval on a first sample, from which a larger one is planned.

    Attributes:
        estimate: the figure.
        low: the lower end of its interval.
        high: the upper end, or None where there is no bound.
        seen: number of clusters (items) behind it, at least 2.
        scale: of the figure: ``share`` in [0, 1], ``correlation`` in [-1, 1], ``ratio`` above 0 or
            ``plain``. Errors are constant on its logit, Fisher's z, its log or itself.
        fixed: the interval without the part of the error that more items do not shrink (the spread
            over wordings), or None if all of it shrinks.
        level: confidence level of the interval.
        bounds: the figures that the ends belong to, if they are not those of the estimate: of a
            share with missing rows, its value if all of them were misses, or hits.
    """

    estimate: float
    low: float
    high: float | None
    seen: int
    scale: str = "plain"
    fixed: tuple[float, float] | None = None
    level: float = 0.95
    bounds: tuple[float, float] | None = None

    def drawn(
        self,
        threshold: float,
        sizes: Any,
        rng: np.random.Generator,
        n: int = 400,
        fresh: bool = False,
    ) -> Floats:
        """Where the interval lies in runs of several sizes: 1 above, -1 below, 0 including.

        The estimate of each larger run is drawn around this one's, with the error that is left
        to see: runs keep the items at hand and add others, so that the variance of the change is
        that of the estimate times (1 - seen / size); or, if ``fresh``, a share is measured on as
        many other items (times 2). Their interval has this one's width, less what more items
        shrink.

        Returns:
            States, shape (sizes, n).
        """
        from scipy.special import ndtri, stdtrit

        sizes = np.asarray(sizes, dtype=np.float64)
        at, limit = self._on_scale(self.estimate), float(self._on_scale(threshold))
        lowest, highest = map(self._on_scale, self.bounds or (self.estimate, self.estimate))
        t = stdtrit(np.maximum(self.seen - 1, 1), (1 + self.level) / 2)
        below = (lowest - self._on_scale(self.low)) / t
        above = below if self.high is None else (self._on_scale(self.high) - highest) / t
        error, wording_error = np.maximum([below, above], 1e-9), np.zeros(2)
        if self.fixed is not None:
            by_items = [at - self._on_scale(self.fixed[0]), self._on_scale(self.fixed[1]) - at] / t
            error = np.maximum(error, by_items)
            wording_error = np.sqrt(error**2 - by_items**2)
            error = np.maximum(by_items, 1e-9)
        ratio = self.seen / sizes
        spread = error.mean() * np.sqrt(1 + ratio if fresh else np.maximum(0.0, 1 - ratio))
        # Evenly spread quantiles in random order: the shares of states are exact to 1 / n.
        change = spread[:, None] * ndtri((rng.permutation(n) + 0.5) / n)
        widths = np.sqrt(error[:, None] ** 2 * ratio + wording_error[:, None] ** 2)
        widths = widths * stdtrit(np.maximum(sizes - 1, 1), (1 + self.level) / 2)
        passes = lowest + change - widths[0][:, None] > limit
        if fresh:
            # A share nearer to 1 has a wider interval on this scale, but the same sample.
            least_share = threshold + t * np.sqrt(threshold * (1 - threshold) / self.worth)
            passes = (lowest + change > self._on_scale(least_share)) & (least_share < 1)
        states: Floats = passes.astype(float) - (highest + change + widths[1][:, None] < limit)
        return states

    @property
    def worth(self) -> float:
        """The effective sample behind Wilson's lower end, which is the same for another share."""
        from scipy.special import stdtrit

        t = float(stdtrit(max(1, self.seen - 1), (1 + self.level) / 2))
        gap = (self.bounds or (self.estimate,))[0] - self.low
        return max(1e-6, t**2 * self.low * (1 - self.low) / max(gap, 1e-9) ** 2)

    def needed(self, threshold: float, most: int = MOST_CLUSTERS) -> int | None:
        """The number of clusters in all that settles a threshold with 80% probability.

        None if not even the most do.
        """
        sizes = np.unique(np.geomspace(self.seen + 1, max(most, self.seen + 1), 200).astype(int))
        states = self.drawn(threshold, sizes, np.random.default_rng(0))
        enough = sizes[(states != 0).mean(axis=1) >= PROBABILITY]
        return int(enough[0]) if len(enough) else None

    def _on_scale(self, value: float) -> Any:
        # A figure at the end of its range is half an event inside it.
        inside = 0.5 / (self.seen + 1)
        if self.scale == "share":
            share = min(max(value, inside), 1 - inside)
            return np.log(share / (1 - share))
        if self.scale == "correlation":
            return np.arctanh(min(max(value, inside - 1), 1 - inside))
        return np.log(max(value, 1e-6)) if self.scale == "ratio" else np.float64(value)


def smallest_difference(ci_low: float, ci_high: float, clusters: int) -> float:
    """The smallest true difference that a sample shows with probability 0.8, from its interval.

    (t + z) standard errors: t of the two-sided 95% interval, z of the probability (Cohen 1988).
    """
    from scipy.special import ndtri, stdtrit

    t = float(stdtrit(max(1, clusters - 1), 0.975))
    return (t + float(ndtri(PROBABILITY))) * ((ci_high - ci_low) / (2 * t))
