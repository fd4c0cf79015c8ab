"""Which items of a file are the same text under another id."""

from __future__ import annotations

import re
from collections.abc import Collection

from judgesense.files.tables import ABSENT, Rows
from judgesense.importers.columns import ColumnMap, read_columns
from judgesense.importers.rows import texts_of
from judgesense.statistics.copies import folded

_WORD = re.compile(r"[^\W\d_]{2}")

FAMILY = "family"
"""The column that names the text of which a wording is an edit."""

_FEWEST = (4, 20)
"""A column with no more different values than a fifth of the items, within these limits, holds
kinds of items, not their texts."""


class Copies:
    """Compares the texts of a file's items, in the columns that neither the column map nor ``read``
    names and most of whose values have several words."""

    def __init__(self, columns: ColumnMap, read: Collection[str] = ()) -> None:
        self._columns, self._read = columns, {*read} | read_columns(columns)
        self._hashes: dict[str, dict[str, int]] = {}
        self._values: dict[str, dict[int, bool]] = {}
        self._families: dict[str, set[str]] = {}

    def record(self, rows: Rows) -> Rows:
        """The rows, after the texts of their items and the families of their wordings are noted."""
        if FAMILY in rows.columns:
            wordings = texts_of(self._columns.column(rows, "template_id")) or ()
            named = zip(wordings, texts_of(rows.columns[FAMILY]) or (), strict=False)
            for wording, family in named:
                if wording and family:
                    self._families.setdefault(wording, set()).add(family)
        names = [name for name in rows.columns if name not in self._read]
        ids = texts_of(self._columns.column(rows, "item_id")) if names else None
        for at, item in enumerate(ids or ()):
            if item is not None and item not in self._hashes:
                cells = {name: rows.columns[name][at] for name in names}
                self._hashes[item] = {
                    name: self._hash(name, cell)
                    for name, cell in cells.items()
                    if cell is not ABSENT and isinstance(cell, str) and cell
                }
        return rows

    def _hash(self, name: str, text: str) -> int:
        code = hash(folded(text))
        self._values.setdefault(name, {}).setdefault(code, _has_words(text))
        return code

    def families(self) -> dict[str, str]:
        """The family of each wording; empty unless each has one."""
        if any(len(each) > 1 for each in self._families.values()):
            return {}
        return {wording: min(each) for wording, each in self._families.items()}

    def found(self) -> dict[str, str]:
        """Each item that is a copy, with the first item of that text."""
        least = min(max(_FEWEST[0], len(self._hashes) / 5), _FEWEST[1])
        texts = [
            name
            for name, held in self._values.items()
            if len(held) > least and sum(held.values()) * 2 > len(held)
        ]
        first: dict[tuple[int, ...], str] = {}
        copies = {}
        for item, hashes in self._hashes.items():
            key = tuple(hashes.get(name, 0) for name in texts)
            if any(key) and (original := first.setdefault(key, item)) != item:
                copies[item] = original
        return copies


def _has_words(text: str) -> bool:
    """Whether a text has several words; looks at its beginning only, for a text may be huge."""
    return sum(bool(_WORD.search(part)) for part in text[:2000].split()) > 1
