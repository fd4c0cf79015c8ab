"""``judgesense monitor``: does a judge still give the verdicts that it gave?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgesense.cli import options as opt


def monitor(
    run: Annotated[
        Path, typer.Argument(metavar="DIR", help="The run of this look, or its file of verdicts.")
    ],
    against: Annotated[
        Path,
        opt.option("BASELINE", "The run, or file of verdicts, to compare with."),
    ],
    history: Annotated[
        Path | None,
        opt.option(
            "FILE", "History, one line per look (JSONL).", default="monitor.jsonl in BASELINE"
        ),
    ] = None,
    judge: Annotated[
        list[str] | None,
        opt.option("JUDGE", "The judge; repeat if the baseline's differs.", "--judge", "-j"),
    ] = None,
    task: Annotated[str | None, opt.option("TASK", "Check one task only.")] = None,
    tolerance: Annotated[
        float,
        opt.option("SHARE", "Fine if at most this share of verdicts changes beyond rewording."),
    ] = 0.05,
    dry_run: opt.DryRun = False,
    format: opt.Format = "text",
) -> None:
    """Does a judge still give the same verdicts as a baseline? Run it every week.

    Each call is a look. It compares verdicts with the baseline's on the same prompts, adds a line
    to the history, and tests whether, at this look or an earlier one, more verdicts changed than
    rewording explains. You may look as often as you like: the chance of a false alarm covers all
    looks.

    Exit codes: 0 fine; 1 alarm; 2 bad usage or input; 3 cannot tell.
    """
    from judgesense.cli.report import two_judges
    from judgesense.systems.monitor import monitor as look

    found = look(
        run,
        against=against,
        history=history,
        judge=two_judges(judge),
        task=task,
        tolerance=tolerance,
        record=not dry_run,
    )
    opt.output(format, found.to_dict, found.__str__)
    if found.exit_code:
        raise typer.Exit(found.exit_code)
