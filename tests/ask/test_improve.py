"""The best judge that a budget buys: the search, its promise, the file, and what it refuses."""

from __future__ import annotations

import hashlib
import html
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

import judgesense
from judgesense.ask.wordings import rule_paraphrases, wordings_to_try
from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense.recipes.recipe import Recipe
from judgesense.tasks import Task, Template
from judgesense_dataset.embedded import embedded_templates
from judgesense_dataset.templates import TaskTemplates
from local_judges.callable_judge import CallableJudge
from local_judges.improved_judge import ImprovedJudge, parse_improved, read_improved
from local_judges.registry import resolve

RUBRIC = "Which passage answers the query? Answer A or B.\n\nQuery: {query}\nA: {one}\nB: {two}"
PAIR = {"A": "one", "B": "two"}
ROWS = [
    {
        "item_id": f"i{n}",
        "query": f"q{n}",
        "gold": "AB"[n * 7 % 5 % 2],
        **dict(
            zip(
                ("one", "two"),
                ("GOOD", "BAD") if n * 7 % 5 % 2 == 0 else ("BAD", "GOOD"),
                strict=True,
            )
        ),
    }
    for n in range(80)
]


def chance(text: str) -> float:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % 10**6 / 10**6 - 0.5


def judge(name: str, noise: float, prior: float) -> CallableJudge:
    """Log-odds of 1 for the good passage, a prior for the first option, and noise by the prompt."""

    def answer(messages: list[str]) -> list[dict[str, float]]:
        told = []
        for text in messages:
            first = re.findall("GOOD|BAD", text)[0]
            odds = (1.0 if first == "GOOD" else -1.0) + noise * chance(name + text) + prior
            yes, no = -math.log1p(math.exp(-odds)), -math.log1p(math.exp(odds))
            told.append({"A": yes, "B": no, "1": yes, "2": no, "YES": yes, "NO": no})
        return told

    return CallableJudge(answer, name=name, scoring="options")


CHEAP, DEAR = judge("cheap", 3.0, 1.5), judge("dear", 1.0, 0.6)


def improved(tmp_path: Path, who: Any = CHEAP, **more: Any) -> judgesense.Improved:
    options = {"budget": 14, "options": PAIR, "note": lambda _: None, **more}
    return judgesense.improve(RUBRIC, ROWS, who, out=tmp_path / "judge.yaml", **options)


@pytest.mark.slow
def test_a_better_way_is_found_within_the_budget_and_its_promise_kept(tmp_path: Path) -> None:
    found = improved(tmp_path)
    assert found.better is True
    assert found.written["right"] > found.rows[0]["right"]
    assert found.prompts <= 14 * len(ROWS)
    assert found.n_held_out == 40
    assert sum(row["written"] for row in found.rows) == 1
    judgesense.report(found.run_folder)
    report = json.loads((found.run_folder / "report.json").read_text())
    assert report["improve"]["rows"] == json.loads(json.dumps(found.rows))
    assert html.escape(found.way) in (found.run_folder / "report.html").read_text()
    assert len(found.to_pandas()) == len(found.rows)
    found.plot(tmp_path / "plot.png")
    with judgesense.load_judge(found.out, judge=CHEAP) as own:
        verdicts = own(ROWS)
    right = np.mean([v.verdict == row["gold"] for v, row in zip(verdicts, ROWS, strict=True)])
    assert right >= found.written["right_ci_low"]


def test_prompts_are_asked_once_whatever_the_budget(tmp_path: Path) -> None:
    asked: list[str] = []

    def counted(messages: list[str]) -> list[Any]:
        asked.extend(messages)
        if len(asked) > stop:
            raise KeyboardInterrupt
        return CHEAP._function(messages)

    who, stop = CallableJudge(counted, name="cheap", scoring="options"), 150
    with pytest.raises(KeyboardInterrupt):
        improved(tmp_path, who)
    assert not (tmp_path / "judge.yaml").exists()
    stop = 10**9
    asked.clear()
    one = improved(tmp_path, who)
    again = improved(tmp_path, who)
    assert again.rows == one.rows
    more = improved(tmp_path, who, budget=20)
    assert more.prompts > one.prompts
    assert len(asked) == len(set(asked))
    with pytest.raises(JudgeSenseError, match="other settings"):
        judgesense.improve(RUBRIC, ROWS[:60], who, out=tmp_path / "judge.yaml", options=PAIR)
    other = RUBRIC.replace("Which", "Decide which")
    with pytest.raises(JudgeSenseError, match="other settings"):
        judgesense.improve(other, ROWS, who, out=tmp_path / "judge.yaml", options=PAIR)
    assert pq.read_table(more.run_folder / "prompts.parquet").num_rows >= one.prompts


