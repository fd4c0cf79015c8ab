"""``judgesense stabilise``: the cheapest remedy that passes, as a judge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgesense.cli import options as opt

if TYPE_CHECKING:
    from local_judges.stabilised_file import Stabilised


def stabilise(
    run: opt.RunFolder,
    out: Annotated[Path, opt.run_option("FILE.yaml", "The judge to write.", "--out", "-o")],
    judge: opt.RunJudge = None,
    task: Annotated[str | None, opt.data_option("NAME", "A task of the run.")] = None,
    scoring: Annotated[
        opt.OneScoring, opt.run_option(None, "Which scoring of a run with both.", default="options")
    ] = None,
    remedy: Annotated[
        str | None,
        opt.run_option(
            "NAME",
            "A remedy of the report, such as 'both orders'; by default the cheapest that passes.",
        ),
    ] = None,
    max_error: Annotated[
        float,
        opt.run_option("SHARE", "Share of wrong verdicts that the ask_person threshold allows."),
    ] = 0.05,
    templates: Annotated[
        Path | None,
        opt.data_option("FILE", "Texts of the wordings, if the run does not have them."),
    ] = None,
    format: opt.Format = "text",
) -> None:
    """Write the judge with the cheapest remedy that passes the trust card to a file.

    Use the file as --judge FILE.yaml in run, check, compare, study and judge.

    Exit codes: 0 done; 2 bad usage or input, or no remedy passes.
    """
    from judgesense.pipeline.stabilise import stabilise as made

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
            "out": str(out), "judge": found.judge["name"], "task": found.entry.task.name,
            "remedy": found.rule.remedy, "expected": found.expected,
            "ask_person": found.ask_person, "card": found.card,
        },
        lambda: _print(found, out, max_error),
    )  # fmt: skip


def _print(found: Stabilised, out: Path, max_error: float) -> None:
    from judgesense.text import number, percent, s

    expected, ask = found.expected, found.ask_person
    prompts = expected["prompts_per_item"]
    typer.echo(f"{out}: {found.judge['name']} on {found.entry.task.name}, {found.rule.remedy}")
    cost = expected["usd_per_item"]
    typer.echo(
        f"  cost: {prompts} prompt{s(prompts)} per item"
        + ("" if cost is None else f", about ${cost:.4g}")
    )
    if expected["accuracy"] is not None:
        ends = (
            ""
            if expected["ci_low"] is None
            else f" [{percent(expected['ci_low'])}, {percent(expected['ci_high'])}]"
        )
        typer.echo(
            f"  right on {percent(expected['accuracy'])}{ends} of {expected['items']} items, "
            "cross-fitted"
        )
    for name, card in found.card.items():
        why = f" ({', '.join(card['because'])})" if card["because"] else ""
        typer.echo(f"  trust {name}: {card['trust']}{why}")
    if ask.get("threshold") is not None:
        where = (
            f"below a margin of {number(ask['threshold'])}" if ask["threshold"] else "about ties"
        )
        typer.echo(
            f"  asks a person {where}: answers "
            f"{percent(ask['answered'])} of items, wrong on at most {percent(ask['error_bound'])} "
            "of them with 95% confidence"
        )
    else:
        needed = ask.get("needed")
        more = f"; it takes at least {needed} verdicts with gold labels" if needed else ""
        typer.echo(
            f"  no margin keeps wrong verdicts to {percent(max_error)} with 95% confidence, so "
            f"ask_person stays empty{more}"
        )
    typer.echo(f"\nNext: judgesense judge ITEMS --judge {out} --out verdicts.parquet")
