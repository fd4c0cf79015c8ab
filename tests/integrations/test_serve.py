"""The server, through the clients that people have."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
import yaml
from served import file_of, judge_of, rule, running, served_of

from judgesense import load_judge
from judgesense.ask.wordings import single_option_wordings
from judgesense.errors import JudgeSenseError
from judgesense.files.limits import REQUEST_BYTES as MOST_BYTES
from judgesense.serve.server import serve
from judgesense.tasks import Item, render
from judgesense_dataset.embedded import embedded_items, embedded_templates
from local_judges.registry import resolve

ITEMS = [
    {"item_id": item.item_id, **item.fields}
    for item in embedded_items()
    if item.task == "relevance"
][:20]
entry_of = embedded_templates()["relevance"]
FACT = {"question": "What is the capital of France?", "response": "Paris."}


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """The file of a judge that averages both orders of two wordings."""
    return file_of(tmp_path / "better.yaml", "relevance", 2, ("AB", "BA"))


def chat(url: str, text: str, **more: Any) -> Any:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
    messages = [{"role": "user", "content": text}]
    return client.chat.completions.create(model="judge", messages=messages, **more)


def test_every_way_in_gives_the_verdicts_of_the_judge(both: Path) -> None:
    items = ITEMS
    expected = load_judge(both, judge=judge_of())(items)
    entry = embedded_templates()["relevance"]
    with running(served_of(both)) as url:
        rows = httpx.post(f"{url}/v1/judge", json={"items": items}).json()["results"]
        alone = [httpx.post(f"{url}/v1/judge", json=item).json() for item in items[:5]]
        for item, want, row in list(zip(items, expected, rows, strict=True))[:8]:
            text = render(entry.task, entry.templates[2], Item("x", "relevance", item), "AB").text
            reply = chat(url, text, logprobs=True)
            whole = "".join(
                part.choices[0].delta.content or ""
                for part in chat(url, text, stream=True)
                if part.choices
            )
            top = reply.choices[0].logprobs.content[0]
            assert row["verdict"] == reply.choices[0].message.content == whole == want.verdict
            assert row["margin"] == want.margin
            assert row["ask_person"] == want.ask_person
            assert 2.718281828459045**top.logprob == pytest.approx(want.probability, abs=1e-12)
            assert reply.judgesense["judged"] == "as the file says"
    assert alone == rows[:5]
    assert len({row["verdict"] for row in rows}) == 2


@pytest.mark.parametrize("kind", ["cascade", "jury", "alone"])
def test_other_files_give_the_verdicts_of_the_judge(tmp_path: Path, kind: str) -> None:
    path = file_of(tmp_path / "own.yaml", "relevance", 2, ("AB", "BA"))
    held, inner = yaml.safe_load(path.read_text()), [judge_of(), judge_of(other)]
    if kind == "alone":
        template = single_option_wordings(entry_of)[0]
        held["tasks"]["relevance"]["templates"].append(
            {
                "id": template.template_id,
                "text": template.text,
                "layout": template.layout,
                "label_map": dict(template.label_map),
            }
        )
        held["rule"]["wordings"], inner = [template.template_id], inner[:1]
    else:
        held |= {
            "combine": kind,
            "margin": 0.4,
            "others": [{"judge": held["judge"], "rule": held["rule"]}],
        }
    path.write_text(yaml.safe_dump(held))
    expected = load_judge(path, judge=inner)(ITEMS)
    served = served_of(path, inner)
    asks = [served.of_item(item, None) for item in ITEMS]
    found = [served.verdict(*both) for both in zip(asks, served.answer(asks), strict=True)]
    assert [each.verdict for each in found] == expected
    text = render(entry_of.task, entry_of.templates[0], Item("x", "relevance", ITEMS[0]), "AB").text
    ask, _ = served.of_message(text)
    said = served.verdict(ask, *served.answer([ask]))
    assert (said.judged, said.raw) == ("as the file says", expected[0].verdict)


def test_a_column_may_be_called_task(tmp_path: Path) -> None:
    path = file_of(tmp_path / "own.yaml", "relevance", 2, ("AB", "BA"))
    path.write_text(path.read_text().replace("{query}", "{task}"))
    item = {**ITEMS[0], "task": ITEMS[0]["query"]}
    with running(served_of(path)) as url:
        one = httpx.post(f"{url}/v1/judge", json=item).json()
        several = httpx.post(f"{url}/v1/judge", json={"items": [item]}).json()["results"]
    assert one == several[0]


def other(messages: list[str]) -> list[dict[str, float]]:
    return rule([f"{message}!" for message in messages])


def test_an_improved_judge_in_front_of_a_remote_model(both: Path) -> None:
    with running(served_of(task="")) as remote:
        inner = resolve("judge", engine="api", base_url=f"{remote}/v1").load()
        with running(served_of(both, inner)) as url:
            found = httpx.post(f"{url}/v1/judge", json={"items": ITEMS}, timeout=60).json()
        with running(
            served_of(both, resolve("x", base_url="http://127.0.0.1:9/v1", retry_budget_s=1).load())
        ) as url:
            dead = httpx.post(f"{url}/v1/judge", json=ITEMS[0], timeout=60)
    expected = load_judge(both, judge=judge_of())(ITEMS)
    for row, want in zip(found["results"], expected, strict=True):
        assert row["verdict"] == want.verdict
        assert row["probability"] == pytest.approx(want.probability, abs=1e-9)
    assert (dead.status_code, "never answered" in dead.text) == (503, True)


def test_swapped_answers_get_the_swapped_verdict(both: Path) -> None:
    swapped = [
        {**item, "passage_a": item["passage_b"], "passage_b": item["passage_a"]} for item in ITEMS
    ]
    with running(served_of(both)) as url:
        one, other = (
            httpx.post(f"{url}/v1/judge", json={"items": items}).json()["results"]
            for items in (ITEMS, swapped)
        )
    for a, b in zip(one, other, strict=True):
        assert a["probabilities"]["A"] == pytest.approx(b["probabilities"]["B"], abs=1e-12)
        assert {a["verdict"], b["verdict"]} == {"A", "B"}


def test_a_message_without_the_layout_is_asked_as_it_was_sent(both: Path) -> None:
    asked: list[str] = []

    def keep(messages: list[str]) -> list[dict[str, float]]:
        asked.extend(messages)
        return rule(messages)

    with running(served_of(both, judge_of(keep))) as url:
        found = chat(url, "Which is better?", logprobs=True)
        # With backtracking, this text would take years.
        chat(url, "x" + "\n\nQuery: x\nA: y" * 20_000)
    assert asked[0] == "Which is better?"
    told = found.judgesense
    assert (told["judged"], told["ask_person"], found.choices[0].message.content) == (
        "as sent",
        True,
        "A",
    )


@pytest.mark.parametrize(
    ("response_format", "wording", "expected"),
    [
        (None, 'Right? Reply as JSON: {"pass": true, "reason": ""}', {"pass", "reason"}),
        (
            {"type": "json_object"},
            "Right?",
            {"verdict", "pass", "score", "probability", "ask_person", "reason", "note"},
        ),
        (
            {
                "type": "json_schema",
                "json_schema": {
                    "schema": {
                        "properties": {
                            "result": {"type": "boolean"},
                            "rationale": {"type": "string"},
                        }
                    }
                },
            },
            "Right?",
            {"result", "rationale"},
        ),
    ],
)
def test_the_reply_has_the_form_that_is_asked_for(
    response_format: Any, wording: str, expected: set[str]
) -> None:
    # JSON in what is judged asks for nothing.
    text = f'{wording}\n\nQuestion: Capital?\nResponse: {{"grade": "ignore this"}}'
    more = {} if response_format is None else {"response_format": response_format}
    with running(served_of()) as url:
        content = chat(url, text, **more).choices[0].message.content
        row = chat(url, text, **more).judgesense
        bare = chat(url, text.replace(wording, "Right?")).choices[0].message.content
    told = json.loads(content)
    assert told.keys() == expected
    assert bare in ("YES", "NO")
    assert told.get("pass", told.get("result")) is (row["verdict"] == "YES")
    assert (row["note"], row["reason"]) == (told.get("reason", told.get("rationale")), None)


def test_votes_are_shown(tmp_path: Path) -> None:
    path = file_of(tmp_path / "votes.yaml", "factuality", 3, ("-",))
    path.write_text(path.read_text().replace("read: most probable", "read: vote"))
    says = judge_of(lambda texts: ["YES" if "correct" in t else "NO" for t in texts], "generate")
    with running(served_of(path, says)) as url:
        row = httpx.post(f"{url}/v1/judge", json=FACT).json()
        question = {"type": "noul", "instructions": "Right?"}
        told = httpx.post(
            f"{url}/v1/systemone",
            json={"model": "judge", "state": FACT, "questions": {"right": question}},
        ).json()
    assert sum(row["votes"].values()) == 3
    assert told["answers"]["right"]["noul"] == pytest.approx(row["votes"]["YES"] / 3)


LONG = {"question": "x", "response": "y" * (MOST_BYTES + 1)}


def question(**more: Any) -> dict[str, Any]:
    return {"model": "judge", "state": FACT, "questions": {"q": more}}


@pytest.mark.parametrize(
    ("path", "body", "status", "named"),
    [
        ("judge", {"question": "x"}, 422, "'response'"),
        ("judge", {"items": []}, 422, "items"),
        ("judge", {**FACT, "task": "coherence"}, 422, "unknown task"),
        ("judge", LONG, 413, "bytes"),
        ("judge", b"[" * 200_000, 400, "body"),
        ("judge", b'{"question": "\xff"}', 400, "body"),
        ("judge", b'{"question": "\\ud800", "response": "x"}', 400, "surrogate"),
        ("judge", b"question=x", 422, "JSON"),
        (
            "chat/completions",
            {
                "model": "judge",
                "messages": [{"role": "user", "content": "x"}],
                "response_format": {"type": "json_schema"},
            },
            422,
            "schema",
        ),
        ("judge", {"items": [FACT] * 2000}, 413, "at most"),
        (
            "chat/completions",
            {"model": "gpt-4o", "messages": [{"role": "user", "content": "x"}]},
            404,
            "unknown model",
        ),
        ("chat/completions", {"model": "judge", "messages": []}, 422, "messages"),
        (
            "chat/completions",
            {"model": "judge", "n": 2, "messages": [{"role": "user", "content": "x"}]},
            422,
            "n: ",
        ),
        (
            "chat/completions",
            {"model": "judge", "messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            422,
            "not text",
        ),
        (
            "systemone",
            question(type="choice", criteria={str(n): None for n in range(300)}),
            422,
            "255 options, got 300",
        ),
        ("systemone", question(type="choice", criteria={}), 422, "got 0"),
        ("systemone", question(type="choice", criteria={"X": None, "Y": None}), 422, "YES, NO"),
        ("systemone", question(type="box"), 422, "type"),
        ("systemone", {**question(type="noul", instructions="?"), "state": "text"}, 422, "fields"),
        ("nowhere", {}, 404, "Not Found"),
    ],
)
def test_bad_input_is_one_clear_error_and_the_server_lives(
    server: str, path: str, body: Any, status: int, named: str
) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    told = httpx.post(f"{server}/v1/{path}", content=content, headers=headers)
    assert (told.status_code, named in told.json()["error"]["message"]) == (status, True), told.text
    assert told.json()["detail"] == told.json()["error"]["message"]
    assert httpx.post(f"{server}/v1/judge", json=FACT).status_code == 200


def test_a_body_that_does_not_say_that_it_is_json(server: str) -> None:
    told = httpx.post(f"{server}/v1/judge", content=json.dumps(FACT))
    assert (told.status_code, "Content-Type: application/json" in told.text) == (415, True)


@pytest.fixture(scope="module")
def server() -> Any:
    with running(served_of()) as url:
        yield url


def test_the_page_the_models_and_the_counters(server: str) -> None:
    before = httpx.get(f"{server}/metrics").text
    httpx.post(f"{server}/v1/judge", json=FACT)
    counted = 'judgesense_requests_total{path="/v1/judge",status="200"} '
    old, new = (
        int(text.partition(counted)[2].split("\n")[0] or 0)
        for text in (before, httpx.get(f"{server}/metrics").text)
    )
    assert new == old + 1
    assert set(httpx.get(f"{server}/openapi.json").json()["paths"]) >= {
        "/v1/judge",
        "/v1/systemone",
        "/v1/chat/completions",
        "/v1/models",
        "/health",
        "/metrics",
    }
    page = httpx.get(f"{server}/docs").text
    assert ("POST /v1/judge" in page, "://" in page) == (True, False)
    with openai.OpenAI(base_url=f"{server}/v1", api_key="any") as client:
        assert [model.id for model in client.models.list()] == ["rule"]


def test_a_body_that_does_not_arrive(monkeypatch: pytest.MonkeyPatch, server: str) -> None:
    monkeypatch.setattr("judgesense.serve.gate.BODY_S", 0.2)
    with socket.create_connection(("127.0.0.1", int(server.rpartition(":")[2]))) as slow:
        slow.sendall(b"POST /v1/judge HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        assert b" 408 " in slow.recv(2000)


def test_a_key_or_this_machine_alone() -> None:
    with running(served_of(), local=True) as url:
        names = ("localhost", "127.0.0.1:8080", "[::1]:8080", "evil.example:8080", "[evil")
        given = [httpx.get(f"{url}/health", headers={"Host": name}).status_code for name in names]
        assert given == [200, 200, 200, 403, 403]
    with running(served_of(), key="secret-key") as url:
        keys = [None, "Bearer secret-ke", "Bearer secret-key"]
        headers = [{"Authorization": key} if key else {} for key in keys]
        given = [httpx.post(f"{url}/v1/judge", json=FACT, headers=each) for each in headers]
        assert [each.status_code for each in given] == [401, 401, 200]
        assert httpx.get(f"{url}/health").status_code == 200
        assert httpx.get(f"{url}/metrics").status_code == 401


class Slow:
    """A rule that waits for ``go``, and keeps the sizes of its batches."""

    def __init__(self) -> None:
        self.go, self.sizes = threading.Event(), []

    def __call__(self, messages: list[str]) -> list[dict[str, float]]:
        self.sizes.append(len(messages))
        assert self.go.wait(20)
        if any("poison" in message for message in messages):
            raise RuntimeError("out of memory")
        return rule(messages)


def item(n: int, text: str = "Paris") -> dict[str, str]:
    return {"question": f"What is number {n}?", "response": text}


def waiting(url: str, wanted: int) -> None:
    for _ in range(400):
        if httpx.get(f"{url}/health").json()["waiting"] == wanted:
            return
        time.sleep(0.01)
    raise AssertionError(httpx.get(f"{url}/health").text)


def test_a_full_queue_and_clients_that_leave() -> None:
    slow = Slow()
    with running(served_of(inner=judge_of(slow)), places=4) as url, ThreadPoolExecutor(9) as pool:
        first = pool.submit(httpx.post, f"{url}/v1/judge", json=item(0))
        while not slow.sizes:
            time.sleep(0.01)
        more = [pool.submit(httpx.post, f"{url}/v1/judge", json=item(n)) for n in range(1, 4)]
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as leaver:
            body = json.dumps(item(9)).encode()
            leaver.sendall(
                b"POST /v1/judge HTTP/1.1\r\nHost: x\r\nContent-Type: application/json"
                b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            waiting(url, 4)
            full = httpx.post(f"{url}/v1/judge", json=item(5))
            assert (full.status_code, int(full.headers["retry-after"]) >= 1) == (429, True)
        waiting(url, 3)
        again = pool.submit(httpx.post, f"{url}/v1/judge", json=item(6))
        waiting(url, 4)
        slow.go.set()
        assert [each.result().status_code for each in [first, *more, again]] == [200] * 5
    # What waited was asked together, and the leaver's item was not.
    assert slow.sizes == [1, 4]


def test_a_stop_answers_what_waits_and_a_dying_judge_takes_no_other_with_it() -> None:
    slow = Slow()
    with ThreadPoolExecutor(9) as pool:
        with running(served_of(inner=judge_of(slow))) as url:
            items = [item(n) for n in range(4)] + [item(4, "poison")]
            asked = [pool.submit(httpx.post, f"{url}/v1/judge", json=each) for each in items]
            while not slow.sizes:
                time.sleep(0.01)
            waiting(url, 5 - slow.sizes[0])
            threading.Timer(0.2, slow.go.set).start()
        found = [each.result() for each in asked]
    assert [each.status_code for each in found] == [200] * 4 + [503]
    assert "out of memory" in found[4].json()["detail"]


def test_what_serve_refuses_before_a_model_is_loaded() -> None:
    with pytest.raises(JudgeSenseError, match="--api-key-env"):
        serve("no-such-judge", host="0.0.0.0")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(JudgeSenseError, match="choose another --port"):
            serve("no-such-judge", port=taken.getsockname()[1])
    with pytest.raises(JudgeSenseError, match="unknown judge"):
        serve("no-such-judge", port=0)


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "judgesense",
        "serve",
        "smollm2-135m",
        "--port",
        "0",
        "--set",
        "task=factuality",
        "--set",
        "scoring=options",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        line = next(each for each in process.stderr if " at http" in each)
        url = line.split(" at ")[1].split("/v1")[0]
        row = httpx.post(f"{url}/v1/judge", json=FACT, timeout=60).json()
        process.send_signal(2)
        assert process.wait(30) == 0
    judge = load_judge("smollm2-135m", task="factuality", scoring="options")
    expected = judge([FACT])[0]
    assert (row["verdict"], row["probability"]) == (expected.verdict, expected.probability)
