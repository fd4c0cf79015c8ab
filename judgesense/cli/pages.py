"""``judgesense view`` and ``leaderboard``: pages, written or served here until Ctrl-C."""

from __future__ import annotations

import tempfile
import webbrowser
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any

import typer

from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError


def view(
    root: Annotated[
        Path, typer.Argument(metavar="DIR", help="The folder under which runs and checks lie.")
    ] = Path("runs"),
    out: opt.MaybePages = None,
    port: opt.Port = 7861,
    no_browser: opt.NoBrowser = False,
) -> None:
    """See all runs and checks under a folder: by judge and task, over time, two side by side.

    Two runs of a judge on a task lead to a page of every verdict that changed between them. The
    pages are served on 127.0.0.1 until Ctrl-C.
    """
    from judgesense.reporting.overview import write_overview

    def write(folder: Path) -> None:
        n_runs, _ = write_overview(root, folder, note=opt.note)
        opt.echo(f"{n_runs} runs: the reports under {root}")

    _show(write, "runs", out, port, browser=not no_browser)


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
    write = partial(write_leaderboard, results)
    _show(write, "leaderboard", out, port, browser=not no_browser)


def write_leaderboard(results: str | None, out: Path) -> None:
    """Write the pages of the runs that ``--results`` names into a folder."""
    from hub_scripts.leaderboard.runs import find_runs
    from hub_scripts.leaderboard.site import write_site

    write_site(find_runs(results), out, note=partial(typer.echo, err=True))


def _show(
    write: Callable[[Path], object], name: str, out: Path | None, port: int, *, browser: bool
) -> None:
    """Let ``write`` fill the folder ``out`` with pages; without one, serve them on 127.0.0.1.

    Raises JudgeSenseError for a port that is taken, before anything is written.
    """
    if out is not None:
        write(out)
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
        write(Path(folder))
        url = f"http://127.0.0.1:{server.server_port}"
        typer.echo(f"{name} at {url} (Ctrl-C stops it)")
        if browser:
            webbrowser.open(url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("stopped")


class _Pages(SimpleHTTPRequestHandler):
    """The files of a folder; no listings, no log, and no connection is held longer than a while.

    A request has to name this machine: a page of another name may have been led here.
    """

    timeout = 10

    def parse_request(self) -> bool:
        """Refuse a request to another host."""
        if not super().parse_request():
            return False
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        if host not in ("127.0.0.1", "localhost"):
            self.send_error(404)
            return False
        return True

    def end_headers(self) -> None:
        """Let no other page show this one in a frame."""
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def list_directory(self, path: Any) -> None:
        """Refuse a folder without an index.html."""
        self.send_error(404)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""
