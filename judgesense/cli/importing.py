"""``judgesense import``: another tool's log to a folder that report and compare read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from judgesense.cli import options as opt
from judgesense.importers import FORMATS

if TYPE_CHECKING:
    Format: TypeAlias = str
else:
    Format = Literal[tuple(FORMATS)]


def import_log(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="The log, or a folder of logs.")],
    format: Annotated[Format, typer.Option("--format", "-f", help="The tool that wrote the log.")],
    out: opt.Out,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TARGET=COLUMN,...",
            help=(
                "Map your columns to those of the decision log. TARGET=:TEXT sets a constant, "
                "{A}/{B} joins two columns, a dot reaches into nested values, and "
                "raw_decision=* reads one column per judge. Repeatable."
            ),
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="The possible decisions in order, such as YES,NO."),
    ] = None,
    pick: opt.Pick = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON, as --format json does in other commands.")
    ] = False,
) -> None:
    """Import another tool's log, so that report and compare can read it.

    Every row is kept. A row without a readable decision becomes UNCLEAR, REFUSED or ERROR and is
    counted. Error messages name the file, row and column.

    Exit codes: 0 done; 2 bad usage or input.
    """
    from judgesense.answers import parse
    from judgesense.importers.columns import parse_columns
    from judgesense.importers.log import import_log as imported

    record = imported(
        source,
        format,
        out,
        columns=parse_columns(columns or []),
        labels=opt.names(labels),
        pick=pick,
        parse=parse,
    )
    document = {"out": str(out), **record}
    opt.output("json" if json else "text", lambda: document, lambda: _show(record, out))


def _show(record: dict[str, Any], out: Path) -> None:
    for task, counts in record["counts"].items():
        labels = ", ".join(record["tasks"][task]["labels"])
        shown = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
        opt.echo(f"{task} ({labels}): {sum(counts.values())} decisions ({shown})")
        for text, number in record["not_labels"].get(task, {}).items():
            opt.echo(f"  read as UNCLEAR, {number} times: {text!r}")
    opt.echo(f"judges: {', '.join(judge['name'] for judge in record['judges'])}")
    if record["without_gold"]:
        opt.echo(f"{record['without_gold']} decisions have no gold label")
    opt.echo(f"Written to {out}; next: judgesense report {out}")
