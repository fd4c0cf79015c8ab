"""Have people read the package's translations: CSV files out, CSV files in, and a new mark.

A translation is machine-made until people have read it
(:mod:`judgesense_dataset.translations`). The kit has the files of the raters' kit.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import require_writable, writing
from judgesense.files.documents import read_json
from judgesense.files.tables import read_table
from judgesense.studies.common.result import Record, Result, Table
from judgesense.studies.paraphrase_robustness.rater_kit import GUIDE_FILE, KIT_FILE
from judgesense_dataset.translations import (
    RECORDED,
    Reading,
    Translation,
    mark_of,
    translations,
    write_readings,
)

COLUMNS = ("rater", "task", "text_id", "part", "english", "translation", "back_translation",
           "same_meaning", "natural", "correction")  # fmt: skip
GUIDE = """Thank you for reading.

Open your file in a spreadsheet program. Every row has an English text and its translation. A word
in braces, such as {question}, is filled in later and must stay as it is. Write YES or NO into two
columns:

  same_meaning  Does the translation say the same as the English, no more and no less?
  natural       Would a careful native speaker write it like this?

If you write NO, put a better text into the column correction. The column back_translation is only a
help: it is the machine's own way back into English. Do not change any other column. Leave both
answers empty if you cannot judge a text. Save the file as CSV.
"""


def write_translation_kit(
    out: str | Path,
    language: str,
    *,
    tasks: Sequence[str] | None = None,
    limit: int | None = None,
    raters: int = 3,
) -> list[Path]:
    """Write a CSV file per reader, instructions for them, and ``kit.json``.

    Args:
        out: a folder without a kit.
        language: a language of the package's templates, such as ``es``.
        tasks: all by default.
        limit: items per task; all by default. The wordings are always in the kit.
        raters: how many files to write.

    Returns:
        The readers' files.

    Raises:
        JudgeSenseError: the folder holds a kit, an unknown language or task, or a limit or number
            of readers below 1.
    """
    out = Path(out)
    if (out / KIT_FILE).exists():
        raise JudgeSenseError(f"{out} already holds a kit; choose another --out folder")
    if raters < 1 or (limit is not None and limit < 1):
        raise JudgeSenseError(f"{raters} raters, {limit} items: use at least 1 of each")
    texts = _limited(translations(language, tasks), limit)
    require_writable(out)
    files = [out / f"rater-{number}.csv" for number in range(1, raters + 1)]
    kit = {"schema": 1, "language": language, "texts": {one.key: one.sha256 for one in texts}}
    with writing(out):
        for number, path in enumerate(files, 1):
            with path.open("w", newline="", encoding="utf-8-sig") as sink:
                writer = csv.writer(sink)
                writer.writerow(COLUMNS)
                for one in texts:
                    shown = (one.task, one.text_id, one.part, one.english, one.text, one.back)
                    writer.writerow([number, *shown, "", "", ""])
        (out / GUIDE_FILE).write_text(GUIDE, "utf-8")
        (out / KIT_FILE).write_text(json.dumps(kit, indent=1) + "\n", "utf-8")
    return files


def _limited(texts: Iterable[Translation], limit: int | None) -> list[Translation]:
    kept: list[Translation] = []
    items: dict[str, dict[str, None]] = {}
    for one in texts:
        if one.part not in ("instruction", "layout"):
            seen = items.setdefault(one.task, {})
            seen.setdefault(one.text_id)
            if limit is not None and list(seen).index(one.text_id) >= limit:
                continue
        kept.append(one)
    return kept


def is_translation_kit(out: str | Path) -> bool:
    """Whether a folder's kit is about translations."""
    path = Path(out) / KIT_FILE
    return path.is_file() and "language" in _kit(path)


