"""``judgesense run``: judge a benchmark and report."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import typer

from judgesense.cli import options as opt


def run(
    judge: list[str],
    out: str,
    engine: Literal["transformers", "vllm", "api", "systemone", "ray"] | None = None,
    max_cost: float | None = None,
    settings: list[str] | None = None,
    dataset: str | None = None,
    tasks: str | None = None,
    templates: Path | None = None,
    items: Path | None = None,
    orders: Literal["AB", "BA", "AB,BA"] | None = None,
    variants: str | None = None,
    attacks: str | None = None,
    limit: opt.SomeCount = None,
    scoring: Literal["generate", "options", "both"] | None = None,
    repeats: opt.Count = 1,
    seed: int = 0,
    dry_run: bool = False,
    verbose: bool = False,
    format: opt.Format = "text",
) -> None:
    """Judge a benchmark and report how much the verdicts depend on the wording.

    Interrupt a run at any time; rerun the same command to resume.

    Exit codes: 0 done; 1 some prompts have no answer; 2 bad usage or input.

    Options:
        --items FILE: Your items: JSONL, CSV or Parquet.
        --out, -o DIR: Output folder.
        --engine: Backend that runs the model.
        --dataset REPO|PATH: A JudgeSense dataset (default: the embedded benchmark).
        --orders: The option orders (default: those of the data).
    """
    given = {key: value for key, value in locals().items() if key not in ("dry_run", "format")}
    from judgesense.log.invocation import invocation
    from judgesense.pipeline import Settings, execute, failed_prompts, prepare
    from judgesense.pipeline.data import data_reference
    from judgesense.pipeline.dry_run import describe
    from judgesense.pipeline.dry_run import dry_run as planned
    from judgesense.reporting.terminal import print_report

    data = data_reference(dataset, templates, items, opt.names(variants), attacks)
    terms = Settings.of(scoring, opt.names(tasks), opt.names(orders), repeats, seed, limit)
    options = opt.judge_options(settings, engine=engine, max_cost=max_cost)
    judges, cluster = prepare(judge, terms, options)
    if dry_run:
        plan = planned(judges, data, terms)
        opt.output(format, lambda: plan, lambda: "\n".join(describe(plan)))
        return
    started = invocation("run", run, given)
    report = execute(judges, data, terms, out, opt.note, cluster, started=started)
    if os.environ.get("RANK", "0") != "0":
        return  # The first process of several reports.
    if format == "json":
        opt.print_json(report)
    else:
        print_report(report, out, verbose=verbose)
    if failed := failed_prompts(out):
        opt.note_failures(failed, f"prompts have no answer; {out}/run.json lists them")
        raise typer.Exit(1)
