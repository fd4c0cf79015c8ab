"""The API judge: faults outlasted within a budget, limits kept, no key anywhere."""

from __future__ import annotations

import math
import pickle
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from fake_endpoint import FAULTS, FakeEndpoint, serving
from test_runner import benchmark, comparable, tells_parity

from judgesense.errors import JudgeSenseError
from judgesense.log.schema import read_log
from local_judges.api.endpoint import Retry
from local_judges.api.judge import ApiJudge
from local_judges.api.replies import diagnose, without_secrets
from local_judges.callable_judge import CallableJudge
from local_judges.options import Style
from local_judges.parts import Interrupted
from local_judges.protocol import Request
from local_judges.runner import ask_all, run_judge

KEY = "sk-test-0123456789abcdef"


def parity(message: str) -> str:
    return tells_parity([message])[0]


def judge(url: str, **options: object) -> ApiJudge:
    quick = Retry(attempts=12, budget_s=300, first_s=0.01, most_s=0.1)
    return ApiJudge("fake", base_url=url, **{"retry": quick, "concurrency": 32, **options})


def test_decisions_equal_those_of_the_same_judge_in_process(tmp_path: Path) -> None:
    data = benchmark(40)
    endpoint = FakeEndpoint(parity)
    with serving(endpoint) as url:
        outcome = run_judge(judge(url), data, tmp_path / "api", ["generate", "options"])
    run_judge(CallableJudge(tells_parity), data, tmp_path / "local", ["generate"])
    api = read_log(tmp_path / "api").to_pylist()
    local = {row["prompt_id"]: row["decision"] for row in read_log(tmp_path / "local").to_pylist()}
    assert outcome.judged == 80
    assert max(endpoint.calls.values()) == 1
    assert all(row["decision"] == local[row["prompt_id"]] for row in api)
    scored = [row for row in api if row["scoring"] == "options"]
    assert scored[0]["option_mass"] == pytest.approx(0.9)
    assert scored[0]["margin"] == pytest.approx(math.log(3.5))


def test_every_fault_is_outlasted_and_nothing_is_judged_twice(tmp_path: Path) -> None:
    data = benchmark(150)
    endpoint = FakeEndpoint(parity, fault_rate=0.3)
    with serving(endpoint) as url:
        outcome = run_judge(judge(url, timeout_s=1.5), data, tmp_path, ["generate"])
    run_judge(CallableJudge(tells_parity, name="fake"), data, tmp_path / "local", ["generate"])
    assert set(endpoint.faults) == set(FAULTS)
    assert outcome.failed == []
    log = read_log(tmp_path)
    assert log.num_rows == data.prompts.num_rows
    wanted = {r["prompt_id"]: r["decision"] for r in comparable(read_log(tmp_path / "local"))}
    assert {r["prompt_id"]: r["decision"] for r in log.to_pylist()} == wanted


def test_a_prompt_that_outlasts_the_budget_is_an_error_with_its_reason(tmp_path: Path) -> None:
    def once(text: str) -> str:
        endpoint.fault_rate = 1.0
        return parity(text)

    endpoint = FakeEndpoint(once)
    with serving(endpoint) as url:
        asked = judge(url, retry=Retry(attempts=3, budget_s=0.5, first_s=0.01), concurrency=1)
        first, *rest = ask_all(asked, requests(benchmark(4)), ["generate"])
    assert first.text == "YES"
    assert len(rest) == 7
    assert all(answer.error and "tries in" in answer.error for answer in rest)
    assert all(answer.text is None for answer in rest)


def requests(data: object) -> list[Request]:
    from local_judges.plan import Requests

    return list(Requests(data.prompts))  # type: ignore[attr-defined]


def test_a_wrong_key_stops_the_run_after_one_call_and_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_KEY", KEY)
    endpoint = FakeEndpoint(parity, key="another")
    with serving(endpoint) as url, pytest.raises(JudgeSenseError, match="HTTP 401") as caught:
        run_judge(judge(url, key_variable="FAKE_KEY"), benchmark(), tmp_path, ["generate"])
    shown = repr(caught.value) + str(caught.value.__context__)
    assert KEY not in shown
    assert not endpoint.bodies


def test_a_missing_key_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(JudgeSenseError, match="NO_SUCH_KEY"):
        ApiJudge("m", base_url="https://example.org/v1", key_variable="NO_SUCH_KEY")


