"""``judgesense monitor``: does a judge still give the verdicts that it gave?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgesense.cli import options as opt


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
