"""Nothing is paid twice: answers are kept as they come, and what failed is asked again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from aiohttp import web
from fake_endpoint import FakeEndpoint, serving
from test_runner import benchmark, tells_parity

from judgesense.errors import JudgeSenseError
from judgesense.log.folder import read_record
from judgesense.log.schema import part_files, read_log
from judgesense.pipeline.execution import how_to_retry, run
from judgesense.recipes.recipe import Recipe
from judgesense_dataset.embedded import embedded_templates
from local_judges.api.endpoint import Retry
from local_judges.api.judge import ApiJudge
from local_judges.callable_judge import CallableJudge
from local_judges.improved_judge import ImprovedJudge
from local_judges.journal import Journal, journal_of
from local_judges.protocol import Answer
from local_judges.recipe_judge import RecipeJudge
from local_judges.runner import run_judge

IN_FLIGHT = 8


def parity(text: str) -> str:
    return tells_parity([text])[0]


def api(url: str, **options: object) -> ApiJudge:
    settings = {"concurrency": IN_FLIGHT, "base_url": url, **options}
    return ApiJudge("fake", retry=Retry(attempts=1, first_s=0.01), **settings)


SCRIPT = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    sys.path.insert(0, sys.argv[1])
    from test_recovery import api, benchmark, run_judge
    judge = api(sys.argv[2], price=(10.0, 10.0), max_cost=float(sys.argv[4]))
    run_judge(judge, benchmark(300), Path(sys.argv[3]), ["generate"])
    """
)


def command(url: str, out: Path, max_cost: float = 5.0) -> list[str]:
    here = str(Path(__file__).parent)
    return [sys.executable, "-c", SCRIPT, here, url, str(out), str(max_cost)]


def until_killed(endpoint: FakeEndpoint, words: list[str], how: int, more: int) -> int:
    """Run until the endpoint got so many more calls, then kill; the exit status."""
    before = len(endpoint.bodies)
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(endpoint.bodies) < before + more:
        time.sleep(0.005)
    process.send_signal(how)
    return process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_kill_costs_at_most_the_requests_in_flight(tmp_path: Path, how: int) -> None:
    endpoint, kills = FakeEndpoint(parity, delay_s=0.02), 0
    with serving(endpoint) as url:
        for _ in range(3):
            kills += until_killed(endpoint, command(url, tmp_path), how, 120) == -how
        subprocess.run(command(url, tmp_path), check=True, stderr=subprocess.DEVNULL)
    assert kills == 3
    assert 600 <= len(endpoint.bodies) <= 600 + kills * IN_FLIGHT
    assert read_log(tmp_path).num_rows == 600
    assert not [p for p in tmp_path.rglob("*.journal") if "answer" in p.read_text()]


@pytest.mark.slow
def test_max_cost_holds_over_crashes(tmp_path: Path) -> None:
    """Also the requests that were in flight at a crash are counted, at their highest cost."""
    endpoint, most = FakeEndpoint(parity, delay_s=0.02), 3.0
    with serving(endpoint) as url:
        words = command(url, tmp_path, most)
        for _ in range(3):
            until_killed(endpoint, words, signal.SIGKILL, 30)
        again = api(url, price=(10.0, 10.0), max_cost=most)
        run_judge(again, benchmark(300), tmp_path, ["generate"])
    sent = len(endpoint.bodies) * 52 * 10 / 1e6
    assert sent <= again.spent <= most


@pytest.mark.parametrize("status", [401, 402, 403, 404, 429])
def test_an_endpoint_that_refuses_all_discards_no_answer(tmp_path: Path, status: int) -> None:
    class Closing(FakeEndpoint):
        async def answer(self, body: dict[str, object]) -> web.StreamResponse:
            if 40 < len(self.bodies) < 1000:
                error = {"message": "no more", "code": "insufficient_quota"}
                return web.json_response({"error": error}, status=status)
            return await super().answer(body)

    endpoint = Closing(parity)
    with serving(endpoint) as url:
        with pytest.raises(JudgeSenseError, match=f"HTTP {status}"):
            run_judge(api(url), benchmark(60), tmp_path, ["generate"])
        assert not part_files(tmp_path)
        endpoint.bodies += [{}] * 1000  # The account is topped up.
        run_judge(api(url), benchmark(60), tmp_path, ["generate"])
    assert len(endpoint.bodies) - 1000 <= 120 + IN_FLIGHT
    assert read_log(tmp_path)["status"].to_pylist() == ["ok"] * 120


def test_answers_to_another_judge_or_under_another_scoring_are_not_taken(tmp_path: Path) -> None:
    part = "part-00-000-000000.parquet"
    Journal(tmp_path, "one", ["generate"]).keep(part, [("p", Answer(text="YES"))])
    with journal_of(tmp_path, part).open("a") as file:
        file.write('["answer", "torn')
    later = Journal(tmp_path, "one", ["generate"])
    later.keep(part, [("q", Answer(text="NO")), ("r", Answer(error="HTTP 500"))])
    later.sent(part, {"p": 0.5, "s": 0.25})
    kept = Journal(tmp_path, "one", ["generate"]).read(part)
    assert {identity: answer.text for identity, answer in kept.answers.items()} == {
        "p": "YES",
        "q": "NO",
    }
    assert kept.lost_usd == 0.75
    assert not Journal(tmp_path, "two", ["generate"]).read(part).answers
    assert not Journal(tmp_path, "one", ["options"]).read(part).answers
    later.read(part)
    later.drop(part)
    assert Journal(tmp_path, "one", ["generate"]).read(part).lost_usd == 0.75


