"""``judgesense judge``: verdicts on items."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgesense.cli import options as opt

if TYPE_CHECKING:
    from judgesense.pipeline.verdicts import Judged


def judge(
    items: Annotated[
        str,
        typer.Argument(
            metavar="ITEMS",
            help="JSONL, CSV or Parquet; or a Hub set or its folder, ID[:CONFIG[:SPLIT]].",
        ),
    ],
    out: Annotated[
        Path, opt.run_option("FILE", "Verdicts: .parquet, .jsonl or .csv.", "--out", "-o")
    ],
    judge: Annotated[
        str,
        opt.judge_option(
            "JUDGE", "A stabilised judge (FILE.yaml), or any judge with --task.", "--judge", "-j"
        ),
    ],
    engine: opt.Engine = None,
    base_url: opt.BaseUrl = None,
    model: opt.Model = None,
    max_cost: opt.MaxCost = None,
    settings: opt.Settings = None,
    task: Annotated[
        str | None, opt.data_option("NAME", "Task, for a judge that is not stabilised.")
    ] = None,
    wording: Annotated[
        str | None,
        opt.data_option(
            "ID", "Template to ask, for a judge that is not stabilised.", default="the task's first"
        ),
    ] = None,
    templates: opt.Templates = None,
    columns: Annotated[
        str | None, opt.data_option("OURS=YOURS,...", "Your column names, such as query=question.")
    ] = None,
    scoring: Annotated[
        opt.OneScoring,
        opt.run_option(
            None,
            "Read text or option probabilities, for a judge that is not stabilised.",
            default="options",
        ),
    ] = None,
    format: opt.Format = "text",
) -> None:
    """Judge items and write one verdict per item.

    Each row has the verdict, its probability and margin, ask_person (whether a person should decide
    this one) and the cost. Interrupt it at any time; rerun the same command to resume. FILE.run
    keeps the decision log.

    Exit codes: 0 done; 1 some items have no answer; 2 bad usage or input.
    """
    from judgesense.pipeline.execution import failed_prompts
    from judgesense.pipeline.verdicts import judge_items

    found = judge_items(
        items,
        judge,
        out,
        task=task,
        wording=wording,
        templates=templates,
        scoring=scoring,
        columns=opt.pairs(columns, "--columns"),
        note=opt.note,
        **opt.judge_options(
            settings, engine=engine, base_url=base_url, model=model, max_cost=max_cost
        ),
    )
    opt.output(format, found.to_dict, lambda: _print(found))
    if failed := failed_prompts(found.run_folder):
        opt.note(f"{len(failed)} items have no answer: see the column error")
        raise typer.Exit(1)


def _print(found: Judged) -> None:
    typer.echo(f"{found.out}: {found.decided} verdicts on {found.items} items")
    if found.ask_person is not None:
        typer.echo(f"  ask a person: {found.ask_person}")
    else:
        typer.echo("  no threshold holds an error: ask_person is true for ties alone")
    if found.cost_usd is not None:
        typer.echo(f"  cost: ${found.cost_usd:.4f}")
