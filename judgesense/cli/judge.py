"""``judgesense judge`` and ``stabilise``: verdicts on items, and a better way to ask for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgesense.cli import options as opt
from judgesense.text import plural_s

if TYPE_CHECKING:
    from judgesense.pipeline.verdicts import JudgingSummary
    from local_judges.improved_judge import ImprovedJudge


def judge(
    items: Annotated[Path, typer.Argument(metavar="ITEMS", help="JSONL, CSV or Parquet.")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="Verdicts: .parquet, .jsonl or .csv."),
    ],
    judge: Annotated[
        str,
        typer.Option(
            "--judge",
            "-j",
            metavar="JUDGE",
            help="An improved judge (FILE.yaml) or, with --task, any judge.",
        ),
    ],
    max_cost: opt.MaxCost = None,
    settings: opt.Settings = None,
    allow_host: opt.AllowHosts = None,
    task: opt.RunTask = None,
    templates: opt.Templates = None,
    columns: opt.Columns = None,
    scoring: opt.Scoring = None,
    retry_failed: opt.RetryFailed = 3,
    format: opt.Format = "text",
) -> None:
    """Judge items and write one verdict per item.

    Each row has the verdict, its probability and margin, ask_person (whether a person should decide
    instead) and the cost. FILE.run contains the decision log. Interrupt the command at any time;
    rerun it to resume.

    Exit codes: 0 done; 1 some items have no answer; 2 bad usage or input.
    """
    from judgesense.pipeline.execution import failed_prompts, how_to_retry
    from judgesense.pipeline.verdicts import judge_items

    found = judge_items(
        items,
        judge,
        out,
        task=task,
        templates=templates,
        scoring=scoring,
        columns=opt.pairs(columns, "--columns"),
        retry_failed=retry_failed,
        note=opt.note,
        **opt.judge_options(settings, max_cost=max_cost, allow_host=allow_host),
    )
    opt.output(format, found.to_dict, lambda: _text(found))
    if failed := failed_prompts(found.run_folder):
        again = how_to_retry(found.run_folder, retry_failed)
        opt.note_failures(failed, f"items have no answer: see the column error; {again}")
        raise typer.Exit(1)


def _text(found: JudgingSummary) -> str:
    asks = "no threshold limits the errors, so ask_person is true only for ties"
    if found.ask_person is not None:
        asks = f"ask a person: {found.ask_person}"
    cost = "" if found.cost_usd is None else f"\n  cost: ${found.cost_usd:.4f}"
    return f"{found.out}: {found.decided} verdicts on {found.items} items\n  {asks}{cost}"


def stabilise(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")],
    out: opt.OutFile,
    judge: opt.RunJudge = None,
    task: opt.RunTask = None,
    scoring: opt.RunScoring = None,
    remedy: Annotated[
        str | None, typer.Option(metavar="NAME", help="A remedy of the report.")
    ] = None,
    max_error: opt.MaxError = 0.05,
    templates: opt.Templates = None,
    format: opt.Format = "text",
) -> None:
    """Write the judge with the cheapest remedy that passes the trust card to a file.

    Use the file as --judge FILE.yaml in run, check, compare, study and judge.

    Exit codes: 0 done; 2 bad usage or input, or no remedy passes.
    """
    from judgesense.ask.from_run import stabilise as made

    found = made(
        run,
        judge=judge,
        task=task,
        out=out,
        remedy=remedy,
        scoring=scoring,
        max_error=max_error,
        templates=templates,
    )
    opt.output(
        format,
        lambda: {
            "out": str(out),
            "judge": found.judges[0]["name"],
            "task": found.entry.task.name,
            "remedy": found.recipe.name,
            "expected": found.expected,
            "ask_person": found.ask_person,
            "card": found.card,
        },
        lambda: _improved_text(found, out),
    )


def _improved_text(found: ImprovedJudge, out: Path) -> str:
    from judgesense.ask.improved import promise
    from judgesense.text import brackets, percent, quoted

    expected = found.expected
    prompts, cost = expected["prompts_per_item"], expected["usd_per_item"]
    lines = [
        f"{out} contains {found.judges[0]['name']} on {found.entry.task.name} with the remedy "
        f"{found.recipe.name!r}.",
        f"  It needs {prompts} prompt{plural_s(prompts)} per item"
        f"{'' if cost is None else f', about ${cost:.4g}'}.",
    ]
    if expected["accuracy"] is not None:
        ends = brackets(expected["ci_low"], expected["ci_high"], percent)
        lines.append(
            f"  It is right on {percent(expected['accuracy'])} {ends} of {expected['items']} items "
            "(cross-fitted)."
        )
    for name, card in found.card.items():
        why = f" because of {quoted(card['because'])}" if card["because"] else ""
        lead = name.replace("as asked", "without the remedy").capitalize()
        lines.append(f"  {lead}, the trust value is {card['trust']!r}{why}.")
    lines += [f"  {promise(found.ask_person)}", ""]
    return "\n".join([*lines, f"Next: judgesense judge ITEMS --judge {out} --out verdicts.parquet"])
