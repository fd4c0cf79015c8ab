"""Judges by name: what the papers state, a file of one's own, and errors before any work."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from judge_file import no_file_of_ones_own, own_file  # noqa: F401  (a fixture)
from typer.testing import CliRunner

import judgesense
from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from local_judges.judge_files import entries
from local_judges.registry import resolve

PAPER_FILES = {
    "judge-sensitivity": "judgesense.txt",
    "paraphrase-robustness": "all_prompts_created_equal.txt",
    "answer-matching": "artifact_or_flaw.txt",
    "prompt-ranking": "prompt_ranking_stability.txt",
}


def test_quotes_and_models_are_those_of_the_papers(shared: Path) -> None:
    assert {paper for judge in entries().values() for paper in judge.papers} == {
        *PAPER_FILES,
        "published-results",
    }
    elsewhere = {"gpt-4o-mini", "claude-sonnet-4-5", "gemini-2.0-flash"}
    for name, file in PAPER_FILES.items():
        text = (shared / "papers" / file).read_text("utf-8").replace("\\", "")
        for judge in entries().values():
            if quoted := judge.papers.get(name):
                words = quoted.split(" [")[0].split(": ")[-1].split(" via ")[0].split(" (")[0]
                assert words.split(";")[0] in text, (judge.name, words)
                if judge.model and judge.name not in elsewhere:
                    assert judge.model.rpartition("/")[2].casefold() in text.casefold()


def test_a_model_of_which_no_source_states_an_id_is_left_blank_and_asks_for_one() -> None:
    blank = {judge.name for judge in entries().values() if judge.model is None}
    assert blank == {
        "gpt-5.5",
        "claude-opus-4-7",
        "qwen-3.6-flash",
        "deepseek-v4-flash",
        "llama-4",
        "magistral-medium",
    }
    with pytest.raises(JudgeSenseError, match=r"gpt-5.5 needs --set model=ID, which no source"):
        resolve("gpt-5.5")
    with pytest.raises(JudgeSenseError, match=r"--set model=ID and --set base_url=URL"):
        resolve("qwen-3.6-flash")
    spec = resolve("qwen-3.6-flash", model="qwen3.6", base_url="http://localhost:1/v1")
    assert (spec.name, spec.model, spec.engine) == ("qwen-3.6-flash", "qwen3.6", "api")


@pytest.mark.parametrize(
    ("wrong", "first"),
    [
        ("gpt4o", "gpt-4o"),
        ("claude-haiku", "claude-haiku-4-5"),
        ("qwen", "qwen-2.5-72b-instruct"),
        ("mistral-7B", "mistral-7b"),
    ],
)
def test_a_wrong_name_lists_the_names_the_close_ones_first(wrong: str, first: str) -> None:
    with pytest.raises(JudgeSenseError) as raised:
        resolve(wrong)
    assert f"did you mean {first}" in str(raised.value)
    assert "judgesense judges list" in str(raised.value)


@pytest.mark.parametrize(
    ("judge", "options", "says"),
    [
        ("gpt-4o", {"dtype": "float32"}, r"dtype: unknown option of the engine api"),
        ("smollm2-135m", {"price": (1.0, 2.0)}, r"price: unknown option of the engine transf"),
        ("gpt-4o", {"engine": "transformers"}, "is at an endpoint"),
        ("smollm2-135m", {"model": "other"}, "--set model=other needs an endpoint"),
        ("org/model", {"model": "other"}, "--set model=other needs an endpoint"),
        ("gpt-4o", {"style": {"sytem_role": False}}, r"style\.sytem_role: unknown option"),
        ("gpt-4o", {"style": {"sends_seed": "false"}}, r"style\.sends_seed: must be a valid bool"),
        ("gpt-4o", {"concurrency": "8"}, r"judge gpt-4o: concurrency: must be a valid int"),
        ("gpt-4o", {"requests_per_minute": 0.5}, r"requests_per_minute: must be greater"),
        ("org/model", {"temperature": "hot"}, r"judge org/model: temperature: must be a number"),
        ("gpt-4o", {"engine": "abacus"}, "unknown engine 'abacus'"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_loaded(
    judge: str, options: dict[str, object], says: str
) -> None:
    with pytest.raises(JudgeSenseError, match=says):
        resolve(judge, **options)  # type: ignore[arg-type]


def test_show_tells_all_and_marks_published_figures(command_line: Any) -> None:
    shown = command_line("judges", "show", "mistral-7b", COLUMNS="20").stdout
    assert "mistral-small-latest (a name that may come to mean another checkpoint)" in shown
    assert "$MISTRAL_API_KEY" in shown
    assert "measured with other wordings" in shown
    assert "0.480" in shown
    assert "metrics_summary.json, as mistral-7b" in shown
    wrong = command_line("judges", "show", "mistral7b")
    assert wrong.returncode == 2
    assert "did you mean mistral-7b" in wrong.stderr


LOCAL = """
judges:
  our-local:
    engine: transformers
    model: org/m
    options: {revision: abc, system_prompt: X, max_tokens: 50, temperature: 0.7, device: cpu}
