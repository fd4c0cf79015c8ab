"""Do people rate alike under several wordings? A kit for raters: CSV files to fill in and read.

"All Prompts Are Created Equal?" (Bhat and Varma), section 4, "Human Baseline Validation", and
appendix E: three raters, six texts per attribute, five wordings.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import file_bytes, require_writable, writing
from judgesense.files.documents import OwnShape, fit, parse_json
from judgesense.files.tables import read_table
from judgesense.statistics.inputs import check_seed
from judgesense.statistics.kappa import krippendorff_alpha
from judgesense.studies.common.result import Result, Table, Value, published
from judgesense.studies.paraphrase_robustness.attributes import (
    attributes_of,
    level,
    sample,
    sources,
)
from judgesense.text import percent
from judgesense_dataset.embedded import load_attributes
from judgesense_dataset.sources.loader import Reader

HEADINGS = {
    "intra_consistency": "intra-rater consistency", "alpha": "Krippendorff's α",
    "paper_intra_consistency": "paper's consistency", "paper_exact_agreement": "paper's agreement",
    "accuracy": "equals the set's score",
}  # fmt: skip

KIT_FILE, GUIDE_FILE = "kit.json", "instructions.txt"
COLUMNS = ("rater", "block", "attribute", "wording", "item_id", "instruction", "text", "scale",
           "score")  # fmt: skip
GUIDE = """Thank you for rating.

Open your file in a spreadsheet program. In every row, fill in the column "score" with one of the
numbers in "scale". Rows come in blocks that share one instruction. Rate each text only by the
instruction in its own row. Blocks may look alike, and texts appear more than once, on purpose. Do
not look up your earlier scores, and do not change any other column. Leave a score empty only if you
cannot rate the text. Save the file as CSV.
"""


def write_kit(
    out: str | Path,
    *,
    attributes: Sequence[str] | None = None,
    data: Mapping[str, str] | None = None,
    limit: int = 6,
    wordings: int = 5,
    raters: int = 3,
    mirror: str | Path | None = None,
    revisions: Mapping[str, str] | None = None,
    seed: int = 0,
) -> list[Path]:
    """Write a CSV file per rater, instructions for them, and ``kit.json`` for :func:`read_kit`.

    A block is a wording of an attribute with all its texts. Each rater gets the blocks, and the
    texts in them, in a different order.

    Args:
        out: a folder without a kit.
        attributes: with or without their task's name; one verifiable and one subjective by default.
        data: task -> the set or file of its texts.
        limit: texts per attribute.
        wordings: wordings per attribute, 2 to 11.
        raters: how many files to write.
        mirror: a folder with ``<org>/<name>`` copies of the Hub's sets.
        revisions: Hub commits by set.
        seed: fixes the texts and the orders.

    Returns:
        The raters' files.

    Raises:
        JudgeSenseError: the folder holds a kit, bad input, or texts that cannot be read.
    """
    out = Path(out)
    if (out / KIT_FILE).exists():
        raise JudgeSenseError(f"{out} already holds a kit; choose another --out folder")
    if raters < 1 or limit < 2 or not 2 <= wordings <= 11:
        raise JudgeSenseError(
            f"{raters} raters, {limit} items, {wordings} wordings: use at least 1 rater, 2 items, "
            "and 2 to 11 wordings"
        )
    try:
        check_seed(seed)
    except ValueError as error:
        raise JudgeSenseError(str(error)) from error
    wanted = attributes_of(attributes or ("question-answerability", "essay-organisation"), None)
    chosen = sources(data or {}, [attribute.group for attribute in wanted.values()])
    reader = Reader(Path(mirror) if mirror else None, revisions or {})
    drawn = sample(wanted, chosen, reader, limit, seed, wordings - 1)
    prompts = drawn.benchmark.prompts.to_pylist()
    # A set's ids often name the system that wrote the text: raters must not see them.
    order = dict.fromkeys(row["item_id"] for row in prompts)
    blind = {item: f"text-{number}" for number, item in enumerate(order, 1)}
    kit: dict[str, Any] = {"schema": 1, "raters": raters, "notes": list(drawn.notes), "rows": {}}
    for row in prompts:
        source, row["item_id"] = row["item_id"], blind[row["item_id"]]
        kit["rows"][f"{row['task']}/{row['template_id']}/{row['item_id']}"] = {
            "attribute": row["task"],
            "wording": row["template_id"],
            "item_id": row["item_id"],
            "source_id": source,
            "human": drawn.human[row["task"]][source],
        }
    require_writable(out)
    rng = np.random.default_rng(seed)
    files = []
    with writing(out):
        for rater in range(1, raters + 1):
            path = out / f"rater-{rater}.csv"
            _write(path, rater, prompts, wanted, rng)
            files.append(path)
        (out / GUIDE_FILE).write_text(GUIDE, "utf-8")
        text = json.dumps(kit, indent=1, ensure_ascii=False)
        (out / KIT_FILE).write_text(text + "\n", "utf-8")
    return files


def _write(
    path: Path,
    rater: int,
    prompts: Sequence[Mapping[str, Any]],
    wanted: Mapping[str, Any],
    rng: np.random.Generator,
) -> None:
    blocks: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in prompts:
        blocks.setdefault((row["task"], row["template_id"]), []).append(row)
    keys = list(blocks)
    with path.open("w", newline="", encoding="utf-8-sig") as sink:
        writer = csv.writer(sink)
        writer.writerow(COLUMNS)
        for number, at in enumerate(rng.permutation(len(keys)), 1):
            task, template = keys[at]
            entry = wanted[task].templates
            own = next(t for t in entry.templates if t.template_id == template)
            rows = blocks[keys[at]]
            for place in rng.permutation(len(rows)):
                row = rows[place]
                # The message ends with the text; its beginning is the instruction.
                text = row["text"].removeprefix(own.text).strip()
                scale = " ".join(entry.task.labels)
                writer.writerow(
                    [rater, number, task, template, row["item_id"], own.text, text, scale, ""]
                )


class _KitRow(OwnShape):
    """A text under a wording, and the set's own score of it."""

    attribute: str
    wording: str
    item_id: str
    human: float


