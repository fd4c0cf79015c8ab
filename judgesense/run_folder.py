"""``run.json``: everything that fixes a run's answers, and whether a folder holds the same run."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from judgesense.decisions import PARTS, part_files
from judgesense.errors import JudgeSenseError
from judgesense.version import __version__

RUN_FILE, REPORT_FILE = "run.json", "report.json"
PAIRS_FILE, PROMPTS_FILE = "pairs.parquet", "prompts.parquet"


def open_run(out: Path, asked: Mapping[str, Any], parts: str = PARTS) -> dict[str, Any]:
    """The run's record: a new one, or that of the same run taken up again.

    ``parts`` names the folder of the run's log.

    Raises JudgeSenseError, before anything is loaded, if the folder cannot be written or holds a
    run that was asked for otherwise; the error names what differs.
    """
    path = out / RUN_FILE
    require_writable(out)
    if not path.exists():
        if part_files(out, parts):
            raise JudgeSenseError(
                f"{out} holds {parts} but no {RUN_FILE}; give --out another folder"
            )
        return {"schema": 1, "asked": dict(asked), "started": now()}
    try:
        record: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise JudgeSenseError(
            f"{path} is damaged ({error}); move it away, or give --out another folder"
        ) from error
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