"""


@pytest.mark.parametrize(
    ("engine", "kept"),
    [
        ("vllm", {"revision", "system_prompt", "max_tokens", "temperature"}),
        ("api", {"system_prompt", "max_tokens", "temperature"}),
    ],
)
def test_a_named_judge_keeps_its_options_under_another_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, kept: set[str]
) -> None:
    own_file(tmp_path, monkeypatch, LOCAL)
    more = {"base_url": "http://localhost:1/v1"} if engine == "api" else {}
    spec = resolve("our-local", engine=engine, max_tokens=60, **more)
    assert set(spec.options) - {"base_url"} == kept
    assert (spec.options["max_tokens"], spec.options["temperature"]) == (60, 0.7)


def test_a_style_from_the_command_line_adds_to_the_named_one() -> None:
    assert resolve("deepseek-r1", style={"begins_thinking": True}).options["style"] == {
        "system_role": False,
        "begins_thinking": True,
    }
    assert resolve("deepseek-r1", style={"system_role": True}).options["style"] == {
        "system_role": True
    }


def test_the_seed_of_a_run_reaches_a_judge_whose_file_says_that_it_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fake_endpoint import FakeEndpoint, serving

    judge = "judges:\n  draws:\n    engine: api\n    model: m\n    options: {temperature: 0.7}\n"
    own_file(tmp_path, monkeypatch, judge)
    examples = Path(__file__).parents[2] / "examples"
    own = {"templates": examples / "politeness.yaml", "items": examples / "politeness.jsonl"}
    endpoint = FakeEndpoint(lambda _: "POLITE")
    with serving(endpoint) as url:
        asked = {**own, "base_url": url, "scoring": "generate", "limit": 2, "seed": 7}
        judgesense.run("draws", **asked, out=tmp_path / "run", note=str)
    assert {body["seed"] for body in endpoint.bodies} == {7}
    assert (
        json.loads((tmp_path / "run" / "run.json").read_text())["asked"]["judges"][0]["seed"] == 7
    )


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--set", "max_tokens"], "--set max_tokens: expected KEY=VALUE"),
        (["--set", "dtype=float32", "--set", "dtype=bfloat16"], "dtype is set twice"),
        (["--set", "max_token=5"], "did you mean max_tokens"),
        (["--set", "temperature=[1"], "invalid YAML"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_to_write(given: list[str], says: str) -> None:
    done = CliRunner().invoke(app, ["run", "-j", "gpt-4o", "-o", "x", "--dry-run", *given])
    assert isinstance(done.exception, JudgeSenseError)
    assert says in str(done.exception)


@pytest.mark.parametrize(("given", "near"), [(["runn"], "'run'"), (["judges", "lst"], "'list'")])
def test_a_wrong_command_is_one_line(given: list[str], near: str, command_line: Any) -> None:
    done = command_line(*given)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, near in line) == (2, True)


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        ("./absent", r"no such folder or file$"),
        ("openai/gpt-4o-mini", "an API serves this model; use --judge gpt-4o-mini"),
    ],
)
def test_what_is_neither_a_name_nor_a_model_here(judge: str, message: str) -> None:
    with pytest.raises(JudgeSenseError, match=message):
        resolve(judge)


def test_the_list_is_plain_and_whole_where_it_is_no_terminal(command_line: Any) -> None:
    listed = command_line("judges", "list", COLUMNS="20").stdout.splitlines()
    assert len([line for line in listed if " " in line]) >= len(entries())
    for judge in entries().values():
        assert any(line.startswith(judge.name) and (judge.model or "") in line for line in listed)
