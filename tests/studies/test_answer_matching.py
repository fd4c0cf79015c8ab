"""`judgesense study answer-matching`: templates, matchers and rankings, with and without models."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judgesense.errors import JudgeSenseError
from judgesense.reporting.study_result import Result
from judgesense.studies.answer_matching import answer_matching
from judgesense.studies.answer_matching.answers import (
    CHOICE,
    BenchmarkAnswers,
    paper_templates,
)
from judgesense.studies.answer_matching.spec import Matched, ranking, stated
from judgesense.studies.common.question_sets import BenchmarkItem, draw
from local_judges.callable_judge import CallableJudge

WORTH = ("right_accepted", "wrong_rejected", "balanced_accuracy")


def quiet(_: str) -> None:
    """Hear nothing."""


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"benchmarks": ("arc",)}, "unknown benchmark 'arc'; choose from arc-challenge"),
        ({"n_templates": 13}, "n_templates must be from 2 to 12"),
        ({"responders": []}, "no responder given"),
        ({"responders": ["no-such-model"]}, "unknown judge 'no-such-model'"),
        ({"responders": ["smollm2-135m", "smollm2-135m"]}, "given twice"),
        ({"grader": "no-such-judge"}, "unknown judge 'no-such-judge'"),
        ({}, "simpleqa has no heuristic matcher"),
        ({"mirror": "no/such/folder"}, "no mirror folder"),
    ],
)
def test_bad_input_is_refused_before_a_model_is_loaded(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    given: dict[str, Any] = {
        "responders": ["smollm2-135m"],
        "grader": "smollm2-135m" if changes else None,
        **changes,
    }
    with pytest.raises(JudgeSenseError, match=said):
        answer_matching(given.pop("responders"), tmp_path, **given)
    assert not (tmp_path / "answers").exists()


def test_the_papers_rankings_side_by_side_are_of_the_same_models(tmp_path: Path) -> None:
    items = tuple(BenchmarkItem(f"i{n}", "?", ("a",), tuple("abcd"), 0) for n in range(2))
    answers = BenchmarkAnswers("arc-challenge", ("m",), paper_templates(CHOICE)[:2], items, [])
    answers.scores.update({name: np.ones((1, 2, 2)) for name in ("likelihood", "judge", "choice")})
    rows = {row["matcher"]: row for row in ranking(Matched([answers], 0)).rows}
    paper = {name: row["paper_mean_spearman"] for name, row in rows.items()}
    assert paper == {"likelihood": 0.3036, "judge": 0.9187, "choice": None}
    assert all("4 open models" in rows[name]["place"] for name in ("likelihood", "judge"))
    assert (rows["judge"]["paper_all_models"], rows["likelihood"]["paper_all_models"]) == (
        0.9546,
        None,
    )


def test_what_the_papers_text_states_is_beside_figures_worked_out_by_hand() -> None:
    items = tuple(BenchmarkItem(f"i{n}", "?", ("a",), tuple("abcd"), 0) for n in range(4))
    names = ("one", "two", "three")
    answers = BenchmarkAnswers("arc-challenge", names, paper_templates(CHOICE)[:2], items, [])
    right = [[2, 4], [1, 1], [0, 3]]  # of four items, by model and template
    answers.scores["likelihood"] = np.array(
        [[[1.0] * n + [0.0] * (4 - n) for n in of_model] for of_model in right]
    )
    rows = {(row["matcher"], row["measure"]): row for row in stated(Matched([answers], 0)).rows}
    ours = {
        measure: (row["lowest"], row["highest"])
        for (matcher, measure), row in rows.items()
        if matcher == "heuristic"
    }
    assert ours == {
        "rho": (0.5, 0.5),
        "std": (0.0, 0.375),
        "lowest": (0.0, 0.5),
        "highest": (0.25, 1.0),
    }
    assert rows["heuristic", "std"]["paper"] == 0.28
    assert rows["judge", "range"]["paper"] == 0.17
    assert rows["judge", "range"]["lowest"] is None


# Responders and judges that are functions: what a matcher does with them is known beforehand.


def _answering(name: str, phrase: Callable[[int, str, str], str], mirror: Path) -> Any:
    """A function that knows ARC's right options and phrases its answers in a way of its own."""
    items = draw("arc-challenge", 6, 0, mirror).items
    right = {item.question: item.correct or 0 for item in items}
    texts = {item.question: item.options for item in items}

    def answer(messages: list[str]) -> list[str]:
        found = []
        for message in messages:
            question = next(known for known in right if known in message)
            at = right[question]
            numbered = f"1: {texts[question][0]}" in message or "Option 1 -" in message
            numbered = numbered or f"1. {texts[question][0]}" in message
            label = "1234"[at] if numbered else "ABCD"[at]
            found.append(phrase(at, label, texts[question][at]))
        return found

    answer.__name__ = name
    return answer


