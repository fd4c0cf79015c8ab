"""Table, text, remedies, next step and plan of a card say one thing."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from reports import assessment, card, check, report_of

from judgesense.measure.assessment import NextStep, RemedyFigures
from judgesense.measure.card import LEADS, TrustCard
from judgesense.measure.disagreements import WRONG
from judgesense.measure.figures import WhereWrong, WordingRow
from judgesense.measure.next import next_step
from judgesense.reporting.run_tables import jss_table

RUN = {
    "invocation": {
        "command": "run",
        "arguments": [],
        "options": {
            "judge": ["m"],
            "out": ["d"],
            "set": ["dtype=bfloat16"],
            "items": ["i.csv"],
            "templates": ["t.yaml"],
        },
    },
    "asked": {
        "judges": [{"judge": "m", "engine": "transformers"}],
        "data": {},
        "settings": {"limit": None, "scorings": ["options"]},
    },
    "judges": [{"name": "m@1"}],
    "finished": "2026",
}


def remedy(name: str, trust: str, **more: Any) -> RemedyFigures:
    values = {field.name: None for field in fields(RemedyFigures)}
    values |= {"remedy": name, "trust": trust, "because": (), "text": ""}
    values |= {"accuracy": 0.75, "accuracy_before": 0.65, "gain": 0.1, "jss": 0.92}
    values |= {"n_items": 100, "prompts_per_item": 1, "checks": card("use").checks}
    return RemedyFigures(**{**values, **more})


def wording(
    name: str, flag: str = "fine", accuracy: float | None = None, without: float = 0.7
) -> WordingRow:
    values = {field.name: None for field in fields(WordingRow)}
    values |= {"template": name, "flag": flag, "accuracy": accuracy, "jss_without": without}
    return WordingRow(**values)


def step(given: TrustCard, **figures: Any) -> NextStep:
    return next_step(assessment(given, **figures), RUN, "d")


def test_a_remedy_that_passes_is_the_step_and_writes_the_judge() -> None:
    rows = [remedy("as asked", "avoid"), remedy("calibrated", "care")]
    found = step(card("avoid", ("right",), "calibrated", right="fail"), remedies=tuple(rows))
    assert found.kind == "use_changed"
    assert found.command.startswith(
        "judgesense improve --log d --judge m@1 --set task=t --set scoring=opt"
    )
    assert all(said in found.text for said in ("75%", "65%", "0.92", "1 prompt per item"))


def test_a_way_that_may_pass_yet_says_what_it_lacks() -> None:
    near = {**card("use").checks, "right": check("open", 0.86, 0.76, 0.96)}
    rows = [remedy("as asked", "avoid"), remedy("calibrated", "care", checks=near)]
    found = step(card("avoid", ("right",), right="fail"), remedies=tuple(rows))
    assert (found.kind, found.command.split()[:2]) == ("add_items", ["judgesense", "run"])
    assert "the judge is right on 75% of items instead of 65%" in found.text
    assert "decide the 'right' check with 80% probability" in found.text


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        # Never the one that is most often right, though it is unlike the others.
        ([wording("a", "outlier", 0.9, 0.95), wording("b", accuracy=0.6), wording("c")], None),
        ([wording("a", "outlier", 0.5, 0.95), wording("b", accuracy=0.6), wording("c")], "a"),
        # Without it the judge is no steadier.
        ([wording("a", "outlier", None, 0.7), wording("b"), wording("c")], None),
        ([wording("a", "inverted"), wording("b"), wording("c")], "a"),
        # Where most wordings stand out, the fault is not theirs.
        ([wording("a", "inverted"), wording("b", "unreadable"), wording("c")], None),
    ],
)
def test_a_wording_is_corrected_only_where_it_is_the_fault(rows, named) -> None:
    found = step(card("avoid", ("steady",), steady="fail"), wordings=tuple(rows))
    assert (found.kind == "correct_wording") == (named is not None)
    if named is not None:
        assert f"Correct {named} in t.yaml" in found.text
    wrong = step(
        card("avoid", ("right", "steady"), right="fail", steady="fail"), wordings=tuple(rows)
    )
    assert wrong.kind == "another_judge"


@pytest.mark.parametrize(
    ("steady", "kind"),
    [
        (check("open", 0.87, 0.75, 0.95), "add_items"),
        (check("open", 0.8, 0.785, 0.815), "nothing_settles"),
        (check("open", 0.9, 0.7, 0.97, ci_low_fixed=0.88, ci_high_fixed=0.92), "add_wordings"),
    ],
)
def test_the_step_and_the_plan_agree_on_what_settles_it(steady, kind) -> None:
    entry = assessment(card("unknown", ("steady",), steady=steady))
    found = next_step(entry, RUN, "d")
    assert found.kind == kind
    assert (entry.outlook.settles.items_needed is not None) == (kind == "add_items")
    assert (found.command is None) == (kind == "nothing_settles")
    if found.command:
        assert "--set dtype=bfloat16" in found.command
        assert "--out d-2" in found.command


@pytest.mark.parametrize(
    ("wrong", "kappa", "kind"),
    [
        (30, (0.3, 0.2, 0.38), "read_disagreements"),
        # Few errors, or those of a judge that is no better than chance, teach nothing.
        (4, (0.3, 0.2, 0.38), "another_judge"),
        (30, (0.05, -0.1, 0.2), "another_judge"),
    ],
)
def test_the_errors_of_a_judge_that_is_often_wrong_are_read_first(wrong, kappa, kind) -> None:
    given = card("avoid", ("right",), right=check("fail", *kappa))
    found = step(given, where_wrong=WhereWrong(wrong, 100, {WRONG: wrong}, "right", 0, ()))
    assert found.kind == kind
    if kind == "read_disagreements":
        assert found.command == "judgesense report d --open"


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        ({**RUN, "finished": None}, "finish_run"),
        ({**RUN, "judges": [{"name": "m@1", "failed": ["p: down"]}]}, "finish_run"),
        (RUN, "use"),
    ],
)
def test_an_unfinished_run_is_finished_first(record, kind) -> None:
    found = next_step(assessment(card("use")), record, "d")
    assert found.kind == kind
    if kind == "finish_run":
        assert "--out d " in f"{found.command} "


def test_a_page_has_one_jss_and_as_asked_is_the_card(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 3, ["YES", "NO"] * 12)

    def decide(prompt):
        flips = len(prompt["text"]) % 3 == 0 and prompt["template_id"] == "w2"
        return "NO" if flips else prompt["gold"]

    report = report_of(make.log(benchmark, decide), benchmark.pairs, run=make.run(benchmark))
    (entry,) = report.assessments
    first, steady = entry.remedies[0], entry.card.checks["steady"]
    (row,) = jss_table(report.contents).rows
    figures = (row["jss"], row["ci_low"], row["ci_high"])
    assert figures == (steady.estimate, steady.ci_low, steady.ci_high)
    assert (first.trust, first.jss) == (entry.card.trust, steady.estimate)
    assert entry.card.text.startswith(f"{LEADS[entry.card.trust]}: ")
    assert len(report["next"]) == len(report["plan"]) == 1
