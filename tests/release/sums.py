"""SHA256SUMS of a release, after its bill of materials was checked; argument: their folder."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

SUMS = "SHA256SUMS"
_REQUIREMENT = re.compile(r"Requires-Dist: ([\w.-]+)(?![^\n]*extra ==)")


def problems_of_sbom(path: Path, wheel: Path) -> Iterator[str]:
    """What is wrong with a CycloneDX file of an environment with the wheel, a line a problem."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(name).decode("utf-8")
    bill = json.loads(path.read_text("utf-8"))
    if bill.get("bomFormat") != "CycloneDX":
        yield f"{path.name} is no CycloneDX file"
    parts = {_plain(part["name"]): part for part in bill.get("components", [])}
    wanted = {_plain(name) for name in _REQUIREMENT.findall(text)}
    yield from (f"{path.name} lacks {name}" for name in sorted(wanted - parts.keys()))
    unversioned = sorted(name for name, part in parts.items() if not part.get("version"))
    yield from (f"{path.name} has no version of {name}" for name in unversioned)
    told = json.dumps(bill)
    yield from (
        f"{path.name} names a local path"
        for place in ("file://", "/home/", "/root/")
        if place in told
    )


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def write_sums(folder: Path) -> Path:
    """Write the SHA-256 of every file of the folder, as ``sha256sum --check`` reads it."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (folder / SUMS).write_text("".join(lines), "utf-8")
    return folder / SUMS


if __name__ == "__main__":
    home = Path(sys.argv[1])
    (wheel,) = home.glob("*.whl")
    (bill,) = home.glob("*.cdx.json")
    found = list(problems_of_sbom(bill, wheel))
    for problem in found:
        print(problem)
    if found:
        sys.exit(1)
    print(f"{write_sums(home)}: {len(list(home.iterdir())) - 1} files")
