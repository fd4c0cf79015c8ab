"""How often does the comparison with a baseline call a judge worse, or no worse, and is it true?

    python benchmarks/baseline_gate.py [RUNS]

Three kinds of data with known truth: one verdict per item of a judge without noise; four noisy
wordings of items of varying difficulty; and a real log resampled (flakyjudge's e2: the same prompt
asked again at temperature 1, a verdict is right if it equals the rounded human label), to which
known losses are added. Each run compares `right` with the earlier result at several sizes.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable

import numpy as np
from common import MIRROR, finish, machine

from judgesense.measure.thresholds import MARGIN
from judgesense.statistics.change import item_change, smallest_loss

Floats = np.ndarray
Generator = Callable[[np.random.Generator, int, float, float], tuple[Floats, Floats]]
"""From a size, a share lost and a share gained to the shares right before and after."""

SIZES = (50, 100, 200)
GAINED = 0.02


def one_wording(
    rng: np.random.Generator, n: int, lost: float, gained: float
) -> tuple[Floats, Floats]:
    """A judge that is right on 70% of items; the share lost is of all items."""
    right = rng.random(n) < 0.7
    return right.astype(float), moved(rng, right, 0.7, lost, gained).astype(float)


def noisy_wordings(
    rng: np.random.Generator, n: int, lost: float, gained: float
) -> tuple[Floats, Floats]:
    """Four wordings of items of varying difficulty, with new noise each time."""
    chance = rng.beta(2, 1, n)
    before = rng.binomial(4, chance) / 4
    return before, rng.binomial(4, np.clip(chance * (1 - (lost - gained) / (2 / 3)), 0, 1)) / 4


def real_log() -> Generator | None:
    """The judges' repeats at temperature 1, resampled by item; None without the log."""
    file = MIRROR.parent / "logs" / "flakyjudge" / "e2_scores.parquet"
    if not file.is_file():
        return None
    import pyarrow.parquet as pq

    repeats: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for row in pq.read_table(file).to_pylist():
        if row["condition"] == "repeat_t1" and row["score_direct"] is not None:
            is_right = round(row["score_direct"]) == round(row["human_label"])
            repeats[row["judge"], row["item_id"]].append(is_right)
    rows = np.array([each[:5] for each in repeats.values() if len(each) >= 5])

    def draw(rng: np.random.Generator, n: int, lost: float, gained: float) -> tuple[Floats, Floats]:
        own = rows[rng.integers(len(rows), size=n)]
        one, two = rng.permuted(np.tile(np.arange(5), (n, 1)), axis=1)[:, :2].T
        before, after = own[np.arange(n), one], own[np.arange(n), two]
        return before.astype(float), moved(rng, after, float(rows.mean()), lost, gained).astype(
            float
        )

    return draw


def moved(
    rng: np.random.Generator, right: Floats, share: float, lost: float, gained: float
) -> Floats:
    """Verdicts of which a share of all items is lost and another one gained, on average.

    ``share`` is that of right verdicts in the population.
    """
    flip = np.where(right, lost / share, gained / (1 - share))
    return right ^ (rng.random(len(right)) < flip)


def measure(draw: Generator, n: int, lost: float, gained: float, runs: int) -> dict[str, float]:
    """The share of runs that are called worse, and no worse."""
    rng = np.random.default_rng(n)
    found = [item_change(*draw(rng, n, lost, gained)).conclusion(MARGIN) for _ in range(runs)]
    return {name: found.count(name) / runs for name in ("worse", "no worse")}


def main() -> None:
    """Print a line per kind, change and size."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    kinds: dict[str, Generator] = {"one wording": one_wording, "noisy wordings": noisy_wordings}
    if (resampled := real_log()) is not None:
        kinds["real log"] = resampled
    else:
        print("no flakyjudge log: set JUDGESENSE_SHARED; that kind is left out")
    results = []
    changes = {
        "unchanged": (0.0, 0.0),
        "loses the margin": (MARGIN, 0.0),
        "loses 10 points": (0.1 + GAINED, GAINED),
    }
    for kind, draw in kinds.items():
        for change, (lost, gained) in changes.items():
            for n in SIZES:
                shares = measure(draw, n, lost, gained, runs)
                print(f"{kind:15} {change:17} {n:4} items: {shares}")
                wanted = {"unchanged": 0.03, "loses the margin": 0.05}.get(change)
                name = "no worse" if change == "loses the margin" else "worse"
                results.append(
                    {
                        "name": f"{name}: {kind}, {change}, {n} items",
                        "peer": "the claimed error" if wanted else "the size that the text states",
                        "ratio": None,
                        "ours": shares[name],
                        "theirs": wanted or smallest_loss(n),
                        "unit": "share of runs" if wanted else "share of runs; smallest loss found",
                        "n": runs,
                        "machine": machine("numpy"),
                    }
                )
    finish(results)


if __name__ == "__main__":
    main()
