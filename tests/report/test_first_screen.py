"""The first screen of a report's page, on logs made by rule."""

from __future__ import annotations

import zlib

import pyarrow as pa
from reports import report_of

from judgesense.reporting.html import render_html
from judgesense.reporting.summary import first_screen
from judgesense.reporting.terminal import render_terminal


def _first(prompt) -> str:
    return "A"


def test_a_judge_that_follows_the_order_is_not_to_be_used(make) -> None:
    benchmark = make.benchmark(make.AB, [make.OPTIONS] * 4, ["A", "B"] * 20, orders=("AB", "BA"))
    screen = first_screen(report_of(make.log(benchmark, _first), benchmark.pairs, run={}).contents)
    assert screen.title.startswith("For the preference task, do not use rule: ")
    assert "its choice depends on the order of the options" in screen.title
    (row,) = screen.rows
    steady, right, fair = row.bars
    assert (row.trust, row.why) == (
        "avoid",
        "its choice depends on the order of the options",
    )
    assert (steady.value, steady.line, steady.tone) == (100, 80, "pass")
    assert (right.value, right.line, right.tone) == (50, 50, "fail")
    assert (fair.value, fair.line, fair.tone) == (0, 70, "fail")
    assert screen.matrix is None
    assert screen.wordings == ()
    assert screen.next_step.kind == "another_judge"


def test_a_remedy_that_passes_is_in_the_title_and_the_command(make) -> None:
    """The item's better option by 1 nat, the first place by 2: both orders undo the place."""
    benchmark = make.benchmark(make.AB, [make.OPTIONS] * 4, ["A", "B"] * 40, orders=("AB", "BA"))

    def scores(prompt):
        lean = 2.0 + (1.0 if prompt["gold"] == "A" else -1.0)
        noise = zlib.crc32(prompt["text"].encode()) % 7 / 100
        return {"A": -0.1, "B": -0.1 - lean - noise}

    log = make.log(benchmark, _first, scoring="options", logprobs=scores, mass=1.0)
    screen = first_screen(report_of(log, benchmark.pairs, run={}).contents)
    (row,) = screen.rows
    assert row.trust == "avoid"
    name = row.remedy.remedy
    assert f"with care (only with the remedy {name!r}; otherwise avoid it)" in screen.title
    (change,) = screen.remedies.passing
    assert change.remedy.text.startswith(f"{name!r} is right on 100% of items instead")
    assert "(+50.0 [+4" in change.remedy.text
    # The log alone does not hold what the judge is: there is no command that writes it.
    assert (screen.next_step.kind, screen.next_step.command) == ("use_changed", None)


def test_the_better_scoring_is_first_and_two_judges_make_a_matrix(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 5, ["YES", "NO"] * 40)
    logs = [
        make.log(benchmark, make.oracle, judge="good@1", scoring="options"),
        make.log(benchmark, lambda prompt: "UNCLEAR", judge="good@1"),
        make.log(benchmark, lambda prompt: "YES", judge="j" * 40),
    ]
    report = report_of(pa.concat_tables(logs), benchmark.pairs, run={})
    screen = first_screen(report.contents)
    assert [(row.name, row.entry.scoring) for row in screen.rows] == [
        ("good", "options"),
        ("j" * 40, "generate"),
    ]
    assert [(row.name, row.entry.scoring) for row in screen.others] == [("good", "generate")]
    chips = [chips[0].trust for _, chips in screen.matrix.lines]
    assert chips == ["care", "avoid"]
    assert screen.title.startswith(
        "For the factuality task, use good with care. No other judge passes"
    )
    (wording,) = screen.wordings
    assert (wording.is_best, wording.equal) == (False, 5)
    assert len(render_html(report.contents).encode()) < 300_000


def test_what_is_missing_is_said_in_its_place(make) -> None:
    benchmark = make.benchmark(make.AB, [make.OPTIONS] * 4, ["A", "B"] * 20, orders=("AB",))
    log = make.log(benchmark, make.oracle)
    no_gold = log.set_column(
        log.column_names.index("gold"), "gold", pa.nulls(len(log), pa.string())
    )
    screen = first_screen(report_of(no_gold, benchmark.pairs, run={}).contents)
    (row,) = screen.rows
    assert [bar.value for bar in row.bars[1:]] == [None, None]
    assert row.bars[1].why == "its agreement with people has not been measured"
    assert row.bars[2].why == "it judged in one option order only"
    assert screen.next_step.kind == "add_orders"


def test_twelve_judges_of_long_names_stay_apart_and_the_page_small(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 5, ["YES", "NO"] * 20)
    names = [f"{'n' * 194}-{number:02}@{number:08x}" for number in range(12)]
    wavers = lambda prompt: ("YES", "NO")[zlib.crc32(prompt["text"].encode()) % 2]  # noqa: E731
    logs = [make.log(benchmark, wavers, judge=name) for name in names]
    report = report_of(pa.concat_tables(logs), benchmark.pairs, run={})
    page = render_html(report.contents)
    assert len(page.encode()) < 300_000
    matrix = page[page.index('class="chips"') : page.index('class="line"')]
    assert all(f"…{'n' * 21}-{number:02}" in matrix for number in range(12))


def test_the_terminal_names_the_next_step_of_each_judge_and_task(make) -> None:
    benchmark = make.benchmark(make.AB, [make.OPTIONS] * 4, ["A", "B"] * 20, orders=("AB",))
    logs = [
        make.log(benchmark, decide, judge=name)
        for name, decide in (("good", make.oracle), ("first", _first))
    ]
    started = {"command": "run", "arguments": [], "options": {"judge": ["good"], "out": ["d"]}}
    report = report_of(pa.concat_tables(logs), benchmark.pairs, run={"invocation": started})
    assert {step["judge"]: step["kind"] for step in report["next"]} == {
        "good": "add_orders",
        "first": "another_judge",
    }
    commands = [
        line.strip() for line in render_terminal(report.contents).splitlines() if line[:4] == "    "
    ]
    assert sorted(commands) == [
        "judgesense judges list",
        "judgesense run --judge good --out d-2 --orders AB,BA",
    ]


def test_a_run_still_being_judged_says_so(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 4, ["YES", "NO"] * 20)
    log = make.log(benchmark, make.oracle).slice(0, 50)
    run = {"run_id": "r", "asked": {}, "started": "2026-01-01T00:00:00+00:00"}
    report = report_of(log, benchmark.pairs, run=run)
    screen = first_screen(report.contents)
    assert screen.unfinished
    assert screen.title.startswith("So far: for the factuality task, do not rely on rule yet")
    assert screen.next_step.kind == "finish_run"
    assert '<p class="unfinished"' in render_html(report.contents)
    assert "judged so far" in str(render_terminal(report.contents))
    whole = first_screen(
        report_of(log, benchmark.pairs, run={**run, "finished": "2026-01-01"}).contents
    )
    assert not whole.unfinished