class _Kit(OwnShape):
    """What ``kit.json`` holds: each row of the raters' files by its key."""

    rows: dict[str, _KitRow]
    notes: list[str]


def read_kit(out: str | Path) -> Result:
    """Measure the raters' completed files, ``rater-*.csv`` beside ``kit.json``.

    Raises:
        JudgeSenseError: no kit; or, with the file and the row, a missing row or column, a repeated
            or changed row, or a score off the scale.
    """
    out = Path(out)
    try:
        place = str(out / KIT_FILE)
        kit = fit(_Kit, parse_json(file_bytes(out / KIT_FILE), place), place, "a kit for raters")
    except OSError as error:
        raise JudgeSenseError(f"{out} holds no kit ({KIT_FILE}); write one first") from error
    known = load_attributes()
    if unknown := {row.attribute for row in kit.rows.values()} - known.keys():
        raise JudgeSenseError(f"{place}: no attribute {min(unknown)!r}; write the kit again")
    files = sorted(out.glob("rater-*.csv"))
    if not files:
        raise JudgeSenseError(f"{out} holds no rater's file (rater-*.csv)")
    scores = {path.stem: _read(path, kit.rows) for path in files}
    rows: list[dict[str, Any]] = []
    each: list[dict[str, Value]] = []
    for name in dict.fromkeys(row.attribute for row in kit.rows.values()):
        own = {key: row for key, row in kit.rows.items() if row.attribute == name}
        ratings = _ratings(scores, own)
        labels = known[name].templates.task.labels
        human = {row.item_id: row.human for row in own.values()}
        gold = [level(mean, labels) for mean in human.values()]
        row: dict[str, Any] = {"attribute": name, "kind": known[name].verifiability}
        rows.append(row | _measured(name, ratings, gold, labels))
        each += [
            {"attribute": name, "rater": rater, "intra_consistency": _intra(ratings[at : at + 1]),
             "n_scores": sum(score is not None for score in ratings[at].flat)}
            for at, rater in enumerate(scores)
        ]  # fmt: skip
    return Result(
        "rater-kit",
        "Human raters under several wordings",
        {"raters": list(scores), "texts": kit.notes},
        [
            Table.from_records(
                "raters",
                "Raters under several wordings",
                rows,
                "intra-rater consistency: rater × item with one score under every wording. exact "
                "agreement: item × wording with the same score from all raters. Both leave out "
                "those with a missing score. α is ordinal, over item × wording. The paper: three "
                "raters, six texts, five wordings (section 4).",
                **HEADINGS,
            ),
            Table.from_records("each_rater", "Each rater", each, **HEADINGS),
        ],
        [
            f"{row['attribute']} ({row['kind']}): raters keep their score under every wording on "
            f"{percent(row['intra_consistency'])} of texts"
            + (
                ""
                if row["exact_agreement"] is None
                else f", and all agree on {percent(row['exact_agreement'])} of text × wording"
            )
            for row in rows
            if row["intra_consistency"] is not None
        ],
        ["few raters and texts: a difference between attributes is a hint, not a test"],
    )


