"""A run's folder: the one reader and writer of ``run.json``, the pairs and the prompts.

``run.json`` is the record of a run: everything that fixes its answers, and its progress.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import file_bytes, require_folder, sha256_of, write_text, writing
from judgesense.files.documents import parse_json, validate
from judgesense.log.answers import Answers
from judgesense.log.record import RunRecord, hardware, now, versions
from judgesense.log.schema import PARTS, conform, part_files, read_log, read_part, require_parts
from judgesense.log.view import view
from judgesense.tasks import Pair, Prompt

RUN_FILE = "run.json"
PAIRS_FILE, PROMPTS_FILE, PEOPLE_FILE = "pairs.parquet", "prompts.parquet", "people.parquet"
ITEMS_FILE = "items.parquet"

_STRING = pa.string()
PAIR_SCHEMA = pa.schema([(f.name, _STRING) for f in fields(Pair)])
PROMPT_SCHEMA = pa.schema([(f.name, _STRING) for f in fields(Prompt)])
PEOPLE_SCHEMA = pa.schema(
    [(name, _STRING) for name in ("task", "item_id", "order", "human", "label")]
)
"""Each person's label of an item in an option order; gold is the majority."""
ITEM_SCHEMA = pa.schema([(name, _STRING) for name in ("item_id", "column", "text")])
ITEMS_OF_TASKS = ITEM_SCHEMA.append(pa.field("task", _STRING))
"""A file's other columns: one row per item and column, of each task."""
VARIANT_SCHEMA = pa.schema(
    [
        *PROMPT_SCHEMA,
        ("variant", _STRING),
        ("variant_class", _STRING),
        ("again", pa.bool_()),
        ("system", _STRING),
        ("effort", _STRING),
        ("reply_form", _STRING),
    ]
)
"""Prompts of a run with variants: the columns of the log, which prompts are asked twice, the part
of a prompt that is sent as a system message, the reasoning effort asked for, and the form of the
reply in which options are scored (null: none)."""

SCHEMA_VERSION = 1
"""The version of ``run.json`` that is written; a newer one is refused."""

RETRIES = 3
"""How often the prompts of a finished run that failed are asked again, unless told otherwise."""

_ENDING = ("parts", "digests", "finished")
"""The keys that only the record of a finished run has."""


@dataclass(frozen=True)
class Run:
    """A run or import that has decisions; see :func:`read_run`. Its tables are read on first use.

    Raises JudgeSenseError, then, naming the file that cannot be read or lacks a column.
    """

    folder: Path
    record: dict[str, Any]
    """The contents of ``run.json``; ``run_id`` is always present."""

    @cached_property
    def log(self) -> pa.Table:
        """The decision log, with the columns of :data:`judgesense.log.schema.SCHEMA`."""
        return read_log(self.folder)

    @cached_property
    def figures(self) -> pa.Table:
        """The decision log without the judges' texts (``raw_text`` is null), as figures need it."""
        return read_log(self.folder, texts=False)

    @cached_property
    def judged(self) -> list[Answers]:
        """The decisions of each judge on each task under each scoring, lined up with the pairs."""
        return view(self.figures, self.pairs, self.record).judged

    @cached_property
    def pairs(self) -> pa.Table | None:
        """The planned pairs; None for an import."""
        pairs = self._table(PAIRS_FILE, PAIR_SCHEMA, PAIR_SCHEMA)
        for name in ("item_id", "template_a", "template_b", "label_map_a", "label_map_b"):
            if pairs is not None and pairs[name].null_count:
                raise JudgeSenseError(
                    f"{self.folder / PAIRS_FILE}, column {name}: missing value; restore the file"
                )
        return pairs

    @cached_property
    def prompts(self) -> pa.Table | None:
        """The user messages; None for an import."""
        return self._table(PROMPTS_FILE, PROMPT_SCHEMA, VARIANT_SCHEMA)

    @cached_property
    def people(self) -> pa.Table | None:
        """People's labels, one row each; None without any but gold labels."""
        return self._table(PEOPLE_FILE, PEOPLE_SCHEMA, PEOPLE_SCHEMA)

    @cached_property
    def items(self) -> pa.Table | None:
        """The file's other columns, as `ITEMS_OF_TASKS`; None without any."""
        return self._table(ITEMS_FILE, ITEM_SCHEMA, ITEMS_OF_TASKS)

    def _table(self, name: str, needed: pa.Schema, known: pa.Schema) -> pa.Table | None:
        path = self.folder / name
        if not path.exists():
            return None
        table = read_part(path)
        has = [f for f in known if f.name in needed.names or f.name in table.column_names]
        return conform(table, str(path), pa.schema(has), "table")


