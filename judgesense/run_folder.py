"""A run's folder: the one reader and writer of ``run.json``, the pairs and the prompts.

``run.json`` is the run's record: everything that fixes its answers, and how far it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from judgesense.decisions import PARTS, part_files, read_log, read_part, require_parts
from judgesense.errors import JudgeSenseError
from judgesense.version import __version__

RUN_FILE, REPORT_FILE = "run.json", "report.json"
PAIRS_FILE, PROMPTS_FILE = "pairs.parquet", "prompts.parquet"

SCHEMA_VERSION = 1
"""The version of ``run.json`` that is written; a newer one is refused."""


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
        """The decision log, with the columns of :data:`judgesense.decisions.SCHEMA`."""
        return read_log(self.folder)

    @cached_property
    def pairs(self) -> pa.Table | None:
        """The planned pairs; None for an import."""
        return self._table(PAIRS_FILE)

    @cached_property
    def prompts(self) -> pa.Table | None:
        """The user messages; None for an import."""
        return self._table(PROMPTS_FILE)

    def _table(self, name: str) -> pa.Table | None:
        path = self.folder / name
        return read_part(path) if path.exists() else None


def read_run(run_dir: Path) -> Run:
    """Read a run's or an import's folder.

    Raises JudgeSenseError if the folder does not exist or holds no decisions, and if ``run.json``
    is damaged or written by a newer version. Without ``run.json`` the run is named by its folder.
    """
    if not run_dir.is_dir():
        raise JudgeSenseError(f"no folder {run_dir}; name the --out folder of a run")
    require_parts(run_dir)
    return Run(run_dir, {"run_id": run_dir.resolve().name, **(read_record(run_dir) or {})})


def read_record(run_dir: Path) -> dict[str, Any] | None:
    """The contents of a folder's ``run.json``; None if it has none.

    Raises JudgeSenseError if the file is damaged or was written by a newer version.
    """
    path = run_dir / RUN_FILE
    try:
        record = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise JudgeSenseError(
            f"{path} is damaged ({error}); restore it from a copy, or use another folder"
        ) from error
    if not isinstance(record, dict):
        raise JudgeSenseError(
            f"{path} is damaged (not a JSON object); restore it from a copy, or use another folder"
        )
    version = record.get("schema", SCHEMA_VERSION)
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise JudgeSenseError(
            f"{path} has schema {version!r}, written by a newer JudgeSense; this version reads "
            f"schema {SCHEMA_VERSION}. Upgrade judgesense"
        )
    return record


def open_run(out: Path, asked: Mapping[str, Any], parts: str = PARTS) -> dict[str, Any]:
    """The run's record: a new one, or that of the same run taken up again.

    ``parts`` names the folder of the run's log.

    Raises JudgeSenseError, before anything is loaded, if the folder cannot be written or holds a
    run that was asked for otherwise; the error names what differs.
    """
    require_writable(out)
    record = read_record(out)
    if record is None:
        if part_files(out, parts):
            raise JudgeSenseError(f"{out} holds {parts} but no {RUN_FILE}; use another --out")
        return {"schema": SCHEMA_VERSION, "asked": dict(asked), "started": now()}
    if differing := list(_differences(record.get("asked", {}), asked)):
        raise JudgeSenseError(
            f"{out} holds another run: {'; '.join(differing)}. Give --out another folder, or ask "
            "for the same again"
        )
    return record


def require_writable(out: Path) -> None:
    """Make the folder; raise JudgeSenseError, before any work, if it cannot be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / f".probe-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise JudgeSenseError(
            f"cannot write to {out}: {error.strerror or error}; give --out a folder that can be "
            "written"
        ) from error


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Tell a full disk or a folder that has become read-only as what it is."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise JudgeSenseError(
            f"cannot write to {out}: {reason}; what was judged before is kept: mend it and give "
            "the same command again"
        ) from error


def save_run(out: Path, record: Mapping[str, Any]) -> None:
    """Write ``run.json`` whole."""
    text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
    with writing(out):
        temporary = out / f".{RUN_FILE}.tmp"
        temporary.write_text(text + "\n", "utf-8")
        temporary.replace(out / RUN_FILE)


def finish_run(out: Path, record: dict[str, Any], parts: str = PARTS) -> None:
    """Mark the run as finished, with the length of every part; remove what kills left half."""
    with writing(out):
        for left in (out / parts).glob(".part-*.tmp"):
            left.unlink(missing_ok=True)
    files = part_files(out, parts)
    record["parts"] = {part.name: pq.read_metadata(part).num_rows for part in files}
    record["finished"] = now()
    save_run(out, record)


def is_finished(out: Path, record: Mapping[str, Any], parts: str = PARTS) -> bool:
    """Whether the run is finished and every part is there, readable and as long as it was."""
    recorded: Mapping[str, int] = record.get("parts", {})
    if not (record.get("finished") and recorded):
        return False
    for name, rows in recorded.items():
        try:
            part = pq.ParquetFile(out / parts / name, page_checksum_verification=True)
            if sum(batch.num_rows for batch in part.iter_batches()) != rows:
                return False
        except (OSError, pa.ArrowInvalid):
            return False
    return True


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
    return "not given" if value is None else repr(value)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as source:
        while block := source.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """The versions of what a figure can depend on."""
    found = {"judgesense": __version__, "python": platform.python_version()}
    for package in ("numpy", "pyarrow", "torch", "transformers", "vllm", "openai"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def hardware() -> dict[str, Any]:
    """The machine, as far as it can matter to a figure or a timing."""
    return {"machine": platform.machine(), "system": platform.system(), "cpus": os.cpu_count()}


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
