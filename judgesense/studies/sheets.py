"""Sheets that people fill in: CSV files out, CSV files in, checked and measured.

Raters score texts under several wordings ("All Prompts Are Created Equal?", section 4, "Human
Baseline Validation": three raters, six texts, five wordings), or readers check a translation.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import require_writable, writing
from judgesense.files.documents import OwnShape, fit, read_json
from judgesense.files.tables import read_table
from judgesense.reporting.result import Record, Result, Table
from judgesense.statistics.kappa import krippendorff_alpha
from judgesense.studies.common.study import paper
from judgesense.studies.paraphrase_robustness.texts import attributes_of, level, sample, sources
from judgesense_dataset.embedded import load_attributes
from judgesense_dataset.sources.loader import Reader
from judgesense_dataset.templates import DATA, LANGUAGE_FILES, load_templates

WORDINGS = 5
KIT_FILE, GUIDE_FILE = "kit.json", "instructions.txt"
GUIDE = """Thank you for helping.

Open your file in a spreadsheet program. In every row, read the texts, and write one of the answers
in the column "answers" into each of these columns: {blanks}. Judge each row by itself: rows may
look alike on purpose. Leave them empty if you cannot judge the row. A column "correction", if there
is one, is for a better text of yours. Change no other column, and save the file as CSV.
"""

Row = dict[str, str]


class Kit(OwnShape):
    """``kit.json``: the rows as written, by number; ``blanks`` are the columns to fill in with one
    of a row's ``answers``. Readers do not see ``human``, the mean human score of a rated text."""

    use: Literal["ratings", "translations"]
    blanks: tuple[str, ...]
    rows: dict[str, Row]
    human: dict[str, float]


def write_sheets(out: Path, kit: Kit, raters: int) -> list[Path]:
    """Write a file per rater, instructions, and ``kit.json``.

    Rated texts come in blocks of one wording; blocks and texts are in another order for each rater.

    Raises JudgeSenseError if ``out`` holds a kit.
    """
    if (out / KIT_FILE).exists():
        raise JudgeSenseError(f"{out} already holds a kit; choose another --out folder")
    require_writable(out)
    rng = np.random.default_rng(0)
    files = [out / f"rater-{number}.csv" for number in range(1, raters + 1)]
    more = ["correction"] if kit.use == "translations" else []
    columns = ["row", *next(iter(kit.rows.values())), *kit.blanks, *more]
    with writing(out):
        for path in files:
            order = list(kit.rows)
            if kit.use == "ratings":
                rng.shuffle(order)
                place = {kit.rows[number]["wording"]: at for at, number in enumerate(order)}
                order.sort(key=lambda number: place[kit.rows[number]["wording"]])
            with path.open("w", newline="", encoding="utf-8-sig") as sink:
                writer = csv.DictWriter(sink, columns)
                writer.writeheader()
                writer.writerows({"row": number, **kit.rows[number]} for number in order)
        (out / GUIDE_FILE).write_text(GUIDE.format(blanks=", ".join(kit.blanks)), "utf-8")
        (out / KIT_FILE).write_text(json.dumps(kit.model_dump(), indent=1) + "\n", "utf-8")
    return files


def rating_kit(
    attributes: Sequence[str] | None, data: Mapping[str, str], limit: int, mirror: Path | None
) -> Kit:
    """A kit of ``limit`` texts of each attribute under five wordings; texts have neutral names.

    ``attributes`` are one verifiable and one subjective by default, ``data`` the sources of their
    texts (see `texts.sources`). Raises JudgeSenseError for bad input.
    """
    wanted = attributes_of(attributes or ("question-answerability", "essay-organisation"), None)
    chosen = sources(data, [attribute.group for attribute in wanted.values()])
    drawn = sample(wanted, chosen, Reader(mirror), limit, 0, WORDINGS)
    names: dict[str, str] = {}
    rows: dict[str, Row] = {}
    human: dict[str, float] = {}
    for number, row in enumerate(drawn.benchmark.prompts.to_pylist(), 1):
        entry = wanted[row["task"]].templates
        wording = next(t.text for t in entry.templates if t.template_id == row["template_id"])
        rows[str(number)] = {
            "attribute": row["task"], "wording": row["template_id"],
            "item_id": names.setdefault(row["item_id"], f"text-{len(names) + 1}"),
            "instruction": wording, "text": row["text"].removeprefix(wording).strip(),
            "answers": " ".join(entry.task.labels),
        }  # fmt: skip
        human[str(number)] = drawn.human[row["task"]][row["item_id"]]
    return Kit(use="ratings", blanks=("score",), rows=rows, human=human)


