from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reports import report_of

from judgesense.errors import JudgeSenseError
from judgesense.log.schema import read_log, write_part

CELL_KEYS = (
    "run_id",
    "judge",
    "task",
    "scoring",
    "order",
    "labels",
    "jss",
    "ci_low",
    "ci_high",
    "ci_low_random",
    "ci_high_random",
    "flip_rate",
    "kappa",
    "kappa_ci_low",
    "kappa_ci_high",
    "jss_low",
    "jss_high",
    "jss_repeat",
    "delta_jss",
    "delta_ci_low",
    "delta_ci_high",
    "soft_jss",
    "noise_floor",
    "accuracy",
    "accuracy_ci_low",
    "accuracy_ci_high",
    "first_position_rate",
    "position_consistency",
    "position_ci_low",
    "position_ci_high",
    "n_pairs",
    "n_items",
    "n_clusters",
    "n_unclear",
    "n_refused",
    "n_error",
    "coverage",
    "degenerate",
    "signature",
)

EXCLUDED = ["fact_040", "fact_045", "fact_050", "fact_090", "fact_095", "fact_100"]


def test_a_perfect_judge_scores_what_the_published_judges_scored_on_factuality(
    make, published
) -> None:
    from judgesense_dataset.load import load_benchmark

    benchmark = load_benchmark(published).select(["factuality"])
    log = make.log(benchmark, make.oracle)
    whole = report_of(log, benchmark.pairs, run=make.run(benchmark))
    kept = pc.invert(pc.is_in(benchmark.pairs["pair_id"], value_set=pa.array(EXCLUDED)))
    validated = report_of(log, benchmark.pairs.filter(kept), run=make.run(benchmark))
    for judge in ("oracle", "rule@0001"):
        raw = make.cell(validated, judge, "raw")
        assert round(raw["jss"], 4) == 0.6303
        assert round(raw["kappa"], 4) == 0.2420
        assert raw["n_pairs"] == 119
        assert make.cell(validated, judge, "mapped")["jss"] == 1.0
        raw = make.cell(whole, judge, "raw")
        assert (round(raw["jss"], 3), round(raw["kappa"], 3)) == (0.600, 0.181)


def test_a_cell_has_the_keys_of_the_contract_and_no_nan(make) -> None:
    benchmark = make.benchmark(make.AB, [make.OPTIONS] * 3, "ABAB")
    report = report_of(make.log(benchmark, make.oracle), benchmark.pairs, run=make.run(benchmark))
    assert {tuple(cell) for cell in report["cells"]} == {CELL_KEYS}
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False)) == report


def test_undecided_pairs_are_counted_by_kind_left_out_and_bounded(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 2, ["YES"] * 10)
    said = {1: "UNCLEAR", 2: "REFUSED", 3: "ERROR", 4: "NO"}

    def decide(prompt):
        number = int(prompt["item_id"][-3:])
        return said.get(number, "YES") if prompt["template_id"] == "w1" else "YES"

    report = report_of(make.log(benchmark, decide), benchmark.pairs, run=make.run(benchmark))
    cell = make.cell(report, "rule@0001", "mapped")
    assert (cell["n_pairs"], cell["n_unclear"], cell["n_refused"], cell["n_error"]) == (7, 1, 1, 1)
    assert cell["jss"] == pytest.approx(6 / 7)
    assert (cell["jss_low"], cell["jss_high"]) == (0.6, 0.9)
    assert cell["coverage"] == 0.7
    assert cell["accuracy"] == pytest.approx(16 / 17)


def test_pairs_that_are_not_judged_yet_lower_coverage_and_not_jss(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 2, ["YES", "NO"] * 5)
    log = make.log(benchmark, make.oracle).slice(0, 10)
    report = report_of(log, benchmark.pairs, run=make.run(benchmark))
    cell = make.cell(report, "rule@0001", "mapped")
    assert (cell["jss"], cell["n_pairs"], cell["coverage"]) == (1.0, 5, 0.5)
    assert "5 of 10 pairs of prompts are not judged yet" in " ".join(report["advice"])