def _oracle(messages: list[str]) -> list[str]:
    """A judge that compares the reference's label and text with the prediction."""
    found = []
    for message in messages:
        reference = re.search(r"Reference Answer: (\w): (.*)", message)
        said = message.rpartition("Model Prediction: ")[2]
        assert reference is not None
        label, text = reference.groups()
        match = f"is {label}." in said or text in said
        found.append(json.dumps({"match": match, "reason": "label or text"}))
    return found


def _says_yes(messages: list[str]) -> list[str]:
    return ["{'match': true, 'reason': 'why not'}" for _ in messages]


def _grades_a(messages: list[str]) -> list[str]:
    return ["A" for _ in messages]


def _mumbles(messages: list[str]) -> list[str]:
    return ["I am not sure about this one." for _ in messages]


@pytest.fixture(scope="module")
def models(request: pytest.FixtureRequest) -> list[Any]:
    mirror = request.getfixturevalue("mirror")
    return [
        _answering("states", lambda at, label, text: f"The answer is {label}.", mirror),
        _answering("describes", lambda at, label, text: f"Surely {text}", mirror),
        # Says the right thing in words that hold neither the label nor the option's text.
        _answering("hints", lambda at, label, text: f"The one ending in {text[-3:]!r}", mirror),
    ]


@pytest.mark.slow
def test_a_judge_finds_what_the_heuristic_misses(
    tmp_path: Path, mirror: Path, models: list[Any], golden: Callable[[Result, str], None]
) -> None:
    plan: dict[str, Any] = {"benchmarks": ("arc-challenge",), "limit": 6}
    result = answer_matching(models, tmp_path, grader=_oracle, **plan, mirror=mirror, note=quiet)
    golden(result, "answer-matching")
    accuracy = {
        (row["model"], row["matcher"]): row["accuracy"] for row in result.table("accuracy").rows
    }
    assert accuracy["states", "choice"] == accuracy["describes", "choice"] == 1.0
    assert accuracy["hints", "choice"] == 0.0
    assert accuracy["states", "judge"] == accuracy["describes", "judge"] == 1.0
    worth = {
        row["matcher"].split("@")[0]: tuple(row[name] for name in WORTH)
        for row in result.table("matchers").rows
    }
    assert worth["judge _oracle"] == (1.0, 1.0, 1.0)
    assert worth["choice"] == (1.0, 1.0, 1.0)
    result.write(tmp_path)
    assert (tmp_path / "figures" / "accuracy.png").stat().st_size > 5000


@pytest.mark.slow
def test_an_item_without_an_answer_is_left_out_for_every_model(
    tmp_path: Path, mirror: Path, models: list[Any]
) -> None:
    lost = draw("arc-challenge", 6, 0, mirror).items[2].question

    class Losing(CallableJudge):
        def judge(self, batches, scorings):
            for number, batch in batches:
                ((_, answers),) = super().judge([(number, batch)], scorings)
                for request, answer in zip(batch, answers, strict=True):
                    if lost in request.text:
                        answer.text, answer.error = None, "content filter"
                yield number, answers

    losing = Losing(models[0], name="losing")
    notes: list[str] = []
    plan: dict[str, Any] = {"benchmarks": ("arc-challenge",), "limit": 6}
    result = answer_matching(
        [losing, *models[1:]], tmp_path, **plan, mirror=mirror, note=notes.append
    )
    accuracy = {
        (row["model"], row["matcher"]): row["accuracy"] for row in result.table("accuracy").rows
    }
    assert accuracy["losing", "choice"] == accuracy["describes", "choice"] == 1.0
    assert any("(content filter); 1 of 6 items" in text for text in notes)
    assert any("1 items are left out" in text for text in result.limits)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("judge", "worth", "unknown", "said"),
    [
        (_says_yes, (1.0, 0.0, 0.5), 0.0, "ignore its accuracies"),
        (_mumbles, (None, None, None), 1.0, "ignore its accuracies"),
    ],
)
def test_a_judge_that_cannot_tell_right_from_wrong_is_found_out(
    tmp_path: Path,
    mirror: Path,
    models: list[Any],
    judge: Any,
    worth: tuple[float | None, ...],
    unknown: float,
    said: str,
) -> None:
    plan: dict[str, Any] = {"benchmarks": ("arc-challenge",), "limit": 3, "n_templates": 4}
    result = answer_matching(models[:1], tmp_path, grader=judge, **plan, mirror=mirror, note=quiet)
    row = next(r for r in result.table("matchers").rows if r["matcher"].startswith("judge"))
    assert tuple(row[name] for name in WORTH) == worth
    assert row["no_verdict"] == unknown
    assert any(said in finding for finding in result.findings)
    # One model: no ranking, and the table says why.
    assert all(
        row["mean_spearman"] is None and "3 models" in row["undefined"]
        for row in result.table("ranking").rows
    )


