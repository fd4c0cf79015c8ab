"""The most that is taken from others, in one place: a larger input is refused and says so.

docs/security.md has the same table.
"""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

from judgesense.errors import JudgeSenseError

MIB = 2**20

REPLY_BYTES = 32 * MIB
"""Of an endpoint's reply, decompressed."""

MEMBER_BYTES = 512 * MIB
"""Of one file in an archive (a ``.eval`` log, a workbook), decompressed."""

ARCHIVE_BYTES = 4096 * MIB
"""Of all files in an archive, decompressed."""

REQUEST_BYTES = 8 * MIB
"""Of a request to ``serve``."""

HELD_BYTES = 64 * MIB
"""Of all requests to ``serve`` that are read or wait."""

HEADER_S = 10.0
"""In which a request's headers have to arrive."""

BODY_S = 30.0
"""In which a request's body has to arrive."""

CONNECTIONS = 900
"""That ``serve`` has open at once; systems allow 1,024 files."""


def require_small(archive: ZipFile, path: Path) -> None:
    """Raise JudgeSenseError for an archive whose files say that they are too large."""
    sizes = {info.filename: info.file_size for info in archive.infolist()}
    largest = max(sizes, key=lambda name: sizes[name], default="")
    if sizes and sizes[largest] > MEMBER_BYTES:
        raise JudgeSenseError(
            f"{path}: {largest} has {sizes[largest]:,} bytes; at most {MEMBER_BYTES:,} are read"
        )
    if sum(sizes.values()) > ARCHIVE_BYTES:
        raise JudgeSenseError(
            f"{path} has {sum(sizes.values()):,} bytes, decompressed; at most {ARCHIVE_BYTES:,} are"
            " read. Split it into several logs"
        )
