"""Token caps compared, thinking left out of decisions, draws at a temperature."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.compute as pc
import pytest
from typer.testing import CliRunner

import judgesense
from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense.log.schema import read_log
from local_judges.callable_judge import CallableJudge
from local_judges.local.transformers_judge import TransformersJudge
from local_judges.protocol import Request
from local_judges.registry import resolve_each
from local_judges.runner import ask_all


def test_each_cap_is_a_judge_of_its_own() -> None:
    specs = resolve_each("smollm2-135m", max_tokens=[20, 2048], device="cpu")
    assert [spec.name for spec in specs] == ["smollm2-135m-max20", "smollm2-135m-max2048"]
    assert [spec.options["max_tokens"] for spec in specs] == [20, 2048]
    assert resolve_each("smollm2-135m", max_tokens=20)[0].name == "smollm2-135m"
    with pytest.raises(JudgeSenseError, match="caps must differ"):
        resolve_each("smollm2-135m", max_tokens=[20, 20])


@pytest.mark.slow
def test_the_seed_of_a_run_is_that_of_the_draws(tmp_path: Path) -> None:
    from fake_endpoint import FakeEndpoint, serving

    endpoint = FakeEndpoint(lambda text: "YES")
    with serving(endpoint) as url:
        result = CliRunner().invoke(
            app,
            [
                "run",
                "--judge",
                "m",
                "--set",
                f"base_url={url}",
                "--tasks",
                "factuality",
                "--limit",
                "1",
                "--scoring",
                "generate",
                "--set",
                "temperature=0.7",
                "--seed",
                "11",
                "--repeats",
                "2",
                "--verbose",
                "--out",
                str(tmp_path),
            ],
            catch_exceptions=False,
        )
    assert result.exit_code == 0, result.output
    assert {body["temperature"] for body in endpoint.bodies} == {0.7}
    assert {body["seed"] for body in endpoint.bodies} == {11, 12}
    assert "Each prompt repeated" in result.output


@pytest.mark.parametrize("caps", ["20,many", "0", "20,,30"])
def test_a_cap_that_is_no_number_is_refused(caps: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app,
        ["run", "--judge", "smollm2-135m", "--out", str(tmp_path), "--set", f"max_tokens={caps}"],
    )
    assert isinstance(result.exception, JudgeSenseError)
    assert "max_tokens" in str(result.exception)


def test_a_dry_run_says_what_an_endpoint_can_cost(tmp_path: Path) -> None:
    arguments = [
        "run",
        "--judge",
        "m",
        "--set",
        "base_url=http://localhost:1/v1",
        "--dry-run",
        "--out",
        str(tmp_path / "x"),
        "--set",
        "max_tokens=20,2000",
        "--set",
        "concurrency=64",
        "--set",
        "timeout_s=5",
        "--set",
        "retry_budget_s=60",
        "--set",
        "requests_per_minute=600",
    ]
    priced = CliRunner().invoke(app, [*arguments, "--set", "price=1,10"])
    assert priced.exit_code == 0, priced.output
    few, many = [line for line in priced.output.splitlines() if "at most $" in line]
    few_cost, many_cost = (float(line.split("$")[1].split(",")[0]) for line in (few, many))
    # 1,285 prompts, 1,980 tokens more each, at 10 dollars a million.
    assert many_cost - few_cost == pytest.approx(1285 * 1980 * 10 / 1e6, abs=0.02)
    assert "cost unknown: --set price" in CliRunner().invoke(app, arguments).output
    assert not (tmp_path / "x").exists()


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2 with a chat template that begins to think for it, and a special token for that."""
    folder = tmp_path_factory.mktemp("models") / "thinker"
    shutil.copytree(TransformersJudge("smollm2-135m").folder, folder)
    own = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    template = own.get("chat_template") or (folder / "chat_template.jinja").read_text("utf-8")
    begun = template.replace("<|im_start|>assistant\n'", "<|im_start|>assistant\n<think>\n'")
    assert begun != template
    own["chat_template"] = begun
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    (folder / "tokenizer_config.json").write_text(json.dumps(own), "utf-8")
    return folder


@pytest.mark.slow
def test_thinking_that_the_cap_cuts_off_is_truncated_and_decides_nothing(
    thinker: Path, tmp_path: Path
) -> None:
    notes: list[str] = []
    report = judgesense.run(
        str(thinker),
        tasks=["factuality"],
        limit=2,
        max_tokens=[4, 8],
        out=tmp_path,
        note=notes.append,
    )
    log = read_log(tmp_path)
    assert {name.split("@")[0] for name in log["judge"].to_pylist()} == {
        "thinker-max4",
        "thinker-max8",
    }
    assert log["scoring"].unique().to_pylist() == ["generate"]
    assert "thinker-max4" in notes[0]
    assert "offers only generate scoring" in notes[0]
    assert all(text.startswith("<think>") for text in log["raw_text"].to_pylist())
    cut = log.filter(pc.field("truncated"))
    assert cut.num_rows > 10
    assert cut["status"].unique().to_pylist() == ["unclear"]
    assert any("token cap" in text for text in report["advice"])


@pytest.mark.slow
def test_tags_that_are_special_tokens_stay_in_the_text(thinker: Path) -> None:
    from local_judges.protocol import Answer

    judge = TransformersJudge(thinker)
    judge.tokenizer.add_special_tokens({"additional_special_tokens": ["[THINK]", "[/THINK]"]})
    judge._tags = judge._thinking_tags()
    tokens = judge.tokenizer("[THINK]it is YES[/THINK]NO", add_special_tokens=False).input_ids
    answer = Answer()
    judge.write(answer, tokens, stopped=True)
    assert answer.text == "<think>\n[THINK]it is YES[/THINK]NO"
    assert judge.scorings == {"generate"}


@pytest.mark.slow
def test_draws_at_a_temperature_differ_by_repeat_and_seed_and_are_measured(tmp_path: Path) -> None:
    reports = []

    def texts(out: str, seed: int) -> list[str]:
        judge = TransformersJudge("smollm2-135m", temperature=0.8, seed=seed, max_tokens=3)
        reports.append(
            judgesense.run(
                judge,
                tasks=["preference"],
                scoring="generate",
                limit=2,
                repeats=2,
                seed=seed,
                orders=["AB"],
                out=tmp_path / out,
            )
        )
        rows = read_log(tmp_path / out).to_pylist()
        rows.sort(key=lambda row: (row["repeat"], row["prompt_id"]))
        return [row["raw_text"] for row in rows]

    first, other, again = texts("a", 1), texts("b", 2), texts("c", 1)
    assert first == again
    assert first != other
    assert first[: len(first) // 2] != first[len(first) // 2 :]
    mapped = next(e for e in reports[0]["repeated"] if e["labels"] == "mapped")
    assert (mapped["n_draws"], mapped["temperature"]) == (2, 0.8)
    assert mapped["noise_floor"] is not None


def test_the_exception_of_a_function_names_the_judge_and_the_prompt() -> None:
    def fails(messages: list[str]) -> list[str]:
        raise KeyError("absent")

    judge = CallableJudge(fails, name="mine")
    with pytest.raises(KeyError) as caught:
        ask_all(judge, [Request("p", "Is it so?", ("YES", "NO"))], ("generate",))
    (note,) = caught.value.__notes__
    assert "judge mine" in note
    assert "'Is it so?'" in note
