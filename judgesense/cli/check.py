"""``judgesense check``: a rubric of your own, for a CI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from judgesense.cli import options as opt
from judgesense.trust.thresholds import STEADY_JSS

_WORDINGS = "Wordings"


def check(
    rubric: Annotated[
        Path, typer.Argument(metavar="RUBRIC.txt", help="The rubric; {column} inserts a column.")
    ],
    data: Annotated[
        Path, opt.option("FILE", "Rows to judge: JSONL, CSV or Parquet.", panel=opt.DATA)
    ],
    judge: opt.Judge,
    answers: Annotated[
        str | None, opt.option("A,B", "The possible answers; the gold labels by default.")
    ] = None,
    options: Annotated[
        str | None,
        opt.option("A=COLUMN,B=COLUMN", "Pairwise rubrics: the column for each answer."),
    ] = None,
    threshold: Annotated[
        float, opt.option("JSS", "PASS above this JSS, FAIL below it (0 to 1).")
    ] = STEADY_JSS,
    confidence: Annotated[
        float, opt.option("LEVEL", "Level of the interval that must not include the threshold.")
    ] = 0.95,
    inconclusive: Annotated[
        Literal["pass", "fail"] | None,
        opt.option(None, "Count INCONCLUSIVE as PASS or FAIL (exit code 3 otherwise)."),
    ] = None,
    limit: opt.Limit = None,
    wordings: Annotated[
        Path | None,
        opt.option(
            "FILE",
            "Your wordings: a template file, or text separated by ---. By default "
            "RUBRIC.wordings.yaml beside the rubric, written if missing.",
            panel=_WORDINGS,
        ),
    ] = None,
    paraphrases: Annotated[
        int | None, opt.option("N", "Wordings to propose (4).", panel=_WORDINGS)
    ] = None,
    paraphraser: Annotated[
        str | None, opt.option("JUDGE", "Proposes wordings; the judge by default.", panel=_WORDINGS)
    ] = None,
    engine: opt.Engine = None,
    base_url: opt.BaseUrl = None,
    model: opt.Model = None,
    max_cost: opt.MaxCost = None,
    settings: opt.Settings = None,
    scoring: Annotated[
        Literal["generate", "options"],
        opt.option(None, "Read text or option probabilities.", panel=opt.RUN),
    ] = "generate",
    variants: opt.Variants = None,
    repeats: opt.Repeats = 2,
    seed: opt.Seed = 0,
    out: opt.SomeOut = None,
) -> None:
    """Does rewording your rubric change the verdicts?

    Paraphrases the rubric or takes your wordings, and judges the data under each. Prints PASS,
    FAIL or INCONCLUSIVE, why, and what to do next; then the figures, flipped examples, the ranking
    of your systems and the cost. Rerunning an unchanged check returns the saved result, by default
    from runs/.

    Exit codes: 0 PASS; 1 FAIL; 2 bad usage or input; 3 INCONCLUSIVE.
    """
    from dataclasses import replace

    from judgesense.cli.study import show
    from judgesense.studies.check import check as run_check
    from judgesense.text import sentence

    found = run_check(
        rubric,
        data,
        judge,
        wordings=wordings,
        paraphraser=paraphraser,
        n_paraphrases=paraphrases,
        answers=opt.names(answers),
        options=opt.pairs(options, "--options") or None,
        threshold=threshold,
        confidence=confidence,
        inconclusive=inconclusive,
        scoring=scoring,
        variants=opt.names(variants),
        repeats=repeats,
        seed=seed,
        limit=limit,
        out=out,
        **opt.judge_options(
            settings, engine=engine, base_url=base_url, model=model, max_cost=max_cost
        ),
    )
    typer.echo(f"{found.verdict}.")
    for text in found.result.findings[1:]:
        typer.echo(f"- {sentence(text)}")
    typer.echo("")
    show(replace(found.result, findings=[]))
    typer.echo(f"\n{found.out}/check/study.md has all of this, {found.out}/report.html more.")
    if found.exit_code:
        raise typer.Exit(found.exit_code)
