"""``judgesense report`` and ``demo``: the reports of runs, and of a recorded one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError

Format = Literal["md", "html", "tex", "json"]


def report(
    run_dirs: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of runs.")],
    format: Annotated[
        Format | None,
        typer.Option("--format", "-f", help="Print the report in this format and write nothing."),
    ] = None,
    badge: Annotated[
        bool, typer.Option("--badge", help="Write badge.svg to the folder as well.")
    ] = False,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help=(
                "The threshold of a check, such as steady=0.9. The checks are readable, steady, "
                "responsive, right and fair. Repeatable."
            ),
        ),
    ] = None,
    verbose: opt.Verbose = False,
    open: opt.Open = False,
) -> None:
    """Recompute the reports of one or more runs, then print their figures and the next step."""
    from judgesense.files.disk import write_text, writing
    from judgesense.measure.disagreements import Disagreement
    from judgesense.measure.report_file import merge, report_json
    from judgesense.reporting import documents
    from judgesense.reporting.report import measure_run, report_runs
    from judgesense.reporting.terminal import print_report

    limits = opt.pairs(threshold, "--threshold")
    if badge and (format is not None or len(run_dirs) > 1):
        raise JudgeSenseError("--badge writes to one folder; name one run, without --format")
    if format is None:
        measured = report_runs(*run_dirs, thresholds=limits)
        folder = run_dirs[0] if len(run_dirs) == 1 else None
        print_report(measured.contents, folder, verbose=verbose)
        opt.open_page(run_dirs[0] / "report.html", asked=open)
        if badge:
            file = run_dirs[0] / documents.BADGE_FILE
            with writing(run_dirs[0]):
                write_text(file, documents.render_badge(measured.contents))
            opt.note(f"wrote {file}")
        return
    listed: list[Disagreement] | None = [] if format == "html" else None
    reports = [measure_run(folder, limits, listed) for folder in run_dirs]
    whole = reports[0] if len(reports) == 1 else merge(reports)
    if format == "json":
        opt.print_json(report_json(whole))
    elif format == "html":
        from judgesense.reporting.html import render_html

        typer.echo(render_html(whole, listed or []), nl=False)
    else:
        render = documents.render_markdown if format == "md" else documents.render_latex
        typer.echo(render(whole), nl=False)


def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder to write.")
    ] = Path("judgesense-demo"),
    open: opt.Open = False,
) -> None:
    """Show a report on three small judges. Their answers were recorded, so the demo needs no
    model and no network.

    The judges chose the more relevant of two passages under five wordings of the question. The
    report is computed now, from their recorded answers. To see every finding, run judgesense report
    DIR --verbose.
    """
    from judgesense.pipeline.demo import demo as show
    from judgesense.reporting.terminal import print_report

    print_report(show(out).contents, out)
    opt.open_page(out / "report.html", asked=open)
