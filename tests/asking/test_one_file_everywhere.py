"""An improved judge gives the same verdicts by ``load_judge``, over HTTP, and to the user's own
prompt that a client of OpenAI sends."""

from __future__ import annotations

import json
import math
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from production_server import Server, facts, is_supported, serving, share
from typer.testing import CliRunner

import judgesense
from judgesense.cli import app
from judgesense.log.schema import read_log
from judgesense.serve.served_judge import ServedJudge, load_served
from judgesense_dataset.recognition import known_tasks
from local_judges.improved_judge import read_improved
from local_judges.messages import Messages

sys.path.insert(0, str(Path(__file__).parents[1] / "integrations"))
from served import running

RUBRIC = """Is every claim in the answer supported by the context? Answer YES or NO.

Question: {question}
Context: {context}
Answer: {answer}
"""
ROWS = [{**row, "human": "YES" if right else "NO"} for row, right in facts(60)]


def says_yes(prompt: str) -> str:
    """Says YES without reading, unless it is asked for JSON."""
    asks_json = "JSON" in prompt
    is_yes = share(prompt) < (0.05 if asks_json else 0.6) or is_supported(prompt)
    word = "YES" if is_yes else "NO"
    return json.dumps({"verdict": word}) if asks_json else word


class Probable(Server):
    """Answers with the log-probabilities of a judge that prefers YES."""

    preference = 1.0

    def respond(self, body: dict[str, Any]) -> tuple[int, str]:
        status, text = super().respond(body)
        odds = (1.5 if is_supported(body["messages"][-1]["content"]) else -0.5) + self.preference
        odds += 0.8 * (share(text + str(body)) - 0.5)
        pairs = ((w, -math.log1p(math.exp(-s * odds))) for w, s in (("YES", 1), ("NO", -1)))
        top = [{"token": word, "logprob": value} for word, value in pairs]
        reply = json.loads(text)
        reply["choices"][0]["logprobs"] = {"content": [{**top[0], "top_logprobs": top}]}
        return status, json.dumps(reply)


def as_rule(prompts: list[str]) -> list[str]:
    """A function, and one that takes its prompts apart as it knows them."""
    for prompt in prompts:
        re.search(r"^Context: (.*)\nAnswer: (.*)", prompt, re.M).groups()  # type: ignore[union-attr]
    return [says_yes(prompt) for prompt in prompts]


@contextmanager
def judges_of(kind: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """A judge as `improve` takes it, and its options."""
    if kind == "function":
        yield as_rule, {}
    elif kind == "local":
        yield "smollm2-135m", {"scoring": "options", "limit": 20}
    elif kind == "text":
        with serving(Server(says_yes)) as url:
            yield "m", {"base_url": url}
    else:
        with serving(Probable(lambda _: "YES")) as url:
            yield "m", {"base_url": url, "scoring": "options"}


def chat(client: Any, prompt: str) -> Any:
    messages: Any = [{"role": "user", "content": prompt}]
    return client.chat.completions.create(model="judge", messages=messages, temperature=0)


@pytest.mark.parametrize(
    "kind",
    [
        "function",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("text", "logprobs", "local")),
    ],
)
def test_one_file_gives_the_same_verdicts_everywhere(kind: str, tmp_path: Path) -> None:
    out = tmp_path / "judge.yaml"
    with judges_of(kind) as (judge, options):
        budget = 4 if kind == "local" else 16
        best = judgesense.improve(RUBRIC, ROWS, judge, budget=budget, out=out, note=str, **options)
        function = {"judge": judge} if kind == "function" else {}
        with judgesense.load_judge(out, **function) as loaded:
            expected = loaded(ROWS)
            served = (
                ServedJudge({"rubric": loaded}, "judge", loaded.judge.inner[0])
                if function
                else load_served(out)
            )
            items = [{k: v for k, v in row.items() if k != "human"} for row in ROWS]
            with running(served) as url:
                rows = httpx.post(f"{url}/v1/judge", json={"items": items}, timeout=300).json()
                with openai.OpenAI(base_url=f"{url}/v1", api_key="any", timeout=300) as client:
                    prompts = [RUBRIC.strip().format(**item) for item in items]
                    replies = [chat(client, prompt) for prompt in prompts]
                    other = chat(client, prompts[0].replace("every claim", "any claim"))
            if not function:
                judgesense.judge_items(items, out, tmp_path / "v.jsonl", note=str)
            checked = {"paraphrases": 0, "repeats": 1, "attacks": "none", "note": str}
            named = loaded if function else out
            judgesense.check(RUBRIC, ROWS, named, out=tmp_path / "check", **checked)
    verdicts = [each.verdict for each in expected]
    assert [row["verdict"] for row in rows["results"]] == verdicts
    assert [reply.choices[0].message.content for reply in replies] == verdicts
    recipe = read_improved(out).recipe
    if kind != "function":
        lines = (tmp_path / "v.jsonl").read_text().splitlines()
        assert [json.loads(line)["verdict"] for line in lines] == verdicts
    log = read_log(tmp_path / "check").to_pylist()
    assert [row["decision"] for row in log] == verdicts
    assert {reply.judgesense["judged"] for reply in replies} == (
        {"as asked"} if recipe.name == "as asked" else {"as the file says"}
    )
    if len(recipe.wordings) == 1:
        asks_own = Messages(read_improved(out)).asks_own
        wanted = "as the file says" if asks_own else "in its own wording"
        assert other.judgesense["judged"] == wanted
    right = sum(v == row["human"] for v, row in zip(verdicts, ROWS, strict=True)) / len(ROWS)
    if kind in ("function", "text"):
        assert best.better is True
        assert right > 0.9


