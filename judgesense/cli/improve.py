"""``judgesense improve``: the best judge that a budget buys."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError

_OWN = ("task", "remedy", "templates")
"""Keys of ``--set`` that are not the judge's."""


def improve(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUBRIC.txt|TEMPLATES.yaml",
            help="A rubric with {column} placeholders, or a template file.",
        ),
    ] = None,
    out: opt.OutFile = Path("judge.yaml"),
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Labelled items: JSONL, CSV or Parquet.")
    ] = None,
    judge: opt.Judges = None,
    human: opt.Human = None,
    columns: opt.Roles = None,
    answers: opt.Answers = None,
    map: opt.Map = None,
    positive: opt.Positive = None,
    options: opt.Options = None,
    budget: Annotated[
        str,
        typer.Option(
            metavar="N|USD", help="The budget in prompts per item (20) or in money ($2 or 2usd)."
        ),
    ] = "20",
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Choose among the remedies measured in this run, without sending prompts.",
        ),
    ] = None,
    paraphraser: opt.Paraphraser = None,
    scoring: opt.Scoring = None,
    max_error: opt.MaxError = 0.05,
    attacks: opt.Attacks = None,
    limit: opt.Limit = None,
    seed: opt.Seed = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help=(
                "Set an option of the judge, or `task`. With --log, you can also set `remedy` and "
                "`templates`. Repeatable."
            ),
        ),
    ] = None,
    batch: opt.Batch = False,
    allow_host: opt.AllowHosts = None,
    open: opt.Open = False,
    dry_run: opt.DryRun = False,
    format: opt.Format = "text",
) -> None:
    """Within a budget, find the best way to prompt a judge, and write the improved judge to a file.

    It tries wordings, formats, orders, calibration, panels and several judges on half of the
    labelled items, and measures the best on the other half. Every command accepts the file as
    --judge FILE.yaml.

    Interrupt the command at any time; rerun it to resume, with a larger budget if you like.

    Exit codes: 0 done; 2 bad usage or input.
    """
    values = opt.judge_options(opt.with_batch(settings, batch), allow_host=allow_host)
    own = {key: values.pop(key) for key in _OWN if key in values}
    own["scoring"] = scoring or values.pop("scoring", None)
    if log is not None:
        from judgesense.cli.judge import stabilise

        opt.refuse(
            "does not go with --log: the run has the rubric and items",
            {
                "RUBRIC": source,
                "--data": data,
                "--paraphraser": paraphraser,
                "--human": human,
                "--columns": columns,
                "--answers": answers,
                "--map": map,
                "--positive": positive,
                "--options": options,
                "--attacks": attacks,
                "--limit": limit,
                "--open": open or None,
            },
        )
        if values:
            raise JudgeSenseError(f"--set {min(values)} does not go with --log: no prompt is sent")
        if judge and len(judge) > 1:
            raise JudgeSenseError("--log: name one judge of the run")
        stabilise(log, out, judge[0] if judge else None, max_error=max_error, format=format, **own)
        return
    opt.require("or name a run: --log DIR", {"RUBRIC": source, "--data": data, "--judge": judge})
    from judgesense.ask.improve import improved_by
    from judgesense.ask.plan import ImproveOptions, Plan
    from judgesense.ask.plan import dry_run as planned

    if asks_log := sorted(own.keys() & {"remedy", "templates"}):
        raise JudgeSenseError(f"--set {asks_log[0]} is for --log DIR, not for a rubric")
    given = locals() | {
        "human": opt.names(human),
        "columns": opt.roles(columns) or None,
        "answers": opt.names(answers),
        "map": opt.pairs(map, "--map") or None,
        "options": opt.pairs(options, "--options") or None,
        "note": opt.note,
    }
    asked = opt.options_of(ImproveOptions, given | own)
    assert data is not None
    plan = Plan.of(source, data, judge, asked, values)
    if dry_run:
        opt.echo("\n".join(planned(plan)))
        return
    found = improved_by(plan)
    worse = (found.written["gain_ci_high"] or 0) < 0
    lead = "keep your wording" if worse else "label more items, and rerun with another --out"
    lead = f"{lead}. To use the judge anyway: " if found.better is None else ""
    opt.output(
        format,
        found.to_dict,
        lambda: opt.echo(
            f"{found}\n\nNext: {lead}"
            f"{shlex.join(['judgesense', 'judge', str(data), '--judge', str(out)])} "
            "--out verdicts.parquet"
        ),
    )
    if open:
        from judgesense.reporting.html import REPORT_PAGE
        from judgesense.reporting.report import write_report

        write_report(found.run_folder)
        opt.open_page(found.run_folder / REPORT_PAGE, asked=True)