def test_money_is_counted_for_every_judge_that_costs_some(tmp_path: Path) -> None:
    for engine in ("api", "systemone"):
        spec = resolve("m", engine=engine, base_url="http://127.0.0.1:9/v1", price=(1.0, 1.0))
        for who in (spec, spec.load()):
            with pytest.raises(JudgeSenseError, match="the budget is too small"):
                improved(tmp_path, who, budget="$0.001")


@pytest.mark.slow
@pytest.mark.parametrize("combine", ["cascade", "jury"])
def test_several_judges_decide_together_from_a_file(tmp_path: Path, combine: str) -> None:
    found = improved(tmp_path, [CHEAP, DEAR], budget=4)
    held = yaml.safe_load(found.out.read_text())
    rule = {"remedy": "x", "wordings": ["rubric"], "orders": ["AB", "BA"], "read": "most probable"}
    held |= {
        "judge": {"name": "cheap@callable"},
        "rule": rule,
        "combine": combine,
        "margin": 0.4,
        "data": {},
        "others": [{"judge": {"name": "dear@callable"}, "rule": rule}],
    }
    found.out.write_text(yaml.safe_dump(held))
    made = read_improved(found.out)
    assert [each["name"] for each in made.judges[1:]] == ["dear@callable"]
    with judgesense.load_judge(found.out, judge=[CHEAP, DEAR]) as own:
        both = own(ROWS)
    single = {}
    for who in (CHEAP, DEAR):
        alone = {**held, "judge": {"name": who.name}}
        for key in ("combine", "others", "margin"):
            del alone[key]
        path = tmp_path / f"{who.name}.yaml"
        path.write_text(yaml.safe_dump(alone))
        with judgesense.load_judge(path, judge=who) as own:
            single[who.name] = own(ROWS)
    for verdict, one, two in zip(both, *single.values(), strict=True):
        nats = [2 * math.atanh(min(each.margin, 1 - 1e-9)) for each in (one, two)]
        signs = [1 if each.verdict == "A" else -1 for each in (one, two)]
        if combine == "cascade":
            expected = one if nats[0] >= 0.4 else two
            assert verdict.verdict == expected.verdict
        else:
            mean = np.mean(np.multiply(nats, signs))
            assert verdict.verdict == ("A" if mean > 0 else "B")
    if combine == "cascade":
        # A person is asked where the last judge is unsure, not where an earlier one decided.
        held["ask_person"] = {"threshold": 1.5}
        found.out.write_text(yaml.safe_dump(held))
        with judgesense.load_judge(found.out, judge=[CHEAP, DEAR]) as own:
            unsure = [verdict.ask_person for verdict in own(ROWS)]
        told = [
            [2 * math.atanh(min(each.margin, 1 - 1e-9)) for each in pair]
            for pair in zip(*single.values(), strict=True)
        ]
        assert unsure == [one < 0.4 and two < 1.5 for one, two in told]
    with pytest.raises(JudgeSenseError, match="asks 2 judges"):
        judgesense.load_judge(found.out, judge=CHEAP)


def test_ways_that_are_all_alike_are_not_called_better(tmp_path: Path) -> None:
    def same(messages: list[str]) -> list[dict[str, float]]:
        odds = [chance(re.findall(r"q\d+", text)[0]) for text in messages]
        return [{"YES": -math.log1p(math.exp(-o)), "NO": -math.log1p(math.exp(o))} for o in odds]

    rows = [{"text": f"q{n}", "gold": "YES" if n % 3 else "NO"} for n in range(60)]
    found = judgesense.improve(
        "Is it? Answer YES or NO.\n\n{text}",
        rows,
        CallableJudge(same, scoring="options"),
        out=tmp_path / "j.yaml",
        note=lambda _: None,
    )
    assert found.better is not True


