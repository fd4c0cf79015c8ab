"""``judgesense leaderboard``: the leaderboard's pages, written and served on this machine."""

from __future__ import annotations

import tempfile
import webbrowser
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any

import typer

from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError


def leaderboard(
    results: opt.Results = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Write the pages here instead of serving them."
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="N", min=1, max=65535, help="Port on 127.0.0.1.")
    ] = 7860,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open a browser.")
    ] = False,
) -> None:
    """Rank judges on a page built from runs, and serve it on this machine until Ctrl-C.

    Every figure is recomputed from the decisions. A run is left out if its report does not
    match its decisions. The page is served on 127.0.0.1 only.
    """
    if out is not None:
        write(results, out)
        typer.echo(f"open {out / 'index.html'}")
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            pages = partial(_Pages, directory=folder)
            server = ThreadingHTTPServer(("127.0.0.1", port), pages)
        except OSError as error:
            raise JudgeSenseError(
                f"cannot use port {port} ({error.strerror}); choose another --port"
            ) from error
        write(results, Path(folder))
        url = f"http://127.0.0.1:{port}"
        typer.echo(f"leaderboard at {url} (Ctrl-C stops it)")
        if not no_browser:
            webbrowser.open(url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("stopped")


def write(results: str | None, out: Path) -> None:
    """Write the pages of the runs that ``--results`` names into a folder."""
    from hub_scripts.leaderboard.runs import find_runs
    from hub_scripts.leaderboard.site import write_site

    write_site(find_runs(results), out, note=partial(typer.echo, err=True))


class _Pages(SimpleHTTPRequestHandler):
    """The files of a folder; no listings, no log, and no connection is held longer than a while."""

    timeout = 10

    def list_directory(self, path: Any) -> None:
        """Refuse a folder without an index.html."""
        self.send_error(404)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""
