"""The engine systemone, against our own server and one built from the public shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fake_endpoint import FakeEndpoint, serving
from served import judge_of, running, served_of

from judgesense import run
from judgesense.errors import JudgeSenseError
from judgesense.log.schema import read_log
from local_judges.api.systemone import Question, SystemOneJudge, split_message
from local_judges.protocol import Request
from local_judges.registry import resolve
from local_judges.runner import ask_all

OPTIONS = frozenset({"options"})


def test_wording_sensitivity_through_the_server_is_the_judges_own(tmp_path: Path) -> None:
    with running(served_of(task="")) as url:
        through = SystemOneJudge("judge", base_url=f"{url}/v1")
        found = {
            name: run(judge=judge, scoring="options", limit=6, out=tmp_path / name)
            for name, judge in (("through", through), ("own", judge_of()))
        }
    keys = ("prompt_id", "item_id", "template_id", "order", "decision")
    through, own = (
        sorted(tuple(row[key] for key in keys) for row in read_log(tmp_path / name).to_pylist())
        for name in ("through", "own")
    )
    assert through == own
    assert len(own) > 150
    figures = [
        [(cell["task"], cell["jss"]) for cell in each.to_dict()["cells"]] for each in found.values()
    ]
    assert figures[0] == figures[1]


class DecisionModel(FakeEndpoint):
    """Answers by a rule of the instructions and the state, and counts HTTP requests."""

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/systemone", self.decide)]

    async def decide(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != "Bearer secret-of-mine":
            return web.json_response({"detail": "no secret-of-mine"}, status=401)
        body = await request.json()
        self.bodies.append(body)
        if self._random.random() < self.fault_rate:
            fault = self._random.choice(["429", "500", "reset", "malformed", "truncated"])
            self.faults[fault] += 1
            return await self._fail(fault, request)
        if "too long" in str(body["state"]):
            return web.json_response({"detail": "the state is too long"}, status=422)
        answers: dict[str, Any] = {}
        for name, question in body["questions"].items():
            right = "Paris" in body["state"]["Response"]
            if question["type"] == "noul":
                answers[name] = {"type": "noul", "noul": 0.9 if right else 0.2}
            else:
                levels = [str(n) for n in range(len(question["criteria"]))]
                spread = dict.fromkeys(levels, 0.05) | {levels[-right]: 0.8}
                answers[name] = {"type": "score", "probabilities": spread}
        return web.json_response(
            {"model": "m", "answers": answers, "usage": {"input_tokens": 101, "output_tokens": 4}}
        )


def prompt(n: int, wording: str, response: str, options: tuple[str, ...]) -> Request:
    return Request(str(n), f"{wording}\n\nQuestion: Capital?\nResponse: {response}", options)


ASKED = [
    prompt(1, "Right?", "Paris", ("YES", "NO")),
    prompt(2, "Right?", "Lyon", ("YES", "NO")),
    prompt(3, "Is it?", "Paris", ("YES", "NO")),
    prompt(4, "How good, from 1 to 5?", "Paris", ("1", "2", "3", "4", "5")),
]


def test_the_public_shape_with_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECIDER_KEY", "secret-of-mine")
    server = DecisionModel(lambda _: "", fault_rate=0.4, seed=3)
    with serving(server) as url:
        judge = SystemOneJudge(
            "m", base_url=url, key_variable="DECIDER_KEY", retry_budget_s=60, price=(1000.0, 0.0)
        )
        answers = ask_all(judge, ASKED, OPTIONS)
        (refused,) = ask_all(judge, [prompt(5, "Right?", "too long", ("YES", "NO"))], OPTIONS)
    best = [
        request.options[max(range(len(a.option_logprobs)), key=a.option_logprobs.__getitem__)]
        for request, a in zip(ASKED, answers, strict=True)
    ]
    assert best == ["YES", "NO", "YES", "5"]
    assert sum(server.faults.values()) > 1
    first = next(body for body in server.bodies if len(body["questions"]) == 3)
    assert first["state"] == {"Question": "Capital?", "Response": "Paris"}
    assert [each["instructions"] for each in first["questions"].values()] == [
        "Right?",
        "Is it?",
        "How good, from 1 to 5?",
    ]
    # One request of 101 tokens for an item's three questions.
    assert [a.input_tokens for a in answers] == [33, 101, 34, 34]
    assert judge.spent == pytest.approx(0.202, abs=1e-9)
    assert "too long" in refused.error


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, "base_url=URL --set key_variable=NAME"),
        ({"base_url": "https://example.org/v1"}, "key_variable=NAME"),
        ({"base_url": "http://localhost:1/v1", "max_tokens": 5}, "max_tokens"),
        (
            {"base_url": "http://localhost:1/v1", "timeout_s": 1, "retry_budget_s": 1},
            "never answered",
        ),
    ],
)
def test_what_the_engine_refuses(options: dict[str, Any], named: str) -> None:
    with pytest.raises(JudgeSenseError, match=named):
        ask_all(resolve("m", engine="systemone", **options).load(), ASKED, OPTIONS)


@pytest.mark.parametrize(
    "message",
    [
        "No state at all",
        "Rate it.\n\nBe strict.\n\nText: a\n\nB: c",
        "Which?\nA: x\nB: y\n",
        "Judge: yes\n\nA: 1\nA: 2",
        "Rate\n\nplain text\nA: b",
    ],
)
def test_nothing_of_a_message_is_lost(message: str) -> None:
    instructions, state = split_message(message)
    text = Question(type="noul", instructions=instructions or "?").text(state)
    for word in message.split():
        assert word in text
