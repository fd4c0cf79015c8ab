"""People's labels with one row a person and item, as annotation tools export them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from judgesense.errors import JudgeSenseError
from judgesense.files.data import materialise
from judgesense.files.tables import Record, read_table
from judgesense.files.typed_rows import as_id
from judgesense.importers.column_names import (
    MODEL,
    PEOPLE,
    ROLES,
    VERDICTS,
    Columns,
    label_columns,
    plain,
)
from judgesense.importers.label_files import LabelRow, read_label_rows
from judgesense.importers.recognise import people_columns
from judgesense.text import join

LabelsByPerson = dict[str, dict[str, str]]
"""Label by person and item; ``item/system`` where the labels are on several systems."""


def labels_by_item(
    file: Path, columns: Mapping[str, str] | None = None
) -> tuple[LabelsByPerson, dict[str, float]]:
    """The labels in a file, and the chances with which ``judgesense label`` picked their items.

    Columns that have other names are recognised. Raises JudgeSenseError as
    `judgesense.importers.label_files.read_label_rows`, and without any label.
    """
    labels: LabelsByPerson = {}
    chances: dict[str, float] = {}
    rows = [row for row, _ in read_label_rows(file, columns)]
    several = len({row.system_id for row in rows}) > 1
    for row in rows:
        if row.label is not None:
            item = f"{row.item_id}/{row.system_id}" if several else row.item_id
            labels.setdefault(row.rater or "label", {})[item] = row.label
            if row.stratum and row.probability:
                chances[item] = row.probability
    if not labels:
        raise JudgeSenseError(f"{file} has no labels yet; add some with judgesense label")
    return labels, chances


def one_row_an_item(
    path: Path,
    found: Columns,
    runs: Path,
    *,
    human: Sequence[str],
    columns: Mapping[str, str],
    tell: Callable[[str], None],
) -> tuple[Path, LabelsByPerson] | None:
    """A table of verdicts with one row a person, as a table with one row a verdict, kept in
    ``runs``, and its labels; None for any other table.

    ``human`` is the column with people's labels, by default recognised; ``columns`` are those of
    the decision log that the caller named. Raises JudgeSenseError for rows of the same item that
    differ in the verdict.
    """
    fields = {field: field for field in LabelRow.model_fields if field in found}
    fields |= label_columns(found) | {f: columns[f] for f in ("item_id",) if f in columns}
    rater = fields.get("rater")
    if rater is None or "item_id" not in fields or len(found[rater].texts) < 2:
        return None
    others = {name: column for name, column in found.items() if name != rater}
    rows_of_file = list(read_table(path))
    kind = next((name for name in found if _KIND.fullmatch(plain(name))), None)
    labels = list(human) or people_columns(others, [])
    labels = labels or _varying(rows_of_file, fields["item_id"], found, {rater, kind})
    if len(labels) != 1 or labels[0] not in found:
        return None
    fields["label"] = labels[0]
    roles = [columns.get(role) or role for role in ("judge", "template_id", "order", "repeat")]
    by_name = {plain(name): name for name in found}
    key = [fields[f] for f in ("item_id", "system_id") if f in fields]
    key += [
        by_name[name]
        for role in roles
        for name in (ROLES.get(role, role).split())
        if name in by_name
    ]
    judged = [name for name in others if plain(name) in VERDICTS and name not in (*key, labels[0])]
    rows: dict[tuple[str, ...], dict[str, object]] = {}
    for record in rows_of_file:
        kept_row = {k: v for k, v in record.values.items() if k not in (rater, kind, labels[0])}
        first = rows.setdefault(tuple(str(as_id(record.values.get(k))) for k in key), kept_row)
        for name in judged:
            if first.get(name) != kept_row.get(name):
                raise JudgeSenseError(
                    f"{record.place}: {name} is {kept_row.get(name)!r}, but "
                    f"{first.get(name)!r} in an earlier row of the same {' and '.join(key)}; add "
                    "a column that tells them apart, such as judge or repeat"
                )
    if len(rows) == len(rows_of_file):
        return None
    tell(f"{path.name}: one row per person (column {rater}); {len(rows)} verdicts")
    names = {field: name for field, name in fields.items() if field != name}
    by_person = labels_by_item(path, names)[0]
    of_model = {
        str(as_id(record.values.get(rater)))
        for record in rows_of_file
        if kind and MODEL.search(plain(str(record.values.get(kind))))
    }
    models = [name for name in by_person if name in of_model or MODEL.search(plain(name))]
    models = [] if judged else models
    if models and len(models) < len(by_person):
        for (item, *system), row in rows.items():
            ids = (item, "/".join([item, *system[:1]]))
            for name in models:
                row[name] = next((by_person[name][n] for n in ids if n in by_person[name]), None)
        tell(f"{join([*map(repr, models)])} {'are judges' if models[1:] else 'is a judge'}")
        by_person = {name: by_person[name] for name in by_person if name not in models}
    return materialise(rows.values(), runs, path.stem), by_person


_KIND = re.compile(r"(rater|annotator|reviewer|labell?er|evaluator|author|source)_(type|kind|role)")
"""The name of a column that says whether a person or a model labelled."""


def _varying(
    records: Sequence[Record], item: str, found: Columns, without: Collection[str | None]
) -> list[str]:
    """The column of labels in which rows of an item differ, if it is one; by name first."""
    columns = [name for name in found if found[name].labels and name not in without]
    several = []
    for name in columns:
        values: dict[str, set[str]] = {}
        for record in records:
            values.setdefault(str(record.values.get(item)), set()).add(str(record.values.get(name)))
        several += [name] if any(len(each) > 1 for each in values.values()) else []
    named = [name for name in several if plain(name) in (*PEOPLE, *VERDICTS)]
    return named if len(named) == 1 else several if len(several) == 1 else []
