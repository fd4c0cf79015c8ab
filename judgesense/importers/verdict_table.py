"""A table of verdicts as a decision log in memory: what `judgesense.read_verdicts` reads.

Columns, cells and labels are read as ``judgesense check FILE`` reads them, but people's labels that
share no word with the verdicts are left out, and numbers need not be whole. Verdicts and gold are
in the items' own order, also in rows of the order BA.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
from pydantic import Field, TypeAdapter

from judgesense.answers import parse
from judgesense.errors import JudgeSenseError
from judgesense.files.tables import Rows, read_table_rows
from judgesense.files.typed_rows import number_of
from judgesense.importers import Items
from judgesense.importers.build import build_parts
from judgesense.importers.choices import LABELS
from judgesense.importers.column_names import columns_of
from judgesense.importers.columns import ADDED, NAMES, ROW, ColumnMap
from judgesense.importers.copies import Copies
from judgesense.importers.label_space import space_of
from judgesense.importers.layout import Layout, lay_out
from judgesense.importers.log import format_of, import_log, importer_of, source_digest
from judgesense.importers.people import PeopleLabels
from judgesense.importers.reading import understand
from judgesense.importers.rows import converted, texts_of
from judgesense.importers.shape import Step, through
from judgesense.importers.values import LONGEST, MOST, fold, stated, word_of
from judgesense.log.answers import Answers
from judgesense.log.view import view
from judgesense.statistics.arrays import Floats
from judgesense.tasks import UNDECIDED

TARGET_OF: Mapping[str, str] = {
    "item_id": "item_id",
    "system_id": "system_id",
    "order": "order",
    "repeat": "repeat",
    "judge": "judge",
    "task": "task",
    "wording": "template_id",
    "cluster_id": "cluster_id",
    "error": "error",
    "verdict": "raw_decision",
    "gold": "gold",
}
"""Column of a table of verdicts -> column of the decision log."""

NUMBERS = ("margin", "score")
"""Columns of a table of verdicts that a decision log does not have: how much more probable the
verdict is than the next label (0 to 1), and the expected score."""

_as_number = TypeAdapter(Annotated[float, Field(ge=-MOST, le=MOST)]).validate_python
_AS_NAMED = ColumnMap({})


@dataclass(frozen=True)
class VerdictTable:
    """A table of verdicts as answers in a decision log, whose rows are the table's in their order.

    ``numbers`` has the columns `NUMBERS` with a value for each row, NaN without one. ``columns``
    are the table's columns under their names here, and ``recognised`` those of them whose names in
    the file are others.
    """

    answers: list[Answers]
    numbers: Mapping[str, Floats]
    columns: Mapping[str, str]
    recognised: Mapping[str, str] = field(default_factory=dict)
    as_shown: bool = False
    """Whether verdicts name what was shown, as in a log; else they name the item's own options."""


