"""``judgesense demo``: a recorded run, shown in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgesense.cli import options as opt


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
