"""What a wheel and a source distribution must and must not hold; argument: their folder."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("judgesense", "judgesense_dataset", "local_judges", "hub_scripts")
METRIC_FILES = ("{name}.py", "README.md", "app.py", "requirements.txt")
LICENSES = ("LICENSE", "LICENSE-DATA")
_MADE = ("__pycache__/", ".pyc", ".ipynb_checkpoints/")


def problems_of_wheel(path: Path) -> Iterator[str]:
    """What is wrong with a wheel of this checkout, a line a problem."""
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        version = path.name.split("-")[1]
        info = f"judgesense-{version}.dist-info"
        entry_points = archive.read(f"{info}/entry_points.txt").decode()
    if "judgesense = judgesense.cli:main" not in entry_points:
        yield "no command judgesense"
    wanted = {f"{info}/licenses/{name}" for name in LICENSES} | {
        f"{package}/py.typed" for package in PACKAGES
    }
    for folder in (ROOT / "metrics").iterdir():
        if folder.is_dir() and not folder.name.startswith((".", "_")):
            files = (file.format(name=folder.name) for file in METRIC_FILES)
            wanted |= {f"judgesense/_metrics/{folder.name}/{file}" for file in files}
    for package in PACKAGES:
        for source in (ROOT / package).rglob("*"):
            name = source.relative_to(ROOT).as_posix()
            if source.is_file() and not any(made in name for made in _MADE):
                wanted.add(name)
    yield from (f"{name} is missing" for name in sorted(wanted - names))
    tops = {name.split("/")[0] for name in names} - {*PACKAGES, info}
    yield from (f"{top}/ should not be there" for top in sorted(tops))
    yield from (f"{name} should not be there" for name in sorted(names) if _is_made(name))


def problems_of_sdist(path: Path) -> Iterator[str]:
    """What is wrong with a source distribution of this checkout, a line a problem."""
    with tarfile.open(path) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    wanted = {"pyproject.toml", "README.md", "metrics/jss/jss.py", "judgesense/py.typed", *LICENSES}
    yield from (f"{name} is missing" for name in sorted(wanted - names))
    private = (".venv", "runs/", "site/", "dist/", "shared/", ".git/")
    for name in sorted(names):
        if _is_made(name) or name.startswith(private):
            yield f"{name} should not be there"


def _is_made(name: str) -> bool:
    return any(made in name for made in _MADE)


def distributions(folder: Path) -> tuple[Path, Path]:
    """The one wheel and the one source distribution in a folder."""
    (wheel,) = folder.glob("judgesense-*.whl")
    (sdist,) = folder.glob("judgesense-*.tar.gz")
    return wheel, sdist


def main(folder: Path) -> int:
    wheel, sdist = distributions(folder)
    found = [f"{wheel.name}: {problem}" for problem in problems_of_wheel(wheel)]
    found += [f"{sdist.name}: {problem}" for problem in problems_of_sdist(sdist)]
    for line in found:
        print(line, file=sys.stderr)
    if not found:
        print(f"{wheel.name} and {sdist.name} hold what they should")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