def test_text_verdicts_and_a_judge_that_refuses_half(tmp_path: Path) -> None:
    def texts(messages: list[str]) -> list[str]:
        return [
            "I cannot say." if int(re.findall(r"q(\d+)", t)[0]) % 2 else "YES" for t in messages
        ]

    rows = [{"text": f"q{n}", "gold": "YES" if n % 3 else "NO"} for n in range(60)]
    found = judgesense.improve(
        "Is it? Answer YES or NO.\n\n{text}", rows, texts, out=tmp_path / "j.yaml", note=str
    )
    assert 0.3 < found.written["decided"] < 0.7
    assert found.ask_person["threshold"] is None
    assert "verdict on" in str(found)


@pytest.mark.parametrize("task", ["factuality", "coherence", "relevance", "preference"])
def test_every_wording_that_is_tried_can_be_read_from_a_file(task: str) -> None:
    entry = embedded_templates()[task]
    for probabilities in (False, True):
        tried = wordings_to_try(
            entry, rule_paraphrases(entry), reasons=True, probabilities=probabilities, defences=True
        )
        templates = tuple(each.template for each in tried)
        order = entry.task.orders[:1]
        rule = Recipe("x", (templates[0].template_id,), order, entry.task.labels, "vote")
        made = ImprovedJudge(({"name": "m"},), TaskTemplates(entry.task, templates), rule)
        assert parse_improved(made.text(), "judge.yaml").digest == made.digest


def labelled(n: int, gold: str = "AB") -> list[dict[str, str]]:
    return [{**row, "gold": gold[i % len(gold)]} for i, row in enumerate(ROWS[:n])]


@pytest.mark.parametrize(
    ("rows", "more", "says"),
    [
        (labelled(10), {}, "too few"),
        (labelled(40, "A"), {"answers": ["A", "B"]}, "every label is A"),
        (ROWS, {"budget": 1}, "the budget is too small"),
        (ROWS, {"budget": "much"}, "prompts per item"),
        (ROWS, {"budget": "$0"}, "prompts per item"),
        (ROWS, {"max_error": 1.5}, "between 0 and 1"),
        (ROWS, {"out": "judge.txt"}, ".yaml"),
        (ROWS, {"judge": "no-such-judge"}, "unknown judge"),
        (ROWS, {"paraphraser": "missing.txt"}, "missing.txt"),
        (ROWS, {"paraphraser": lambda messages: [""] * len(messages)}, "answered none of"),
        (ROWS, {"source": "missing-rubric.txt"}, "is not a file"),
        (ROWS, {"limit": 0}, "at least 1"),
        ([{**row, "the text": "x"} for row in ROWS], {"source": RUBRIC + "{the text}"}, "rename"),
        ([{**ROWS[n % 9], "item_id": str(n)} for n in range(80)], {}, "(9 independent)"),
        (ROWS, {"judge": CHEAP, "budgett": 3}, "no argument 'budgett'; did you mean 'budget'"),
        (ROWS, {"judge": [CHEAP, CHEAP]}, "two judges are named cheap"),
    ],
)
def test_bad_input_is_refused_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: Any, more: dict[str, Any], says: str
) -> None:
    monkeypatch.chdir(tmp_path)

    def never(messages: list[str]) -> list[str]:
        raise AssertionError("asked")

    given = {
        "options": PAIR,
        "out": "judge.yaml",
        "note": lambda _: None,
        "judge": never,
        "source": RUBRIC,
        **more,
    }
    with pytest.raises(JudgeSenseError, match=re.escape(says)):
        judgesense.improve(given.pop("source"), rows, given.pop("judge"), **given)
    assert not Path("judge.yaml").exists()


