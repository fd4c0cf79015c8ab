"""What endpoints send back: read where it says something, never the end of a run where not."""

from __future__ import annotations

import asyncio
import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fake_endpoint import FakeEndpoint, serving
from test_runner import benchmark

from judgesense.errors import JudgeSenseError
from judgesense.log.schema import read_log
from local_judges.api.endpoint import Retry
from local_judges.api.judge import ApiJudge
from local_judges.api.replies import answer_of, diagnose, first_token_options
from local_judges.plan import Requests
from local_judges.protocol import Answer, Request
from local_judges.runner import ask_all, run_judge

ASKED = Request("p", "?", ("YES", "NO"))


class Replying(FakeEndpoint):
    """Sends the bytes that it is given, as it is told."""

    def __init__(self, body: bytes, content_type: str = "application/json") -> None:
        super().__init__(lambda _: "")
        self.body, self.content_type = body, content_type

    async def answer(self, body: dict[str, Any]) -> web.StreamResponse:
        return web.Response(body=self.body, headers={"Content-Type": self.content_type})


def ask(judge: ApiJudge, *requests: Request) -> list[Answer]:
    return ask_all(judge, requests or (ASKED,), ["generate"])


def judge(url: str, **options: Any) -> ApiJudge:
    quick = Retry(attempts=3, budget_s=5, first_s=0.01, most_s=0.02)
    return ApiJudge("fake", base_url=url, **{"retry": quick, "timeout_s": 2, **options})


def saying(content: object, **choice: object) -> dict[str, Any]:
    return {"choices": [{"message": {"content": content}, **choice}]}


def shown(*top: tuple[object, object]) -> dict[str, object]:
    entries = [{"token": token, "logprob": logprob} for token, logprob in top]
    return {"content": [{"top_logprobs": entries}]}


def test_a_text_in_parts_is_read_without_the_thinking() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "NO? No, "}]},
        {"type": "text", "text": "YES"},
    ]
    answer = answer_of({**saying(parts), "usage": {"prompt_tokens": 9}}, ASKED)
    assert (answer.text, answer.input_tokens, answer.output_tokens) == ("YES", 9, None)


@pytest.mark.parametrize(
    "reply",
    [
        [],
        {"choices": None},
        {"choices": [{"message": None}]},
        saying(7),
        saying([{"text": "no type"}]),
        {"error": {"message": "upstream is down"}},
    ],
)
def test_a_reply_of_another_shape_is_no_answer(reply: object) -> None:
    said = "upstream is down" if "error" in reply else "no choices"  # type: ignore[operator]
    with pytest.raises(ValueError, match=said):
        answer_of(reply, ASKED)


@pytest.mark.parametrize(
    "usage",
    [
        "n/a",
        [1],
        None,
        {"prompt_tokens": "50"},
        {"prompt_tokens": -1},
        {"prompt_tokens": 2**40},
        {"prompt_tokens": True},
    ],
)
def test_a_count_that_is_none_is_not_known(usage: object) -> None:
    answer = answer_of({**saying("YES"), "usage": usage}, ASKED)
    assert (answer.text, answer.input_tokens) == ("YES", None)


@pytest.mark.parametrize(
    "logprobs", [None, "x", [1], {"content": "x"}, {"content": []}, {"content": [{}]}]
)
def test_a_reply_without_log_probabilities_keeps_its_text(logprobs: object) -> None:
    answer = answer_of(saying("YES", logprobs=logprobs), ASKED)
    assert (answer.text, answer.option_logprobs) == ("YES", None)


@pytest.mark.parametrize(
    "alternative",
    [
        ("NO", None),
        (None, -0.1),
        (7, -0.1),
        ("NO", "-0.1"),
        ("NO", True),
        ("NO", math.nan),
        ("NO", math.inf),
        ("NO", -math.inf),
        ("NO", 1000.0),
        ("NO", 10**400),
        ("YES", -0.1),
    ],
)
def test_a_malformed_alternative_is_no_answer(alternative: tuple[object, object]) -> None:
    # Without that entry, the runner-up would pass for the best.
    for top in ([alternative, ("YES", -0.2)], [("YES", -0.2), alternative]):
        with pytest.raises(ValueError, match="top_logprobs"):
            answer_of(saying("NO", logprobs=shown(*top)), ASKED)


def test_a_list_of_alternatives_that_is_none_is_no_answer() -> None:
    with pytest.raises(ValueError, match="not a list"):
        answer_of(saying("YES", logprobs={"content": [{"top_logprobs": 1}]}), ASKED)


def test_a_refusal_that_is_no_text_is_one() -> None:
    reply = {"choices": [{"message": {"content": None, "refusal": True}}]}
    assert answer_of(reply, ASKED) == Answer(text="", refused=True)


def test_a_text_that_cannot_be_written_is_logged_all_the_same(tmp_path: Path) -> None:
    with serving(FakeEndpoint(lambda _: "YES \ud83d")) as url:
        outcome = run_judge(judge(url), benchmark(3), tmp_path, ["generate"])
    assert outcome.failed == []
    assert {row["raw_text"] for row in read_log(tmp_path).to_pylist()} == {"YES ?"}


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ('{"choices": [{"message": {"content": "Ja – größer"}}]}', "application/json"),
        ('{"choices": [{"message": {"content": "Ja – größer"}}]}', "text/plain"),
        ('\ufeff{"choices": [{"message": {"content": "Ja – größer"}}]}', "application/json"),
        (
            '{"choices": [{"message": {"content": "Ja – größer"}}]}',
            "application/json; charset=ISO-8859-1",
        ),
    ],
)
def test_json_is_utf_8_whatever_the_header_says(body: str, content_type: str) -> None:
    with serving(Replying(body.encode(), content_type)) as url:
        assert [answer.text for answer in ask(judge(url))] == ["Ja – größer"]


