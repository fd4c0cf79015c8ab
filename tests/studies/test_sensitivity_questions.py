"""The judge-sensitivity study's open questions: what is counted, what is refused, what is said."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from judgesense.decisions.log import SCHEMA, write_part
from judgesense.errors import JudgeSenseError
from judgesense.studies.judge_sensitivity import judge_sensitivity
from judgesense.studies.judge_sensitivity.findings import claims
from judgesense.studies.judge_sensitivity.grid import ask, make_plan
from judgesense.studies.judge_sensitivity.log import read_judged
from judgesense.studies.judge_sensitivity.open_findings import open_findings
from judgesense.studies.judge_sensitivity.open_logs import consensus_results
from local_judges.registry import resolve


def decision(judge: str, item: int, template: str, said: str, **more: Any) -> dict[str, Any]:
    return {
        "judge": f"{judge}@1", "task": "fact", "scoring": "generate", "item_id": f"i{item}",
        "cluster_id": f"i{item}", "template_id": template, "order": "-", "repeat": 0,
        "prompt_id": f"{template} {item} {more.get('order')}", "raw_decision": said,
        "decision": said, "status": "ok", "gold": "YES", "truncated": False,
    } | more  # fmt: skip


def log_of(folder: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    table = pa.Table.from_pylist(list(rows), schema=SCHEMA)
    write_part(table, folder / "decisions", "part-0.parquet")
    names = dict.fromkeys(table["judge"].to_pylist())
    record = {"run_id": "r", "judges": [{"name": name, "describe": {}} for name in names]}
    (folder / "run.json").write_text(json.dumps(record))
    return folder


def consensus_of(folder: Path, votes: Mapping[str, list[str]]) -> tuple[dict[str, Any], list[str]]:
    """The table's row and the sentences; ``votes`` are each judge's, two wordings an item."""
    rows = [
        decision(judge, at // 2, f"t{at % 2}", word)
        for judge, words in votes.items()
        for at, word in enumerate(words)
    ]
    found = consensus_results(read_judged(log_of(folder, rows)))
    (row,) = found[0].rows
    return dict(row), open_findings({"consensus": found[0]})


def test_a_panel_that_only_ties_make_consistent_is_not_called_more_consistent(
    tmp_path: Path,
) -> None:
    # Two judges never waver. The other two flip together on half of the 20 items: there the panel
    # has YES under one wording and a tie under the other.
    waver = ["YES", "YES", "YES", "NO"] * 10
    row, said = consensus_of(
        tmp_path, {"s1": ["YES"] * 40, "s2": ["YES"] * 40, "w1": waver, "w2": waver}
    )
    assert row["panel_jss"] == 1.0 > row["mean_jss"] == 0.75
    assert (row["panel_n_pairs"], row["panel_undecided"]) == (10, 0.5)
    assert (row["panel_jss_low"], row["panel_jss_high"]) == (0.5, 1.0)
    assert "in 0 of 1 cases; in 1 more" in said[-1]


def test_a_panel_without_ties_is_called_more_consistent(tmp_path: Path) -> None:
    waver = ["YES", "YES", "YES", "NO"] * 10
    row, said = consensus_of(tmp_path, {"s1": ["YES"] * 40, "s2": ["YES"] * 40, "w1": waver})
    assert (row["panel_n_pairs"], row["panel_undecided"]) == (20, 0.0)
    assert row["panel_jss_low"] == row["panel_jss"] == row["panel_jss_high"] == 1.0
    assert said[-1].endswith("in 1 of 1 cases")


def test_statements_about_the_first_position_name_the_orders_of_the_run(tmp_path: Path) -> None:
    for name, orders in {"both": ("AB", "BA"), "one": ("AB",)}.items():
        rows = [
            decision("a", item, template, "A", task="preference", order=order, gold=None)
            for item in range(4)
            for template in ("t1", "t2")
            for order in orders
        ]
        table = claims(read_judged(log_of(tmp_path / name, rows)), {})
        (ours,) = (row["here"] for row in table.rows if "always say A" in str(row["statement"]))
        assert ours == {"both": "1 of 1 (both orders)", "one": "1 of 1 (order AB only)"}[name]


def warm_plan(questions: list[str] | None) -> Any:
    judges = [resolve("smollm2-135m", temperature=0.7)]
    return make_plan(judges, None, questions, None, None, None, (), None, None, False, 0)


def test_a_judge_with_a_temperature_of_its_own_has_no_greedy_text_to_compare_with() -> None:
    with pytest.raises(JudgeSenseError, match=r"temperature of smollm2-135m \(0\.7\)"):
        warm_plan(["temperature"])
    plan = warm_plan(None)
    assert "temperature" not in plan.questions
    assert any(text.startswith("not asked: temperature (") for text in plan.left_out)


def test_a_question_without_an_answer_and_a_size_without_a_judge_are_said(tmp_path: Path) -> None:
    rows = [decision("a", item, t, "YES") for item in range(4) for t in ("t1", "t2")]
    log = log_of(tmp_path / "log", rows)
    asked = ["orders", "consensus", "variance", "sampled"]
    result = judge_sensitivity(log=log, out=tmp_path / "out", questions=asked)
    for question in ("orders", "consensus", "sampled"):
        assert any(text.startswith(f"{question} is not answered") for text in result.limits)
    assert not any("variance" in text for text in result.limits)
    with pytest.raises(JudgeSenseError, match=r"--parameters b: unknown judge; choose from a$"):
        judge_sensitivity(log=log, out=tmp_path / "out", questions=[], sizes={"b": 1e9})
    with pytest.raises(JudgeSenseError, match="--parameters b: unknown judge"):
        judge_sensitivity(["smollm2-135m"], out=tmp_path / "out", questions=[], sizes={"b": 1e9})
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_asking_the_validators_leaves_the_dataset_as_it_is(tmp_path: Path) -> None:
    from judgesense_dataset import validation
    from judgesense_dataset.build import build_dataset
    from judgesense_dataset.load import load_pairs
    from judgesense_dataset.sources.own import OwnData
    from judgesense_dataset.templates import DATA

    folder = tmp_path / "set"
    own = OwnData(path=DATA / "coherence.jsonl")
    build_dataset(["own"], folder, own=own, own_task="coherence", items=None, verdicts=False)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    # A finished validation of this set, so that no model is needed.
    rows = load_pairs(folder).to_pylist()
    place = tmp_path / "runs" / "validators"
    votes = {validation.POLARITY: [validation.Vote(True)] * len(rows)}
    inputs = validation._inputs(rows, (), (), per_item=False)
    validation._write(place, rows, votes, {"inputs": inputs})
    plan = make_plan(
        [lambda texts: ["3"] * len(texts)], str(folder), ["validators"], None, None, None, (),
        None, None, False, 0,
    )  # fmt: skip
    found = ask("validators", plan, tmp_path / "runs", lambda _: None)
    assert isinstance(found, list)
    assert len(found) == len(rows)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_flips_when_reworded_count_items_alike_and_are_not_one_less_jss(tmp_path: Path) -> None:
    rows = []
    for item in (0, 1):
        for order in ("AB", "BA"):
            for name in ("t1", "t2", "t3"):
                # The same option in both orders; t3 chooses the other on item 0, nothing on item 1.
                said = "A" if (order == "AB") != (name == "t3") else "B"
                said = "UNCLEAR" if name == "t3" and item else said
                given = {"task": "preference", "order": order, "gold": "A"}
                status = "unclear" if said == "UNCLEAR" else "ok"
                rows.append(decision("j", item, name, said, **given, status=status))
    log = log_of(tmp_path / "log", rows)
    result = judge_sensitivity(log=log, out=tmp_path / "out", questions=["orders"])
    (row,) = result.table("orders").rows
    assert row["jss"] == result.table("table_1").rows[0]["jss"] == pytest.approx(0.5)
    # Two of three pairs of item 0, none of item 1.
    assert row["flips_reworded"] == pytest.approx((2 / 3 + 0) / 2)
