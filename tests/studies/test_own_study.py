"""``judgesense study run FILE.yaml``: bad files name line and key; a real one runs end to end."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean, pstdev

import pyarrow as pa
import pytest

from judgesense.decisions.log import SCHEMA
from judgesense.errors import JudgeSenseError
from judgesense.statistics.intervals import wilson_cluster
from judgesense.studies.custom import _accuracy, load_plan, run_plan, run_study
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
    ("old", "new", "said"),
    [
        ("scoring: options", "scorings: options", r"line 4: unknown key 'scorings'"),
        ("scoring: options", "scoring: guess", r"line 4: unknown scoring 'guess'"),
        ("scoring: options", "repeats: none", r"line 4: repeats must be a number, got 'none'"),
        ("scoring: options", "repeats: 0", r"line 4: repeats must be at least 1"),
        ("scoring: options", "measures: [jss, truth]", r"line 4: unknown measures 'truth'"),
        ("scoring: options", "orders: [CD]", r"line 4: unknown orders 'CD'"),
        ("scoring: options", "design: half", r"line 4: unknown design 'half'"),
        ("items: tone.jsonl", "items: none.jsonl", r"line 1: no file .*none\.jsonl"),
        ("items: tone.jsonl", "title: x", r"missing key 'items'"),
        ("judges: [smollm2-135m]", "judges: []", r"line 3: judges"),
        ("judges: [smollm2-135m]", "judges: [{model: x}]", r"line 3: missing key 'name'"),
        ("templates: politeness.yaml", "seed: 1", r"give either 'templates' .* or 'tasks'"),
        (
            "scoring: options",
            "measures: [accuracy]",
            r"line 4: the measure accuracy needs at least 3 judges, got 1",
        ),
    ],
)
def test_a_file_that_cannot_be_run_names_the_line(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    with pytest.raises(JudgeSenseError, match=said):
        load_plan(_file(tmp_path, GOOD.replace(old, new)))


def test_a_template_without_its_placeholder_names_the_line(tmp_path: Path) -> None:
    text = GOOD.replace(
        "templates: politeness.yaml",
        'tasks:\n  tone:\n    labels: [POLITE, RUDE]\n    layout: "{message}"\n    templates: []',
    )
    with pytest.raises(JudgeSenseError, match=r"mine\.yaml, line 5: .*\{instruction"):
        load_plan(_file(tmp_path, text))


def test_a_column_that_the_items_lack_names_the_row_before_judging(tmp_path: Path) -> None:
    path = _file(tmp_path, GOOD)
    (tmp_path / "tone.jsonl").write_text('{"item_id": "x", "text": "Hello"}\n')
    with pytest.raises(JudgeSenseError, match=r"tone\.jsonl, line 1: .*'message'"):
        run_study(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_judge_can_be_given_with_its_settings(tmp_path: Path) -> None:
    text = GOOD.replace("[smollm2-135m]", "[{name: smollm2-135m, temperature: 1.0}]")
    (judge,) = load_plan(_file(tmp_path, text + "seed: 7\n")).judges
    assert judge.identity()["temperature"] == 1.0
    assert judge.identity()["seed"] == 7


def test_what_is_judged_fixes_a_study_and_nothing_else(tmp_path: Path) -> None:
    path = _file(tmp_path, GOOD)
    before = load_plan(path).identity
    path.write_text(GOOD + "title: Another\nmeasures: [jss]\n")
    assert load_plan(path).identity == before
    templates = tmp_path / "politeness.yaml"
    templates.write_text(templates.read_text().replace("One word", "A single word"))
    assert load_plan(path).identity != before
    inline = "tasks:\n" + "\n".join(templates.read_text().splitlines()[1:])
    path.write_text(GOOD.replace("templates: politeness.yaml", inline))
    written_out = load_plan(path).identity
    path.write_text(path.read_text().replace("A single word", "One word"))
    assert load_plan(path).identity != written_out


@pytest.mark.slow
def test_the_example_runs_and_measures_again_without_a_model(tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "judgesense", "study", "run", str(EXAMPLES / "tone-study.yaml"),
        "--out", str(tmp_path / "tone"),
    ]  # fmt: skip
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


def _judge(name: str, wrong: Mapping[str, int]) -> CallableJudge:
    """Right but for the first so many messages under each wording, told by a word of it."""
    gold = [json.loads(line) for line in (EXAMPLES / "tone.jsonl").read_text("utf-8").splitlines()]
    at = {row["message"]: n for n, row in enumerate(gold)}

    def answers(messages: list[str]) -> list[str]:
        said = []
        for text in messages:
            wording, message = text.split("\n\nMessage: ")
            (errs,) = (count for word, count in wrong.items() if word in wording)
            rude = (gold[at[message]]["gold"] == "RUDE") != (at[message] < errs)
            said.append(("YES" if rude else "NO") if "offend" in wording else
                        ("RUDE" if rude else "POLITE"))  # fmt: skip
        return said

    return CallableJudge(answers, name=name)


@pytest.mark.slow
def test_three_judges_with_gold_get_a_row_each_of_accuracy_over_wordings(tmp_path: Path) -> None:
    plan = load_plan(_file(tmp_path, GOOD.replace("options", "generate")))
    wrong = {
        "good": {"polite or rude": 0, "tone": 2, "offend": 4},
        "fair": {"polite or rude": 6, "tone": 3, "offend": 9},
        "poor": {"polite or rude": 12, "tone": 12, "offend": 12},
    }
    judges = tuple(_judge(name, counts) for name, counts in wrong.items())
    result = run_plan(dataclasses.replace(plan, judges=judges), tmp_path / "out")
    found = {row["judge"].split("@")[0]: row for row in result.table("accuracy").rows}
    gold = [json.loads(line) for line in (EXAMPLES / "tone.jsonl").read_text("utf-8").splitlines()]
    for name, counts in wrong.items():
        row, by_wording = found[name], [1 - n / 24 for n in counts.values()]
        hits = [n >= errs for errs in counts.values() for n in range(24)]
        interval = wilson_cluster(hits, [each["cluster_id"] for each in gold] * 3)
        assert row["accuracy"] == pytest.approx(fmean(by_wording))
        assert (row["ci_low"], row["ci_high"]) == pytest.approx((interval.low, interval.high))
        assert row["ci_low"] < row["accuracy"] < row["ci_high"]
        assert row["std"] == pytest.approx(pstdev(by_wording))
        assert row["range"] == pytest.approx(max(by_wording) - min(by_wording))
        assert row["mean_spearman"] == pytest.approx(1.0)


@pytest.mark.slow
def test_a_limit_counts_the_items_that_were_judged(tmp_path: Path) -> None:
    plan = load_plan(_file(tmp_path, GOOD.replace("options", "generate") + "limit: 4\n"))
    judge = _judge("good", {"polite or rude": 0, "tone": 0, "offend": 0})
    result = run_plan(dataclasses.replace(plan, judges=(judge,)), tmp_path / "out")
    assert result.settings["items"] == 4


def test_judges_whose_logs_have_other_orders_of_wordings_are_ranked_under_the_same_one() -> None:
    # Under every wording a is best and c worst; b's log begins with the last wording.
    right = {"t1": (9, 8, 0), "t2": (7, 3, 1), "t3": (4, 3, 2)}
    rows = [
        {
            "judge": judge, "task": "fact", "scoring": "generate", "item_id": f"i{n}",
            "cluster_id": f"i{n}", "template_id": template, "order": "-", "repeat": 0,
            "prompt_id": f"{template} {n}", "status": "ok", "gold": "YES", "truncated": False,
        } | dict.fromkeys(("raw_decision", "decision"), "YES" if n < right[template][at] else "NO")
        for at, (judge, order) in enumerate(
            [("a@1", ("t1", "t2", "t3")), ("b@1", ("t3", "t2", "t1")), ("c@1", ("t1", "t2", "t3"))]
        )
        for template in order
        for n in range(10)
    ]  # fmt: skip
    table = _accuracy(pa.Table.from_pylist(rows, schema=SCHEMA))
    found = {row["judge"]: row["mean_spearman"] for row in table.rows}
    assert found == pytest.approx({"a": 1.0, "b": 1.0, "c": 1.0})
