"""Read a file that is one; write a file whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from uuid import uuid4


def require_regular(path: Path) -> None:
    """Raise OSError for a path that is absent, a pipe or a device: reading those may never end.

    >>> require_regular(Path("/dev/null"))
    Traceback (most recent call last):
    OSError: [Errno 22] a pipe or a device, not a file; save its content to a file: '/dev/null'
    """
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        reason = "a pipe or a device, not a file; save its content to a file"
        raise OSError(errno.EINVAL, reason, str(path))


def open_bytes(path: Path) -> BufferedReader:
    """A file, opened to read bytes. Raises OSError, as `require_regular` does too."""
    require_regular(path)
    return path.open("rb")


def file_bytes(path: Path) -> bytes:
    """A file's content. Raises OSError, as `require_regular` does too."""
    with open_bytes(path) as source:
        return source.read()


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
