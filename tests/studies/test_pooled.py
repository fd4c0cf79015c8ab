"""Pooling ΔJSS over judges: known figures, other libraries, v2's own, and what is refused."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from make_v2 import compared, published_pool
from scipy import stats
from statsmodels.stats.multitest import multipletests
from study_logs import decision, write_log

from judgesense.errors import JudgeSenseError
from judgesense.published import V2_CELLS
from judgesense.statistics.pooling import pooled
from judgesense.studies.judge_sensitivity.pooled import pool_cells

VALUES = [-0.10, -0.04, -0.2, -0.15, 0.01, -0.07, -0.12]
VENDORS = ["a", "a", "b", "b", "b", "c", "d"]


def test_the_mean_over_vendors_is_that_of_statsmodels_clustered_regression() -> None:
    one = pooled(VALUES, VENDORS, 0.02)
    codes = np.unique(VENDORS, return_inverse=True)[1]
    fit = sm.OLS(VALUES, np.ones(7)).fit(cov_type="cluster", cov_kwds={"groups": codes}, use_t=True)
    assert one["vendor_se"] == pytest.approx(fit.bse[0])
    assert one["vendors_p"] == pytest.approx(fit.pvalues[0])
    means = [np.mean([v for v, of in zip(VALUES, VENDORS, strict=True) if of == x]) for x in "abcd"]
    against_floor = stats.ttest_1samp(means, -0.02, alternative="less")
    assert one["vendor_means_p_floor"] == pytest.approx(against_floor.pvalue)
    assert pooled(VALUES, [*VENDORS[:-1], None], 0.02)["vendors"] == 0


@pytest.mark.slow
def test_the_second_version_is_reproduced_to_its_printed_digits() -> None:
    result, rows = pool_cells(["v2"], {}), compared(published_pool())
    assert len(rows) == 820
    assert {row["result"] for row in rows} == {"equal", "rounding of inputs"}
    assert all(row["result"] == "equal" for row in rows if row["figure"].startswith("vendor"))
    cells = [row for row in result.table("cells").rows if row["p"] is not None]
    corrected = multipletests([row["p"] for row in cells], method="fdr_bh")[1]
    assert [row["p_bh"] for row in cells] == pytest.approx(corrected.tolist())
    assert [round(row["vendor_floor_p"], 3) for row in result.table("pooled").rows] == [
        0.003,
        0.023,
        0.083,
        0.106,
    ]


def table(path: Path, *rows: dict[str, object]) -> str:
    names = dict.fromkeys(name for row in rows for name in row)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(names))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def test_what_a_table_does_not_say_is_said(tmp_path: Path) -> None:
    file = table(
        tmp_path / "cells.csv",
        {"judge": "one", "task": "t", "delta_jss": -0.1, "vendor": "a", "scale": "1 to 5"},
        {"judge": "two", "task": "t", "jss": 0.8, "jss_repeat": 0.95, "scale": "1 to 5"},
        {"judge": "two", "task": "t", "delta_jss": -0.3, "scale": "pass or fail"},
        {"judge": "two", "task": "u", "delta_jss": -0.3, "n_items": 20, "vendor": "unknown"},
    )
    result = pool_cells([file], {})
    by_task = {row["task"]: row for row in result.table("pooled").rows}
    assert by_task["t (1 to 5)"]["mean"] == pytest.approx(-0.125)
    assert [by_task[f"t ({scale})"]["judges"] for scale in ("1 to 5", "pass or fail")] == [2, 1]
    assert (by_task["u"]["judges"], by_task["u"]["rule"]) == (0, None)
    texts = " ".join(result.limits)
    for said in (
        "3 cells without an interval",
        "the vendor of two is unknown",
        "2 scales",
        "1 for support",
        "do not state their scale",
    ):
        assert said in texts
    named = pool_cells([file], {"vendors": {"two": "b"}, "least_items": 0}).table("pooled").rows[0]
    assert (named["vendors"], named["vendor_floor_p"]) == (2, pytest.approx(stats.t.cdf(-4.2, 1)))


def test_a_task_without_an_accurate_judge_does_not_discriminate(tmp_path: Path) -> None:
    cell = {"task": "factuality", "delta_jss": -0.1, "n_items": 100}
    rows = [cell | {"judge": "one", "accuracy": 0.74}, cell | {"judge": "two", "accuracy": 0.6}]
    rows.append(cell | {"judge": "few", "accuracy": 1.0, "n_items": 9})  # too few to count
    file = table(tmp_path / "cells.csv", *rows)
    (row,) = pool_cells([file], {}).table("pooled").rows
    assert (row["judges"], row["best_accuracy"], row["discriminates"]) == (2, 0.74, False)
    rules = {"least_accuracy": {"factuality": 0.7}}
    assert pool_cells([file], rules).table("pooled").rows[0]["discriminates"] is True
    with V2_CELLS.open() as known:
        best = max(
            float(row["accuracy"])
            for row in csv.DictReader(known)
            if row["task"] == "coherence" and row["accuracy"]
        )
    first = pool_cells(["v2"], {}).table("pooled").rows[0]
    assert (first["best_accuracy"], first["discriminates"]) == (best, True)


def test_judges_of_runs_are_compared_on_the_pairs_that_all_decided(tmp_path: Path) -> None:
    rows = [
        decision(judge, str(item), template, "NO" if (judge, item, template) == flip else "YES")
        for judge, flip in (("one", ("one", 3, "b")), ("two", None))
        for item in range(5)
        for template in ("a", "b")
        if (judge, item) != ("two", 3)
    ]
    result = pool_cells([str(write_log(tmp_path / "log", rows))], {})
    shifts = {row["judge"]: row["shift"] for row in result.table("common_support").rows}
    assert shifts == {"one": pytest.approx(0.2), "two": 0.0}


@pytest.mark.parametrize(
    ("row", "settings", "said"),
    [
        ({"judge": "x", "task": "t", "delta_jss": -18.1}, {}, "row 1, delta_jss"),
        ({"judge": "x", "task": "t", "jss": 0.9}, {}, "asked again"),
        ({"judge": "x", "delta_jss": 0.1}, {}, "row 1, task"),
        ({"judge": "x", "task": "t", "delta_jss": 0.1}, {"flor": 0.1}, "flor"),
        (
            {"judge": "x", "task": "t", "delta_jss": 0.1},
            {"vendors": {"y": "a"}},
            "unknown judge 'y'",
        ),
    ],
)
def test_bad_cells_and_rules_are_refused(
    tmp_path: Path, row: dict[str, object], settings: dict[str, object], said: str
) -> None:
    with pytest.raises(JudgeSenseError, match=said):
        pool_cells([table(tmp_path / "cells.csv", row)], settings)


def test_a_judge_counts_once(tmp_path: Path) -> None:
    file = table(tmp_path / "c.csv", {"judge": "x", "task": "t", "delta_jss": 0.1})
    with pytest.raises(JudgeSenseError, match="already in"):
        pool_cells([file, file], {})