def read_translation_kit(out: str | Path) -> Result:
    """Read the completed files, ``rater-*.csv`` beside ``kit.json``, and mark the translation.

    Writes ``translation_readings.jsonl`` into the folder. The mark is that of these readings
    together with those in the package.

    Raises:
        JudgeSenseError: no kit or no file; or, with the file and the row, a missing or repeated
            row, a changed text, one answer without the other, or an answer that is not YES or NO.
    """
    out = Path(out)
    kit = _kit(out / KIT_FILE)
    language, hashes = kit.get("language"), kit.get("texts")
    if not isinstance(language, str) or not isinstance(hashes, dict):
        raise JudgeSenseError(f"{out / KIT_FILE}: not a kit of translations; write a new one")
    files = sorted(out.glob("rater-*.csv"))
    if not files:
        raise JudgeSenseError(f"{out} holds no rater's file (rater-*.csv)")
    current = {one.key: one for one in translations(language) if one.key in hashes}
    if changed := [key for key, found in hashes.items() if key not in current
                   or current[key].sha256 != found]:  # fmt: skip
        raise JudgeSenseError(
            f"{out}: {len(changed)} texts have changed since the kit was written, such as "
            f"{changed[0]!r}; write a new kit"
        )
    readings = [one for path in files for one in _read(path, language, current)]
    if not readings:
        raise JudgeSenseError(f"{out}: no row of any file has answers; fill in {files[0].name}")
    write_readings(out / RECORDED.name, readings)
    mark = mark_of(language, readings)
    rows = [
        {"task": task, **_counts([o for o in current.values() if o.task == task], readings)}
        for task in dict.fromkeys(one.task for one in current.values())
    ]
    tables = [
        Table.from_records(
            "marks", f"Translation into {language!r}", rows,
            "read: texts with an answer. differ in meaning, do not read well: at least one reader "
            "says so. agreement: texts that several people read and on whose meaning they agree.",
            n_wrong="differ in meaning", n_unnatural="do not read well",
        )
    ]  # fmt: skip
    if found := _differences(readings, current):
        tables.append(Table.from_records("corrections", "What readers would change", found))
    return Result(
        "translation-kit",
        f"The translation into {language!r}, read by people",
        {"raters": [path.stem for path in files], "mark": str(mark)},
        tables,
        [f"the translation into {language!r}: {mark}"],
        [
            f"a text without an answer stays machine-made ({mark.n_texts - mark.n_read} of "
            f"{mark.n_texts})"
        ]
        if mark.machine_made
        else [],
    )


def _kit(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise JudgeSenseError(f"{path.parent} holds no kit ({path.name}); write one first")
    kit = read_json(path)
    if not isinstance(kit, dict):
        raise JudgeSenseError(f"{path}: not a kit of translations; write a new one")
    return kit


def _read(path: Path, language: str, wanted: Mapping[str, Translation]) -> list[Reading]:
    found: dict[str, Reading | None] = {}
    for record in read_table(path):
        if missing := [name for name in COLUMNS if name not in record.values]:
            raise JudgeSenseError(f"{record.place}: not a file of this kit; missing: {missing[0]}")
        row = record.values
        key = f"{row['text_id']}/{row['part']}"
        if key not in wanted:
            raise JudgeSenseError(f"{record.place}: {key!r} is not a text of this kit")
        if key in found:
            raise JudgeSenseError(f"{record.place}: {key!r} appears twice")
        if "\n".join(row["translation"].splitlines()) != wanted[key].text:
            raise JudgeSenseError(
                f"{record.place}, column translation: the text is not the kit's; leave it as it "
                "is, and put a better one into the column correction"
            )
        found[key] = _reading(row, record.place, path.stem, language, wanted[key])
    if absent := [key for key in wanted if key not in found]:
        raise JudgeSenseError(f"{path}: the row of {absent[0]!r} is missing ({len(absent)} in all)")
    return [one for one in found.values() if one is not None]


def _reading(
    row: Mapping[str, str], place: str, reader: str, language: str, text: Translation
) -> Reading | None:
    said = {}
    for name in ("same_meaning", "natural"):
        answer = row[name].strip().upper()
        if answer not in ("YES", "NO", ""):
            raise JudgeSenseError(f"{place}, column {name}: must be YES or NO, got {row[name]!r}")
        said[name] = answer
    if not any(said.values()):
        return None
    if empty := [name for name, answer in said.items() if not answer]:
        raise JudgeSenseError(
            f"{place}, column {empty[0]}: is empty; answer both questions, or neither"
        )
    return Reading(
        language=language,
        key=text.key,
        sha256=text.sha256,
        reader=reader,
        same_meaning=said["same_meaning"] == "YES",
        natural=said["natural"] == "YES",
        correction=row["correction"].strip(),
    )


def _counts(texts: Sequence[Translation], readings: Iterable[Reading]) -> Record:
    said: dict[str, list[Reading]] = {one.key: [] for one in texts}
    for one in readings:
        if one.key in said:
            said[one.key].append(one)
    several = [group for group in said.values() if len(group) > 1]
    agreed = sum(len({one.same_meaning for one in group}) == 1 for group in several)
    return {
        "n_texts": len(texts),
        "n_read": sum(map(bool, said.values())),
        "n_wrong": sum(not all(one.same_meaning for one in group) for group in said.values()),
        "n_unnatural": sum(not all(one.natural for one in group) for group in said.values()),
        "agreement": agreed / len(several) if several else None,
    }


def _differences(
    readings: Iterable[Reading], texts: Mapping[str, Translation]
) -> list[dict[str, str | bool]]:
    return [
        {
            "text": one.key,
            "rater": one.reader,
            "same_meaning": one.same_meaning,
            "natural": one.natural,
            "english": texts[one.key].english,
            "translation": texts[one.key].text,
            "correction": one.correction,
        }
        for one in readings
        if one.correction or not (one.same_meaning and one.natural)
    ]
