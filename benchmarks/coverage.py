"""Coverage and width of the 95% intervals on simulated clustered data with known truth.

The agreements of an item are Bernoulli(p). Each item's p comes from a Beta distribution with the
given mean (JSS) and intra-cluster correlation. For kappa, the reference label is the same in all
pairs of an item: the commoner of two labels with the given prevalence. A disagreement flips it.

    python benchmarks/coverage.py                  # summary by number of items
    python benchmarks/coverage.py --cells          # also every cell of JSS's Wilson interval
    python benchmarks/coverage.py --replicates 10000 --bootstrap-replicates 200
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from judgesense.statistics.comparison import paired_test
from judgesense.statistics.intervals import Interval, mean_t_cluster, wilson_from_sums
from judgesense.statistics.kappa import bootstrap_kappa, wilson_kappa
from judgesense.statistics.resampling import bootstrap_mean

ITEMS = (5, 25, 125)
PAIRS = (1, 2, 5, 10)
ICCS = (0.0, 0.2, 0.5, 0.8)
SHARES = (0.8, 0.9, 0.97)
PREVALENCES = (0.5, 0.8)
RESAMPLES = 1_000
Key = tuple[Any, ...]


@dataclass
class Cell:
    hits: int = 0
    n: int = 0
    width: float = 0.0
    undefined: int = 0

    def add(self, interval: Interval, truth: float) -> None:
        if interval.low is None or interval.high is None:
            self.undefined += 1
            return
        self.n += 1
        self.hits += interval.low - 1e-12 <= truth <= interval.high + 1e-12
        self.width += interval.high - interval.low

    @property
    def coverage(self) -> float:
        return self.hits / self.n


Methods = dict[str, Cell]
Table = dict[str, dict[Key, Cell]]


def grid(items: tuple[int, ...]) -> Iterator[Key]:
    for k, pairs, icc, share in itertools.product(items, PAIRS, ICCS, SHARES):
        if pairs > 1 or icc == 0:  # one pair per item has no correlation
            yield k, pairs, icc, share


def successes(
    rng: np.random.Generator, size: int, k: int, pairs: int, icc: float, share: float
) -> np.ndarray:
    """Agreements by item in `size` simulated runs, shape (size, k)."""
    p = np.full((size, k), share)
    if icc:
        spread = (1 - icc) / icc
        p = rng.beta(share * spread, (1 - share) * spread, (size, k))
    return rng.binomial(pairs, p)


def rows_of(sums: np.ndarray, pairs: int) -> np.ndarray:
    return (np.arange(pairs) < sums[:, None]).ravel()


def jss_cell(key: Key, runs: int, bootstraps: int, seed: int) -> Methods:
    k, pairs, icc, share = key
    methods: Methods = defaultdict(Cell)
    rng = np.random.default_rng([seed, k, pairs, int(100 * icc), int(100 * share)])
    items = np.repeat(np.arange(k), pairs)
    sizes = np.full(k, pairs)
    for r, sums in enumerate(successes(rng, runs, k, pairs, icc, share)):
        methods["wilson (default)"].add(wilson_from_sums(sums, sizes), share)
        if r >= bootstraps:
            continue
        agree = rows_of(sums, pairs)
        methods["t, items"].add(mean_t_cluster(agree, items), share)
        for name, clusters in (
            ("percentile bootstrap, items", items),
            ("percentile bootstrap, rows", None),
        ):
            drawn = bootstrap_mean(agree, clusters, n_resamples=RESAMPLES, seed=r)
            methods[name].add(drawn, share)
    return methods


def kappa_cell(key: Key, runs: int, bootstraps: int, seed: int) -> Methods:
    k, pairs, icc, share, prevalence = key
    methods: Methods = defaultdict(Cell)
    rng = np.random.default_rng([seed, k, pairs, *(int(100 * part) for part in key[2:])])
    other = prevalence * share + (1 - prevalence) * (1 - share)
    chance = prevalence * other + (1 - prevalence) * (1 - other)
    truth = (share - chance) / (1 - chance)
    items = np.repeat(np.arange(k), pairs)
    for r, sums in enumerate(successes(rng, runs, k, pairs, icc, share)):
        first = (rng.random(k) >= prevalence).astype(np.intp)[items]
        second = np.where(rows_of(sums, pairs), first, 1 - first)
        methods["wilson (default)"].add(wilson_kappa(first, second, items), truth)
        if r < bootstraps:
            drawn = bootstrap_kappa(first, second, items, n_resamples=RESAMPLES, seed=r)
            methods["percentile bootstrap, items"].add(drawn, truth)
    return methods


def difference_cell(key: Key, runs: int, _: int, seed: int) -> Methods:
    """Two judges on the same pairs; the item causes half of each variance, and part is shared."""
    from scipy.special import ndtri

    k, pairs, first, second, shared = key
    methods: Methods = defaultdict(Cell)
    rng = np.random.default_rng([seed, k, pairs, *(int(100 * part) for part in key[2:])])
    items = np.repeat(np.arange(k), pairs)
    for r in range(runs):
        common = rng.normal(size=k)
        agree = []
        for share in (first, second):
            item = np.sqrt(shared) * common + np.sqrt(1 - shared) * rng.normal(size=k)
            agree.append((item[items] + rng.normal(size=k * pairs)) / np.sqrt(2) < ndtri(share))
        found = paired_test(*agree, items, n_resamples=RESAMPLES, seed=r)
        methods["Newcombe (default)"].add(Interval(found.ci_low, found.ci_high), second - first)
    return methods


def simulate(cell: Callable[..., Methods], keys: list[Key], *sizes: int) -> Table:
    """Simulate the cells on all cores; the result does not depend on the number of cores."""
    table: Table = defaultdict(dict)
    with ProcessPoolExecutor() as pool:
        for key, methods in zip(keys, pool.map(partial(run_cell, cell, sizes), keys), strict=True):
            for name, found in methods.items():
                table[name][key] = found
    return table


def run_cell(cell: Callable[..., Methods], sizes: tuple[int, ...], key: Key) -> dict[str, Cell]:
    return dict(cell(key, *sizes))


def summary(
    title: str, names: tuple[str, ...], table: Table, out: list[dict[str, object]], machine: str
) -> None:
    print(f"\n{title}")
    print(
        f"{'interval':30s} {'items':>5s} {'cells':>5s} {'runs':>6s} {'lowest':>7s} {'mean':>6s} "
        f"{'highest':>7s} {'width':>6s} {'undefined':>9s}  lowest at"
    )
    for method, cells in table.items():
        for k in sorted({int(key[0]) for key in cells}):
            some = {key: cell for key, cell in cells.items() if key[0] == k}
            coverage = {key: cell.coverage for key, cell in some.items()}
            lowest = min(coverage, key=lambda key: coverage[key])
            mean = float(np.mean(list(coverage.values())))
            width = float(np.mean([cell.width / cell.n for cell in some.values()]))
            undefined = sum(cell.undefined for cell in some.values())
            runs = sum(cell.n + cell.undefined for cell in some.values()) // len(some)
            place = ", ".join(f"{n} {v:g}" for n, v in zip(names, lowest[1:], strict=False))
            print(
                f"{method:30s} {k:5d} {len(some):5d} {runs:6d} {coverage[lowest]:7.3f} {mean:6.3f} "
                f"{max(coverage.values()):7.3f} {width:6.3f} {undefined:9d}  {place}"
            )
            out.append(
                {
                    "name": f"{title}: {method}, {k} items",
                    "ours": round(coverage[lowest], 4),
                    "mean": round(mean, 4),
                    "highest": round(max(coverage.values()), 4),
                    "width": round(width, 4),
                    "unit": "lowest coverage of 95% intervals",
                    "n": runs,
                    "machine": machine,
                }
            )


def every_cell(table: Table, items: int) -> None:
    cells = table["wilson (default)"]
    print(f"\nCoverage of the default interval of JSS, {items} items")
    print("pairs  ICC  " + "  ".join(f"JSS {share:<5g}" for share in SHARES))
    for pairs, icc in itertools.product(PAIRS, ICCS):
        if (items, pairs, icc, SHARES[0]) in cells:
            row = (cells[items, pairs, icc, share].coverage for share in SHARES)
            print(f"{pairs:5d}  {icc:3.1f}  " + "  ".join(f"{value:9.4f}" for value in row))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=2_000)
    parser.add_argument("--bootstrap-replicates", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tables", nargs="+", default=["jss", "kappa", "difference"])
    parser.add_argument("--cells", action="store_true")
    options = parser.parse_args()
    machine = f"{platform.machine()}, numpy {np.__version__}"
    out: list[dict[str, object]] = []
    start = time.perf_counter()
    boot, seed = options.bootstrap_replicates, options.seed
    if "jss" in options.tables:
        table = simulate(jss_cell, list(grid(ITEMS)), options.replicates, boot, seed)
        summary("JSS", ("pairs", "ICC", "JSS"), table, out, machine)
        if options.cells:
            for items in ITEMS:
                every_cell(table, items)
    # Kappa only has to reach 90%, and fewer runs are enough to test that.
    fewer = options.replicates // 5
    if "kappa" in options.tables:
        keys = [(*key, prevalence) for key in grid((25, 125)) for prevalence in PREVALENCES]
        table = simulate(kappa_cell, keys, fewer, boot, seed)
        summary("kappa", ("pairs", "ICC", "JSS", "prevalence"), table, out, machine)
    if "difference" in options.tables:
        keys = list(itertools.product((25, 125), (1, 5), (0.8, 0.97), (0.9,), (0.0, 0.6)))
        table = simulate(difference_cell, keys, fewer, boot, seed)
        summary("difference", ("pairs", "first", "second", "shared"), table, out, machine)
    print(f"\n{time.perf_counter() - start:.0f} s, {RESAMPLES} resamples per bootstrap")
    print(json.dumps(out))


if __name__ == "__main__":
    main()
