"""Answers from judges: each prompt is asked once, failures count, and a folder is read again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answers_trial import CHOICE, no_answers

from judgesense.ask.answers import AnswersSoFar, JudgeScoring
from judgesense.ask.prompt_store import PromptStore
from judgesense.log.run_folder import RunFolder
from judgesense.tasks import Item, Template
from local_judges.callable_judge import CallableJudge
from local_judges.protocol import Answer

FIELDS = [{"query": f"q{n}", "passage_a": "one", "passage_b": "two"} for n in range(3)]


def shown(template: Template, order: str, *, n: int) -> Item:
    return Item(f"i{n}", CHOICE.name, FIELDS[n], "A")


def stored(folder: Path, judge: Any) -> tuple[AnswersSoFar, PromptStore]:
    """No answers yet to three items, and the store that asks for them."""
    answers = no_answers(3, ["given"], [JudgeScoring(0, "j", "options")], task=CHOICE)
    items = [lambda t, o, n=n: shown(t, o, n=n) for n in range(3)]
    run = RunFolder(folder, {"data": {"items": "x"}})
    return answers, PromptStore(run, [judge], answers, items, lambda _: None)


def test_a_prompt_is_asked_once_and_read_again_from_the_folder(tmp_path: Path) -> None:
    asked: list[str] = []

    def judge(messages: list[str]) -> list[dict[str, float]]:
        asked.extend(messages)
        return [{"A": -0.1, "B": -2.4} for _ in messages]

    who = CallableJudge(judge, name="j", scoring="options")
    answers, store = stored(tmp_path / "run", who)
    store.ask({(0, 0, 0): np.array([0, 1])})
    store.ask(dict.fromkeys([(0, 0, 0), (0, 0, 1)], np.arange(3)))
    assert len(asked) == len(set(asked)) == 6
    (array,) = answers.arrays
    assert array.asked.all()
    assert array.logprobs[0, 0, 0].tolist() == pytest.approx([0.0, -2.3])
    again, store = stored(tmp_path / "run", who)
    store.ask(dict.fromkeys([(0, 0, 0), (0, 0, 1)], np.arange(3)))
    assert len(asked) == 6
    assert (again.arrays[0].logprobs == array.logprobs).all()
    assert store.spent_usd is None


def test_a_failed_prompt_counts_as_asked_without_a_verdict(tmp_path: Path) -> None:
    class Failing(CallableJudge):
        def judge(self, batches: Any, scorings: frozenset[str]) -> Iterator[Any]:
            for number, requests in batches:
                told = [
                    Answer(error="busy" if "q1" in request.text else None, option_logprobs=(0, -2))
                    for request in requests
                ]
                yield number, told

    answers, store = stored(tmp_path / "run", Failing(lambda m: m, name="j", scoring="options"))
    store.ask({(0, 0, 0): np.arange(3)})
    assert store.failed == 1
    assert answers.arrays[0].asked[:, 0, 0].all()
    assert answers.arrays[0].verdicts[:, 0, 0].tolist() == [0, -1, 0]
