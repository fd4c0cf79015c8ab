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


def compare(
    first: Annotated[
        Path, typer.Argument(metavar="OLD", help="The folder of a run, or a file of verdicts.")
    ],
    second: Annotated[Path, typer.Argument(metavar="NEW", help="Another one, or the same run.")],
    migration: Annotated[
        bool,
        typer.Option("--migration", help="OLD and NEW are one judge before and after an update."),
    ] = False,
    judge: opt.BothJudges = None,
    task: opt.RunTask = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="With --migration, the share of verdicts that may change in addition to those "
            f"that rewording changes (default: {NO_DIFFERENCE:g}).",
        ),
    ] = None,
    anchors: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR|FILE",
            help="Verdicts of NEW's judge on outputs of OLD, if few are the same.",
        ),
    ] = None,
    positive: opt.Positive = None,
    verdict: opt.Verdict = None,
    columns: opt.Roles = None,
    map: opt.Map = None,
    answers: opt.Answers = None,
    pick: opt.Pick = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The page with every changed verdict."),
    ] = None,
    open: opt.Open = False,
    format: opt.Format = "text",
) -> None:
    """Was it the judge or the system? And which of two judges is better?

    For each task, it splits the change of the mean from OLD to NEW into the judge's part and the
    system's. On outputs that are the same in both, only the judge can have changed. No labels are
    needed. A page shows every changed verdict with both texts.

    It then compares every judge in OLD with every judge in NEW on the pairs that both judged: the
    difference in JSS and in accuracy, its interval, and a p-value corrected for the number of
    comparisons. Name the same run twice to compare its judges with each other.

    With --migration, OLD and NEW contain one judge's verdicts before and after an update. It then
    reports whether the update changes more verdicts than rewording the prompt does, in
    which direction, and on which items.

    Exit codes: 0 done; 2 bad usage or input. With --migration: 0 if the update changes no more than
    rewording does; 1 if it changes more; 3 if that is unclear.
    """
    of_update = {"--judge": judge, "--task": task, "--tolerance": tolerance}
    of_files = {
        "--anchors": anchors,
        "--positive": positive,
        "--verdict": verdict,
        "--columns": columns,
        "--map": map,
        "--answers": answers,
        "--pick": pick,
        "--out": out,
    }
    if migration:
        opt.refuse("does not go with --migration", of_files)
        from judgesense.comparison.migration import migration as compare_update

        update = compare_update(
            first,
            second,
            judge=judge or None,
            task=task,
            tolerance=NO_DIFFERENCE if tolerance is None else tolerance,
        )
        opt.output(format, update.to_dict, update.__str__)
        raise typer.Exit(update.exit_code)
    opt.refuse("needs --migration", of_update)
    from judgesense.checking.compare import RUNS
    from judgesense.checking.compare import compare as compare_results
    from judgesense.importers.outputs import OUTPUT

    result = compare_results(
        first,
        second,
        anchors=anchors,
        positive=positive,
        verdict=opt.names(verdict) or (),
        columns=opt.roles(columns, OUTPUT),
        map=opt.pairs(map, "--map"),
        answers=opt.names(answers),
        pick=pick,
        out=out or RUNS / f"{first.stem}-{second.stem}.html",
        note=opt.note,
    )
    opt.output(format, result.to_dict, result.__str__)
    if result.page is not None and format == "text":
        opt.note(f"{result.page} shows every changed verdict.")
        opt.open_page(Path(result.page), asked=open)
