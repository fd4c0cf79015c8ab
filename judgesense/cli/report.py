"""``judgesense report`` and ``judgesense compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError
from judgesense.measure.thresholds import NO_DIFFERENCE

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


def compare(
    first: Annotated[
        Path,
        typer.Argument(
            metavar="A", help="The folder of a run. With --migration it can be a file of verdicts."
        ),
    ],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another run, or the same one.")],
    migration: Annotated[
        bool, typer.Option("--migration", help="A and B are one judge before and after an update.")
    ] = False,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            "--judge",
            "-j",
            metavar="JUDGE",
            help=(
                "The judge to compare, if A and B have several. Repeat the option if it has "
                "another name in B."
            ),
        ),
    ] = None,
    task: Annotated[str | None, typer.Option(metavar="TASK", help="Compare one task only.")] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="With --migration, the share of verdicts that may change in addition to those "
            f"that rewording changes (default: {NO_DIFFERENCE:g}).",
        ),
    ] = None,
    format: opt.Format = "text",
) -> None:
    """Compare the judges of two runs, or one judge before and after an update.

    For each task, it compares every judge in A with every judge in B on the pairs that both judged.
    It prints the difference in JSS and in accuracy, its interval, and a p-value corrected for the
    number of comparisons. Name the same run twice to compare its judges with each other.

    With --migration, A and B contain one judge's verdicts before and after an update. It then
    reports whether the update changes more verdicts than rewording the prompt does, in
    which direction, and on which items.

    Exit codes: 0 done; 2 bad usage or input. With --migration: 0 if the update changes no more than
    rewording does; 1 if it changes more; 3 if that is unclear.
    """
    if not migration:
        flags = {"--judge": judge, "--task": task, "--tolerance": tolerance}
        if set_flags := [flag for flag, value in flags.items() if value is not None]:
            raise JudgeSenseError(f"{set_flags[0]} needs --migration")
        from judgesense.comparison.compare import compare as compare_runs

        result = compare_runs(first, second)
        opt.output(format, result.to_dict, lambda: str(result))
        return
    from judgesense.comparison.migration import migration as compare_update

    update = compare_update(
        first,
        second,
        judge=judge or None,
        task=task,
        tolerance=NO_DIFFERENCE if tolerance is None else tolerance,
    )
    opt.output(format, update.to_dict, update.__str__)
    if update.exit_code:
        raise typer.Exit(update.exit_code)