def read_run(run_dir: Path) -> Run:
    """Read a run's or an import's folder.

    Raises JudgeSenseError if the folder does not exist or holds no decisions, if ``run.json`` is
    damaged or written by a newer version, and if a file of a finished run is missing, new or
    changed. Without ``run.json`` the run is named by its folder.
    """
    # Unlike pathlib, false for a name that is too long for the file system.
    if not os.path.isdir(run_dir):
        if os.path.isfile(run_dir):
            raise JudgeSenseError(
                f"{run_dir} is a file, not the --out folder of a run. Run judgesense check "
                f"{run_dir}, then name the folder that it prints"
            )
        raise JudgeSenseError(f"no folder {run_dir}; name the --out folder of a run")
    require_parts(run_dir)
    record = read_record(run_dir) or {}
    if changed := changes(run_dir, record):
        raise JudgeSenseError(
            f"{run_dir} has changed since the run finished: {'; '.join(changed.values())}. Restore "
            "the files from a copy, or rerun the command that made them"
        )
    return Run(run_dir, {"run_id": run_dir.resolve().name, **record})


def digests_of(folder: Path, parts: str = PARTS) -> dict[str, str]:
    """The SHA-256 of each part and of the other tables, by path below the folder."""
    names = (PAIRS_FILE, PROMPTS_FILE, PEOPLE_FILE, ITEMS_FILE)
    files = [*map(folder.joinpath, names), *part_files(folder, parts)]
    return {path.relative_to(folder).as_posix(): sha256_of(path) for path in files if path.exists()}


