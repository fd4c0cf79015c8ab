"""The command line: one Typer app, one file per group of commands.

A command imports what it needs when it runs, so that ``--help`` is quick.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any

import typer

from judgesense.cli import (
    check,
    compare,
    dataset,
    estimate,
    importing,
    improve,
    judge,
    judges,
    label,
    match,
    mcp,
    pages,
    publish,
    report,
    run,
    serve,
    study,
)
from judgesense.cli.options import UsageError, command, group
from judgesense.errors import JudgeSenseError
from judgesense.text import printable
from judgesense.version import __version__

app = group("Check, improve and use LLM judges: are they right, steady and hard to fool?")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"judgesense {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_version, is_eager=True
    ),
) -> None:
    """Check, improve and use LLM judges: are they right, steady and hard to fool?"""


for _function, _name in (
    (report.demo, "demo"),
    (check.check, "check"),
    (improve.improve, "improve"),
    (judge.judge, "judge"),
    (serve.serve, "serve"),
    (label.label, "label"),
    (estimate.estimate, "estimate"),
    (compare.compare, "compare"),
    (compare.monitor, "monitor"),
    (run.run, "run"),
    (report.report, "report"),
    (importing.import_log, "import"),
    (match.match, "match"),
    (judges.judges, "judges"),
    (publish.publish, "publish"),
    (pages.leaderboard, "leaderboard"),
    (pages.view, "view"),
    (mcp.mcp, "mcp"),
):
    command(app, _name)(_function)
command(app, "stabilise", hidden=True)(judge.stabilise)
app.add_typer(study.app, name="study")
app.add_typer(dataset.app, name="dataset")


class _Inert:
    """Standard output on which no text of a file or judge acts on the terminal; colours do."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        parts = _COLOUR.split(text) if self._stream.isatty() else [text]
        shown = [part if n % 2 else printable(part) for n, part in enumerate(parts)]
        self._stream.write("".join(shown))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")


def main() -> None:
    """Run the command line; bad input prints one line on stderr and exits with 2."""
    sys.stdout = _Inert(sys.stdout)
    try:
        code = app(prog_name="judgesense", standalone_mode=False)
    except JudgeSenseError as error:
        _fail(str(error))
    except UsageError as error:
        path = error.ctx.command_path if error.ctx else "judgesense"
        _fail(f"{' '.join(error.format_message().split()).rstrip('.')}; see {path} --help")
    except typer.Abort:
        sys.exit(130)
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe; Python would raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        # A file that went away, a full disk: for the user to correct. Others are bugs.
        if error.filename is None or error.strerror is None:
            raise
        _fail(f"cannot read or write {error.filename}: {error.strerror}")
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> None:
    typer.echo(f"judgesense: {printable(message)}", err=True)
    sys.exit(2)
