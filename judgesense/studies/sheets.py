"""Sheets on which people rate texts: CSV files out, CSV files in, checked and measured.

Raters score texts under several wordings ("All Prompts Are Created Equal?", section 4, "Human
Baseline Validation": three raters, six texts, five wordings).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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

WORDINGS = 5
KIT_FILE, GUIDE_FILE = "kit.json", "instructions.txt"
GUIDE = """Thank you for helping.

Open your file in a spreadsheet program. In every row, read the text, and write one of the answers
in the column "answers" into the column "score". Judge each row by itself: rows may look alike on
purpose. Leave it empty if you cannot judge the row. Change no other column, and save the file as
CSV.
"""

Row = dict[str, str]


class Kit(OwnShape):
    """``kit.json``: the rows as written, by number, and the mean human score of the text of each,
    which raters do not see."""

    rows: dict[str, Row]
    human: dict[str, float]


def write_sheets(out: Path, kit: Kit, raters: int) -> list[Path]:
    """Write a file per rater, instructions, and ``kit.json``.

    Texts come in blocks of one wording; blocks and texts are in another order for each rater.

    Raises JudgeSenseError if ``out`` holds a kit.
    """
    if (out / KIT_FILE).exists():
        raise JudgeSenseError(f"{out} already holds a kit; choose another --out folder")
    require_writable(out)
    rng = np.random.default_rng(0)
    files = [out / f"rater-{number}.csv" for number in range(1, raters + 1)]
    columns = ["row", *next(iter(kit.rows.values())), "score"]
    with writing(out):
        for path in files:
            order = list(kit.rows)
            rng.shuffle(order)
            place = {kit.rows[number]["wording"]: at for at, number in enumerate(order)}
            order.sort(key=lambda number: place[kit.rows[number]["wording"]])
            with path.open("w", newline="", encoding="utf-8-sig") as sink:
                writer = csv.DictWriter(sink, columns)
                writer.writeheader()
                writer.writerows({"row": number, **kit.rows[number]} for number in order)
        (out / GUIDE_FILE).write_text(GUIDE, "utf-8")
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
    return Kit(rows=rows, human=human)


def read_sheets(out: Path) -> Result:
    """Measure the completed files, ``rater-*.csv`` beside ``kit.json``.

    Raises:
        JudgeSenseError: no kit; or, with the file and the row, a missing, repeated or changed row,
            or a score that the row does not allow.
    """
    place = out / KIT_FILE
    if not place.is_file():
        raise JudgeSenseError(f"{out} holds no kit ({KIT_FILE}); write one first")
    kit = fit(Kit, read_json(place), str(place), "a kit of sheets")
    needed = {"item_id", "attribute", "wording", "answers"}
    if broken := [number for number, row in kit.rows.items() if not needed <= row.keys()]:
        raise JudgeSenseError(f"{place}: row {broken[0]} is incomplete; restore the file")
    scores = {path.stem: _read(path, kit) for path in sorted(out.glob("rater-*.csv"))}
    if not any(any(own.values()) for own in scores.values()):
        raise JudgeSenseError(f"{out}: no row of any file (rater-*.csv) has a score")
    table = Table.from_records(
        "raters", "Raters under several wordings", _records(kit, list(scores.values())),
        "intra-rater consistency: rater × text with one score under every wording. exact "
        "agreement: text × wording with the same score from all raters. Both leave out those "
        "with a missing score. α is ordinal, over text × wording. The paper: three raters, six "
        "texts, five wordings (section 4).",
        intra_consistency="intra-rater consistency", alpha="Krippendorff's α",
        accuracy="equals the set's score", paper_intra_consistency="paper's consistency",
        paper_exact_agreement="paper's agreement",
    )  # fmt: skip
    return Result("rater-kit", "Sheets filled in by people", {"raters": list(scores)}, [table])


def _read(path: Path, kit: Kit) -> dict[str, str]:
    """The scores of a rater by row; "" where a row is empty."""
    scores: dict[str, str] = {}
    for record in read_table(path):
        row, number = record.values, str(record.values.get("row", "")).strip()
        shown = kit.rows.get(number, {"row": ""})
        if number in scores or "score" not in row or any(
            str(row.get(name, "")).split() != text.split() for name, text in shown.items()
        ):  # fmt: skip
            raise JudgeSenseError(
                f"{record.place}: not a row of this kit, or its second copy; change only score"
            )
        scores[number] = row["score"].strip().removesuffix(".0")  # some spreadsheets write 4.0
        if scores[number] not in ("", *shown["answers"].split()):
            raise JudgeSenseError(
                f"{record.place}, column score: {row['score']!r} is not one of {shown['answers']}"
            )
    if absent := [number for number in kit.rows if number not in scores]:
        raise JudgeSenseError(f"{path}: row {absent[0]} is missing ({len(absent)} in all)")
    return scores


def _records(kit: Kit, filled: Sequence[Mapping[str, str]]) -> list[Record]:
    """A record per attribute."""
    records: list[Record] = []
    for name in dict.fromkeys(row["attribute"] for row in kit.rows.values()):
        own = {n: row for n, row in kit.rows.items() if row["attribute"] == name}
        numbers = {(row["item_id"], row["wording"]): n for n, row in own.items()}
        texts, wordings = (list(dict.fromkeys(part)) for part in zip(*numbers, strict=True))
        # Scores of shape (raters, texts, wordings); "" where missing.
        scores = np.array([[[given[numbers[t, w]] for w in wordings] for t in texts]
                           for given in filled])  # fmt: skip
        attribute = load_attributes()[name]
        labels = attribute.templates.task.labels
        gold = np.array([level(kit.human[numbers[t, wordings[0]]], labels) for t in texts])
        right = (scores == gold[:, None])[scores != ""]
        units = scores.reshape(len(filled), -1)
        several = len(filled) > 1 and _same(units.T) is not None
        ratings = [[score or None for score in rater] for rater in units.tolist()]
        key = f"raters.{attribute.attribute}"
        records.append(
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
    return records


def _same(groups: Any) -> float | None:
    """The share of complete rows with one score; None without a complete row."""
    full = groups[(groups != "").all(axis=1)]
    return float((full == full[:, :1]).all(axis=1).mean()) if len(full) else None
