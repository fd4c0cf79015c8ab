"""``judgesense study run FILE.yaml``: bad files name line and key; a real one runs end to end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from judgesense.errors import JudgeSenseError
from judgesense.reporting.study_result import Result
from judgesense.studies.custom import run_study
from local_judges.callable_judge import CallableJudge

EXAMPLES = Path(__file__).parents[2] / "examples"

GOOD = """\
items: tone.jsonl
templates: politeness.yaml
judges: [smollm2-135m]
scoring: options
"""


def _file(folder: Path, text: str) -> Path:
    for name in ("tone.jsonl", "politeness.yaml"):
        (folder / name).write_text((EXAMPLES / name).read_text("utf-8"), "utf-8")
    path = folder / "mine.yaml"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("scoring: options", "scorings: options", "line 4: .*scorings"),
        ("scoring: options", "scoring: guess", "line 4: scoring"),
        ("scoring: options", "repeats: none", "line 4: repeats"),
        ("scoring: options", "repeats: 0", "line 4: repeats"),
        ("scoring: options", "measures: [jss, truth]", "line 4: measures"),
        ("scoring: options", "orders: [CD]", "line 4: orders"),
        ("scoring: options", "design: half", "line 4: design"),
        ("scoring: options", "variants: [jsno]", "variants: unknown variant 'jsno'"),
        ("items: tone.jsonl", "items: none.jsonl", r"items: no file .*none\.jsonl"),
        ("items: tone.jsonl", "title: x", "missing key 'items'"),
        ("judges: [smollm2-135m]", "judges: []", "line 3: judges"),
        ("judges: [smollm2-135m]", "judges: [{model: x}]", "line 3: "),
        ("judges: [smollm2-135m]", "judges: [no-such]", "unknown judge 'no-such'"),
        ("templates: politeness.yaml", "seed: 1", "give either 'templates' .* or 'tasks'"),
    ],
)
def test_a_file_that_cannot_be_run_names_the_line(
    tmp_path: Path, old: str, new: str, place: str
) -> None:
    with pytest.raises(JudgeSenseError, match=place):
        run_study(_file(tmp_path, GOOD.replace(old, new)), tmp_path / "out")


def test_a_template_without_its_placeholder_names_the_line(tmp_path: Path) -> None:
    text = GOOD.replace(
        "templates: politeness.yaml",
        'tasks:\n  tone:\n    labels: [POLITE, RUDE]\n    layout: "{message}"\n    templates: []',
    )
    with pytest.raises(JudgeSenseError, match=r"mine\.yaml, line 5: .*\{instruction"):
        run_study(_file(tmp_path, text), tmp_path / "out")


def test_a_column_that_the_items_lack_names_the_row_before_judging(tmp_path: Path) -> None:
    path = _file(tmp_path, GOOD)
    (tmp_path / "tone.jsonl").write_text('{"item_id": "x", "text": "Hello"}\n')
    with pytest.raises(JudgeSenseError, match=r"tone\.jsonl, line 1: .*'message'"):
        run_study(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_new_title_or_measure_needs_no_new_judging(tmp_path: Path) -> None:
    asked: list[str] = []

    def says_rude(messages: list[str]) -> list[str]:
        asked.extend(messages)
        return ["RUDE"] * len(messages)

    path = _file(tmp_path, text := GOOD.replace("options", "generate") + "limit: 4\n")
    judges = [CallableJudge(says_rude)]
    run_study(path, tmp_path / "out", judges=judges)
    once = len(asked)
    path.write_text(text + "title: Another\nmeasures: [jss]\n")
    result = run_study(path, tmp_path / "out", judges=judges)
    assert (result.title, len(asked)) == ("Another", once)
    templates = tmp_path / "politeness.yaml"
    templates.write_text(templates.read_text().replace("One word", "A single word"))
    with pytest.raises(JudgeSenseError, match="templates"):
        run_study(path, tmp_path / "out", judges=judges)


@pytest.mark.slow
def test_the_example_runs_and_measures_again_without_a_model(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "judgesense",
        "study",
        "run",
        str(EXAMPLES / "tone-study.yaml"),
        "--out",
        str(tmp_path / "tone"),
    ]
    env = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    saved = json.loads((tmp_path / "tone" / "study.json").read_text("utf-8"))
    rows = saved["tables"]["jss"]["rows"]
    assert len(rows) == 2
    assert len({row["judge"] for row in rows}) == 2
    for row in rows:
        assert row["ci_low"] <= row["jss"] <= row["ci_high"]
        assert row["noise_floor"] is not None, "two repeats give a noise floor"
    systems = saved["tables"]["systems"]["rows"]
    assert {row["template"] for row in systems} == {"ask", "rate", "offend"}
    assert (tmp_path / "tone" / "figures" / "jss.svg").stat().st_size > 1000
    # No model can be found now, and none is needed.
    again = subprocess.run(
        command, capture_output=True, text=True, env={**env, "XDG_CACHE_HOME": str(tmp_path / "no")}
    )
    assert again.stdout == done.stdout
    assert "prompts/s" not in again.stderr


def test_two_judges_by_golden_tables(tmp_path: Path, golden: Callable[[Result, str], None]) -> None:
    gold = [json.loads(line) for line in (EXAMPLES / "tone.jsonl").read_text("utf-8").splitlines()]
    rude = {row["message"] for row in gold if row["gold"] == "RUDE"}

    def right(messages: list[str]) -> list[str]:
        yes = ("YES", "NO")
        asked = [text.split("\n\nMessage: ") for text in messages]
        return [
            (yes if "offend" in wording else ("RUDE", "POLITE"))[message not in rude]
            for wording, message in asked
        ]

    def late(messages: list[str]) -> list[str]:
        return [
            "POLITE" if "tone" in text else one
            for text, one in zip(messages, right(messages), strict=True)
        ]

    text = GOOD.replace("options", "generate") + "limit: 16\n"
    path = _file(tmp_path, text + "measures: [jss, wordings, systems, flips]\n")
    judges = [CallableJudge(function) for function in (right, late)]
    result = run_study(path, tmp_path / "out", judges=judges)
    assert result.settings["items"] == 16
    golden(result, "own-study")
