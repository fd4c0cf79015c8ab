"""Option scores by token id from a vLLM server, and what is read where it has none."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from aiohttp import web
from fake_endpoint import FakeEndpoint, serving
from fake_vllm import END, FakeVllm, conversation, encoded, logprobs_after

import judgesense
from judgesense.errors import JudgeSenseError
from judgesense.log.folder import read_record
from judgesense.log.schema import SCORES_IN_FORM, read_log
from local_judges.api.endpoint import Retry
from local_judges.api.judge import TOP_TOKENS, WHOLE_OPTIONS, ApiJudge
from local_judges.options import SYSTEM_PROMPT
from local_judges.protocol import Request
from local_judges.runner import ask_all

SCALE = tuple(str(score) for score in range(1, 11))
YES_NO = ("YES", "NO")


def requests(n: int, options: tuple[str, ...]) -> list[Request]:
    return [Request(f"p{at}", f"Prompt number {at}?", options) for at in range(n)]


def expected(request: Request, ends: bool, before: str = "", after: str = "") -> list[float]:
    """The log-probability of each option, one character after another; ``before`` and the first
    character ``after`` it are those of a reply's form."""
    messages = [
        {"role": "system", "content": SYSTEM_PROMPT},
        {"role": "user", "content": request.text},
    ]
    found = []
    for option in request.options:
        tokens, score = encoded(conversation(messages) + before), 0.0
        for token in encoded(option + ((after or END)[0] if ends else "")):
            score += logprobs_after(tokens)[token]
            tokens.append(token)
        found.append(score)
    return found


@pytest.mark.parametrize(("options", "ends"), [(YES_NO, False), (SCALE, True), (("A", "B"), False)])
def test_each_option_is_scored_as_a_whole(options: tuple[str, ...], ends: bool) -> None:
    asked, server = requests(6, options), FakeVllm()
    with serving(server) as url:
        judge = ApiJudge("fake", base_url=url)
        assert judge.describe()["options"] == WHOLE_OPTIONS
        answers = ask_all(judge, asked, ["generate", "options"])
    for request, answer in zip(asked, answers, strict=True):
        assert answer.text == "YES"
        assert answer.option_logprobs == pytest.approx(expected(request, ends), abs=1e-9)
        assert answer.option_mass == pytest.approx(np.exp(expected(request, ends)).sum())
    # One call for the text and the first tokens, and one more for all that come after.
    later = [call for call in server.continued if len(call["prompt"][0]) > 1]
    assert len(later) == (0 if options == ("A", "B") else 6)
    assert {len(call["prompt"]) for call in later} <= {{2: 3, 10: 10}[len(options)]}
    assert server.bodies[0]["max_tokens"] == 20


@pytest.mark.parametrize(("options", "ends"), [(YES_NO, False), (SCALE, True)])
def test_an_option_is_scored_inside_the_form_of_a_reply(
    options: tuple[str, ...], ends: bool
) -> None:
    form = '{"verdict": "ANSWER"}'
    asked, server = [replace(r, reply_form=form) for r in requests(3, options)], FakeVllm()
    with serving(server) as url:
        judge = ApiJudge("fake", base_url=url)
        assert judge.describe()[SCORES_IN_FORM] is True
        answers = ask_all(judge, asked, ["generate", "options"])
    for request, answer in zip(asked, answers, strict=True):
        assert answer.text == "YES"
        wanted = expected(request, ends, '{"verdict": "', '"}')
        assert answer.option_logprobs == pytest.approx(wanted, abs=1e-9)


def test_without_a_text_one_token_is_written() -> None:
    server = FakeVllm()
    with serving(server) as url:
        ask_all(ApiJudge("fake", base_url=url), requests(1, YES_NO), ["options"])
        ask_all(ApiJudge("fake", base_url=url), requests(1, YES_NO), ["generate"])
    assert [body["max_tokens"] for body in server.bodies] == [1, 20]
    assert "logprob_token_ids" not in server.bodies[1]


@pytest.mark.parametrize("server", [FakeVllm(by_id=False), FakeEndpoint(lambda _: "YES")])
def test_other_endpoints_show_the_first_tokens_best_alternatives(server: FakeEndpoint) -> None:
    with serving(server) as url:
        judge = ApiJudge("fake", base_url=url)
        assert judge.describe()["options"] == TOP_TOKENS
        assert judge.describe()[SCORES_IN_FORM] is False
        ask_all(judge, requests(1, YES_NO), ["options"])
    assert server.bodies[0]["top_logprobs"] == 20
    assert "logprob_token_ids" not in server.bodies[0]


@pytest.mark.parametrize(
    "counted", [{"price": (1.0, 1.0)}, {"requests_per_minute": 600.0}, {"tokens_per_minute": 1e6}]
)
def test_a_judge_whose_calls_are_counted_makes_one_a_prompt(counted: dict[str, object]) -> None:
    server = FakeVllm()
    with serving(server) as url:
        judge = ApiJudge("fake", base_url=url, **counted)
        ask_all(judge, requests(3, YES_NO), ["options"])
    assert len(server.bodies) == 3
    assert not server.continued


