"""``judgesense study``: the papers' protocols, and your own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError

if TYPE_CHECKING:
    from judgesense.reporting.study_result import Result

_OF_STUDY = {
    "judge-sensitivity": {
        "judge",
        "log",
        "dataset",
        "tasks",
        "limit",
        "scoring",
        "settings",
        "pool",
    },
    "paraphrase-robustness": {
        "judge",
        "log",
        "tasks",
        "limit",
        "scoring",
        "settings",
        "mirror",
        "attributes",
        "source",
        "pin",
        "paraphrases",
        "paper_wordings",
        "fuser",
        "tolerance",
        "by",
    },
    "answer-matching": {
        "responder",
        "limit",
        "settings",
        "mirror",
        "answer_tokens",
        "grader",
        "grader_tokens",
        "benchmarks",
        "n_templates",
    },
    "prompt-ranking": {
        "responder",
        "tasks",
        "limit",
        "scoring",
        "settings",
        "mirror",
        "answer_tokens",
        "scores",
        "sizes",
    },
}
"""The papers' studies and the flags of each, besides --out, --seed and --format."""

_TOKENS = {"max_tokens": "--answer-tokens"}


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


def study(
    name: Annotated[
        str, typer.Argument(metavar="NAME|FILE.yaml", help=f"{', '.join(_OF_STUDY)}, or your file.")
    ],
    out: opt.Out,
    judge: opt.Judges = None,
    responder: Annotated[
        list[str] | None,
        typer.Option(
            "--responder",
            "-r",
            metavar="MODEL",
            help="A model that answers the questions. Repeatable.",
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Measure this run or imported log without running a judge."
        ),
    ] = None,
    tasks: opt.Tasks = None,
    limit: opt.Limit = None,
    scoring: opt.AnyScoring = None,
    settings: opt.Settings = None,
    mirror: opt.Mirror = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Random seed (default: 0).")] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="REPO|PATH",
            help="judge-sensitivity: an embedded set, a dataset folder or a Hub id.",
        ),
    ] = None,
    pool: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|DIR|v2",
            help=(
                "judge-sensitivity: pool ΔJSS over the judges of these runs or tables of "
                "figures (v2: the published table). --set changes the pooling rules, such as "
                "floor=0.02. Repeatable."
            ),
        ),
    ] = None,
    attributes: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help=(
                "paraphrase-robustness: the attributes to score, such as clarity (default: all)."
            ),
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TASK=SET|FILE",
            help="paraphrase-robustness: a task's texts with human scores. Repeatable.",
        ),
    ] = None,
    pin: opt.Pins = None,
    paraphrases: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help=(
                "paraphrase-robustness: how many paraphrases per instruction (default: all ten)."
            ),
        ),
    ] = None,
    paper_wordings: Annotated[
        bool,
        typer.Option(
            "--paper-wordings",
            help="paraphrase-robustness: use the wordings that the paper prints.",
        ),
    ] = False,
    fuser: Annotated[
        str | None,
        typer.Option(
            metavar="JUDGE",
            help="paraphrase-robustness: a judge that combines the panel's ratings.",
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="T",
            help=(
                "paraphrase-robustness: the largest distance from the human mean that counts as "
                "right (default: 0.5)."
            ),
        ),
    ] = None,
    by: Annotated[
        Literal["task", "set"] | None,
        typer.Option(
            help=(
                "paraphrase-robustness: group items of --log by task, or by item id up to its "
                "last slash (default: task)."
            )
        ),
    ] = None,
    answer_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help=(
                "answer-matching, prompt-ranking: at most this many tokens per answer (default: "
                "the study's)."
            ),
        ),
    ] = None,
    grader: opt.Grader = None,
    grader_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help=(
                "answer-matching: at most this many tokens per verdict of the grader (default: "
                "256)."
            ),
        ),
    ] = None,
    benchmarks: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help=(
                "answer-matching: any of arc-challenge, openbookqa, gpqa-diamond, narrativeqa, "
                "narrativeqa-summaries, math and simpleqa (default: "
                "arc-challenge,openbookqa,math,simpleqa)."
            ),
        ),
    ] = None,
    n_templates: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=2,
            help="answer-matching: use the first N of the paper's templates (default: 12).",
        ),
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=(
                "prompt-ranking: your table with the columns prompt, item and score. No model runs."
            ),
        ),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="N,N", help="prompt-ranking: how many items a subset has (default: 50,100,200)."
        ),
    ] = None,
    format: opt.Format = "text",
) -> None:
    """Run a paper's study, or your own from a YAML file.

    judge-sensitivity reproduces the tables and figures of the JudgeSense paper.

    paraphrase-robustness scores texts on 12 attributes under ten paraphrases and compares the
    scores with people's.

    answer-matching tests whether prompt sensitivity comes from the model or from the matcher.

    prompt-ranking tests whether the best of 20 prompts would be chosen again.

    A YAML file of your own names the items, wordings, judges and measures.

    Rerun the same command to resume.
    """
    given = {
        key: value
        for key, value in locals().items()
        if key not in ("name", "out", "format") and value is not None and value is not False
    }
    own = name.endswith((".yaml", ".yml"))
    if not own and name not in _OF_STUDY:
        raise JudgeSenseError(
            f"unknown study {name!r}; name one of {', '.join(_OF_STUDY)}, or your FILE.yaml"
        )
    if str(given.get("mirror")) == os.environ.get("JUDGESENSE_MIRROR") and (
        own or "mirror" not in _OF_STUDY[name]
    ):
        del given["mirror"]
    if wrong := sorted(given.keys() - (set() if own else {*_OF_STUDY[name], "seed"})):
        flag = {"settings": "set"}.get(wrong[0], wrong[0].replace("_", "-"))
        raise JudgeSenseError(f"--{flag}: study {name} has no such flag")
    if own:
        from judgesense.studies.custom import run_study

        result = run_study(name, out)
    else:
        for key in ("tasks", "attributes", "benchmarks"):
            if key in given:
                given[key] = opt.names(given[key])
        settings = given.pop("settings", None)
        result = _RUN[name](given, settings, out)
    result.write(out)
    opt.output(format, result.as_json, lambda: show(result))
    opt.note(f"\n{out}/study.md has the tables, the figures and the limits.")


