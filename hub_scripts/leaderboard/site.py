"""Write the leaderboard's pages from runs: static files, which need no server and no network."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hub_scripts.hub import DATASET, HUB_SITE, LEADERBOARD, PAPER, REPOSITORY, Publication
from hub_scripts.leaderboard.rows import (
    NOTHING,
    ByCluster,
    Key,
    Row,
    answer,
    entries,
    ranked_rows,
)
from hub_scripts.leaderboard.runs import Runs, report_of, steadiness
from hub_scripts.publications import is_wheel
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import write_text
from judgesense.reporting.documents import environment
from judgesense.reporting.html import render_html
from judgesense.reporting.palette import DARK, LIGHT
from judgesense.reporting.published import (
    ROWS,
    WITHDRAWN,
    WORDINGS,
    PublishedFigure,
    figures,
    v2_figures,
)
from judgesense.run_folder.report import task_rank
from judgesense.text import brackets, percent, short_names, signed
from judgesense.trust.card import TRUST
from judgesense.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"

LINKS = {
    "Paper": PAPER,
    "Docs": f"{REPOSITORY}/tree/main/docs",
    "Dataset": f"{HUB_SITE}/datasets/{DATASET}",
    "Repository": REPOSITORY,
}

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_GENERATED = ("judges/", "reports/")
_OF_THE_GRADIO_SPACE = ("app.py", "requirements.txt")


def write_site(runs: Runs, out: Path, note: Callable[[str], None] = print) -> dict[str, Any]:
    """Write the pages of some runs into a folder, and return what ``board.json`` holds.

    Every figure is recomputed from the run's decisions. A run whose report says something else is
    left out; ``note`` and the page say why.
    """
    reports, by_cluster, left_out = {}, {}, dict(runs.left_out)
    for run, folder in runs.folders.items():
        try:
            reports[run] = report_of(folder)
            by_cluster[run] = steadiness(folder, reports[run])
        except JudgeSenseError as error:
            left_out[run] = str(error).replace(str(folder), run)
    for run, why in left_out.items():
        note(f"left out {run}: {why}")
    return write_pages(reports, out, runs.where, left_out, runs.address, by_cluster)


def write_pages(
    reports: Mapping[str, Mapping[str, Any]],
    out: Path,
    where: str,
    left_out: Mapping[str, str] = NOTHING,
    address: str | None = None,
    by_cluster: Mapping[str, Mapping[Key, ByCluster]] = NOTHING,
) -> dict[str, Any]:
    """Write the pages of checked reports (by the name of their run), and return ``board.json``.

    ``where`` says where the runs come from, ``address`` is the web page of their folders,
    ``left_out`` has other runs with the reason, and ``by_cluster`` the counts of `entries` by run.
    """
    rows = ranked_rows(
        entry
        for run, report in reports.items()
        for entry in entries(report, run, by_cluster.get(run, NOTHING))
    )
    started = (str(run.get("started")) for report in reports.values() for run in report["runs"])
    days = [day[0] for each in started if (day := _DAY.match(each))]
    board = {
        "judgesense": __version__,
        "where": where,
        "runs": len(reports),
        "day": max(days, default=None),
        "first_task": _first_task(rows),
        "rows": rows,
        "left_out": [{"run": run, "why": why} for run, why in left_out.items()],
    }
    made = environment(TEMPLATES)
    made.filters["signed"] = signed
    made.policies["json.dumps_kwargs"] = {"sort_keys": False, "ensure_ascii": False}
    made.globals |= {"brackets": brackets, "as_percent": percent, "trusts": TRUST}
    colours = f":root {{ {LIGHT} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {DARK} }} }}\n"
    files = {
        "index.html": _index(made, board),
        "published.html": _published(made),
        "board.json": json.dumps(board, ensure_ascii=False, allow_nan=False, indent=0),
        **_judge_pages(made, rows, reports, address),
        **{f"reports/{run}.html": render_html(report) for run, report in reports.items()},
    }
    for name, start in (("board.css", colours), ("board.js", ""), ("README.md", "")):
        files[name] = start + (TEMPLATES / name).read_text("utf-8")
    for path, text in files.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        write_text(out / path, text)
    return board


def _first_task(rows: list[Row]) -> str | None:
    """The task to show first: the one that most judges have judged."""
    judged = {task: set[str]() for task in sorted({row["task"] for row in rows}, key=task_rank)}
    for row in rows:
        if row["page"]:
            judged[row["task"]].add(row["judge"])
    return max(judged, key=lambda task: len(judged[task]), default=None)


def _by_page(rows: list[Row]) -> dict[str, list[Row]]:
    """The rows of each judge by its page; baselines have none."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row["page"]:
            found.setdefault(row["page"], []).append(row)
    return found


