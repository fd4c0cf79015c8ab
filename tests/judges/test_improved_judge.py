"""An improved judge: its file, and its verdicts through every way of asking."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from improved_trial import biased, edit, items, judged, options, stable
from typer.testing import CliRunner

import judgesense
from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense.log.schema import read_log
from judgesense.tasks import prompt_id
from local_judges.callable_judge import CallableJudge
from local_judges.improved_judge import MARK, read_improved
from local_judges.protocol import Request
from local_judges.recipe_judge import RecipeJudge
from local_judges.registry import JudgeSpec, resolve
from local_judges.runner import ask_all

BIASED = options()


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged(tmp_path_factory.mktemp("improved"))


@pytest.fixture(name="stable")
def file(run_dir: Path, tmp_path: Path) -> Path:
    return stable(run_dir, tmp_path / "stable.yaml")


@pytest.fixture
def named(run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with a judge that can be loaded by name: the function in place of a model."""
    monkeypatch.setattr(JudgeSpec, "_load", lambda self: BIASED)
    return stable(run_dir, tmp_path / "stable.yaml", model="smollm2-135m")


def test_the_cheapest_remedy_that_passes_is_written(run_dir: Path, tmp_path: Path) -> None:
    made = judgesense.stabilise(run_dir, out=tmp_path / "s.yaml")
    assert made.recipe.name == "calibrated"
    assert made.card["as asked"]["trust"] == "avoid"
    assert made.card["with the remedy"]["trust"] in ("use", "care")
    assert read_improved(tmp_path / "s.yaml") == made
    assert made.expected["accuracy"] == 1.0
    assert made.expected["prompts_per_item"] == 1


def test_verdicts_on_new_items_keep_the_promise(stable: Path) -> None:
    new = items(60, 90)
    with judgesense.load_judge(stable, judge=BIASED) as own:
        found = own(new)
    assert [verdict.verdict for verdict in found] == [item["gold"] for item in new]
    # Both orders average 3 + 2 and -(3 - 2): two nats for the right one.
    assert found[0].margin == pytest.approx(np.tanh(1.0))
    assert found[0].probability == pytest.approx(1 / (1 + np.exp(-2.0)))
    assert not any(verdict.ask_person for verdict in found)


@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "csv"])
def test_the_command_judges_items_and_resumes(named: Path, tmp_path: Path, suffix: str) -> None:
    path, out = tmp_path / "items.jsonl", tmp_path / f"v.{suffix}"
    path.write_text("".join(json.dumps(item) + "\n" for item in items(60, 90)))
    call = ["judge", str(path), "--judge", str(named), "--out", str(out)]
    for _ in range(2):
        result = CliRunner().invoke(app, call)
        assert result.exit_code == 0, result.output
        assert "30 verdicts on 30 items" in result.output
    if suffix == "parquet":
        table = pq.read_table(out)
        assert table["verdict"].to_pylist() == [item["gold"] for item in items(60, 90)]
        assert table["item_id"].to_pylist() == [item["item_id"] for item in items(60, 90)]
        assert not any(table["ask_person"].to_pylist())


def test_it_is_a_judge_in_a_run(named: Path, run_dir: Path, tmp_path: Path) -> None:
    report = judgesense.run(
        str(named),
        templates=run_dir.parent / "templates.yaml",
        items=run_dir.parent / "items.jsonl",
        out=tmp_path / "run",
        note=str,
    )
    (card,) = report.to_dict()["trust"]
    # The wordings of the run are kept, so rewording is measured; the orders agree by construction.
    assert card["checks"]["fair"]["estimate"] == 1.0
    assert card["checks"]["right"]["state"] == "pass"
    assert card["checks"]["steady"]["state"] == "pass"
    log = read_log(tmp_path / "run")
    assert set(log["template_id"].to_pylist()) == {"r1", "r2", "r3", "r4"}


def test_a_prompt_is_asked_once_for_both_orders(stable: Path) -> None:
    asked: list[str] = []

    def counting(messages: list[str]) -> list[dict[str, float]]:
        asked.extend(messages)
        return biased(messages)

    judge = RecipeJudge(read_improved(stable), options(counting))
    both = [message(items(0, 1)[0]), message(swapped(items(0, 1)[0]))]
    requests = [Request(prompt_id(text), text, ("A", "B")) for text in both]
    answers = ask_all(judge, requests, judge.scorings)
    assert len(asked) == 2
    assert answers[0].option_logprobs == pytest.approx(answers[1].option_logprobs[::-1])


