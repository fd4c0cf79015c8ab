"""A prompt in production is judged as it is, by a real server: one command, and the truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from production_server import Server, facts, is_supported, serving, share
from typer.testing import CliRunner

import judgesense
from judgesense.cli import app
from judgesense.errors import JudgeSenseError

RUBRIC = """You are a strict grader for a RAG assistant of a bank.

Grade the answer on faithfulness: every claim must be supported by the context.

Question: {question}

Context:
{context}

Answer:
{answer}

Think step by step, then reply with a JSON object only:
{"reasoning": "<one sentence>", "score": 0 or 1}
"""
ROWS = [{**row, "human": "pass" if right else "fail"} for row, right in facts(100)]


def reasoned(prompt: str) -> str:
    """Reasons, then a score, in JSON; wrong on 12%."""
    right = is_supported(prompt) != (share(prompt) < 0.12)
    return (
        "Let me check the context.\n```json\n"
        + json.dumps(
            {
                "reasoning": f"The claim is {'' if right else 'not '}there; 1 claim.",
                "score": int(right),
            }
        )
        + "\n```"
    )


def checked(url: str, out: Path, rubric: str = RUBRIC, **more: Any) -> Any:
    options = {"paraphrases": 0, "repeats": 1, "attacks": "none", "damage": "none", "out": out}
    options |= {"note": str, **more}
    return judgesense.check(rubric, ROWS, "m", base_url=url, **options)


def accuracy(result: Any) -> float:
    (row,) = result.report.people
    return float(row["accuracy"])


def test_a_rubric_that_asks_for_json_scores_is_read_in_one_command(tmp_path: Path) -> None:
    server = Server(reasoned, busy=9)
    for name, text in (("r.txt", RUBRIC), ("d.jsonl", "\n".join(map(json.dumps, ROWS)))):
        (tmp_path / name).write_text(text)
    command = ["check", f"{tmp_path}/r.txt", "--data", f"{tmp_path}/d.jsonl", "--judge", "m"]
    command += ["--paraphrases", "0", "--repeats", "1", "--attacks", "none"]
    command += ["--damage", "none", "--format", "json"]
    with serving(server) as url:
        run = CliRunner().invoke(
            app, [*command, "--set", f"base_url={url}", "--out", f"{tmp_path}/out"]
        )
    assert run.exit_code in (0, 1, 3), run.output
    (row,) = json.loads((tmp_path / "out" / "report.json").read_text())["people"]
    assert 0.8 < row["accuracy"] < 0.95
    sent = server.bodies[0]
    assert [message["role"] for message in sent["messages"]] == ["user"]
    assert sent["messages"][0]["content"].endswith('"score": 0 or 1}')
    assert sent["max_tokens"] == 1024
    # Each prompt is paid once; only those that were refused are sent again.
    assert len(set(server.prompts)) == 100
    assert len(server.bodies) <= 100 * 9 / 8 + 1


def test_settings_change_what_is_added(tmp_path: Path) -> None:
    with serving(server := Server(reasoned)) as url:
        checked(url, tmp_path / "out", limit=4, system_prompt="Be strict.", max_tokens=300)
    assert server.bodies[0]["messages"][0] == {"role": "system", "content": "Be strict."}
    assert server.bodies[0]["max_tokens"] == 300


def test_a_benchmark_is_asked_by_the_protocol_of_the_paper(tmp_path: Path) -> None:
    asked = {"tasks": ["factuality"], "limit": 2, "scoring": "generate", "note": str}
    with serving(server := Server(lambda prompt: "YES")) as url:
        judgesense.run("m", base_url=url, **asked, out=tmp_path / "run")
        sent = server.bodies[0]
        assert (len(sent["messages"]), sent["max_tokens"]) == (2, 20)
        command = ["run", "--judge", "m", "--set", f"base_url={url}", "--set", "system_prompt="]
        command += ["--tasks", "factuality", "--limit", "2", "--scoring", "generate"]
        run = CliRunner().invoke(app, [*command, "--out", f"{tmp_path}/plain"])
    assert run.exit_code == 0
    assert len(server.bodies[-1]["messages"]) == 1


def test_a_parameter_that_a_model_refuses_is_left_out_and_remembered(tmp_path: Path) -> None:
    server = Server(reasoned, refuses=("temperature", "max_tokens"))
    with serving(server) as url:
        result = checked(url, tmp_path / "out", reasoning_effort="low", limit=20)
    assert len(server.bodies) == 22
    last = server.bodies[-1]
    assert "temperature" not in last
    assert (last["max_completion_tokens"], last["reasoning_effort"]) == (1024, "low")
    assert accuracy(result) >= 0.7


def test_a_rubric_that_asks_for_json_is_held_to_it_where_the_endpoint_can(tmp_path: Path) -> None:
    rubric = RUBRIC.replace(
        '{"reasoning": "<one sentence>", "score": 0 or 1}',
        '{"score": 0 or 1, "reasoning": "<one sentence>"}',
    )
    able, unable = Server(reasoned), Server(reasoned, refuses=("response_format",))
    with serving(able) as url:
        checked(url, tmp_path / "able", rubric=rubric, limit=20)
        mapped: dict[str, Any] = {"map": {"1": "pass", "0": "fail"}, "limit": 4}
        checked(url, tmp_path / "plain", rubric="Good?\n{context}\n{answer}", **mapped)
        checked(url, tmp_path / "off", rubric=rubric, limit=4, structured=False)
    forms = [body.get("response_format") for body in able.bodies]
    assert forms[0]["type"] == "json_schema"
    schema = forms[0]["json_schema"]["schema"]
    assert list(schema["properties"]) == ["reasoning", "score"]
    assert schema["properties"]["score"] == {"type": "integer", "enum": [0, 1]}
    assert (forms[:20].count(forms[0]), forms[20:].count(None)) == (20, 8)
    with serving(unable) as url:
        result = checked(url, tmp_path / "unable", rubric=rubric, limit=20)
    # The refusal is remembered: one request more.
    assert [("response_format" in body) for body in unable.bodies] == [True, *[False] * 20]
    assert accuracy(result) >= 0.7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("server", "more", "message"),
    [
        (Server(lambda _: '{"grade": "good"}'), {}, "--map good=LABEL"),
        (
            Server(lambda prompt: "great" if "2" in prompt else "poor"),
            {},
            "great=LABEL|poor=LABEL",
        ),
        (Server(lambda _: "Let me think about", finish="length"), {}, "max_tokens=4096"),
        (Server(reasoned, page="<html>Please sign in</html>"), {}, "HTML page, not JSON"),
        (Server(lambda _: ""), {}, "replies are empty"),
        (Server(reasoned), {"answers": ["fine", "awful", "pass", "fail"]}, "state"),
        (Server(reasoned), {"rubric": " \n"}, "is empty"),
        (Server(reasoned), {"rubric": RUBRIC.replace("{answer}", "{reply}")}, "not a column"),
        (Server(lambda _: '{"thoughts": "fine", "stars": 7}'), {}, "7=LABEL"),
    ],
)
def test_what_cannot_be_read_is_said_within_three_prompts(
    server: Server, more: dict[str, Any], message: str, tmp_path: Path
) -> None:
    given = {"rubric": RUBRIC.replace("0 or 1", "0 to 1"), **more}
    with serving(server) as url:
        with pytest.raises(JudgeSenseError, match=message):
            checked(url, tmp_path / "out", **given)
        assert len(server.bodies) <= 3
        rubric, out = given.pop("rubric"), tmp_path / "judge.yaml"
        with pytest.raises(JudgeSenseError, match=message):
            judgesense.improve(rubric, ROWS, "m", base_url=url, out=out, note=str, **given)
    assert len(server.bodies) <= 6
    assert not out.exists()
    assert not (tmp_path / "out" / "report.json").exists()


def test_the_same_command_goes_on_and_another_asks_again(tmp_path: Path) -> None:
    words = Server(lambda prompt: "great" if is_supported(prompt) else "poor")
    with serving(words) as url:
        with pytest.raises(JudgeSenseError, match="rerun the same command"):
            checked(url, tmp_path / "out", rubric="Good?\n{context}\n{answer}")
        first = len(words.bodies)
        mapped = checked(
            url,
            tmp_path / "out",
            rubric="Good?\n{context}\n{answer}",
            map={"great": "pass", "poor": "fail"},
        )
        assert accuracy(mapped) == 1.0
        with pytest.raises(JudgeSenseError, match="none of the first 3"):
            checked(url, tmp_path / "as-it-is", rubric="Good?\n{context}\n{answer}")
        checked(url, tmp_path / "as-it-is", rubric="Good?\n{context}\n{answer}")
    assert (first, len(words.bodies)) == (3, 3 + 100 + 3 + 100)


def test_limits_of_a_scale_are_labels(tmp_path: Path) -> None:
    scale = Server(lambda p: f"Score of 5 claims: fine. [[{5 if is_supported(p) else 2}]]")
    rubric = 'Good?\n{context}\n{answer}\nReply with {"score": 1-5}.'
    with serving(scale) as url:
        result = checked(url, tmp_path / "o", rubric, map={">=4": "pass", "<4": "fail"})
    assert accuracy(result) == 1.0


def test_a_positive_label_is_what_one_means(tmp_path: Path) -> None:
    rows = [{**row, "human": "supported" if right else "made up"} for row, right in facts(40)]
    more = {"paraphrases": 0, "repeats": 1, "attacks": "none", "note": str, "out": tmp_path / "o"}
    with serving(Server(reasoned)) as url:
        result = judgesense.check(RUBRIC, rows, "m", base_url=url, positive="supported", **more)
    assert accuracy(result) > 0.75


def test_the_field_of_the_verdict_is_the_one_that_the_rubric_shows(tmp_path: Path) -> None:
    def reply(prompt: str) -> str:
        grounded = is_supported(prompt)
        return json.dumps({"confidence": 1, "grounded": grounded, "complete": "0"})

    fields = '{"confidence": 1-5, "grounded": true or false, "complete": 0-2}'
    rubric = f"Good?\n{{context}}\n{{answer}}\n{fields}"
    with serving(Server(reply)) as url:
        result = checked(url, tmp_path / "o", rubric)
    assert accuracy(result) == 1.0


@pytest.mark.slow
def test_improve_stops_as_well_and_goes_on_with_a_map(tmp_path: Path) -> None:
    def reply(prompt: str) -> str:
        return "great" if is_supported(prompt) else "poor"

    rubric, out = "Good?\n\n{context}\n{answer}", tmp_path / "judge.yaml"
    with serving(server := Server(reply)) as url:
        asked: dict[str, Any] = {"base_url": url, "budget": 4, "out": out, "note": str}
        with pytest.raises(JudgeSenseError, match="none of the first 3 replies"):
            judgesense.improve(rubric, ROWS, "m", **asked)
        assert len(server.bodies) == 3
        assert not out.exists()
        mapped = {"great": "pass", "poor": "fail"}
        best = judgesense.improve(rubric, ROWS, "m", map=mapped, **asked)
    assert best.written["right"] == 1.0


def test_judge_stops_at_replies_that_state_no_label(tmp_path: Path) -> None:
    items = [{"item_id": f"i{n}", "question": f"q{n}", "response": "r"} for n in range(9)]
    with serving(server := Server(lambda _: "Perhaps it is.")) as url:
        asked: dict[str, Any] = {"task": "factuality", "base_url": url, "note": str}
        with pytest.raises(JudgeSenseError, match=r"'Perhaps it is\.'"):
            judgesense.judge_items(items, "m", tmp_path / "v.csv", **asked)
        assert len(server.bodies) == 3
        assert not (tmp_path / "v.csv").exists()
        found = judgesense.judge_items(items, "m", tmp_path / "v.csv", **asked)
    assert (found.items, found.decided) == (9, 0)
