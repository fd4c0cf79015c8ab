"""``judgesense label``: people's labels, on a page in the browser."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from judgesense.cli import options as opt


def label(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|DIR",
            help="Verdicts (CSV, JSONL, Parquet), items with --answers, or the folder of a run.",
        ),
    ],
    verdict: Annotated[
        str | None,
        typer.Option(metavar="COL", help="The column of verdicts (default: by its name)."),
    ] = None,
    answers: opt.Answers = None,
    show: Annotated[
        str | None,
        typer.Option(
            metavar="COL,...",
            help="Columns to show (default: all but verdicts, reasons and labels).",
        ),
    ] = None,
    rubric: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What the labels mean, shown beside every item (default: a run's first wording).",
        ),
    ] = None,
    judge: opt.RunJudge = None,
    task: opt.RunTask = None,
    limit: opt.Limit = None,
    port: opt.Port = 0,
    no_browser: opt.NoBrowser = False,
    seed: opt.Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="File for the labels (default: FILE.labels.csv)."
        ),
    ] = None,
) -> None:
    """Label items on a local page that hides verdicts and shows the most informative items first.

    Several people can label the same file: each enters a name and sees the same items. Each label
    is saved before the next item appears. Stop with Ctrl-C; rerun the same command to resume.
    """
    from filelock import FileLock, Timeout

    from judgesense.checking.label_server import LabelServer
    from judgesense.checking.labelling import open_labelling
    from judgesense.errors import JudgeSenseError
    from judgesense.files.disk import require_writable

    labelling, columns = open_labelling(
        source,
        out,
        verdict=verdict,
        answers=opt.names(answers),
        show=opt.names(show) or (),
        judge=judge,
        task=task,
        limit=limit,
        seed=seed,
        rubric=rubric,
    )
    file = labelling.out
    require_writable(file.parent)
    try:
        lock = FileLock(file.with_name(f".{file.name}.lock")).acquire(timeout=0)
    except Timeout as error:
        raise JudgeSenseError(
            f"another judgesense label is writing to {file}; use its page"
        ) from error
    with lock:
        server = LabelServer(labelling, port)
        opt.note(
            f"{labelling.total} items of {source}. Labels: {', '.join(labelling.labels)}. Saved in "
            f"{file}\nOpen {server.address}   (stop with Ctrl-C; rerun the command to resume)"
        )
        screens = any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
        has_screen = screens or sys.platform in ("win32", "darwin")
        if has_screen and sys.stderr.isatty() and not no_browser:
            import webbrowser

            webbrowser.open(server.address)
        server.serve()
    counts = labelling.counts()
    opt.echo("; ".join(f"{name}: {n} of {labelling.total}" for name, n in counts.items()))
    if any(counts.values()):
        named = ",".join(f"{name}={yours}" for name, yours in columns.items() if name != yours)
        given = {
            "--columns": named,
            "--judge": judge,
            "--task": task,
            "--positive": labelling.positive,
        }
        more = [part for flag, value in given.items() if value for part in (flag, value)]
        if source.is_file() and "verdict" in columns:
            check = ["judgesense", "check", str(source), "--verdict", columns["verdict"]]
            opt.echo(f"Next: {shlex.join([*check, '--human', str(file)])}")
        if source.is_dir() or "verdict" in columns:
            command = ["judgesense", "estimate", str(source), "--labels", str(file), *more]
            opt.echo(f"Or:   {shlex.join(command)}")