def test_another_plan_takes_over_the_answers(tmp_path: Path) -> None:
    """A prompt more, and all parts are others: what was answered is not asked again."""
    endpoint = FakeEndpoint(parity)
    with serving(endpoint) as url:
        asked = api(url)
        journal = Journal(tmp_path / "decisions", asked.name, ["generate"])
        ids = benchmark(20).prompts["prompt_id"].to_pylist()
        journal.keep("part-00-000-000099.parquet", [(each, Answer(text="YES")) for each in ids])
        run_judge(asked, benchmark(21), tmp_path, ["generate"])
    assert len(endpoint.bodies) == 2


@pytest.fixture
def failing() -> tuple[CallableJudge, list[str]]:
    """A judge that fails on some prompts while it is ``broken``, and what it is asked."""
    asked: list[str] = []

    class Flaky(CallableJudge):
        answers_alone = True
        broken = True

        def _answer(self, request: object, reply: object) -> Answer:
            asked.append(request.text)  # type: ignore[attr-defined]
            if self.broken and len(request.text) % 3 == 0:  # type: ignore[attr-defined]
                return Answer(error="HTTP 503: out of service")
            return super()._answer(request, reply)  # type: ignore[arg-type]

    judge = Flaky(lambda texts: ["YES"] * len(texts), name="flaky", scoring="generate")
    return judge, asked


def test_the_same_command_asks_again_what_failed(
    tmp_path: Path, failing: tuple[CallableJudge, list[str]]
) -> None:
    judge, asked = failing

    def again() -> None:
        run(judge, tasks=["factuality"], limit=5, out=tmp_path / "run", note=str)

    again()
    failed = (read_record(tmp_path / "run") or {})["judges"][0]["failed"]
    assert failed
    assert how_to_retry(tmp_path / "run").startswith("rerun the same command")
    whole = read_log(tmp_path / "run").drop_columns(["latency_s"]).to_pylist()
    asked.clear()
    again()
    assert len(asked) == len(failed)
    judge.broken = False  # type: ignore[attr-defined]
    asked.clear()
    again()
    assert len(asked) == len(failed)
    mended = read_log(tmp_path / "run").drop_columns(["latency_s"]).to_pylist()
    kept = ("prompt_id", "item_id", "template_id", "order")
    assert [[row[n] for n in kept] for row in mended] == [[row[n] for n in kept] for row in whole]
    assert {row["status"] for row in mended} == {"ok"}
    asked.clear()
    again()
    assert not asked


def test_what_fails_for_good_is_asked_a_bounded_number_of_times(
    tmp_path: Path, failing: tuple[CallableJudge, list[str]]
) -> None:
    judge, asked = failing
    counts = []
    for retries in (3, 3, 3, 3, 3, 4, 4):
        asked.clear()
        run(
            judge,
            tasks=["factuality"],
            limit=5,
            out=tmp_path / "run",
            note=str,
            retry_failed=retries,
        )
        counts.append(len(asked))
    assert counts[1:] == [counts[1]] * 3 + [0, counts[1], 0]
    assert "--retry-failed 5" in how_to_retry(tmp_path / "run", 4)


def test_a_part_that_disappears_leaves_the_run_unfinished(tmp_path: Path) -> None:
    """Also one of an earlier judge, which nobody looks at any more."""
    out = tmp_path / "run"

    def removes(messages: list[str]) -> list[str]:
        for part in part_files(out):
            part.unlink()
        return ["YES"] * len(messages)

    first = CallableJudge(lambda texts: ["NO"] * len(texts), name="first", scoring="generate")
    second = CallableJudge(removes, name="second", scoring="generate", batch_size=1000)
    options = {"tasks": ["factuality"], "limit": 5, "out": out, "note": str}
    with pytest.raises(JudgeSenseError, match=r"part-00-000-000000.*removed.*rerun"):
        run([first, second], **options)
    assert "finished" not in json.loads((out / "run.json").read_text())
    rows = read_log(out).num_rows
    second = CallableJudge(lambda texts: ["YES"] * len(texts), name="second", scoring="generate")
    run([first, second], **options)
    assert read_log(out).num_rows == 2 * rows


def test_a_judges_file_pays_no_prompt_twice_either(tmp_path: Path) -> None:
    """A verdict of several wordings is made of answers that are kept one by one."""
    entry = embedded_templates()["factuality"]
    names = tuple(template.template_id for template in entry.templates[:3])
    recipe = Recipe("panel", names, entry.task.orders[:1], entry.task.labels, "vote")

    class Closing(FakeEndpoint):
        async def answer(self, body: dict[str, object]) -> web.StreamResponse:
            if 40 < len(self.bodies) < 1000:
                return web.json_response({"error": {"message": "no more"}}, status=402)
            return await super().answer(body)

    endpoint = Closing(lambda _: "YES")
    with serving(endpoint) as url:

        def judge() -> None:
            inner = api(url, logprobs=False, price=(10.0, 10.0))
            made = ImprovedJudge(({"name": inner.name},), entry, recipe, {})
            asked = RecipeJudge(made, inner)
            run(asked, tasks=["factuality"], limit=20, out=tmp_path, note=str, scoring="generate")
            spent.append(asked.spent)

        spent: list[float] = []
        with pytest.raises(JudgeSenseError, match="HTTP 402"):
            judge()
        endpoint.bodies += [{}] * 1000
        judge()
    assert 60 <= len(endpoint.bodies) - 1000 <= 60 + IN_FLIGHT
    # Each answer costs once; what was refused counts as what it could have cost.
    assert spent[0] >= 60 * 52 * 10 / 1e6
