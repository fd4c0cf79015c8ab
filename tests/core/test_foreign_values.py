"""Values from elsewhere that no reader may pass on: each is refused with its place."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow as pa
import pytest

import judgesense
from judgesense.cli import main
from judgesense.comparison.verdicts import read_verdicts
from judgesense.errors import JudgeSenseError
from judgesense.files.tables import in_schema


@pytest.mark.parametrize("repeat", [2**31, 10**70, -1, 0.5])
def test_a_repeat_that_no_column_holds_is_refused(repeat: float, tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text(json.dumps({"item_id": "a", "verdict": "YES", "repeat": repeat}) + "\n")
    with pytest.raises(JudgeSenseError, match=r"v\.jsonl, line 1, repeat: "):
        read_verdicts(path)


def test_a_column_of_another_type_is_named() -> None:
    schema = pa.schema([("id", pa.string()), ("n", pa.int32())])
    good = pa.table({"n": pa.array([1], pa.int64()), "id": [7]})
    assert in_schema(good, schema, "t").to_pylist() == [{"id": "7", "n": 1}]
    for name, column in (
        ("id", pa.array([0], pa.timestamp("s"))),
        ("id", pa.array([{"a": 1}])),
        ("id", pa.array([True])),
        ("n", pa.array([2**40])),
        ("n", pa.array(["x"])),
    ):
        at = good.column_names.index(name)
        with pytest.raises(JudgeSenseError, match=f"t, {name}: "):
            in_schema(good.set_column(at, name, column), schema, "t")


def test_a_file_that_cannot_be_used_is_one_line(monkeypatch, capsys) -> None:
    def lost(**_: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", "gone.parquet")

    monkeypatch.setattr("judgesense.cli.app", lost)
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "gone.parquet" in capsys.readouterr().err


@pytest.mark.parametrize("n_options", [0, 27, 2.5, "4", None, True, math.nan])
def test_match_answers_names_a_wrong_number_of_options(n_options: object) -> None:
    with pytest.raises(JudgeSenseError, match="n_options"):
        judgesense.match_answers(["A"], ["A"], n_options=n_options)


@pytest.mark.parametrize("options", [3, iter([["x", "y"]]), {"x"}, [["x", 1]], ["xy"]])
def test_match_answers_names_options_that_are_no_texts(options: object) -> None:
    with pytest.raises(JudgeSenseError, match="options"):
        judgesense.match_answers(["A"], ["A"], options=options)
