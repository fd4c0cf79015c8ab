"""The options and the help of the study commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from judgesense.cli import app
from judgesense.cli.options import configured
from judgesense.errors import JudgeSenseError
from local_judges.responder import _resolve_responder

STUDIES = ("judge-sensitivity", "paraphrase-robustness", "answer-matching", "prompt-ranking")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["study", "prompt-ranking", "--out", "x", "--sizes", "a"], "--sizes must be numbers"),
        (["publish", "space", "--repo", "a/b", "--org", "a"], "--org is no flag of publish space"),
        (["publish", "results", "d", "--no-audit"], "--no-audit is no flag of publish results"),
        (["publish", "dataset", "d"], "--repo ORG/NAME is missing"),
        (["publish", "dataset", "--repo", "a/b"], "publish dataset takes one folder, got 0"),
        (["publish", "metrics"], "publish metrics needs --org ORG"),
        (["judges", "show"], "expected judges list, judges list --options or judges show NAME"),
    ],
)
def test_a_flag_of_another_kind_is_refused(given: list[str], says: str) -> None:
    with pytest.raises(JudgeSenseError, match=says):
        CliRunner().invoke(app, given, catch_exceptions=False)


@pytest.mark.parametrize("command", STUDIES)
def test_every_study_takes_the_options_of_the_engine(command: str, tmp_path: Path) -> None:
    judge = "--responder" if command in STUDIES[2:] else "--judge"
    given = ["study", command, judge, "smollm2-135m", "--set", "colour=red", "--out", str(tmp_path)]
    with pytest.raises(JudgeSenseError, match="colour"):
        CliRunner().invoke(app, given, catch_exceptions=False)


def test_settings_reach_the_judge_and_the_responder() -> None:
    assert configured(["smollm2-135m"], {}) == ["smollm2-135m"]
    (spec,) = configured(["smollm2-135m"], {"dtype": "bfloat16"})
    assert spec.options["dtype"] == "bfloat16"
    made = _resolve_responder(spec, {"max_tokens": 7, "temperature": None, "seed": 3}, {})
    expected = {"dtype": "bfloat16", "max_tokens": 7, "seed": 3, "system_prompt": ""}
    assert {name: made.options[name] for name in expected} == expected
    assert made.options["temperature"] == 0.0
