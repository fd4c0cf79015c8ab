"""Questions answered in free text, into a response log that a matcher scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_endpoint import FakeEndpoint, serving
from typer.testing import CliRunner

import judgesense
from judgesense import Question
from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense.log.responses import PARTS
from judgesense.log.schema import part_files, read_part
from judgesense.pipeline.matching import read_questions
from judgesense.tasks import prompt_id
from local_judges.callable_judge import CallableJudge
from local_judges.protocol import Answer

TEMPLATES = ("{} + {} = ?", "What is {} plus {}? Answer with a number.")


def sums(n: int) -> list[Question]:
    """n sums under two wordings."""
    return [
        Question(f"sum-{i}", f"t{t}", template.format(i, i + 1))
        for i in range(n)
        for t, template in enumerate(TEMPLATES)
    ]


def adds(messages: list[str]) -> list[str]:
    digits = ["".join(c if c.isdigit() else " " for c in message).split() for message in messages]
    return [f"The answer is {sum(map(int, numbers))}." for numbers in digits]


def test_a_function_answers_each_message_once_for_all_that_ask_it(tmp_path: Path) -> None:
    asked: list[str] = []

    def counting(messages: list[str]) -> list[str]:
        asked.extend(messages)
        return adds(messages)

    questions = [*sums(5), Question("again", "t0", TEMPLATES[0].format(3, 4))]
    log = judgesense.respond(counting, questions, tmp_path, note=lambda _: None)
    assert len(asked) == len(set(asked)) == 10
    rows = {(row["item_id"], row["template_id"]): row for row in log.to_pylist()}
    assert len(rows) == 11
    assert rows["sum-3", "t1"]["text"] == "The answer is 7." == rows["again", "t0"]["text"]
    assert rows["again", "t0"]["prompt_id"] == prompt_id("3 + 4 = ?")
    assert rows["again", "t0"]["finish_reason"] == "stop"
    assert log.equals(judgesense.read_responses(tmp_path))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seed": 1}, "settings seed was 0 and is now 1"),
        ({"repeats": 2}, "settings repeats was 1 and is now 2"),
        ({"questions": sums(4)}, "questions n was 6 and is now 8"),
        ({"questions": sums(3)[::-1]}, "questions sha256"),
        ({"responder": "smollm2-135m"}, "responder judge was 'adds@callable'"),
    ],
)
def test_other_settings_in_the_same_folder_are_refused(
    tmp_path: Path, changed: dict[str, object], message: str
) -> None:
    judgesense.respond(adds, sums(3), tmp_path)
    asked = {"responder": adds, "questions": sums(3), **changed}
    with pytest.raises(JudgeSenseError, match=message):
        judgesense.respond(out=tmp_path, **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "temperature", "roles"),
    [
        ({}, 0.7, ["system", "user"]),
        ({"temperature": 0.0, "system_prompt": ""}, 0.0, ["user"]),
    ],
)
def test_a_judge_files_decoding_holds_unless_another_is_given(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, object],
    temperature: float,
    roles: list[str],
) -> None:
    endpoint = FakeEndpoint(lambda _: "5")
    with serving(endpoint) as url:
        own = tmp_path / "judges.yaml"
        options = "{temperature: 0.7, system_prompt: Be brief.}"
        own.write_text(
            f"endpoints:\n  here: {{base_url: '{url}'}}\njudges:\n"
            f"  warm: {{summary: Warm, endpoint: here, model: fake, options: {options}}}\n"
        )
        monkeypatch.setenv("JUDGESENSE_JUDGES", str(own))
        judgesense.respond("warm", sums(1), tmp_path / "out", **given)  # type: ignore[arg-type]
    for body in endpoint.bodies:
        assert body["temperature"] == temperature
        assert [message["role"] for message in body["messages"]] == roles  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ([], "no questions"),
        ([Question("1", "t", "")], "message must be text"),
        ([Question("1", "t", "a"), Question("1", "t", "b")], "item and template appear twice"),
        ([Question("1", "t", "a", ("x", "x"))], "an option appears twice"),
        ([Question("1", "t", "a"), Question("2", "t", "a", ("x", "y"))], "other options"),
    ],
)
def test_questions_that_cannot_be_told_apart_are_named(
    tmp_path: Path, questions: list[Question], message: str
) -> None:
    with pytest.raises(JudgeSenseError, match=message):
        judgesense.respond(adds, questions, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_failed_question_is_kept_with_its_reason_and_left_out_of_the_scores(
    tmp_path: Path,
) -> None:
    class Stumbling(CallableJudge):
        def _answer(self, request: object, reply: object) -> Answer:
            if request.text.startswith("2 +"):  # type: ignore[attr-defined]
                return Answer(error="HTTP 400: too long")
            return super()._answer(request, reply)  # type: ignore[arg-type]

    notes: list[str] = []
    log = judgesense.respond(Stumbling(adds), sums(4), tmp_path / "log", note=notes.append)
    (failed,) = [row for row in log.to_pylist() if row["finish_reason"] == "error"]
    assert (failed["item_id"], failed["text"], failed["error"]) == (
        "sum-2",
        None,
        "HTTP 400: too long",
    )
    assert "1 questions" in notes[-1]
    references = tmp_path / "references.jsonl"
    lines = [{"id": f"sum-{i}", "answer": f"The answer is {2 * i + 1}"} for i in range(4)]
    references.write_text("\n".join(map(json.dumps, lines)))
    result = CliRunner().invoke(
        app,
        [
            "match",
            str(tmp_path / "log"),
            "--method",
            "exact",
            "--references",
            str(references),
            "--columns",
            "item_id=id,reference=answer",
        ],
    )
    assert result.exit_code == 1
    assert "t0          1.0000  n=3" in result.output
    assert "t1          1.0000  n=4" in result.output
    assert "adds@callable t0 sum-2: HTTP 400: too long" in result.output


@pytest.mark.slow
def test_a_real_model_writes_past_the_judges_cap_and_scores_options(tmp_path: Path) -> None:
    from local_judges.local.transformers_judge import TransformersJudge

    questions = [
        Question("count", "t", "Count from 1 to 30, with commas between the numbers."),
        Question("ice", "t", "Is ice cold? Answer Yes or No.", ("Yes", "No")),
    ]
    log = judgesense.respond("smollm2-135m", questions, tmp_path, max_tokens=40)
    rows = {row["item_id"]: row for row in log.to_pylist()}
    assert rows["count"]["tokens"] > 20
    assert (rows["count"]["finish_reason"] == "length") == (rows["count"]["tokens"] == 40)
    assert {entry["option"] for entry in rows["ice"]["option_logprobs"]} == {"Yes", "No"}
    judge = TransformersJudge("smollm2-135m", system_prompt="", max_tokens=40)
    ids = judge.tokenizer(
        judge.chat.render(questions[0].message), add_special_tokens=False, return_tensors="pt"
    ).input_ids
    written = judge.model.generate(ids, max_new_tokens=40, do_sample=False)[0, ids.shape[1] :]
    text = judge.tokenizer.decode(written, skip_special_tokens=True)
    assert rows["count"]["text"] == text


def test_an_interrupted_responder_resumes_and_asks_nothing_twice(tmp_path: Path) -> None:
    stopped, whole = tmp_path / "stopped", tmp_path / "whole"
    asked: list[str] = []

    def interrupted(messages: list[str]) -> list[str]:
        if len(asked) == 128:
            raise KeyboardInterrupt
        asked.extend(messages)
        return adds(messages)

    interrupted.__name__ = "adds"
    with pytest.raises(KeyboardInterrupt):
        judgesense.respond(interrupted, sums(100), stopped, batch_size=64)
    assert sum(read_part(part).num_rows for part in part_files(stopped, PARTS)) == 128
    with pytest.raises(JudgeSenseError, match="is not finished"):
        judgesense.read_responses(stopped)
    logs = [judgesense.respond(adds, sums(100), out, batch_size=64) for out in (stopped, whole)]
    assert logs[0].num_rows == 200
    assert logs[0].drop_columns(["latency_s"]).equals(logs[1].drop_columns(["latency_s"]))


def test_options_of_a_question_are_read_from_a_csv_cell(tmp_path: Path) -> None:
    path = tmp_path / "questions.csv"
    rows = ['i1,t,Which?,"[""A"", ""B""]"', "i2,t,Why?,", "i3,t,Which then?,A|B"]
    path.write_text("item_id,template_id,message,options\n" + "\n".join(rows), "utf-8")
    questions = read_questions(path)
    assert [next(questions).options, next(questions).options] == [("A", "B"), ()]
    with pytest.raises(JudgeSenseError, match=r"a JSON list of texts; found 'A\|B'"):
        next(questions)


def test_references_that_lack_an_item_are_refused(tmp_path: Path) -> None:
    judgesense.respond(adds, sums(2), tmp_path / "log")
    references = tmp_path / "references.csv"
    references.write_text("item_id,reference\nsum-0,1\n")
    result = CliRunner().invoke(
        app, ["match", str(tmp_path / "log"), "--references", str(references)]
    )
    assert "no reference for item 'sum-1'" in str(result.exception)


def test_a_finished_folder_answers_before_the_responder_is_asked(tmp_path: Path) -> None:
    first = judgesense.respond(adds, sums(3), tmp_path)

    def never(messages: list[str]) -> list[str]:
        raise AssertionError("asked again")

    never.__name__ = "adds"
    assert judgesense.respond(never, sums(3), tmp_path).equals(first)
