"""Sheets for raters and for readers of translations: CSV files out, CSV files in."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense.studies.sheets import read_sheets

Row = dict[str, str]


def invoke(*given: object) -> None:
    CliRunner().invoke(app, ["study", "rater-kit", *map(str, given)], catch_exceptions=False)


@pytest.fixture
def ratings(tmp_path: Path, essays: Path) -> Path:
    invoke(
        "--out", tmp_path / "kit", "--attributes", "organisation", "--source", f"essays={essays}"
    )
    return tmp_path / "kit"


def rows_of(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8-sig") as source:
        return list(csv.DictReader(source))


def write(path: Path, rows: list[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as sink:
        writer = csv.DictWriter(sink, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def fill(path: Path, answers: Callable[[Row], Row]) -> None:
    write(path, [row | answers(row) for row in rows_of(path)])


def measured(folder: Path) -> dict[str, Any]:
    return dict(read_sheets(folder).table("raters").rows[0])


def test_each_rater_gets_every_text_under_every_wording_in_an_order_of_their_own(
    ratings: Path,
) -> None:
    orders = []
    for path in sorted(ratings.glob("rater-*.csv")):
        rows = rows_of(path)
        assert len({(row["wording"], row["item_id"]) for row in rows}) == len(rows) == 6 * 5
        assert len({row["instruction"] for row in rows}) == 5
        assert all("Essay: Essay " in row["text"] and not row["score"] for row in rows)
        assert all(row["instruction"] not in row["text"] for row in rows)
        assert all(re.fullmatch(r"text-\d", row["item_id"]) for row in rows)  # no system's name
        wordings = [row["wording"] for row in rows]
        assert sum(one != other for one, other in pairwise(wordings)) == 4
        orders.append([(row["wording"], row["item_id"]) for row in rows])
    assert len(orders) == 3
    assert orders[0] != orders[1]


def test_filled_in_files_give_the_shares_that_the_paper_reports(ratings: Path) -> None:
    """Raters 1 and 2 keep their scores, rater 3 moves on three of six texts: 15 of 18."""
    files = sorted(ratings.glob("rater-*.csv"))
    items = sorted({row["item_id"] for row in rows_of(files[0])})

    def third(row: Row) -> Row:
        moves = items.index(row["item_id"]) < 3 and row["wording"].endswith("base")
        return {"score": "6" if moves else "4"}

    fill(files[0], lambda row: {"score": "4"})
    fill(files[1], lambda row: {"score": "4.0"})
    fill(files[2], third)
    found = measured(ratings)
    assert found["intra_consistency"] == pytest.approx(15 / 18)
    assert found["exact_agreement"] == pytest.approx(27 / 30)
    assert found["paper_intra_consistency"] == pytest.approx(0.556)
    assert (found["n_scores"], found["n_missing"]) == (90, 0)
    first = rows_of(files[0])[0]["item_id"]
    fill(files[0], lambda row: {"score": "" if row["item_id"] == first else "4"})
    found = measured(ratings)
    assert (found["n_scores"], found["n_missing"]) == (85, 5)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: [rows[0] | {"score": "7"}, *rows[1:]], "row 1, column score: '7' is not"),
        (lambda rows: [rows[0] | {"text": "Mine."}, *rows[1:]], "row 1: not a row of this"),
        (lambda rows: [rows[0] | {"row": "900"}, *rows[1:]], "row 1: not a row of this"),
        (lambda rows: [*rows, rows[0]], "row 31: not a row of this kit, or its second copy"),
        (lambda rows: rows[:-1], "is missing"),
        (lambda rows: [{k: v for k, v in r.items() if k != "score"} for r in rows], "not a row"),
        (lambda rows: rows, "has a score"),
    ],
)
def test_wrong_sheets_are_named_with_file_and_row(
    ratings: Path, change: Callable[[list[Row]], list[Row]], said: str
) -> None:
    write(ratings / "rater-1.csv", change(rows_of(ratings / "rater-1.csv")))
    with pytest.raises(JudgeSenseError, match=said):
        read_sheets(ratings)


def test_kits_that_cannot_be_written_or_read_are_refused(ratings: Path, tmp_path: Path) -> None:
    with pytest.raises(JudgeSenseError, match="already holds a kit"):
        invoke("--out", ratings, "--source", f"essays={tmp_path / 'essays.csv'}",
               "--attributes", "organisation")  # fmt: skip
    with pytest.raises(JudgeSenseError, match="holds no kit"):
        read_sheets(tmp_path)
    for content in ('{"rows": {}}', "[]", '{"rows": {}, "human": {"1": Infinity}}'):
        (ratings / "kit.json").write_text(content)
        with pytest.raises(JudgeSenseError, match=r"kit\.json"):
            read_sheets(ratings)