def changes(folder: Path, record: Mapping[str, Any], parts: str = PARTS) -> dict[str, str]:
    """What differs in a finished run's files from its record: path below the folder -> sentence.

    Empty for a run without digests in its record: one in progress, or of an earlier version.
    """
    recorded = record.get("digests")
    if not isinstance(recorded, Mapping):
        return {}
    try:
        digests = digests_of(folder, parts)
    except OSError as error:
        raise JudgeSenseError(f"cannot read {error.filename}: {error.strerror}") from error
    differences = {}
    for name in sorted({*recorded, *digests}):
        if name not in digests:
            differences[name] = f"{name} is missing"
        elif name not in recorded:
            differences[name] = f"{name} is not part of the run"
        elif digests[name] != recorded[name]:
            differences[name] = f"{name} has been changed"
    return differences


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Keep other processes from writing to a run's folder until this one is done or killed.

    Raises JudgeSenseError if another process has claimed the folder.
    """
    require_folder(folder)
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise JudgeSenseError(
            f"another process is writing to {folder}; wait until it ends, or set --out to "
            "another folder"
        ) from error
    except NotImplementedError:
        # The file system has no locks; the run is as safe as before there were any.
        pass
    try:
        yield
    finally:
        lock.release()


def read_record(run_dir: Path) -> dict[str, Any] | None:
    """The contents of a folder's ``run.json``; None if it has none.

    Raises JudgeSenseError if the file is damaged or was written by a newer version.
    """
    path = run_dir / RUN_FILE
    try:
        record = parse_json(file_bytes(path), str(path), finite=True)
        if record == {}:
            # Without its digests and labels, a run would be measured as an import without both.
            raise JudgeSenseError("an empty object")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, JudgeSenseError) as error:
        raise JudgeSenseError(
            f"{path} is damaged ({error}); restore it from a copy, or use another folder"
        ) from error
    version = record.get("schema", SCHEMA_VERSION) if isinstance(record, dict) else None
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise JudgeSenseError(
            f"{path} has schema {version!r}, written by a newer JudgeSense; this version reads "
            f"schema {SCHEMA_VERSION}. Upgrade judgesense"
        )
    validate(RunRecord, record, str(path), "the record of a run")
    return dict(record)


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
        elif differing := list(_differences(record.get("asked", {}), asked)):
            raise JudgeSenseError(
                f"{folder} holds a run with other settings: {'; '.join(differing)}. "
                "Use another --out, or the same settings"
            )
        self.record: dict[str, Any] = record
        before = record.get(key) or []
        self._before: list[dict[str, Any]] = before if isinstance(before, list) else [before]
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
        """Whether prompts failed that were asked again less often."""
        return any(
            entry.get("failed") and entry.get("retried", 0) < retries for entry in self._before
        )

    def retries_of(self, name: str) -> int:
        """How often the failed prompts of a model were asked again."""
        return sum(entry.get("retried", 0) for entry in self._before if entry["name"] == name)

    def reopen(self) -> None:
        """Take back that the run is finished, before any part of it changes."""
        if self._writes and self.record.get("finished"):
            self.record = {k: v for k, v in self.record.items() if k not in _ENDING}
            save_run(self.folder, self.record)

    def repair(self, note: Callable[[str], None]) -> None:
        """Set aside the parts of a finished run that were added or changed, to judge them again."""
        if not self._writes:
            return
        differing = changes(self.folder, self.record, self._parts)
        for name, reason in differing.items():
            path = self.folder / name
            if path.parent.name == self._parts and path.exists():
                note(f"{reason}; renamed to {set_aside(path)}")
            else:
                note(f"{reason}; it will be written again")
        if differing:
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
        before = self._before[len(self._entries) : len(self._entries) + 1]
        if before and before[0]["name"] != name:
            raise JudgeSenseError(
                f"{self.folder} was begun with {before[0]['name']}, which is now {name}: "
                "its weights, chat template or decoding have changed. Use another --out"
            )
        if name in [entry["name"] for entry in self._entries]:
            raise JudgeSenseError(f"{name} is named twice; name each judge once")
        entry = {"name": name, **facts}
        self._entries.append(entry)
        self._enter(self._entries)
        return entry

    def begin(self) -> None:
        """Write the record before the first prompt is asked.

        Call it once the prompts are planned: a run that cannot be planned leaves no record.
        """
        if self._writes:
            # A later model keeps its entry until its turn, so that a change of it is noticed.
            self._enter([*self._entries, *self._before[len(self._entries) :]])
            save_run(self.folder, self.record)
            self._enter(self._entries)

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
        before = next((old for old in self._before if old["name"] == entry["name"]), {})
        entry["seconds"] = round(before.get("seconds", 0.0) + seconds, 3)
        entry["counters"] = dict(counters)
        entry["failed"] = list(failed)
        if again := before.get("retried", 0) + retried:
            entry["retried"] = again
        self._rows |= rows

    def finish(self) -> None:
        """Mark the run as finished, with the rows of every part; remove temporary files.

        Raises JudgeSenseError if a part is gone or has other rows than it was written with.
        """
        folder, parts = self.folder, self._parts
        with writing(folder):
            for left in (folder / parts).glob(".part-*.tmp"):
                left.unlink(missing_ok=True)
        files = part_files(folder, parts)
        found = {part.name: pq.read_metadata(part).num_rows for part in files}
        if gone := [name for name, rows in self._rows.items() if found.get(name) != rows]:
            raise JudgeSenseError(
                f"{folder / parts / gone[0]} was removed or changed while the run went on"
                f"{f', and {len(gone) - 1} more parts' if gone[1:] else ''}; rerun the same command"
                " to judge its prompts again"
            )
        self.record["parts"] = found
        with writing(folder):
            self.record["digests"] = digests_of(folder, parts)
        self.record["finished"] = now()
        save_run(folder, self.record)

    def _enter(self, entries: Sequence[dict[str, Any]]) -> None:
        self.record[self._key] = list(entries) if self._key == "judges" else entries[0]


def set_aside(part: Path) -> str:
    """Rename a part that is damaged or not planned; returns its new name."""
    return part.rename(part.with_name(f"{part.name}.damaged-{time.time_ns()}")).name


def save_run(out: Path, record: Mapping[str, Any]) -> None:
    """Write ``run.json`` whole."""
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
    with writing(out):
        write_text(out / RUN_FILE, text + "\n")


def _differences(before: Any, now: Any, where: str = "") -> Iterator[str]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys([*before, *now]):
            yield from _differences(before.get(key), now.get(key), f"{where} {key}".strip())
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for number, (old, new) in enumerate(zip(before, now, strict=True), 1):
            yield from _differences(old, new, f"{where} {number}")
    elif before != now:
        yield f"{where} was {_shown(before)} and is now {_shown(now)}"


def _shown(value: Any) -> str:
    return "absent" if value is None else repr(value)