def test_an_option_that_the_model_cannot_spell_stops_the_run() -> None:
    with serving(FakeVllm()) as url:
        judge = ApiJudge("fake", base_url=url)
        with pytest.raises(JudgeSenseError, match="cannot spell the ' ' option"):
            ask_all(judge, requests(1, ("YES", " ")), ["options"])


def test_an_endpoint_that_is_not_there_can_be_described_but_not_asked() -> None:
    judge = ApiJudge("fake", base_url="http://127.0.0.1:9/v1")
    assert "cannot be reached" in judge.describe()["options"]
    with pytest.raises(JudgeSenseError, match="never answered"):
        ask_all(judge, requests(1, YES_NO), ["options"])


def test_a_reply_without_the_tokens_is_tried_again_and_then_an_error() -> None:
    class Forgetful(FakeVllm):
        def shown(self, tokens: object, asked: dict[str, object]) -> dict[str, float]:
            whole = super().shown(tokens, asked)  # type: ignore[arg-type]
            return dict(list(whole.items())[:1]) if "messages" in asked else whole

    with serving(Forgetful()) as url:
        quick = Retry(attempts=2, budget_s=5, first_s=0.01, most_s=0.02)
        (answer,) = ask_all(
            ApiJudge("fake", base_url=url, retry=quick), requests(1, YES_NO), ["options"]
        )
    assert answer.error is not None
    assert "lacks the log-probability of a token" in answer.error
    assert "2 tries" in answer.error
    assert answer.option_logprobs is None


@pytest.mark.parametrize("value", [math.nan, -math.inf, 1.0, None])
def test_a_log_probability_that_is_none_is_an_error(value: float | None) -> None:
    class Odd(FakeVllm):
        def shown(self, tokens: object, asked: dict[str, object]) -> dict[str, float]:
            whole = super().shown(tokens, asked)  # type: ignore[arg-type]
            return dict.fromkeys(whole, value) if "messages" in asked else whole  # type: ignore[arg-type]

    with serving(Odd()) as url:
        once = Retry(attempts=1, budget_s=5)
        (answer,) = ask_all(
            ApiJudge("fake", base_url=url, retry=once), requests(1, YES_NO), ["options"]
        )
    assert answer.error is not None
    assert answer.option_logprobs is None


def test_a_refusal_without_tokens_is_a_refusal() -> None:
    class Filtered(FakeVllm):
        async def answer(self, body: dict[str, object]) -> web.StreamResponse:
            message = {"role": "assistant", "content": None, "refusal": "I must decline."}
            return web.json_response({"choices": [{"index": 0, "message": message}]})

    with serving(Filtered()) as url:
        (answer,) = ask_all(ApiJudge("fake", base_url=url), requests(1, YES_NO), ["options"])
    assert (answer.refused, answer.error, answer.option_logprobs) == (True, None, None)


def test_the_judges_system_prompt_and_template_arguments_reach_the_tokenizer() -> None:
    server, seen = FakeVllm(), []
    tokenize = server.tokenize

    async def noted(request: object) -> object:
        seen.append(await request.json())  # type: ignore[attr-defined]
        return await tokenize(request)  # type: ignore[arg-type]

    server.tokenize = noted  # type: ignore[assignment, method-assign]
    template = {"enable_thinking": False}
    with serving(server) as url:
        judge = ApiJudge(
            "fake",
            base_url=url,
            system_prompt="Be just.",
            style={"extra_body": {"chat_template_kwargs": template}},
        )
        judge.describe()
    (first, ended) = (asked for asked in seen if "messages" in asked)
    assert first["messages"][0] == {"role": "system", "content": "Be just."}
    assert first["chat_template_kwargs"] == ended["chat_template_kwargs"] == template
    scorer = judge.endpoint.scorer
    assert scorer is not None
    assert scorer.tail == f"{END}[assistant]"
    assert scorer.stop_tokens == encoded(END)


@pytest.mark.parametrize(("by_id", "reading"), [(True, WHOLE_OPTIONS), (False, TOP_TOKENS)])
def test_a_run_says_how_probabilities_were_read(by_id: bool, reading: str, tmp_path: Path) -> None:
    notes: list[str] = []
    with serving(FakeVllm(by_id=by_id)) as url:
        judgesense.run(
            "fake",
            base_url=url,
            tasks=["factuality"],
            limit=1,
            scoring="options",
            out=tmp_path,
            note=notes.append,
        )
    assert any(note.endswith(reading) for note in notes)
    record = read_record(tmp_path)
    assert record is not None
    assert record["judges"][0]["describe"]["options"] == reading
    # Of each whole option something is known; of tokens that are not shown, often nothing.
    decided = read_log(tmp_path)["option_mass"].drop_null().to_pylist()
    assert all(0 <= mass <= 1 for mass in decided)
    assert (len(decided) == 5) is by_id
