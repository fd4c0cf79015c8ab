"""``judgesense study``: paraphrase robustness, its measures on a log, its reckoner and its kit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgesense.cli.study import Items, Mirror, Out, Quick, Seed, finish

_OF_LOGS = ("--out", "--log", "--by", "--tolerance", "--panel")
"""What --log heeds."""

Named = Annotated[
    list[str] | None,
    typer.Option("--attribute", metavar="NAME", help="An attribute, e.g. clarity; give several."),
]
Data = Annotated[
    list[str] | None,
    typer.Option(metavar="TASK=SET|FILE", help="Where a task's texts and human scores come from."),
]
Revisions = Annotated[
    list[str] | None,
    typer.Option("--revision", metavar="SET=COMMIT", help="A Hub set's commit; give several."),
]


def paraphrase_robustness(
    ctx: typer.Context,
    out: Out,
    judge: Annotated[
        list[str] | None,
        typer.Option("--judge", "-j", metavar="NAME|HUB_ID|PATH", help="A judge; give three."),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            help="dialogue, question-generation, summarisation or essays; all by default."
        ),
    ] = None,
    attribute: Named = None,
    data: Data = None,
    items: Items = None,
    paraphrases: Annotated[
        int | None, typer.Option(help="How many of the ten paraphrases.")
    ] = None,
    max_words: Annotated[int | None, typer.Option(help="Leave out texts with more words.")] = None,
    scoring: Annotated[str, typer.Option(help="options or generate.")] = "options",
    panel: Annotated[bool, typer.Option(help="Measure panels of the judges (three or more).")] = (
        True
    ),
    fuser: Annotated[
        str | None, typer.Option(metavar="JUDGE", help="The judge that fuses the panel's ratings.")
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="τ: how far from the human mean is still right.")
    ] = 0.5,
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Measure the log of an import or a run instead of judging."
        ),
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            help="With --log, sets of items: task, or set (item ids to their last slash)."
        ),
    ] = "task",
    mirror: Mirror = None,
    revision: Revisions = None,
    seed: Seed = 0,
    quick: Quick = False,
) -> None:
    """Score texts on 12 attributes under ten paraphrases, against human scores."""
    from judgesense.errors import JudgeSenseError
    from judgesense.studies import paraphrase_robustness as study

    given = _given(ctx)
    if log is not None:
        from judgesense.studies.paraphrase_robustness.logs import measure_log

        if strange := [option for option in given if option not in _OF_LOGS]:
            raise JudgeSenseError(
                f"--log measures what was judged already: leave out {', '.join(strange)}, or leave "
                "out --log"
            )
        finish(measure_log(log, by=by, tolerance=tolerance, panel=panel), out)
        return
    if "--by" in given:
        raise JudgeSenseError("--by takes the sets of an existing log apart: give it with --log")
    if not judge:
        raise JudgeSenseError("name judges with --judge, or an existing log with --log")
    result = study.paraphrase_robustness(
        judge,
        out,
        tasks=task,
        attributes=attribute,
        data=_pairs(data, "--data"),
        limit=items,
        paraphrases=paraphrases,
        max_words=max_words,
        scoring=scoring,
        panel=panel,
        fuser=fuser,
        tolerance=tolerance,
        mirror=mirror,
        revisions=_pairs(revision, "--revision"),
        seed=seed,
        quick=quick,
    )
    finish(result, out)


def reckon(
    study: Annotated[
        Path, typer.Argument(metavar="DIR", help="A finished study of paraphrase robustness.")
    ],
    attribute: Annotated[str, typer.Argument(metavar="ATTRIBUTE", help="E.g. clarity.")],
    budget: Annotated[
        float | None, typer.Option(metavar="USD", help="US dollars for 1,000 items.")
    ] = None,
    token_price: Annotated[
        float | None,
        typer.Option(metavar="USD", help="For a million tokens, where no cost is recorded."),
    ] = None,
) -> None:
    """Say what to use for an attribute within a budget, and what it was measured to do."""
    from judgesense.studies.paraphrase_robustness import recommendation

    typer.echo(recommendation.reckon(study, attribute, budget, token_price).text())


def rater_kit(
    out: Out,
    read: Annotated[
        bool, typer.Option("--read", help="Read the raters' filled-in files back and measure.")
    ] = False,
    attribute: Named = None,
    data: Data = None,
    items: Annotated[int, typer.Option(help="Texts an attribute.")] = 6,
    wordings: Annotated[int, typer.Option(help="Wordings of each instruction.")] = 5,
    raters: Annotated[int, typer.Option(help="How many files to write.")] = 3,
    mirror: Mirror = None,
    revision: Revisions = None,
    seed: Seed = 0,
) -> None:
    """Let people rate the same texts under several wordings: CSV files out, CSV files in."""
    from judgesense.studies.paraphrase_robustness.rater_kit import read_kit, write_kit

    if read:
        finish(read_kit(out), out)
        return
    files = write_kit(
        out,
        attributes=attribute,
        data=_pairs(data, "--data"),
        limit=items,
        wordings=wordings,
        raters=raters,
        mirror=mirror,
        revisions=_pairs(revision, "--revision"),
        seed=seed,
    )
    typer.echo(
        f"{len(files)} files in {out}: give each rater one of rater-*.csv and instructions.txt; "
        f"put the filled-in files back, then: judgesense study rater-kit --out {out} --read"
    )


def _given(ctx: typer.Context) -> list[str]:
    """The options that stand on the command line, by their first name."""
    found = []
    for option in ctx.command.params:
        source = ctx.get_parameter_source(option.name or "")
        if source is not None and source.name == "COMMANDLINE":
            found.append(option.opts[0])
    return found


def _pairs(given: list[str] | None, option: str) -> dict[str, str]:
    from judgesense.errors import JudgeSenseError

    pairs = {}
    for text in given or ():
        key, found, value = text.partition("=")
        if not (key and found and value):
            raise JudgeSenseError(f"{option} {text}: give NAME=VALUE")
        pairs[key] = value
    return pairs
