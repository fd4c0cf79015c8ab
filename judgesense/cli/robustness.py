"""``judgesense study``: paraphrase robustness, and its kit for raters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from judgesense.cli import options as opt
from judgesense.cli.study import finish
from judgesense.errors import JudgeSenseError

_OF_LOGS = ("--out", "--log", "--by", "--tolerance", "--panel", "--format")
"""The options that --log uses."""

_OF_LANGUAGE = ("--out", "--language", "--tasks", "--limit", "--raters", "--format")

Attributes = Annotated[str | None, opt.option("A,B", "Attributes, such as clarity.", default="all")]
Sources = Annotated[
    list[str] | None,
    opt.option("TASK=SET|FILE", "Texts and human scores of a task; repeatable.", "--source"),
]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the group of studies."""
    opt.command(app, "paraphrase-robustness")(paraphrase_robustness)
    opt.command(app, "rater-kit")(rater_kit)


def paraphrase_robustness(
    ctx: typer.Context,
    out: opt.Out,
    judge: opt.SomeJudges = None,
    tasks: Annotated[
        str | None,
        opt.option("A,B", "dialogue, question-generation, summarisation, essays.", default="all"),
    ] = None,
    attributes: Attributes = None,
    source: Sources = None,
    limit: opt.Limit = None,
    paraphrases: Annotated[
        int | None,
        opt.option("N", "Paraphrases per instruction.", default="10, or all of --templates"),
    ] = None,
    max_words: Annotated[int | None, opt.option("N", "Skip longer texts.")] = None,
    scoring: Annotated[
        Literal["options", "generate"], opt.option(None, "Read option probabilities or text.")
    ] = "options",
    templates: Annotated[
        str | None,
        opt.option("FILE", "Your templates (YAML), or `paper` for those in the paper."),
    ] = None,
    panel: Annotated[
        bool, opt.option(None, "Measure panels of the judges (three or more).")
    ] = True,
    fuser: Annotated[str | None, opt.option("JUDGE", "Fuses the panel's ratings.")] = None,
    tolerance: Annotated[
        float, opt.option("T", "Distance from the human mean that is right.")
    ] = 0.5,
    log: Annotated[
        Path | None, opt.option("DIR", "Measure this run or import; judge nothing.")
    ] = None,
    by: Annotated[
        Literal["task", "set"],
        opt.option(None, "Group items of --log by task, or by item id up to its last slash."),
    ] = "task",
    settings: opt.Settings = None,
    mirror: opt.Mirror = None,
    pin: opt.Pins = None,
    quick: opt.Quick = False,
    seed: opt.Seed = 0,
    format: opt.Format = "text",
) -> None:
    """Score texts on 12 attributes under ten paraphrases, and compare with human scores."""
    from judgesense.studies import paraphrase_robustness as study

    given = _given(ctx)
    if log is not None:
        from judgesense.studies.paraphrase_robustness.logs import measure_log

        if unused := [option for option in given if option not in _OF_LOGS]:
            raise JudgeSenseError(
                f"--log measures a finished log: leave out {', '.join(unused)}, or leave out --log"
            )
        finish(measure_log(log, by=by, tolerance=tolerance, panel=panel), out, format)
        return
    if "--by" in given:
        raise JudgeSenseError("--by is for --log")
    if not judge:
        raise JudgeSenseError("name judges with --judge, or a finished log with --log")
    result = study.paraphrase_robustness(
        opt.configured(judge, settings),
        out,
        tasks=opt.names(tasks),
        attributes=opt.names(attributes),
        data=opt.pairs(source, "--source"),
        limit=limit,
        paraphrases=paraphrases,
        max_words=max_words,
        scoring=scoring,
        panel=panel,
        fuser=fuser,
        tolerance=tolerance,
        templates=templates,
        mirror=mirror,
        revisions=opt.pairs(pin, "--pin"),
        seed=seed,
        quick=quick,
    )
    finish(result, out, format)


def rater_kit(
    ctx: typer.Context,
    out: opt.Out,
    read: Annotated[
        bool, opt.option(None, "Read the raters' filled-in files and measure.", "--read")
    ] = False,
    language: Annotated[
        str | None,
        opt.option("CODE", "Have people read the package's translation, such as es, instead."),
    ] = None,
    tasks: Annotated[str | None, opt.option("A,B", "Tasks of --language.", default="all")] = None,
    attributes: Attributes = None,
    source: Sources = None,
    limit: Annotated[
        int | None,
        opt.option(
            "N",
            "Texts per attribute, or items per task of --language.",
            min=1,
            default="6, or all items",
        ),
    ] = None,
    n_wordings: Annotated[int, opt.option("N", "Wordings per instruction.", min=1)] = 5,
    raters: Annotated[int, opt.option("N", "Files to write.", min=1)] = 3,
    mirror: opt.Mirror = None,
    pin: opt.Pins = None,
    seed: opt.Seed = 0,
    format: opt.Format = "text",
) -> None:
    """Have people rate texts under several wordings, or read a translation: CSV out, CSV in."""
    from judgesense.studies import sheets
    from judgesense_dataset.sources.loader import Reader

    if read:
        finish(sheets.read_sheets(out), out, format)
        return
    if language is not None:
        if unused := [option for option in _given(ctx) if option not in _OF_LANGUAGE]:
            raise JudgeSenseError(f"--language writes a kit of translations: drop {unused[0]}")
        kit = sheets.translation_kit(language, opt.names(tasks), limit)
    else:
        if tasks is not None:
            raise JudgeSenseError("--tasks is for --language; use --attributes")
        kit = sheets.rating_kit(
            opt.names(attributes),
            opt.pairs(source, "--source"),
            6 if limit is None else limit,
            n_wordings,
            Reader(mirror, opt.pairs(pin, "--pin")),
            seed,
        )
    files = sheets.write_sheets(out, kit, raters, seed)
    opt.output(
        format,
        lambda: {"out": str(out), "files": [str(file) for file in files]},
        lambda: (
            f"{len(files)} files in {out}: give each rater one of rater-*.csv and "
            "instructions.txt. Put the filled-in files back, then: "
            f"judgesense study rater-kit --out {out} --read"
        ),
    )


def _given(ctx: Any) -> list[str]:
    """The options on the command line, by their first name."""
    return [
        param.opts[0]
        for param in ctx.command.params
        if (source := ctx.get_parameter_source(param.name)) and source.name == "COMMANDLINE"
    ]
