"""``judgesense view``: every run and check under a folder."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from judgesense.cli import options as opt
from judgesense.cli.pages import serve_pages


def view(
    root: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder under which runs and checks lie.")
    ] = Path("runs"),
    out: opt.MaybePages = None,
    port: opt.Port = 7861,
    no_browser: opt.NoBrowser = False,
) -> None:
    """See all runs and checks under a folder: by judge and task, over time, two side by side.

    The pages are made from the reports that lie there, and served on 127.0.0.1 until Ctrl-C.
    """
    from judgesense.reporting.overview import write_overview

    write = partial(write_overview, root, note=opt.note)
    if out is None:
        serve_pages(write, port, "runs", browser=not no_browser)
        return
    runs, _ = write(out)
    opt.echo(f"{runs} runs: open {out / 'index.html'}")
