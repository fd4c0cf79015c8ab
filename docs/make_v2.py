"""Recompute the published figures of the JudgeSense paper's second version (v2).

    python docs/make_v2.py

Prints how many figures are equal, and the same cells under other rules; writes
``docs/results/v2.csv``: figure, theirs, ours, difference. Inputs are printed with four digits, so
a figure computed from them may differ in its last ones. How far is found by moving every input by
half of its last digit, up or down at random.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

from judgesense.files.tables import read_table
from judgesense.published import V2_CELLS, V2_FOLDER
from judgesense.statistics.comparison import holm
from judgesense.statistics.pooling import Pooled
from judgesense.studies.judge_sensitivity.cells import PUBLISHED, PoolRules, read_sources
from judgesense.studies.judge_sensitivity.pooled import Pool

OUT = Path(__file__).parent / "results" / "v2.csv"
HALF_DIGIT, DRAWS, POOLED = 5e-5, 100, "pooled"
_PRINTED = {"jss": 2, "delta_jss": 1, "delta_ci_low": 1, "delta_ci_high": 1}
"""The inputs, and how many rounded ones each stands for (jss less jss_repeat: two)."""
Key = tuple[str, str, str]
"""Figure, task and judge ("" for a pooled one)."""


def _ours(pool: Pool) -> dict[Key, float]:
    """Every figure that follows from the cells' JSS, intervals and vendors."""
    found: dict[Key, float | None] = {}
    tests = pool.cell_tests
    ranks = {at: n for n, at in enumerate(sorted(tests, key=lambda at: tests[at][0]), 1)}
    alpha, floor = pool.rules.alpha, pool.rules.floor
    for at, cell in enumerate(pool.cells):
        values: dict[str, float | None] = {"readable": pool.rules.excluded(cell) is None}
        if cell.jss is not None and cell.jss_repeat is not None:
            values["delta_jss"] = cell.jss - cell.jss_repeat
        if at in tests:
            p, p_bh, detectable = tests[at]
            values |= {
                "p": p,
                "p_bh": p_bh,
                "mde": detectable,
                "bh_rank": ranks[at],
                "bh_reject": p_bh <= pool.rules.fdr,
                "practically_meaningful": abs(cell.delta_jss or 0) >= floor,
            }
        found |= {(name, cell.task, cell.judge): value for name, value in values.items()}
    # v2 tests the floor on the printed mean and error (sesoi_test.py).
    printed = [_printed_z(one, floor) for one in pool.means.values()]
    floor_p = [float(norm.cdf(z)) for z in printed]
    floor_holm = holm(floor_p)
    for at, (group, one) in enumerate(pool.means.items()):
        p_of, vendors = pool.corrected[group], one["vendors"]
        mean, error, cr1 = one["mean"] or 0.0, one["se"] or np.nan, one["vendor_se"] or np.nan
        values = {
            "n_judges": one["judges"],
            "mean_delta": mean,
            "sd": one["sd"],
            "se": error,
            "p_vs_zero": one["judges_p"],
            "p_vs_zero_holm": p_of["judges_p"],
            "mde80": one["detectable"],
            "practically_meaningful": abs(mean) >= floor,
            "sesoi_margin": mean + floor,
            "sesoi_z": printed[at],
            "sesoi_p_one_sided": floor_p[at],
            "sesoi_p_holm": floor_holm[at],
            "n_vendors": vendors,
            "vendor_df": vendors - 1,
            "vendor_se": cr1,
            "naive_se": error,
            "vendor_inflation": cr1 / error,
            "vendor_t": mean / cr1,
            "vendor_p_vs_zero": one["vendors_p"],
            "vendor_t_sesoi": (mean + floor) / cr1,
            "vendor_p_sesoi": one["vendors_p_floor"],
            "reject_zero_holm": (p_of["judges_p"] or 0) < alpha,
            "sesoi_reject_holm": (floor_holm[at] or 0) < alpha,
            "vendor_reject_zero_holm": (p_of["vendors_p"] or 0) < alpha,
            "vendor_reject_sesoi_holm": (p_of["vendors_p_floor"] or 0) < alpha,
        }
        found |= {(name, group[0], ""): value for name, value in values.items()}
    return {key: float(value) for key, value in found.items() if value is not None}


def _printed_z(one: Pooled, floor: float) -> float:
    return (round(one["mean"] or 0.0, 4) + floor) / round(one["se"] or np.nan, 4)


