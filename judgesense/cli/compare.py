"""``judgesense compare`` and ``monitor``: two results, and one judge over time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgesense.cli import options as opt
from judgesense.measure.thresholds import NO_DIFFERENCE


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


def monitor(
    run: Annotated[
        Path, typer.Argument(metavar="DIR", help="The newest run, or its file of verdicts.")
    ],
    against: Annotated[
        Path, typer.Option(metavar="BASELINE", help="The run or file of verdicts to compare with.")
    ],
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=(
                "The history (JSONL), to which every comparison adds a line (default: "
                "monitor.jsonl in BASELINE)."
            ),
        ),
    ] = None,
    judge: opt.BothJudges = None,
    task: opt.RunTask = None,
    tolerance: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help=(
                "The share of verdicts that may change in addition to those that rewording changes."
            ),
        ),
    ] = 0.05,
    dry_run: opt.DryRun = False,
    format: opt.Format = "text",
) -> None:
    """Does a judge still give the same verdicts as a baseline? Run it every week.

    It compares the verdicts with the baseline's on the same prompts and adds a line to the history.
    Then it tests whether, in this or an earlier comparison, more verdicts changed than rewording
    explains. Compare as often as you like: the chance of a false alarm is limited over all
    comparisons together.

    Exit codes: 0 fine; 1 alarm; 2 bad usage or input; 3 cannot tell.
    """
    from judgesense.comparison.monitor import monitor as look

    found = look(
        run,
        against=against,
        history=history,
        judge=judge or None,
        task=task,
        tolerance=tolerance,
        record=not dry_run,
    )
    opt.output(format, found.to_dict, found.__str__)
    raise typer.Exit(found.exit_code)
