"""``judgesense report`` and ``judgesense compare``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError

if TYPE_CHECKING:
    from pathlib import Path

    from judgesense.storage import Place

Format = Literal["md", "html", "tex", "json"]


def report(
    run_dirs: Annotated[
        list[str], typer.Argument(metavar="DIR|URL...", help="Folders or URLs of runs.")
    ],
    format: Annotated[
        Format | None, opt.option(None, "Print this document; write nothing.", "--format", "-f")
    ] = None,
    badge: Annotated[
        bool, typer.Option("--badge", help="Write badge.svg to the folder as well.")
    ] = False,
    threshold: opt.Thresholds = None,
) -> None:
    """Recompute the reports of runs, and print one table and the advice."""
    from judgesense.report_file import merge
    from judgesense.reporting.build import measure_run, report_runs
    from judgesense.reporting.terminal import print_report

    limits = opt.pairs(threshold, "--threshold")
    if badge and (format is not None or len(run_dirs) > 1):
        raise JudgeSenseError("--badge writes to one folder; name one run, without --format")
    with _fetched(*run_dirs, to_write=format is None) as places:
        folders = [place.folder for place in places]
        if format is None:
            measured = report_runs(*folders, thresholds=limits)
            print_report(measured)
            if badge:
                _write_badge(measured, folders[0])
            for place in places:
                place.save()
            return
        reports = [measure_run(folder, limits) for folder in folders]
    whole = reports[0] if len(reports) == 1 else merge(reports)
    if format == "json":
        opt.print_json(whole)
    else:
        typer.echo(_render(whole, format), nl=False)


@contextmanager
def _fetched(*runs: str, to_write: bool = False) -> Iterator[list[Place]]:
    """The runs' folders; the logs of runs at a URL are fetched."""
    from judgesense.storage import opened

    with ExitStack() as stack:
        places = [stack.enter_context(opened(run, to_write=to_write)) for run in runs]
        for place in places:
            place.fetch_parts()
        yield places


def _write_badge(whole: Mapping[str, object], folder: Path) -> None:
    from judgesense.files import write_text
    from judgesense.reporting.badge import BADGE_FILE, render_badge
    from judgesense.run_folder import writing

    with writing(folder):
        write_text(folder / BADGE_FILE, render_badge(whole))
    opt.note(f"wrote {folder / BADGE_FILE}")


def _render(whole: dict[str, object], format: Format) -> str:
    if format == "md":
        from judgesense.reporting.markdown import render_markdown

        return render_markdown(whole)
    if format == "tex":
        from judgesense.reporting.latex import render_latex

        return render_latex(whole)
    from judgesense.reporting.html import render_html

    return render_html(whole)


def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="Folder or URL of a run.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another run, or the same.")],
    format: Annotated[
        Literal["text", "json"], opt.option(None, "Output format.", "--format", "-f")
    ] = "text",
) -> None:
    """Compare the judges of two runs on the pairs that both judged.

    Compares each judge of A with each of B per task: the difference in JSS and in accuracy, its
    interval, and a p-value corrected for the number of comparisons. Name the same run twice to
    compare its judges with each other.
    """
    from judgesense.reporting.compare import compare as compare_runs
    from judgesense.reporting.compare import render_comparison

    with _fetched(first, second) as places:
        result = compare_runs(*(place.folder for place in places))
    if format == "json":
        opt.print_json(result.to_dict())
    else:
        typer.echo(render_comparison(result))
