"""How often the claims about an updated judge are wrong, and how soon a monitor finds an update.

    python benchmarks/updates.py [--runs 1000] [--sections migration,monitor]

A judge's verdict on an item is the sign of a hidden score plus what the wording adds. An update
adds something else. Claims of `judgesense compare --migration` are wrong if update and rewording
move verdicts equally often and one of them is said to move more.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from common import finish, machine
from scipy.special import stdtrit

from judgesense.statistics.monitoring import watch
from judgesense.statistics.updates import FEWEST_RANDOM, excess_moves

PACKAGES = ("numpy", "scipy")


def verdicts(
    rng: np.random.Generator, n: int, wordings: int, spread: float, taste: float, whole: bool
) -> tuple[Any, Any]:
    """The verdicts of the old and the new judge, shape (n, wordings); both move alike.

    ``spread`` is what a wording or the update adds to an item, ``taste`` what it adds to all. With
    ``whole``, the update adds the same under every wording.
    """
    score = rng.normal(0, 1, (n, 1))
    old = score + rng.normal(0, spread, (n, wordings)) + rng.normal(0, taste, wordings)
    added = rng.normal(0, spread, (n, 1 if whole else wordings))
    return old > 0, score + added + rng.normal(0, taste, wordings) > 0


def plain(moved: Any, differs: Any) -> tuple[float, float]:
    """The t interval of the items' differences, without a pseudo cluster or wordings."""
    gaps = moved.mean(1) - differs.mean(1)
    reach = stdtrit(len(gaps) - 1, 0.95) * gaps.std(ddof=1) / np.sqrt(len(gaps))
    return gaps.mean() - reach, gaps.mean() + reach


def claims(
    rng: np.random.Generator,
    runs: int,
    n: int,
    wordings: int,
    spread: float,
    taste: float,
    whole: bool,
) -> Any:
    """Shares of wrong claims, "more" and "no more": ours, then the plain interval's."""
    wrong = np.zeros(4)
    one, two = np.triu_indices(wordings, 1)
    items, names = np.repeat(np.arange(n), wordings), np.tile(np.arange(wordings), n)
    pair_items = np.repeat(np.arange(n), len(one))
    pairs = np.tile(one, n), np.tile(two, n)
    random = wordings >= FEWEST_RANDOM
    for _ in range(runs):
        old, new = verdicts(rng, n, wordings, spread, taste, whole)
        moved, differs = old != new, old[:, one] != old[:, two]
        found = excess_moves(
            moved.ravel(),
            items,
            differs.ravel(),
            pair_items,
            wordings=names if random else None,
            other_wordings=pairs if random else None,
        )
        low, high = plain(moved, differs)
        wrong += [found.low > 0, found.high < 0, low > 0, high < 0]
    return wrong / runs


def migration(runs: int) -> list[dict[str, Any]]:
    """Wrong claims over all cells."""
    rng, cells = np.random.default_rng(3), []
    for n in (30, 100, 200, 500):
        for wordings in (2, 3, 5, 8):
            for spread, taste in ((0.05, 0.0), (0.3, 0.0), (0.3, 0.3)):
                if taste and wordings < FEWEST_RANDOM:
                    # These wordings are all there are: their taste is no sample.
                    continue
                for whole in (False, True):
                    cells.append(claims(rng, runs, n, wordings, spread, taste, whole))
                    print(n, wordings, spread, taste, whole, cells[-1], flush=True)
    table = np.array(cells)
    return [
        {
            "name": f"wrong claims of {claim!r}, worst of {len(table)} cells",
            "peer": "t interval over items",
            "ours": float(table[:, place].max()),
            "theirs": float(table[:, place + 2].max()),
            "ours_mean": round(float(table[:, place].mean()), 4),
            "theirs_mean": round(float(table[:, place + 2].mean()), 4),
            "ratio": round(float(table[:, place].max() / table[:, place + 2].max()), 3),
            "unit": "share of runs",
            "n": runs,
            "machine": machine(*PACKAGES),
        }
        for place, claim in enumerate(("more", "no more"))
    ]


