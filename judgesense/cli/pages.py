"""Pages that a command writes and serves on this machine until Ctrl-C."""

from __future__ import annotations

import tempfile
import webbrowser
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import typer

from judgesense.errors import JudgeSenseError


def serve_pages(write: Callable[[Path], object], port: int, name: str, *, browser: bool) -> None:
    """Let ``write`` fill a folder with pages, and serve it on 127.0.0.1.

    Raises JudgeSenseError for a port that is taken, before anything is written.
    """
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