def test_a_judge_that_always_takes_the_first_option_is_degenerate_in_both_orders(make) -> None:
    benchmark = make.benchmark(make.AB, [make.OPTIONS] * 3, "AABB")
    log = make.log(benchmark, lambda prompt: "A")
    report = report_of(log, benchmark.pairs, run=make.run(benchmark))
    for judge in ("rule@0001", "always-first"):
        cell = make.cell(report, judge, "mapped", order="both")
        assert cell["kappa"] is None
        assert "'A'" in cell["degenerate"]
        assert (cell["first_position_rate"], cell["position_consistency"]) == (1.0, 0.0)
        assert cell["accuracy"] == 0.5
    oracle = make.cell(report, "oracle", "mapped", order="both")
    assert (oracle["first_position_rate"], oracle["position_consistency"]) == (0.5, 1.0)


def test_a_tie_is_on_no_side_in_one_order_or_in_both(make) -> None:
    benchmark = make.benchmark(make.AB, [make.OPTIONS] * 2, "ABAB")

    def decide(prompt):
        return "TIE" if prompt["item_id"] in ("item-001", "item-002") else "A"

    report = report_of(make.log(benchmark, decide), benchmark.pairs, run=make.run(benchmark))
    for order in ("AB", "BA", "both"):
        cell = make.cell(report, "rule@0001", "mapped", order=order)
        assert cell["first_position_rate"] == 1.0
    log = make.log(benchmark, lambda prompt: "TIE")
    report = report_of(log, benchmark.pairs, run=make.run(benchmark))
    for order in ("AB", "BA", "both"):
        cell = make.cell(report, "rule@0001", "mapped", order=order)
        assert cell["first_position_rate"] is None


def test_the_noise_floor_is_the_flip_rate_of_the_same_prompt(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 2, ["YES"] * 10)
    first = make.log(benchmark, lambda prompt: "YES")

    def later(prompt):
        return "NO" if prompt["item_id"] == "item-001" else "YES"

    again = make.log(benchmark, later, repeat=1)
    report = report_of(pa.concat_tables([again, first]), benchmark.pairs, run=make.run(benchmark))
    cell = make.cell(report, "rule@0001", "mapped")
    assert cell["noise_floor"] == pytest.approx(0.1)
    # JSS itself is that of the first repeat, wherever its rows stand.
    assert cell["jss"] == 1.0
    alone = report_of(first, benchmark.pairs, run=make.run(benchmark))
    assert make.cell(alone, "rule@0001", "mapped")["noise_floor"] is None


def test_soft_jss_is_one_less_the_total_variation_after_the_label_map(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN, make.INVERTED], ["YES"] * 4)

    def logprobs(prompt):
        # Half of the mass is elsewhere: shares are of the options alone.
        yes = 0.9 if prompt["template_id"] == "w1" else 0.3
        return {"YES": math.log(yes / 2), "NO": math.log((1 - yes) / 2)}

    log = make.log(
        benchmark,
        lambda prompt: "YES" if prompt["template_id"] == "w1" else "NO",
        scoring="options",
        logprobs=logprobs,
    )
    report = report_of(log, benchmark.pairs, run=make.run(benchmark))
    assert make.cell(report, "rule@0001", "raw")["soft_jss"] == pytest.approx(0.4)
    assert make.cell(report, "rule@0001", "mapped")["soft_jss"] == pytest.approx(0.8)
    plain = report_of(make.log(benchmark, make.oracle), benchmark.pairs, run=make.run(benchmark))
    assert make.cell(plain, "rule@0001", "mapped")["soft_jss"] is None


def test_without_pairs_all_templates_of_an_item_and_order_are_paired(make) -> None:
    benchmark = make.benchmark(make.AB, [make.OPTIONS] * 4, "ABBA")
    rng = np.random.default_rng(3)
    log = make.log(benchmark, lambda prompt: str(rng.choice(["A", "B", "UNCLEAR"])))
    given_pairs = report_of(log, benchmark.pairs, run=make.run(benchmark))
    imported = report_of(log, None, run={"run_id": "by-rule"})
    for ours, theirs in zip(imported["cells"], given_pairs["cells"], strict=True):
        assert ours == pytest.approx(theirs), ours["judge"]


