"""Unpack an uploaded run, a zip or single files, without trusting it."""

from __future__ import annotations

import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from judgesense.decisions.log import PARTS
from judgesense.errors import JudgeSenseError
from judgesense.run_folder.folder import PAIRS_FILE, PROMPTS_FILE, RUN_FILE
from judgesense.run_folder.report import REPORT_FILE

LARGEST_UPLOAD = 64 << 20
LARGEST_WHOLE = 256 << 20
MOST_FILES = 2000
MOST_RATIO = 200
"""Unpacked bytes per packed byte; the files of a run have about ten."""

SINGLE = (REPORT_FILE, RUN_FILE, PAIRS_FILE, PROMPTS_FILE)
_PART = re.compile(r"part-[A-Za-z0-9-]{1,60}\.parquet")
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


def place_of(name: str) -> str | None:
    """The path of a file of this name in a run's folder; None if it has no place there."""
    if name in SINGLE:
        return name
    return f"{PARTS}/{name}" if _PART.fullmatch(name) else None


def unpack(paths: Sequence[Path], into: Path) -> tuple[Path, str]:
    """Put the files of an upload into a run's folder below ``into``.

    An upload is one zip of the folder or of its contents, or the files themselves. Files that the
    checks do not need (figures, the page) are left out. Returns the folder and what was found.

    Raises JudgeSenseError for names that lead out of the folder, links, encrypted files, zip bombs,
    uploads that are too large, two files for one place, and a missing report.json.
    """
    total = sum(path.stat().st_size for path in paths)
    if total > LARGEST_UPLOAD:
        raise JudgeSenseError(
            f"{_megabytes(total)} is more than the limit of {_megabytes(LARGEST_UPLOAD)}; publish "
            "the run with: judgesense publish results DIR"
        )
    if len(paths) == 1 and paths[0].suffix.lower() == ".zip":
        return _unzip(paths[0], into)
    if any(path.suffix.lower() == ".zip" for path in paths):
        raise JudgeSenseError("upload one zip, or the files of one run, not both")
    folder = into / "run"
    found = 0
    for path in paths:
        place = place_of(path.name)
        if place is None:
            continue
        target = folder / place
        if target.exists():
            raise JudgeSenseError(
                f"two files have the name {path.name}; zip the run's folder instead"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        found += 1
    if not (folder / REPORT_FILE).is_file():
        raise JudgeSenseError(f"no {REPORT_FILE} among the files; upload the --out folder of a run")
    return folder, f"{found} of {len(paths)} files belong to a run, {_megabytes(total)}"


def _unzip(path: Path, into: Path) -> tuple[Path, str]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = list(_members(archive, path.stat().st_size))
            base = _base(members)
            folder = into / (base.name if _SAFE.fullmatch(base.name) else "run")
            wanted: dict[str, zipfile.ZipInfo] = {}
            for name, member in members:
                place = _inside(name, base)
                if place is None:
                    continue
                if place in wanted:
                    raise JudgeSenseError(f"the zip contains {name.name} twice")
                wanted[place] = member
            room = LARGEST_WHOLE
            for place, member in wanted.items():
                room -= _extract(archive, member, folder / place, room)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, zlib.error) as error:
        raise JudgeSenseError(f"the zip is damaged or of an unknown kind ({error})") from error
    kept = f"{len(wanted)} of {len(members)} files belong to a run"
    return folder, f"{kept}, {_megabytes(LARGEST_WHOLE - room)}"


def _members(
    archive: zipfile.ZipFile, packed: int
) -> Iterator[tuple[PurePosixPath, zipfile.ZipInfo]]:
    """The archive's files, after a check of their names and sizes."""
    infos = archive.infolist()
    if len(infos) > MOST_FILES:
        raise JudgeSenseError(f"the zip has {len(infos):,} entries; the limit is {MOST_FILES:,}")
    whole = sum(info.file_size for info in infos)
    if whole > LARGEST_WHOLE:
        raise JudgeSenseError(
            f"it would unpack to {_megabytes(whole)}; the limit is {_megabytes(LARGEST_WHOLE)}"
        )
    if whole > MOST_RATIO * max(packed, 1):
        raise JudgeSenseError(
            f"it would unpack to {whole // max(packed, 1)} times its size, more than any run"
        )
    for info in infos:
        name = PurePosixPath(info.filename)
        if (
            name.is_absolute()
            or ".." in name.parts
            or "\\" in info.filename
            or ":" in info.filename
            or "\0" in info.filename
        ):
            raise JudgeSenseError(f"the path {_shown(info.filename)} leads out of the zip")
        if stat.S_ISLNK(info.external_attr >> 16):
            raise JudgeSenseError(f"the zip contains a link, {_shown(info.filename)}")
        if info.flag_bits & 1:
            raise JudgeSenseError(f"{_shown(info.filename)} is encrypted")
        if not info.is_dir():
            yield name, info


def _base(members: list[tuple[PurePosixPath, zipfile.ZipInfo]]) -> PurePosixPath:
    """The folder of the only report.json."""
    found = [name.parent for name, _ in members if name.name == REPORT_FILE]
    if not found:
        raise JudgeSenseError(f"the zip contains no {REPORT_FILE}; zip the --out folder of a run")
    if len(found) > 1:
        raise JudgeSenseError(f"the zip contains {len(found)} runs; submit one at a time")
    return found[0]


def _inside(name: PurePosixPath, base: PurePosixPath) -> str | None:
    if not name.is_relative_to(base):
        return None
    place = place_of(name.name)
    return place if place == str(name.relative_to(base)) else None


def _extract(archive: zipfile.ZipFile, member: zipfile.ZipInfo, to: Path, room: int) -> int:
    """Write one file; its bytes are counted, since the declared size may be wrong."""
    to.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with archive.open(member) as source, to.open("xb") as sink:
        while chunk := source.read(1 << 20):
            written += len(chunk)
            if written > room:
                raise JudgeSenseError(f"it unpacks to more than {_megabytes(LARGEST_WHOLE)}")
            sink.write(chunk)
    return written


def _megabytes(size: int) -> str:
    return f"{size / (1 << 20):.1f} MB"


def _shown(name: str) -> str:
    return repr(name[:80])
