"""``judgesense check``: a rubric of one's own, fit for a CI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from judgesense.cli.run import (
    JUDGE,
    BaseUrl,
    Engine,
    MaxCost,
    Model,
    Price,
    SystemPrompt,
    names,
    price_of,
)
from judgesense.errors import JudgeSenseError
from judgesense.trust.thresholds import STEADY_JSS

WORDINGS = "The wordings"


def check(
    rubric: Annotated[
        Path, typer.Argument(metavar="RUBRIC.txt", help="The rubric; {column} shows a column.")
    ],
    data: Annotated[Path, typer.Option(help="What is judged: JSONL, CSV or Parquet.")],
    judge: Annotated[
        str, typer.Option("--judge", "-j", metavar="NAME|HUB_ID|PATH", help="The judge.")
    ],
    answers: Annotated[
        str | None,
        typer.Option(help="The decisions, with commas between. Default: the data's gold labels."),
    ] = None,
    options: Annotated[
        str | None,
        typer.Option(
            metavar="A=COLUMN,B=COLUMN",
            help="For a choice between two: the column shown under each answer.",
        ),
    ] = None,
    threshold: Annotated[
        float, typer.Option(help="Exit with 1 if JSS is below this (0 to 1).")
    ] = STEADY_JSS,
    wordings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Wordings of your own: text with --- between, or a template file. Default: "
            "RUBRIC.wordings.yaml beside the rubric, which is written if it is not there.",
            rich_help_panel=WORDINGS,
        ),
    ] = None,
    paraphrases: Annotated[
        int | None, typer.Option(help="So many are proposed (4).", rich_help_panel=WORDINGS)
    ] = None,
    paraphraser: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Who proposes them. Default: the judge.", rich_help_panel=WORDINGS
        ),
    ] = None,
    scoring: Annotated[
        str, typer.Option(help="generate or options.", rich_help_panel=JUDGE)
    ] = "generate",
    repeats: Annotated[
        int, typer.Option(help="Ask each prompt so often: the noise floor.", rich_help_panel=JUDGE)
    ] = 2,
    engine: Engine = None,
    system_prompt: SystemPrompt = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="Cap on generated tokens (20).", rich_help_panel=JUDGE)
    ] = None,
    base_url: BaseUrl = None,
    model: Model = None,
    price: Price = None,
    max_cost: MaxCost = None,
    limit: Annotated[int | None, typer.Option(help="The first so many items.")] = None,
    seed: Annotated[int, typer.Option(help="Fixes what is drawn at random.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The folder. Default: one for this question, in runs/."),
    ] = None,
) -> None:
    """Does rewording your rubric change the verdicts? Exit code 1 if it does too often.

    Paraphrases the rubric (or takes your wordings), judges the data under each, and sets JSS
    against the noise floor; shows flipped examples, whether the ranking of your systems survives,
    which wording to use, and the cost. An unchanged check given again is answered at once.
    """
    from judgesense.cli.study import show
    from judgesense.studies.check import check as run_check

    given = {
        "engine": engine or ("api" if base_url else None),
        "system_prompt": system_prompt,
        "max_tokens": max_tokens,
        "base_url": base_url,
        "model": model,
        "price": price_of(price),
        "max_cost": max_cost,
    }
    judge_options: dict[str, Any] = {
        key: value for key, value in given.items() if value is not None
    }
    found = run_check(
        rubric,
        data,
        judge,
        wordings=wordings,
        paraphraser=paraphraser,
        n_paraphrases=paraphrases,
        answers=names(answers),
        options=_columns(options),
        threshold=threshold,
        scoring=scoring,
        repeats=repeats,
        seed=seed,
        limit=limit,
        out=out,
        **judge_options,
    )
    show(found.result)
    typer.echo(f"\n{found.out}/check/study.md has all of this, {found.out}/report.html more.")
    typer.echo(found.verdict)
    if not found.passed:
        raise typer.Exit(1)


def _columns(text: str | None) -> dict[str, str] | None:
    pairs = [pair.split("=") for pair in names(text) or ()]
    if any(len(pair) != 2 for pair in pairs):
        raise JudgeSenseError(f"--options must be ANSWER=COLUMN,ANSWER=COLUMN, got {text!r}")
    return {answer.strip(): column.strip() for answer, column in pairs} or None
