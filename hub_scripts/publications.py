"""What the repositories of a dataset and of the metrics hold."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from hub_scripts.evaluations import EVAL_FILE, eval_file
from hub_scripts.hub import Content, Publication, hub_client
from judgesense.errors import JudgeSenseError
from judgesense.metric_modules.registry import METRICS, metric_path
from judgesense.version import __version__
from judgesense_dataset.audit import ERROR, audit
from judgesense_dataset.folder import README, SPLIT, configs, is_hub_folder
from judgesense_dataset.load import load_benchmark

TAG = f"v{__version__}"

REQUIREMENTS = "requirements.txt"
_CORE_REQUIREMENT = re.compile(r"^judgesense(\[[^\]]*\])?.*$", re.M)


def dataset_publication(folder: Path, repo_id: str, *, audited: bool = True) -> Publication:
    """The publication of a folder that ``judgesense dataset build`` made.

    The folder is loaded as a run loads it, and audited; ``audited=False`` skips the audit, which
    holds every pair in memory. Published are README.md, the Parquet files of its configs, and
    ``eval.yaml``.

    Raises JudgeSenseError for a missing folder, a card that declares no configs, rows that cannot
    be judged, and errors that the audit finds (the first is named).
    """
    if not folder.is_dir() or not is_hub_folder(folder):
        raise JudgeSenseError(
            f"{folder} is not a dataset folder (a README.md that declares configs, and their "
            "Parquet files); make one with: judgesense dataset build --out DIR"
        )
    load_benchmark(folder)
    tasks = audit(folder).tasks.items() if audited else ()
    findings = [(name, finding) for name, task in tasks for finding in task.findings]
    if errors := [(name, finding) for name, finding in findings if finding.severity == ERROR]:
        name, finding = errors[0]
        more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
        raise JudgeSenseError(
            f"the audit of {folder} finds errors, the first in {name}: {finding.code}: "
            f"{finding.message}{more}; list them with: judgesense dataset audit {folder}"
        )
    data_files = {path for files in configs(folder).values() for path in files}
    files: dict[str, Content] = {README: folder / README}
    files |= {path.relative_to(folder).as_posix(): path for path in sorted(data_files)}
    if (tasks_file := eval_file(folder, repo_id)) is not None:
        files[EVAL_FILE] = tasks_file
    return Publication(
        repo_id=repo_id,
        repo_type="dataset",
        files=files,
        message=f"Publish the dataset with judgesense {__version__}",
        tag=TAG,
        owned=lambda path: (
            path in (EVAL_FILE, "audit.png")  # the latter was written by 0.2
            or (fnmatchcase(path, f"*/{SPLIT}.parquet") and path.count("/") == 1)
        ),
    )


def metric_publications(
    org: str, wheel: Path, names: Iterable[str] = (), *, private: bool = False
) -> list[Publication]:
    """One Space per metric (by default all), which ``evaluate.load("ORG/<metric>")`` loads.

    Each has the wheel of the core, and the line of requirements.txt that names judgesense becomes
    the URL of the wheel in the Space: the builder installs requirements.txt before the Space's
    other files are there, so a relative path would not be found. The URL carries the wheel's
    SHA-256. pip checks it, and a builder that caches by requirements.txt sees when the wheel
    changes.

    Raises JudgeSenseError for an unknown metric, or a file that is not a wheel of this version.
    """
    if not wheel.is_file():
        raise JudgeSenseError(f"{wheel} does not exist; build a wheel, or use --wheel FILE")
    if not wheel.name.startswith(f"judgesense-{__version__}-") or wheel.suffix != ".whl":
        raise JudgeSenseError(
            f"{wheel} is not a wheel of judgesense {__version__}; its name must start with "
            f"judgesense-{__version__}-"
        )
    if not zipfile.is_zipfile(wheel):
        raise JudgeSenseError(f"{wheel} is damaged (not a zip archive); build the wheel again")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    note = "a private Space cannot download its own wheel; its app starts once the Space is public"
    publications = []
    for name in names or METRICS:
        repo_id = f"{org}/{name}"
        files: dict[str, Content] = {
            path.name: path
            for path in sorted(Path(metric_path(name)).iterdir())
            if path.is_file() and not path.name.startswith(".")
        }
        site = f"{hub_client().constants.ENDPOINT}/spaces/{repo_id}/resolve/main"
        address = f"{site}/{wheel.name}#sha256={digest}"
        text = (Path(metric_path(name)) / REQUIREMENTS).read_text("utf-8")
        requirements = _CORE_REQUIREMENT.sub(rf"judgesense\g<1> @ {address}", text)
        publications.append(
            Publication(
                repo_id=repo_id,
                repo_type="space",
                files={**files, REQUIREMENTS: requirements.encode(), wheel.name: wheel},
                message=f"Publish the metric {name} of judgesense {__version__}",
                tag=TAG,
                owned=is_wheel,
                notes=(note,) if private else (),
                sdk="gradio",
            )
        )
    return publications


def is_wheel(path: str) -> bool:
    """Whether a file of a Space is a wheel of some version of judgesense."""
    return path.startswith("judgesense-") and path.endswith(".whl")


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
    build = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    wheels = sorted(into.glob("judgesense-*.whl"))
    if build.returncode or not wheels:
        message = (build.stderr.strip().splitlines() or ["no message"])[-1]
        raise JudgeSenseError(f"building the wheel failed ({message}); use --wheel FILE")
    return wheels[-1]
