"""``judgesense leaderboard``: the site of the Space, served on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError


def leaderboard(
    results: Annotated[
        str | None,
        opt.option(
            "DIR|REPO", "Folder of runs or results dataset; the embedded results by default."
        ),
    ] = None,
    port: Annotated[int, opt.option("N", "Port on 127.0.0.1.", min=1, max=65535)] = 7860,
    accept: Annotated[
        bool, opt.option(None, "Let the submit page write to --results DIR.", "--accept")
    ] = False,
    no_browser: Annotated[bool, opt.option(None, "Do not open a browser.", "--no-browser")] = False,
) -> None:
    """Serve the leaderboard on this machine: judges ranked by JSS, and a page to submit runs.

    Listens on 127.0.0.1 only and loads nothing from the network. Stop it with Ctrl-C.
    """
    from hub_scripts.leaderboard.sources import open_results

    if accept and results is None:
        raise JudgeSenseError("--accept needs a folder to write to: add --results DIR")
    source = open_results(results, accept=accept)
    _check_port(port)
    from hub_scripts.leaderboard.site import build, launch

    demo = build(source)
    typer.echo(f"leaderboard at http://127.0.0.1:{port} (Ctrl-C stops it)")
    launch(demo, server_name="127.0.0.1", server_port=port, inbrowser=not no_browser, quiet=True)


def _check_port(port: int) -> None:
    import socket

    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise JudgeSenseError(
                f"cannot use port {port} ({error.strerror}); choose another --port"
            ) from error
