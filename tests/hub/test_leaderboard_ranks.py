"""What the leaderboard says of judges: shared ranks, what is never ranked, filters, names."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace

import pytest
import yaml

from hub_scripts.leaderboard import FILES, space_files
from hub_scripts.leaderboard.board import Board, BoardEntry, billions, published_entries
from hub_scripts.leaderboard.pages.chart import chart
from hub_scripts.leaderboard.pages.judge import choices, judge_page, key_of
from hub_scripts.leaderboard.pages.published import published_page
from hub_scripts.leaderboard.pages.rows import FIRST_ROWS, answer
from hub_scripts.leaderboard.pages.table import asked_for, csv_of, table
from hub_scripts.leaderboard.ranking import standings
from hub_scripts.leaderboard.sources import DEMO, EmbeddedSource, open_results
from judgesense.errors import JudgeSenseError
from judgesense.published import figures, v2_figures
from judgesense.run_folder.folder import read_run
from judgesense.run_folder.report import CELL_KEYS
from judgesense.trust.card import TRUST

HOSTILE = (
    '<script>alert("x")</script>',
    '"><img src=x onerror=alert(1)>',
    "${alert(1)}{{value}}`",
    "\u202egnp.egduj\u2066",
    "javascript:alert(1)",
    "n" * 10_000,
)


def entry(name, low, high, *, jss=None, pairs="0a0a0a0a", scoring="options", run="", **cell):
    values = dict.fromkeys(CELL_KEYS)
    values.update(jss=(low + high) / 2 if jss is None else jss, ci_low=low, ci_high=high)
    values.update(n_pairs=125, n_items=25, n_clusters=25, n_unclear=0, n_refused=0, n_error=0)
    values.update(coverage=1.0, signature="JSS|…", task="coherence")
    values.update(cell)
    cells = {"raw": values, "mapped": values}
    return BoardEntry(run or name, name, "coherence", scoring, pairs, "data", cells)


def ranks(*entries):
    return {
        standing.entry.judge: standing.rank
        for group in standings(entries, "mapped")
        for standing in group
    }


def board(*entries):
    return Board("here", "now", entries)


def test_judges_whose_intervals_overlap_share_a_rank():
    assert ranks(entry("a", 0.8, 0.95), entry("b", 0.75, 0.9), entry("c", 0.5, 0.7)) == {
        "a": 1,
        "b": 1,
        "c": 3,
    }


def test_a_rank_counts_those_that_lie_wholly_above_and_no_others():
    found = ranks(entry("a", 0.8, 0.9), entry("b", 0.7, 0.85), entry("c", 0.6, 0.75))
    assert found == {"a": 1, "b": 1, "c": 2}


def test_intervals_that_touch_overlap():
    assert ranks(entry("a", 0.8, 0.9), entry("b", 0.6, 0.8)) == {"a": 1, "b": 1}


def test_a_judge_of_two_runs_counts_once_and_not_against_itself():
    twice = [entry("a", 0.9, 0.95, run="one"), entry("a", 0.8, 0.85, run="two")]
    found = [s for group in standings([*twice, entry("b", 0.1, 0.2)], "mapped") for s in group]
    assert [(s.entry.judge, s.entry.run, s.rank) for s in found] == [
        ("a", "one", 1),
        ("a", "two", 1),
        ("b", "b", 2),
    ]


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ({"degenerate": "every decision is 'A'"}, "says nothing about rewording: every"),
        ({"ci_low": None, "ci_high": None}, "no interval"),
        ({"coverage": 0.02}, "fewer than half"),
        ({"jss": None}, "no pair is decided"),
    ],
)
def test_a_figure_that_tells_nothing_is_never_ranked_and_says_why(what, why):
    bad = entry("bad", 0.99, 1.0)
    cell = {**bad.cells["mapped"], **what}
    bad = replace(bad, cells={"raw": cell, "mapped": cell})
    group = standings([bad, entry("good", 0.5, 0.6)], "mapped")[0]
    assert [(s.entry.judge, s.rank) for s in group] == [("good", 1), ("bad", None)]
    assert group[1].why.startswith(why)
    shown = table(board(bad, entry("good", 0.5, 0.6)), "coherence")
    assert why in shown
    assert "degenerate" not in shown


def test_judges_of_other_pairs_or_scorings_are_not_ranked_together():
    found = ranks(
        entry("a", 0.9, 1.0),
        entry("b", 0.1, 0.2, pairs="0b0b0b0b"),
        entry("c", 0.1, 0.2, scoring="generate"),
    )
    assert found == {"a": 1, "b": 1, "c": 1}


def test_filters_leave_ranks_as_they_are():
    entries = [entry("top-70b", 0.9, 1.0), entry("low-1b", 0.1, 0.2)]
    entries = [replace(e, billions=billions(e.judge)) for e in entries]
    shown = table(board(*entries), "coherence", sizes="up to 1B")
    assert "low-1b" in shown
    assert "top-70b" not in shown
    assert re.search(r'<td class="rank" data-v="2">', shown)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("smollm2-135m@7a4f4347", 0.135),
        ("llama-3.1-70b-instruct", 70.0),
        ("org/qwen-1.5B", 1.5),
        ("gpt-4o", None),
        ("claude-3", None),
        ("gemma-2b2", None),
    ],
)
def test_the_size_is_what_the_name_states(name, size):
    assert billions(name) == size


def test_published_figures_are_labelled_and_have_no_trust():
    shown = table(board(*published_entries()), "coherence")
    assert "measured with other wordings" in shown
    assert "as if they were independent" in shown
    assert shown.count("published</span>") == 13
    for trust in TRUST:
        assert f"> {trust}</span>" not in shown


def card(trust="use", because=(), *, beats=0.2, fair="pass", right=0.8, jss=(0.85, 0.95)):
    details = {"beats_constant": None if beats is None else beats + 0.1}
    checks = {
        name: {"state": "pass", "estimate": 0.9, "ci_low": 0.85, "ci_high": 0.95, "applies": True,
               "details": {}}
        for name in ("readable", "steady", "responsive", "right", "fair")
    }  # fmt: skip
    checks["steady"] |= {"estimate": sum(jss) / 2, "ci_low": jss[0], "ci_high": jss[1]}
    for name in because:
        checks[name]["state"] = "fail" if trust == "avoid" else "open"
    checks["fair"]["state"] = fair
    checks["right"] |= {
        "estimate": right,
        "details": {**details, "beats_constant_ci_low": beats, "beats_constant_ci_high": 0.5},
    }
    return {"trust": trust, "because": list(because), "text": f"{trust}: ...", "checks": checks}


def test_a_judge_to_avoid_is_ranked_only_if_its_one_fault_is_its_steadiness():
    first = replace(entry("first", 0.97, 1.0), trust=card("avoid", ["fair", "right"]))
    shaky = replace(entry("shaky", 0.3, 0.5), trust=card("avoid", ["steady"], jss=(0.3, 0.5)))
    assert ranks(first, shaky, entry("good", 0.8, 0.9)) == {"good": 1, "shaky": 2, "first": None}
    shown = table(board(first, shaky), "coherence")
    assert shown.count("avoid</span>") == 2
    assert shown.count("hardly more right than by chance") == 1


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"beats": -0.01}, "more right than a constant"),
        ({"beats": None, "right": None}, "no gold labels"),
        ({"fair": "open"}, "same in both orders"),
        ({"fair": "unmeasured"}, "same in both orders"),
    ],
)
def test_no_rank_without_beating_the_constant_answer_and_fair_order(facts, why):
    judge = replace(entry("judge", 0.97, 1.0), trust=card("care", ["right"], **facts))
    others = [replace(entry(name, 0.8, 0.9), trust=card()) for name in ("one", "two")]
    assert ranks(judge, *others) == {"one": 1, "two": 1, "judge": None}
    assert why in table(board(judge, *others), "coherence")


def test_a_task_whose_best_judge_is_hardly_better_than_a_constant_ranks_nobody():
    able = card(right=0.15)
    able["checks"]["right"] |= {"ci_low": 0.03, "ci_high": 0.27}
    weak = [replace(entry(name, 0.8, 0.9), trust=able) for name in ("one", "two")]
    assert ranks(*weak) == {"one": None, "two": None}
    assert "not shown to tell judges apart" in table(board(*weak), "coherence")
    # A better judge of the same pairs, read otherwise, shows that the task can be done.
    good = replace(entry("three", 0.8, 0.9, scoring="generate"), trust=card())
    assert ranks(*weak, good) == {"one": 1, "two": 1, "three": 1}
    elsewhere = replace(entry("three", 0.8, 0.9, pairs="0b0b0b0b"), trust=card())
    assert ranks(*weak, elsewhere) == {"one": None, "two": None, "three": 1}


def test_a_group_of_one_shows_no_rank():
    alone = replace(entry("alone", 0.8, 0.9), trust=card())
    assert 'class="rank" data-v="1"' not in table(board(alone), "coherence")
    other = replace(entry("other", 0.8, 0.9), trust=card())
    assert table(board(alone, other), "coherence").count('class="rank" data-v="1"') == 2


def test_judges_that_share_no_pairs_are_told_why_nobody_has_a_rank():
    one, two = (replace(entry(n, 0.8, 0.9, pairs=n * 8), trust=card()) for n in "ab")
    assert 'class="apart"' in table(board(one, two), "coherence")
    assert 'class="apart"' not in table(board(one), "coherence")
    three = replace(entry("c", 0.8, 0.9, pairs="a" * 8), trust=card())
    assert 'class="apart"' not in table(board(one, two, three), "coherence")


def test_the_chart_draws_a_judge_by_what_it_adds_to_a_constant_answer():
    fair = replace(entry("fair", 0.8, 0.9), trust=card())
    biased = replace(entry("biased", 0.8, 0.9), trust=card("avoid", ["fair"], beats=-0.2))
    drawn = chart([fair, biased])
    assert [(point["x"], point["hollow"]) for point in drawn["points"]] == [
        (pytest.approx(0.5 + 97.5 * (0.2 + 0.3) / 0.6), False),
        (pytest.approx(0.5 + 97.5 * (0.2 - 0.1) / 0.6), False),
    ]
    # The zone of usable judges starts at the constant answer and at the threshold.
    x, y, width, height = drawn["zone"]
    assert (x, y, x + width) == (pytest.approx(33), 9, pytest.approx(98))
    assert height == pytest.approx(82 * 0.2 / 0.4)
    hollow = replace(entry("hollow", 0.8, 0.9), trust=card("avoid", ["fair"], fair="fail"))
    assert [point["hollow"] for point in chart([hollow])["points"]] == [True]
    assert chart([replace(entry("bare", 0.8, 0.9), trust=card(beats=None))]) is None


def test_a_rank_is_a_range_and_unknown_trust_has_none():
    entries = [entry("a", 0.8, 0.95), entry("b", 0.75, 0.9), entry("c", 0.5, 0.7)]
    (group,) = standings(entries, "mapped")
    assert [(s.rank, s.last) for s in group] == [(1, 2), (1, 2), (3, 3)]
    open_yet = replace(entry("open", 0.7, 1.0), trust=card("unknown", ["steady"], jss=(0.7, 1)))
    assert ranks(open_yet, *entries)["open"] is None
    assert "steadiness not settled yet" in table(board(open_yet, *entries), "coherence")


def test_the_first_line_says_which_judges_can_be_used():
    change = {"remedy": "both orders", "trust": "use", "prompts_per_item": 2, "accuracy": 0.9}
    judges = [
        replace(entry("plain", 0.9, 1.0), trust=card()),
        replace(entry("curable", 0.9, 1.0), trust=card("avoid", ["fair"]), change=change),
        replace(entry("curable", 0.9, 1.0, scoring="generate"), trust=card("avoid", ["right"])),
        *(replace(entry(f"bad-{n}", 0.9, 1.0), trust=card("avoid", ["right"])) for n in range(5)),
    ]
    assert answer(judges) == [
        ("Use", ["plain"]),
        ("Use after a change", ["curable (both orders)"]),
        ("Avoid", [f"bad-{n}" for n in range(5)]),
    ]
    shown = table(board(*judges), "coherence")
    assert "(2 prompts per item): right on 90%" in shown
    assert "and 1 more" in shown
    assert answer([entry("bare", 0.9, 1.0)]) == []


def test_a_judge_that_a_change_makes_usable_comes_before_those_that_none_does():
    change = {"remedy": "both orders", "trust": "use", "prompts_per_item": 2, "accuracy": None}
    steady = replace(entry("constant", 0.97, 1.0), trust=card("avoid", ["right"], beats=0.3))
    cured = replace(entry("cured", 0.5, 0.7), trust=card("avoid", ["fair"]), change=change)
    (group,) = standings([steady, cured], "mapped")
    assert [s.entry.judge for s in group] == ["cured", "constant"]


def test_the_first_task_is_the_one_that_most_judges_judged():
    own = replace(entry("own", 0.8, 0.9), task="relevance")
    assert board(*published_entries(), own).first_task == "relevance"
    assert board(*published_entries()).first_task == "coherence"
    assert "No run here judged coherence" in table(
        board(own, *published_entries()), "coherence", published=False
    )


def test_judges_at_one_place_of_the_chart_share_a_name_and_crowds_have_none():
    def drawn(*names):
        entries = [replace(entry(name, 0.8, 0.9), trust=card()) for name in names]
        return [point["shown"] for point in chart(entries)["points"]]

    assert drawn("a", "b") == ["a, b", None]
    assert drawn("x" * 30, "y" * 30) == ["x" * 30 + " and 1 more", None]
    assert set(drawn(*map(str, range(41)))) == {None}


def test_without_a_rank_the_more_usable_judge_comes_first():
    constant = replace(entry("constant", 0.97, 1.0), trust=card("avoid", ["right"]))
    able = replace(entry("able", 0.7, 0.9), trust=card("unknown", ["steady"], jss=(0.7, 0.9)))
    (group,) = standings([constant, able], "mapped")
    assert [s.entry.judge for s in group] == ["able", "constant"]


def test_the_csv_has_every_column_and_no_formula():
    names = ("=1+1", "@x", "plain")
    entries = [replace(entry(name, 0.8, 0.9), trust=card()) for name in names]
    whole = board(*entries, *published_entries())
    rows = list(csv.DictReader(io.StringIO(csv_of(whole, {"task": "coherence"}))))
    assert {row["judge"] for row in rows} == {"'=1+1", "'@x", "plain"}
    assert (rows[0]["rank"], rows[0]["rank_last"], float(rows[0]["ci_low"])) == ("1", "3", 0.85)
    found = list(csv.DictReader(io.StringIO(csv_of(whole, {"find": "PLAIN", "published": "1"}))))
    assert [row["judge"] for row in found] == ["plain"]


def test_a_long_table_shows_its_first_rows_until_all_are_asked_for():
    many = board(*(entry(f"judge-{n:03}", 0.8, 0.9) for n in range(150)))
    assert table(many, "coherence").count("data-row") == FIRST_ROWS
    assert "Show 90 more" in table(many, "coherence")
    assert table(many, "coherence", whole=True).count("data-row") == 150
    assert len(csv_of(many, {}).splitlines()) == 151


def test_an_empty_board_names_three_commands():
    shown = table(board(*published_entries()), "coherence", published=False)
    for command in ("judgesense run", "judgesense leaderboard", "judgesense publish results"):
        assert command in shown


def test_the_table_shows_the_interval_of_the_trust_card():
    judge = replace(entry("judge", 0.9, 1.0), trust=card("unknown", ["steady"], jss=(0.7, 0.98)))
    assert "[70%, 98%]" in table(board(judge), "coherence")
    assert "[90%, 100%]" in table(board(judge), "coherence", labels="raw")


def test_a_url_sets_the_filters_that_it_names_and_no_others():
    now = ("coherence", "mapped", "any", "any", "any", "", False)
    here = board(entry("a", 0.8, 0.9))
    asked = {"labels": "raw", "find": "a", "published": "1", "scoring": "<b>", "task": "none"}
    assert asked_for(here, asked, now) == ("coherence", "raw", "any", "any", "any", "a", True)
    assert asked_for(here, {}, now) == now


def test_the_page_of_published_figures_has_both_versions_and_the_withdrawal():
    shown = published_page()
    assert shown.index("Second version") < shown.index("withdrew it in August 2026")
    assert shown.count("<tr><td") == len(v2_figures()) + len(figures())


def test_published_figures_of_one_answer_throughout_are_degenerate():
    relevance = [e for e in published_entries() if e.task == "relevance"]
    found = [s for group in standings(relevance, "raw") for s in group]
    assert {s.rank for s in found if s.entry.cells["raw"]["jss"] == 1} == {None}
    assert any(s.rank == 1 for s in found)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_text_in_the_table(name):
    shown = table(board(entry(name, 0.5, 0.6), *published_entries()), "coherence")
    for part in ("<script", "<img", 'href="javascript', "\u202e", "\u2066", "n" * 200):
        assert part not in re.sub(r'href="judge\?[^"]*"', "", shown)
    assert "<tr" in shown


def test_the_embedded_board_has_two_measured_judges_that_can_be_compared():
    source = EmbeddedSource()
    found = source.board()
    assert not found.refused
    judges = {e.judge for e in found.entries if not (e.is_published or e.is_baseline)}
    assert {judge.partition("@")[0] for judge in judges} == {"smollm2-135m", "qwen2.5-coder-1.5b"}
    assert {e.model for e in found.entries if e.trust} == {
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        "Qwen/Qwen2.5-Coder-1.5B-Instruct",
    }
    assert found.tasks == ["coherence", "factuality", "preference", "relevance"]
    for key in found.runs:
        folder = source.run_dir(key)
        assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 300_000
        assert read_run(folder).record["run_id"]
    on_relevance = [e for e in found.entries if e.trust and e.task == "relevance"]
    assert len({e.judge for e in on_relevance}) == 2
    assert len({(e.pairs, e.scoring) for e in on_relevance}) == 1
    with pytest.raises(JudgeSenseError, match="not available"):
        source.run_dir("nowhere")


def test_a_judges_page_shows_its_parts_and_its_signatures():
    found = EmbeddedSource().board()
    key = next(key for name, key in choices(found) if name.startswith("smollm2"))
    shown = judge_page(found, key)
    for part in ("Which wordings agree", "Position bias", "Verdicts that flipped", "Cite this"):
        assert part in shown
    signatures = {c["signature"] for c in json.loads(DEMO.read_text("utf-8"))["cells"]}
    assert any(signature in shown for signature in signatures)
    published = judge_page(found, key_of("published", "gpt-4o"))
    assert "These figures were published, not measured here" in published
    assert "not on the leaderboard" in judge_page(found, "nobody|nowhere")


def test_the_spaces_files_say_how_it_starts():
    files = space_files()
    assert set(files) == set(FILES)
    front = yaml.safe_load(files["README.md"].decode().split("---")[1])
    assert front["sdk"] == "gradio"
    assert front["app_file"] == "app.py"
    assert front["python_version"] == "3.11"
    assert b"judgesense" in files["requirements.txt"]
    compile(files["app.py"], "app.py", "exec")


@pytest.mark.parametrize(
    ("results", "accept", "told"),
    [
        ("no such folder at all", False, "no folder"),
        ("org/name", True, "--accept writes into a folder"),
        (".", False, "holds no run"),
    ],
)
def test_results_that_cannot_be_shown_are_named(results, accept, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(JudgeSenseError, match=told):
        open_results(results, accept=accept)
