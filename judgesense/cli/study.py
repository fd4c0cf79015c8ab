"""``judgesense study``: the papers' protocols, and one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from judgesense.errors import JudgeSenseError

if TYPE_CHECKING:
    from judgesense.studies.common.result import Result

app = typer.Typer(help="Run the papers' studies, or one of your own.", no_args_is_help=True)

Judges = Annotated[
    list[str],
    typer.Option("--judge", "-j", metavar="NAME|HUB_ID|PATH", help="A judge; give several."),
]
_RESPONDER = typer.Option(
    "--responder", "-r", metavar="NAME|HUB_ID|PATH", help="A model that answers; give several."
)
Responders = Annotated[list[str], _RESPONDER]
Out = Annotated[
    Path, typer.Option("--out", "-o", help="The study's folder; given again, it goes on.")
]
Quick = Annotated[bool, typer.Option("--quick", help="A few items: see that it works.")]
Seed = Annotated[int, typer.Option(help="Fixes what is drawn at random.")]
Items = Annotated[int | None, typer.Option(help="Items a task, instead of the study's own.")]
Mirror = Annotated[
    Path | None,
    typer.Option(
        envvar="JUDGESENSE_MIRROR", help="Read <org>/<name> folders here instead of the Hub."
    ),
]


def finish(result: Result, out: Path) -> None:
    """Write a study's result and print its tables and findings."""
    result.write(out)
    show(result)
    typer.echo(f"\n{out}/study.md has the tables, the figures and the limits.", err=True)


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
            for heading in table.headings:
                grid.add_column(heading, overflow="fold")
            for row in table.texts():
                grid.add_row(*row)
            console.print(grid, markup=False)
        for text in result.findings:
            console.print(f"- {text}", markup=False)


@app.command("run")
def run_own(
    file: Annotated[Path, typer.Argument(metavar="FILE.yaml", help="The study file.")], out: Out
) -> None:
    """Run a study of your own: items, wordings, judges and measures from a YAML file."""
    from judgesense.studies.custom import run_study

    finish(run_study(file, out), out)


@app.command("judge-sensitivity")
def judge_sensitivity(
    out: Out,
    judge: Judges = [],  # noqa: B006  (typer reads the default, nobody changes it)
    log: Annotated[
        Path | None, typer.Option(help="Measure this run or import instead of judging.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="An embedded set, a dataset folder or a Hub id.")
    ] = None,
    questions: Annotated[
        str | None,
        typer.Option(
            "--questions",
            "--only",
            help="Open questions, with commas between: orders, consensus, variance, sampled, "
            "tokens, validators, temperature, scale, language; or none. All by default.",
        ),
    ] = None,
    tasks: Annotated[str | None, typer.Option(help="Tasks, with commas between.")] = None,
    scoring: Annotated[str | None, typer.Option(help="generate, options or both.")] = None,
    items: Items = None,
    validator: Annotated[
        list[str] | None, typer.Option(help="A further judge of whether wordings are equivalent.")
    ] = None,
    long_tokens: Annotated[
        int | None, typer.Option(help="The limit of the long answers (2048).")
    ] = None,
    draws: Annotated[int | None, typer.Option(help="Draws of each prompt at T = 1 (3).")] = None,
    size: Annotated[
        list[str] | None,
        typer.Option(metavar="JUDGE=PARAMETERS", help="A judge's size, such as my-model=7e9."),
    ] = None,
    quick: Quick = False,
    seed: Seed = 0,
) -> None:
    """JudgeSense: tables 1-3 and figures 1-3, and the questions that the paper left open."""
    from judgesense.cli.run import names
    from judgesense.studies.judge_sensitivity import judge_sensitivity as run_study

    asked = () if questions == "none" else names(questions)
    result = run_study(
        judge,
        out=out,
        log=log,
        dataset=dataset,
        questions=asked,
        tasks=names(tasks),
        scoring=None if scoring == "both" else scoring,
        limit=items,
        validators=validator or (),
        long_tokens=long_tokens,
        draws=draws,
        sizes=_sizes(size or []),
        quick=quick,
        seed=seed,
        note=lambda text: typer.echo(text, err=True),
    )
    finish(result, out)


def _sizes(given: list[str]) -> dict[str, float]:
    sizes = {}
    for text in given:
        name, _, number = text.rpartition("=")
        try:
            sizes[name] = float(number)
        except ValueError:
            sizes[name] = 0.0
        if not name or not 0 < sizes[name] < float("inf"):
            raise JudgeSenseError(
                f"--size must be JUDGE=PARAMETERS, as in my-model=7e9: got {text!r}"
            )
    return sizes


@app.command("answer-matching")
def answer_matching_command(
    out: Out,
    responder: Responders,
    judge: Annotated[
        str | None,
        typer.Option("--judge", "-j", metavar="NAME|HUB_ID|PATH", help="A judge that matches too."),
    ] = None,
    benchmark: Annotated[
        list[str] | None,
        typer.Option(
            "--benchmark",
            "-b",
            help="arc-challenge, openbookqa, gpqa-diamond, narrativeqa, narrativeqa-summaries, "
            "math, simpleqa; give several.",
        ),
    ] = None,
    items: Items = None,
    templates: Annotated[
        int, typer.Option(help="Templates a set: 12 are the paper's; more for multiple choice.")
    ] = 12,
    templates_file: Annotated[
        Path | None, typer.Option(metavar="FILE.yaml", help="Templates of your own.")
    ] = None,
    grader: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The prompt that grades SimpleQA answers.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(help="Tokens of an answer, instead of the study's own.")
    ] = None,
    judge_tokens: Annotated[
        int | None, typer.Option(help="Tokens of a verdict, instead of the study's own.")
    ] = None,
    mirror: Mirror = None,
    seed: Seed = 0,
    quick: Quick = False,
) -> None:
    """Is prompt sensitivity the models' or the matcher's? 12 templates, matched by two means."""
    from judgesense.studies import answer_matching as study

    plan = study.MatchingPlan(
        benchmarks=tuple(benchmark or (study.BENCHMARKS[:1] if quick else study.BENCHMARKS)),
        limit=items or (study.QUICK_ITEMS if quick else study.ITEMS),
        n_templates=templates,
        max_tokens=max_tokens or (study.QUICK_TOKENS if quick else None),
        grader_tokens=judge_tokens or (study.QUICK_GRADER_TOKENS if quick else study.GRADER_TOKENS),
        seed=seed,
    )
    result = study.answer_matching(
        responder, out, grader=judge, plan=plan, templates=templates_file, prompt=grader,
        mirror=mirror, note=_note,
    )  # fmt: skip
    finish(result, out)


