"""Who said it: columns, keys, rows and lists that name judges and people in other words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from door.cases import checked

import judgesense
from judgesense.errors import JudgeSenseError

Row = dict[str, Any]
SAID = [True, False, True, True, False, True] * 5
TRUE = [True, False, False, True, False, False] * 5
"""The judge is right on two thirds."""


def table(judge: str, person: str, ours: str, theirs: str) -> list[Row]:
    """Rows with a column of each, whose values are the words for yes and no."""
    yes_no, words = ours.split("/"), theirs.split("/")
    return [
        {"id": n, "text": f"Answer {n} to it", judge: yes_no[not said], person: words[not true]}
        for n, (said, true) in enumerate(zip(SAID, TRUE, strict=True))
    ]


@pytest.mark.parametrize(
    ("judge", "person", "ours", "theirs"),
    [
        ("GPT-4 verdict", "My label", "PASS/FAIL", "👍/👎"),
        ("KI-Bewertung", "Gutachter", "Y/N", "wahr/falsch"),
        ("모델 판정", "전문가 평가", "맞음/틀림", "○/×"),
        ("llama-3.1-70b", "QA", "✅/❌", "approved/declined"),
        ("judgeVerdict", "humanVerdict", "good/bad", "good/bad"),
        ("llm_pass", "Is the answer right?", "true/false", "yes/no"),
        ("avis du juge IA", "avis évaluateur", "vrai/faux", "oui/non"),
    ],
)
def test_columns_of_any_language_name_who(
    judge: str, person: str, ours: str, theirs: str, tmp_path: Path
) -> None:
    found, result = checked(table(judge, person, ours, theirs), tmp_path)
    ((_, human),) = found
    assert human == person
    assert found.popitem()[1]["accuracy"] == pytest.approx(2 / 3)
    assert len(result.trust) == 1


def test_what_the_answer_has_is_not_what_people_say(tmp_path: Path) -> None:
    found, _ = checked(table("llm_verdict", "contains_pii?", "yes/no", "yes/no"), tmp_path)
    assert not found
    found, _ = checked(table("llm_verdict", "is_urgent?", "yes/no", "yes/no"), tmp_path / "urgent")
    assert not found


def test_the_opposite_of_people_is_a_question(tmp_path: Path) -> None:
    rows = table("llm_verdict", "human", "no/yes", "correct/incorrect")
    for row, true in zip(rows, TRUE, strict=True):
        row["llm_verdict"] = row["llm_hallucination"] = "no" if true else "yes"
        row["grounded"] = "faithful" if true else "unfaithful"
    with pytest.raises(JudgeSenseError, match="correct=no"):
        checked(rows, tmp_path, verdict="llm_verdict", human="human")
    found, _ = checked(rows, tmp_path, map={"correct": "no", "incorrect": "yes"}, human="human",
                       verdict="llm_verdict")  # fmt: skip
    assert found.popitem()[1]["accuracy"] == 1.0
    # Where the name says what yes is, nothing is to ask.
    found, _ = checked(rows, tmp_path / "named", verdict="llm_hallucination", human="grounded")
    assert found.popitem()[1]["accuracy"] == 1.0


def test_several_people_label_each_criterion(tmp_path: Path) -> None:
    rows = [
        {
            "conv": f"c{n}",
            **{f"llm_{task}": "yn"[not said] for task in ("tone", "care")},
            **{
                f"{who}_{task}": "yn"[not true] for who in ("mk", "js") for task in ("tone", "care")
            },
        }
        for n, (said, true) in enumerate(zip(SAID, TRUE, strict=True))
    ]
    found, _ = checked(rows, tmp_path)
    assert {human for _, human in found} == {"majority", "mk", "js"}
    assert found["tone", "mk"]["accuracy"] == pytest.approx(2 / 3)


def test_judges_and_people_are_rows_of_each_criterion(tmp_path: Path) -> None:
    rows = [
        {"example_id": n, "dimension": task, "source": who, "rating": "yn"[not label]}
        for n, pair in enumerate(zip(SAID, TRUE, strict=True))
        for task in ("tone", "care")
        for who, label in zip(("autorater", "expert"), pair, strict=True)
    ]
    found, result = checked(rows, tmp_path)
    assert found["care", "expert"]["n"] == 30
    assert found["care", "expert"]["accuracy"] == pytest.approx(2 / 3)
    assert {entry["judge"] for entry in result.trust} == {"autorater"}


def test_lists_of_people_are_several_people(tmp_path: Path) -> None:
    rows = [
        {
            "case": {"id": n},
            "grading": {
                "auto": {"call": "accept" if said else "reject"},
                "panel": [{"who": who, "call": "accept" if true else "reject"} for who in "ab"],
            },
        }
        for n, (said, true) in enumerate(zip(SAID, TRUE, strict=True))
    ]
    found, _ = checked(rows, tmp_path)
    assert found.popitem()[1]["accuracy"] == pytest.approx(2 / 3)
    assert len(found) == 2


def test_averages_of_feedback_are_no_verdicts(tmp_path: Path) -> None:
    def feedback(kind: str, score: bool) -> Row:
        return {"key": "correctness", "score": int(score), "feedback_source": {"type": kind}}

    rows = [
        {
            "id": f"r{n}",
            "run_type": "chain",
            "feedback_stats": {"correctness": {"n": 2, "avg": (said + true) / 2}},
            "feedback": [feedback("model", said), feedback("app", true)],
        }
        for n, (said, true) in enumerate(zip(SAID, TRUE, strict=True))
    ]
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    found, _ = checked(path, tmp_path)
    assert found.popitem()[1]["accuracy"] == pytest.approx(2 / 3)


def test_a_manual_rating_is_a_persons_and_not_the_rubrics(tmp_path: Path) -> None:
    results = [
        {
            "testIdx": n,
            "success": true,
            "response": {"output": f"o{n}"},
            "gradingResult": {
                "pass": true,
                "componentResults": [
                    {"pass": said, "score": int(said), "assertion": {"type": "llm-rubric"}},
                    {"pass": true, "score": int(true), "assertion": {"type": "human"}},
                ],
            },
        }
        for n, (said, true) in enumerate(zip(SAID, TRUE, strict=True))
    ]
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"results": {"results": results}}), "utf-8")
    found, _ = checked(path, tmp_path)
    assert found.popitem()[1]["accuracy"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("names", ["pick_normal pick_flipped", "llm_pick llm_pick_swapped"])
def test_two_columns_that_name_orders_are_one_judge(names: str, tmp_path: Path) -> None:
    first, second = names.split()
    rows = [
        {"id": n, "human_pick": "AB"[not true], first: "AB"[not said], second: "BA"[not said]}
        for n, (said, true) in enumerate(zip(SAID, TRUE, strict=True))
    ]
    found, result = checked(rows, tmp_path)
    (entry,) = found.values()
    assert (entry["n"], entry["accuracy"]) == (60, pytest.approx(2 / 3))
    assert len(result.trust) == 1


def test_a_title_blank_rows_and_a_total_are_no_rows(tmp_path: Path) -> None:
    rows = table("AI check", "QA Maren", "pass/fail", "Pass/fail")
    lines = [";".join(map(str, row.values())) for row in rows]
    lines[3:3] = [";;;"]
    text = "\n".join(["Sample of week 31;;;", ";;;", ";".join(rows[0]), *lines, "Total;30;;"])
    path = tmp_path / "sample.csv"
    path.write_text(text, "utf-8")
    found, _ = checked(path, tmp_path)
    assert found.popitem()[1]["n"] == 30


def test_rows_that_repeat_a_text_are_said(tmp_path: Path) -> None:
    rows = [
        {"text": f"the text of claim {n % 20}", "llm": "yn"[n % 3 == 0], "human": "yn"[n % 4 == 0]}
        for n in range(40)
    ]
    notes: list[str] = []
    judgesense.check(rows, out=tmp_path / "out", runs=tmp_path, note=notes.append)
    assert any("20 items repeat the text of another" in note for note in notes)


def test_letters_that_look_accented_stay_apart() -> None:
    from judgesense.importers.values import fold

    assert len({fold(word) for word in ("bò", "bơ", "bỏ", "bọ")}) == 4
    assert fold("VERIFIE") == fold("vérifié")