@pytest.mark.parametrize(
    "body", [b"", b"[" * 100_000, b'{"choices": %s}' % (b"1" * 5000), b"\xff\xfe", b'"text"', b"[]"]
)
def test_what_cannot_be_read_is_tried_again_and_then_an_error(body: bytes) -> None:
    with serving(Replying(body)) as url:
        (answer,) = ask(judge(url))
    assert answer.text is None
    assert answer.error is not None
    assert answer.error.endswith(" s)")
    assert "3 tries" in answer.error


class Sending(FakeEndpoint):
    """Sends what it is given, head and all, then ``again`` 200 times."""

    def __init__(self, head: bytes, again: bytes = b"") -> None:
        super().__init__(lambda _: "")
        self.head, self.again = head, again

    async def complete(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.write(self.head)
        for _ in range(200 if self.again else 0):
            request.transport.write(self.again)
            await asyncio.sleep(0.001)
        request.transport.close()
        return web.Response()


@pytest.mark.parametrize(
    ("head", "again", "said"),
    [
        (b"220 smtp.example ready\r\n", b"", "status line"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", b"", "Length"),
        (b"HTTP/1.1 200 OK\r\n", b"X: %s\r\n" % (b"a" * 1000), "headers"),
    ],
)
def test_what_is_no_reply_of_http_or_has_no_end_is_an_error(
    head: bytes, again: bytes, said: str
) -> None:
    with serving(Sending(head, again)) as url:
        (answer,) = ask(judge(url))
    assert answer.error is not None
    assert said in answer.error


def test_two_bad_requests_at_the_start_are_errors_and_three_end_the_run(tmp_path: Path) -> None:
    prompts = list(Requests(benchmark(3).prompts))

    def answers(spurned: int) -> list[Answer]:
        bad = {request.text for request in prompts[:spurned]}
        with serving(FakeEndpoint(lambda _: "YES", spurns=bad.__contains__)) as url:
            return ask(judge(url), *prompts)

    assert [answer.error is None for answer in answers(2)] == [False, False, *[True] * 4]
    with pytest.raises(JudgeSenseError, match=r"HTTP 400.*none of the first 3 prompts"):
        answers(3)


def test_a_judge_answers_in_a_notebooks_event_loop() -> None:
    async def cell(url: str) -> list[Answer]:
        return ask(judge(url))

    with serving(FakeEndpoint(lambda _: "YES")) as url:
        assert [answer.text for answer in asyncio.run(cell(url))] == ["YES"]


@pytest.mark.parametrize("key", ["sk-“quoted”", "two\nlines"])
def test_a_key_that_no_header_can_carry_is_refused(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_KEY", key)
    with pytest.raises(JudgeSenseError, match="FAKE_KEY holds characters") as caught:
        ApiJudge("m", base_url="https://example.org/v1", key_variable="FAKE_KEY")
    assert key not in str(caught.value)


def test_a_key_is_taken_without_the_newline_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_KEY", "csk-0123456789\n")
    with serving(FakeEndpoint(lambda _: "YES", key="csk-0123456789")) as url:
        assert ask(judge(url, key_variable="FAKE_KEY"))[0].text == "YES"


def test_retry_after_may_be_a_date_or_stand_beside_nonsense() -> None:
    class Busy(Exception):
        status_code = 429

        def __init__(self, **headers: str) -> None:
            self.response = web.Response(
                headers={name.replace("_", "-"): value for name, value in headers.items()}
            )

    def wait(**headers: str) -> float | None:
        return diagnose(Busy(**headers), str)[2]

    soon = wait(retry_after=format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True))
    assert soon is not None
    assert 50 < soon <= 60
    assert wait(retry_after_ms="soon", retry_after="7") == 7
    assert wait(retry_after_ms="250") == 0.25
    assert wait(retry_after="tomorrow") is None


def test_option_log_probabilities_come_from_the_tokens_that_begin_them() -> None:
    top = [("Y", math.log(0.5)), (" YES", math.log(0.2)), ("NO", math.log(0.2))]
    values, mass = first_token_options(top, ("YES", "NO"))
    assert values == pytest.approx((math.log(0.7), math.log(0.2)))
    assert mass == pytest.approx(0.9)


def test_an_option_out_of_sight_is_bounded_and_never_wins() -> None:
    values, _ = first_token_options([("A", math.log(0.6)), ("x", math.log(0.3))], ("A", "B"))
    assert values == pytest.approx((math.log(0.6), math.log(0.1)))
    assert first_token_options([("A", math.log(0.1)), ("x", math.log(0.2))], ("A", "B"))[0] is None
    assert first_token_options([("x", math.log(0.9))], ("A", "B")) == (None, 0.0)


def test_a_token_that_begins_two_options_can_be_either() -> None:
    scale = tuple(map(str, range(1, 11)))
    # "1" may go on to "10"; it is no reason to decide for the 2.
    unclear = [("1", math.log(0.99)), ("2", math.log(0.004)), ("10", math.log(0.003))]
    assert first_token_options(unclear, scale) == (None, pytest.approx(0.007))
    clear = [("7", math.log(0.9)), ("1", math.log(0.05)), ("8", math.log(0.04))]
    values, mass = first_token_options(clear, scale)
    assert values is not None
    assert max(values) == values[6] == pytest.approx(math.log(0.9))
    assert values[0] == pytest.approx(math.log(0.06)), "the token that it shares, and what is left"
    assert mass == pytest.approx(0.94)
