"""``judgesense study``: the papers' protocols, and your own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError

if TYPE_CHECKING:
    from judgesense.reporting.result import Result

app = opt.group("Run the papers' studies, or your own.")

AnswerTokens = Annotated[
    int | None, opt.option("N", "Tokens per answer.", min=1, default="the study's")
]

_TOKENS = {"max_tokens": "--answer-tokens"}

Attributes = Annotated[str | None, opt.option("A,B", "Attributes, such as clarity.", default="all")]
Sources = Annotated[
    list[str] | None,
    opt.option("TASK=SET|FILE", "Texts and human scores of a task; repeatable.", "--source"),
]


def finish(result: Result, out: Path, format: str) -> None:
    """Write a study's result and print its tables and findings, or the contents of study.json."""
    result.write(out)
    opt.output(format, result.as_json, lambda: show(result))
    opt.note(f"\n{out}/study.md has the tables, the figures and the limits.")


def show(result: Result) -> None:
    """Print a result: a page of Markdown, or tables and findings on a terminal."""
    from rich.console import Console
    from rich.table import Table as Grid

    console = Console()
    if not console.is_terminal:
        typer.echo(result.markdown(), nl=False)
    else:
        for table in result.tables:
            grid = Grid(title=table.title, title_justify="left", caption=table.note or None)
            for heading in table.columns.values():
                grid.add_column(heading, overflow="fold")
            for row in table.texts():
                grid.add_row(*row)
            console.print(grid, markup=False)
        for text in result.findings:
            console.print(f"- {text}", markup=False)


@opt.command(app, "run")
def run_own(
    file: Annotated[Path, typer.Argument(metavar="FILE.yaml", help="The study file.")],
    out: opt.Out,
    format: opt.Format = "text",
) -> None:
    """Run your own study: items, wordings, judges and measures from a YAML file."""
    from judgesense.studies.custom import run_study

    finish(run_study(file, out), out, format)


@opt.command(app, "judge-sensitivity")
def judge_sensitivity(
    out: opt.Out,
    judge: opt.SomeJudges = None,
    log: Annotated[
        Path | None, opt.option("DIR", "Measure this run or import; judge nothing.")
    ] = None,
    dataset: Annotated[
        str | None, opt.option("REPO|PATH", "An embedded set, a dataset folder or a Hub id.")
    ] = None,
    tasks: opt.Tasks = None,
    limit: opt.Limit = None,
    scoring: opt.Scoring = None,
    settings: opt.Settings = None,
    seed: opt.Seed = 0,
    format: opt.Format = "text",
) -> None:
    """Reproduce the JudgeSense paper's tables and figures."""
    from judgesense.studies.judge_sensitivity import judge_sensitivity as run_study

    result = run_study(
        opt.configured(judge or [], settings),
        out=out,
        log=log,
        dataset=dataset,
        tasks=opt.names(tasks),
        scoring=None if scoring == "both" else scoring,
        limit=limit,
        seed=seed,
        note=opt.note,
    )
    finish(result, out, format)


@opt.command(app, "paraphrase-robustness")
def paraphrase_robustness_command(
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
        int | None, opt.option("N", "Paraphrases per instruction.", default="all, ten")
    ] = None,
    scoring: Annotated[
        Literal["options", "generate"], opt.option(None, "Read option probabilities or text.")
    ] = "options",
    paper_wordings: Annotated[
        bool, opt.option(None, "Use the wordings that the paper prints.", "--paper-wordings")
    ] = False,
    fuser: Annotated[str | None, opt.option("JUDGE", "Fuses the panel's ratings.")] = None,
    tolerance: Annotated[
        float, opt.option("T", "Distance from the human mean that is right.")
    ] = 0.5,
    log: Annotated[
        Path | None, opt.option("DIR", "Panels of this run or import; judge nothing.")
    ] = None,
    by: Annotated[
        Literal["task", "set"],
        opt.option(None, "Group items of --log by task, or by item id up to its last slash."),
    ] = "task",
    settings: opt.Settings = None,
    mirror: opt.Mirror = None,
    pin: opt.Pins = None,
    seed: opt.Seed = 0,
    format: opt.Format = "text",
) -> None:
    """Score texts on 12 attributes under ten paraphrases, and compare with human scores."""
    from judgesense.studies.paraphrase_robustness import logs, paraphrase_robustness

    if (log is None) == (not judge):
        raise JudgeSenseError("name judges with --judge, or a finished log with --log, not both")
    if log is not None:
        finish(logs.measure_log(log, by=by, tolerance=tolerance), out, format)
        return
    result = paraphrase_robustness(
        opt.configured(judge or (), settings),
        out,
        tasks=opt.names(tasks),
        attributes=opt.names(attributes),
        data=opt.pairs(source, "--source"),
        limit=limit,
        paraphrases=paraphrases,
        scoring=scoring,
        fuser=fuser,
        tolerance=tolerance,
        paper_wordings=paper_wordings,
        mirror=mirror,
        revisions=opt.pairs(pin, "--pin"),
        seed=seed,
    )
    finish(result, out, format)