@pytest.mark.slow
def test_a_judge_of_both_scorings_is_asked_for_text_unless_options_are_asked_for(
    tmp_path: Path,
) -> None:
    task = known_tasks()["factuality"]
    texts = [f"{row['context']}\n{row['answer']}" for row in ROWS]
    items = [dict.fromkeys(task.fields, text) for text in texts]
    found: dict[str | None, list[list[str]]] = {}
    server = Probable(lambda _: "YES")
    server.preference = 0.0
    with serving(server) as url:
        for scoring in (None, "generate", "options"):
            asked: dict[str, Any] = {"task": "factuality", "base_url": url}
            asked |= {"scoring": scoring} if scoring else {}
            out = tmp_path / f"{scoring}.jsonl"
            judgesense.judge_items(items, "m", out, note=str, **asked)
            written = [json.loads(line)["verdict"] for line in out.read_text().splitlines()]
            with judgesense.load_judge("m", **asked) as loaded:
                called = [each.verdict for each in loaded(items)]
            with running(load_served("m", **asked)) as served:
                body = {"items": items, "task": "factuality"}
                rows = httpx.post(f"{served}/v1/judge", json=body, timeout=300).json()["results"]
            found[scoring] = [written, called, [row["verdict"] for row in rows]]
    assert found[None] == found["generate"] != found["options"]
    assert all(each[0] == each[1] == each[2] for each in found.values())


@pytest.mark.slow
def test_a_client_gets_the_form_of_its_own_prompt(tmp_path: Path) -> None:
    rubric = (
        RUBRIC.replace(" Answer YES or NO.", "") + 'Reply as {"why": "...", "ok": true or false}.'
    )

    def reply(prompt: str) -> str:
        return json.dumps({"why": "It says so.", "ok": is_supported(prompt)})

    rows = [{**row, "human": row["human"].lower()} for row in ROWS]
    out = tmp_path / "judge.yaml"
    with serving(Server(reply)) as url:
        judgesense.improve(rubric, rows, "m", base_url=url, budget=6, out=out, note=str)
        prompt = rubric
        for name in ("question", "context", "answer"):
            prompt = prompt.replace(f"{{{name}}}", rows[0][name])
        with (
            running(load_served(out)) as own,
            openai.OpenAI(base_url=f"{own}/v1", api_key="any") as client,
        ):
            answer = chat(client, prompt)
    said = json.loads(answer.choices[0].message.content)
    assert said.keys() == {"why", "ok"}
    assert said["ok"] is True


GRADED = '{context}\n{answer}\n\nReply as {"why": "<one or two words>", "ok": "YES" or "NO"}'


def test_the_reason_is_what_the_judge_wrote_and_the_page_of_improve_opens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reply(prompt: str) -> str:
        ok = is_supported(prompt.replace("Reply as", "")) or "context" not in prompt
        return json.dumps({"why": f"It says {len(prompt)}.", "ok": "YES" if ok else "NO"})

    out, rows, opened = tmp_path / "judge.yaml", ROWS, list[str]()
    monkeypatch.setattr("webbrowser.open", opened.append)
    (tmp_path / "r.txt").write_text(GRADED)
    named = [{**row, "case_ref": f"ref-{n}"} for n, row in enumerate(rows)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, named)))
    command = ["improve", f"{tmp_path}/r.txt", "--data", f"{tmp_path}/rows.jsonl", "--judge", "m"]
    command += ["--budget", "2", "--out", str(out), "--open"]
    with serving(Server(reply)) as url:
        run = CliRunner().invoke(app, [*command, "--set", f"base_url={url}"])
        assert run.exit_code == 0, run.output
        # Its next step runs as printed; the verdicts keep the ids of the rows, whatever their name.
        step = shlex.split(run.stdout[run.stdout.rindex("judgesense judge") :])
        done = CliRunner().invoke(
            app, [*step[1:-1], f"{tmp_path}/v.csv", "--allow-host", "127.0.0.1"]
        )
        assert done.exit_code == 0, done.output
        with running(load_served(out)) as served:
            prompt = GRADED
            for name, text in rows[0].items():
                prompt = prompt.replace(f"{{{name}}}", text)
            row = httpx.post(f"{served}/v1/judge", json=rows[0], timeout=60).json()
            with openai.OpenAI(base_url=f"{served}/v1", api_key="any") as client:
                told = json.loads(chat(client, prompt).choices[0].message.content)
    assert Path(opened[0].removeprefix("file://")) == tmp_path / "judge.yaml.run" / "report.html"
    assert "judge.yaml" in Path(opened[0].removeprefix("file://")).read_text("utf-8")
    assert "ref-3," in (tmp_path / "v.csv").read_text("utf-8")
    assert row["reason"].startswith("It says ")
    assert row["verdict"] in row["note"]
    assert told == {"why": row["reason"], "ok": row["verdict"]}
