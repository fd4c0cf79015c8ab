"""``judgesense mcp``: checks for coding agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def mcp(
    root: Annotated[
        Path, typer.Argument(metavar="ROOT", help="The only folder that the agent can read.")
    ] = Path(),
) -> None:
    """Let a coding agent check verdicts: a read-only Model Context Protocol server.

    It speaks over standard input and output, and offers the tools files, reading, check, report and
    compare on what lies under ROOT. It writes nothing there and asks no judge.
    """
    from judgesense.cli.mcp_server import server

    server(root).run()
