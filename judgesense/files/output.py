"""Errors of writing to the folder that a command was given, each with what to do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from judgesense.errors import JudgeSenseError


def require_writable(out: Path) -> None:
    """Create the folder. Raises JudgeSenseError, before any work, if it cannot be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / f".probe-{os.getpid()}"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise JudgeSenseError(
            f"cannot write to {out}: {error.strerror or error}; set --out to a folder that you "
            "can write to"
        ) from error


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Report a full disk or a read-only folder as a JudgeSenseError."""
    try:
        yield
    except OSError as error:
        raise cannot_write(out, error) from error


def cannot_write(where: object, error: OSError) -> JudgeSenseError:
    """The error for a failed write during a run: a full disk, a read-only folder, a lost link."""
    # Text of its own (a storage's) is the reason; else the system's text for the number.
    reason = os.strerror(error.errno) if error.errno else str(error)
    return JudgeSenseError(
        f"cannot write to {where}: {reason}; finished parts are kept. Fix the cause, then rerun "
        "the same command to resume"
    )
