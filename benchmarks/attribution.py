"""Was it the judge: coverage of both parts of a change, and how often a still judge is blamed.

Known mixtures of a judge's and a system's change on labels, scales and numbers, with clusters,
noise (T = 1), rare changes, and 20 to 90% anchors, which may also be the better outputs. The truth
is that of the population, from a sample of 400,000.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
from common import finish, machine

from judgesense.statistics.arrays import Bools, Floats
from judgesense.statistics.attribution import attribute

Kind = Literal["labels", "scale", "numbers"]


@dataclass(frozen=True)
class World:
    """A judge and a system that change, and what is measured of them."""

    kind: Kind
    cluster: int
    anchors: float
    judge: float
    """The shift of the judge's scale; its stretch is half as large."""
    system: float
    noise: float
    rare: float = 0.0
    """The share of outputs on which the judge changes its mind, at no noise."""
    is_biased: bool = False
    """Whether better outputs are anchors more often."""

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats, Bools]:
        """Values before and after, the later judge's of the earlier outputs, and the anchors."""
        m = n // self.cluster
        shared = rng.normal(0, 0.7 if self.cluster > 1 else 0, m)
        quality = np.repeat(shared, self.cluster) + rng.normal(0, 1, m * self.cluster)
        tilt = 0.6 * np.sign(quality) if self.is_biased else 0.0
        is_anchor = rng.random(len(quality)) < np.clip(self.anchors * (1 + tilt), 0, 1)
        moved = quality + rng.normal(self.system, 0.4, len(quality))
        flips = np.where(rng.random(len(quality)) < self.rare, -2.0, 0.0)
        old = self._judged(quality, 0.0, rng)
        again = self._judged(quality + flips, self.judge, rng)
        new = np.where(is_anchor, again, self._judged(moved + flips, self.judge, rng))
        return old, new, again, is_anchor

    def _judged(self, quality: Floats, shift: float, rng: np.random.Generator) -> Floats:
        seen = quality * (1 - shift / 2) + shift + rng.normal(0, self.noise, len(quality))
        if self.kind == "labels":
            return (seen > 0).astype(float)
        return np.clip(np.round(3 + 1.2 * seen), 1, 5) if self.kind == "scale" else seen


def measure(world: World, n: int, repetitions: int, seed: int) -> dict[str, float]:
    """Coverage of the judge's and the system's part, and how often each is called changed."""
    rng = np.random.default_rng(seed)
    old, new, again, _ = world.draw(400_000 - 400_000 % world.cluster, rng)
    truths = float((again - old).mean()), float((new - again).mean())
    counts, drawn = np.zeros(4), 0
    while drawn < repetitions:
        old, new, again, is_anchor = world.draw(n, rng)
        clusters = np.repeat(np.arange(len(old) // world.cluster), world.cluster)
        found = attribute(old, new, np.where(is_anchor, again, np.nan), clusters)
        if found is None:
            continue
        drawn += 1
        parts = found.judge, found.system
        counts[:2] += [p.ci_low <= t <= p.ci_high for p, t in zip(parts, truths, strict=True)]
        counts[2:] += [not part.is_zero_inside for part in parts]
    names = ("judge covered", "system covered", "judge blamed", "system blamed")
    return dict(zip(names, (counts / repetitions).tolist(), strict=True))


def worlds() -> list[tuple[str, World]]:
    """The worlds by what they show."""
    kinds: tuple[Kind, ...] = ("labels", "scale", "numbers")
    found = []
    for kind, cluster, anchors in product(kinds, (1, 4), (0.2, 0.5, 0.9)):
        found += [
            ("both change", World(kind, cluster, anchors, -0.4, 0.3, 0.3)),
            ("judge changes", World(kind, cluster, anchors, -0.4, 0.0, 0.0)),
            ("still, T = 1", World(kind, cluster, anchors, 0.0, 0.3, 0.5)),
            ("still, T = 1, anchors differ", World(kind, cluster, anchors, 0.0, 0.3, 0.5, 0, True)),
            ("still, T = 0", World(kind, cluster, anchors, 0.0, 0.3, 0.0)),
            ("rare changes", World(kind, cluster, anchors, 0.0, 0.3, 0.0, 0.03)),
        ]
    return found


def main() -> None:
    """Print each world's rates, then one line of JSON with the worst of each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--items", type=int, default=120)
    options = parser.parse_args()
    started = time.perf_counter()
    worst: dict[str, dict[str, float]] = {}
    for seed, (name, world) in enumerate(worlds()):
        rates = measure(world, options.items, options.repetitions, seed)
        print(f"{name:<30} {world}", json.dumps(rates), file=sys.stderr)
        before = worst.setdefault(name, rates)
        worst[name] = {
            key: (min if "covered" in key else max)(value, before[key])
            for key, value in rates.items()
        }
    seconds = time.perf_counter() - started
    rows = [
        {
            "name": f"was it the judge: {name}: {what}",
            "peer": None,
            "ratio": None,
            "ours": round(value, 3),
            "theirs": None,
            "unit": "share of samples, in the worst world",
            "n": options.repetitions,
            "seconds": round(seconds, 1),
            "machine": machine("numpy", "scipy"),
        }
        for name, rates in worst.items()
        for what, value in rates.items()
        # Where something changed, blaming it is right.
        if "covered" in what or (what == "judge blamed" and name.startswith("still"))
    ]
    finish(rows)


if __name__ == "__main__":
    main()
