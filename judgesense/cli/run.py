"""``judgesense run``: judge a benchmark and report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from judgesense.cli.options import (
    BaseUrl,
    DryRun,
    Engine,
    Items,
    Judges,
    Limit,
    MaxCost,
    Model,
    Repeats,
    Scoring,
    Seed,
    Settings,
    Tasks,
    Templates,
    judge_options,
    names,
    note,
)
from judgesense.errors import JudgeSenseError

_RUN = "Run"
_SHOWN = 20
"""Failed prompts that are listed."""


def run(
    judge: Judges,
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", metavar="DIR|URL", help="Output folder, or a URL such as s3://BUCKET/X.",
            rich_help_panel=_RUN,
        ),
    ],
    engine: Engine = None,
    base_url: BaseUrl = None,
    model: Model = None,
    max_cost: MaxCost = None,
    settings: Settings = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="REPO|PATH", help="JudgeSense dataset; the embedded benchmark by default.",
            rich_help_panel="Data",
        ),
    ] = None,
    tasks: Tasks = None,
    templates: Templates = None,
    items: Items = None,
    orders: Annotated[
        Literal["AB", "BA", "AB,BA"] | None,
        typer.Option(help="Option orders; those of the data by default.", rich_help_panel="Data"),
    ] = None,
    limit: Limit = None,
    scoring: Scoring = None,
    repeats: Repeats = 1,
    seed: Seed = 0,
    batch: Annotated[
        bool,
        typer.Option("--batch", help="Write OpenAI batch files and stop.", rich_help_panel=_RUN),
    ] = False,
    batch_in: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Read answers from batch output; repeatable.", rich_help_panel=_RUN
        ),
    ] = None,
    dry_run: DryRun = False,
) -> None:  # fmt: skip
    """Judge a benchmark and report how much the verdicts depend on the wording.

    Interrupt a run at any time; rerun the same command to resume.

    Exit codes: 0 done; 1 some prompts have no answer; 2 bad usage or input.
    """
    from judgesense.pipeline import execute, failed_prompts, prepare
    from judgesense.pipeline.batches import from_batches, write_batches
    from judgesense.pipeline.dry_run import describe
    from judgesense.reporting.terminal import print_report
    from local_judges.distributed.ranks import keeps_the_record

    if batch and batch_in:
        raise JudgeSenseError("give either --batch (write) or --batch-in (read)")
    asked = prepare(
        judge,
        dataset=dataset,
        templates=templates,
        items=items,
        tasks=names(tasks),
        scoring=scoring,
        orders=names(orders),
        repeats=repeats,
        seed=seed,
        limit=limit,
        **judge_options(settings, engine=engine, base_url=base_url, model=model, max_cost=max_cost),
    )
    if dry_run:
        for line in describe(asked):
            typer.echo(line)
        return
    if batch:
        for file in write_batches(asked, Path(out)):
            typer.echo(f"{file.path}: {file.requests:,} requests, {file.size:,} bytes")
        typer.echo(
            "\nUpload each file to the provider's batch service (endpoint /v1/chat/completions). "
            "Then rerun this command with\n--batch-in FILE instead of --batch, once per output "
            "and error file."
        )
        return
    if batch_in:
        asked = from_batches(asked, batch_in)
    report = execute(asked.judges, asked.data, asked.settings, out, note, asked.cluster)
    if not keeps_the_record():
        return
    print_report(report)
    typer.echo(f"\n{out}/report.html has the figures and the flipped examples.")
    if failed := failed_prompts(out):
        note(f"\n{len(failed)} prompts have no answer:")
        for line in failed[:_SHOWN]:
            note(f"  {line}")
        if len(failed) > _SHOWN:
            note(f"  … and {len(failed) - _SHOWN} more, in {out}/run.json")
        raise typer.Exit(1)
