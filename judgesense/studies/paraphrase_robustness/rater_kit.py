"""Do people rate alike under several wordings? A kit for raters: CSV files out, CSV files in.

"All Prompts Are Created Equal?" (Bhat and Varma), section 4, "Human Baseline Validation", and
appendix E: three raters, six texts an attribute, five wordings.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.run_folder import require_writable, writing
from judgesense.statistics.labels import check_seed
from judgesense.statistics.reliability import krippendorff_alpha
from judgesense.studies.common.result import Result, Table, Value, published
from judgesense.studies.paraphrase_robustness.attributes import attributes, level, sample, sources
from judgesense_dataset.embedded import load_attributes
from judgesense_dataset.sources.loader import Reader

KIT_FILE, GUIDE_FILE = "kit.json", "instructions.txt"
COLUMNS = ("rater", "block", "attribute", "wording", "item_id", "instruction", "text", "scale",
           "score")  # fmt: skip
GUIDE = """Thank you for rating.

Open your file in a spreadsheet program and fill in the column "score", row by row, with one of the
numbers in "scale". Each block has one instruction, which stands in every row of it. Rate each text
by the instruction in its own row alone. Blocks can look alike and texts come back: that is meant.
Do not look up what you gave before, and change no other column. Leave a score empty only if you
cannot rate the text. Save the file as CSV.
"""


def write_kit(
    out: str | Path,
    *,
    names: Sequence[str] | None = None,
    data: Mapping[str, str] | None = None,
    items: int = 6,
    wordings: int = 5,
    raters: int = 3,
    mirror: str | Path | None = None,
    revisions: Mapping[str, str] | None = None,
    seed: int = 0,
) -> list[Path]:
    """Write a CSV a rater, what to tell them, and ``kit.json``, which reads the scores back.

    A block is a wording of an attribute with all its texts; blocks, and the texts in them, come in
    an order of its own for each rater.

    Raises:
        JudgeSenseError: a kit that lies there already, bad input, or texts that cannot be read.
    """
    out = Path(out)
    if (out / KIT_FILE).exists():
        raise JudgeSenseError(f"{out} holds a kit already; give --out another folder")
    if raters < 1 or items < 2 or not 2 <= wordings <= 11:
        raise JudgeSenseError(
            f"{raters} raters, {items} items, {wordings} wordings: give at least 1 and 2, and 2 to "
            "11 wordings"
        )
    try:
        check_seed(seed)
    except ValueError as error:
        raise JudgeSenseError(str(error)) from error
    wanted = attributes(names or ("question-answerability", "essay-organisation"), None)
    chosen = sources(data or {}, [attribute.group for attribute in wanted.values()])
    reader = Reader(Path(mirror) if mirror else None, revisions or {})
    drawn = sample(wanted, chosen, reader, items, seed, wordings - 1)
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


def read_kit(out: str | Path) -> Result:
    """What the raters' filled-in files say: ``rater-*.csv`` beside ``kit.json``.

    Raises:
        JudgeSenseError: no kit, a file that lacks a row or a column, a row twice or changed, or a
            score off the scale, with the file and the row.
    """
    out = Path(out)
    try:
        kit = json.loads((out / KIT_FILE).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise JudgeSenseError(f"{out} holds no kit ({KIT_FILE}); write one first") from error
    files = sorted(out.glob("rater-*.csv"))
    if not files:
        raise JudgeSenseError(f"{out} holds no rater's file (rater-*.csv)")
    scores = {path.stem: _read(path, kit["rows"]) for path in files}
    known = load_attributes()
    rows: list[Sequence[Value]] = []
    each: list[Sequence[Value]] = []
    for name in dict.fromkeys(row["attribute"] for row in kit["rows"].values()):
        own = {key: row for key, row in kit["rows"].items() if row["attribute"] == name}
        table = _table(scores, own)
        labels = known[name].templates.task.labels
        gold = [
            level(next(r["human"] for r in own.values() if r["item_id"] == item), labels)
            for item in dict.fromkeys(r["item_id"] for r in own.values())
        ]
        rows.append(_row(name, known[name].verifiability, table, gold, labels))
        for at, rater in enumerate(scores):
            intra = _intra(table[at : at + 1])
            each.append((name, rater, intra, int(np.sum(table[at] != None))))  # noqa: E711
    return Result(
        "rater-kit",
        "Human raters under several wordings",
        {"raters": list(scores), "texts": kit["notes"]},
        [
            Table(
                "raters", "Raters under several wordings",
                ("attribute", "kind", "raters", "items", "wordings", "intra-rater consistency",
                 "paper's consistency", "exact agreement", "paper's agreement",
                 "Krippendorff's α", "equals the set's score", "scores", "missing"),
                rows, "intra-rater consistency: rater × item with one score under every wording; "
                "exact agreement: item × wording on which all raters gave the same score (both "
                "without those that lack a score); α is ordinal, over item × wording. The paper: "
                "three raters, six texts, five wordings (section 4).",
            ),
            Table(
                "each_rater", "Each rater",
                ("attribute", "rater", "intra-rater consistency", "scores"), each,
            ),
        ],
        list(_findings(rows)),
        ["few raters and texts: a difference between attributes is a hint, not a test"],
    )  # fmt: skip


def _read(path: Path, wanted: Mapping[str, Mapping[str, Any]]) -> dict[str, str | None]:
    known = load_attributes()
    found: dict[str, str | None] = {}
    with path.open(newline="", encoding="utf-8-sig") as source:
        reader = csv.DictReader(source)
        if missing := [name for name in COLUMNS if name not in (reader.fieldnames or ())]:
            raise JudgeSenseError(f"{path}: the column {missing[0]!r} is missing")
        for number, row in enumerate(reader, 1):
            key = f"{row['attribute']}/{row['wording']}/{row['item_id']}"
            if key not in wanted:
                raise JudgeSenseError(
                    f"{path}, row {number}: {key!r} is no row of this kit; only the column score "
                    "is to be filled in"
                )
            if key in found:
                raise JudgeSenseError(f"{path}, row {number}: {key!r} stands there twice")
            labels = known[row["attribute"]].templates.task.labels
            said = (row["score"] or "").strip()
            # Spreadsheets write whole numbers as 4.0 where a column is formatted so.
            said = said.removesuffix(".0")
            if said and said not in labels:
                raise JudgeSenseError(
                    f"{path}, row {number}, column score: {row['score']!r} is off the scale of "
                    f"{row['attribute']}: {', '.join(labels)}"
                )
            found[key] = said or None
    if absent := [key for key in wanted if key not in found]:
        raise JudgeSenseError(f"{path}: the row of {absent[0]!r} is missing ({len(absent)} in all)")
    return found


def _table(
    scores: Mapping[str, Mapping[str, str | None]], own: Mapping[str, Mapping[str, Any]]
) -> Any:
    """Scores of shape (raters, items, wordings); None where one is missing."""
    items = list(dict.fromkeys(row["item_id"] for row in own.values()))
    wordings = list(dict.fromkeys(row["wording"] for row in own.values()))
    place = {(row["item_id"], row["wording"]): key for key, row in own.items()}
    table = np.empty((len(scores), len(items), len(wordings)), dtype=object)
    for at, given in enumerate(scores.values()):
        for i, item in enumerate(items):
            for w, wording in enumerate(wordings):
                table[at, i, w] = given[place[item, wording]]
    return table


def _intra(table: Any) -> float | None:
    rows = [row for rater in table for row in rater if None not in row]
    return float(np.mean([len(set(row)) == 1 for row in rows])) if rows else None


def _row(
    name: str, kind: str, table: Any, gold: Sequence[str], labels: Sequence[str]
) -> Sequence[Value]:
    raters, items, wordings = table.shape
    cells = [table[:, i, w] for i in range(items) for w in range(wordings)]
    full = [cell for cell in cells if None not in cell]
    exact = float(np.mean([len(set(c)) == 1 for c in full])) if full and raters > 1 else None
    flat = table.reshape(raters, -1).tolist()
    alpha = krippendorff_alpha(flat, "ordinal", labels) if raters > 1 and full else None
    given = [(table[r, i, w], gold[i]) for r in range(raters) for i in range(items)
             for w in range(wordings) if table[r, i, w] is not None]  # fmt: skip
    short = name.split("-", 1)[1]
    said = published("paraphrase-robustness")
    paper = [said.get(f"raters.{short}.{field}") for field in ("intra", "exact")]
    return (
        name, kind, raters, items, wordings, _intra(table),
        None if paper[0] is None else paper[0].value, exact,
        None if paper[1] is None else paper[1].value, alpha,
        float(np.mean([a == b for a, b in given])) if given else None,
        len(given), table.size - len(given),
    )  # fmt: skip


def _findings(rows: Sequence[Sequence[Value]]) -> list[str]:
    return [
        f"{row[0]} ({row[1]}): raters keep their score under every wording on {row[5]:.0%} of texts"
        + ("" if row[7] is None else f", and all agree on {row[7]:.0%} of text × wording")
        for row in rows
        if row[5] is not None
    ]
