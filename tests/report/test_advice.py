from __future__ import annotations

import math
import re

import pyarrow as pa
import pytest
from reports import assessment, card, check, report_of

from judgesense.measure.advice import _on_answers
from judgesense.measure.assessment import Cell
from judgesense.measure.figures import Diagnostics

OTHER = {"YES": "NO", "NO": "YES", "A": "B", "B": "A"}


def findings(make, benchmark, log) -> list[tuple[str, str]]:
    report = report_of(log, benchmark.pairs, run=make.run(benchmark))
    assert len(report["advice"]) == len(report["findings"])
    return [(finding["kind"], finding["text"]) for finding in report["findings"]]


def number(prompt) -> int:
    return int(prompt["item_id"][-3:])


def the_one(advice: list[tuple[str, str]], kind: str) -> str:
    found = [text for each, text in advice if each == kind]
    assert len(found) == 1, advice
    return found[0]


def test_the_inverted_wording_is_named_where_raw_is_far_below_mapped(make) -> None:
    maps = [make.PLAIN, make.PLAIN, make.INVERTED]
    benchmark = make.benchmark(make.YESNO, maps, ["YES", "NO"] * 20)
    text = the_one(findings(make, benchmark, make.log(benchmark, make.oracle)), "polarity")
    assert "inverted wording w3" in text
    # The judge's raw and mapped JSS, and the raw one of a perfect judge.
    assert re.findall(r"\d\.\d{3}", text) == ["0.333", "1.000", "0.333"]


def test_a_judge_that_is_consistent_and_wrong_is_not_to_be_used(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 3, ["YES", "NO"] * 30)
    advice = findings(make, benchmark, make.log(benchmark, lambda prompt: OTHER[prompt["gold"]]))
    assert [kind for kind, _ in advice[:2]] == ["avoid", "check"]
    assert re.findall(r"\d+%", advice[1][1]) == ["0%", "50%"]


def test_an_accuracy_that_a_constant_answer_reaches_says_so(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 3, ["YES"] * 30)
    log = make.log(benchmark, lambda prompt: "YES" if number(prompt) > 3 else "NO")
    texts = [text for kind, text in findings(make, benchmark, log) if kind == "missing"]
    assert any("every gold label is YES" in text for text in texts)


def test_options_that_hold_little_probability_are_forced_choices(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 2, ["YES", "NO"] * 10)
    log = make.log(
        benchmark,
        make.oracle,
        scoring="options",
        logprobs=lambda prompt: {"YES": math.log(0.01), "NO": math.log(0.02)},
        mass=0.03,
    )
    assert "3%" in the_one(findings(make, benchmark, log), "mass")


def test_flips_that_come_back_without_rewording_are_called_noise(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 2, ["YES"] * 20)

    def first(prompt):
        return "NO" if number(prompt) <= 4 and prompt["template_id"] == "w2" else "YES"

    def later(prompt):
        return "NO" if number(prompt) <= 4 and prompt["template_id"] == "w1" else "YES"

    log = pa.concat_tables([make.log(benchmark, first), make.log(benchmark, later, repeat=1)])
    text = the_one(findings(make, benchmark, log), "noise")
    assert re.findall(r"\d+%", text) == ["20%", "20%"]


def test_an_undecided_verdict_says_how_many_items_would_settle_it(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 6, ["YES"] * 20)

    def decide(prompt):
        wording = int(prompt["template_id"][1:])
        return "NO" if wording <= 5 and number(prompt) % 20 == wording else "YES"

    log = make.log(benchmark, decide)
    report = report_of(log, benchmark.pairs, run=make.run(benchmark))
    assert report["findings"][0]["kind"] == "unknown"
    (step,), (entry,) = report["next"], report["plan"]
    items = entry["settles"]["items_needed"]
    assert (step["kind"], entry["settles"]["open"]) == ("add_items", ["readable", "steady"])
    assert f"{items} items in all" in step["text"]
    bigger = make.benchmark(make.YESNO, [make.PLAIN] * 6, ["YES"] * (items // 10 * 10 + 10))
    log = make.log(bigger, decide)
    settled = report_of(log, bigger.pairs, run=make.run(bigger))
    assert settled["trust"][0]["checks"]["steady"]["state"] == "pass"


def of_answers(
    *,
    kappa: float = 0.5,
    jss_repeat: float | None = None,
    mass: float = 0.9,
    cut_off: int = 0,
    unclear: int = 0,
    fair: float | None = None,
) -> str:
    """The advice on a judge whose figures give no other reason for advice."""
    steady = check("pass", 0.9, kappa=kappa, jss_repeat=jss_repeat)
    about = Diagnostics(
        n_judged=100, n_planned=100, option_mass=mass, n_cut_off=cut_off, n_prompts=100
    )
    cell = Cell("-", "mapped", 0.9, jss_low=0.8, jss_high=0.95, n_unclear=unclear)
    checked = card("use", steady=steady, fair=check("pass", fair))
    entry = assessment(checked, about, cells=(cell,))
    return " ".join(f"{kind}: {text}" for kind, text in _on_answers(entry, True))


@pytest.mark.parametrize(
    ("beside", "beyond", "told"),
    [
        ({"kappa": 0.21}, {"kappa": 0.2}, "one_label: "),
        ({"mass": 0.5}, {"mass": 0.49}, "mass: "),
        ({"cut_off": 4}, {"cut_off": 5}, "cut_off: "),
        ({"unclear": 5}, {"unclear": 6}, "undecided: "),
        # Of 10% flips: 5% is half, 9% is within two points.
        ({"jss_repeat": 0.951}, {"jss_repeat": 0.949}, "Most of these changes are noise"),
        ({"jss_repeat": 0.921}, {"jss_repeat": 0.919}, "Rewording adds nothing"),
        # Where the order moves more than rewording does, it is not "wording alone".
        ({"jss_repeat": 1.0, "fair": 0.1}, {"jss_repeat": 1.0, "fair": 0.95}, "wording alone"),
    ],
)
def test_advice_begins_where_its_limit_lies(beside, beyond, told) -> None:
    assert told not in of_answers(**beside)
    assert told in of_answers(**beyond)
