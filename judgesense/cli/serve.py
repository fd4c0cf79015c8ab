"""``judgesense serve``: a judge at one address."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError


def serve(
    judge: Annotated[str, typer.Argument(metavar="JUDGE", help=f"{opt.ANY_JUDGE}.")],
    port: opt.Port = 8080,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on.")
    ] = "127.0.0.1",
    api_key_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The environment variable with the key that clients must send."
        ),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen on a public address without a key.")
    ] = False,
    settings: opt.Settings = None,
    allow_host: opt.AllowHosts = None,
) -> None:
    """Serve a judge over HTTP: /v1/chat/completions, /v1/judge and /v1/systemone.

    The file of an improved judge names its task. For any other judge, choose what /v1/judge asks
    with --set task=NAME, --set wording=ID and --set scoring=generate. To limit the queue to N
    messages, use --set places=N. The page /docs describes the requests. On Ctrl-C, the server
    answers the waiting requests and stops.
    """
    from judgesense.serve.server import serve as run

    key = os.environ.get(api_key_env, "").strip() if api_key_env else None
    if api_key_env and not key:
        raise JudgeSenseError(f"no key: set the environment variable {api_key_env}")
    run(
        judge,
        host=host,
        port=port,
        key=key,
        insecure=insecure,
        ready=lambda url: opt.note(f"{judge} at {url}/v1   ({url}/docs; Ctrl-C stops)"),
        **opt.judge_options(settings, allow_host=allow_host),
    )
