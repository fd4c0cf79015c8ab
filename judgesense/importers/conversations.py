"""Items that belong together by their ids or a column: turns of one conversation are a cluster."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping

from judgesense.files.tables import Rows
from judgesense.importers.column_names import Columns, header_key
from judgesense.importers.columns import CONVERSATION, NAMES, values_in

_NAME = re.compile(r"(conv|conversation|thread|session|dialog|dialogue|chat_id)(_id)?")
"""Columns that name conversations."""

_TURN = re.compile(
    r"(.*[0-9A-Za-z])(?:[^0-9A-Za-z]+[A-Za-z]*[^0-9A-Za-z]*|(?<=\d)[A-Za-z]+[^0-9A-Za-z]*)\d{1,3}"
)
"""The beginning of an id, and a counter that is set off: ``conv12-turn3``, ``dlg/7/1``."""
_NUMBER = re.compile(r"[0-9a-f]{8}[0-9a-f-]*|\d+")

_FEWEST, _LARGEST, _SMALLEST = 8, 30, 1.3
"""The fewest conversations, and their mean sizes: others are languages, batches or sources."""


def beginning_of(item: str) -> str:
    """What the id of a turn has in common with those of its conversation; else the id.

    >>> [beginning_of(item) for item in ("conv12-turn3", "t-0042_q2", "dlg/7/1", "q17")]
    ['conv12', 't-0042', 'dlg/7', 'q17']
    """
    match = _TURN.fullmatch(item)
    return match[1] if match else item


def with_beginnings(rows: Rows, item: str) -> Rows:
    """The rows with the column `CONVERSATION`."""
    items = values_in(rows, item) or [None] * len(rows)
    cells = [None if value is None else beginning_of(str(value)) for value in items]
    return Rows({**rows.columns, CONVERSATION: cells}, rows.places)


def conversation_of(
    found: Columns, roles: Mapping[str, str], notes: list[str]
) -> tuple[str, str | None]:
    """The column of items, and that by which they are clusters, of the file or `CONVERSATION`.

    Beginnings of ids count as conversations if they differ in a number only and there are enough of
    them, of few turns each. ``notes`` says so, and warns where that is uncertain.
    """
    item = (NAMES.findall(roles["item_id"]) or [roles["item_id"]])[0]
    if roles.get("cluster_id", item) != item:
        return item, None
    independent = f"if they are independent, add --columns cluster_id={shlex.quote(item)}"
    for name in (n for n in found if _NAME.fullmatch(header_key(n)) and n not in roles.values()):
        size = found[name].filled / max(1, len(found[name].texts))
        if size >= _SMALLEST and len(found[name].texts) >= _FEWEST:
            notes.append(f"rows with the same {name!r} are a cluster; {independent}")
            return item, name
    if item not in found:
        return item, None
    sizes = Counter(map(beginning_of, found[item].texts))
    mean = len(found[item].texts) / max(1, len(sizes))
    if not _SMALLEST <= mean <= _LARGEST or len(sizes) < 2:
        return item, None
    forms = Counter(_NUMBER.sub("#", beginning) for beginning in sizes)
    ((_, alike),) = forms.most_common(1)
    example = repr(next(text for text in found[item].texts if sizes[beginning_of(text)] > 1))
    if 10 * alike >= 9 * len(sizes) and len(sizes) >= _FEWEST:
        notes.append(
            f"items whose {item!r} begins alike, such as {example}, are taken as turns of "
            f"{len(sizes)} conversations, each a cluster; {independent}"
        )
        return item, CONVERSATION
    notes.append(
        f"{item!r} has {len(sizes)} beginnings, as in {example}: if items with the same one are "
        "related, put it in a column and add --columns cluster_id=COLUMN"
    )
    return item, None
