"""Where the files of a run are: a local folder, or a URL that fsspec knows (``s3://...``).

The parts of a log are written straight to their place, each in one piece. The few other files of a
run at a URL (``run.json``, the pairs, the report) are written in a temporary folder and uploaded.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from judgesense.decisions.log import PARTS, encode_part, write_part
from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.files.disk import cannot_write

if TYPE_CHECKING:
    from typing_extensions import TypeIs
    from upath import UPath

_ATOMIC_PUTS = frozenset(
    {"abfs", "abfss", "adl", "az", "gcs", "gs", "memory", "oci", "oss", "s3", "s3a"}
)
"""Protocols of object stores: a put object appears whole or not at all. They have no rename."""


@dataclass(frozen=True)
class PartFolder:
    """The parts of a log, by name, in a local folder or below a URL."""

    folder: Path | UPath

    def __str__(self) -> str:
        return shown(str(self.folder))

    def read(self, name: str) -> pa.Table | None:
        """A part, with its checksums verified; None if there is no such part.

        Raises ConnectionError if remote storage cannot be read, and OSError or pa.ArrowInvalid if
        the part is damaged.
        """
        path = self.folder / name
        try:
            content = _read(path)
        except OSError as error:
            raise (ConnectionError(str(error)) if _is_remote(path) else error) from error
        if content is None:
            return None
        return pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True).read()

    def write(self, table: pa.Table, name: str) -> None:
        """Write a part whole or not at all. Raises OSError."""
        if not _is_remote(self.folder):
            write_part(table, self.folder, name)
            return
        sink = pa.BufferOutputStream()
        encode_part(table, sink)
        _write(self.folder / name, sink.getvalue().to_pybytes())

    def set_aside(self, name: str) -> str:
        """Rename a damaged part; returns its new name."""
        aside = f"{name}.damaged-{time.time_ns()}"
        if _is_remote(self.folder):
            with _as_os_error():
                self.folder.fs.mv((self.folder / name).path, (self.folder / aside).path)
        else:
            (self.folder / name).rename(self.folder / aside)
        return aside

    def names(self) -> list[str]:
        """The names of all parts, in order."""
        return [name for name in _names(self.folder) if re.fullmatch(r"part-.*\.parquet", name)]

    def require_usable(self, beside: str) -> None:
        """Raise JudgeSenseError unless this machine can use the folder of the run.

        It must see the file ``beside``, which another machine wrote next to the parts, and be
        able to write there.
        """
        run = self.folder.parent
        if _is_remote(run):
            _require_access(run)
        elif run.exists() and not os.access(run, os.W_OK):
            raise JudgeSenseError(f"this machine cannot write to {run}")
        if beside not in _names(run):
            raise JudgeSenseError(
                f"this machine does not see the run in {shown(str(run))}; set --out to a folder "
                "that all machines share, or to a URL such as s3://BUCKET/NAME"
            )


@dataclass
class Place:
    """The place of a run: ``folder`` holds its files while we work, ``parts`` the parts of its log.

    ``url`` is None for a run that is in ``folder`` itself.
    """

    folder: Path
    parts_name: str
    url: UPath | None = None
    _saved: dict[str, int] = field(default_factory=dict)

    @cached_property
    def parts(self) -> PartFolder:
        """The parts of the log."""
        if self.url is None:
            return PartFolder((self.folder / self.parts_name).resolve())
        return PartFolder(self.url / self.parts_name)

    def save(self) -> None:
        """Upload new and changed files to the URL, ``run.json`` last.

        Raises JudgeSenseError if they cannot be written.
        """
        if self.url is None:
            return
        found = [path for path in self.folder.rglob("*") if path.is_file()]
        for path in sorted(found, key=lambda path: (path.name == "run.json", path)):
            name, changed = path.relative_to(self.folder).as_posix(), path.stat().st_mtime_ns
            if name.startswith(f"{self.parts_name}/") or self._saved.get(name) == changed:
                continue
            try:
                _write(self.url / name, path.read_bytes())
            except OSError as error:
                raise cannot_write(shown(str(self.url / name)), error) from error
            self._saved[name] = changed

    def fetch_parts(self) -> None:
        """Download all parts of the log into the folder."""
        if self.url is not None:
            for name in self.parts.names():
                self._fetch(f"{self.parts_name}/{name}")

    def _fetch(self, name: str) -> None:
        assert self.url is not None
        try:
            content = _read(self.url / name)
        except OSError as error:
            raise JudgeSenseError(f"cannot read {shown(str(self.url / name))}: {error}") from error
        if content is not None:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(content)

    def holds(self, names: Iterable[str]) -> bool:
        """Whether all these parts exist."""
        return set(names) <= set(self.parts.names())

    def _begin(self, *, to_write: bool) -> None:
        """Check access to the URL, then download the files of the run except the parts."""
        assert self.url is not None
        names = _require_access(self.url, to_write=to_write)
        if to_write and "run.json" not in names and self.parts.names():
            raise JudgeSenseError(
                f"{shown(str(self.url))} holds {self.parts_name} but no run.json; set --out to "
                "another place"
            )
        for name in names:
            if name.endswith((".json", ".parquet")):
                self._fetch(name)
                self._saved[name] = (self.folder / name).stat().st_mtime_ns


@contextmanager
def opened(out: str | Path, parts_name: str = PARTS, *, to_write: bool = True) -> Iterator[Place]:
    """Open the folder of a run, which the user named as a path or as a URL.

    ``file://`` is a path. Raises JudgeSenseError, before any work, for a storage that is unknown,
    whose driver is missing, or that cannot be reached or (``to_write``) written.
    """
    if isinstance(out, Path) and out.parts and re.fullmatch(r"[a-z][\w+.-]+:", out.parts[0]):
        raise JudgeSenseError(f"{out} is a URL inside a Path; pass it as a string")
    scheme, _, rest = str(out).partition("://")
    if not rest or scheme in ("file", "local"):
        yield Place(Path(rest or out), parts_name)
        return
    url = str(out).rstrip("/")
    with tempfile.TemporaryDirectory(prefix="judgesense-") as parent:
        # The folder's name becomes the run's name in its report.
        folder = Path(parent) / (url.rpartition("/")[2] or "run")
        folder.mkdir()
        place = Place(folder, parts_name, remote_path(url))
        place._begin(to_write=to_write)
        try:
            yield place
        except JudgeSenseError as error:
            # The user knows the URL, not the temporary folder.
            error.args = tuple(str(each).replace(str(folder), shown(url)) for each in error.args)
            raise


def remote_path(url: str) -> UPath:
    """The path of a URL. Raises JudgeSenseError if its storage is unknown or has no driver."""
    try:
        from upath import UPath
    except ImportError as error:
        raise MissingExtraError("universal-pathlib", "storage", f"--out {shown(url)}") from error
    try:
        path = UPath(url)
        # The filesystem is made, and its driver imported, on first use.
        _ = path.fs
    except ValueError as error:
        raise JudgeSenseError(
            f"{shown(url)}: unknown storage ({error}); use a folder, or a URL that fsspec knows, "
            "such as s3://BUCKET/NAME or gs://BUCKET/NAME"
        ) from error
    except ImportError as error:
        raise JudgeSenseError(
            f"{shown(url)}: the driver of this storage is not installed ({error})"
        ) from error
    return path


def shown(url: str) -> str:
    """A URL without the user and password that it may contain."""
    return re.sub(r"(?<=://)[^/@]*@", "", url)


def _is_remote(path: Path | UPath) -> TypeIs[UPath]:
    return hasattr(path, "fs")


def _read(path: Path | UPath) -> bytes | None:
    with _as_os_error():
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None


def _write(path: UPath, content: bytes) -> None:
    """Write a remote file whole or not at all."""
    with _as_os_error():
        if path.protocol in _ATOMIC_PUTS:
            path.fs.pipe_file(path.path, content)
            return
        temporary = path.parent / f".{path.name}.{uuid4().hex[:8]}.tmp"
        path.fs.makedirs(path.parent.path, exist_ok=True)
        path.fs.pipe_file(temporary.path, content)
        path.fs.mv(temporary.path, path.path)


def _names(folder: Path | UPath) -> list[str]:
    try:
        if not _is_remote(folder):
            return sorted(os.listdir(folder))
        with _as_os_error():
            folder.fs.invalidate_cache()
            listed: list[str] = folder.fs.ls(folder.path, detail=False)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(path.rstrip("/").rpartition("/")[2] for path in listed)


def _require_access(folder: UPath, *, to_write: bool = True) -> list[str]:
    """The names in a remote folder. Raises JudgeSenseError unless it can be read and written."""
    try:
        if to_write:
            probe = folder / f".probe-{uuid4().hex[:8]}"
            _write(probe, b"")
            with _as_os_error():
                probe.unlink()
        return _names(folder)
    except OSError as error:
        does = "write to" if to_write else "read"
        raise JudgeSenseError(
            f"cannot {does} {shown(str(folder))}: {error}; check that the place exists and that "
            "this machine has credentials for it"
        ) from error


@contextmanager
def _as_os_error() -> Iterator[None]:
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        # Drivers raise errors of their own, for missing credentials or a missing bucket.
        raise OSError(f"{type(error).__name__}: {error}") from error