def _read(path: Path, wanted: Mapping[str, _KitRow]) -> dict[str, str | None]:
    known = load_attributes()
    found: dict[str, str | None] = {}
    for record in read_table(path):
        row = record.values
        if missing := [name for name in COLUMNS if name not in row]:
            raise JudgeSenseError(f"{path}: the column {missing[0]!r} is missing")
        key = f"{row['attribute']}/{row['wording']}/{row['item_id']}"
        if key not in wanted:
            raise JudgeSenseError(
                f"{record.place}: {key!r} is not a row of this kit; change only the column score"
            )
        if key in found:
            raise JudgeSenseError(f"{record.place}: {key!r} appears twice")
        labels = known[row["attribute"]].templates.task.labels
        said = row["score"].strip().removesuffix(".0")  # some spreadsheets write 4.0
        if said and said not in labels:
            raise JudgeSenseError(
                f"{record.place}, column score: {row['score']!r} is off the scale of "
                f"{row['attribute']}: {', '.join(labels)}"
            )
        found[key] = said or None
    if absent := [key for key in wanted if key not in found]:
        raise JudgeSenseError(f"{path}: the row of {absent[0]!r} is missing ({len(absent)} in all)")
    return found


def _ratings(scores: Mapping[str, Mapping[str, str | None]], own: Mapping[str, _KitRow]) -> Any:
    """Scores of shape (raters, items, wordings); None where missing."""
    keys = {(row.item_id, row.wording): key for key, row in own.items()}
    items, wordings = (list(dict.fromkeys(parts)) for parts in zip(*keys, strict=True))
    if len(keys) < len(items) * len(wordings):
        raise JudgeSenseError(
            f"{KIT_FILE} lacks rows: not every text has every wording; write the kit again"
        )
    table = [[[given[keys[i, w]] for w in wordings] for i in items] for given in scores.values()]
    return np.array(table, dtype=object)


def _intra(table: Any) -> float | None:
    rows = [row for rater in table for row in rater if None not in row]
    return float(np.mean([len(set(row)) == 1 for row in rows])) if rows else None


def _measured(
    name: str, table: Any, gold: Sequence[str], labels: Sequence[str]
) -> dict[str, Value]:
    raters, items, wordings = table.shape
    full = [cell for cell in table.reshape(raters, -1).T if None not in cell]
    several = bool(full) and raters > 1
    right = [
        score == gold[item] for (_, item, _), score in np.ndenumerate(table) if score is not None
    ]
    said = published("paraphrase-robustness")
    intra, exact = (
        found and found.value
        for found in (said.get(f"raters.{name.split('-', 1)[1]}.{n}") for n in ("intra", "exact"))
    )
    return {
        "n_raters": raters,
        "n_items": items,
        "n_wordings": wordings,
        "intra_consistency": _intra(table),
        "paper_intra_consistency": intra,
        "exact_agreement": float(np.mean([len(set(c)) == 1 for c in full])) if several else None,
        "paper_exact_agreement": exact,
        "alpha": krippendorff_alpha(table.reshape(raters, -1).tolist(), "ordinal", labels)
        if several
        else None,
        "accuracy": float(np.mean(right)) if right else None,
        "n_scores": len(right),
        "n_missing": table.size - len(right),
    }