def translation_kit(language: str, limit: int | None) -> Kit:
    """A kit of a language's wordings and layouts, and of ``limit`` items (or all) per task.

    Raises JudgeSenseError for a language without templates.
    """
    if language not in LANGUAGE_FILES:
        raise JudgeSenseError(
            f"no templates in the language {language!r}; there are {', '.join(LANGUAGE_FILES)}"
        )
    names = ("task", "text_id", "part", "english", "translation", "answers")
    rows = {
        str(number): dict(zip(names, (*texts, "YES NO"), strict=True))
        for number, texts in enumerate(_translated(LANGUAGE_FILES[language], limit), 1)
    }
    return Kit(use="translations", blanks=("same_meaning", "natural"), rows=rows, human={})


def _translated(file: Path, limit: int | None) -> Iterator[tuple[str, ...]]:
    """Task, text id, part, English text and translation."""
    english = load_templates(DATA / "templates.yaml")
    for task, own in load_templates(file).items():
        source = english[task]
        texts = {template.template_id: template.text for template in source.templates}
        for one in own.templates:
            yield task, one.template_id, "instruction", texts[one.template_id], one.text
        yield task, task, "layout", source.templates[0].layout, own.templates[0].layout
        path = file.with_name(f"{task}.jsonl")
        if path.is_file():
            items = {each.values["item_id"]: each.values for each in read_table(DATA / path.name)}
            for row in [each.values for each in read_table(path)][:limit]:
                for part in sorted(own.fields, key=list(row).index):
                    yield task, row["item_id"], part, items[row["item_id"]][part], row[part]


def read_sheets(out: Path) -> Result:
    """Measure the completed files, ``rater-*.csv`` beside ``kit.json``.

    Raises:
        JudgeSenseError: no kit; or, with the file and the row, a missing column, a missing,
            repeated or changed row, or an answer that the row does not allow.
    """
    place = out / KIT_FILE
    if not place.is_file():
        raise JudgeSenseError(f"{out} holds no kit ({KIT_FILE}); write one first")
    kit = fit(Kit, read_json(place), str(place), "a kit of sheets")
    filled = {path.stem: _read(path, kit) for path in sorted(out.glob("rater-*.csv"))}
    if not any(any(row.values()) for rows in filled.values() for row in rows.values()):
        raise JudgeSenseError(f"{out}: no row of any file (rater-*.csv) has answers")
    measured = _ratings(kit, filled) if kit.use == "ratings" else _translations(kit, filled)
    return Result("rater-kit", "Sheets filled in by people", {"raters": list(filled)}, measured)


def _read(path: Path, kit: Kit) -> dict[str, Row]:
    """The answers of a rater by row; "" where a row is empty."""
    found: dict[str, Row] = {}
    for record in read_table(path):
        row, number = record.values, str(record.values.get("row", "")).strip()
        shown = kit.rows.get(number, {"row": ""})
        if any(str(row.get(name, "")).split() != text.split() for name, text in shown.items()):
            raise JudgeSenseError(
                f"{record.place}: not a row of this kit; change only {', '.join(kit.blanks)}"
            )
        if number in found:
            raise JudgeSenseError(f"{record.place}: row {number} appears twice")
        if missing := [name for name in kit.blanks if name not in row]:
            raise JudgeSenseError(f"{record.place}: the column {missing[0]!r} is missing")
        # Some spreadsheets write 4.0.
        answers = {name: row[name].strip().upper().removesuffix(".0") for name in kit.blanks}
        for name, answer in answers.items():
            if any(answers.values()) and answer not in shown["answers"].split():
                raise JudgeSenseError(
                    f"{record.place}, column {name}: {row[name]!r} is not one of {shown['answers']}"
                )
        found[number] = answers | {"correction": row.get("correction", "").strip()}
    if absent := [number for number in kit.rows if number not in found]:
        raise JudgeSenseError(f"{path}: row {absent[0]} is missing ({len(absent)} in all)")
    return found


