"""Paraphrase robustness where requests fail, judges say nothing readable, and fusers waver."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judgesense.studies.common.result import Result
from judgesense.studies.paraphrase_robustness import paraphrase_robustness
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
        limit=items, paraphrases=3, note=lambda _: None, **options,
    )  # fmt: skip

    def rows_of(name: str) -> list[dict[str, Any]]:
        return [dict(row) for row in result.table(name).rows]

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
    assert [(row["judge"], row["n_items"]) for row in rows("configurations")] == [
        ("broken", 6), ("whole", 6)
    ]  # fmt: skip
    assert rows("control")[-1]["n_items"] == 5 + 6


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
    assert (row["n_items"], row["gap_reworded"], row["gap_same"]) == (2, 0.0, 0.0)
    assert rows("configurations")[0]["gap"] > 0
    assert rows("configurations")[0]["n_items"] == 12


@pytest.mark.slow
def test_a_judge_that_decides_nothing_is_named_as_what_ends_the_panel(tmp_path: Path) -> None:
    mute = judge("mute", lambda message: "dunno")
    judges = [judge("one", rating), judge("two", rating), mute]
    result, _ = study(tmp_path, judges, scoring="generate")
    assert "strategies" not in {table.name for table in result.tables}
    (said,) = [text for text in result.limits if "no panel" in text]
    assert "dialogue-naturalness: no panel, self-consistency or fuser" in said
    assert "undecided of 6: mute 6" in said


@pytest.mark.slow
def test_a_fuser_is_measured_on_the_texts_it_decided_and_so_is_what_it_is_compared_with(
    tmp_path: Path,
) -> None:
    def fuse(message: str) -> str:
        return "hm" if "text 3," in message else "1"

    def say(message: str) -> str:
        return "1" if "text 3," in message else rating(message)

    judges = [judge(name, say) for name in ("one", "two")]
    judges.append(judge("late", lambda m: "dunno" if m.startswith(BASE) else say(m)))
    options = {"scoring": "generate", "seed": 3}
    result, rows = study(tmp_path, judges, fuser=judge("fuser", fuse), **options)
    found = {row["strategy"]: row for row in rows("mitigations")}
    assert (found["single judge"]["n_items"], found["fuser"]["n_items"]) == (6, 5)
    # On text 3 alone all judges are right whatever the paraphrase: its human score is 1.
    single = found["single judge"]["accuracy"] * 6 - 1
    assert found["fuser"]["gain"] == pytest.approx(found["fuser"]["accuracy"] - single / 5)
    assert "5 of 6 texts" in "; ".join(result.limits)
    cost = rows("cost")
    assert {(row["for"], row["judge"], row["n_prompts"]) for row in cost} == {
        *(("scores", f"{name}@callable", 24) for name in ("one", "two", "late")),
        *(("base wording, again", f"{name}@callable", 18) for name in ("one", "two", "late")),
        *(("reasons", f"{name}@callable", 6) for name in ("one", "two")),
        ("fuser", "fuser@callable", 12),
        ("all", "", 3 * 24 + 3 * 18 + 2 * 6 + 12),
    }  # fmt: skip
    # `late` has no rating under the base wording, so that it is not asked for a reason.
    asked = [(tmp_path / "out" / "fuser" / f"reasons-{at}" / "run.json") for at in (1, 2, 3)]
    assert [path.exists() for path in asked] == [True, True, False]
    assert json.loads(asked[0].read_text("utf-8"))["asked"]["settings"]["seed"] == 3
