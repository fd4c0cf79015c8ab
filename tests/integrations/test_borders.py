"""What comes in from others is bounded, and what they see says nothing that is not theirs."""

from __future__ import annotations

import csv
import gzip
import http.client
import io
import json
import os
import socket
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from aiohttp import web
from fake_endpoint import FakeEndpoint, serving
from served import judge_of, rule, running, served_of

from judgesense.checking.label_server import LabelServer
from judgesense.checking.labelling import open_labelling
from judgesense.cli.pages import _Pages
from judgesense.errors import JudgeSenseError
from judgesense.files.tables import csv_text, read_table
from judgesense.importers.inspect_files import open_log
from judgesense.log.folder import read_record
from judgesense.pipeline.execution import run
from judgesense.serve.server import Hurried, app_of
from local_judges.api.endpoint import Retry
from local_judges.api.judge import ApiJudge
from local_judges.options import ApiOptions, settings_of
from local_judges.progress import progress
from local_judges.protocol import Answer, Request
from local_judges.runner import ask_all

ASKED = Request("1", "Is it?", ("YES", "NO"))
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("text", ["a\rb", "\ra", "a\r", "a\r\nb", "x\r=1+1", '"\r"', "=1\r+1"])
def test_a_carriage_return_stays_in_its_cell(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.csv"
    written = csv_text(["a", "b"], [{"a": text, "b": 1}, {"a": "plain", "b": None}])
    path.write_text(written, "utf-8", newline="")
    assert [row.values["a"] for row in read_table(path)] == [text, "plain"]
    cells = [cell for row in csv.reader(io.StringIO(written, newline="")) for cell in row]
    assert not [cell for cell in cells if cell[:1] in "=+-@" and cell]


def test_labels_with_a_carriage_return_can_be_resumed(tmp_path: Path) -> None:
    source = tmp_path / "v.csv"
    source.write_text(
        "item_id,text,verdict\n"
        + "".join(f"i{n},t{n},{'YES' if n % 2 else 'NO'}\n" for n in range(9))
    )
    labelling, _ = open_labelling(source, verdict="verdict")
    labelling.put("ann", 0, "YES", "first\rsecond\r\n=third")
    again, _ = open_labelling(source, verdict="verdict")
    assert again.state("ann", 0)["comment"] == "first\rsecond\r\n=third"


class Replying(FakeEndpoint):
    """Sends one reply to all."""

    def __init__(self, body: object, status: int = 200, packed: bool = False) -> None:
        super().__init__(lambda _: "")
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.status, self.packed = status, packed

    async def answer(self, body: dict[str, Any]) -> web.StreamResponse:
        headers = {"Content-Type": "application/json"}
        if self.packed:
            headers["Content-Encoding"] = "gzip"
        sent = gzip.compress(self.body) if self.packed else self.body
        return web.Response(body=sent, status=self.status, headers=headers)


def answered(endpoint: FakeEndpoint) -> tuple[Answer, ApiJudge]:
    with serving(endpoint) as url:
        quick = Retry(attempts=1, budget_s=20, first_s=0.01)
        judge = ApiJudge("fake", base_url=url, retry=quick, logprobs=False)
        judge.endpoint.proven = True
        return ask_all(judge, [ASKED], ["generate"])[0], judge


@pytest.mark.parametrize("packed", [False, True])
def test_a_reply_has_a_size(monkeypatch: pytest.MonkeyPatch, packed: bool) -> None:
    whole = {"choices": [{"message": {"content": "YES" + " " * 100_000}}]}
    assert answered(Replying(whole, packed=packed))[0].error is None
    monkeypatch.setattr("local_judges.api.endpoint.REPLY_BYTES", 50_000)
    answer, _ = answered(Replying(whole, packed=packed))
    assert "more than 50000 bytes" in str(answer.error)


def choice(text: str, index: int) -> dict[str, Any]:
    return {"index": index, "message": {"content": text}, "finish_reason": "stop"}


def test_the_choice_with_index_0_counts() -> None:
    assert answered(Replying({"choices": [choice("NO", 1), choice("YES", 0)]}))[0].text == "YES"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"choices": [{"finish_reason": "content_filter"}]}, 200),
        ({"choices": [{"finish_reason": "content_filter", "message": {"content": None}}]}, 200),
        ({"error": {"code": "content_filter", "message": "filtered"}}, 400),
    ],
)
def test_what_a_providers_filter_takes_away_is_a_refusal(body: object, status: int) -> None:
    answer, _ = answered(Replying(body, status))
    assert (answer.refused, answer.error) == (True, None)


