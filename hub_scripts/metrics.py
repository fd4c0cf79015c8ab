"""Each metric's folder as a Gradio Space that ``evaluate.load("ORG/<metric>")`` loads."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

from hub_scripts.plan import Content, Publication
from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.scores import METRICS, metric_path
from judgesense.version import __version__

_REQUIREMENT = re.compile(r"^judgesense(\[[^\]]*\])?.*$", re.M)


def metric_publications(
    org: str, wheel: Path, names: Iterable[str] = (), *, private: bool = False
) -> list[Publication]:
    """One publication a metric (all, or those named), with the wheel of the core.

    A Space's builder sees requirements.txt alone, not the files beside it, so the requirement is
    the wheel's address in the Space.

    Raises JudgeSenseError: an unknown metric; a file that is no wheel of this version.
    """
    check_wheel(wheel)
    return [_publication(name, org, wheel, private) for name in names or METRICS]


def _publication(name: str, org: str, wheel: Path, private: bool) -> Publication:
    try:
        from huggingface_hub import constants
    except ImportError:
        raise MissingExtraError("huggingface_hub", "hub", "publishing") from None

    folder = Path(metric_path(name))
    repo_id = f"{org}/{name}"
    files: dict[str, Content] = {
        path.name: path
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith(".")
    }
    address = f"{constants.ENDPOINT}/spaces/{repo_id}/resolve/main/{wheel.name}"
    stated = (folder / "requirements.txt").read_text("utf-8")
    files["requirements.txt"] = _REQUIREMENT.sub(
        lambda found: f"judgesense{found[1] or ''} @ {address}", stated
    ).encode()
    files[wheel.name] = wheel
    note = "a private Space cannot fetch its own wheel: its app starts once it is public"
    return Publication(
        repo_id=repo_id,
        repo_type="space",
        files=files,
        message=f"Publish the metric {name} of judgesense {__version__}",
        tag=f"v{__version__}",
        owned=lambda path: path.startswith("judgesense-") and path.endswith(".whl"),
        notes=(note,) if private else (),
    )


def check_wheel(wheel: Path) -> None:
    """Raise JudgeSenseError unless the file is a wheel of judgesense in this version."""
    if not wheel.is_file():
        raise JudgeSenseError(f"no wheel {wheel}; build one in a checkout, or give --wheel FILE")
    if not wheel.name.startswith(f"judgesense-{__version__}-") or wheel.suffix != ".whl":
        raise JudgeSenseError(
            f"{wheel} is no wheel of judgesense {__version__}; its name must begin with "
            f"judgesense-{__version__}-"
        )
    if not zipfile.is_zipfile(wheel):
        raise JudgeSenseError(f"{wheel} is damaged: it is no zip archive; build the wheel again")
    with zipfile.ZipFile(wheel) as archive:
        if "judgesense/version.py" not in archive.namelist():
            raise JudgeSenseError(f"{wheel} holds no judgesense; build the wheel again")


def build_wheel(into: Path) -> Path:
    """Build the wheel of this checkout; the same files give the same bytes.

    Raises JudgeSenseError if judgesense is installed and no checkout, or the build fails.
    """
    root = Path(__file__).resolve().parents[1]
    if not (root / "pyproject.toml").is_file() or not (root / "metrics").is_dir():
        raise JudgeSenseError(
            "judgesense runs from an installed wheel, so there is nothing to build the Spaces' "
            "wheel from; give the file that you installed with --wheel FILE"
        )
    if importlib.util.find_spec("hatchling") is None:
        raise JudgeSenseError(
            "building the wheel needs hatchling (pip install hatchling), or give --wheel FILE"
        )
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    built = sorted(into.glob("judgesense-*.whl"))
    if done.returncode or not built:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise JudgeSenseError(f"the wheel could not be built ({last}); give one with --wheel FILE")
    return built[-1]
