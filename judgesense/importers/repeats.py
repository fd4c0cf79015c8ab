"""Reruns of a judge in a file: the same input again is a repeat, the same record again a copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from judgesense.files.tables import Rows
from judgesense.importers.column_names import Columns, header_key
from judgesense.importers.columns import NAMES, REPEAT, ROW, values_in
from judgesense.importers.roles import is_named
from judgesense.importers.shape import Step, through
from judgesense.importers.values import says_nothing
from judgesense.text import plural_s

_KEY = ("judge", "task", "item_id", "template_id", "order", "repeat", "system_id", "variant")


class RepeatSteps:
    """Makes the steps that number the repeats, new for each pass over the file.

    The column of runs, if ``roles`` name one, gets numbers for names. Without one, verdicts on the
    same input are numbered as they come; then `REPEAT` is the role. In a log of another tool
    (``is_log``) the importer knows its repeats.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        found: Columns,
        judged: Sequence[str],
        roles: dict[str, str],
        is_log: bool,
    ) -> None:
        self._steps = steps
        source = roles.get("repeat", ":")
        self._column = source if source in found else None
        self._has_names = source in found and is_named("repeat", header_key(source), found[source])
        self._has_items = not is_log and roles.get("item_id", ROW) != ROW
        self._is_pasted = not is_log and not self._has_items and _are_distinct(found, judged)
        self._key = [name for target in _KEY for name in _columns_in(roles.get(target, ":"))]
        self._answer = {*judged, *roles.get("raw_text", ":").split(",")}
        if self._has_items and self._column is None:
            roles["repeat"] = REPEAT

    def __call__(self) -> list[Step]:
        """The steps of the file, and those that number its repeats."""
        return [*self._steps, *self._late()]

    def _late(self) -> Iterator[Step]:
        if self._has_names and self._column is not None:
            yield partial(numbered, name=self._column, known={})
        if self._has_items:
            yield Repeats(self._key, self._answer, self._column)
        elif self._is_pasted:
            yield Repeats((), (), "")

    def count(self, blocks: Iterable[Rows], notes: list[str]) -> int | None:
        """The number of rows without copies; None where no column says which item a row is of.

        ``notes`` gets the copies and the repeats that no column numbers.
        """
        steps = self()
        repeats = steps[-1] if steps else None
        if not isinstance(repeats, Repeats):
            return None
        size = sum(map(len, through(steps, blocks)))
        if repeats.copies:
            count = "count" if repeats.copies > 1 else "counts"
            notes.append(
                f"{repeats.copies} row{plural_s(repeats.copies)} repeated whole {count} once"
            )
        if repeats.repeats and self._column is None:
            notes.append(f"{repeats.repeats} more verdicts on the same input are repeats")
        return size


def _columns_in(source: str) -> Sequence[str]:
    """The columns of a role: one, several, or those in a pattern; none of a constant or a row."""
    if source[:1] == ":" or source == ROW:
        return ()
    return NAMES.findall(source) or source.split(",")


def _are_distinct(found: Columns, judged: Sequence[str]) -> bool:
    """Whether nearly every row has another text or number than all others in some column, so that
    an equal row was pasted twice."""
    others = (column for name, column in found.items() if name not in judged)
    return any(5 * len(c.texts) > 4 * (c.filled + c.blank) for c in others)


class Repeats:
    """Tells repeats from copies: of one item, the same record counts once, another verdict on the
    same input is a repeat.

    ``key`` are the columns that say what was judged and how, ``answer`` those of the answer.
    """

    def __init__(self, key: Sequence[str], answer: Iterable[str], repeat: str | None) -> None:
        self.key, self.answer, self.repeat = key, {*answer}, repeat
        self.copies = self.repeats = 0
        self._seen: dict[int, tuple[int, set[int]]] = {}
        self._names: dict[object, int] = {}

    def __call__(self, rows: Rows) -> Rows:
        """The rows without copies, and with the column `repeat number`."""
        cells = [values_in(rows, name) or [None] * len(rows) for name in self.key]
        kept, numbers = list[int](), list[int]()
        inputs = [name for name in rows.columns if name not in self.answer | {self.repeat}]
        for at in range(len(rows)):
            key = hash(repr([column[at] for column in cells]))
            whole = hash(repr([column[at] for column in rows.columns.values()]))
            same = hash(repr([rows.columns[name][at] for name in inputs]))
            first, known = self._seen.setdefault(key, (same, set()))
            if whole in known and not any(says_nothing(str(c[at])) for c in cells):
                self.copies += 1
                continue
            number = len(known)
            known.add(whole)
            if number and (first != same or not {*inputs} - {*self.key}):
                number = 0  # Another input under the same id: an error names it.
            self.repeats += number > 0
            kept.append(at)
            numbers.append(number)
        columns = {name: [values[at] for at in kept] for name, values in rows.columns.items()}
        if self.repeat is None:
            columns[REPEAT] = numbers
        return Rows(columns, [rows.places[at] for at in kept])


def numbered(rows: Rows, name: str, known: dict[str, int]) -> Rows:
    """The rows with the names of runs in a column as numbers from 0, in the order they appear."""
    values = [known.setdefault(str(value), len(known)) for value in rows.columns[name]]
    return Rows({**rows.columns, name: values}, rows.places)