@pytest.mark.slow
def test_one_real_model_answers_every_set_of_the_mirror(tmp_path: Path, mirror: Path) -> None:
    plan: dict[str, Any] = {
        "benchmarks": ("arc-challenge", "openbookqa", "math", "simpleqa"),
        "limit": 1,
        "n_templates": 3,
        "max_tokens": 8,
    }
    result = answer_matching(
        ["smollm2-135m"], tmp_path, grader=_grades_a, **plan, mirror=mirror, note=quiet
    )
    matchers = {(row["benchmark"], row["matcher"]) for row in result.table("accuracy").rows}
    assert matchers == {
        ("arc-challenge", "choice"),
        ("arc-challenge", "likelihood"),
        ("openbookqa", "choice"),
        ("openbookqa", "likelihood"),
        ("math", "math"),
        *((name, "judge") for name in plan["benchmarks"]),
    }
    graded = [row for row in result.table("accuracy").rows if row["benchmark"] == "simpleqa"]
    assert [(row["accuracy"], row["no_verdict"]) for row in graded] == [(1.0, 0.0)]
    result.write(tmp_path)
    assert (tmp_path / "figures" / "accuracy.png").stat().st_size > 5000


@pytest.mark.slow
def test_real_models_and_a_judge_from_the_command_line_stopped_and_continued(
    tmp_path: Path, mirror: Path, command_line: Any
) -> None:
    judges = tmp_path / "judges.yaml"
    judges.write_text(
        "judges:\n  smollm2-135m-bf16:\n    summary: SmolLM2 in bfloat16\n"
        "    engine: transformers\n    model: smollm2-135m\n    options: {dtype: bfloat16}\n"
    )
    out = tmp_path / "study"
    command = [
        "study",
        "answer-matching",
        "--benchmarks",
        "arc-challenge",
        "--limit",
        "2",
        "--set",
        "max_tokens=12",
        "--grader-tokens",
        "16",
        "--n-templates",
        "4",
        "-r",
        "smollm2-135m",
        "-r",
        "gemma3-270m",
        "-r",
        "smollm2-135m-bf16",
        "--grader",
        "smollm2-135m",
        "--mirror",
        str(mirror),
        "--out",
        str(out),
    ]

    def run() -> dict[str, Any]:
        done = command_line(*command, JUDGESENSE_JUDGES=str(judges))
        assert done.returncode == 0, done.stderr[-2000:]
        assert "## How accurate the matchers are" in done.stdout
        found: dict[str, Any] = json.loads((out / "study.json").read_text())
        return found

    tables = run()["tables"]
    assert {row["matcher"] for row in tables["accuracy"]["rows"]} == {
        "likelihood",
        "choice",
        "judge",
        "judge, options",
    }
    assert {row["model"] for row in tables["accuracy"]["rows"]} == {
        "smollm2-135m",
        "gemma3-270m",
        "smollm2-135m-bf16",
    }
    assert all(row["n_models"] == 3 for row in tables["ranking"]["rows"])
    # A lost part is answered again; nothing else is, and the figures are the same.
    parts = sorted(out.glob("*/*/responses/*.parquet"))
    lost = next(part for part in parts if "arc-challenge-smollm2-135m/" in str(part))
    lost.unlink()
    kept = {part: part.stat().st_mtime_ns for part in parts if part != lost}
    assert run()["tables"] == tables
    assert {part: part.stat().st_mtime_ns for part in kept} == kept