@pytest.mark.parametrize("planned", [True, False])
def test_one_wording_alone_has_no_jss_but_an_accuracy_and_is_not_blamed(make, planned) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN], ["YES", "NO"])
    pairs = benchmark.pairs if planned else None
    report = report_of(make.log(benchmark, make.oracle), pairs, run={})
    cell = make.cell(report, "rule@0001", "mapped")
    assert (cell["jss"], cell["coverage"]) == (None, None)
    assert cell["accuracy"] == 1.0
    assert cell["degenerate"] == "there are no template pairs to compare"
    assert report["findings"][0]["kind"] == "unknown"
    assert report["trust"][0]["checks"]["steady"]["state"] == "unmeasured"
    assert not any("0 items" in text for text in report["advice"])


def test_a_judge_that_was_never_read_is_to_be_avoided_and_a_failed_one_is_not_settled(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 2, ["YES", "NO"] * 5)
    for said, kind in (("UNCLEAR", "avoid"), ("ERROR", "unknown")):
        log = make.log(benchmark, lambda prompt, said=said: said)
        report = report_of(log, benchmark.pairs, run={})
        cell = make.cell(report, "rule@0001", "mapped")
        assert cell["jss"] is None
        assert (cell["jss_low"], cell["jss_high"]) == (0.0, 1.0)
        assert report["findings"][0]["kind"] == kind
        (lost,) = (f["text"] for f in report["findings"] if f["kind"] == "undecided")
        assert "100% of its pairs" in lost


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000))
def test_figures_do_not_depend_on_the_order_of_rows(make, seed: int) -> None:
    benchmark = make.benchmark(make.AB, [make.OPTIONS] * 3, "ABBAB")
    rng = np.random.default_rng(seed)
    log = make.log(benchmark, lambda prompt: str(rng.choice(["A", "B", "UNCLEAR"])))
    shuffled = log.take(pa.array(rng.permutation(log.num_rows)))
    pairs = benchmark.pairs.take(pa.array(rng.permutation(benchmark.pairs.num_rows)))
    before = report_of(log, benchmark.pairs, run=make.run(benchmark))["cells"]
    after = report_of(shuffled, pairs, run=make.run(benchmark))["cells"]
    key = ("judge", "scoring", "order", "labels")
    for one, two in zip(
        *(sorted(cells, key=lambda c: [c[k] for k in key]) for cells in (before, after)),
        strict=True,
    ):
        assert one == pytest.approx(two)
        if one["jss"] is not None:
            assert one["jss_low"] <= one["jss"] <= one["jss_high"]
        if one["n_clusters"] > 1:
            assert one["ci_low"] <= one["jss"] <= one["ci_high"]


def test_signatures_name_what_a_figure_rests_on(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 2, ["YES", "NO"] * 4)
    report = report_of(make.log(benchmark, make.oracle), benchmark.pairs, run=make.run(benchmark))
    cell = make.cell(report, "rule@0001", "mapped")
    assert cell["signature"].startswith(
        "JSS|task:factuality|n:8|items:8|labels:mapped|scoring:generate|undecided:excluded|"
        "templates:fixed|ci:wilson-cluster|data:" + benchmark.data_hash
    )


def test_an_empty_log_and_pairs_without_columns_are_refused(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 2, ["YES"])
    log = make.log(benchmark, make.oracle)
    with pytest.raises(JudgeSenseError, match="decision log has no rows"):
        report_of(log.slice(0, 0), benchmark.pairs, run={})
    with pytest.raises(JudgeSenseError, match="label_map_b"):
        report_of(log, benchmark.pairs.drop_columns(["label_map_b"]), run={})
    with pytest.raises(JudgeSenseError, match="lacks the columns"):
        report_of(log.drop_columns(["decision"]), benchmark.pairs, run={})


def test_a_text_column_that_is_not_text_is_refused_unread(make, tmp_path) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN], ["YES", "NO"])
    log = make.log(benchmark, make.oracle)
    column = pa.array([[n] for n in range(len(log))])
    log = log.set_column(log.column_names.index("raw_text"), "raw_text", column)
    write_part(log, tmp_path / "decisions", "part-00000.parquet")
    with pytest.raises(JudgeSenseError, match=r"part-00000\.parquet, raw_text: the column"):
        read_log(tmp_path, texts=False)
