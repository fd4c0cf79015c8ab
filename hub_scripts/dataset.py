"""Publish the folder of a built dataset as a dataset repository."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from hub_scripts.eval_results import EVAL_FILE, eval_yaml
from hub_scripts.publication import Content, Publication
from judgesense.errors import JudgeSenseError
from judgesense.files.tables import column_names
from judgesense.tasks import load_label_map
from judgesense.version import __version__
from judgesense_dataset.audit import audit
from judgesense_dataset.audit.findings import ERROR
from judgesense_dataset.folder import (
    ALL,
    AUDIT_FIGURE,
    PROMPTS,
    README,
    SPLIT,
    configs,
    is_hub_folder,
    read_config,
)
from judgesense_dataset.load import load_benchmark


def dataset_publication(
    folder: Path, repo_id: str, *, audited: bool = True, benchmark: str | None = None
) -> Publication:
    """The publication of a folder that ``judgesense dataset build`` made.

    The folder is loaded as a run loads it, and audited; ``audited=False`` skips the audit, which
    holds every pair in memory. Published are README.md, the figure of its audit and the Parquet
    files of its configs. With a name as ``benchmark``, an ``eval.yaml`` makes the dataset a
    benchmark of the Hub.

    Raises JudgeSenseError for a missing folder, a card that declares no configs, rows that cannot
    be judged, and errors that the audit finds (the first is named).
    """
    if not folder.is_dir() or not is_hub_folder(folder):
        raise JudgeSenseError(
            f"{folder} is not a dataset folder (a README.md that declares configs, and their "
            "Parquet files); make one with: judgesense dataset build --out DIR"
        )
    load_benchmark(folder)
    paths = configs(folder)
    if audited and set(paths) != {PROMPTS}:
        _refuse_errors(folder)
    data = {path for files in paths.values() for path in files}
    shown = [name for name in (README, AUDIT_FIGURE) if (folder / name).is_file()]
    files: dict[str, Content] = {name: folder / name for name in shown}
    files |= {path.relative_to(folder).as_posix(): path for path in sorted(data)}
    if benchmark is not None:
        tasks = [name for name in paths if name not in (ALL, PROMPTS)]
        files[EVAL_FILE] = eval_yaml(benchmark, tasks, SPLIT, _answers(folder, tasks))
    return Publication(
        repo_id=repo_id,
        repo_type="dataset",
        files=files,
        message=f"Publish the dataset with judgesense {__version__}",
        tag=f"v{__version__}",
        owned=lambda path: (
            path == AUDIT_FIGURE
            or (fnmatchcase(path, f"*/{SPLIT}.parquet") and path.count("/") == 1)
        ),
    )


def _answers(folder: Path, tasks: Sequence[str]) -> dict[str, list[str]]:
    """The raw answers of each task that has an expected answer in every row."""
    found = {}
    for task in tasks:
        path = configs(folder)[task][0]
        if "expected_a" not in column_names(path):
            continue
        rows = read_config(folder, task, ["label_map_a", "expected_a"])
        if not rows["expected_a"].null_count:
            maps = rows["label_map_a"].unique().to_pylist()
            found[task] = list(dict.fromkeys(raw for text in maps for raw in load_label_map(text)))
    return found


def _refuse_errors(folder: Path) -> None:
    errors = [
        (name, finding)
        for name, task in audit(folder).tasks.items()
        for finding in task.findings
        if finding.severity == ERROR
    ]
    if errors:
        name, finding = errors[0]
        more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
        raise JudgeSenseError(
            f"the audit of {folder} finds errors, the first in {name}: {finding.code}: "
            f"{finding.message}{more}; list them with: judgesense dataset audit {folder}"
        )
