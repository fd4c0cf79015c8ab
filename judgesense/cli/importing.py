"""``judgesense import``: foreign logs to a folder that report and compare read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def import_log(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="The log (or folder of logs).")],
    format: Annotated[
        str,
        typer.Option(
            "--format", "-f", help="table, lm-eval, inspect, openai-batch, llmbar or rag-eval."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write.")],
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TARGET=COLUMN,...",
            help="Where the decision log's columns come from; TARGET=:TEXT is a constant, dots "
            "reach into nested values. May be given repeatedly.",
        ),
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="The decision space, in order: YES,NO or 1,2,3,4,5.")
    ] = None,
    pick: Annotated[
        str | None, typer.Option(help="Of several filters (lm-eval) or scorers (Inspect), the one.")
    ] = None,
    custom_id: Annotated[
        str | None,
        typer.Option(
            help="The form of batch ids. Default: {task}|{item_id}|{template_id}|{order}."
        ),
    ] = None,
    encoding: Annotated[str, typer.Option(help="The text encoding of CSV and JSONL.")] = "utf-8",
) -> None:
    """Import another tool's log, for report and compare.

    Every row of the log is kept: what holds no readable decision is UNCLEAR, REFUSED or ERROR,
    and counted. Exit code 2: bad input, with file, row and column.
    """
    from judgesense import importers
    from local_judges.parsing import parse

    record = importers.import_log(
        source,
        format,
        out,
        columns=importers.parse_columns(columns or []),
        labels=None if labels is None else [label.strip() for label in labels.split(",")],
        pick=pick,
        custom_id=custom_id,
        encoding=encoding,
        parse=parse,
    )
    _show(record, out)


def _show(record: dict[str, Any], out: Path) -> None:
    for task, counts in record["counts"].items():
        labels = ", ".join(record["tasks"][task]["labels"])
        shown = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
        typer.echo(f"{task} ({labels}): {sum(counts.values())} decisions ({shown})")
        for text, number in record["not_labels"].get(task, {}).items():
            typer.echo(f"  read as UNCLEAR, {number} times: {text!r}")
    typer.echo(f"judges: {', '.join(judge['name'] for judge in record['judges'])}")
    if record["without_gold"]:
        typer.echo(f"{record['without_gold']} decisions have no gold label")
    for note in record["notes"]:
        typer.echo(note)
    typer.echo(f"Written to {out}; next: judgesense report {out}")