@app.command("prompt-ranking")
def prompt_ranking_command(
    out: Out,
    responder: Annotated[list[str] | None, _RESPONDER] = None,
    scores: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Your table: prompt, item, score. No model is asked."),
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option("--task", "-t", help="gsm8k or mmlu; both by default.")
    ] = None,
    prompts: Annotated[
        Path | None, typer.Option(metavar="FILE.yaml", help="Prompts of your own.")
    ] = None,
    scoring: Annotated[
        str, typer.Option(help="How MMLU is read: generate, options or both.")
    ] = "generate",
    items: Items = None,
    sizes: Annotated[
        str | None, typer.Option(metavar="N,N,...", help="Items of a subset (50,100,200).")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Subsets of each size.")] = 5,
    z: Annotated[float, typer.Option(help="The LCB's weight of the standard error.")] = 1.0,
    max_tokens: Annotated[
        int | None, typer.Option(help="Tokens of an answer, instead of the study's own.")
    ] = None,
    mirror: Mirror = None,
    seed: Seed = 0,
    quick: Quick = False,
) -> None:
    """Would the best prompt be chosen again? 20 prompts, ranked on subsets of a benchmark."""
    from judgesense.studies import prompt_ranking as study
    from judgesense.studies.prompt_ranking.grid import SCORINGS, TASKS

    plan = study.RankingPlan(
        tasks=tuple(task or TASKS),
        limit=items or (study.QUICK_ITEMS if quick else study.ITEMS),
        sizes=_subset_sizes(sizes) or (study.QUICK_SIZES if quick else study.SIZES),
        seeds=seeds,
        scorings=SCORINGS if scoring == "both" else (scoring,),
        max_tokens=max_tokens or (study.QUICK_TOKENS if quick else study.MAX_TOKENS),
        z=z,
        seed=seed,
    )
    if scores is not None:
        if responder:
            raise JudgeSenseError("give either --scores or --responder, not both")
        finish(study.rank_scores(scores, plan=plan), out)
        return
    result = study.prompt_ranking(
        responder or [], out, plan=plan, templates=prompts, mirror=mirror, note=_note
    )
    finish(result, out)


def _subset_sizes(text: str | None) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError as error:
        raise JudgeSenseError(f"--sizes must be numbers like 50,100,200, got {text!r}") from error


def _note(message: str) -> None:
    typer.echo(message, err=True)
