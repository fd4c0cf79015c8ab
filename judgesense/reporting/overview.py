"""All runs and checks under a folder: one page by judge and task, over time, two side by side."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from itertools import combinations, groupby
from pathlib import Path

from markupsafe import Markup

from judgesense.comparison.baseline import against_baseline
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import write_text
from judgesense.measure.assessment import Assessment
from judgesense.measure.card import Check
from judgesense.measure.report_file import REPORT_FILE, load_report
from judgesense.reporting.change_page import write_change_page
from judgesense.reporting.documents import environment, script_of
from judgesense.reporting.html import REPORT_PAGE, render_html
from judgesense.reporting.palette import style_sheet
from judgesense.text import percent

MOST_RUNS = 500
MOST_COMPARED = 5
DEEPEST = 6
SCRIPT = "overview.js"


@dataclass(frozen=True)
class Point:
    """One assessment in time: a run's judge on a task, and the page that shows it."""

    run: str
    page: str
    started: str
    entry: Assessment

    @property
    def series(self) -> tuple[str, str, str]:
        """The judge without its fingerprint, the task and the scoring: what a trend is of."""
        return self.entry.judge.partition("@")[0], self.entry.task, self.entry.scoring

    @property
    def right(self) -> float | None:
        """The share of verdicts that match people's labels."""
        return self.entry.card.checks["right"].details.get("accuracy")

    @property
    def cells(self) -> list[tuple[str, str, str]]:
        """Each check's name, its state, and what it shows."""
        return [
            (name, check.state, self._shown(name, check))
            for name, check in self.entry.card.checks.items()
            if check.applies
        ]

    def _shown(self, name: str, check: Check) -> str:
        if name == "right" and self.right is not None:
            return percent(self.right)
        if check.estimate is None:
            return "–"
        return f"κ {check.estimate:.2f}" if name == "right" else percent(check.estimate)


@dataclass(frozen=True)
class Change:
    """What changed from one run to a later one, and the page of every changed verdict."""

    old: Point
    new: Point
    page: str


@dataclass(frozen=True)
class Series:
    """A judge on a task over time; ``line`` are the points of its trend in an SVG of 120 × 28."""

    judge: str
    task: str
    scoring: str
    points: tuple[Point, ...]
    line: tuple[tuple[float, float], ...]
    changes: tuple[Change, ...] = ()


def write_overview(
    root: Path, out: Path, note: Callable[[str], None] = lambda _: None
) -> tuple[int, int]:
    """Write ``index.html``, the runs' pages and those of changes into ``out``.

    A change is that between two of the newest `MOST_COMPARED` runs of a judge on a task.

    Returns the numbers of runs and of folders that were left out; ``note`` says why. Raises
    JudgeSenseError for a folder that does not exist or has no report under it.
    """
    if not root.is_dir():
        raise JudgeSenseError(f"no folder {root}")
    points, left_out, runs, pages = list[Point](), list[str](), 0, set[Path]()
    for folder in find_reports(root):
        name = str(folder.relative_to(root))
        page = f"reports/{sha256(name.encode()).hexdigest()[:12]}.html"
        try:
            contents = load_report(folder)
        except JudgeSenseError as error:
            left_out.append(f"{name}: {error}")
            continue
        # A file of verdicts says nothing of its time; that of its report is the best there is.
        written = datetime.fromtimestamp((folder / REPORT_FILE).stat().st_mtime, UTC)
        started = max(str(run.get("started") or written) for run in contents.runs or [{}])
        (out / "reports").mkdir(parents=True, exist_ok=True)
        if (folder / REPORT_PAGE).is_file() and not (folder / REPORT_PAGE).is_symlink():
            shutil.copyfile(folder / REPORT_PAGE, out / page)
        else:
            write_text(out / page, render_html(contents))
        points += [Point(name, page, started, entry) for entry in contents.assessments]
        runs += 1
    for line in left_out:
        note(f"left out {line}")
    if not runs:
        raise JudgeSenseError(
            f"{root} has no report under it; judgesense check and judgesense run write them"
        )
    page_of_all = (
        environment()
        .get_template("overview.html")
        .render(
            root=str(root),
            series=[
                replace(one, changes=(*_changes(one, root, out, pages),)) for one in _series(points)
            ],
            runs=runs,
            left_out=left_out,
            css=Markup(style_sheet()),
            **script_of(SCRIPT),
        )
    )
    write_text(out / "index.html", page_of_all)
    return runs, len(left_out)


def _changes(series: Series, root: Path, out: Path, written: set[Path]) -> Iterator[Change]:
    """The changes between the newest runs, whose pages are written unless they are ``written``
    already; none where runs cannot be compared."""
    for new, old in combinations(series.points[:MOST_COMPARED], 2):
        page = out / "changes" / f"{Path(old.page).stem}-{Path(new.page).stem}.html"
        try:
            if page not in written:  # It is for another task of the same two runs.
                change = against_baseline(root / new.run, root / old.run)
                title = f"{change.gate.decision}: {change.gate.because}."
                runs = root / old.run, root / new.run
                written.add(write_change_page(page, *runs, title, change.sentences(), change.moved))
        except JudgeSenseError:
            continue  # They share no item, or one has a report alone.
        yield Change(old, new, page.relative_to(out).as_posix())


def find_reports(root: Path) -> list[Path]:
    """The folders under ``root`` with a ``report.json``, at most `MOST_RUNS`; no link is followed.

    Raises JudgeSenseError if there are more.
    """
    found = []
    for directory, folders, files in os.walk(root):
        here = Path(directory)
        depth = len(here.relative_to(root).parts)
        folders[:] = [] if depth >= DEEPEST else sorted(f for f in folders if f[:1] != ".")
        if REPORT_FILE in files and not (here / REPORT_FILE).is_symlink():
            found.append(here)
    if len(found) > MOST_RUNS:
        raise JudgeSenseError(
            f"{root} has {len(found)} reports under it; name a folder with at most {MOST_RUNS}"
        )
    return sorted(found)


def _series(points: list[Point]) -> Iterator[Series]:
    """The points of each judge on each task, newest first; those with several runs first."""

    def key(point: Point) -> tuple[str, str, str]:
        return point.series

    groups = []
    for (judge, task, scoring), group in groupby(sorted(points, key=key), key):
        of_series = sorted(group, key=lambda point: (point.started, point.run), reverse=True)
        known = [point.right for point in reversed(of_series) if point.right is not None]
        step = 112 / max(1, len(known) - 1)
        line = [(4 + at * step, 24 - 20 * share) for at, share in enumerate(known)]
        groups.append(Series(judge, task, scoring, tuple(of_series), tuple(line)))
    yield from sorted(groups, key=lambda one: -len(one.points))
