"""The variance budget: known components, a peer, and its edges."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from statsmodels.formula.api import mixedlm

from judgesense.statistics.variance import variance_budget

TRUTH = {"wording": 0.3, "order": 0.15, "rerun": 0.1}


def star(n: int, seed: int, wordings: int = 4) -> tuple[np.ndarray, dict]:
    """Normal scores of n items: the base twice, further wordings, and the other order."""
    rng = np.random.default_rng(seed)

    def drawn(variance: float) -> np.ndarray:
        return rng.normal(0, variance**0.5, n)

    item, wording, order = drawn(1.0), drawn(TRUTH["wording"]), drawn(TRUTH["order"])
    base = item + wording + order + drawn(TRUTH["rerun"])
    again = item + wording + order + drawn(TRUTH["rerun"])
    others = [
        item + drawn(TRUTH["wording"]) + order + drawn(TRUTH["rerun"]) for _ in range(wordings)
    ]
    turned = item + wording + drawn(TRUTH["order"]) + drawn(TRUTH["rerun"])
    ids = np.arange(n)
    pairs = {
        "wording": (np.tile(base, wordings), np.concatenate(others), np.tile(ids, wordings)),
        "order": (base, turned, ids),
        "rerun": (base, again, ids),
    }
    return base, pairs


def test_known_components_are_found_again_and_covered() -> None:
    known, runs = {"item": 1.0, **TRUTH}, 200
    sums, inside = dict.fromkeys(known, 0.0), dict.fromkeys(known, 0)
    for seed in range(runs):
        base, pairs = star(60, seed)
        found = variance_budget(base, range(60), pairs, ordinal=True)
        for source, value in known.items():
            sums[source] += found.unbiased[source] / runs
            low, high = found.intervals[source]
            assert low is not None
            assert high is not None
            inside[source] += low <= value <= high
    for source, value in known.items():
        assert sums[source] == pytest.approx(value, rel=0.1), source
        assert inside[source] / runs >= 0.92, source


def test_the_estimates_are_those_of_a_mixed_model() -> None:
    n = 300
    base, pairs = star(n, 3, wordings=3)
    again = pairs["rerun"][1]
    sides = {name: pairs[name] for name in ("wording", "rerun")}
    ours = variance_budget(base, range(n), sides, ordinal=True).unbiased
    # The same answers in long form: wording 0 twice, the others once; the order is the base's.
    columns = [base, again, *np.split(pairs["wording"][1], 3)]
    long = pd.DataFrame(
        {
            "score": np.concatenate(columns),
            "item": np.tile(np.arange(n), 5),
            "wording": np.repeat([0, 0, 1, 2, 3], n),
        }
    )
    parts = {"w": "0 + C(wording)"}
    fit = mixedlm("score ~ 1", long, groups="item", re_formula="1", vc_formula=parts).fit()
    assert ours["wording"] == pytest.approx(float(fit.vcomp[0]), rel=0.1)
    assert ours["rerun"] == pytest.approx(float(fit.scale), rel=0.1)
    # Without another order, its variance is the item's.
    assert ours["item"] == pytest.approx(float(fit.cov_re.iloc[0, 0]), rel=0.1)


def test_nominal_components_are_differences_of_flip_rates() -> None:
    y = [0, 1] * 20
    ids = [f"i{n}" for n in range(40)]
    worded = [1 - v if n < 10 else v for n, v in enumerate(y)]
    again = [1 - v if n < 4 else v for n, v in enumerate(y)]
    pairs = {"wording": (y, worded, ids), "rerun": (y, again, ids)}
    found = variance_budget(y, ids, pairs)
    assert found.variances["rerun"] == pytest.approx(0.1)
    assert found.variances["wording"] == pytest.approx(0.15)
    assert found.variances["item"] == pytest.approx(0.5 * 40 / 39 - 0.25)
    assert found.shares == pytest.approx({"wording": 0.6, "rerun": 0.4})
    assert (found.lever, found.n_clusters) == ("wording", 40)


def test_without_noise_without_reruns_and_with_one_cluster() -> None:
    y, ids = [0, 1, 1, 0], ["a", "b", "c", "d"]
    still = variance_budget(y, ids, {"wording": (y, y, ids)})
    assert (still.lever, still.shares) == (None, {"wording": None})
    assert still.variances["rerun"] is None
    low, high = still.intervals["wording"]
    assert low == 0
    assert high is not None
    assert high > 0.3
    one = variance_budget(y, ["a"] * 4, {"wording": (y, y, ["a"] * 4)})
    assert one.intervals["item"] == (None, None)