def read_verdict_table(
    path: Path, judge: str | None = None, columns: Mapping[str, str] | None = None
) -> VerdictTable:
    """Read a table of verdicts; ``columns`` are the file's names of `TARGET_OF` and `NUMBERS`.

    If several columns hold verdicts, ``judge`` names one of them. Raises JudgeSenseError for a
    column that is missing or unknown, for several columns of verdicts of which none is named, for
    texts instead of labels, and with file, row and column for a cell that does not fit.
    """
    given, names = dict(columns or {}), (*TARGET_OF, *NUMBERS)
    if unknown := sorted(given.keys() - {*names}):
        raise JudgeSenseError(
            f"--columns: {unknown[0]!r} is not a column; choose from {', '.join(names)}"
        )
    held, _ = columns_of(read_table_rows(path))
    notes: list[str] = []
    # A file of `judgesense judge` has the items' columns too: its own names go first.
    own = "verdict" in held or "verdict" in given
    exact = {name: name for name in names if own and name in held} | given
    layout = lay_out(
        lambda: read_table_rows(path),
        str(path),
        notes,
        flag="--columns verdict=",
        verdicts=[exact["verdict"]] if "verdict" in exact else [],
        people=[exact["gold"]] if "gold" in exact else [],
        columns={
            TARGET_OF.get(name, name): column
            for name, column in exact.items()
            if name not in ("verdict", "gold")
        },
    )
    found, judged, people, roles = layout.found, layout.judged, layout.people, layout.roles
    if len(judged) > 1 and judge not in judged:
        raise JudgeSenseError(
            f"{path} has several judges; choose one with --judge: {', '.join(judged)}"
        )
    verdict = judge if judge is not None and len(judged) > 1 else judged[0]
    if roles["item_id"] == ROW != given.get("item_id"):
        raise JudgeSenseError(
            f"{path}: no column 'item_id' says what each verdict is on; its columns: "
            f"{', '.join(found)}. Name yours with --columns item_id=YOURS"
        )
    mapping: dict[str, str] = {}
    labels = _labels(path, layout, verdict, people, mapping) if len(people) == 1 else ()
    if not labels and "gold" in given:
        raise JudgeSenseError(
            f"{path}: {given['gold']!r} ({found[given['gold']].shown}) and {verdict!r} "
            f"({found[verdict].shown}) have no label in common; to translate people's labels, pass "
            "their file with --labels and --map THEIRS=OURS"
        )
    people = people if labels else []
    # The reasons of several judges are joined by commas.
    reasons = roles.get("raw_text", ":").split(",")
    reason = reasons[judged.index(verdict)] if len(reasons) == len(judged) else ":"
    roles = {"judge": f":{verdict}", **roles, "raw_decision": verdict, "raw_text": reason}
    labels = labels or _labels(path, layout, verdict, [], mapping)
    if layout.choices is not None:
        roles = {"system_id": ":A|B", **roles}
    if layout.choices is not None and {*labels} <= {*LABELS}:
        labels = tuple(label for label in LABELS if label in labels or label != "tie")
    table = import_table(path, roles, labels, people=people, mapping=mapping, steps=layout.steps())
    used = columns_by_name({**roles, "gold": people[0] if people else ":"})
    return replace(
        table,
        columns=used,
        recognised={name: column for name, column in used.items() if name not in exact},
        as_shown=layout.choices is not None,
    )


