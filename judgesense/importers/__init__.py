"""Importers of foreign logs, one module per format, which `judgesense.importers.log` uses.

To add a format, write a module with an `Importer` called ``IMPORTER`` (`deepeval` is a short one),
and add its name to `FORMATS` and to the table of ``docs/import.md``. ``check`` and ``import`` read
it then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judgesense.files.tables import Rows

FORMATS = {
    "table": "table",
    "inspect": "inspect_logs",
    "promptfoo": "promptfoo",
    "deepeval": "deepeval",
    "scores": "scores",
}
"""The formats and their modules, which load when they are used, so that ``--help`` is quick."""


class Items:
    """Tells a repeated judgement from a judgement of another answer to the same question.

    >>> items = Items()
    >>> items.name("q1", "Paris"), items.name("q1", "Rome"), items.name("q1", "Paris")
    ('q1', 'q1/2', 'q1')
    >>> items.repeat("judge", "q1"), items.repeat("judge", "q1"), items.repeat("judge", "q1/2")
    (0, 1, 0)
    """

    def __init__(self) -> None:
        self._texts: dict[str, dict[object, str]] = {}
        self._judged: Counter[tuple[object, ...]] = Counter()
        self.notes: list[str] = []
        """What a person should know of the file, as its reader found it."""
        self.questions: list[str] = []
        """What decides a figure, and only the person knows: with the options that say it."""

    def name(self, question: str, judged: object) -> str:
        """The item's name: the question for its first answer, ``question/2`` for its second."""
        texts = self._texts.setdefault(question, {})
        number = len(texts) + 1
        return texts.setdefault(judged, question if number == 1 else f"{question}/{number}")

    def repeat(self, *key: object) -> int:
        """How often this was judged before."""
        self._judged[key] += 1
        return self._judged[key] - 1


@dataclass(frozen=True)
class Importer:
    """A format of foreign logs.

    ``read`` yields one row per decision of a file, some at a time, with the names of the decision
    log's columns; a value called ``labels`` is the decision space of the record's task, if the file
    states it. It raises JudgeSenseError with file, row and column. It also takes the `Items` of the
    import, and the name of one score of several if the format ``has_pick``. ``patterns`` are the
    names of the format's files, for a folder of them. ``labels`` is the decision space where the
    format fixes it. A JSON file of the format has one of ``keys``.
    """

    summary: str
    patterns: tuple[str, ...]
    read: Callable[[Path, Items, str | None], Iterable[Rows]]
    has_pick: bool = False
    labels: tuple[str, ...] | None = None
    keys: tuple[str, ...] = ()
    row_keys: tuple[tuple[str, ...], ...] = ()
    """Columns that a table of this format has, one set of them at least."""
