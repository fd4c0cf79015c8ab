"""The raters' kit: CSV files out, CSV files in."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judgesense.errors import JudgeSenseError
from judgesense.studies.paraphrase_robustness.rater_kit import read_kit, write_kit

ROWS = 30
"""Six texts under five wordings."""


@pytest.fixture
def essays(tmp_path: Path) -> Path:
    path = tmp_path / "essays.csv"
    with path.open("w", newline="", encoding="utf-8") as sink:
        writer = csv.writer(sink)
        writer.writerow(["assignment", "essay", "organisation"])
        for number in range(1, 13):
            essay = f"Essay {number} says, in its own way, that cats are better than dogs."
            writer.writerow(["Cats or dogs?", essay, 1 + number % 6])
    return path


@pytest.fixture
def kit(tmp_path: Path, essays: Path) -> Path:
    folder = tmp_path / "kit"
    write_kit(folder, attributes=["organisation"], data={"essays": str(essays)})
    return folder


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8-sig") as source:
        return list(csv.DictReader(source))


def write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as sink:
        writer = csv.DictWriter(sink, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def fill(path: Path, score: Callable[[dict[str, str]], object]) -> None:
    write(path, [{**row, "score": str(score(row))} for row in rows_of(path)])


def measured(folder: Path) -> dict[str, Any]:
    return dict(read_kit(folder).table("raters").rows[0])


def test_each_rater_gets_every_text_under_every_wording_in_an_order_of_their_own(kit: Path) -> None:
    orders = []
    for path in sorted(kit.glob("rater-*.csv")):
        rows = rows_of(path)
        assert len({(row["wording"], row["item_id"]) for row in rows}) == len(rows) == ROWS
        assert len({row["instruction"] for row in rows}) == 5
        assert all("Essay: Essay " in row["text"] and not row["score"] for row in rows)
        assert all(row["instruction"] not in row["text"] for row in rows)
        assert all(re.fullmatch(r"text-\d", row["item_id"]) for row in rows)  # no system's name
        orders.append([(row["wording"], row["item_id"]) for row in rows])
    assert len(orders) == 3
    assert orders[0] != orders[1]


def test_filled_in_files_give_the_shares_that_the_paper_reports(kit: Path) -> None:
    """Raters 1 and 2 keep their scores, rater 3 moves on three of six texts: 15 of 18."""
    files = sorted(kit.glob("rater-*.csv"))
    items = sorted({row["item_id"] for row in rows_of(files[0])})

    def third(row: dict[str, str]) -> int:
        moves = items.index(row["item_id"]) < 3 and row["wording"].endswith("base")
        return 6 if moves else 4

    fill(files[0], lambda row: 4)
    fill(files[1], lambda row: "4.0")
    fill(files[2], third)
    found = measured(kit)
    assert found["intra_consistency"] == pytest.approx(15 / 18)
    assert found["exact_agreement"] == pytest.approx(27 / 30)
    assert found["paper_intra_consistency"] == pytest.approx(0.556)
    assert (found["n_scores"], found["n_missing"]) == (90, 0)


def test_texts_that_were_not_rated_are_counted_and_left_out(kit: Path) -> None:
    files = sorted(kit.glob("rater-*.csv"))
    for path in files:
        fill(path, lambda row: 3)
    first = rows_of(files[0])[0]["item_id"]
    fill(files[0], lambda row: "" if row["item_id"] == first else 3)
    found = measured(kit)
    assert (found["n_scores"], found["n_missing"]) == (85, 5)
    assert found["intra_consistency"] == found["exact_agreement"] == 1.0


def test_a_score_off_the_scale_is_named_with_its_file_and_row(kit: Path) -> None:
    for path in kit.glob("rater-*.csv"):
        fill(path, lambda row: 3)
    fill(kit / "rater-2.csv", lambda row: 7)
    with pytest.raises(JudgeSenseError, match=r"rater-2\.csv, row 1, column score: '7' is off"):
        read_kit(kit)


def test_a_changed_a_missing_and_a_doubled_row_are_errors(kit: Path) -> None:
    path = kit / "rater-1.csv"
    rows = rows_of(path)
    write(path, [{**rows[0], "wording": "mine"}, *rows[1:]])
    with pytest.raises(JudgeSenseError, match=r"row 1: .* not a row of this kit"):
        read_kit(kit)
    write(path, rows[:-1])
    with pytest.raises(JudgeSenseError, match=r"is missing \(1 in all\)"):
        read_kit(kit)
    write(path, [*rows, rows[-1]])
    with pytest.raises(JudgeSenseError, match=r"row 31: .* appears twice"):
        read_kit(kit)
    write(path, [{name: row[name] for name in row if name != "score"} for row in rows])
    with pytest.raises(JudgeSenseError, match="the column 'score' is missing"):
        read_kit(kit)


def test_a_folder_with_a_kit_is_not_written_over(kit: Path, essays: Path) -> None:
    with pytest.raises(JudgeSenseError, match="already holds a kit"):
        write_kit(kit, attributes=["organisation"], data={"essays": str(essays)})
    with pytest.raises(JudgeSenseError, match="holds no kit"):
        read_kit(kit.parent)


def test_a_seed_that_cannot_be_is_refused_before_a_text_is_read(tmp_path: Path) -> None:
    with pytest.raises(JudgeSenseError, match="seed"):
        write_kit(tmp_path / "kit", seed=-1)
    assert not (tmp_path / "kit").exists()
