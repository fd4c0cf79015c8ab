"""Which items of a file share what was judged: the same text, the same question, or one form."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from judgesense.files.tables import ABSENT, Rows
from judgesense.importers.column_names import header_key
from judgesense.importers.columns import ColumnMap, read_columns
from judgesense.importers.outputs import is_output
from judgesense.importers.rows import texts_of
from judgesense.statistics.arrays import Codes
from judgesense.statistics.copies import FILLED, folded, linked, near_copies

_WORD = re.compile(r"[^\W\d_]{2}")
_INPUT = re.compile(
    r"((user|input|original|source)_)?(question|query|prompt|input|instruction|request|article"
    r"|document|message)s?(_text)?"
)

_ASKED = re.compile("prompt|instruction|message", re.I)

FAMILY = "family"
"""The column that names the text of which a wording is an edit."""

_FEWEST = (4, 20)
"""A column with no more different values than a fifth of the items, within these limits, holds
kinds of items, not their texts."""

_MOST_READ = (10_000, 1_000)
"""Near copies are looked for among this many items at most, in this much of each text."""

_LEAST_FORM = 20
"""In a tenth of the items, and in this many texts at least, a pair of words belongs to a form that
items share, such as a rubric or examples; in more than a quarter of them always."""


SHARED = {
    "text": "the text",
    "input": "the question or prompt",
    "form": "most words of the text",
    "form of the input": "most words of the question or prompt",
}
"""What items share, in words."""


class Copies:
    """Compares the texts of a file's items, in the columns that neither the column map nor ``read``
    names and most of whose values have several words."""

    def __init__(self, columns: ColumnMap, read: Collection[str] = ()) -> None:
        self._columns, self._read = columns, {*read} | read_columns(columns)
        self._hashes: dict[str, dict[str, int]] = {}
        self._texts: dict[str, dict[str, str]] = {}
        self._values: dict[str, dict[int, bool]] = {}
        self._families: dict[str, set[str]] = {}
        self.counts: dict[str, int] = {}
        """How many items `found` joins with another one, by what they share."""

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
                cells = {name: cell for name, cell in cells.items() if cell is not ABSENT}
                texts = {name: cell for name, cell in cells.items() if isinstance(cell, str)}
                self._hashes[item] = {name: self._hash(name, cell) for name, cell in texts.items()}
                if len(self._hashes) <= _MOST_READ[0]:
                    kept = {name: text[: _MOST_READ[1]] for name, text in texts.items()}
                    self._texts[item] = kept
        return rows

    def _hash(self, name: str, text: str) -> int:
        if not text:
            return 0
        code = hash(folded(text))
        self._values.setdefault(name, {}).setdefault(code, _has_words(text))
        return code

    def families(self) -> dict[str, str]:
        """The family of each wording; empty unless each has one."""
        if any(len(each) > 1 for each in self._families.values()):
            return {}
        return {wording: min(each) for wording, each in self._families.items()}

    def found(self) -> dict[str, str]:
        """Each item that shares what was judged with an earlier one, with the first of them."""
        items = [*self._hashes]
        least = min(max(_FEWEST[0], len(items) / 5), _FEWEST[1])
        worded = [name for name, held in self._values.items() if sum(held.values()) * 2 > len(held)]
        fewest = {name: _FEWEST[0] if is_output(name) else least for name in worded}
        texts = [name for name in worded if len(self._values[name]) > fewest[name]]
        inputs = [name for name in worded if _INPUT.fullmatch(header_key(name))]
        if len({*self._keys(inputs)}) <= least and all(map(_ASKED.search, inputs)):
            # Few prompts may be wordings or kinds: then what else was shown belongs to the input.
            inputs += [name for name in texts if not is_output(name) and name not in inputs]
        if len({*self._keys(inputs)}) <= _FEWEST[0]:
            inputs = []
        same = ([*self._grouped(names)] for names in (texts, inputs))
        near = (self._near(names).tolist() for names in (texts, inputs))
        shared = dict(zip(SHARED, (*same, *near), strict=True))
        groups, n = linked(*shared.values()).tolist(), len(items)
        self.counts = {"clusters": len({*groups})}
        self.counts |= {what: n - len({*codes}) for what, codes in shared.items()}
        first: dict[int, str] = {}
        originals = [
            first.setdefault(group, item) for group, item in zip(groups, items, strict=True)
        ]
        pairs = zip(items, originals, strict=True)
        return {item: original for item, original in pairs if item != original}

    def _keys(self, names: Sequence[str]) -> Iterator[tuple[int, ...]]:
        """The hashes of each item's texts in some columns."""
        return (tuple(held.get(name, 0) for name in names) for held in self._hashes.values())

    def _grouped(self, names: Sequence[str]) -> Iterator[int]:
        """The group of each item by its texts in some columns; one of its own without any."""
        first: dict[tuple[int, ...], int] = {}
        for at, key in enumerate(self._keys(names)):
            yield first.setdefault(key, at) if any(key) else at

    def _near(self, names: Sequence[str]) -> Codes:
        """The group of each item by texts that are nearly the same in some columns."""
        # An instruction of many items is no part of what makes two of them nearly the same.
        names = [name for name in names if 2 * len(self._values[name]) > len(self._hashes)]
        if len(self._hashes) > _MOST_READ[0] or not names:
            return np.arange(len(self._hashes))
        texts = [" ".join(held.get(name, "") for name in names) for held in self._texts.values()]
        known = [*dict.fromkeys(texts)]
        most = min(max(_LEAST_FORM, len(known) // 10), len(known) // 4)
        groups = near_copies(known, most, FILLED)
        size = np.bincount(groups)[groups]
        of = {text: int(code) for text, code, n in zip(known, groups, size, strict=True) if n > 1}
        # The same text alone joins nothing here: empty cells are the same, too.
        return np.array([of.get(text, len(known) + at) for at, text in enumerate(texts)])


def _has_words(text: str) -> bool:
    """Whether a text has several words; looks at its beginning only, for a text may be huge."""
    return sum(bool(_WORD.search(part)) for part in text[:2000].split()) > 1
