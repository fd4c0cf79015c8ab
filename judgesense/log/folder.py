"""Read a run's folder: ``run.json``, the log, the pairs, the prompts and people's labels.

``run.json`` is the record of a run: everything that fixes its answers, and its progress.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from filelock import FileLock, Timeout

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import file_bytes, require_folder, sha256_of, write_text, writing
from judgesense.files.documents import parse_json, validate
from judgesense.log.answers import Answers
from judgesense.log.record import RunRecord
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

    def _table(self, name: str, required: pa.Schema, schema: pa.Schema) -> pa.Table | None:
        path = self.folder / name
        if not path.exists():
            return None
        table = read_part(path)
        columns = [f for f in schema if f.name in required.names or f.name in table.column_names]
        return conform(table, str(path), pa.schema(columns), "table")


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
    if differences := changes(run_dir, record):
        raise JudgeSenseError(
            f"{run_dir} has changed since the run finished: {'; '.join(differences.values())}. "
            "Restore the files from a copy, or rerun the command that made them"
        )
    return Run(run_dir, {"run_id": run_dir.resolve().name, **record})


def digests_of(folder: Path, parts: str = PARTS) -> dict[str, str]:
    """The SHA-256 of each part and of the other tables, by path below the folder."""
    names = (PAIRS_FILE, PROMPTS_FILE, PEOPLE_FILE, ITEMS_FILE)
    files = [*map(folder.joinpath, names), *part_files(folder, parts)]
    return {path.relative_to(folder).as_posix(): sha256_of(path) for path in files if path.exists()}


def changes(folder: Path, record: Mapping[str, Any], parts: str = PARTS) -> dict[str, str]:
    """The differences of a finished run's files from its record: path in the folder -> sentence.

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


def save_run(out: Path, record: Mapping[str, Any]) -> None:
    """Write ``run.json`` whole."""
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
    with writing(out):
        write_text(out / RUN_FILE, text + "\n")
