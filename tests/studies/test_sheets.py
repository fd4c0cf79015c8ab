"""Sheets for raters and for readers of translations: CSV files out, CSV files in."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense.studies.sheets import read_sheets, translation_kit, write_sheets
from judgesense_dataset.embedded import load_embedded
from judgesense_dataset.templates import LANGUAGE_FILES

Row = dict[str, str]


def invoke(*given: object) -> None:
    CliRunner().invoke(app, ["study", "rater-kit", *map(str, given)], catch_exceptions=False)


@pytest.fixture
def ratings(tmp_path: Path, essays: Path) -> Path:
    invoke(
        "--out", tmp_path / "kit", "--attributes", "organisation", "--source", f"essays={essays}"
    )
    return tmp_path / "kit"


@pytest.fixture
def translations(tmp_path: Path) -> Path:
    invoke("--out", tmp_path / "kit", "--language", "es", "--raters", 2)
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


def test_readings_of_a_translation_are_counted_by_task(translations: Path) -> None:
    rows = rows_of(translations / "rater-1.csv")
    assert len(rows) == 81
    first = rows[0]["text_id"]

    def answers(row: Row) -> Row:
        if row["text_id"] == first:
            return {"same_meaning": "no", "natural": "YES", "correction": "¿Es correcto?"}
        return {"same_meaning": "YES", "natural": "yes"}

    fill(translations / "rater-1.csv", answers)
    fill(translations / "rater-2.csv", lambda row: {
        "same_meaning": "YES", "natural": "NO" if row["part"] == "layout" else "YES"
    })  # fmt: skip
    result = read_sheets(translations)
    marks = result.table("marks").rows
    assert [row["n_wrong"] for row in marks] == [1, 0, 0, 0]
    assert [row["n_unnatural"] for row in marks] == [1, 1, 1, 1]
    assert sum(int(row["n_read"]) for row in marks) == 81  # type: ignore[arg-type]
    assert len(result.table("corrections").rows) == 5


@pytest.mark.parametrize("language", LANGUAGE_FILES)
def test_every_text_of_a_language_has_its_english_source(language: str) -> None:
    rows = list(translation_kit(language, None).rows.values())
    assert len({(row["text_id"], row["part"]) for row in rows}) == len(rows)
    parts = [row["part"] for row in rows]
    assert (parts.count("instruction"), parts.count("layout")) == (20, 4)
    items = {row["text_id"] for row in rows if row["part"] not in ("instruction", "layout")}
    assert len(items) == {"de": 200, "es": 25, "zh": 25}.get(language, 0)
    assert all(row["english"] and row["translation"] for row in rows)


def test_a_limit_keeps_the_wordings_and_the_first_items() -> None:
    kit = translation_kit("de", 2).rows.values()
    rows = [row for row in kit if row["task"] == "relevance"]
    assert [row["part"] for row in rows].count("instruction") == 5
    assert len(rows) == 5 + 1 + 2 * 3
    assert load_embedded("embedded-de").source["translation"] == "machine-made, read by nobody"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: [rows[0] | {"same_meaning": "maybe"}, *rows[1:]], "row 1, column same_mean"),
        (lambda rows: [rows[0] | {"same_meaning": "YES"}, *rows[1:]], "row 1, column natural"),
        (lambda rows: [rows[0] | {"translation": "Mine."}, *rows[1:]], "row 1: not a row of this"),
        (lambda rows: [rows[0] | {"row": "900"}, *rows[1:]], "row 1: not a row of this"),
        (lambda rows: [*rows, rows[0]], "row 82: row 1 appears twice"),
        (lambda rows: rows[:-1], "row 81 is missing"),
        (lambda rows: [{k: v for k, v in r.items() if k != "natural"} for r in rows], "'natural'"),
        (lambda rows: rows, "has answers"),
    ],
)
def test_wrong_sheets_are_named_with_file_and_row(
    translations: Path, change: Callable[[list[Row]], list[Row]], said: str
) -> None:
    write(translations / "rater-1.csv", change(rows_of(translations / "rater-1.csv")))
    with pytest.raises(JudgeSenseError, match=said):
        read_sheets(translations)


def test_kits_that_cannot_be_written_or_read_are_refused(ratings: Path, tmp_path: Path) -> None:
    fill(ratings / "rater-2.csv", lambda row: {"score": "7"})
    with pytest.raises(JudgeSenseError, match=r"rater-2\.csv, row 1, column score: '7' is not"):
        read_sheets(ratings)
    with pytest.raises(JudgeSenseError, match="already holds a kit"):
        write_sheets(ratings, translation_kit("es", None), 1)
    with pytest.raises(JudgeSenseError, match="holds no kit"):
        read_sheets(tmp_path)
    with pytest.raises(JudgeSenseError, match="language 'xx'; there are ar, de, es"):
        translation_kit("xx", None)
    other = tmp_path / "other"
    with pytest.raises(JudgeSenseError, match="drop --attributes"):
        invoke("--out", other, "--language", "es", "--attributes", "clarity")
    assert not other.exists()
    for content in ('{"use": "ratings"}', '{"use": "taste", "blanks": [], "rows": {}}', "[]"):
        (ratings / "kit.json").write_text(content)
        with pytest.raises(JudgeSenseError, match=r"kit\.json.*a kit of sheets"):
            read_sheets(ratings)
    kit = {"use": "ratings", "blanks": ["score"], "rows": {}, "human": {"1": float("inf")}}
    (ratings / "kit.json").write_text(json.dumps(kit))
    with pytest.raises(JudgeSenseError, match=r"kit\.json"):
        read_sheets(ratings)
