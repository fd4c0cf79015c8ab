"""``judgesense check``: a rubric of your own, for a CI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from judgesense.cli.options import (
    BaseUrl,
    Engine,
    Judge,
    Limit,
    MaxCost,
    Model,
    Repeats,
    Seed,
    Settings,
    SomeOut,
    judge_options,
    names,
    pairs,
)

_WORDINGS = "Wordings"


def check(
    rubric: Annotated[
        Path, typer.Argument(metavar="RUBRIC.txt", help="The rubric; {column} inserts a column.")
    ],
    data: Annotated[Path, typer.Option(
        metavar="FILE", help="Rows to judge: JSONL, CSV or Parquet.", rich_help_panel="Data")],
    judge: Judge,
    answers: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="The possible answers; the gold labels by default."),
    ] = None,
    options: Annotated[
        str | None,
        typer.Option(
            metavar="A=COLUMN,B=COLUMN", help="For a choice between two, the column behind each."
        ),
    ] = None,
    threshold: Annotated[
        float, typer.Option(metavar="JSS", help="Fail below this JSS (0 to 1).")
    ] = 0.8,
    limit: Limit = None,
    wordings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Your wordings: a template file, or text separated by ---. By default "
            "RUBRIC.wordings.yaml beside the rubric, written if missing.",
            rich_help_panel=_WORDINGS,
        ),
    ] = None,
    paraphrases: Annotated[
        int | None,
        typer.Option(metavar="N", help="Wordings to propose (4).", rich_help_panel=_WORDINGS),
    ] = None,
    paraphraser: Annotated[
        str | None,
        typer.Option(
            metavar="JUDGE", help="Proposes wordings; the judge by default.",
            rich_help_panel=_WORDINGS,
        ),
    ] = None,
    engine: Engine = None,
    base_url: BaseUrl = None,
    model: Model = None,
    max_cost: MaxCost = None,
    settings: Settings = None,
    scoring: Annotated[
        Literal["generate", "options"],
        typer.Option(help="Read text or option probabilities.", rich_help_panel="Run"),
    ] = "generate",
    repeats: Repeats = 2,
    seed: Seed = 0,
    out: SomeOut = None,
) -> None:  # fmt: skip
    """Does rewording your rubric change the verdicts?

    Paraphrases the rubric or takes your wordings, judges the data under each, and compares JSS
    with the noise floor. Shows flipped examples, the ranking of your systems, the wording to use
    and the cost. An unchanged check is answered at once from its folder, by default in runs/.

    Exit codes: 0 passed; 1 failed; 2 bad usage or input.
    """
    from judgesense.cli.study import show
    from judgesense.studies.check import check as run_check

    found = run_check(
        rubric,
        data,
        judge,
        wordings=wordings,
        paraphraser=paraphraser,
        n_paraphrases=paraphrases,
        answers=names(answers),
        options=pairs(options, "--options") or None,
        threshold=threshold,
        scoring=scoring,
        repeats=repeats,
        seed=seed,
        limit=limit,
        out=out,
        **judge_options(settings, engine=engine, base_url=base_url, model=model, max_cost=max_cost),
    )
    show(found.result)
    typer.echo(f"\n{found.out}/check/study.md has all of this, {found.out}/report.html more.")
    typer.echo(found.verdict)
    if not found.passed:
        raise typer.Exit(1)