def test_the_command_plans_and_refuses(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text(RUBRIC)
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    args = [
        "improve",
        str(tmp_path / "r.txt"),
        "--data",
        str(tmp_path / "d.jsonl"),
        "--options",
        "A=one,B=two",
        "--out",
        str(tmp_path / "j.yaml"),
    ]
    more = ["--attacks", "quick", "--judge", "smollm2-135m", "--dry-run"]
    shown = CliRunner().invoke(app, [*args, *more])
    assert "80 labelled items and 80 attacked copies" in shown.output
    assert isinstance(CliRunner().invoke(app, args).exception, JudgeSenseError)


@pytest.mark.parametrize(
    ("form", "is_kept"),
    [
        ('Reply with JSON only: {"reason": "<one sentence>", "verdict": "YES" or "NO"}', True),
        ("Write <verdict>YES</verdict> or <verdict>NO</verdict>.", True),
        ("End with [[YES]] or [[NO]].", True),
        ("Give your verdict, YES or NO, on the last line.", True),
        ("Is it even?", False),
    ],
)
def test_a_rubric_with_a_form_of_its_own_keeps_it(form: str, is_kept: bool) -> None:
    labels = {"YES": "YES", "NO": "NO"}
    base = Template("r", "t", form, "{instruction}\n\n{digit}", labels)
    tried = wordings_to_try(
        TaskTemplates(Task("t", ("YES", "NO"), False, {}), (base,)),
        reasons=True,
        probabilities=False,
    )
    added = {each.template.template_id.partition("+")[2] for each in tried}
    assert added.isdisjoint({"json", "reasoning", "reasoning-short", "labels-digits"}) is is_kept
    assert "role" in added


def test_wordings_of_two_files_that_are_named_alike_are_kept_apart() -> None:
    entry = embedded_templates()["factuality"]
    given = [replace(entry.templates[0], template_id="wording-1", text=text) for text in "ab"]
    entry = TaskTemplates(entry.task, (entry.templates[0], given[0]))
    tried = wordings_to_try(entry, given[1:], reasons=False, probabilities=False)
    by_text = {each.template.text: each.template.template_id for each in tried}
    assert (by_text["a"], by_text["b"]) == ("wording-1", "wording-1-2")


NUMBERS = "Is the response correct? Answer YES or NO.\n\nQuestion: {question}\nResponse: {response}"


def unlabelled(n: int = 120) -> list[dict[str, str]]:
    """Answers that nobody labelled, in which numbers, names and negations can be made wrong."""
    cities = ("Paris", "Rome", "Berlin", "Madrid", "Vienna", "Oslo")
    return [
        {
            "question": f"How far does route {k} go from {cities[k % 6]}?",
            "response": f"Route {k} takes {400 + 7 * k} kilometres from {cities[k % 6]}. It does "
            f"not cross the border, and the {cities[(k + 1) % 6]} station is always open.",
        }
        for k in range(n)
    ]


@pytest.mark.slow
def test_without_labels_the_way_that_notices_damage_is_written(tmp_path: Path) -> None:
    rows = unlabelled()
    known = {row["response"] for row in rows}

    def answer(messages: list[str]) -> list[str]:
        told = []
        for text in messages:
            good = any(f"{response}\n" in f"{text}\n" for response in known)
            # In JSON it reads closely; otherwise it passes nearly everything.
            sees = chance(text) < (0.4 if "JSON" in text else -0.3)
            told.append("YES" if good or not sees else "NO")
        return told

    who = CallableJudge(answer, name="kind")
    found = judgesense.improve(
        NUMBERS,
        rows,
        who,
        answers=["YES", "NO"],
        budget=12,
        out=tmp_path / "judge.yaml",
        note=lambda _: None,
    )
    assert found.labelled is False
    assert found.better is True
    assert "json" in found.way
    assert found.ask_person == {}
    # Half of the items are outputs as they are, all of them good.
    assert found.written["right"] == pytest.approx(0.95, abs=0.05)
    assert found.rows[0]["right"] == pytest.approx(0.6, abs=0.08)
    assert any("no people's labels" in note for note in found.notes)
    assert any("did not see" in note for note in found.notes)
    stated = yaml.safe_load((tmp_path / "judge.yaml").read_text())
    assert stated["data"]["labels"] == "none"
    assert "accuracy" not in stated["expected"]
    assert stated["expected"]["damage_told_apart"] == pytest.approx(found.written["right"])


@pytest.mark.parametrize(
    ("rubric", "answers", "message"),
    [
        (NUMBERS.replace("YES or NO", "a number from 1 to 5"), "12345", "compares two answers"),
        (NUMBERS.replace("correct", "purple"), ("YES", "NO"), "no criterion"),
    ],
)
def test_without_labels_improve_says_what_it_needs(
    tmp_path: Path, rubric: str, answers: Any, message: str
) -> None:
    with pytest.raises(JudgeSenseError, match=message):
        judgesense.improve(
            rubric, unlabelled(30), CHEAP, answers=list(answers), out=tmp_path / "j.yaml"
        )
