"""`notices`: judges that see damage, miss a kind, ignore it or guess, on each kind of verdict."""

from __future__ import annotations

import json
import random
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judgesense
from judgesense.errors import JudgeSenseError
from judgesense.measure.notices import noticed_share
from judgesense.measure.report_file import contents_of, load_report

_DRAW = random.Random(7)
NAMES = ["Ann", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jon", "Kim", "Leo"]
TOWNS = ["Dover", "Bath", "York", "Leeds", "Hull", "Derby", "Ely", "Wells", "Truro", "Ripon"]
ANIMALS = ["otters", "ravens", "spiders", "herrings", "foxes", "beetles"]
ROWS = [
    {
        "question": f"What is known of {name} of {town}?",
        "answer": f"{name} was seen in the year {1700 + 20 * n + m} by the {ANIMALS[m % 6]}. "
        f"The house at {town} is not open to the public.",
    }
    for n, name in enumerate(NAMES)
    for m, town in enumerate(TOWNS)
]
TRUE = {row["answer"] for row in ROWS}
PASS_FAIL = "Is the answer correct? PASS or FAIL.\n\nQuestion: {question}\nAnswer: {answer}"


def plain(text: str) -> str:
    """An answer without what harmless edits change."""
    text = re.sub(r"^(?:Here it is:|Here you go:|Please find it below\.)\s*", "", text.strip())
    return " ".join(text.replace("**", "").replace("isn't", "is not").split())


def answer_of(prompt: str) -> str:
    return plain(prompt.split("Answer: ")[-1])


def guess(prompt: str, share: float) -> bool:
    """The same draw for a prompt each time that it is asked."""
    return int(sha256(prompt.encode()).hexdigest()[:6], 16) < share * 16**6


def sees(prompts: list[str]) -> list[str]:
    return ["PASS" if answer_of(p) in TRUE else "FAIL" for p in prompts]


def misses_negations(prompts: list[str]) -> list[str]:
    known = {text.replace(" not", "") for text in TRUE}
    return ["PASS" if answer_of(p).replace(" not", "") in known else "FAIL" for p in prompts]


def checked(tmp_path: Path, judge: Any, rubric: str = PASS_FAIL, **more: Any) -> Any:
    wordings = "\n---\n".join(f"{n}. {rubric}" for n in range(4))
    (tmp_path / "w.txt").write_text(wordings, "utf-8")
    given = {"answers": ["PASS", "FAIL"], "repeats": 1, "damage": 60, **more}
    return judgesense.check(
        rubric, ROWS, judge, wordings=tmp_path / "w.txt", runs=tmp_path, note=str, **given
    )


def test_few_kinds_that_fit_the_task_are_named_and_prove_nothing(tmp_path: Path) -> None:
    found = checked(tmp_path, sees, PASS_FAIL.replace("correct", "relevant"))
    check = found.card["checks"]["notices"]
    assert (check["state"], check["estimate"]) == ("unmeasured", None)
    assert 0 < len(check["details"]["kinds"]) < 3
    assert all(kind in found.card["text"] for kind in check["details"]["kinds"])
    assert found.card["checks"]["steady"]["state"] == "pass"
    assert (found.gate.decision, found.gate.cause) == ("INCONCLUSIVE", "notices")


def test_a_judge_that_sees_damage_passes_and_its_report_is_read_again(tmp_path: Path) -> None:
    found = checked(tmp_path, sees)
    check = found.card["checks"]["notices"]
    assert (check["state"], check["estimate"]) == ("pass", 1)
    assert check["ci_low"] > 0.6
    assert (check["details"]["n_damaged"], check["details"]["n_harmless"]) == (60, 30)
    assert (check["details"]["harmless"], check["details"]["blind"]) == (0, [])
    assert found.card["trust"] == "care"  # Nobody has labelled anything.
    rows = found.report.damage
    assert {row["kind"] for row in rows if row["harmless"]} <= {
        *("whitespace", "emphasis", "contraction", "opener")
    }
    assert sum(row["n_copies"] for row in rows) == 90
    contents = load_report(found.out)
    assert contents.assessments[0].damage
    assert contents_of(json.loads((found.out / "report.json").read_text("utf-8"))) == contents
    for name in ("report.html", "report.md"):
        assert "a negation dropped" in (found.out / name).read_text("utf-8")
    assert "wrong on purpose" in str(found)


def test_a_kind_that_is_missed_is_named_with_two_items(tmp_path: Path) -> None:
    found = checked(tmp_path, misses_negations, damage=80)
    rows = {row["kind"]: row for row in found.report.damage}
    assert rows["number"]["noticed"] == 1
    for kind in ("negation-dropped", "negation-added"):
        assert (rows[kind]["noticed"], rows[kind]["blind"]) == (0, True)
        items = rows[kind]["missed_items"]
        assert len({item["item_id"] for item in items}) == 2
        assert all(item["before"] == item["after"] == "PASS" for item in items)
        assert all(" not " in item["change"] for item in items)
    check = found.card["checks"]["notices"]
    assert set(check["details"]["blind"]) >= {"negation-dropped", "negation-added"}
    assert "not tried" in check["text"]


@pytest.mark.parametrize("noise", [0.0, 0.15, 0.4])
def test_a_judge_that_ignores_damage_does_not_pass_by_noise(tmp_path: Path, noise: float) -> None:
    found = checked(
        tmp_path,
        lambda prompts: ["FAIL" if guess(p, noise) else "PASS" for p in prompts],
        damage=90,
    )
    check = found.card["checks"]["notices"]
    assert check["state"] == "fail"
    assert check["ci_low"] < 0.1
    assert check["estimate"] < 0.3
    assert found.card["trust"] == "avoid"
    assert "notices" in found.card["because"] or "steady" in found.card["because"]


def test_harmless_edits_do_not_pass_as_noticing(tmp_path: Path) -> None:
    def dislikes_edits(prompts: list[str]) -> list[str]:
        return ["PASS" if p.split("Answer: ")[-1] in TRUE else "FAIL" for p in prompts]

    found = checked(tmp_path, dislikes_edits)
    check = found.card["checks"]["notices"]
    assert (check["state"], check["estimate"]) == ("fail", 0)
    assert (check["details"]["caught"], check["details"]["harmless"]) == (1, 1)
    assert found.card["trust"] == "avoid"


def test_too_many_changes_by_harmless_edits_leave_it_open(tmp_path: Path) -> None:
    def dislikes_bold(prompts: list[str]) -> list[str]:
        return ["FAIL" if "**" in p else sees([p])[0] for p in prompts]

    check = checked(tmp_path, dislikes_bold).card["checks"]["notices"]
    assert check["state"] == "open"
    assert check["ci_low"] > 0.6
    assert check["details"]["harmless_ci_low"] < 0.2 < check["details"]["harmless_ci_high"]
    assert "Harmless edits may change" in check["text"]


def test_a_score_has_to_be_lower(tmp_path: Path) -> None:
    rubric = "Rate the quality of the answer from 1 to 5.\n\nQ: {question}\nAnswer: {answer}"

    def rates(prompts: list[str]) -> list[str]:
        return [str(4 - (answer_of(p) not in TRUE)) for p in prompts]

    scale = {"rubric": rubric, "answers": ["1", "2", "3", "4", "5"]}
    assert checked(tmp_path, rates, **scale).card["checks"]["notices"]["state"] == "pass"
    lowest = checked(tmp_path, lambda prompts: ["1" for _ in prompts], **scale)
    check = lowest.card["checks"]["notices"]
    assert check["state"] == "unmeasured"
    assert "passed no output" in check["text"]


def test_of_two_the_output_has_to_win_in_both_orders(tmp_path: Path) -> None:
    rows = [{**row, "other": "It is not known at all."} for row in ROWS]
    rubric = "Which answer is better?\n\nQuestion: {question}\nA: {answer}\nB: {other}"
    given = {"options": {"A": "answer", "B": "other"}, "answers": ["A", "B"], "repeats": 1}

    def options(prompt: str) -> list[str]:
        return [plain(text) for text in prompt.split("\nA: ")[-1].split("\nB: ")]

    def state(judge: Any, name: str) -> tuple[str, float]:
        found = judgesense.check(
            rubric,
            rows,
            judge,
            paraphrases=0,
            damage=40,
            runs=tmp_path / name,
            note=str,
            **given,
        )
        check = found.card["checks"]["notices"]
        assert "harmless" not in check["details"]
        return check["state"], check["estimate"]

    def picks(prompts: list[str]) -> list[str]:
        return ["AB"[options(p)[0] not in TRUE] for p in prompts]

    def tosses(prompts: list[str]) -> list[str]:
        return ["AB"[guess(p, 0.5)] for p in prompts]

    sees_state, share = state(picks, "sees")
    # Of two equal texts, it takes the first one, so harmless edits never win in both orders.
    assert (sees_state, share) == ("pass", 1)
    assert state(lambda prompts: ["A"] * len(prompts), "first") == ("fail", 0)
    assert state(tosses, "tosses")[1] < 0.2


def test_by_default_damage_adds_at_most_a_third(tmp_path: Path) -> None:
    asked: list[str] = []
    notes: list[str] = []

    def judge(prompts: list[str]) -> list[str]:
        asked.extend(prompts)
        return sees(prompts)

    def run(rows: Any, rubric: str = PASS_FAIL, answers: Any = ("PASS", "FAIL")) -> Any:
        asked.clear()
        notes.clear()
        given = {"paraphrases": 0, "repeats": 1, "attacks": "none", "runs": tmp_path}
        return judgesense.check(rubric, rows, judge, answers=answers, note=notes.append, **given)

    found = run(ROWS)
    assert 150 <= len(asked) <= 160
    assert found.card["checks"]["notices"]["details"]["n_damaged"] == 26
    assert any("--damage none" in note and "PASS counts as good" in note for note in notes)
    few = run(ROWS[:30]).card["checks"]["notices"]
    assert len(asked) == 30
    assert (few["state"], "too few" in few["text"]) == ("unmeasured", True)
    polite = run(ROWS, PASS_FAIL.replace("correct", "polite")).card["checks"]["notices"]
    assert len(asked) == 120
    assert "names no criterion" in polite["text"]
    mentions = PASS_FAIL.replace("Is the answer correct", "Does it mention a house")
    assert "names no criterion" in run(ROWS, mentions).card["checks"]["notices"]["text"]
    code = [{"question": f"Sum {n}?", "answer": f"```\nx = {n}\n```"} for n in range(120)]
    assert "no rule fits" in run(code).card["checks"]["notices"]["text"]
    hidden = [{"question": row["question"], "reference": row["answer"]} for row in ROWS]
    rubric = "Correct? PASS or FAIL.\n{question}\nAnswer: {reference}"
    assert "name it response" in run(hidden, rubric).card["checks"]["notices"]["text"]


def test_a_wrong_number_of_copies_is_one_clear_line(tmp_path: Path) -> None:
    for wrong in ("many", "-3", 1.5):
        with pytest.raises(JudgeSenseError, match=r"damage is .*; give the number of outputs"):
            checked(tmp_path, sees, damage=wrong)
    with pytest.raises(JudgeSenseError, match="names no criterion"):
        checked(tmp_path, sees, rubric=PASS_FAIL.replace("correct", "polite"))
    with pytest.raises(JudgeSenseError, match="damage= is for"):
        judgesense.check([{"verdict": "A", "label": "A"}], damage=9)


def test_the_share_is_corrected_for_harmless_edits_and_covers() -> None:
    rng, covered = np.random.default_rng(0), 0
    items = np.repeat(np.arange(60), 2)
    for _ in range(300):
        noise, noise_too = rng.random(120) < 0.2, rng.random(60) < 0.2
        caught = (rng.random(60) < 0.5)[items] | noise
        share, ends = noticed_share(caught, items, noise_too, np.arange(60))
        assert ends.low is not None
        assert ends.high is not None
        assert ends.low <= share <= ends.high
        covered += ends.low <= 0.5 <= ends.high
    assert covered / 300 > 0.91
    assert (
        noticed_share(np.ones(3, bool), np.zeros(3, int), np.zeros(2, bool), np.arange(2))[1].low
        is None
    )