def _ratings(kit: Kit, filled: Mapping[str, Mapping[str, Row]]) -> list[Table]:
    rows: list[Record] = []
    for name in dict.fromkeys(row["attribute"] for row in kit.rows.values()):
        own = {n: row for n, row in kit.rows.items() if row["attribute"] == name}
        numbers = {(row["item_id"], row["wording"]): n for n, row in own.items()}
        texts, wordings = (list(dict.fromkeys(part)) for part in zip(*numbers, strict=True))
        # Scores of shape (raters, texts, wordings); "" where missing.
        scores = np.array([[[given[numbers[t, w]]["score"] for w in wordings] for t in texts]
                           for given in filled.values()])  # fmt: skip
        attribute = load_attributes()[name]
        labels = attribute.templates.task.labels
        gold = np.array([level(kit.human[numbers[t, wordings[0]]], labels) for t in texts])
        right = (scores == gold[:, None])[scores != ""]
        units = scores.reshape(len(filled), -1)
        several = len(filled) > 1 and _same(units.T) is not None
        ratings = [[score or None for score in rater] for rater in units.tolist()]
        key = f"raters.{attribute.attribute}"
        rows.append(
            {
                "attribute": name, "kind": attribute.verifiability, "n_raters": len(filled),
                "n_items": len(texts), "n_wordings": len(wordings),
                "intra_consistency": _same(scores.reshape(-1, len(wordings))),
                "paper_intra_consistency": paper("paraphrase-robustness", f"{key}.intra"),
                "exact_agreement": _same(units.T) if several else None,
                "paper_exact_agreement": paper("paraphrase-robustness", f"{key}.exact"),
                "alpha": krippendorff_alpha(ratings, "ordinal", labels) if several else None,
                "accuracy": float(right.mean()) if right.size else None,
                "n_scores": int((scores != "").sum()), "n_missing": int((scores == "").sum()),
            }
        )  # fmt: skip
    return [
        Table.from_records(
            "raters", "Raters under several wordings", rows,
            "intra-rater consistency: rater × text with one score under every wording. exact "
            "agreement: text × wording with the same score from all raters. Both leave out those "
            "with a missing score. α is ordinal, over text × wording. The paper: three raters, six "
            "texts, five wordings (section 4).",
            intra_consistency="intra-rater consistency", alpha="Krippendorff's α",
            accuracy="equals the set's score", paper_intra_consistency="paper's consistency",
            paper_exact_agreement="paper's agreement",
        )
    ]  # fmt: skip


def _same(groups: Any) -> float | None:
    """The share of complete rows with one score; None without a complete row."""
    full = groups[(groups != "").all(axis=1)]
    return float((full == full[:, :1]).all(axis=1).mean()) if len(full) else None


def _translations(kit: Kit, filled: Mapping[str, Mapping[str, Row]]) -> list[Table]:
    marks: list[Record] = []
    for task in dict.fromkeys(row["task"] for row in kit.rows.values()):
        numbers = [n for n, row in kit.rows.items() if row["task"] == task]
        readings = [[own[n] for own in filled.values() if own[n]["natural"]] for n in numbers]
        marks.append(
            {
                "task": task, "n_texts": len(numbers), "n_read": sum(map(bool, readings)),
                "n_wrong": sum(any(r["same_meaning"] == "NO" for r in each) for each in readings),
                "n_unnatural": sum(any(r["natural"] == "NO" for r in each) for each in readings),
            }
        )  # fmt: skip
    corrections = [
        {"rater": rater, **kit.rows[number], **row}
        for rater, rows in filled.items()
        for number, row in rows.items()
        if row["correction"] or "NO" in row.values()
    ]
    note = "read: texts with an answer. The others: at least one reader says so."
    headings = {"n_wrong": "differ in meaning", "n_unnatural": "do not read well"}
    return [
        Table.from_records("marks", "The translation by task", marks, note, **headings),
        Table.from_records("corrections", "What readers would change", corrections),
    ]
