"""Columns in pairs: criteria of a judge and of people, both orders of a choice, words of tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from door.cases import checked, readable

import judgesense
from judgesense.errors import JudgeSenseError

TRUE = [True, False, False, True, False, False] * 5
SHARES = {"tone": 2 / 3, "accuracy": 5 / 6}
SAID = {
    "tone": [True, False, True, True, False, True] * 5,
    "accuracy": [True, False, False, True, False, True] * 5,
}


def table(names: dict[str, list[bool]]) -> list[dict[str, Any]]:
    """Rows with the words of each column."""
    rows = [dict(zip(names, values, strict=True)) for values in zip(*names.values(), strict=True)]
    return [
        {"id": n, **{k: ["no", "yes"][v] for k, v in row.items()}} for n, row in enumerate(rows)
    ]


def criteria(tone: str, accuracy: str, *people: str) -> list[dict[str, Any]]:
    """Rows with a judge's columns of two criteria, and columns of people's labels."""
    judged = dict(zip((tone, accuracy), SAID.values(), strict=True))
    return table({**judged, **dict.fromkeys(people, TRUE)})


@pytest.mark.parametrize(
    "names",
    [
        ("Ton – IA", "Exactitude – IA", "Ton – Hum", "Exactitude – Hum"),
        ("feedback.tone", "feedback.accuracy", "feedback.sme_tone", "feedback.sme_accuracy"),
        ("llm_relevancy", "llm_faithfulness", "human_relevant", "human_faithful"),
        ("GPT-4o tone", "GPT-4o style", "Rater 1 tone", "Rater 1 style"),
        ("模型流畅性评分", "模型准确性评分", "人工流畅性评分", "人工准确性评分"),
    ],
)
def test_criteria_in_pairs_are_tasks(names: tuple[str, ...], tmp_path: Path) -> None:
    found, _ = checked(criteria(*names), tmp_path)
    assert len({task for task, _ in found}) == 2
    shares = [entry["accuracy"] for entry in found.values()]
    assert sorted(shares) == pytest.approx(sorted(SHARES.values()))


@pytest.mark.parametrize(
    "names",
    [
        ("llm_tone", "llm_accuracy", "tone", "accuracy"),
        ("ai_precision", "ai_warmth", "human_exactness", "human_kindness"),
        ("llm_tone", "llm_accuracy", "human_label"),
    ],
)
def test_criteria_without_a_clear_pair_are_a_question(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    with pytest.raises(JudgeSenseError, match=r"--verdict .* --human"):
        checked(criteria(*names), tmp_path)


def test_named_columns_of_criteria_are_paired(tmp_path: Path) -> None:
    rows = criteria("llm_tone", "llm_accuracy", "tone", "accuracy")
    found, _ = checked(
        rows, tmp_path, verdict=["llm_tone", "llm_accuracy"], human=["tone", "accuracy"]
    )
    assert {task: entry["accuracy"] for (task, _), entry in found.items()} == pytest.approx(SHARES)


def test_labels_of_one_task_stay_on_it(tmp_path: Path) -> None:
    wide = table({"human_tone": TRUE, "human_accurate": [not true for true in TRUE]})
    rows = [
        {**row, "metric": task.title(), "judge_verdict": ["no", "yes"][said]}
        for task, verdicts in SAID.items()
        for row, said in zip(wide, verdicts, strict=True)
    ]
    found, _ = checked(rows, tmp_path)
    assert {key: entry["accuracy"] for key, entry in found.items()} == pytest.approx(
        {("Tone", "human_tone"): 2 / 3, ("Accuracy", "human_accurate"): 1 / 6}
    )


def test_sides_of_an_arena_are_one_vocabulary(tmp_path: Path) -> None:
    ours, theirs = ["A", "Model A", "B", "TIE", "B"], "model_a,model_a,model_b,tie (bothbad),tie"
    rows = [
        {"question_id": n, "model_a": "x", "model_b": "y", "winner": true, "llm_judge": said}
        for n, (said, true) in enumerate(zip(ours * 6, theirs.split(",") * 6, strict=True))
    ]
    found, _ = checked(rows, tmp_path)
    assert found.popitem()[1]["accuracy"] == pytest.approx(0.8)


@pytest.mark.parametrize("text", ["NOT_PARSABLE", "[invalid]", "__invalid__", "invalid"])
def test_what_a_tool_could_not_read_is_no_verdict(text: str, tmp_path: Path) -> None:
    rows = table({"llm_verdict": SAID["tone"], "human": TRUE})
    for row in rows[::6]:
        row["llm_verdict"] = text
    found, result = checked(rows, tmp_path)
    assert found.popitem()[1]["n"] == 25
    assert readable(result)[0] == pytest.approx(25 / 30)


def test_people_may_say_invalid(tmp_path: Path) -> None:
    rows = [
        {
            "id": n,
            "llm_verdict": ["invalid", "ok", "odd"][n % 3],
            "human": ["invalid", "ok"][n % 2],
        }
        for n in range(30)
    ]
    found, _ = checked(rows, tmp_path)
    assert found.popitem()[1]["n"] == 30


@pytest.mark.parametrize(
    "names",
    ["Modellurteil A/B,Modellurteil B/A", "LLM (A first),LLM (B first)", "判定_正順,判定_逆順"],
)
def test_both_orders_have_names_in_any_language(names: str, tmp_path: Path) -> None:
    first, second = names.split(",")
    rows = [
        {"id": n, "human_pick": "AB"[not true], first: "AB"[not said], second: "BA"[not said]}
        for n, (said, true) in enumerate(zip(SAID["tone"], TRUE, strict=True))
    ]
    found, result = checked(rows, tmp_path)
    assert found.popitem()[1]["accuracy"] == pytest.approx(2 / 3)
    assert result.trust[0]["checks"]["fair"]["estimate"] == 1.0


def test_rows_pasted_twice_count_once_without_ids(tmp_path: Path) -> None:
    rows = [
        {"text": f"text {n} of it", **row}
        for n, row in enumerate(table({"llm": TRUE, "human": TRUE}))
    ]
    for row in rows:
        del row["id"]
    found, _ = checked([*rows, *rows[:4]], tmp_path)
    assert found.popitem()[1]["n"] == 30


def test_a_log_of_openai_evals_has_choices(tmp_path: Path) -> None:
    events = [
        {"run_id": "r", "event_id": n, "sample_id": f"qa.dev.{n}", "type": "metrics", "data": data}
        for n in range(30)
        for data in [{"choice": "YN"[n % 3 == 0] if n else "__invalid__", "score": 0.0}]
    ]
    lines = [{"spec": {"eval_name": "qa"}}, *events, {"final_report": {"score": 0.6}}]
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    found, result = checked(path, tmp_path)
    assert not found
    assert readable(result) == (pytest.approx(29 / 30), 30)


def test_reactions_are_people_and_notes_are_not(tmp_path: Path) -> None:
    def feedback(kind: str, **payload: str) -> dict[str, Any]:
        return {"feedback_type": kind, "payload": payload, "wb_user_id": "u1"}

    calls = [
        {
            "id": f"c{n}",
            "op_name": "weave:///x/op/predict_and_score",
            "output": {"scores": {"LLMJudge": {"passed": said}, "Short": {"ok": n % 2 == 0}}},
            "summary": {
                "weave": {
                    "feedback": [
                        feedback("wandb.reaction.1", emoji="👎👍"[true]),
                        feedback("wandb.note.1", note="nice 👍"),
                    ]
                }
            },
        }
        for n, (said, true) in enumerate(zip(SAID["tone"], TRUE, strict=True))
    ]
    path = tmp_path / "calls.jsonl"
    path.write_text("\n".join(map(json.dumps, calls)), "utf-8")
    ((key, entry),) = checked(path, tmp_path)[0].items()
    assert (key[0], entry["accuracy"]) == ("LLMJudge", pytest.approx(2 / 3))


def test_an_item_in_both_orders_is_one_comparison_of_its_models(tmp_path: Path) -> None:
    """The judge follows people but for one in four, on which it takes what is shown first."""
    rows, judged, labelled = [], 0.0, 0
    for n in range(40):
        pair = ["gpt-4o", "llama-3"] if n % 3 else ["llama-3", "gpt-4o"]
        best = "gpt-4o" if n % 10 < 7 else "llama-3"
        labelled += best == "gpt-4o"
        for shown in (pair, pair[::-1]):
            said = best if n % 4 else shown[0]
            judged += (said == "gpt-4o") / 2
            row = {"id": f"q{n}", "prompt": f"Question {n}?", "model_a": shown[0]}
            row |= {"model_b": shown[1], "judge_choice": "AB"[shown.index(said)]}
            rows.append({**row, "human_choice": "AB"[shown.index(best)]})
    result = judgesense.check(rows, out=tmp_path / "out", note=str)
    wins = {row.model: row for row in result.report.assessments[0].wins}
    assert (wins["gpt-4o"].n_items, wins["gpt-4o"].n_labelled) == (40, 40)
    assert wins["gpt-4o"].wins == pytest.approx(judged / 40)
    assert wins["llama-3"].wins == pytest.approx(1 - judged / 40)
    assert wins["gpt-4o"].people == labelled / 40
    assert 0 < wins["gpt-4o"].ci_low < judged / 40 < wins["gpt-4o"].ci_high < 1
    assert any("gpt-4o" in finding.text for finding in result.report.contents.findings)