def test_a_run_names_the_models_that_answered(tmp_path: Path) -> None:
    class Changing(FakeEndpoint):
        def reply(self, text: str, logprobs: bool) -> dict[str, object]:
            whole = super().reply(text, logprobs)
            return {**whole, "model": "big" if len(self.bodies) % 4 else "small\x1b[2J"}

    notes: list[str] = []
    with serving(Changing(lambda _: "YES")) as url:
        judge = ApiJudge("big", base_url=url, logprobs=False)
        run(judge, tasks=["factuality"], limit=5, out=tmp_path / "run", note=notes.append)
    served = (read_record(tmp_path / "run") or {})["judges"][0]["served"]
    assert set(served) == {"big", "small␛[2J"}
    assert any("several models" in note for note in notes)


@pytest.mark.parametrize(
    "body",
    [
        {"api_key": "x"},
        {"headers": {"Authorization": "Bearer abc"}},
        {"a": [{"b": "sk-abcdefghijk"}]},
        {"x-api-key": "secret"},
    ],
)
def test_fields_that_are_logged_hold_no_key(body: dict[str, Any]) -> None:
    with pytest.raises(JudgeSenseError, match="must hold no key"):
        settings_of(ApiOptions, {"style": {"extra_body": body}})
    settings_of(ApiOptions, {"style": {"extra_body": {"eos_token": "<s>", "keys": ["a"], "n": 1}}})


def test_an_archive_has_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "[" + " " * 100_000 + "]")
    monkeypatch.setattr("judgesense.files.limits.MEMBER_BYTES", 50_000)
    with pytest.raises(JudgeSenseError, match=r"header\.json has 100,002 bytes"):
        open_log(path)
    monkeypatch.setattr("judgesense.files.limits.MEMBER_BYTES", 10**6)
    monkeypatch.setattr("judgesense.files.limits.ARCHIVE_BYTES", 50_000)
    with pytest.raises(JudgeSenseError, match="at most 50,000"):
        open_log(path)


FACT = {"question": "Where?", "response": "the judged words"}


def test_health_quotes_no_judged_text() -> None:
    def dies(messages: list[str]) -> list[dict[str, float]]:
        raise RuntimeError(f"cannot judge {messages[0]}")

    with running(served_of(inner=judge_of(dies))) as url:
        for _ in range(3):
            assert httpx.post(f"{url}/v1/judge", json=FACT).status_code == 503
        told = httpx.get(f"{url}/health")
    assert told.status_code == 503
    assert "judged words" not in told.text