def message(
    item: dict[str, str], wording: str = "Which passage answers the query? Answer A or B."
) -> str:
    return f"{wording}\n\nQuery: {item['query']}\nA: {item['passage_a']}\nB: {item['passage_b']}"


def swapped(item: dict[str, str]) -> dict[str, str]:
    return {**item, "passage_a": item["passage_b"], "passage_b": item["passage_a"]}


def answer(path: Path, text: str, allowed: tuple[str, ...] = ("A", "B")) -> Any:
    judge = RecipeJudge(read_improved(path), BIASED)
    return ask_all(judge, [Request(prompt_id(text), text, allowed)], judge.scorings)[0]


def test_another_wording_is_taken_apart_by_its_layout(stable: Path) -> None:
    own = answer(stable, message(items(1, 2)[0]))
    other = answer(stable, message(items(1, 2)[0], "Pick {one}, A or B."))
    assert other.option_logprobs == pytest.approx(own.option_logprobs)


def test_a_message_that_cannot_be_taken_apart_is_an_error(stable: Path) -> None:
    item = {**items(0, 1)[0], "passage_a": "x\nB: y", "query": "the year 1500 happened in 1500"}
    assert "looks like the layout" in answer(stable, message(item)).error
    assert "not laid out" in answer(stable, "Which is better?").error
    assert "labels A, B" in answer(stable, message(items(0, 1)[0]), ("YES", "NO")).error


def test_text_verdicts_are_voted(stable: Path) -> None:
    edit(stable, rule={**yaml.safe_load(stable.read_text())["rule"], "read": "vote"})
    said = CallableJudge(lambda messages: ["A"] * len(messages), name="said")
    with judgesense.load_judge(stable, judge=said) as own:
        (found,) = own(items(60, 61))
    # It says A in both orders, so a person has to decide.
    assert (found.verdict, found.ask_person) == ("UNCLEAR", True)


def test_a_scale_gives_expected_scores(tmp_path: Path) -> None:
    def rated(messages: list[str]) -> list[dict[str, float]]:
        share = {"1": 0.1, "2": 0.2, "3": 0.4, "4": 0.2, "5": 0.1}
        return [{label: float(np.log(p)) for label, p in share.items()} for _ in messages]

    judge = options(rated, "rated")
    judgesense.run(judge, tasks=["coherence"], scoring="options", out=tmp_path / "r", note=str)
    judgesense.stabilise(tmp_path / "r", out=tmp_path / "s.yaml", remedy="expected score")
    with judgesense.load_judge(tmp_path / "s.yaml", judge=judge) as own:
        (found,) = own([{"summary": "A short text."}])
    assert (found.verdict, found.score) == ("3", pytest.approx(3.0))


def test_a_judge_without_a_file_needs_a_task(tmp_path: Path) -> None:
    with pytest.raises(JudgeSenseError, match="no task: give --task"):
        judgesense.load_judge(BIASED)
    with judgesense.load_judge(BIASED, task="relevance") as own:
        assert own(items(0, 1))[0].verdict == "A"


BAD = [
    ((MARK,), 3, "version 3"),
    (("rule", "wordings"), ["r9"], "r9"),
    (("rule", "wordings"), [], "at least one"),
    (("rule", "orders"), ["-"], "in the order"),
    (("rule", "orders"), ["AB", "XX"], "orders must be"),
    (("rule", "read"), "expected score", "whole numbers"),
    (("rule", "offsets"), {"r9": {"A": 0.0, "B": 0.0}}, "each wording needs offsets"),
    (("rule", "read"), "loudest", "read of the rule: input should be"),
    (("rule", "offsets"), {"r1": {"A": 0.1, "C": -0.1}}, "for the labels"),
    (("rule", "offsets"), {"r1": {"A": "much", "B": 0}}, "should be a valid number"),
    (("rule", "offsets"), {key: {"A": 0.1, "B": -0.1} for key in ("r1", "r9")}, "'r9'"),
    (("tasks", "relevance", "labels"), ["A", "B", "C"], "two labels"),
    (("tasks", "relevance", "templates"), [], "no template"),
    (("tasks", "relevance", "options", "B"), "passage_3", "no wording shows {passage_3}"),
    (("ask_person", "threshold"), -1.0, "threshold"),
    (("code",), "import os", "code: unknown field"),
    (("judge", "api_key"), "secret", "api_key: unknown field in a judge's file$"),
    (("judge",), {"judge": "x"}, "name"),
]


