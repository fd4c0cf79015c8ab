"""``judgesense check``: check a rubric or a file of verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from judgesense.cli import options as opt
from judgesense.measure.thresholds import MARGIN, STEADY_JSS

if TYPE_CHECKING:
    from judgesense.checking.result import CheckResult

_FEWEST_LINES = 12
"""Lines that are left to the report, however long the comparison with a baseline is."""

RUBRICS = (".txt", ".md", ".prompt", ".j2", "")
"""How the name of a rubric ends."""


def check(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE|RUBRIC.txt",
            help=(
                "Verdicts or, with --data, a rubric. Verdicts can be a table (CSV, Excel, JSONL, "
                "Parquet), a log from Inspect, promptfoo or DeepEval, scores from Langfuse or "
                "LangSmith, or a folder saved by datasets. In a rubric, {column} inserts the "
                "row's value."
            ),
        ),
    ] = None,
    verdict: opt.Verdict = None,
    human: opt.Human = None,
    columns: opt.Roles = None,
    map: opt.Map = None,
    pick: opt.Pick = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help=(
                "How much worse than a person the judge may be in the alternative annotator "
                "test: 0.2 for experts, 0.15 for skilled people, 0.1 for a crowd (default: "
                "0.2)."
            ),
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR|FILE",
            help=(
                "An earlier result to compare with, item by item. The exit code is 1 only if a "
                "figure is reliably worse."
            ),
        ),
    ] = None,
    margin: Annotated[
        float,
        typer.Option(
            metavar="SHARE", help="With --baseline, the largest loss that does not count as worse."
        ),
    ] = MARGIN,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHECK=SHARE",
            help=(
                "What FILE must reach, such as right=0.8 or TASK:readable=0.95: exit code 0 if the "
                "whole interval does, 1 if none of it does, 3 otherwise. Repeatable."
            ),
        ),
    ] = None,
    looks: Annotated[
        int,
        typer.Option(
            min=1,
            help=(
                "With --baseline, the number of comparisons that share the error, such as 30 for "
                "a daily one."
            ),
        ),
    ] = 1,
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Rows to judge: JSONL, CSV or Parquet.")
    ] = None,
    judge: Annotated[
        str | None, typer.Option("--judge", "-j", metavar="JUDGE", help=f"{opt.ANY_JUDGE}.")
    ] = None,
    answers: opt.Answers = None,
    positive: opt.Positive = None,
    options: opt.Options = None,
    threshold: Annotated[
        float,
        typer.Option(
            metavar="JSS",
            help=(
                "Pass if the whole interval for JSS lies above this value (0 to 1), and fail if "
                "it lies below."
            ),
        ),
    ] = STEADY_JSS,
    inconclusive: Annotated[
        Literal["pass", "fail"] | None,
        typer.Option(
            help=(
                "Count INCONCLUSIVE as PASS or FAIL. Without this option, INCONCLUSIVE exits "
                "with code 3."
            )
        ),
    ] = None,
    limit: opt.Limit = None,
    wordings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=(
                "Your wordings: a template file, or texts separated by ---. The default is "
                "RUBRIC.wordings.yaml next to the rubric, which is created if it is missing."
            ),
        ),
    ] = None,
    paraphrases: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="How many wordings to propose. 0 uses only your own (default: 4)."
        ),
    ] = None,
    paraphraser: opt.Paraphraser = None,
    max_cost: opt.MaxCost = None,
    batch: opt.Batch = False,
    settings: opt.Settings = None,
    allow_host: opt.AllowHosts = None,
    scoring: opt.Scoring = None,
    variants: opt.Variants = None,
    attacks: opt.Attacks = None,
    damage: opt.Damage = None,
    repeats: opt.Repeats = 2,
    seed: opt.Seed = 0,
    out: opt.MaybeOut = None,
    verbose: opt.Verbose = False,
    open: opt.Open = False,
    dry_run: opt.DryRun = False,
    format: opt.Format = "text",
) -> None:
    """Is my judge right, where is it wrong, and does rewording change its verdicts?

    With FILE, it compares existing verdicts with people's labels, overall and by label. With
    several people, it also tests whether the judge could replace a person. It first prints how it
    reads each column.

    With RUBRIC.txt, it judges the data under several wordings of the rubric, yours or proposed
    ones, and reports PASS, FAIL or INCONCLUSIVE.

    It prints the conclusion and the next step; --verbose prints every figure. If nothing has
    changed, a rerun sends no prompts.

    Exit codes: 0 PASS, or verdicts without --baseline and --require; 1 FAIL; 2 bad usage or
    input; 3 INCONCLUSIVE.
    """
    from judgesense.checking.file import check_file, reading_of
    from judgesense.checking.options import FileOptions, ResultOptions, RubricOptions
    from judgesense.checking.rubric import check_rubric
    from judgesense.reporting.change_page import CHANGE_PAGE
    from judgesense.reporting.html import REPORT_PAGE

    given = locals() | {
        "verdict": opt.names(verdict),
        "human": opt.names(human),
        "columns": opt.roles(columns) or None,
        "map": opt.pairs(map, "--map") or None,
        "answers": opt.names(answers),
        "options": opt.pairs(options, "--options") or None,
        "variants": opt.names(variants),
        "note": opt.note,
    }
    result = opt.options_of(ResultOptions, given)
    is_file = source is not None and data is None and source.suffix.lower() not in RUBRICS
    if baseline is None:
        looks_or_margin = opt.foreign(
            ResultOptions, RubricOptions, {"looks": looks, "margin": margin}
        )
        opt.refuse("is for a comparison with --baseline", looks_or_margin)
    if source is not None and is_file:
        opt.refuse(
            f"is for a rubric: {source} has verdicts already; to judge its rows: judgesense check "
            f"RUBRIC.txt --data {source} --judge JUDGE",
            {
                "--judge": judge,
                "--batch": batch or None,
                "--max-cost": max_cost,
                "--set": settings,
                "--allow-host": allow_host,
                **opt.foreign(RubricOptions, FileOptions, given),
            },
        )
        of_file = opt.options_of(FileOptions, given)
        if dry_run:
            opt.echo("\n".join(reading_of(source, of_file, result)))
            return
        found = check_file(source, of_file, result)
    else:
        opt.refuse(
            "is for a FILE of verdicts, not for a rubric",
            {**opt.foreign(FileOptions, RubricOptions, given), "--require": require},
        )
        opt.require(
            "or name a FILE of verdicts; see judgesense check --help",
            {"RUBRIC.txt": source, "--data": data, "--judge": judge},
        )
        assert source is not None and data is not None  # noqa: PT018
        of_rubric = opt.options_of(RubricOptions, given)
        settings = opt.with_batch(settings, batch)
        of_judge = opt.judge_options(settings, max_cost=max_cost, allow_host=allow_host)
        if dry_run:
            from judgesense.checking.dry_run import planned

            opt.echo(planned(source, data, judge, of_rubric, of_judge, opt.note))
            return
        found = check_rubric(source, data, judge, of_rubric, result, of_judge)

    def document() -> dict[str, Any]:
        if not is_file:
            return found.to_dict()
        change = {} if found.change is None else {"change": found.change.to_dict()}
        return found.report.to_dict() | change

    opt.output(format, document, lambda: _print(found, verbose, is_file))
    opt.open_page(found.out / (REPORT_PAGE if found.change is None else CHANGE_PAGE), asked=open)
    raise typer.Exit(found.exit_code)


def _print(found: CheckResult, verbose: bool, is_file: bool) -> None:
    from dataclasses import replace

    from judgesense.cli.study import show
    from judgesense.reporting.change_page import CHANGE_PAGE
    from judgesense.reporting.terminal import MOST_LINES, print_report
    from judgesense.text import sentence

    lines = [f"{found.verdict}."] if found.is_gate else []
    if found.change is not None:
        lines += found.change_lines()
        lines.append(f"{found.out / CHANGE_PAGE} shows every changed verdict.")
    if lines:
        opt.echo("\n".join([*lines, ""]))
    if is_file or not verbose:
        most = max(_FEWEST_LINES, MOST_LINES - len(lines) - bool(lines))
        print_report(found.report.contents, found.out, verbose=verbose, most=most)
        return
    for finding in found.result.findings[1:]:
        opt.echo(f"- {sentence(finding)}")
    opt.echo("")
    show(replace(found.result, findings=[]))
    opt.echo(f"\n{found.out}/check/study.md has the same tables; {found.out}/report.html has more.")