def weeks(
    rng: np.random.Generator, n: int, items: int, rate: float, beyond: float, wordings: int
) -> list[Any]:
    """Moved minus reworded for n weeks of other items each, shape (items,).

    An item's verdict moves under another wording with a probability of its own (a beta
    distribution, most items near 0, mean ``rate``). The update moves it as often, and of those that
    do not move ``beyond`` of all verdicts more.
    """
    found = []
    for _ in range(n):
        own = rng.beta(rate, 1 - rate, items)
        moved = rng.random(items) < own + (1 - own) * beyond / (1 - rate)
        found.append(moved - rng.binomial(wordings - 1, own) / (wordings - 1))
    return found


def monitor(runs: int) -> list[dict[str, Any]]:
    """False alarms over 52 weeks, and updates found within 8 weeks, of 200 other items each."""
    rng, results = np.random.default_rng(7), []
    described = {"unit": "share of histories", "n": runs, "machine": machine(*PACKAGES)}
    for rate in (0.02, 0.1, 0.2):
        for wordings in (2, 5):
            false = [watch(weeks(rng, 52, 200, rate, 0, wordings)).alarm for _ in range(runs)]
            weekly = [
                any(t_test(z) for z in weeks(rng, 52, 200, rate, 0, wordings)) for _ in range(runs)
            ]
            results.append(
                {
                    "name": f"false alarms in 52 weeks, rewording {rate:.0%}, {wordings} wordings",
                    "peer": "one-sided t test at 5% every week",
                    "ours": share(false),
                    "theirs": float(np.mean(weekly)),
                    "ratio": round(share(false) / max(float(np.mean(weekly)), 1e-9), 3),
                    **described,
                }
            )
            print(results[-1]["name"], results[-1]["ours"], results[-1]["theirs"], flush=True)
            for quiet in (0, 10, 40):
                delays = []
                for _ in range(runs):
                    past = weeks(rng, quiet, 200, rate, 0, wordings)
                    found = watch([*past, *weeks(rng, 8, 200, rate, 0.05, wordings)]).alarm
                    delays.append(None if found is None or found < quiet else found - quiet + 1)
                told = [delay for delay in delays if delay is not None]
                results.append(
                    {
                        "name": f"update of 5% beyond rewording found within 8 weeks, after "
                        f"{quiet} quiet ones, rewording {rate:.0%}, {wordings} wordings",
                        "peer": "wanted",
                        "ours": share(delays),
                        "theirs": 0.8,
                        "ratio": round(share(delays) / 0.8, 3),
                        "median_weeks": float(np.median(told)) if told else None,
                        **described,
                    }
                )
                print(
                    results[-1]["name"],
                    results[-1]["ours"],
                    results[-1]["median_weeks"],
                    flush=True,
                )
    return results


def fixed(runs: int) -> list[dict[str, Any]]:
    """The same 200 items every week, and a judge without noise, so that every week is the first.

    How large an update has to be to be found within 8 weeks, and false alarms within a year of an
    update that moves as much as rewording does.
    """
    rng, results = np.random.default_rng(8), []
    for beyond, n_weeks in ((0.0, 52), (0.05, 8), (0.1, 8), (0.15, 8), (0.2, 8)):
        ids = [list(range(200))] * n_weeks
        looks = [weeks(rng, 1, 200, 0.1, beyond, 5) * n_weeks for _ in range(runs)]
        once = share([watch(each, ids).alarm for each in looks])
        each_look = share([watch(each).alarm for each in looks])
        results.append(
            {
                "name": f"alarms at an update of {beyond:.0%} beyond rewording (10%), the same 200 "
                f"items in {n_weeks} weeks: counted once",
                "peer": "counted at each look",
                "ours": once,
                "theirs": each_look,
                "ratio": round(once / max(each_look, 1e-9), 3),
                "unit": "share of histories",
                "n": runs,
                "machine": machine(*PACKAGES),
            }
        )
        print(results[-1]["name"], once, each_look, flush=True)
    return results


def share(alarms: list[int | None]) -> float:
    return float(np.mean([alarm is not None for alarm in alarms]))


def t_test(z: Any) -> bool:
    error = z.std(ddof=1) / np.sqrt(len(z))
    return bool(z.mean() > stdtrit(len(z) - 1, 0.95) * error)


SECTIONS = {"migration": migration, "monitor": monitor, "fixed": fixed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--sections", default=",".join(SECTIONS))
    options = parser.parse_args()
    results = []
    for name in options.sections.split(","):
        results += SECTIONS[name](options.runs)
    finish(results)


if __name__ == "__main__":
    main()
