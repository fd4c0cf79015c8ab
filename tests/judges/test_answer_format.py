"""Structured answers: asked for, enforced, recorded, and refused where they cannot be had."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fake_endpoint import FakeEndpoint, serving
from test_runner import benchmark, tells_parity

import judgesense
from judgesense.answers import parse
from judgesense.decisions.log import read_log
from judgesense.errors import JudgeSenseError
from local_judges.answer_format import instruction_of, schema_of
from local_judges.api.endpoint import Retry
from local_judges.api.judge import ApiJudge
from local_judges.local.transformers_judge import TransformersJudge
from local_judges.options import ApiOptions
from local_judges.protocol import Request
from local_judges.registry import resolve
from local_judges.runner import ask_all, run_judge

YES_NO = ("YES", "NO")


def parity(message: str) -> str:
    return tells_parity([message])[0]


class Enforcing(FakeEndpoint):
    """Writes in the format that it is asked for, or refuses it."""

    def __init__(
        self,
        rule: Callable[[str], str] = parity,
        *,
        refuses: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(rule, **options)
        self.refuses = refuses

    async def answer(self, body: dict[str, Any]) -> web.StreamResponse:
        asked = body.get("response_format") or body.get("structured_outputs")
        if asked and self.refuses:
            message = {"error": {"message": f"unknown parameter {next(iter(asked))}"}}
            return web.json_response(message, status=400)
        said = self.rule(body["messages"][-1]["content"])
        if asked and "choice" not in asked:
            said = json.dumps({"verdict": said})
        return web.json_response(self.completion(said))


def judge(url: str, answer_format: str | None, **options: Any) -> ApiJudge:
    quick = Retry(attempts=3, budget_s=5, first_s=0.01, most_s=0.02)
    return ApiJudge("fake", base_url=url, answer_format=answer_format, retry=quick, **options)


@pytest.mark.parametrize(
    ("answer_format", "field", "sent"),
    [
        (
            "json",
            "response_format",
            {
                "type": "json_schema",
                "json_schema": {"name": "verdict", "strict": True, "schema": schema_of(YES_NO)},
            },
        ),
        ("choice", "structured_outputs", {"choice": ["YES", "NO"]}),
    ],
)
def test_a_format_is_asked_for_and_read(
    answer_format: str, field: str, sent: dict[str, Any], tmp_path: Path
) -> None:
    data = benchmark(20)
    endpoint, plain = Enforcing(), Enforcing()
    with serving(endpoint) as url:
        run_judge(judge(url, answer_format), data, tmp_path / "structured", ["generate"])
    with serving(plain) as url:
        run_judge(judge(url, None), data, tmp_path / "plain", ["generate"])
    found, wanted = (
        {row["prompt_id"]: row["decision"] for row in read_log(tmp_path / name).to_pylist()}
        for name in ("structured", "plain")
    )
    assert found == wanted
    assert {json.dumps(body[field]) for body in endpoint.bodies} == {json.dumps(sent)}
    without = [
        {key: value for key, value in body.items() if key != field} for body in endpoint.bodies
    ]
    for bodies in (without, plain.bodies):
        bodies.sort(key=lambda body: str(body["messages"]))
    assert without == plain.bodies  # the prompt and the decoding are the same


def test_a_format_is_in_the_fingerprint_and_in_the_record(tmp_path: Path) -> None:
    here = "http://localhost:7/v1"
    names = {ApiJudge("m", base_url=here, answer_format=each).name for each in ("json", "choice")}
    assert len(names) == 2
    # A judge without a format keeps the fingerprint that it always had.
    assert ApiJudge("m", base_url=here).name == "m@d9bfb5a9"
    with serving(Enforcing(lambda _: "YES")) as url:
        judgesense.run(
            "fake", base_url=url, answer_format="json", tasks=["factuality"], limit=2,
            out=tmp_path / "run", note=str,
        )  # fmt: skip
    record = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
    assert record["asked"]["judges"][0]["answer_format"] == "json"
    assert record["judges"][0]["describe"]["answer_format"] == "json"


def test_json_mode_names_json_in_the_system_prompt_and_says_so() -> None:
    endpoint = Enforcing()
    with serving(endpoint) as url:
        asked = judge(url, "json", style={"json_schema": False})
        (answer,) = ask_all(asked, [Request("p", "Number 2", YES_NO)], ["generate"])
    (body,) = endpoint.bodies
    assert body["response_format"] == {"type": "json_object"}
    assert body["messages"][0]["content"].endswith(instruction_of(YES_NO))  # type: ignore[index]
    assert asked.describe()["format_instruction"] == instruction_of(("OPTION", "OPTION"))
    assert parse(answer.text or "", YES_NO) in YES_NO


def test_an_endpoint_that_refuses_the_format_ends_the_run(tmp_path: Path) -> None:
    endpoint = Enforcing(refuses=True)
    with serving(endpoint) as url, pytest.raises(JudgeSenseError, match="unknown parameter"):
        run_judge(judge(url, "json", concurrency=1), benchmark(20), tmp_path, ["generate"])
    assert len(endpoint.bodies) == 3
    assert not list(tmp_path.glob("**/part-*"))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"engine": "api", "base_url": "http://localhost/v1", "answer_format": "yaml"},
         "answer_format: must be 'json' or 'choice', got 'yaml'"),
        ({"engine": "transformers", "answer_format": "choice"}, "--scoring options"),
    ],
)  # fmt: skip
def test_what_cannot_be_had_is_refused_when_it_is_asked_for(
    asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(JudgeSenseError, match=message):
        resolve("smollm2-135m", **asked)
    if asked["engine"] == "transformers":
        with pytest.raises(JudgeSenseError, match=message):
            TransformersJudge("smollm2-135m", answer_format="json")


def test_a_schema_counts_in_the_most_that_a_prompt_can_cost() -> None:
    from local_judges.api.judge import most_cost

    asked = [Request("p", "?", YES_NO)]
    price = vars(ApiOptions(price=(1.0, 1.0)))
    plain, structured = most_cost(asked, price), most_cost(asked, price | {"answer_format": "json"})
    assert plain is not None
    assert structured is not None
    assert structured - plain == pytest.approx(len(json.dumps(schema_of(YES_NO))) / 3e6)
