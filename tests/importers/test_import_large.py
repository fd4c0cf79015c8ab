"""Logs that are read, spooled and written in several chunks."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgesense.errors import JudgeSenseError
from judgesense.files import tables as table_files
from judgesense.importers import build
from judgesense.importers.log import import_log
from judgesense.log.schema import read_log

HEADER = "judge,task,item_id,template_id,raw_decision,raw_text,gold"


def _rows(n: int) -> list[str]:
    return [
        f"j{i % 2},t,q{i // 4},w{i // 2 % 2},{['YES', 'no'][i // 4 % 2]},text {i},{gold}"
        for i, gold in enumerate((["YES"] * 4 + ["NO"] * 4) * (n // 8))
    ]


@pytest.fixture
def chunked(monkeypatch) -> None:
    monkeypatch.setattr(table_files, "AT_ONCE", 3)
    monkeypatch.setattr(build, "_ROWS", 5)


def _write(folder: Path, rows: list[str]) -> Path:
    file = folder / "log.csv"
    file.write_text("\n".join([HEADER, *rows]) + "\n")
    return file


def test_a_log_in_chunks_is_the_log_in_one(tmp_path, monkeypatch) -> None:
    file = _write(tmp_path, _rows(24))
    whole = import_log(file, "table", tmp_path / "whole")
    monkeypatch.setattr(table_files, "AT_ONCE", 3)
    monkeypatch.setattr(build, "_ROWS", 5)
    found = import_log(file, "table", tmp_path / "parts")
    assert list(found["parts"].values()) == [5, 5, 5, 5, 4]
    assert read_log(tmp_path / "parts").equals(read_log(tmp_path / "whole"))
    same = ("tasks", "counts", "judges", "orders", "repeats", "without_gold")
    assert [found[key] for key in same] == [whole[key] for key in same]


@pytest.mark.usefixtures("chunked")
def test_a_repeated_row_of_an_earlier_chunk_is_named(tmp_path) -> None:
    rows = _rows(24)
    file = _write(tmp_path, [*rows, rows[2]])
    with pytest.raises(JudgeSenseError, match=r"row 25: .* already, in .*log\.csv, row 3;"):
        import_log(file, "table", tmp_path / "out")


@pytest.mark.usefixtures("chunked")
def test_an_import_that_fails_late_leaves_no_part(tmp_path) -> None:
    file = _write(tmp_path, [*_rows(24), "j,t,q99,w0,YES,text,MAYBE"])
    with pytest.raises(JudgeSenseError, match="row 25, gold: 'MAYBE' is not one of the labels"):
        import_log(file, "table", tmp_path / "out", labels=["YES", "NO"])
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == []


def test_parts_of_another_log_are_not_mixed_in(tmp_path) -> None:
    parts = tmp_path / "out" / "decisions"
    parts.mkdir(parents=True)
    (parts / "part-00007.parquet").write_bytes(b"of another log")
    with pytest.raises(JudgeSenseError, match=r"part-00007\.parquet, which no run\.json mentions"):
        import_log(_write(tmp_path, _rows(8)), "table", tmp_path / "out")
    assert [path.name for path in parts.iterdir()] == ["part-00007.parquet"]


@pytest.mark.parametrize(
    ("second", "third", "error"),
    [
        ("j,t,2,w,YES,NEITHER", "j,t,1,w,NO,AB", r"row 2, order: .*'NEITHER'"),
        ("j,t,1,w,NO,AB", "j,t,2,w,NO,AB", r"row 2: .* already, in .*log\.csv, row 1;"),
        ("j,t,2,w,NO,AB", "j,t,3,w", r"row 3 \(line 4\): 4 cells, but the header has 6"),
        ("j,,2,w,NO,AB", "j,t,3,w", r"row 2: no task"),
    ],
)
def test_the_first_wrong_row_is_named_whatever_is_wrong(tmp_path, second, third, error) -> None:
    file = tmp_path / "log.csv"
    header = "judge,task,item_id,template_id,raw_decision,order"
    file.write_text("\n".join([header, "j,t,1,w,YES,AB", second, third]) + "\n")
    with pytest.raises(JudgeSenseError, match=error):
        import_log(file, "table", tmp_path / "out")