def test_requests_that_wait_have_a_size_together(monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()

    def waits(messages: list[str]) -> list[dict[str, float]]:
        assert go.wait(20)
        return rule(messages)

    monkeypatch.setattr("judgesense.serve.gate.HELD_BYTES", 30_000)
    large = {**FACT, "response": "x" * 20_000}
    with running(served_of(inner=judge_of(waits))) as url:
        statuses: list[int] = []

        def ask() -> None:
            reply = httpx.post(f"{url}/v1/judge", json=large, timeout=30)
            statuses.append(reply.status_code)

        first = threading.Thread(target=ask)
        first.start()
        time.sleep(0.5)
        refused = httpx.post(f"{url}/v1/judge", json=large)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        go.set()
        first.join()
        assert statuses == [200]
        assert httpx.post(f"{url}/v1/judge", json=large).status_code == 200


def test_half_a_character_is_the_clients_error() -> None:
    with running(served_of()) as url:
        for path, body in (
            ("/v1/judge", {**FACT, "response": "\ud800"}),
            (
                "/v1/chat/completions",
                {"model": "rule", "messages": [{"role": "user", "content": "\ud800"}]},
            ),
        ):
            sent = json.dumps(body).encode()
            reply = httpx.post(
                f"{url}{path}", content=sent, headers={"Content-Type": "application/json"}
            )
            assert 400 <= reply.status_code < 500


@pytest.mark.parametrize("begun", [b"", b"POST /v1/judge HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_headers_have_to_arrive_in_time(monkeypatch: pytest.MonkeyPatch, begun: bytes) -> None:
    monkeypatch.setattr("judgesense.serve.server.HEADER_S", 0.3)
    app = app_of(served_of(), key="secret")
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", http=Hurried))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    with socket.create_connection(("127.0.0.1", port), timeout=10) as slow:
        slow.sendall(begun)
        began = time.monotonic()
        assert slow.recv(100) in (b"",)
        assert time.monotonic() - began < 8
    headers = {"Authorization": "Bearer secret"}
    with httpx.Client(headers=headers) as client:
        for _ in range(3):
            assert client.post(f"http://127.0.0.1:{port}/v1/judge", json=FACT).status_code == 200
            time.sleep(0.2)
    server.should_exit = True
    thread.join(20)


def fetch(port: int, path: str, host: str | None = None) -> tuple[int, dict[str, str]]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as sent:
        sent.request("GET", path, headers={"Host": host or f"127.0.0.1:{port}"})
        reply = sent.getresponse()
        reply.read()
        return reply.status, dict(reply.getheaders())


def test_the_label_page_is_for_who_has_its_address_and_in_no_frame(tmp_path: Path) -> None:
    source = tmp_path / "v.csv"
    source.write_text("item_id,text,verdict\na,b,YES\nc,d,NO\n")
    labelling, _ = open_labelling(source, verdict="verdict", answers=["YES", "NO"])
    server = LabelServer(labelling, grace=0.1)
    threading.Thread(target=server.serve, daemon=True).start()
    assert fetch(server.port, "/")[0] == 404
    assert fetch(server.port, "/?key=wrong")[0] == 404
    status, headers = fetch(server.port, server.address.partition(str(server.port))[2])
    assert (status, headers["x-frame-options"]) == (200, "DENY")
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    server.stop()


def test_the_boards_server_answers_this_machine_alone(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("board")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Pages, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    status, headers = fetch(server.server_port, "/index.html")
    assert (status, headers["X-Frame-Options"]) == (200, "DENY")
    assert fetch(server.server_port, "/index.html", "evil.example:80")[0] == 404
    server.shutdown()


def test_a_judges_name_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("evil\x1b[2J\x07", 2) as advance:
        advance(2)
    assert "\x1b" not in (said := capsys.readouterr().err)
    assert "2/2" in said


def test_every_package_says_that_it_is_typed() -> None:
    for name in ("judgesense", "judgesense_dataset", "local_judges", "hub_scripts"):
        assert (ROOT / name / "py.typed").is_file()


CODE = """
import sys
open({mark!r}, "w").write("ran")
from transformers import PretrainedConfig
class Config(PretrainedConfig):
    model_type = "evil"
"""


@pytest.mark.slow
@pytest.mark.parametrize("given", ["y\n" * 50, None])
def test_a_models_code_never_runs_and_nobody_is_asked(tmp_path: Path, given: str | None) -> None:
    model, mark = tmp_path / "model", tmp_path / "ran"
    model.mkdir()
    auto = {
        "AutoConfig": "code.Config",
        "AutoTokenizer": ["code.T", None],
        "AutoModelForCausalLM": "code.M",
    }
    (model / "config.json").write_text(json.dumps({"model_type": "evil", "auto_map": auto}))
    (model / "tokenizer_config.json").write_text(json.dumps({"auto_map": auto}))
    (model / "code.py").write_text(CODE.format(mark=str(mark)))
    (model / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    words = [sys.executable, "-c", "from judgesense.cli import main; main()"]
    words += ["run", "--judge", str(model), "--out", str(tmp_path / "out"), "--limit", "2"]
    done = subprocess.run(
        words,
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert "[y/N]" not in done.stdout + done.stderr
    assert not mark.exists()


JUNK: dict[str, Callable[[Path], object]] = {
    "config is no JSON": lambda m: (m / "config.json").write_text("{"),
    "config is a list": lambda m: (m / "config.json").write_text("[]"),
    "config names no kind": lambda m: (m / "config.json").write_text("{}"),
    "config of wrong types": lambda m: (m / "config.json").write_text(
        '{"model_type": "llama", "hidden_size": "x", "num_hidden_layers": -1}'
    ),
    "tokenizer is no JSON": lambda m: (m / "tokenizer.json").write_text("{"),
    "tokenizer is empty": lambda m: (m / "tokenizer.json").write_text("{}"),
    "weights are empty": lambda m: (m / "model.safetensors").write_bytes(b""),
    "weights have a header of 8 EB": lambda m: (m / "model.safetensors").write_bytes(b"\xff" * 64),
    "weights have a header of another kind": lambda m: (m / "model.safetensors").write_bytes(
        (4).to_bytes(8, "little") + b'"xx"'
    ),
}


@pytest.mark.slow
def test_a_malformed_model_folder_is_refused(tmp_path: Path) -> None:
    from local_judges.registry import resolve

    for name, spoil in JUNK.items():
        model = tmp_path / name.replace(" ", "-")
        model.mkdir()
        (model / "config.json").write_text(json.dumps({"model_type": "llama"}))
        (model / "model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
        spoil(model)
        with pytest.raises(JudgeSenseError):
            resolve(str(model)).load()
