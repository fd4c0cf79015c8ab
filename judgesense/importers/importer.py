"""What an importer is.

To add a format, write a module with an `Importer` called ``IMPORTER``, and add its name to
`judgesense.importers.FORMATS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import Rows, is_dataset
from judgesense.importers.items import Items


@dataclass(frozen=True)
class Importer:
    """A format of foreign logs.

    ``read`` yields one row per decision of a file, some at a time, with the names of the decision
    log's columns or with names that ``columns`` maps to them; a value called ``labels`` is the
    decision space of the record's task, if the file states it. It raises JudgeSenseError with file,
    row and column. It also takes the `Items` of the import, and the name of one score of several if
    the format ``has_pick``. ``patterns`` are the names of the format's files, for a folder of them.
    ``labels`` is the decision space where the format fixes it. A JSON file of the format has one of
    ``keys``.
    """

    name: str
    summary: str
    patterns: tuple[str, ...]
    read: Callable[[Path, Items, str | None], Iterable[Rows]]
    has_pick: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] | None = None
    keys: tuple[str, ...] = ()
    row_keys: tuple[tuple[str, ...], ...] = ()
    """Columns that a table of this format has, one set of them at least."""

    def files(self, source: Path) -> list[Path]:
        """``source`` itself, or the files of this format below the folder ``source``.

        Raises JudgeSenseError if there are none.
        """
        if source.is_file() or is_dataset(source):
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