@opt.command(app, "answer-matching")
def answer_matching_command(
    out: opt.Out,
    responder: opt.Responders = None,
    grader: opt.Grader = None,
    benchmarks: Annotated[
        str | None,
        opt.option(
            "A,B",
            "arc-challenge, openbookqa, gpqa-diamond, narrativeqa, narrativeqa-summaries, "
            "math, simpleqa.",
            default="arc-challenge,openbookqa,math,simpleqa",
        ),
    ] = None,
    limit: opt.Limit = None,
    n_templates: Annotated[
        int, opt.option("N", "The first N of the paper's 12 templates.", min=2)
    ] = 12,
    answer_tokens: AnswerTokens = None,
    grader_tokens: Annotated[int, opt.option("N", "Tokens per verdict.", min=1)] = 256,
    settings: opt.Settings = None,
    mirror: opt.Mirror = None,
    seed: opt.Seed = 0,
    format: opt.Format = "text",
) -> None:
    """Is prompt sensitivity the model's or the matcher's? 12 templates, two matchers."""
    from judgesense.studies import answer_matching as study

    result = study.answer_matching(
        opt.configured(responder or (), settings, _TOKENS),
        out,
        grader=grader,
        benchmarks=opt.names(benchmarks) or study.BENCHMARKS,
        limit=limit or 100,
        n_templates=n_templates,
        max_tokens=answer_tokens,
        grader_tokens=grader_tokens,
        mirror=mirror,
        seed=seed,
        note=opt.note,
    )
    finish(result, out, format)


@opt.command(app, "prompt-ranking")
def prompt_ranking_command(
    out: opt.Out,
    responder: opt.Responders = None,
    scores: Annotated[
        Path | None, opt.option("FILE", "Your table of prompt, item, score; asks no model.")
    ] = None,
    tasks: Annotated[str | None, opt.option("A,B", "gsm8k, mmlu.", default="both")] = None,
    limit: opt.Limit = None,
    scoring: Annotated[
        Literal["generate", "options", "both"], opt.option(None, "How MMLU answers are read.")
    ] = "generate",
    sizes: Annotated[
        str | None, opt.option("N,N", "Items per subset.", default="50,100,200")
    ] = None,
    answer_tokens: AnswerTokens = None,
    settings: opt.Settings = None,
    mirror: opt.Mirror = None,
    seed: opt.Seed = 0,
    format: opt.Format = "text",
) -> None:
    """Would the best prompt be chosen again? 20 prompts, ranked on subsets of a benchmark."""
    from judgesense.studies import prompt_ranking as study
    from judgesense.studies.prompt_ranking.grid import SCORINGS, TASKS

    plan = study.RankingPlan(
        tasks=opt.names(tasks) or TASKS,
        limit=limit or study.ITEMS,
        sizes=_subset_sizes(sizes) or study.SIZES,
        scorings=SCORINGS if scoring == "both" else (scoring,),
        max_tokens=answer_tokens or study.MAX_TOKENS,
        seed=seed,
    )
    if scores is not None and responder:
        raise JudgeSenseError("give either --scores or --responder, not both")
    result = (
        study.prompt_ranking(
            opt.configured(responder or (), settings, _TOKENS),
            out,
            plan=plan,
            mirror=mirror,
            note=opt.note,
        )
        if scores is None
        else study.rank_scores(scores, plan=plan)
    )
    finish(result, out, format)


def _subset_sizes(text: str | None) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in opt.names(text) or ())
    except ValueError:
        raise JudgeSenseError(f"--sizes must be numbers such as 50,100,200, got {text!r}") from None
