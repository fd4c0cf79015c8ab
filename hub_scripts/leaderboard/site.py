"""Write the leaderboard's pages from runs: static files, which need no server and no network."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hub_scripts.hub import DATASET, HUB_SITE, PAPER, REPOSITORY, Publication
from hub_scripts.leaderboard.records import FIGURE, REPORTED, RUN, Row, Tables
from hub_scripts.leaderboard.rows import (
    NO_TABLES,
    Key,
    entries,
    figure_rows,
    ranked_rows,
    recommendations,
    sorted_rows,
)
from hub_scripts.leaderboard.runs import Runs, gold_tables, is_measured_here, report_of
from hub_scripts.publications import is_wheel
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import write_text
from judgesense.files.documents import fit_record, read_json
from judgesense.measure.assessment import ReportContents, task_rank
from judgesense.measure.card import TRUST
from judgesense.measure.report_file import contents_of, plain
from judgesense.measure.thresholds import STEADY_JSS
from judgesense.published import ROWS, WITHDRAWN, figures
from judgesense.reporting.documents import environment
from judgesense.reporting.html import render_html
from judgesense.reporting.palette import DARK, LIGHT
from judgesense.text import brackets, number, percent, short_names
from judgesense.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
PUBLISHED_LOGS = Path(__file__).parent / "published_logs.json"
"""Rows, cards and remedies of published logs, which docs/make_board.py measured."""

LINKS = {
    "Paper": PAPER,
    "Docs": f"{REPOSITORY}/tree/main/docs",
    "Dataset (once published)": f"{HUB_SITE}/datasets/{DATASET}",
    "Repository": REPOSITORY,
}

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_GENERATED_FOLDERS = ("judges/", "reports/")
_GRADIO_FILES = ("app.py", "requirements.txt")


def write_site(runs: Runs, out: Path, note: Callable[[str], None] = print) -> dict[str, Any]:
    """Write the pages of some runs into a folder, and return what ``board.json`` holds.

    Every figure is recomputed from the run's decisions. A run whose report says something else is
    left out; ``note`` and the page say why.
    """
    reports, gold, left_out = {}, {}, dict(runs.left_out)
    verified = set[str]()
    for run, folder in runs.folders.items():
        try:
            reports[run] = report_of(folder)
            gold[run] = gold_tables(folder)
            if is_measured_here(folder):
                verified.add(run)
        except JudgeSenseError as error:
            left_out[run] = str(error).replace(str(folder), run)
    for run, why in left_out.items():
        note(f"left out {run}: {why}")
    return write_pages(
        reports, out, runs.where, left_out, runs.address, gold, runs.published, verified
    )


def write_pages(
    reports: Mapping[str, ReportContents],
    out: Path,
    where: str,
    left_out: Mapping[str, str] = MappingProxyType({}),
    address: str | None = None,
    gold: Mapping[str, Mapping[Key, Tables]] = MappingProxyType({}),
    published: bool = False,
    verified: Collection[str] = (),
) -> dict[str, Any]:
    """Write the pages of checked reports (by the name of their run), and return ``board.json``.

    ``where`` says where the runs come from, ``address`` is the web page of their folders,
    ``left_out`` has other runs with the reason, and ``gold`` the tables of `entries` by run.
    ``published`` adds the rows of published logs and figures, and ``verified`` are the runs whose
    answers a maintainer knows.
    """
    rows = ranked_rows(
        entry
        for run, report in reports.items()
        for entry in entries(report, run, gold.get(run, NO_TABLES), run in verified)
    )
    sources: Mapping[str, Mapping[str, str]] = {}
    reports_of_rows = dict(reports)
    if published:
        logs, name = read_json(PUBLISHED_LOGS), PUBLISHED_LOGS.name
        sources = logs["sources"]
        reports_of_rows |= {
            run: contents_of(report, name) for run, report in logs["reports"].items()
        }
        quoted_rows = [fit_record(Row, row, name, "a row of the board") for row in logs["rows"]]
        rows = sorted_rows([*rows, *quoted_rows, *figure_rows()])
    judges_of: dict[str, set[str]] = {}
    by_page: dict[str, list[Row]] = {}
    for row in rows:
        by_page.setdefault(row.page, []).append(row)
        judges_of.setdefault(row.task, set()).update([row.judge] * bool(row.labels))
    start_times = (str(run.get("started")) for report in reports.values() for run in report.runs)
    days = [day[0] for time in start_times if (day := _DAY.match(time))]
    board = {
        "judgesense": __version__,
        "where": where,
        "sources": sources,
        "runs": len(reports),
        "day": max(days, default=None),
        # The one that most judges have judged beside gold labels.
        "first_task": max(judges_of, key=lambda task: len(judges_of[task]), default=None),
        "rows": plain(rows),
        "left_out": [{"run": run, "why": why} for run, why in left_out.items()],
    }
    templates = _templates()
    colours = f":root {{ {LIGHT} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}\n"
    quoted = sorted(figures(), key=lambda f: (task_rank(f.task), f.labels, -f.jss, f.judge))
    files = {
        "index.html": _index(templates, board, rows, by_page),
        "published.html": templates.get_template("published.html").render(
            root="", withdrawn=WITHDRAWN, explained=ROWS, figures=quoted
        ),
        "board.json": json.dumps(board, ensure_ascii=False, allow_nan=False, indent=0),
        **{f"reports/{run}.html": render_html(report) for run, report in reports.items()},
    }
    files |= _judge_pages(templates, by_page, reports_of_rows, sources, address)
    for name, start in (("board.css", colours), ("board.js", ""), ("README.md", "")):
        files[name] = start + (TEMPLATES / name).read_text("utf-8")
    for path, text in files.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        write_text(out / path, text)
    return board


def _templates() -> Environment:
    """The pages' templates, with the words and formats that they use."""
    templates = environment(TEMPLATES)
    templates.policies["json.dumps_kwargs"] = {"sort_keys": False, "ensure_ascii": False}
    templates.globals |= {
        "FIGURE": FIGURE,
        "RUNS": (RUN, REPORTED),
        "threshold": STEADY_JSS,
        "as_two": partial(number, digits=2),
        "brackets": brackets,
        "as_percent": percent,
        "trusts": TRUST,
    }
    return templates


