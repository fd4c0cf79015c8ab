"""``judgesense study``: a command for each paper's study, and `run` for your own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError
from judgesense.text import aligned

if TYPE_CHECKING:
    from judgesense.reporting.study_result import Result

app = opt.group(
    "Run a paper's protocol on judges of your own or on a published log, or your own study from a "
    "YAML file. Rerun a study to resume it."
)

Responders = Annotated[
    list[str] | None,
    typer.Option(
        "--responder", "-r", metavar="MODEL", help="A model that answers the questions. Repeatable."
    ),
]
Log = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Measure this run or imported log without running a judge."),
]


def show(result: Result) -> None:
    """Print a result: a page of Markdown, or tables and findings on a terminal."""
    if not sys.stdout.isatty():
        typer.echo(result.markdown(), nl=False)
        return
    for table in result.tables:
        lines = [table.title, *aligned([tuple(table.columns.values()), *table.texts()])]
        opt.echo("\n".join([*lines, *([table.note] if table.note else []), ""]))
    for text in result.findings:
        opt.echo(f"- {text}")


def _write(result: Result, out: Path, format: str) -> None:
    """Write a study's folder and print its result."""
    result.write(out)
    opt.output(format, result.as_json, lambda: show(result))
    opt.note(f"\n{out}/study.md has the tables, the figures and the limits.")


def _given(**values: Any) -> dict[str, Any]:
    """The options that were given; for the others, the study has its own defaults."""
    return {name: value for name, value in values.items() if value is not None}


@opt.command(app, "judge-sensitivity")
def judge_sensitivity(
    out: opt.Out,
    judge: opt.Judges = None,
    log: Log = None,
    dataset: Annotated[
        str | None,
        typer.Option(metavar="REPO|PATH", help="An embedded set, a dataset folder or a Hub id."),
    ] = None,
    tasks: opt.Tasks = None,
    limit: opt.Limit = None,
    scoring: opt.AnyScoring = None,
    repeats: opt.Repeats = 1,
    settings: opt.Settings = None,
    pool: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|DIR|v2",
            help=(
                "Pool ΔJSS over the judges of these runs or tables of figures (v2: the published "
                "table). --set changes the pooling rules, such as floor=0.02. Repeatable."
            ),
        ),
    ] = None,
    seed: opt.SomeSeed = None,
    format: opt.Format = "text",
) -> None:
    """The JudgeSense paper's tables for your judges, or measured from a published log."""
    from judgesense.studies.judge_sensitivity import judge_sensitivity as study

    options = _given(log=log, dataset=dataset, tasks=opt.names(tasks), limit=limit, seed=seed)
    if repeats != 1:
        options["repeats"] = repeats
    if pool:
        from judgesense.studies.judge_sensitivity.pooled import pool_cells

        if options or judge or scoring:
            raise JudgeSenseError("--pool measures existing cells: it takes only --set and --out")
        _write(pool_cells(pool, opt.judge_options(settings)), out, format)
        return
    if scoring not in (None, "both"):
        options["scoring"] = scoring
    judges = opt.configured(judge or (), opt.judge_options(settings))
    _write(study(judges, out=out, note=opt.note, **options), out, format)


@opt.command(app, "paraphrase-robustness")
def paraphrase_robustness(
    out: opt.Out,
    judge: opt.Judges = None,
    log: Log = None,
    tasks: opt.Tasks = None,
    attributes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B", help="The attributes to score, such as clarity (default: all)."
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(metavar="TASK=SET|FILE", help="A task's texts with human scores. Repeatable."),
    ] = None,
    pin: opt.Pins = None,
    limit: opt.Limit = None,
    paraphrases: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many paraphrases per instruction (default: all ten)."),
    ] = None,
    paper_wordings: Annotated[
        bool, typer.Option("--paper-wordings", help="Use the wordings that the paper prints.")
    ] = False,
    same_prompt: Annotated[
        bool,
        typer.Option(
            "--same-prompt", help="Also repeat the original wording, as a control for rewording."
        ),
    ] = False,
    scoring: Annotated[
        Literal["generate", "options"] | None, typer.Option(help=f"{opt.READ} (default: these).")
    ] = None,
    settings: opt.Settings = None,
    fuser: Annotated[
        str | None,
        typer.Option(metavar="JUDGE", help="A judge that combines the panel's ratings."),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            metavar="T", help="The largest distance from the human mean that counts as right."
        ),
    ] = 0.5,
    by: Annotated[
        Literal["task", "set"],
        typer.Option(help="Group items of --log by task, or by item id up to its last slash."),
    ] = "task",
    mirror: opt.Mirror = None,
    seed: opt.SomeSeed = None,
    format: opt.Format = "text",
) -> None:
    """Your judges score texts on 12 attributes under ten paraphrases, beside people's scores."""
    from judgesense.studies.paraphrase_robustness import logs
    from judgesense.studies.paraphrase_robustness import paraphrase_robustness as study

    if (log is None) == (not judge):
        raise JudgeSenseError("name judges with --judge, or a finished log with --log, not both")
    if log is not None:
        _write(logs.measure_log(log, by=by, tolerance=tolerance), out, format)
        return
    options = _given(limit=limit, paraphrases=paraphrases, scoring=scoring, fuser=fuser, seed=seed)
    result = study(
        opt.configured(judge or (), opt.judge_options(settings)),
        out,
        tasks=opt.names(tasks),
        attributes=opt.names(attributes),
        data=opt.pairs(source, "--source"),
        revisions=opt.pairs(pin, "--pin"),
        paper_wordings=paper_wordings,
        same_prompt=same_prompt,
        tolerance=tolerance,
        mirror=mirror,
        **options,
    )
    _write(result, out, format)