def _judge_sensitivity(given: dict[str, Any], settings: list[str] | None, out: Path) -> Result:
    from judgesense.studies.judge_sensitivity import judge_sensitivity

    if pool := given.pop("pool", None):
        from judgesense.studies.judge_sensitivity.pooled import pool_cells

        if given:
            raise JudgeSenseError("--pool measures existing cells: it takes only --set and --out")
        return pool_cells(pool, opt.judge_options(settings))
    if given.get("scoring") == "both":
        del given["scoring"]
    judges = opt.configured(given.pop("judge", ()), settings)
    return judge_sensitivity(judges, out=out, note=opt.note, **given)


def _paraphrase_robustness(given: dict[str, Any], settings: list[str] | None, out: Path) -> Result:
    from judgesense.studies.paraphrase_robustness import logs, paraphrase_robustness

    judge, log, by = (given.pop(key, None) for key in ("judge", "log", "by"))
    if (log is None) == (not judge):
        raise JudgeSenseError("name judges with --judge, or a finished log with --log, not both")
    if given.get("scoring") == "both":
        raise JudgeSenseError("--scoring both: paraphrase-robustness reads options or generate")
    tolerance = given.pop("tolerance", 0.5)
    if log is not None:
        return logs.measure_log(log, by=by or "task", tolerance=tolerance)
    return paraphrase_robustness(
        opt.configured(judge, settings),
        out,
        data=opt.pairs(given.pop("source", None), "--source"),
        revisions=opt.pairs(given.pop("pin", None), "--pin"),
        tolerance=tolerance,
        **given,
    )


def _answer_matching(given: dict[str, Any], settings: list[str] | None, out: Path) -> Result:
    from judgesense.studies.answer_matching import answer_matching

    models = opt.configured(given.pop("responder", ()), settings, _TOKENS)
    tokens = given.pop("answer_tokens", None)
    return answer_matching(models, out, max_tokens=tokens, note=opt.note, **given)


def _prompt_ranking(given: dict[str, Any], settings: list[str] | None, out: Path) -> Result:
    from judgesense.studies import prompt_ranking as study
    from judgesense.studies.prompt_ranking.grid import SCORINGS

    models, scores = given.pop("responder", ()), given.pop("scores", None)
    if scores is not None and models:
        raise JudgeSenseError("give either --scores or --responder, not both")
    mirror = given.pop("mirror", None)
    if "answer_tokens" in given:
        given["max_tokens"] = given.pop("answer_tokens")
    if scoring := given.pop("scoring", None):
        given["scorings"] = SCORINGS if scoring == "both" else (scoring,)
    if sizes := opt.names(given.pop("sizes", None)):
        if not all(size.isdigit() for size in sizes):
            raise JudgeSenseError(f"--sizes must be numbers such as 50,100,200, got {sizes}")
        given["sizes"] = tuple(map(int, sizes))
    plan = study.RankingPlan(**given)
    if scores is not None:
        return study.rank_scores(scores, plan=plan)
    models = opt.configured(models, settings, _TOKENS)
    return study.prompt_ranking(models, out, plan=plan, mirror=mirror, note=opt.note)


_RUN: Mapping[str, Any] = {
    "judge-sensitivity": _judge_sensitivity,
    "paraphrase-robustness": _paraphrase_robustness,
    "answer-matching": _answer_matching,
    "prompt-ranking": _prompt_ranking,
}
