"""The tables of a result: records under field ids, headings and rounding only where printed."""

from __future__ import annotations

import csv
import io

import pytest

from judgesense.reporting.result import Result, Table


def test_ids_for_programs_and_headings_for_readers() -> None:
    rows = [
        {"judge": "a|b", "jss": 0.87654, "p_adjusted": 1e-9, "fair": True},
        {"judge": "c", "jss": None, "p_adjusted": 0.25, "fair": False},
    ]
    table = Table.from_records("jss", "Sensitivity", rows, p_adjusted="p, Holm")
    assert table.texts() == [["a|b", "0.877", "< 0.001", "yes"], ["c", "–", "0.250", "no"]]
    head, rule, first, _ = table.markdown().split("\n")
    assert head == "| judge | JSS | p, Holm | fair |"
    assert rule == "| --- | ---: | ---: | --- |"
    assert first == "| a\\|b | 0.877 | \\< 0.001 | yes |"
    assert list(csv.reader(io.StringIO(table.csv())))[2] == ["c", "", "0.25", "False"]
    written = Result("s", "S", {}, [table]).as_json()["tables"]["jss"]
    assert written["columns"] == ["judge", "jss", "p_adjusted", "fair"]
    assert written["headings"]["jss"] == "JSS"
    assert written["rows"][1] == rows[1]


@pytest.mark.parametrize("row", [{"judge": "a"}, {"judge": "a", "jss": 1.0, "more": 2}])
def test_a_row_that_lacks_or_adds_a_field_is_named(row: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"table t: .*judge"):
        Table.from_records("t", "T", [{"judge": "b", "jss": 0.5}, row])  # type: ignore[list-item]
