"""``judgesense run``: judge a benchmark and report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from judgesense.cli import options as opt

_NOT_ASKED = ("batch", "dry_run", "format", "retry_failed")


def run(
    judge: Annotated[
        list[str],
        typer.Option(
            "--judge",
            "-j",
            metavar="JUDGE",
            help=f"{opt.ANY_JUDGE}. Repeatable.",
        ),
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="DIR", help="Output folder.")],
    engine: Annotated[
        Literal["transformers", "vllm", "api", "systemone", "ray"] | None,
        typer.Option(help="Backend that runs the model."),
    ] = None,
    max_cost: opt.MaxCost = None,
    batch: opt.Batch = False,
    settings: opt.Settings = None,
    allow_host: opt.AllowHosts = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="REPO|PATH", help="A JudgeSense dataset (default: the embedded benchmark)."
        ),
    ] = None,
    tasks: opt.Tasks = None,
    templates: opt.Templates = None,
    items: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your items: JSONL, CSV or Parquet.")
    ] = None,
    orders: Annotated[
        Literal["AB", "BA", "AB,BA"] | None,
        typer.Option(help="The option orders (default: those of the data)."),
    ] = None,
    variants: opt.Variants = None,
    attacks: opt.Attacks = None,
    limit: opt.Limit = None,
    scoring: opt.AnyScoring = None,
    repeats: opt.Repeats = 1,
    seed: opt.Seed = 0,
    retry_failed: opt.RetryFailed = 3,
    dry_run: opt.DryRun = False,
    verbose: opt.Verbose = False,
    format: opt.Format = "text",
) -> None:
    """Judge a benchmark and report how much the verdicts depend on the wording.

    Interrupt a run at any time; rerun the same command to resume.

    Exit codes: 0 done; 1 some prompts have no answer; 2 bad usage or input.
    """
    settings = opt.with_batch(settings, batch)
    given = {key: value for key, value in locals().items() if key not in _NOT_ASKED}
    from judgesense.log.invocation import invocation
    from judgesense.pipeline import Settings, execute, failed_prompts, how_to_retry, prepare
    from judgesense.pipeline.data import data_reference
    from judgesense.pipeline.dry_run import describe
    from judgesense.pipeline.dry_run import dry_run as planned
    from judgesense.reporting.terminal import print_report

    data = data_reference(dataset, templates, items, opt.names(variants), attacks)
    chosen = opt.names(tasks), opt.names(orders)
    terms = Settings.of(scoring, *chosen, repeats, seed, limit, own=data.own)
    options = opt.judge_options(settings, engine=engine, max_cost=max_cost, allow_host=allow_host)
    judges, cluster = prepare(judge, terms, options, own=data.own)
    if dry_run:
        plan = planned(judges, data, terms)
        opt.output(format, lambda: plan, lambda: "\n".join(describe(plan)))
        return
    started = invocation("run", run, given)
    report = execute(
        judges, data, terms, out, opt.note, cluster, started=started, retries=retry_failed
    )
    if os.environ.get("RANK", "0") != "0":
        return  # The first process of several reports.
    if format == "json":
        opt.print_json(report.to_dict())
    else:
        print_report(report.contents, out, verbose=verbose)
    if failed := failed_prompts(out):
        again = how_to_retry(out, retry_failed)
        opt.note_failures(failed, f"prompts have no answer; {out}/run.json lists them; {again}")
        raise typer.Exit(1)
