"""Trust cards of judges made by rule, and the conclusion that follows from the five checks."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reports import report_of
from typer.testing import CliRunner

from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense.log.schema import SCHEMA
from judgesense.measure.card import CHECKS, Check, conclude
from judgesense.measure.report_file import contents_of
from judgesense.measure.thresholds import DEFAULTS
from judgesense.reporting.html import render_html

STATUS = {"UNCLEAR": "unclear", "ERROR": "error"}
OTHER = {"YES": "NO", "NO": "YES", "A": "B", "B": "A"}


def card(make, benchmark, decide, **more: Any) -> dict[str, Any]:
    log = make.log(benchmark, decide)
    report = report_of(log, benchmark.pairs, run=make.run(benchmark), **more)
    json.dumps(report.to_dict(), allow_nan=False)
    (found,) = report["trust"]
    assert tuple(found["checks"]) == CHECKS
    return found


def states(found) -> dict[str, str]:
    return {name: check["state"] for name, check in found["checks"].items()}


def test_the_docs_state_the_thresholds() -> None:
    text = (Path(__file__).parents[2] / "docs" / "trust.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([\d.]+) \|$", text, re.MULTILINE)
    stated = {name: float(value) for name, value in rows}
    assert stated == {name: getattr(DEFAULTS, name) for name in CHECKS}
    assert f"has a {DEFAULTS.confidence:.0%} interval" in text


def number(prompt) -> int:
    return int(prompt["item_id"][-3:])


def good(state: str) -> Check:
    ends = {"pass": (0.9, 0.99), "fail": (0.1, 0.3), "open": (0.5, 0.9)}
    if state == "unmeasured":
        return Check.unmeasured(0.8, "add something")
    return Check.of(0.6, *ends[state], threshold=0.8, n_items=9, text="said")


@pytest.mark.parametrize(
    ("changed", "trust", "because"),
    [
        ({}, "use", ()),
        ({"right": "unmeasured"}, "care", ("right",)),
        ({"responsive": "unmeasured", "fair": "open"}, "care", ("fair", "responsive")),
        ({"steady": "open", "right": "unmeasured"}, "unknown", ("steady",)),
        ({"steady": "unmeasured"}, "unknown", ("steady",)),
        ({"steady": "open", "right": "fail"}, "avoid", ("right",)),
        # Without people's labels, a judge that misses damage is not to be used.
        ({"notices": "fail"}, "care", ("notices",)),
        ({"notices": "open"}, "care", ("notices",)),
        ({"notices": "fail", "right": "open"}, "care", ("notices", "right")),
        ({"notices": "fail", "right": "unmeasured"}, "avoid", ("notices",)),
        ({"notices": "open", "right": "unmeasured"}, "care", ("notices", "right")),
        ({"notices": "unmeasured", "resistant": "unmeasured"}, "use", ()),
        ({"steady": "fail", "readable": "fail", "fair": "open"}, "avoid", ("readable", "steady")),
    ],
)
def test_trust_follows_from_the_checks(changed, trust, because) -> None:
    found = conclude({name: good(changed.get(name, "pass")) for name in CHECKS})
    assert (found.trust, found.because) == (trust, because)


def test_a_check_that_does_not_apply_counts_for_nothing() -> None:
    fair = Check.unmeasured(0.7, "no options", applies=False)
    assert conclude({**dict.fromkeys(CHECKS, good("pass")), "fair": fair}).trust == "use"


def test_a_judge_that_passes_every_check_is_to_be_used(make) -> None:
    maps = [make.PLAIN, make.PLAIN, make.PLAIN, make.INVERTED]
    benchmark = make.benchmark(make.YESNO, maps, ["YES", "NO"] * 30)
    found = card(make, benchmark, make.oracle)
    assert (found["trust"], found["because"]) == ("use", [])
    assert not found["checks"]["fair"]["applies"]
    assert found["checks"]["responsive"]["n_items"] == 60
    assert found["checks"]["responsive"]["estimate"] == 1
    assert found["checks"]["responsive"]["threshold"] == 0.5


def test_a_steady_judge_that_overlooks_the_inversion_does_not_respond(make) -> None:
    maps = [make.PLAIN, make.PLAIN, make.INVERTED]
    benchmark = make.benchmark(make.YESNO, maps, ["YES", "NO"] * 40)
    found = card(make, benchmark, lambda prompt: prompt["gold"])
    assert states(found)["steady"] == "pass"
    assert found["checks"]["steady"]["estimate"] == 1
    assert found["checks"]["responsive"]["estimate"] == 0
    assert (found["trust"], found["because"]) == ("avoid", ["right", "responsive"])


def test_other_words_for_the_same_labels_are_no_contrast(make) -> None:
    maps = [make.PLAIN, make.PLAIN, {"FALSE": "NO", "TRUE": "YES"}]
    benchmark = make.benchmark(make.YESNO, maps, ["YES", "NO"] * 40)
    first = {"w1": "YES", "w2": "YES", "w3": "FALSE"}
    found = card(make, benchmark, lambda prompt: first[prompt["template_id"]])
    assert found["checks"]["responsive"]["state"] == "unmeasured"
    assert found["checks"]["steady"]["estimate"] == pytest.approx(1 / 3)
    # Three wordings of which one is apart say little about others like them.
    assert states(found)["steady"] == "open"


def test_a_rare_flip_does_not_make_a_judge_responsive(make) -> None:
    maps = [make.PLAIN, make.PLAIN, make.INVERTED]
    benchmark = make.benchmark(make.YESNO, maps, ["YES", "NO"] * 40)

    def decide(prompt):
        # One flip under rewording; the inverted wording is followed on two items of 80.
        rare = (prompt["item_id"][-3:], prompt["template_id"])
        said = "YES" if rare in {("001", "w1"), ("003", "w3"), ("005", "w3")} else "NO"
        return said

    found = card(make, benchmark, decide)
    details = found["checks"]["responsive"]["details"]
    assert details["turned"] / details["moves"] > 1.5
    assert states(found)["responsive"] == "fail"
    assert found["trust"] == "avoid"


@pytest.mark.parametrize(("share", "said"), [(65, ""), (66, "first"), (35, ""), (34, "second")])
def test_a_preferred_place_is_named_beyond_15_points_from_even(make, share, said) -> None:
    benchmark = make.benchmark(make.AB, [make.OPTIONS], ["A", "B"] * 50, orders=("AB", "BA"))
    found = card(make, benchmark, lambda prompt: "A" if number(prompt) <= share else "B")
    fair = found["checks"]["fair"]
    assert (fair["state"], fair["estimate"]) == ("fail", 0)
    assert re.findall(r"takes the (\w+) option", fair["text"]) == ([said] if said else [])


def test_thresholds_can_be_set_and_stand_in_the_card(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 2, ["YES", "NO"] * 30)
    found = card(make, benchmark, make.oracle, thresholds={"steady": 0.99})
    assert found["checks"]["steady"]["threshold"] == 0.99
    assert found["checks"]["steady"]["state"] == "open"
    assert found["trust"] == "unknown"
    with pytest.raises(JudgeSenseError, match="no threshold 'jss'"):
        card(make, benchmark, make.oracle, thresholds={"jss": 0.9})
    with pytest.raises(JudgeSenseError, match="steady must be a number between 0 and 1"):
        card(make, benchmark, make.oracle, thresholds={"steady": 1.2})


def test_the_command_sets_a_threshold_and_names_an_unknown_one(make, tmp_path) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 2, ["YES", "NO"] * 30)
    folder = str(make.folder(tmp_path / "run", benchmark, make.log(benchmark, make.oracle)))
    asked = ["report", folder, "--format", "json", "--threshold", "steady=0.99"]
    report = json.loads(CliRunner().invoke(app, asked).output)
    assert report["trust"][0]["checks"]["steady"]["threshold"] == 0.99
    assert "shaded area is above 0.99" in " ".join(render_html(contents_of(report)).split())
    with pytest.raises(JudgeSenseError, match="no threshold 'jss'"):
        CliRunner().invoke(app, ["report", folder, "--threshold", "jss=1"], catch_exceptions=False)


@pytest.mark.parametrize("order", ["AB", "-"])
@pytest.mark.parametrize("said", ["UNCLEAR", "ERROR", "A"])
@pytest.mark.parametrize("gold", [None, "A"])
def test_a_log_with_one_label_or_none_has_a_card(make, order, said, gold) -> None:
    row = {"judge": "j", "task": "t", "scoring": "generate", "order": order, "gold": gold}
    row |= {"raw_decision": said, "decision": said, "status": STATUS.get(said, "ok")}
    log = [{**row, "template_id": t, "item_id": f"i{n}"} for t in "xyz" for n in range(12)]
    report = report_of(pa.Table.from_pylist(log, schema=SCHEMA), None, run={})
    json.dumps(report.to_dict(), allow_nan=False)
    (found,) = report["trust"]
    # Nothing here says whether the judge reads what it judges.
    expected = {"UNCLEAR": "avoid", "ERROR": "unknown", "A": "unknown"}
    assert found["trust"] == expected[said]
    assert found["checks"]["right"]["state"] == "unmeasured"


def contrast_log(follows: int, variant: str, gold: bool, items: int = 60) -> pa.Table:
    """Three wordings and a contrast of each item; the answer follows the first contrasts."""
    row = {"judge": "j", "task": "t", "scoring": "generate", "order": "-", "status": "ok"}
    log = []
    for n in range(items):
        said, other = ("YES", "NO") if n % 2 else ("NO", "YES")
        own = {**row, "item_id": f"i{n}", "gold": said}
        log += [{**own, "template_id": t, "raw_decision": said, "decision": said} for t in "xyz"]
        said = other if n < follows else said
        contrast = {"variant": variant, "variant_class": "contrast", "gold": other}
        contrast |= {"template_id": "x", "raw_decision": said, "decision": said}
        log.append({**own, **contrast, "gold": other if gold else None})
    return pa.Table.from_pylist(log, schema=SCHEMA)


@pytest.mark.parametrize(
    ("variant", "gold", "follows", "state"),
    [
        ("negated", True, 60, "pass"),
        ("negated", False, 9, "fail"),
        ("swapped", True, 9, "fail"),
        ("negated", False, 32, "open"),
        # Whether the verdict should change under another criterion is not sure for every item.
        ("swapped", False, 20, "pass"),
        ("swapped", False, 2, "open"),
        ("swapped", False, 0, "fail"),
    ],
)
def test_contrast_variants_show_whether_a_judge_responds(variant, gold, follows, state) -> None:
    (found,) = report_of(contrast_log(follows, variant, gold), None, run={})["trust"]
    responsive = found["checks"]["responsive"]
    assert responsive["state"] == state
    share = "turned" if gold or variant == "negated" else "follows"
    assert responsive["details"] == {share: follows / 60, "moves": 0.0}
    assert responsive["threshold"] == (0.5 if share == "turned" else 1.5)
    assert responsive["n_items"] == 60
    # The contrast is no part of the other checks.
    assert found["checks"]["steady"]["estimate"] == 1
    assert found["checks"]["right"]["estimate"] == 1
    assert found["trust"] == {"pass": "use", "fail": "avoid", "open": "care"}[state]


def test_hard_items_without_a_verdict_do_not_make_a_judge_steady() -> None:
    row = {"judge": "j", "task": "t", "scoring": "generate", "order": "-", "gold": "YES"}

    def said(item: int, template: str) -> str:
        if template == "z" and item % 5 == 0:
            return "UNCLEAR"
        return "NO" if item % 10 == ord(template) - ord("w") else "YES"

    log = [
        {
            **row,
            "item_id": f"i{n}",
            "template_id": t,
            "raw_decision": said(n, t),
            "decision": said(n, t),
            "status": STATUS.get(said(n, t), "ok"),
        }
        for n in range(400)
        for t in "wxyz"
    ]
    log_table = pa.Table.from_pylist(log, schema=SCHEMA)
    (found,) = report_of(log_table, None, run={})["trust"]
    steady = found["checks"]["steady"]
    # Of ten items, four have one NO among four wordings; on two of the ten, z has no verdict.
    pairs = [
        said(n, a) == said(n, b) != "UNCLEAR" for n in range(10) for a, b in combinations("wxyz", 2)
    ]
    assert steady["details"]["jss_low"] == pytest.approx(np.mean(pairs))
    assert steady["estimate"] == pytest.approx(sum(pairs) / 54)
    assert steady["details"]["jss_high"] == pytest.approx((sum(pairs) + 6) / 60)
    between = (steady["ci_low"] + steady["details"]["jss_low_ci_low"]) / 2
    thresholds = {"steady": between}
    (found,) = report_of(log_table, None, run={}, thresholds=thresholds)["trust"]
    assert steady["ci_low"] > between
    assert states(found)["steady"] == "open"


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.data())
def test_trust_follows_from_the_states_whatever_the_log(data) -> None:
    draw = data.draw
    labels = draw(st.sampled_from([["YES", "NO"], ["A", "B"], ["1", "2", "3"]]))
    words = [*labels, "UNCLEAR", "ERROR", "stray"]
    size = st.integers(1, 4)
    row = {"judge": "j", "task": "t", "scoring": "generate"}
    log = [
        {
            **row,
            "item_id": f"i{n}",
            "template_id": f"w{w}",
            "order": order,
            "repeat": repeat,
            "cluster_id": f"c{n % 2}",
            "gold": draw(st.sampled_from([*labels, "foreign", None])),
            "raw_decision": said,
            "decision": said,
            "status": STATUS.get(said, "ok"),
        }
        for n in range(draw(size))
        for w in range(draw(size))
        for order in draw(st.sampled_from([["-"], ["AB"], ["AB", "BA"]]))
        for repeat in range(draw(st.integers(1, 2)))
        for said in [draw(st.sampled_from(words))]
    ]
    report = report_of(pa.Table.from_pylist(log, schema=SCHEMA), None, run={})
    json.dumps(report.to_dict(), allow_nan=False)
    (found,) = report["trust"]
    applying = [check["state"] for check in found["checks"].values() if check["applies"]]
    if "fail" in applying:
        expected = "avoid"
    elif found["checks"]["steady"]["state"] != "pass":
        expected = "unknown"
    else:
        expected = "use" if set(applying) == {"pass"} else "care"
    assert found["trust"] == expected
    for check in found["checks"].values():
        assert (check["estimate"] is None) == (check["state"] == "unmeasured")
        if check["ci_low"] is not None and check["ci_high"] is not None:
            assert check["ci_low"] - 1e-9 <= check["estimate"] <= check["ci_high"] + 1e-9
