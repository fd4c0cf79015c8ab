"""The command line: one Typer app, one file per group of commands.

A command imports what it needs when it runs, so that ``--help`` is quick.
"""

from __future__ import annotations

import os
import sys

import typer

from judgesense.cli import check as check_command
from judgesense.cli import dataset as dataset_commands
from judgesense.cli import estimate as estimate_command
from judgesense.cli import importing as import_command
from judgesense.cli import judge as judge_command
from judgesense.cli import judges as judge_commands
from judgesense.cli import leaderboard as leaderboard_command
from judgesense.cli import match as match_command
from judgesense.cli import monitor as monitor_command
from judgesense.cli import plan as plan_command
from judgesense.cli import publish as publish_commands
from judgesense.cli import report as report_commands
from judgesense.cli import respond as respond_command
from judgesense.cli import robustness as robustness_commands
from judgesense.cli import run as run_command
from judgesense.cli import stabilise as stabilise_command
from judgesense.cli import study as study_commands
from judgesense.cli.options import App
from judgesense.errors import JudgeSenseError
from judgesense.version import __version__

app = App("Measure how much an LLM judge's verdicts depend on how the question is worded.")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"judgesense {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_version, is_eager=True
    ),
) -> None:
    """Measure how much an LLM judge's verdicts depend on how the question is worded."""


for _name, _command in (
    ("run", run_command.run),
    ("check", check_command.check),
    ("stabilise", stabilise_command.stabilise),
    ("judge", judge_command.judge),
    ("estimate", estimate_command.estimate),
    ("report", report_commands.report),
    ("compare", report_commands.compare),
    ("monitor", monitor_command.monitor),
    ("plan", plan_command.plan),
    ("import", import_command.import_log),
    ("respond", respond_command.respond),
    ("match", match_command.match),
    ("leaderboard", leaderboard_command.leaderboard),
):
    app.command(_name)(_command)
for _name, _group in (
    ("dataset", dataset_commands.app),
    ("judges", judge_commands.app),
    ("study", study_commands.app),
    ("publish", publish_commands.app),
):
    app.add_typer(_group, name=_name)
robustness_commands.add_to(study_commands.app)


def main() -> None:
    """Run the command line; bad input prints one line on stderr and exits with 2."""
    try:
        app(prog_name="judgesense")
    except JudgeSenseError as error:
        typer.echo(f"judgesense: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe; Python would raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        # A file that went away, a full disk: the user's to settle. Others are bugs.
        if error.filename is None or error.strerror is None:
            raise
        typer.echo(
            f"judgesense: cannot read or write {error.filename}: {error.strerror}; settle that and "
            "rerun the command",
            err=True,
        )
        sys.exit(2)
