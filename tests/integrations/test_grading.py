"""What the adapters share: a judge that passes or fails one test case."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from judgesense.errors import JudgeSenseError
from judgesense.integrations.grading import Grader
from local_judges.callable_judge import CallableJudge

CASE = {"question": "What is the capital of France?", "output": "Paris."}


def grader(reply: Any, scoring: str = "generate", **given: Any) -> Grader:
    judge = CallableJudge(lambda messages: [reply] * len(messages), name="fixed", scoring=scoring)
    options = {"passing": ["YES"], "fields": {"response": "output"}, "task": "factuality"}
    return Grader(judge, scoring=scoring, **{**options, **given})


def test_verdicts_pass_fail_or_say_why_there_is_none() -> None:
    yes, no, none = (grader(said)(CASE) for said in ("YES", "NO", "Hard to say."))
    assert [(each.passed, each.score) for each in (yes, no, none)] == [
        (True, 1.0), (False, 0.0), (None, None),
    ]  # fmt: skip
    assert none.verdict.verdict == "UNCLEAR"
    assert none.reason.startswith("UNCLEAR")
    sure = grader({"YES": -0.1054, "NO": -2.3026}, "options")(CASE)
    assert sure.verdict.probability == pytest.approx(0.9, abs=1e-3)
    assert "probability 0.90" in sure.reason


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"passing": "YES"}, "name some"),
        ({"passing": [True]}, "passing is True"),
        ({"passing": ["yes"]}, "passing is yes"),
        ({"passing": ["YES", "NO"]}, "not all"),
        ({"passing": []}, "name some"),
        ({"fields": {"answer": "output"}}, "do not show 'answer'"),
        ({"task": None}, "task"),
    ],
)
def test_what_the_judge_does_not_have_is_named(given: dict[str, Any], named: str) -> None:
    with pytest.raises(JudgeSenseError, match=named):
        grader("YES", **given)


def test_a_field_that_the_case_lacks_is_named() -> None:
    with pytest.raises(JudgeSenseError, match=r"no 'question' \(it has output and query\)"):
        grader("YES")({"query": "?", "output": "Paris.", "question": None})


def test_threads_wait_for_one_another() -> None:
    inside, most = 0, 0

    def judge(messages: list[str]) -> list[str]:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        threading.Event().wait(0.005)
        inside -= 1
        return ["YES"] * len(messages)

    ask = Grader(
        CallableJudge(judge), passing=["YES"], task="factuality", scoring="generate",
        fields={"response": "output"},
    )  # fmt: skip
    threads = [threading.Thread(target=ask, args=(CASE,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert most == 1
