"""Write a file whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; at the end it is renamed to ``path``.

    After an error ``path`` is as it was before and no temporary file is left. The temporary name
    is random: two machines may write the same file.
    """
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
