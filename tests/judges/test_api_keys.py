"""Who gets a key: the endpoint that it was named for, and no other."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from aiohttp import web
from fake_endpoint import FakeEndpoint, serving
from test_api_judge import KEY, judge, parity, requests
from test_runner import benchmark
from typer.testing import CliRunner

from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from local_judges.api.judge import ApiJudge
from local_judges.registry import resolve
from local_judges.runner import ask_all


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LocalHost.",
        "a.localhost",
        "127.0.0.1",
        "127.8.9.1",
        "127.1",
        "2130706433",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
    ],
)
def test_an_endpoint_on_this_machine_gets_a_key_only_if_its_variable_is_named(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    url = f"http://{host}:1/v1"
    for asked in (
        ApiJudge("m", base_url=url),
        resolve("m", engine="api", base_url=url).load(),
        resolve("gpt-4o", base_url=url).load(),
    ):
        assert isinstance(asked, ApiJudge)
        assert asked.endpoint.client().api_key != KEY
    for named in (
        ApiJudge("m", base_url=url, key_variable="OPENAI_API_KEY"),
        ApiJudge("m", base_url="http://127.0.0.1.example.org/v1"),
        ApiJudge("m", base_url="https://example.org/v1"),
    ):
        assert named.endpoint.client().api_key == KEY


@pytest.mark.parametrize(
    "url",
    [
        "h/v1",
        "file:///etc/passwd",
        "ws://h/v1",
        "http:///v1",
        "http://h:99999/v1",
        "http://a b/v1",
        "http://h/\nX: y",
        "http://[::1",
        "http://me:hunter2@localhost/v1",
        "http://hunter2@localhost/v1",
        "http://localhost/v1?api-key=hunter2",
    ],
)
def test_what_is_no_url_of_an_endpoint_or_holds_a_secret_is_refused(url: str) -> None:
    for refused in (ApiJudge, partial(resolve, engine="api")):
        with pytest.raises(JudgeSenseError, match="endpoint's URL") as caught:
            refused("m", base_url=url)
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-0123456789abcdef", "hf_AbCdEf0123456789", "KEY=abc", ""])
def test_a_key_in_place_of_its_variables_name_is_refused_and_not_shown(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "judges.yaml"
    path.write_text(
        f"endpoints:\n  e: {{base_url: 'https://example.org/v1', key_variable: '{key}'}}\n"
        "judges:\n  mine: {endpoint: e, model: m}\n"
    )
    monkeypatch.setenv("JUDGESENSE_JUDGES", str(path))
    for refused in (
        lambda: resolve("gpt-4o", key_variable=key),
        lambda: ApiJudge("m", key_variable=key),
        lambda: resolve("mine"),
    ):
        with pytest.raises(JudgeSenseError, match="name of an environment variable") as caught:
            refused()
        assert not key or key not in str(caught.value)


def test_a_redirect_to_another_host_does_not_carry_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAKE_KEY", KEY)
    seen: list[tuple[str, str | None]] = []

    class Redirecting(FakeEndpoint):
        """Sends every call elsewhere, or answers it, and notes the key that came with it."""

        def __init__(self, elsewhere: str = "") -> None:
            super().__init__(parity)
            self.elsewhere = elsewhere

        def routes(self) -> list[web.RouteDef]:
            return [web.route(method, "/{path:.*}", self.complete) for method in ("GET", "POST")]

        async def complete(self, request: web.Request) -> web.StreamResponse:
            seen.append((self.elsewhere, request.headers.get("Authorization")))
            if self.elsewhere:
                place = f"{self.elsewhere}/{request.match_info['path'].removeprefix('v1/')}"
                raise web.HTTPTemporaryRedirect(place)
            return await super().complete(request) if request.method == "POST" else web.Response()

    with serving(Redirecting()) as there:
        other = there.replace("127.0.0.1", "localhost")
        with serving(Redirecting(other)) as here:
            asked = judge(here, key_variable="FAKE_KEY")
            answers = ask_all(asked, requests(benchmark(1)), ["generate", "options"])
    assert all(answer.text for answer in answers)
    assert {key for elsewhere, key in seen if elsewhere} == {f"Bearer {KEY}"}
    assert len([1 for elsewhere, _ in seen if not elsewhere]) >= 3
    assert {key for elsewhere, key in seen if not elsewhere} == {None}


@pytest.mark.parametrize(
    ("endpoint", "key"),
    [
        ("{base_url: 'http://localhost:8000/v1'}", "none: it is on this machine"),
        ("{base_url: 'http://localhost:8000/v1', key_variable: MINE}", "$MINE (not set)"),
        ("{base_url: 'https://example.org/v1'}", "$OPENAI_API_KEY (not set)"),
    ],
)
def test_show_names_the_key_that_a_judge_gets(
    endpoint: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "judges.yaml"
    path.write_text(f"endpoints:\n  e: {endpoint}\njudges:\n  mine: {{endpoint: e, model: m}}\n")
    monkeypatch.setenv("JUDGESENSE_JUDGES", str(path))
    for name in ("OPENAI_API_KEY", "MINE"):
        monkeypatch.delenv(name, raising=False)
    shown = CliRunner().invoke(app, ["judges", "show", "mine"]).stdout
    assert key in shown
