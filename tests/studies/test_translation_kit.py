"""The kit of translations: CSV files out, CSV files in, and the mark that they change."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from judgesense.errors import JudgeSenseError
from judgesense.studies.translation_kit import (
    is_translation_kit,
    read_translation_kit,
    write_translation_kit,
)
from judgesense_dataset.embedded import load_embedded
from judgesense_dataset.translations import (
    LANGUAGE_FILES,
    Reading,
    load_readings,
    mark_of,
    translations,
    write_readings,
)

Row = dict[str, str]


@pytest.fixture
def kit(tmp_path: Path) -> Path:
    write_translation_kit(tmp_path / "kit", "es", raters=2)
    return tmp_path / "kit"


def rows_of(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8-sig") as source:
        return list(csv.DictReader(source))


def write(path: Path, rows: list[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as sink:
        writer = csv.DictWriter(sink, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def fill(path: Path, answers: Callable[[Row], tuple[str, str, str]]) -> None:
    names = ("same_meaning", "natural", "correction")
    rows = [{**row, **dict(zip(names, answers(row), strict=True))} for row in rows_of(path)]
    write(path, rows)


@pytest.mark.parametrize("language", LANGUAGE_FILES)
def test_every_text_of_a_language_has_its_english_source(language: str) -> None:
    texts = translations(language)
    assert len({one.key for one in texts}) == len(texts)
    assert len([one for one in texts if one.part == "instruction"]) == 20
    assert len([one for one in texts if one.part == "layout"]) == 4
    items = {one.text_id for one in texts if one.part not in ("instruction", "layout")}
    assert len(items) == {"de": 200, "es": 25, "zh": 25}.get(language, 0)
    assert all(one.english and one.text for one in texts)


def test_a_sheet_shows_each_text_once_and_reading_it_changes_the_mark(kit: Path) -> None:
    rows = rows_of(kit / "rater-1.csv")
    assert len(rows) == len({(row["text_id"], row["part"]) for row in rows}) == 81
    assert rows[0]["back_translation"].startswith("Is this correct as to the facts?")
    first = rows[0]["text_id"]

    def answers(row: Row) -> tuple[str, str, str]:
        wrong = row["text_id"] == first
        return ("no", "YES", "¿Es correcto?") if wrong else ("YES", "yes", "")

    fill(kit / "rater-1.csv", answers)
    fill(kit / "rater-2.csv", lambda row: ("YES", "NO" if row["part"] == "layout" else "YES", ""))
    assert is_translation_kit(kit)
    result = read_translation_kit(kit)
    rows_by_task = {row["task"]: row for row in result.table("marks").rows}
    assert [row["n_wrong"] for row in rows_by_task.values()] == [1, 0, 0, 0]
    assert [row["n_unnatural"] for row in rows_by_task.values()] == [1, 1, 1, 1]
    assert rows_by_task["factuality"]["agreement"] == pytest.approx(21 / 22)
    assert len(result.table("corrections").rows) == 5

    readings = load_readings(kit / "translation_readings.jsonl")
    mark = mark_of("es", readings)
    assert (mark.n_read, mark.n_wrong, mark.n_unnatural, mark.readers) == (81, 1, 4, 2)
    assert not mark.machine_made
    assert mark_of("zh", readings).machine_made


def test_a_partly_read_or_later_changed_translation_stays_machine_made(tmp_path: Path) -> None:
    texts = translations("fr")
    readings = [
        Reading("fr", one.key, one.sha256, "rater-1", same_meaning=True, natural=True)
        for one in texts
    ]
    assert not mark_of("fr", readings).machine_made
    assert mark_of("fr", readings[1:]).n_read == len(texts) - 1
    assert mark_of("fr", readings[1:]).machine_made
    path = tmp_path / "readings.jsonl"
    write_readings(path, readings)
    assert load_readings(path) == readings
    changed = path.read_text("utf-8").replace(texts[0].sha256, "0" * 16)
    path.write_text(changed, "utf-8")
    assert mark_of("fr", load_readings(path)).n_read == len(texts) - 1
    path.write_text(changed.replace("true", '"yes"', 1), "utf-8")
    with pytest.raises(JudgeSenseError, match="row 1, same_meaning"):
        load_readings(path)


def test_the_mark_is_recorded_with_the_set() -> None:
    assert load_embedded("embedded-zh").source["translation"] == str(mark_of("zh"))


def test_a_limit_keeps_the_wordings_and_the_first_items(tmp_path: Path) -> None:
    write_translation_kit(tmp_path, "de", tasks=["relevance"], limit=2, raters=1)
    rows = rows_of(tmp_path / "rater-1.csv")
    assert [row["part"] for row in rows].count("instruction") == 5
    assert len(rows) == 5 + 1 + 2 * 3


def test_wrong_sheets_are_named_with_file_and_row(kit: Path) -> None:
    path, empty = kit / "rater-1.csv", rows_of(kit / "rater-1.csv")
    with pytest.raises(JudgeSenseError, match="no row of any file has answers"):
        read_translation_kit(kit)
    cases: list[tuple[list[Row], str]] = [
        ([{**empty[0], "same_meaning": "maybe"}, *empty[1:]], r"row 1, column same_meaning"),
        ([{**empty[0], "same_meaning": "YES"}, *empty[1:]], r"row 1, column natural: is empty"),
        ([{**empty[0], "translation": "Mine."}, *empty[1:]], r"row 1, column translation"),
        ([{**empty[0], "text_id": "mine"}, *empty[1:]], r"row 1: .* not a text of this kit"),
        ([*empty, empty[0]], r"row 82: .* appears twice"),
        (empty[:-1], r"is missing \(1 in all\)"),
        ([{name: row[name] for name in row if name != "natural"} for row in empty], "natural"),
    ]
    for rows, told in cases:
        write(path, rows)
        with pytest.raises(JudgeSenseError, match=rf"rater-1\.csv.*{told}"):
            read_translation_kit(kit)


def test_a_kit_is_refused_for_an_unknown_language_or_in_a_used_folder(kit: Path) -> None:
    with pytest.raises(JudgeSenseError, match="language 'xx'; there are ar, de, es"):
        write_translation_kit(kit.parent / "other", "xx")
    with pytest.raises(JudgeSenseError, match="unknown task 'tone'"):
        write_translation_kit(kit.parent / "other", "es", tasks=["tone"])
    with pytest.raises(JudgeSenseError, match="already holds a kit"):
        write_translation_kit(kit, "es")
    kept = (kit / "kit.json").read_text("utf-8")
    entry = '"relevance-1/instruction": "'
    (kit / "kit.json").write_text(kept.replace(entry, f"{entry}0"), "utf-8")
    with pytest.raises(JudgeSenseError, match=r"1 texts have changed since .*relevance-1/instr"):
        read_translation_kit(kit)
    (kit / "kit.json").write_text('{"language": "es"}', "utf-8")
    with pytest.raises(JudgeSenseError, match=r"kit\.json: not a kit"):
        read_translation_kit(kit)
    (kit / "kit.json").write_bytes(b'{"language": "\xff"}')
    with pytest.raises(JudgeSenseError, match=r"kit\.json: byte 14 .* is not utf-8"):
        read_translation_kit(kit)
