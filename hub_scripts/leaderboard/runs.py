"""Where runs come from: a folder, a results dataset on the Hub, or the package itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from hub_scripts.hub import hub_client, transport_errors
from hub_scripts.leaderboard.records import Tables
from hub_scripts.leaderboard.rows import Key
from hub_scripts.results import checked_report
from hub_scripts.verification import VERIFIED, is_verified, named_benchmark, require_benchmark
from judgesense.errors import JudgeSenseError
from judgesense.log.folder import PAIRS_FILE, RUN_FILE, read_run
from judgesense.log.schema import PARTS, part_files
from judgesense.measure.assessment import ReportContents
from judgesense.measure.report_file import REPORT_FILE, has_report
from judgesense.tasks import ERROR

EMBEDDED = Path(__file__).parent / "data"
"""Two measured judges: the decisions, pairs and records of their runs."""

LARGEST_RUN = 256 << 20
"""Bytes of a run that are downloaded from the Hub."""

_REPO = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_PURPOSE = "a results dataset on the Hub"


@dataclass(frozen=True)
class Runs:
    """Folders of runs by name. ``left_out`` are others with the reason, ``address`` the web page
    of the dataset that they come from, as of the revision that was read. ``published``: also show
    what published logs and figures say."""

    where: str
    folders: Mapping[str, Path]
    left_out: tuple[tuple[str, str], ...] = ()
    address: str | None = None
    published: bool = False


def find_runs(results: str | None) -> Runs:
    """The runs that ``--results`` names: a folder, ORG/NAME, or None for the embedded ones.

    Raises JudgeSenseError for anything else, a folder without runs, and a dataset that cannot be
    read.
    """
    if not results:
        return Runs("the package", _run_folders(EMBEDDED.iterdir()), published=True)
    path = Path(results).expanduser()
    # Unlike pathlib, false for a name that is too long for the file system.
    if os.path.isdir(path):
        folders = _run_folders([path]) or _run_folders(path.iterdir())
        if not folders:
            raise JudgeSenseError(
                f"{path} holds no run with a {REPORT_FILE}; name the --out folder of a run, or a "
                "folder of such folders"
            )
        return Runs(path.resolve().name, folders)
    if _REPO.fullmatch(results):
        errors: tuple[type[Exception], ...] = (OSError, *transport_errors())
        try:
            return _from_hub(results)
        except errors as error:
            reason = (str(error).strip().splitlines() or [""])[0][:200]
            raise JudgeSenseError(
                f"cannot read the results dataset {results} ({type(error).__name__}: {reason}); "
                "check the name, the network and the token"
            ) from error
    raise JudgeSenseError(f"no folder {results}, and not a name on the Hub (ORG/NAME) either")


def _run_folders(paths: Iterable[Path]) -> dict[str, Path]:
    return {
        path.resolve().name: path
        for path in sorted(paths)
        if (path / REPORT_FILE).is_file() or part_files(path)
    }


def _from_hub(repo_id: str) -> Runs:
    hub = hub_client(_PURPOSE)
    api = hub.HfApi(library_name="judgesense")
    where = {"repo_id": repo_id, "repo_type": "dataset"}
    revision = api.repo_info(**where).sha
    sizes: dict[str, int] = {}
    for entry in api.list_repo_tree(**where, recursive=True, revision=revision):
        run, _, rest = getattr(entry, "path", "").partition("/")
        if rest in (REPORT_FILE, RUN_FILE, PAIRS_FILE) or rest.startswith(f"{PARTS}/part-"):
            sizes[run] = sizes.get(run, 0) + entry.size
    large = {run: size for run, size in sizes.items() if size > LARGEST_RUN}
    files = (REPORT_FILE, RUN_FILE, PAIRS_FILE, f"{PARTS}/part-*")
    patterns = [f"{run}/{file}" for run in sizes if run not in large for file in files]
    folder = Path()
    if patterns:
        # Only maintainers write to the root of the repository.
        patterns.append(VERIFIED)
        folder = Path(hub.snapshot_download(**where, revision=revision, allow_patterns=patterns))
    return Runs(
        f"{repo_id} at {revision[:8]}",
        {run: folder / run for run in sorted(sizes) if run not in large},
        tuple((run, f"its files are too large ({size:,} bytes)") for run, size in large.items()),
        f"{hub.constants.ENDPOINT}/datasets/{repo_id}/tree/{revision}",
        published=True,
    )


def report_of(folder: Path) -> ReportContents:
    """The report of a run, every figure of which follows from its decisions.

    A run without a report, or with one of an earlier JudgeSense, is measured. Raises
    JudgeSenseError for a run without decisions, for a report with other figures, and for decisions
    that differ from the package's benchmark.
    """
    from judgesense.reporting.report import measure_run

    if not part_files(folder) or has_report(folder):
        report = checked_report(folder)
    else:
        report = measure_run(folder)
    if (benchmark := named_benchmark(folder, only_embedded=True)) is not None:
        require_benchmark(folder, benchmark)
    return report


def is_measured_here(folder: Path) -> bool:
    """Whether a maintainer knows a run's answers: the package's own, or asked again."""
    return folder.parent == EMBEDDED or is_verified(folder)


def gold_tables(folder: Path) -> dict[Key, Tables]:
    """The answers of a run beside the gold labels, by judge, task and scoring.

    An answer that cannot be read is none of the labels; a failed prompt is left out.
    """
    if not part_files(folder):
        return {}
    tables_of: dict[Key, Tables] = {}
    for answers in read_run(folder).judged:
        rows, labels = answers.as_rows(), answers.task.labels
        is_answered = rows.label != ERROR
        is_used = is_answered & np.isin(rows.gold, labels)
        if not is_used.any():
            continue
        code_of = {label: code for code, label in enumerate(labels)}
        gold = [code_of[word] for word in rows.gold[is_used]]
        verdicts = [code_of.get(word, len(labels)) for word in rows.label[is_used]]
        table = answers.log.table.select(["cluster_id", "item_id"]).take(answers.rows[is_used])
        clusters = pc.coalesce(table["cluster_id"], table["item_id"]).to_pylist()
        tables = {name: np.zeros((len(labels), len(labels) + 1)) for name in clusters}
        for name, label, verdict in zip(clusters, gold, verdicts, strict=True):
            tables[name][label, verdict] += 1
        key = answers.judge, answers.task.name, answers.scoring
        tables_of[key] = Tables(tables, answers.task.ordinal, float(is_answered.mean()))
    return tables_of
