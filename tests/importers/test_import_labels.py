"""How stray answers are kept out of an imported task's labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from judgesense.importers.log import import_log


def answers(tmp_path: Path, *said: str, gold: str = "") -> dict[str, Any]:
    lines = [f"m,t,{n},a,{answer},{gold}" for n, answer in enumerate(said)]
    source = tmp_path / "log.csv"
    source.write_text("\n".join(["judge,task,item_id,template_id,raw_decision,gold", *lines]))
    return import_log(source, "table", tmp_path / "out")


@pytest.mark.parametrize(
    ("said", "labels", "stray"),
    [
        (["YES", "NO", "YES", "maybe"], ["YES", "NO"], "maybe"),
        (["1", "5", "4", "N/A"], ["1", "2", "3", "4", "5"], "N/A"),
        (["A", "B", "A", "tie then"], ["A", "B"], "tie then"),
        (["good"] * 60 + ["bad"] * 60 + ["god"], ["good", "bad"], "god"),
        (["YES", "NO", "7"], ["YES", "NO"], "7"),
    ],
)
def test_a_stray_answer_is_unclear_and_no_label(
    said: list[str], labels: list[str], stray: str, tmp_path: Path
) -> None:
    record = answers(tmp_path, *said)
    assert record["tasks"]["t"]["labels"] == labels
    assert record["not_labels"]["t"] == {stray: 1}


def test_letters_of_several_options_are_all_labels(tmp_path: Path) -> None:
    assert answers(tmp_path, *"ABCDABCA")["tasks"]["t"]["labels"] == ["A", "B", "C", "D"]
