"""Rows to judge, read as ``check FILE`` reads verdicts: their ids, people's labels and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from judgesense.checking.annotators import labels_by_item, pivot_people
from judgesense.checking.options import RubricOptions
from judgesense.errors import JudgeSenseError
from judgesense.files.data import RUNS
from judgesense.files.tables import ABSENT, Record, Rows, read_table_rows
from judgesense.importers.column_names import (
    ROLES,
    Column,
    Columns,
    columns_of,
    header_key,
    item_of,
)
from judgesense.importers.columns import NAMES, ROW, ColumnMap, values_in
from judgesense.importers.conversations import conversation_of, with_beginnings
from judgesense.importers.items import text_of
from judgesense.importers.people import PeopleLabels
from judgesense.importers.people_columns import people_columns
from judgesense.importers.recognise import looks_like_labels, require_columns
from judgesense.importers.rows import fits, texts_of
from judgesense.importers.shape import shape_of
from judgesense.log.folder import ITEM_SCHEMA
from judgesense.measure.disagreements import MOST_GROUPS
from judgesense.text import join, plural_s, sentence

OF_ITEMS = ("item_id", "system_id", "cluster_id", "gold")
"""The columns of the decision log that rows to judge can have."""

_PROVENANCE = ("source", "revision", "license")
_OWN_IDS = ("item_id", "id")
"""Names of ids that have to be ids: an error names the row that repeats one."""

_FEWEST = 8
"""So many values make an id that rows share a cluster; with fewer it is a group."""


@dataclass(frozen=True)
class RowsToJudge:
    """The rows of a table, each with what its item is made of, and how its columns are read.

    ``rows`` have the columns that the rubric shows, those of `OF_ITEMS` and where the item is from;
    ``others`` are what the table has on each row besides. ``people`` are the columns and persons
    whose labels make ``gold``, ``lines`` say all of this to a person.
    """

    rows: list[Record]
    others: list[dict[str, str]]
    columns: tuple[str, ...]
    roles: Mapping[str, str]
    people: tuple[str, ...]
    lines: tuple[str, ...]

    def groups(self, ids: Iterable[str]) -> pa.Table:
        """The other columns of the items with these ids, as `judgesense.log.folder.ITEM_SCHEMA`."""
        cells = [
            (item, name, text)
            for item, of_row in zip(ids, self.others, strict=True)
            for name, text in of_row.items()
        ]
        columns = [*zip(*cells, strict=True)] or [(), (), ()]
        return pa.table([*map(pa.array, columns)], schema=ITEM_SCHEMA)


def read_rows(
    data: Path,
    shown: set[str],
    options: RubricOptions,
    note: Callable[[str], None],
    beside: Path = RUNS,
) -> RowsToJudge:
    """The rows of a table that a rubric with the columns ``shown`` judges.

    ``options.human`` names columns with people's labels, or files of labels; ``options.columns``
    the columns of `OF_ITEMS`. What is not named is recognised among the columns that the rubric
    does not show. A table with a row for each person is rewritten into the folder ``beside``.

    Raises JudgeSenseError for an unknown column, for one of another role, and for labels that
    several columns could be.
    """
    where, notes, given = str(data), list[str](), dict(options.columns or {})
    if wrong := [role for role in given if role not in OF_ITEMS]:
        raise JudgeSenseError(
            f"--columns {wrong[0]}=... is for verdicts; of rows to judge, name {join(OF_ITEMS)}"
        )
    named = [name for name in options.human if not Path(name).is_file()]
    joined = {
        person: labels
        for name in options.human
        if Path(name).is_file()
        for person, labels in labels_by_item(Path(name))[0].items()
    }
    path = data
    if not joined and (pivoted := _pivoted_rows(data, shown, named, given, note, beside)):
        path, named = pivoted
        given.pop("gold", None)
    read = partial(read_table_rows, path)
    sources = [part for each in given.values() for part in NAMES.findall(each) or [each]]
    columns_named = [each for each in sources if each[:1] != ":"]
    # With columns named as labels, a row stays what it is: no criteria, no option orders.
    shape, found, size = shape_of(read, [*shown, *named, *columns_named], [*shown, ""], {}, where)
    require_columns(found, where, named, "--human")
    require_columns(found, where, columns_named, "--columns")
    left = {name: c for name, c in found.items() if name not in {*shown, *columns_named}}
    gold = given.pop("gold", None)
    people = named or [*filter(None, [gold])] or ["gold"] * ("gold" in found and not joined)
    people = people or ([] if joined else people_columns(left, notes))
    roles = _roles(left, found, given, people, notes)
    if not (people or joined) and (hint := looks_like_labels(left, people, ())):
        notes.append(hint)
    words = (word for name in people for word in found[name].words.values())
    given_labels = [label for by_item in joined.values() for label in by_item.values()]
    labels = PeopleLabels(
        ColumnMap({"item_id": ROW, **roles} if joined else {}),
        [*joined, *people],
        labels=tuple(dict.fromkeys([*words, *given_labels])),
        joined=joined,
    )
    blocks = [labels.labelled(_with_cluster(rows, roles)) for rows in shape.rows(read())]
    few = [n for n, c in found.items() if c.labels and 1 < len(c.texts) <= MOST_GROUPS]
    used = {*people, *columns_named, *roles.values(), *joined, ROW, "gold", *_OWN_IDS}
    groups = [name for name in few if name not in used]
    used |= shown - {*groups}
    rows = [row for block in blocks for row in _records(block, shown, roles)]
    others = [each for block in blocks for each in _others(block, used)]
    voted = [*joined, *people]
    lines = [
        f"read {size} row{plural_s(size)} of {data.name}",
        *([f"shown: {join(sorted(seen))}"] if (seen := shown & found.keys()) else []),
        f"people's labels: {join(voted) if voted else 'none'}"
        + (" (the majority counts; ties have no label)" if len(voted) > 1 else ""),
        *(f"{what}: {roles[role]}" for role, what in _SHOWN.items() if role in roles),
        *([f"groups: {join(groups)}"] if groups else []),
    ]
    notes = [*shape.notes, *notes]
    if joined and not any(row.values.get("gold") for row in rows):
        raise JudgeSenseError(
            f"no label in {join(options.human)} matches an item of {data}; use the same ids"
        )
    columns = tuple(name for name in found if "." not in name)
    said = tuple(map(sentence, [*lines, *notes]))
    return RowsToJudge(rows, others, columns, roles, tuple(voted), said)


_SHOWN = {"item_id": "items", "system_id": "systems", "cluster_id": "clusters"}


def _pivoted_rows(
    data: Path,
    shown: set[str],
    named: list[str],
    given: Mapping[str, str],
    note: Callable[[str], None],
    beside: Path,
) -> tuple[Path, list[str]] | None:
    """A table with a row for each person, as one with a column for each; None for another one."""
    held, _ = columns_of(read_table_rows(data))
    human = named or [*filter(None, [given.get("gold")])]
    if any(name not in held for name in human):
        return None  # The error of an unknown column names it.
    others = {role: name for role, name in given.items() if role != "gold"}
    lines: list[str] = []
    pivoted = pivot_people(data, held, beside, human=human, columns=others, tell=lines.append)
    if pivoted is None:
        return None
    path, people, models, _ = pivoted
    # Rows of one item that show different texts are different items.
    if len(_texts(path, shown)) < len(_texts(data, shown)):
        return None
    for line in lines:
        note(line.replace("verdicts", "items"))
    return path, [*people, *models]


def _texts(path: Path, shown: set[str]) -> set[tuple[str, ...]]:
    rows = (row for block in read_table_rows(path) for row in block.records())
    return {tuple(str(row.values.get(name)) for name in sorted(shown)) for row in rows}


def _roles(
    left: Columns,
    found: Mapping[str, Column],
    given: Mapping[str, str],
    people: Iterable[str],
    notes: list[str],
) -> dict[str, str]:
    """Column of the log -> column of the table, of the ``left`` ones; what is given goes first."""
    roles = dict(given)
    free = {name: c for name, c in left.items() if name not in {*people} and c.filled}
    by_name = {header_key(name): name for name in reversed([*free])}
    for role in ("system_id", "cluster_id"):
        names = (by_name[key] for key in ROLES[role].split() if key in by_name)
        if role not in roles and (name := next(names, None)) and fits(role, found[name].texts):
            roles[role] = by_name.pop(header_key(name))
            del free[name]
    if "item_id" in roles:
        own: str | None = roles["item_id"]
    else:
        unique = {name: column for name, column in free.items() if column.unique}
        own = next((by_name[key] for key in _OWN_IDS if key in by_name), None) or item_of(unique)
        roles |= {"item_id": own} if own else {}
    if "cluster_id" in roles:
        return roles
    independent = "" if own is None else f"; if they are independent, --columns cluster_id={own}"
    shared = item_of({n: c for n, c in free.items() if n != own and not c.unique})
    if (
        shared
        and len(found[shared].texts) >= _FEWEST
        and header_key(shared) in ROLES["item_id"].split()
    ):
        roles["cluster_id"] = shared
        notes.append(f"rows with the same {shared!r} are a cluster{independent}")
    elif own is not None:
        _, cluster = conversation_of(found, roles, notes)
        roles |= {"cluster_id": cluster} if cluster else {}
    return roles


def _with_cluster(rows: Rows, roles: Mapping[str, str]) -> Rows:
    """The rows with the column of beginnings, where clusters are beginnings of ids."""
    if roles.get("cluster_id", ROW) in (*rows.columns, ROW):
        return rows
    return with_beginnings(rows, roles["item_id"])


def _records(rows: Rows, shown: set[str], roles: Mapping[str, str]) -> Iterable[Record]:
    columns = {role: _texts_of(rows, roles, role) for role in roles}
    for at, record in enumerate(rows.records()):
        values = {name: record.values[name] for name in record.values if name in shown}
        values |= {n: record.values[n] for n in _PROVENANCE if n in record.values}
        of_item = {role: texts[at] for role, texts in columns.items() if texts is not None}
        gold = record.values.get("gold")
        yield replace(record, values={**values, "gold": gold, **of_item})


def _texts_of(rows: Rows, roles: Mapping[str, str], role: str) -> list[str | None] | None:
    if (values := values_in(rows, roles[role])) is None:
        values = ColumnMap(roles).column(rows, role)  # A constant, or several columns joined.
    return texts_of([None if value is ABSENT else value for value in values or ()])


def _others(rows: Rows, used: set[str]) -> Iterable[dict[str, str]]:
    names = [name for name in rows.columns if name not in used]
    for at in range(len(rows)):
        cells = {name: text_of(rows.columns[name][at]) for name in names}
        yield {name: text for name, text in cells.items() if text}