def _theirs() -> dict[Key, str]:
    """The same figures as their files print them."""
    found: dict[Key, str] = {}
    for file in ("cells", "pooled"):
        for record in read_table(V2_FOLDER / f"{file}.csv"):
            row = record.values
            where = row["task"], row.get("judge", "")
            found |= {(name, *where): str(value) for name, value in row.items() if value != ""}
    return found


def _as_printed(value: float, like: str) -> str:
    """A value with the digits of a printed one."""
    if like in ("true", "false"):
        return str(bool(value)).lower()
    digits, exponent, _ = like.partition("e")
    places = len(digits.partition(".")[2])
    return f"{value:.{places}e}" if exponent else f"{value:z.{places}f}"


def _number(text: str) -> float:
    return float(text == "true") if text in ("true", "false") else float(text)


def compared(pool: Pool) -> list[dict[str, Any]]:
    """Every figure that the printed cells determine, and what explains a difference."""
    ours, theirs = _ours(pool), _theirs()
    rng = np.random.default_rng(0)
    drawn: list[Mapping[Key, float]] = [ours]
    for signs in rng.choice([-HALF_DIGIT, HALF_DIGIT], (DRAWS, len(pool.cells), len(_PRINTED))):
        cells = [
            cell.model_copy(
                update={
                    key: value if (value := getattr(cell, key)) is None else value + n * by
                    for (key, n), by in zip(_PRINTED.items(), moved, strict=True)
                }
            )
            for cell, moved in zip(pool.cells, signs.tolist(), strict=True)
        ]
        drawn.append(_ours(Pool(cells, pool.rules, {}, ())))
    rows: list[dict[str, Any]] = []
    for key in ours.keys() & theirs.keys():
        stated, value = theirs[key], ours[key]
        reach = [values[key] for values in drawn]
        printed = {_as_printed(end, stated) for end in (min(reach), max(reach))}
        within = min(map(_number, printed)) <= _number(stated) <= max(map(_number, printed))
        equal = _as_printed(value, stated) == stated
        rows.append(
            {
                "figure": key[0],
                "task": key[1],
                "judge": key[2] or POOLED,
                "theirs": stated,
                "ours": _as_printed(value, stated),
                "difference": value - _number(stated),
                "result": "equal" if equal else "rounding of inputs" if within else "differs",
            }
        )
    order = ("figure", "task", "judge")
    return sorted(rows, key=lambda row: (row["judge"] != POOLED, *(row[key] for key in order)))


def other_rules(pool: Pool) -> Iterator[dict[str, Any]]:
    """The one-sided p against the floor without the ceiling rule, and with both option orders."""
    strict = {
        (record.values["task"], record.values["judge"]): float(record.values["jss_strict"])
        for record in read_table(V2_CELLS)
    }
    both = [
        cell.model_copy(
            update={
                "delta_jss": (cell.delta_jss or 0) - (cell.jss or 0) + strict[cell.task, cell.judge]
            }
        )
        if cell.delta_jss is not None
        else cell
        for cell in pool.cells
    ]
    no_ceiling = pool.rules.model_copy(update={"least_repeat": 0.0})
    rules = {
        "as declared": pool,
        "no ceiling rule": Pool(pool.cells, no_ceiling, {}, ()),
        "both option orders": Pool(both, pool.rules, {}, ()),
    }
    for rule, one in rules.items():
        for group, mean in one.means.items():
            yield {
                "task": group[0],
                "rule": rule,
                "judges": mean["judges"],
                "mean": mean["mean"],
                "p_judges": mean["judges_p_floor"],
                "p_vendors": mean["vendors_p_floor"],
                "p_vendors_holm": one.corrected[group]["vendors_p_floor"],
                "p_vendor_means": mean["vendor_means_p_floor"],
            }


def published_pool() -> Pool:
    """The published cells under v2's own rules."""
    rules = PoolRules()
    return Pool(read_sources([PUBLISHED], rules)[0], rules, {}, ())


def main() -> None:
    """Print and write."""
    pool = published_pool()
    rows = compared(pool)
    with OUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(len(rows), "figures:", dict(Counter(row["result"] for row in rows)))
    for row in other_rules(pool):
        values = row.values()
        print(*(f"{each:.3f}" if isinstance(each, float) else each for each in values), sep="\t")


if __name__ == "__main__":
    main()
