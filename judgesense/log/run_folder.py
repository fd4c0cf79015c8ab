"""Write a run's folder: its record in ``run.json``, the pairs and the prompts, and its progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import require_folder, writing
from judgesense.log.folder import (
    PAIRS_FILE,
    PROMPTS_FILE,
    RUN_FILE,
    SCHEMA_VERSION,
    changes,
    digests_of,
    read_record,
    save_run,
)
from judgesense.log.record import hardware, now, versions
from judgesense.log.schema import PARTS, part_files

_FINISHED_KEYS = ("parts", "digests", "finished")
"""The keys that only the record of a finished run has."""


class RunFolder:
    """A run being written: a new one, or one that is resumed.

    The record in ``run.json`` lists the models that answer (judges, or one responder) in their
    turn. Each turn is :meth:`enter`, :meth:`begin` and :meth:`leave`; after the last one comes
    :meth:`finish`. Interrupt a run at any time; open it again to resume.

    Args:
        folder: the run's folder; all machines that share a run see it.
        asked: everything that fixes the run, as JSON values; a resumed run must ask for the same.
        key: the record's key for the models, ``judges`` or ``responder`` (a single one).
        parts: the name of the folder of the log's parts.
        writes: whether this process keeps the record; others that share the run only read it.

    Raises:
        JudgeSenseError: if the folder cannot be written, or holds a run with other settings; the
            error names every difference.
    """

    def __init__(
        self,
        folder: Path,
        asked: Mapping[str, Any],
        *,
        key: str = "judges",
        parts: str = PARTS,
        writes: bool = True,
    ) -> None:
        self.folder, self._key, self._parts, self._writes = folder, key, parts, writes
        require_folder(folder)
        record = read_record(folder)
        if record is None:
            if part_files(folder, parts):
                raise JudgeSenseError(
                    f"{folder} holds {parts} but no {RUN_FILE}; restore it, or use another --out"
                )
            record = {"schema": SCHEMA_VERSION, "asked": dict(asked), "started": now()}
        elif differences := list(_differences(record.get("asked", {}), asked)):
            raise JudgeSenseError(
                f"{folder} holds a run with other settings: {'; '.join(differences)}. "
                "Use another --out, or the same settings"
            )
        self.record: dict[str, Any] = record
        earlier = record.get(key) or []
        self._earlier_entries: list[dict[str, Any]] = (
            earlier if isinstance(earlier, list) else [earlier]
        )
        self._entries: list[dict[str, Any]] = []
        self._rows: dict[str, int] = {}

    def is_finished(self) -> bool:
        """Whether the run is finished and every file is present and unchanged."""
        recorded: Mapping[str, int] = self.record.get("parts", {})
        if not (self.record.get("finished") and recorded):
            return False
        if "digests" not in self.record:
            return set(recorded) <= {path.name for path in part_files(self.folder, self._parts)}
        return not changes(self.folder, self.record, self._parts)

    def may_retry(self, retries: int) -> bool:
        """Whether prompts failed that were asked again less than ``retries`` times."""
        return any(
            entry.get("failed") and entry.get("retried", 0) < retries
            for entry in self._earlier_entries
        )

    def retries_of(self, name: str) -> int:
        """How often the failed prompts of a model were asked again."""
        return sum(
            entry.get("retried", 0) for entry in self._earlier_entries if entry["name"] == name
        )

    def reopen(self) -> None:
        """Record that the run is not finished, before any part of it changes."""
        if self._writes and self.record.get("finished"):
            self.record = {k: v for k, v in self.record.items() if k not in _FINISHED_KEYS}
            save_run(self.folder, self.record)

    def repair(self, note: Callable[[str], None]) -> None:
        """Set aside the parts of a finished run that were added or changed, to judge them again."""
        if not self._writes:
            return
        differences = changes(self.folder, self.record, self._parts)
        for name, reason in differences.items():
            path = self.folder / name
            if path.parent.name == self._parts and path.exists():
                note(f"{reason}; renamed to {set_aside(path)}")
            else:
                note(f"{reason}; it will be written again")
        if differences:
            self.reopen()

    def describe(self, **facts: Any) -> None:
        """Add facts to the record, with the machine and the versions that a figure depends on."""
        self.record.update(**facts, versions=versions(), hardware=hardware())

    def write_data(self, pairs: pa.Table, prompts: pa.Table) -> None:
        """Write the planned pairs and the prompts, which reports read later."""
        if not self._writes:
            return
        with writing(self.folder):
            for table, name in ((pairs, PAIRS_FILE), (prompts, PROMPTS_FILE)):
                pq.write_table(table, self.folder / name, compression="zstd")

    def enter(self, name: str, **facts: Any) -> dict[str, Any]:
        """Enter the next model, ``name@fingerprint``; returns its entry in the record.

        Raises JudgeSenseError if the run was begun with another model in this turn, or if the
        model is in the run already.
        """
        earlier = self._earlier_entries[len(self._entries) : len(self._entries) + 1]
        if earlier and earlier[0]["name"] != name:
            raise JudgeSenseError(
                f"{self.folder} was begun with {earlier[0]['name']}, which is now {name}: "
                "its weights, chat template or decoding have changed. Use another --out"
            )
        if name in [entry["name"] for entry in self._entries]:
            raise JudgeSenseError(f"{name} is named twice; name each judge once")
        entry = {"name": name, **facts}
        self._entries.append(entry)
        self._record_entries(self._entries)
        return entry

    def begin(self) -> None:
        """Write the record before the first prompt is asked.

        Call it once the prompts are planned: a run that cannot be planned leaves no record.
        """
        if self._writes:
            # A later model keeps its entry until its turn, so that a change of it is noticed.
            self._record_entries([*self._entries, *self._earlier_entries[len(self._entries) :]])
            save_run(self.folder, self.record)
            self._record_entries(self._entries)

    def leave(
        self,
        seconds: float,
        counters: Mapping[str, int | float],
        failed: Sequence[str],
        *,
        rows: Mapping[str, int] = MappingProxyType({}),
        retried: bool = False,
    ) -> None:
        """Record the end of a model's turn: its seconds, those of earlier starts included, the
        counts of this start, and the prompts without an answer.

        ``rows`` are those of each part that its turn left, ``retried`` whether failed prompts were
        asked again.
        """
        entry = self._entries[-1]
        earlier = next((e for e in self._earlier_entries if e["name"] == entry["name"]), {})
        entry["seconds"] = round(earlier.get("seconds", 0.0) + seconds, 3)
        entry["counters"] = dict(counters)
        entry["failed"] = list(failed)
        if n_retried := earlier.get("retried", 0) + retried:
            entry["retried"] = n_retried
        self._rows |= rows

    def finish(self) -> None:
        """Mark the run as finished, with the rows of every part; remove temporary files.

        Raises JudgeSenseError if a part is gone or has other rows than it was written with.
        """
        folder, parts = self.folder, self._parts
        with writing(folder):
            for temporary in (folder / parts).glob(".part-*.tmp"):
                temporary.unlink(missing_ok=True)
        files = part_files(folder, parts)
        rows_of_parts = {part.name: pq.read_metadata(part).num_rows for part in files}
        if damaged := [
            name for name, rows in self._rows.items() if rows_of_parts.get(name) != rows
        ]:
            more = f", and {len(damaged) - 1} more parts" if damaged[1:] else ""
            raise JudgeSenseError(
                f"{folder / parts / damaged[0]} was removed or changed while the run went on{more}"
                "; rerun the same command to judge its prompts again"
            )
        self.record["parts"] = rows_of_parts
        with writing(folder):
            self.record["digests"] = digests_of(folder, parts)
        self.record["finished"] = now()
        save_run(folder, self.record)

    def _record_entries(self, entries: Sequence[dict[str, Any]]) -> None:
        self.record[self._key] = list(entries) if self._key == "judges" else entries[0]


def set_aside(part: Path) -> str:
    """Rename a part that is damaged or not planned; returns its new name."""
    return part.rename(part.with_name(f"{part.name}.damaged-{time.time_ns()}")).name


def _differences(earlier: Any, now: Any, where: str = "") -> Iterator[str]:
    if isinstance(earlier, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys([*earlier, *now]):
            yield from _differences(earlier.get(key), now.get(key), f"{where} {key}".strip())
    elif isinstance(earlier, list) and isinstance(now, list) and len(earlier) == len(now):
        for number, (old, new) in enumerate(zip(earlier, now, strict=True), 1):
            yield from _differences(old, new, f"{where} {number}")
    elif earlier != now:
        yield f"{where} was {_value_text(earlier)} and is now {_value_text(now)}"


def _value_text(value: Any) -> str:
    return "absent" if value is None else repr(value)
