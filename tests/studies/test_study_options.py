"""The options and the help of the study commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from judgesense.cli import app
from judgesense.cli.options import configured
from judgesense.errors import JudgeSenseError
from local_judges.responder import _resolved

STUDIES = ("judge-sensitivity", "paraphrase-robustness", "answer-matching", "prompt-ranking")


def help_of(*command: str) -> str:
    result = CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    return " ".join(result.output.split())


@pytest.mark.parametrize("command", [*STUDIES, "run"])
def test_help_names_the_exit_codes_and_writes_defaults_in_one_way(command: str) -> None:
    said = help_of("study", command)
    assert said.count("Exit codes:") == 1


def test_defaults_that_depend_on_the_study_are_shown() -> None:
    assert "by default 50,100,200" in help_of("study", "prompt-ranking")
    assert "by default all" in help_of("study", "judge-sensitivity")


@pytest.mark.parametrize("command", STUDIES)
def test_every_study_takes_the_options_of_the_engine(command: str, tmp_path: Path) -> None:
    judge = "--responder" if command in STUDIES[2:] else "--judge"
    given = ["study", command, judge, "smollm2-135m", "--set", "colour=red", "--out", str(tmp_path)]
    with pytest.raises(JudgeSenseError, match="colour"):
        CliRunner().invoke(app, given, catch_exceptions=False)


def test_settings_reach_the_judge_and_the_responder() -> None:
    assert configured(["smollm2-135m"], None) == ["smollm2-135m"]
    (spec,) = configured(["smollm2-135m"], ["dtype=bfloat16"])
    assert spec.options["dtype"] == "bfloat16"
    made = _resolved(spec, {"max_tokens": 7, "temperature": None, "seed": 3}, {})
    expected = {"dtype": "bfloat16", "max_tokens": 7, "seed": 3, "system_prompt": ""}
    assert {name: made.options[name] for name in expected} == expected
    assert made.options["temperature"] == 0.0


def test_a_setting_that_has_a_flag_is_refused_with_it() -> None:
    flags = {"max_tokens": "--answer-tokens"}
    with pytest.raises(JudgeSenseError, match="--set max_tokens: use --answer-tokens"):
        configured(["smollm2-135m"], ["max_tokens=5"], flags)
