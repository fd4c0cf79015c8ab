"""The tables of a result: records under field ids, headings and rounding only where printed."""

from __future__ import annotations

import csv
import io

import pytest

from judgesense.reporting.result import Column, Result, Table

COLUMNS = ("judge", Column("jss", "JSS"), Column("share", digits=1))


def test_ids_for_programs_and_headings_for_readers() -> None:
    table = Table("jss", "Sensitivity", COLUMNS, [("a|b", 0.87654, 0.5), ("c", None, 0.25)])
    assert table.rows[0] == {"judge": "a|b", "jss": 0.87654, "share": 0.5}
    assert table.texts() == [["a|b", "0.877", "0.5"], ["c", "–", "0.2"]]
    head, rule, first, _ = table.markdown().split("\n")
    assert head == "| judge | JSS | share |"
    assert rule == "| --- | ---: | ---: |"
    assert first == "| a\\|b | 0.877 | 0.5 |"
    assert list(csv.reader(io.StringIO(table.csv()))) == [
        ["judge", "jss", "share"], ["a|b", "0.87654", "0.5"], ["c", "", "0.25"],
    ]  # fmt: skip
    written = Result("s", "S", {}, [table]).as_json()["tables"]["jss"]
    assert written["columns"] == ["judge", "jss", "share"]
    assert written["headings"]["jss"] == "JSS"
    assert written["rows"][1] == {"judge": "c", "jss": None, "share": 0.25}


@pytest.mark.parametrize("row", [{"judge": "a"}, {"judge": "a", "jss": 1.0, "more": 2}])
def test_a_row_that_lacks_or_adds_a_field_is_named(row: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"table t, row 1.*(jss|more)"):
        Table("t", "T", ["judge", "jss"], [{"judge": "b", "jss": 0.5}, row])  # type: ignore[list-item]


def test_a_p_value_never_prints_as_zero() -> None:
    table = Table("t", "T", ["p_adjusted"], [(1e-9,), (0.25,), (None,)])
    assert table.texts() == [["< 0.001"], ["0.250"], ["–"]]


def test_ids_are_checked() -> None:
    with pytest.raises(ValueError, match="raw JSS"):
        Column("raw JSS")
    with pytest.raises(ValueError, match="twice"):
        Table("t", "T", ["judge", "judge"], [{"judge": "a"}])
    with pytest.raises(ValueError, match="row 0"):
        Table("t", "T", ["judge"], [("a", 1)])