@pytest.mark.parametrize(("keys", "value", "said"), BAD)
def test_a_file_that_is_not_consistent_is_refused(
    stable: Path, keys: tuple[str, ...], value: Any, said: str
) -> None:
    held = yaml.safe_load(stable.read_text())
    place = held
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    stable.write_text(yaml.safe_dump(held, sort_keys=False))
    with pytest.raises(JudgeSenseError, match=said) as raised:
        read_improved(stable)
    assert str(stable) in str(raised.value)


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ({"name": "x@1"}, "Python function"),
        ({"name": "x@1", "engine": "transformers", "model": "./missing"}, "missing"),
        (
            {
                "name": "x@1",
                "engine": "transformers",
                "model": "smollm2-135m",
                "options": {"api_key": "s"},
            },
            "api_key",
        ),
        ({"name": "x@1", "engine": "teleport", "model": "m"}, "teleport"),
        (
            {
                "name": "x@1",
                "engine": "api",
                "model": "m",
                "options": {"base_url": "http://127.0.0.1:9/v1", "logprobs": False},
            },
            "needs log-probabilities",
        ),
    ],
)
def test_a_judge_that_is_not_there_is_refused(stable: Path, judge: Any, said: str) -> None:
    edit(stable, judge=judge)
    with pytest.raises(JudgeSenseError, match=said):
        resolve(str(stable))


def test_another_judge_and_one_without_probabilities_are_refused(stable: Path) -> None:
    held = read_improved(stable)
    with pytest.raises(JudgeSenseError, match="made with the judge biased@callable"):
        RecipeJudge(held, options(name="other"))
    with pytest.raises(JudgeSenseError, match="needs options scoring"):
        RecipeJudge(held, CallableJudge(biased, name="biased"))
    text = CallableJudge(biased, name="text")
    with pytest.raises(JudgeSenseError, match=r"^judge text@callable .* use --scoring generate$"):
        judgesense.load_judge(text, task="relevance", scoring="options")


def test_another_task_is_refused_before_anything_is_loaded(
    named: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JudgeSpec, "_load", lambda self: pytest.fail("loaded"))
    with pytest.raises(JudgeSenseError, match="judges the task relevance, not coherence"):
        judgesense.run(str(named), tasks=["coherence"], out=tmp_path / "run", note=str)
    (tmp_path / "i.jsonl").write_text('{"query": "q", "passage_a": "a"}\n')
    with pytest.raises(JudgeSenseError, match=r"1: missing column 'passage_b'"):
        judgesense.judge_items(tmp_path / "i.jsonl", str(named), tmp_path / "v.csv")
    with pytest.raises(JudgeSenseError, match="unknown file type"):
        judgesense.judge_items(tmp_path / "i.jsonl", str(named), tmp_path / "v.txt")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"judge": "nobody"}, "no judge 'nobody'"),
        ({"task": "coherence"}, "no task 'coherence'"),
        ({"remedy": "hope"}, "both orders"),
        ({"max_error": 1.5}, "between 0 and 1"),
        ({"out": "s.txt"}, r"s\.txt"),
    ],
)
def test_what_a_run_does_not_have_is_refused(
    run_dir: Path, tmp_path: Path, more: Any, said: str
) -> None:
    with pytest.raises(JudgeSenseError, match=said):
        judgesense.stabilise(run_dir, **{"out": tmp_path / "s.yaml", **more})
    assert not (tmp_path / "s.yaml").exists()


def test_a_judge_that_no_remedy_saves_is_not_improved(tmp_path: Path) -> None:
    def coin(messages: list[str]) -> list[dict[str, float]]:
        return [{"A": -0.7, "B": -0.7} for _ in messages]

    run = judged(tmp_path, options(coin), scoring="options")
    result = CliRunner().invoke(app, ["stabilise", str(run), "--out", str(tmp_path / "s.yaml")])
    assert isinstance(result.exception, JudgeSenseError)
    assert "no remedy passes" in str(result.exception)
