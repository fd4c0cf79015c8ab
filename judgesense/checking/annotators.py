"""People's labels with one row a person and item, as annotation tools export them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

from judgesense.errors import JudgeSenseError
from judgesense.files.data import materialise
from judgesense.files.tables import Record, read_table
from judgesense.files.typed_rows import as_id
from judgesense.importers.column_names import (
    KIND,
    NOT_LABELS,
    PEOPLE,
    ROLES,
    VERDICTS,
    Columns,
    header_key,
    item_of,
    rater_of,
)
from judgesense.importers.label_files import read_label_rows
from judgesense.importers.people_columns import people_columns
from judgesense.importers.roles import turns_in
from judgesense.importers.sides import sides_of
from judgesense.importers.values import SAME, fold, place_of
from judgesense.importers.who import JUDGE, who
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


def pivot_people(
    path: Path,
    found: Columns,
    runs: Path,
    *,
    human: Sequence[str],
    columns: Mapping[str, str],
    tell: Callable[[str], None],
) -> tuple[Path, list[str], list[str], dict[str, str]] | None:
    """A table of verdicts with one row a person, as a table with one row a verdict and a column for
    each person, kept in ``runs``, with the columns of people and of models among them and what the
    item is, if that is a pair of systems; None for any other table.

    ``human`` is the column with people's labels, by default recognised; ``columns`` are those of
    the decision log that the caller named. Raises JudgeSenseError for rows of the same item that
    differ in the verdict.
    """
    given = {*columns.values(), *human}
    rater = rater_of({name: column for name, column in found.items() if name not in given})
    if rater is None:
        return None
    rows_of_file = list(read_table(path))
    item = columns.get("item_id") or item_of(found) or _repeated(rows_of_file, rater, found)
    if item is None or item not in found:
        return None
    others = {name: column for name, column in found.items() if name not in (rater, item)}
    kind = next((name for name in found if KIND.fullmatch(header_key(name))), None)
    labels = list(human) or people_columns(others, [])
    labels = labels or _varying(rows_of_file, item, found, {rater, kind, item})
    if len(labels) != 1 or labels[0] not in found:
        return None
    label = labels[0]
    by_name = {header_key(name): name for name in found}
    roles = ("system_id", "task", "judge", "template_id", "order", "repeat")
    named = [name for role in roles for name in (columns.get(role) or ROLES[role]).split()]
    sides = sides_of(found) or ()
    key = [item, *sides, *turns_in(found)]
    key += [by_name[name] for name in named if name in by_name]
    key = [name for name in key if name != rater]
    judged = [
        name
        for name, column in others.items()
        if name not in (*key, label, kind)
        and (header_key(name) in VERDICTS or (who(name) == JUDGE and column.labels))
        and not NOT_LABELS.fullmatch(header_key(name))
    ]
    if sides:
        rows_of_file = list(_in_one_order(rows_of_file, sides, [label, *judged]))
    rows: dict[tuple[str, ...], dict[str, object]] = {}
    people: dict[str, bool] = {}
    for record in rows_of_file:
        values = record.values
        kept_row = {k: v for k, v in values.items() if k not in (rater, kind, label)}
        first = rows.setdefault(tuple(str(as_id(values.get(k))) for k in key), kept_row)
        for name in judged:
            if first.get(name) != kept_row.get(name):
                raise JudgeSenseError(
                    f"{record.place}: {name} is {kept_row.get(name)!r}, but "
                    f"{first.get(name)!r} in an earlier row of the same {' and '.join(key)}; add "
                    "a column that tells them apart, such as judge or repeat, or, if "
                    f"{rater} says what was judged, --columns system_id={shlex.quote(rater)}"
                )
        person, said = str(as_id(values.get(rater)) or "label"), as_id(values.get(label))
        if said is not None and str(said).strip():
            first[person] = said
            by_kind = kind is not None and who(str(values.get(kind))) == JUDGE
            people[person] = people.get(person, False) or by_kind or who(person) == JUDGE
    if len(rows) == len(rows_of_file):
        return None
    for person in people.keys() & found.keys() - {rater, kind, label}:
        raise JudgeSenseError(f"{path}: {person!r} names a column and a person; rename one")
    tell(f"{path.name}: one row per person (column {rater}); {len(rows)} verdicts")
    models = [] if judged else [person for person, is_model in people.items() if is_model]
    if len(models) == len(people):
        models = []
    if models:
        tell(f"{join([*map(repr, models)])} {'are judges' if models[1:] else 'is a judge'}")
    for row in rows.values():
        row |= {person: row.get(person) for person in people}
    humans = [person for person in people if person not in models]
    pair = {}
    if "item_id" not in columns and any(len(found[side].texts) > 2 for side in sides):
        systems = "|".join(f"{{{side}}}" for side in sides)
        pair = {"item_id": f"{{{item}}}/{systems}", "cluster_id": item}
    return materialise(rows.values(), runs, path.stem), humans, models, pair


def _in_one_order(
    records: Sequence[Record], sides: tuple[str, str], names: Sequence[str]
) -> Iterator[Record]:
    """The rows with the two systems of a pair in the same order everywhere, if it changes; a choice
    is then the name of a system."""
    pairs = [tuple(str(record.values.get(side)) for side in sides) for record in records]
    changes = any(one != two and (two, one) in {*pairs} for one, two in {*pairs})
    for record, pair in zip(records, pairs, strict=True):
        values = dict(record.values)
        if changes:
            values |= dict(zip(sides, sorted(pair), strict=True))
            places = {n: place_of(fold(str(values.get(n))), SAME[1]) for n in names}
            values |= {n: pair[at] for n, at in places.items() if at is not None and at < 2}
        yield Record(values, record.place)


def _repeated(records: Sequence[Record], rater: str, found: Columns) -> str | None:
    """The first column with a value in several rows, but in one row of each person."""
    for name, column in found.items():
        pairs = {(str(r.values.get(name)), str(r.values.get(rater))) for r in records}
        usable = name != rater and not (column.unique or column.blank or column.decimals)
        if usable and len(pairs) == len(records) > len({one for one, _ in pairs}):
            return name
    return None


def _varying(
    records: Sequence[Record], item: str, found: Columns, without: Collection[str | None]
) -> list[str]:
    """The column of labels in which rows of an item differ, if it is one; by name first."""
    columns = [name for name in found if found[name].labels and name not in without]
    whole = [name for name in columns if found[name].filled > found[name].blank]
    several = []
    for name in whole or columns:  # A remark is on few rows.
        values: dict[str, set[str]] = {}
        for record in records:
            values.setdefault(str(record.values.get(item)), set()).add(str(record.values.get(name)))
        several += [name] if any(len(each) > 1 for each in values.values()) else []
    named = [name for name in several if header_key(name) in (*PEOPLE, *VERDICTS)]
    return named if len(named) == 1 else several if len(several) == 1 else []
