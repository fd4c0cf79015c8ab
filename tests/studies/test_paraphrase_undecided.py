"""Paraphrase robustness where requests fail, judges say nothing readable, and fusers waver."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judgesense.studies.paraphrase_robustness import paraphrase_robustness
from judgesense.studies.study import Result
from judgesense_dataset.embedded import load_attributes
from local_judges.callable_judge import CallableJudge
from local_judges.protocol import Answer, Request

NATURALNESS = load_attributes()["dialogue-naturalness"]
BASE = NATURALNESS.templates.templates[0].text
REASON = "Do not rate it again"


def judge(name: str, say: Callable[[str], Any], **options: Any) -> CallableJudge:
    return CallableJudge(lambda messages: [say(m) for m in messages], name=name, **options)


class Failing(CallableJudge):
    """A judge one of whose requests fails: the base wording on the third text."""

    def _answer(self, request: Request, reply: Any) -> Answer:
        if request.text.startswith(BASE) and "text 2," in request.text:
            return Answer(error="HTTP 500")
        return super()._answer(request, reply)


def rating(message: str) -> str:
    """Moved by wordings and texts."""
    return "It reads well." if REASON in message else str(1 + sum(map(ord, message)) % 3)


def probable(message: str) -> dict[str, float]:
    return {label: math.log(0.5 if label == rating(message) else 0.25) for label in "123"}


def study(
    folder: Path, judges: list[CallableJudge], items: int = 6, **options: Any
) -> tuple[Result, Callable[[str], list[dict[str, Any]]]]:
    """A study of dialogue-naturalness with three paraphrases, and its tables' rows by name."""
    data = folder / "dialogues.jsonl"
    rows = [
        {"context": "Hello.", "response": f"text {at}, a reply", "naturalness": 1 + at % 3}
        for at in range(items)
    ]
    data.write_text("\n".join(map(json.dumps, rows)) + "\n", "utf-8")
    result = paraphrase_robustness(
        judges, folder / "out", attributes=["naturalness"], data={"dialogue": str(data)},
        items=items, paraphrases=3, note=lambda _: None, **options,
    )  # fmt: skip

    def rows_of(name: str) -> list[dict[str, Any]]:
        table = result.table(name)
        return [dict(zip(table.columns, values, strict=True)) for values in table.rows]

    return result, rows_of


@pytest.mark.slow
def test_a_failed_request_under_the_base_wording_leaves_its_item_out_of_the_control(
    tmp_path: Path,
) -> None:
    def many(messages: list[str]) -> list[dict[str, float]]:
        return [probable(m) for m in messages]

    judges = [
        Failing(many, name="broken", scoring="options"),
        judge("whole", probable, scoring="options"),
    ]
    _, rows = study(tmp_path, judges, panel=False)
    assert [(row["judge"], row["items"]) for row in rows("configurations")] == [
        ("broken", 6), ("whole", 6)
    ]  # fmt: skip
    assert rows("control")[-1]["items"] == 5 + 6


@pytest.mark.slow
def test_rewording_and_asking_again_are_compared_on_the_same_items(tmp_path: Path) -> None:
    dice = random.Random(0)

    def say(message: str) -> str:
        readable = any(f"text {at}," in message for at in range(2))
        if message.startswith(BASE) and not readable:
            return "dunno"
        return "1" if readable else str(dice.randint(1, 3))

    _, rows = study(tmp_path, [judge("j", say)], items=12, panel=False, scoring="generate")
    (row,) = [row for row in rows("control") if row["kind"] == "all"]
    # On the two texts that the base wording decides the judge always says 1.
    assert (row["items"], row["gap, reworded"], row["gap, same prompt"]) == (2, 0.0, 0.0)
    assert rows("configurations")[0]["gap"] > 0
    assert rows("configurations")[0]["items"] == 12
