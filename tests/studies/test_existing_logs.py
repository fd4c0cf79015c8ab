"""Decision logs written by hand: which rows belong together, and which are independent."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from judgesense.cli import app
from judgesense.decisions.log import SCHEMA, write_part
from judgesense.errors import JudgeSenseError
from judgesense.studies.common.result import Result
from judgesense.studies.paraphrase_robustness.log_panels import plurality
from judgesense.studies.paraphrase_robustness.logs import measure_log


def row(judge: str, item: str, template: str, said: str, gold: str, **more: Any) -> dict[str, Any]:
    return {
        "judge": judge, "task": "fact", "scoring": "generate", "item_id": item, "cluster_id": item,
        "template_id": template, "order": "-", "repeat": 0, "prompt_id": f"{item} {template}",
        "raw_decision": said, "decision": said, "status": "ok", "gold": gold, "truncated": False,
    } | more  # fmt: skip


def written(folder: Path, rows: Iterable[dict[str, Any]]) -> Path:
    write_part(
        pa.Table.from_pylist(list(rows), schema=SCHEMA), folder / "decisions", "part-0.parquet"
    )
    (folder / "run.json").write_text(json.dumps({"run_id": folder.name}))
    return folder


def test_a_commonest_label_is_right_and_a_tie_counts_its_share() -> None:
    nan = float("nan")
    votes = np.array([[0, 0, 2, 2], [0, 2, 2, nan], [0, 1, 2, nan], [0, 0, 2, 1], [0, 2, nan, nan]])
    # Codes are names: of one vote for 0 and one for 2, none is for 1.
    gold = np.array([2, 2, 1, 1, 1])
    assert plurality(votes, gold) == pytest.approx([1 / 2, 1, 1 / 3, 0, 0])


def test_a_task_whose_labels_are_names_leaves_the_scale_of_another(tmp_path: Path) -> None:
    def rows() -> Iterable[dict[str, Any]]:
        said = {"grade": ("1", "5", "5", "1"), "mood": ("bad", "good", "so-so", "so-so")}
        gold = {"grade": "3", "mood": "good"}
        for task, words in said.items():
            for item, (judge, at), template in product("xyz", enumerate("pqrs"), ("1", "2")):
                # Under the second wording two labels are tied for the lead.
                word = "good" if task == "mood" and (template, judge) == ("2", 0) else words[judge]
                yield row(at, item, template, word, gold[task], task=task)

    found = measure_log(written(tmp_path / "log", rows()))
    right = {(one["set"], one["strategy"]): one["accuracy"] for one in found.table("panels").rows}
    assert right["grade", "panel, mean"] == 1.0  # the mean of 1, 5, 5 and 1
    assert right["grade", "panel, majority"] == 0.0
    assert ("mood", "panel, mean") not in right
    assert right["mood", "panel, majority"] == pytest.approx((0 + 1 / 2) / 2)
    said = next(text for text in found.findings if text.startswith("exact accuracy"))
    assert "mean of 2 sets" in said
    assert "panel, mean 1.000 (of 1)" in said
    # p says bad, then good: a tie of two labels of which one is right.
    judges = {one["judge"]: one for one in found.table("judges").rows}
    assert judges["p"]["majority_accuracy"] == pytest.approx((0 + 1 / 2) / 2)


def test_text_and_options_of_one_judge_are_measured_apart(tmp_path: Path) -> None:
    rows = [
        row("p", item, template, "YES" if scoring == "options" else "NO", "YES", scoring=scoring)
        for scoring, item, template in product(("options", "generate"), "xyz", "12")
    ]
    found = measure_log(written(tmp_path / "log", rows))
    table = found.table("configurations").rows
    assert {one["set"]: one["accuracy"] for one in table} == {
        "fact, generate": 0.0, "fact, options": 1.0
    }  # fmt: skip


def test_the_intervals_of_a_configuration_are_over_what_items_share(tmp_path: Path) -> None:
    def ends(name: str, twins: int, shared: bool) -> tuple[Any, ...]:
        rows = [
            row("p", f"{question}/{twin}", template, "YES" if question else "NO", "YES",
                cluster_id=str(question) if shared else None)
            for question, twin, template in product(range(4), range(twins), "12")
        ]  # fmt: skip
        (one,) = measure_log(written(tmp_path / name, rows)).table("configurations").rows
        return one["ci_low"], one["ci_high"], one["n_items"]

    alone, shared, apart = ends("a", 1, False), ends("s", 3, True), ends("n", 3, False)
    assert shared[:2] == pytest.approx(alone[:2])
    assert apart[0] > alone[0]
    assert (alone[2], shared[2]) == (4, 12)


def configurations(found: Result) -> dict[Any, dict[str, Any]]:
    """The rows of the configurations by set and judge."""
    return {(one["set"], one["judge"]): one for one in found.table("configurations").rows}


def test_tasks_with_wordings_of_their_own_name_the_best_and_the_worst_of_all(
    tmp_path: Path,
) -> None:
    rows = [
        row("p", f"{task}{item}", f"{task}-{wording}", "YES" if item < wording else "NO", "YES",
            task=task)
        for task, item, wording in product("xyz", range(4), (1, 3))
    ]  # fmt: skip
    (one,) = measure_log(written(tmp_path / "log", rows)).table("judges").rows
    assert (one["best_template"], one["worst_template"]) == ("x-3 +0.250", "x-1 −0.250")


COUNTS = ("n_templates", "n_items", "n_left_out", "fewer_items")


def test_a_missing_row_leaves_out_its_item_and_no_wording(tmp_path: Path) -> None:
    """`b` lacks an answer or two under two of three wordings, and most of them under a fourth."""
    lacks = {("2", 3), ("3", 4), ("3", 5)} | {("4", item) for item in range(8, 20)}
    rows = [
        row(judge, f"i{item}", wording, "YES" if (item + int(wording)) % 3 else "NO", "YES")
        for judge, item, wording in product("ab", range(20), "1234")
        if judge == "a" or (wording, item) not in lacks
    ]
    rows += [row("c", f"i{item}", "1", "YES", "YES") for item in range(20)]
    result = measure_log(written(tmp_path / "log", rows))
    found = configurations(result)
    a, b = found["fact", "a"], found["fact", "b"]
    assert tuple(a[name] for name in COUNTS) == (4, 20, 0, "–")
    assert tuple(b[name] for name in COUNTS) == (3, 17, 3, "4 (40%)")
    limits = "; ".join(result.limits)
    assert "less than 90%: 4 (40% in 1 configuration)" in limits
    assert "c on fact" in limits


def test_a_judge_of_few_items_is_no_best_judge(tmp_path: Path) -> None:
    # Seven judges answer three of every seven items each, and none answers half.
    rows = [
        row(f"j{(item + place) % 7}", f"i{item}", "1", "4" if (item + place) % 7 == 3 else "3", "4")
        for item, place in product(range(21), range(3))
    ]
    rows += [row("a", f"k{item}", "1", "4", "4") for item in range(3)]  # beside no other judge
    result = measure_log(written(tmp_path / "log", rows))
    strategies = [one["strategy"] for one in result.table("panels").rows]
    assert strategies[0] == "mean single judge"
    assert not [name for name in strategies if name.startswith("best judge")]
    assert "no judge decided two items under two templates" in "; ".join(result.limits)
    json.dumps(result.as_json(), allow_nan=False)


def test_repetitions_in_a_log_are_counted_as_left_out_and_not_denied(tmp_path: Path) -> None:
    def limits(name: str, repeats: int) -> str:
        rows = [
            row("p", item, wording, "YES", "YES", repeat=repeat)
            for item, wording, repeat in product("xyz", "12", range(repeats))
        ]
        return "; ".join(measure_log(written(tmp_path / name, rows)).limits)

    assert "no prompt is repeated" in limits("once", 1)
    thrice = limits("thrice", 3)
    assert "no prompt is repeated" not in thrice
    assert "12 answers to repeated prompts are left out" in thrice


def test_a_log_can_be_measured_without_panels(tmp_path: Path) -> None:
    rows = [row(judge, item, "1", "YES", "YES") for judge, item in product("pqr", "xyz")]
    log = written(tmp_path / "log", rows)
    assert measure_log(log).table("panels").rows
    with pytest.raises(JudgeSenseError, match="under two templates"):
        measure_log(log, panel=False)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--judge", "gpt-4o"], "leave out --judge, or leave out --log"),
        (["--tasks", "essays", "--scoring", "options"], "leave out --tasks, --scoring, or leave"),
        (["--fuser", "gpt-4o", "--seed", "0", "--quick"], "leave out --fuser, --quick, --seed"),
    ],
)
def test_options_of_judging_are_refused_beside_a_log(
    tmp_path: Path, given: list[str], said: str
) -> None:
    out = tmp_path / "out"
    rows = [row(judge, item, "1", "YES", "YES") for judge, item in product("pqr", "xyz")]
    log = written(tmp_path / "log", rows)
    study = ["study", "paraphrase-robustness", "--out", str(out)]
    refused = CliRunner().invoke(app, [*study, "--log", str(log), *given])
    assert (refused.exit_code, isinstance(refused.exception, JudgeSenseError)) == (1, True)
    assert said in str(refused.exception)
    assert not out.exists()


def test_options_of_logs_are_heeded_beside_a_log_and_refused_without(tmp_path: Path) -> None:
    out = tmp_path / "out"
    rows = [
        row(judge, item, wording, "YES", "YES")
        for judge, item, wording in product("pqr", "xyz", "12")
    ]
    study = ["study", "paraphrase-robustness", "--out", str(out)]
    log = ["--log", str(written(tmp_path / "log", rows)), "--tolerance", "1", "--by", "task"]
    done = CliRunner().invoke(app, [*study, *log, "--no-panel"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "Every judge on every set" in done.output
    assert "Panels of the judges" not in done.output
    refused = CliRunner().invoke(app, [*study, "--judge", "gpt-4o", "--by", "task"])
    assert "--by is for --log" in str(refused.exception)


def test_a_panel_gains_over_judges_that_count_alike_each_on_its_own_items(tmp_path: Path) -> None:
    # On 20 items, a and b are right on the even ones, c on all; d answers four even ones, wrongly.
    said = {
        "a": {n: n % 2 == 0 for n in range(20)},
        "b": {n: n % 2 == 0 for n in range(20)},
        "c": dict.fromkeys(range(20), True),
        "d": dict.fromkeys((0, 2, 4, 6), False),
    }
    rows = [
        row(judge, f"i{n}", "t", "YES" if right else "NO", "YES")
        for judge, own in said.items()
        for n, right in own.items()
    ]
    found = measure_log(written(tmp_path / "log", rows))
    panels = {one["strategy"].split(":")[0]: one for one in found.table("panels").rows}
    assert panels["mean single judge"]["accuracy"] == pytest.approx((0.5 + 0.5 + 1 + 0) / 4)
    assert panels["mean single judge"]["gain"] is None
    # The majority is right on the ten even items.
    assert panels["panel, majority"]["accuracy"] == 0.5
    assert panels["panel, majority"]["gain"] == pytest.approx((0 + 0 - 0.5 + 1) / 4)
    assert panels["best judge"]["accuracy"] == 1.0
    assert panels["best judge"]["gain"] == pytest.approx((0.5 + 0.5 + 0 + 1) / 4)
