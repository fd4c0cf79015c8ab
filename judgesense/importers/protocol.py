"""What an importer is.

To add a format, write a module with an :class:`Importer` called ``IMPORTER`` and add its name and
the module's to ``judgesense/formats.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import Record, Rows, in_rows
from judgesense.importers.items import Items


@dataclass(frozen=True)
class ReadOptions:
    """What the user can say about a log. An importer names the options that it reads.

    ``labels`` is the decision space, ``pick`` the name of one of several readings of an answer
    (lm-eval's filter, Inspect's scorer), ``custom_id`` the form of batch ids. ``sources`` are all
    the files of the import, and ``items`` names the items that they judge.
    """

    labels: tuple[str, ...] | None = None
    pick: str | None = None
    custom_id: str | None = None
    encoding: str = "utf-8"
    sources: tuple[Path, ...] = ()
    items: Items = field(default_factory=Items)


@dataclass(frozen=True)
class Importer:
    """A format of foreign logs.

    ``read`` yields one record per decision of a file, with the names of the decision log's columns
    or with names that ``columns`` maps to them; a value called ``labels`` is the decision space of
    the record's task, if the file states it. It raises JudgeSenseError with file, row and column.
    ``patterns`` are the names of the format's files, for a folder of them. ``labels`` is the
    decision space where the format fixes it; ``notes`` go to ``run.json`` and to the user.
    ``read_rows`` is ``read`` by columns, for a format that has them.
    """

    name: str
    summary: str
    patterns: tuple[str, ...]
    read: Callable[[Path, ReadOptions], Iterator[Record]]
    options: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    read_rows: Callable[[Path, ReadOptions], Iterator[Rows]] | None = None

    def rows(self, path: Path, options: ReadOptions) -> Iterator[Rows]:
        """The decisions of a file, some at a time. Raises as ``read``."""
        return (self.read_rows or self._in_rows)(path, options)

    def _in_rows(self, path: Path, options: ReadOptions) -> Iterator[Rows]:
        return in_rows(self.read(path, options))

    def files(self, source: Path) -> list[Path]:
        """``source`` itself, or the files of this format below the folder ``source``.

        Raises JudgeSenseError if there are none.
        """
        if source.is_file():
            return [source]
        if not source.is_dir():
            raise JudgeSenseError(f"no file or folder {source}")
        try:
            found = sorted({path for pattern in self.patterns for path in source.rglob(pattern)})
        except OSError as error:
            raise JudgeSenseError(
                f"cannot search {source} ({error}); name the log itself"
            ) from error
        if not found:
            raise JudgeSenseError(
                f"{source} holds no {self.name} log ({', '.join(self.patterns)}: {self.summary})"
            )
        return found