def test_the_key_is_in_no_file_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_KEY", KEY)
    endpoint = FakeEndpoint(
        parity, key=KEY, fault_rate=0.2, spurns=lambda text: "Number 7 " in text
    )
    with serving(endpoint) as url:
        asked = judge(url, key_variable="FAKE_KEY", timeout_s=0.5)
        outcome = run_judge(asked, benchmark(40), tmp_path, ["generate"])
    assert KEY not in str(asked.describe()) + asked.name
    # The part is compressed, so its rows are searched; two of them quote what the endpoint said.
    log = str(read_log(tmp_path).to_pylist())
    assert len(outcome.failed) == 2
    assert log.count("you sent Bearer ***") == 2
    assert KEY not in log + str(outcome)


def test_an_endpoint_that_is_not_there_is_given_up_in_seconds(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(JudgeSenseError, match="never answered"):
        run_judge(
            judge("http://127.0.0.1:9/v1", retry=Retry(first_s=0.05)),
            benchmark(),
            tmp_path,
            ["generate"],
        )
    assert time.monotonic() - started < 30  # the retry budget is 120 s


def test_max_cost_stops_before_it_is_exceeded_and_goes_on_when_raised(tmp_path: Path) -> None:
    data = benchmark(80)
    endpoint = FakeEndpoint(parity)
    with serving(endpoint) as url:
        asked = judge(url, price=(10.0, 10.0), max_cost=0.06)
        notes: list[str] = []
        with pytest.raises(Interrupted, match=r"--max-cost 0\.06 would be exceeded"):
            run_judge(asked, data, tmp_path, ["generate"], note=notes.append)
        assert "at most $0." in notes[0]
        paid = read_log(tmp_path)["cost_usd"].to_pylist()
        assert 0 < sum(paid) <= 0.06
        assert len(endpoint.bodies) == len(paid)
        more = judge(url, price=(10.0, 10.0), max_cost=5)
        run_judge(more, data, tmp_path, ["generate"])
    assert read_log(tmp_path).num_rows == 160
    assert len(endpoint.bodies) == 160
    assert more.spent == pytest.approx(160 * 52 * 10 / 1e6)


def test_without_token_counts_every_answer_costs_the_most_it_can(tmp_path: Path) -> None:
    data = benchmark(200)
    endpoint = FakeEndpoint(parity, counts_tokens=False)
    with serving(endpoint) as url:
        asked = judge(url, price=(10.0, 10.0), max_cost=0.2)
        with pytest.raises(Interrupted, match=r"--max-cost 0\.2 would be exceeded"):
            run_judge(asked, data, tmp_path, ["generate"])
        paid = read_log(tmp_path)["cost_usd"].to_pylist()
        assert 0 < sum(paid) <= 0.2
        assert asked.spent == pytest.approx(sum(paid))
        again = judge(url, price=(10.0, 10.0), max_cost=0.2)
        with pytest.raises(Interrupted, match=f"{sum(paid):.4f} is spent"):
            run_judge(again, data, tmp_path, ["generate"])
    assert len(endpoint.bodies) == len(paid)


def test_a_call_may_not_take_longer_than_all_tries_together() -> None:
    url = "http://localhost/v1"
    with pytest.raises(JudgeSenseError, match="set retry_budget_s to 300"):
        ApiJudge("m", base_url=url, timeout_s=300)
    assert ApiJudge("m", base_url=url, timeout_s=300, retry_budget_s=300).endpoint.client().timeout
    assert ApiJudge("m", base_url=url, retry_budget_s=30).endpoint.client().timeout == 30
    assert ApiJudge("m", base_url=url).endpoint.client().timeout == 60


@pytest.mark.parametrize(
    "limit",
    [
        {"requests_per_minute": 60.0},
        {"tokens_per_minute": 1000.0},
        {"max_cost": 1.0, "price": (1.0, 1.0)},
    ],
)
def test_a_limit_is_not_given_to_each_of_several_processes(
    limit: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge("http://localhost/v1", **limit)
    monkeypatch.setenv("WORLD_SIZE", "2")
    judge("http://localhost/v1")
    with pytest.raises(JudgeSenseError, match="cannot be shared by 2 processes"):
        judge("http://localhost/v1", **limit)


def test_a_loaded_judge_is_not_sent_to_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_KEY", KEY)
    held = judge("http://localhost/v1", key_variable="FAKE_KEY")
    with pytest.raises(JudgeSenseError, match="name and options") as caught:
        pickle.dumps(held)
    assert KEY not in str(caught.value)


def test_requests_per_minute_are_kept() -> None:
    with serving(FakeEndpoint(parity)) as url:
        asked = judge(url, requests_per_minute=30)
        started = time.monotonic()
        assert len(ask_all(asked, requests(benchmark(16))[:31], ["generate"])) == 31
    # 30 may start at once, the next one after two seconds.
    assert 1.5 < time.monotonic() - started < 30


@pytest.mark.parametrize(
    ("style", "key", "value"),
    [
        (Style(), "messages", ["system", "user"]),
        (Style(system_role=False), "messages", ["user"]),
        (Style(min_temperature=0.01), "temperature", 0.01),
        (Style(token_parameter="max_completion_tokens"), "max_completion_tokens", 20),
        (Style(extra_body={"thinking_budget": 0}), "thinking_budget", 0),
    ],
)
def test_an_endpoint_is_asked_in_its_own_style(style: Style, key: str, value: object) -> None:
    endpoint = FakeEndpoint(parity)
    with serving(endpoint) as url:
        asked = judge(url, style=style)
        ask_all(asked, requests(benchmark(1))[:1], ["generate"])
    body = endpoint.bodies[0]
    sent = [m["role"] for m in body["messages"]] if key == "messages" else body[key]  # type: ignore[index, union-attr]
    assert sent == value
    assert "evaluation assistant" in body["messages"][0]["content"]  # type: ignore[index]


def test_a_key_is_hidden_before_a_message_is_cut() -> None:
    key = "0123456789secretwithoutapattern"
    said = RuntimeError(f"{'x' * 290} wrong key {key}")
    said.status_code = 400  # type: ignore[attr-defined]
    _, reason, _ = diagnose(said, lambda text: without_secrets(text.replace(key, "***")))
    assert "0123456789" not in reason
    assert len(reason) <= 310


def test_an_endpoint_from_the_environment_is_recorded_and_is_part_of_the_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    default = ApiJudge("m")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:7/v1")
    moved = ApiJudge("m")
    assert default.describe()["endpoint"] == "default"
    assert moved.describe()["endpoint"] == "http://localhost:7/v1"
    assert moved.name != default.name
    assert moved.name == ApiJudge("m", base_url="http://localhost:7/v1").name == "m@d9bfb5a9"
    assert str(moved.endpoint.client().base_url) == "http://localhost:7/v1/"


def test_a_reasoning_servers_text_without_an_end_of_thinking_is_no_answer(tmp_path: Path) -> None:
    rambling = FakeEndpoint(lambda text: "The answer must be YES, or")
    finished = FakeEndpoint(lambda text: "YES or NO? Not YES.</think>NO")
    for endpoint, decision in ((rambling, "UNCLEAR"), (finished, "NO")):
        with serving(endpoint) as url:
            asked = judge(url, style=Style(begins_thinking=True), logprobs=False)
            out = tmp_path / decision
            run_judge(asked, benchmark(2), out, ["generate"])
        assert set(read_log(out)["raw_decision"].to_pylist()) == {decision}


def test_an_error_of_ours_is_not_taken_for_the_endpoints() -> None:
    with pytest.raises(KeyError):
        diagnose(KeyError("ours"), without_secrets)


def test_an_inference_provider_is_asked_at_its_router_and_a_wrong_key_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefghijklmnop")
    for key, match in (("hf_abcdefghijklmnop", ""), ("another", "401")):
        endpoint = FakeEndpoint(parity, key=key)
        with serving(endpoint) as url:
            monkeypatch.setattr("local_judges.api.endpoint.ROUTER", url)
            asked = ApiJudge("org/model", provider="groq", key_variable="HF_TOKEN")
            assert "org/model at groq" in str(asked.endpoint)
            refused = pytest.raises(JudgeSenseError, match=match) if match else nullcontext()
            with refused as caught:
                run_judge(asked, benchmark(), tmp_path / key, ["generate"])
        assert "hf_abc" not in repr(caught)
        assert {body["model"] for body in endpoint.bodies} <= {"org/model:groq"}
    assert asked.describe()["endpoint"] == "groq"