def _index(made: Environment, board: Mapping[str, Any]) -> str:
    rows = board["rows"]
    by_task = groupby(rows, key=lambda row: row["task"])
    by_group = groupby(rows, key=lambda row: (row["task"], row["pairs"], row["scoring"]))
    return made.get_template("index.html").render(
        **board,
        root="",
        tasks=[(task, answer(list(own))) for task, own in by_task],
        groups=[list(group) for _, group in by_group],
        names=short_names({row["judge"] for row in rows}),
        by_page=_by_page(rows),
        links=LINKS,
        bibtex=bibtex(board["day"]),
        choices={
            key: sorted({row[key] for row in rows if row["page"] and row[key]})
            for key in ("scoring", "weights", "trust")
        },
    )


def _judge_pages(
    made: Environment,
    rows: list[Row],
    reports: Mapping[str, Mapping[str, Any]],
    address: str | None,
) -> dict[str, str]:
    template, pages = made.get_template("judge.html"), {}
    for path, own in _by_page(rows).items():
        judge, run = own[0]["judge"], own[0]["run"]
        cards, remedies = (
            [entry for entry in reports[run][name] if entry["judge"] == judge]
            for name in ("trust", "remedies")
        )
        pages[path] = template.render(
            root="../",
            rows=own,
            cards=cards,
            remedies=remedies,
            source=None if address is None else f"{address}/{run}",
            version=__version__,
        )
    return pages


def _published(made: Environment) -> str:
    return made.get_template("published.html").render(
        root="",
        wordings=WORDINGS,
        withdrawn=WITHDRAWN,
        explained=ROWS,
        second=sorted(v2_figures(), key=_published_place),
        first=sorted(figures(), key=_published_place),
    )


def _published_place(figure: PublishedFigure) -> tuple[Any, ...]:
    return task_rank(figure.task), figure.labels, -figure.jss, figure.judge


def bibtex(day: str | None) -> str:
    """Entries for the leaderboard as of a day (YYYY-MM-DD), and for the paper behind it.

    >>> bibtex("2026-11-22").splitlines()[3]
    '  year  = {2026},'
    """
    dated = f"  year  = {{{day[:4]}}},\n  note  = {{Runs up to {day}}},\n" if day else ""
    return (
        "@misc{judgesense-leaderboard,\n"
        "  title = {JudgeSense leaderboard},\n"
        "  author = {{The JudgeSense authors}},\n"
        f"{dated}"
        f"  url   = {{{HUB_SITE}/spaces/{LEADERBOARD}}}\n}}\n"
        "@misc{judgesense-paper,\n"
        "  title = {JudgeSense: A Benchmark for Prompt Sensitivity in LLM-as-a-Judge Systems},\n"
        f"  eprint = {{{PAPER.rsplit('/', 1)[1]}}},\n  archivePrefix = {{arXiv}},\n"
        f"  url   = {{{PAPER}}}\n}}\n"
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
            path.startswith(_GENERATED) or path in _OF_THE_GRADIO_SPACE or is_wheel(path)
        ),
        sdk="static",
    )
