"""``judgesense monitor``: does a judge still give the verdicts that it gave?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgesense.cli import options as opt


def monitor(
    run: Annotated[
        Path, typer.Argument(metavar="DIR", help="This look's run, or its file of verdicts.")
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
        opt.option("JUDGE", "The judge; repeat to name the baseline's.", "--judge", "-j"),
    ] = None,
    task: Annotated[str | None, opt.option("TASK", "Check one task only.")] = None,
    tolerance: Annotated[
        float,
        opt.option(
            "SHARE", "Largest excess over rewording that counts as fine, as a share of verdicts."
        ),
    ] = 0.05,
    dry_run: opt.DryRun = False,
    format: opt.Format = "text",
) -> None:
    """Does a judge still give the same verdicts as a baseline? Run it every week.

    Compares this look's verdicts with the baseline's on the same prompts, adds the look to the
    history, and tests whether verdicts have moved more than rewording moves them since any earlier
    look. You may look as often as you like: the chance of a false alarm covers all looks.

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