def import_of_tool(path: Path, runs: Path) -> Path | None:
    """The folder in ``runs`` of the import of another tool's file, which is read as ``judgesense
    check FILE`` reads it; None for a table. Raises JudgeSenseError as that does."""
    if (name := format_of(path)) == "table":
        return None
    importer = importer_of(name)
    found = understand(
        lambda: importer.read(path, Items(), None), str(path), labels=importer.labels, is_log=True
    )
    text = json.dumps([source_digest([path]), found.facts], sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()
    out = Path(runs, "import", f"{path.stem.lstrip('.')}-{digest[:8]}")
    import_log(path, name, out, steps=found.steps(), parse=parse, **found.facts)
    return out


def columns_by_name(roles: Mapping[str, str]) -> dict[str, str]:
    """Column of a table of verdicts -> column of the file, by a column map of the log."""
    columns = {
        name: (NAMES.findall(roles[target]) or [roles[target]])[0]
        for name, target in TARGET_OF.items()
        if roles.get(target, ":")[:1] != ":"
        and roles[target] not in ADDED
        and not (name == "system_id" and len(NAMES.findall(roles[target])) > 1)
    }
    if columns.get("cluster_id") == columns.get("item_id"):
        del columns["cluster_id"]  # The item is the cluster by default.
    return columns


def import_table(
    path: Path,
    roles: Mapping[str, str],
    labels: Sequence[str],
    *,
    people: Sequence[str] = (),
    mapping: Mapping[str, str] | None = None,
    steps: Sequence[Step] = (),
) -> VerdictTable:
    """Import a table whose columns are known.

    ``roles`` are a column map of the decision log, with the file's columns for `NUMBERS`;
    ``labels``, ``people``, ``mapping`` and ``steps`` are those of
    `judgesense.importers.log.import_log`.
    Raises JudgeSenseError, with file, row and column, for a cell that does not fit.
    """
    log_roles = {
        # A `decision` beside another column of verdicts is not what a label map makes of these.
        "decision": "decision" if roles["raw_decision"] == "raw_decision" else ":",
        **{target: column for target, column in roles.items() if target not in NUMBERS},
        "margin": ":",  # A log's margin is in nats.
    }
    if roles.get("task", ":").startswith(":"):
        # Its file name would not pair a table with another one.
        log_roles["task"] = ":verdicts"
    columns, space = ColumnMap(log_roles), tuple(labels)
    gold = PeopleLabels(columns, people, mapping or {}, space)
    numbers: dict[str, list[float]] = {name: [] for name in NUMBERS}
    copies = Copies(columns, (ROW, "labels", *people))

    def blocks() -> Iterator[Rows]:
        for rows in through(steps, read_table_rows(path)):
            for name, values in numbers.items():
                values += _numbers(rows, roles.get(name, name))
            yield copies.record(gold.labelled(rows))

    parts: list[pa.Table] = []
    facts = build_parts(blocks(), columns, space, stated, parts.append)
    arrays = {name: np.array(values) for name, values in numbers.items()}
    record = {**facts, "copies": copies.found()}
    answers = view(pa.concat_tables(parts), None, record).judged
    return VerdictTable(answers, arrays, columns_by_name(roles))


def _numbers(rows: Rows, name: str) -> list[float]:
    cells = texts_of(_AS_NAMED.column(rows, name)) or [None] * len(rows)
    return [math.nan if n is None else n for n in converted(cells, _as_number, name, rows.places)]


def _labels(
    path: Path, layout: Layout, verdict: str, gold: Sequence[str], mapping: dict[str, str]
) -> tuple[str, ...]:
    """The labels of the verdicts and of gold, in order; none if gold has no label of the verdicts.

    ``mapping`` gets what makes two vocabularies one. Raises JudgeSenseError for texts.
    """
    held = layout.found
    words = [_words(path, layout, name) for name in (verdict, *gold)]
    if not words[0]:
        raise JudgeSenseError(f"{path}: no row has a verdict; judge the items first")
    if gold and not {*words[0]} & {*words[1]}:
        return ()
    is_numeric = all(number_of(word) is not None for word in words[0])
    if not is_numeric and all(held[name].labels for name in (verdict, *gold)):
        return space_of(held, [verdict], gold, str(path), mapping, []) or ()
    union = {
        key: word
        for column in reversed(words)
        for key, word in column.items()
        if not is_numeric or number_of(word) is not None  # "not rated" is no rating.
    }
    if max(map(len, union)) > LONGEST:
        raise JudgeSenseError(
            f"{path}: {verdict!r} holds texts such as {held[verdict].shown!r}, not verdicts; name "
            "another column with --columns verdict=COLUMN"
        )
    return ordered(union.values())


def ordered(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels in order: numbers ascending, others as text.

    >>> ordered(["10", "9.5"]), ordered(["no", "9"])
    (('9.5', '10'), ('9', 'no'))
    """
    words = sorted(labels)
    if not all(number_of(word) is not None for word in words):
        return tuple(words)
    return tuple(sorted(words, key=lambda word: number_of(word) or 0.0))


def _words(path: Path, layout: Layout, name: str) -> dict[str, str]:
    """The distinct words of a column by `fold`."""
    if layout.found[name].is_complete:
        return layout.found[name].words
    words: dict[str, str] = {}
    for rows in through(layout.steps(), read_table_rows(path)):
        for word in map(word_of, texts_of(_AS_NAMED.column(rows, name)) or ()):
            if word is not None and word not in UNDECIDED:
                words.setdefault(fold(word), word)
    return words
