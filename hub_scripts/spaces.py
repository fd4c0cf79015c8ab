"""The Spaces: each metric, and the leaderboard, with the wheel of the core."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from hub_scripts.client import hub_client
from hub_scripts.publication import Content, Publication
from judgesense.errors import JudgeSenseError
from judgesense.metric_modules.registry import METRICS, metric_path
from judgesense.version import __version__

REQUIREMENTS = "requirements.txt"
_CORE = re.compile(r"^judgesense(\[[^\]]*\])?.*$", re.M)


def space_publication(repo_id: str, wheel: Path, *, private: bool = False) -> Publication:
    """The publication of the leaderboard's app.

    Raises JudgeSenseError for a file that is not a wheel of this version.
    """
    from hub_scripts.leaderboard import space_files

    message = f"Publish the leaderboard of judgesense {__version__}"
    return _with_wheel(repo_id, space_files(), wheel, message, private)


def metric_publications(
    org: str, wheel: Path, names: Iterable[str] = (), *, private: bool = False
) -> list[Publication]:
    """One publication per metric (by default all), which ``evaluate.load("ORG/<metric>")`` loads.

    Raises JudgeSenseError for an unknown metric, or a file that is not a wheel of this version.
    """
    publications = []
    for name in names or METRICS:
        files: dict[str, Content] = {
            path.name: path
            for path in sorted(Path(metric_path(name)).iterdir())
            if path.is_file() and not path.name.startswith(".")
        }
        message = f"Publish the metric {name} of judgesense {__version__}"
        publications.append(_with_wheel(f"{org}/{name}", files, wheel, message, private))
    return publications


def _with_wheel(
    repo_id: str, files: Mapping[str, Content], wheel: Path, message: str, private: bool
) -> Publication:
    """The publication of a Gradio Space with the core's wheel.

    The line of requirements.txt that names judgesense becomes the URL of the wheel in the Space:
    the builder installs requirements.txt before the Space's other files are there, so a relative
    path would not be found. The URL carries the wheel's SHA-256. pip checks it, and a builder that
    caches by requirements.txt sees when the wheel changes.
    """
    endpoint = hub_client().constants.ENDPOINT
    check_wheel(wheel)
    stated = files.get(REQUIREMENTS, b"")
    text = stated.decode() if isinstance(stated, bytes) else stated.read_text("utf-8")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    address = f"{endpoint}/spaces/{repo_id}/resolve/main/{wheel.name}#sha256={digest}"
    found, count = _CORE.subn(lambda line: f"judgesense{line[1] or ''} @ {address}", text)
    if count != 1:
        raise JudgeSenseError(
            f"{REQUIREMENTS} of the Space {repo_id} names judgesense {count} times, not once"
        )
    note = "a private Space cannot download its own wheel; its app starts once it is public"
    return Publication(
        repo_id=repo_id,
        repo_type="space",
        files={**files, REQUIREMENTS: found.encode(), wheel.name: wheel},
        message=message,
        tag=f"v{__version__}",
        owned=lambda path: path.startswith("judgesense-") and path.endswith(".whl"),
        notes=(note,) if private else (),
    )


def check_wheel(wheel: Path) -> None:
    """Raise JudgeSenseError unless the file is a wheel of this version of judgesense."""
    if not wheel.is_file():
        raise JudgeSenseError(f"no wheel {wheel}; build one in a checkout, or use --wheel FILE")
    if not wheel.name.startswith(f"judgesense-{__version__}-") or wheel.suffix != ".whl":
        raise JudgeSenseError(
            f"{wheel} is not a wheel of judgesense {__version__}; its name must start with "
            f"judgesense-{__version__}-"
        )
    if not zipfile.is_zipfile(wheel):
        raise JudgeSenseError(f"{wheel} is damaged (not a zip archive); build the wheel again")
    with zipfile.ZipFile(wheel) as archive:
        if "judgesense/version.py" not in archive.namelist():
            raise JudgeSenseError(f"{wheel} does not contain judgesense; build the wheel again")


def build_wheel(into: Path) -> Path:
    """Build the wheel of this checkout; the same files give the same bytes.

    Raises JudgeSenseError if judgesense does not run from a checkout, or if the build fails.
    """
    root = Path(__file__).resolve().parents[1]
    if not (root / "pyproject.toml").is_file() or not (root / "metrics").is_dir():
        raise JudgeSenseError(
            "judgesense runs from an installed wheel, so it cannot build the wheel for the Spaces; "
            "pass the file that you installed with --wheel FILE"
        )
    if importlib.util.find_spec("hatchling") is None:
        raise JudgeSenseError(
            "building the wheel needs hatchling; run pip install hatchling, or use --wheel FILE"
        )
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    built = sorted(into.glob("judgesense-*.whl"))
    if done.returncode or not built:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise JudgeSenseError(f"building the wheel failed ({last}); use --wheel FILE")
    return built[-1]
