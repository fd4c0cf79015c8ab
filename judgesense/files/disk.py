"""Read a file's bytes; write a file whole or not at all; say what a failed write needs."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from uuid import uuid4

from judgesense.errors import JudgeSenseError
from judgesense.text import did_you_mean


def require_file(path: Path) -> None:
    """Raise JudgeSenseError unless ``path`` is a file that is not empty."""
    # Unlike pathlib, false for a name that is too long for the file system.
    if not os.path.isfile(path):
        if os.path.isdir(path):
            raise JudgeSenseError(f"{path} is a folder; name a file")
        if os.path.exists(path):
            raise JudgeSenseError(
                f"{path} is a pipe or a device, not a file; save its content to a file"
            )
        raise JudgeSenseError(f"no file {path}{did_you_mean(path.name, siblings(path))}")
    if path.stat().st_size == 0:
        raise JudgeSenseError(f"{path} is empty")


def siblings(path: Path) -> list[str]:
    """The names in the folder of a path; none if it cannot be read."""
    try:
        return os.listdir(path.parent)
    except OSError:
        return []


def open_bytes(path: Path) -> BufferedReader:
    """A file, opened to read bytes. Raises OSError, also for a pipe, which may never end.

    >>> open_bytes(Path("/dev/null"))
    Traceback (most recent call last):
    OSError: [Errno 22] a pipe or a device, not a file; save its content to a file: '/dev/null'
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        reason = "a pipe or a device, not a file; save its content to a file"
        raise OSError(errno.EINVAL, reason, str(path))
    return path.open("rb")


def file_bytes(path: Path) -> bytes:
    """A file's content. Raises OSError as `open_bytes` does."""
    with open_bytes(path) as source:
        return source.read()


def read_text(path: Path) -> str:
    """A file's text. Raises JudgeSenseError for a file that cannot be read or is not UTF-8."""
    try:
        return file_bytes(path).decode("utf-8-sig")
    except OSError as error:
        hint = "" if path.exists() else did_you_mean(path.name, siblings(path))
        reason = f"cannot be read ({error.strerror or error}){hint}"
        raise JudgeSenseError(f"{path}: {reason}") from error
    except UnicodeDecodeError as error:
        raise JudgeSenseError(
            f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8"
        ) from error


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hex. Raises OSError with its name if it cannot be read."""
    try:
        with open_bytes(path) as source:
            return hashlib.file_digest(source, "sha256").hexdigest()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; at the end it is renamed to ``path``.

    After an error ``path`` is as it was before and no temporary file is left. The temporary name
    is random: two machines may write the same file. A link is kept, and what it points to is
    replaced. A pipe or a device, such as ``/dev/stdout``, is written to directly: root could
    replace ``/dev/null`` itself.

    >>> with replacing(Path("/dev/null")) as written:
    ...     print(written)
    /dev/null
    """
    if not path.name:
        raise IsADirectoryError(errno.EISDIR, "a folder, not a file", str(path))
    if path.exists() and not path.is_file() and not path.is_dir():
        yield path
        return
    if path.is_symlink():
        path = path.resolve()
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:8]}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file whole or not at all, with line feeds on every system.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text(Path(folder, "note.txt"), "kept")
    ...     [path.name for path in Path(folder).iterdir()]
    ['note.txt']
    """
    with replacing(path) as temporary:
        temporary.write_text(text, "utf-8", newline="\n")


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


def require_folder(out: Path) -> None:
    """Create the folder that a result is written into.

    Raises JudgeSenseError, before any work, if it cannot be written, and as `refuse_links`.
    """
    require_writable(out)
    refuse_links(out)


def refuse_links(folder: Path) -> None:
    """Raise JudgeSenseError for a folder with a link inside, at any depth.

    Writing follows links, so the folder of somebody else could name any file of the user.
    """
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            if path.is_symlink():
                raise JudgeSenseError(
                    f"{path} is a link, and writing would replace what it points to; remove the "
                    "link, or copy the folder"
                )


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Report a full disk or a read-only folder as a JudgeSenseError."""
    try:
        yield
    except OSError as error:
        raise cannot_write(out, error) from error


def cannot_write(where: object, error: OSError) -> JudgeSenseError:
    """The error for a failed write during a run: a full disk, a read-only folder, a lost link."""
    # A storage's own text is the reason; else the system's text for the number.
    reason = os.strerror(error.errno) if error.errno else str(error)
    return JudgeSenseError(
        f"cannot write to {where}: {reason}; finished parts are kept. Fix the cause, then rerun "
        "the same command to resume"
    )