def _judge_pages(
    templates: Environment,
    by_page: Mapping[str, list[Row]],
    reports: Mapping[str, ReportContents],
    sources: Mapping[str, Mapping[str, str]],
    address: str | None,
) -> dict[str, str]:
    """The page of each judge by its path."""
    pages = {}
    for path, page_rows in by_page.items():
        judge, run = page_rows[0].judge, page_rows[0].run
        report = reports.get(run, ReportContents())
        pages[path] = templates.get_template("judge.html").render(
            root="../",
            rows=page_rows,
            assessments=[entry for entry in report.assessments if entry.judge == judge],
            log=sources.get(page_rows[0].source or ""),
            source=None if address is None else f"{address}/{run}",
            version=__version__,
        )
    return pages


def _index(
    templates: Environment,
    board: Mapping[str, Any],
    rows: list[Row],
    by_page: Mapping[str, list[Row]],
) -> str:
    by_task = groupby(rows, key=lambda row: row.task)
    by_group = groupby(rows, key=lambda row: (row.task, row.pairs, row.scoring))
    return templates.get_template("index.html").render(
        **board,
        root="",
        tasks=[(task, recommendations(list(task_rows))) for task, task_rows in by_task],
        groups=[list(group) for _, group in by_group],
        names=short_names({row.judge for row in rows}),
        by_page=by_page,
        links=LINKS,
        choices={
            "kind": sorted({row.kind for row in rows}),
            "trust": sorted({row.trust for row in rows if row.trust}),
        },
    )


def space_publication(repo_id: str, folder: Path) -> Publication:
    """The publication of a folder of pages as a static Space; it removes pages that are gone."""
    return Publication(
        repo_id=repo_id,
        repo_type="space",
        files={
            path.relative_to(folder).as_posix(): path
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        },
        message=f"Publish the leaderboard with judgesense {__version__}",
        owned=lambda path: (
            path.startswith(_GENERATED_FOLDERS) or path in _GRADIO_FILES or is_wheel(path)
        ),
        sdk="static",
    )
