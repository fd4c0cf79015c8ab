"""``judgesense leaderboard``: the leaderboard's pages, written and served on this machine."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import typer

from judgesense.cli import options as opt
from judgesense.cli.pages import serve_pages


def leaderboard(
    results: opt.Results = None,
    out: opt.MaybePages = None,
    port: opt.Port = 7860,
    no_browser: opt.NoBrowser = False,
) -> None:
    """Rank judges on a page built from runs, and serve it on this machine until Ctrl-C.

    Every figure is recomputed from the decisions. A run is left out if its report does not
    match its decisions. The page is served on 127.0.0.1 only.
    """
    if out is not None:
        write(results, out)
        typer.echo(f"open {out / 'index.html'}")
        return
    serve_pages(partial(write, results), port, "leaderboard", browser=not no_browser)


def write(results: str | None, out: Path) -> None:
    """Write the pages of the runs that ``--results`` names into a folder."""
    from hub_scripts.leaderboard.runs import find_runs
    from hub_scripts.leaderboard.site import write_site

    write_site(find_runs(results), out, note=partial(typer.echo, err=True))