@opt.command(app, "answer-matching")
def answer_matching(
    out: opt.Out,
    responder: Responders = None,
    grader: opt.Grader = None,
    benchmarks: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help=(
                "Any of arc-challenge, openbookqa, gpqa-diamond, narrativeqa, "
                "narrativeqa-summaries, math and simpleqa (default: "
                "arc-challenge,openbookqa,math,simpleqa)."
            ),
        ),
    ] = None,
    limit: opt.Limit = None,
    n_templates: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=2, help="Use the first N of the paper's templates (default: 12)."
        ),
    ] = None,
    grader_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="At most this many tokens per verdict of the grader (default: 256).",
        ),
    ] = None,
    settings: opt.Settings = None,
    mirror: opt.Mirror = None,
    seed: opt.SomeSeed = None,
    format: opt.Format = "text",
) -> None:
    """Does prompt sensitivity come from the model or from the matcher of its answers?"""
    from judgesense.studies.answer_matching import answer_matching as study

    options = _given(
        benchmarks=opt.names(benchmarks),
        limit=limit,
        n_templates=n_templates,
        grader_tokens=grader_tokens,
        seed=seed,
    )
    values = opt.judge_options(settings)
    result = study(
        opt.configured(responder or (), values),
        out,
        grader=grader,
        max_tokens=values.get("max_tokens"),
        mirror=mirror,
        note=opt.note,
        **options,
    )
    _write(result, out, format)


@opt.command(app, "prompt-ranking")
def prompt_ranking(
    out: opt.Out,
    responder: Responders = None,
    scores: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Your table with the columns prompt, item and score. No model runs.",
        ),
    ] = None,
    tasks: opt.Tasks = None,
    limit: opt.Limit = None,
    scoring: opt.AnyScoring = None,
    sizes: Annotated[
        str | None,
        typer.Option(metavar="N,N", help="How many items a subset has (default: 50,100,200)."),
    ] = None,
    z: Annotated[
        str | None,
        typer.Option(
            metavar="Z,Z",
            help="Weight of the standard error in LCB (default: 1); several are compared.",
        ),
    ] = None,
    settings: opt.Settings = None,
    mirror: opt.Mirror = None,
    seed: opt.SomeSeed = None,
    format: opt.Format = "text",
) -> None:
    """Would the best of 20 prompts be chosen again on other items?"""
    from judgesense.studies import prompt_ranking as study
    from judgesense.studies.prompt_ranking.grid import SCORINGS

    if scores is not None and responder:
        raise JudgeSenseError("give either --scores or --responder, not both")
    values, items = opt.judge_options(settings), opt.names(sizes)
    if items and not all(size.isdigit() for size in items):
        raise JudgeSenseError(f"--sizes must be numbers such as 50,100,200, got {items}")
    try:
        weights = tuple(map(float, opt.names(z) or ()))
    except ValueError:
        raise JudgeSenseError(f"--z must be numbers such as 0.5,1,2, got {z}") from None
    options = _given(
        tasks=opt.names(tasks),
        limit=limit,
        scorings=SCORINGS if scoring == "both" else scoring and (scoring,),
        sizes=items and tuple(map(int, items)),
        z=weights[0] if weights else None,
        more_z=weights[1:],
        max_tokens=values.get("max_tokens"),
        seed=seed,
    )
    plan = study.RankingPlan(**options)
    if scores is not None:
        result = study.rank_scores(scores, plan=plan)
    else:
        models = opt.configured(responder or (), values)
        result = study.prompt_ranking(models, out, plan=plan, mirror=mirror, note=opt.note)
    _write(result, out, format)


@opt.command(app, "run")
def run(
    file: Annotated[str, typer.Argument(metavar="FILE.yaml", help="Your study.")],
    out: opt.Out,
    allow_host: opt.AllowHosts = None,
    format: opt.Format = "text",
) -> None:
    """Run your own study: a YAML file names its items, wordings, judges and measures."""
    from judgesense.studies.custom import run_study

    _write(run_study(file, out, allow_host=allow_host or ()), out, format)
