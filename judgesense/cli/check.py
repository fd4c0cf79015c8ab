"""``judgesense check``: a rubric of your own, for a CI."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError
from judgesense.trust.thresholds import MARGIN, STEADY_JSS

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
            help="Verdicts: CSV, JSONL, Parquet, a log of Inspect, promptfoo or DeepEval, scores "
            "of Langfuse or LangSmith, a folder of datasets. Or a rubric, with --data; {column} "
            "inserts a column.",
            show_default=False,
        ),
    ] = None,
    verdict: Annotated[
        str | None, opt.option("COL,...", "The columns of FILE with verdicts, one per judge.")
    ] = None,
    human: Annotated[
        str | None, opt.option("COL,...", "The columns with people's labels, one per person.")
    ] = None,
    columns: Annotated[
        list[str] | None,
        opt.option("ROLE=COL,...", "Other columns of FILE, such as item_id=question; repeatable."),
    ] = None,
    map: Annotated[
        str | None,
        opt.option(
            "THEIRS=OURS,...", "Translate FILE's values to labels: good=PASS or '>=0.5=PASS'."
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        opt.option(
            "SHARE",
            "How much worse than a person the judge may be, in the alternative annotator test: 0.2 "
            "for experts, "
            "0.15 for skilled people, 0.1 for a crowd.",
            default="0.2",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        opt.option(
            "DIR|FILE",
            "An earlier result; says what is better, worse or no worse, item by item, and exits "
            "with 1 only if something is reliably worse.",
        ),
    ] = None,
    margin: Annotated[
        float, opt.option("SHARE", "With --baseline: the largest loss that counts as no worse.")
    ] = MARGIN,
    data: Annotated[
        Path | None, opt.option("FILE", "Rows to judge: JSONL, CSV or Parquet.")
    ] = None,
    pick: Annotated[
        str | None, opt.option("NAME", "The scorer or score of FILE, if it has several.")
    ] = None,
    judge: Annotated[str | None, opt.option("JUDGE", f"{opt.ANY_JUDGE}.", "--judge", "-j")] = None,
    answers: Annotated[
        str | None, opt.option("A,B", "The possible answers; the gold labels by default.")
    ] = None,
    options: Annotated[
        str | None, opt.option("A=COLUMN,B=COLUMN", "Pairwise rubrics: the column for each answer.")
    ] = None,
    threshold: Annotated[
        float, opt.option("JSS", "PASS above this JSS, FAIL below it (0 to 1).")
    ] = STEADY_JSS,
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
        ),
    ] = None,
    paraphrases: Annotated[
        int | None,
        opt.option("N", "Number of wordings to propose; 0 uses only yours.", default="4"),
    ] = None,
    paraphraser: Annotated[
        str | None, opt.option("JUDGE", "Proposes wordings; the judge by default.")
    ] = None,
    max_cost: opt.MaxCost = None,
    settings: opt.Settings = None,
    scoring: Annotated[
        Literal["generate", "options"], opt.option(None, "Read text or option probabilities.")
    ] = "generate",
    variants: opt.Variants = None,
    attacks: opt.Attacks = None,
    repeats: opt.Repeats = 2,
    seed: opt.Seed = 0,
    out: opt.SomeOut = None,
    verbose: opt.Verbose = False,
    dry_run: opt.DryRun = False,
    format: opt.Format = "text",
) -> None:
    """Is my judge right, where is it wrong, and does rewording change its verdicts?

    With FILE, compares existing verdicts with human labels: agreement, each label, and whether the
    judge could replace a person. Recognises the columns and prints them first.

    With RUBRIC.txt, paraphrases the rubric or takes your wordings, judges the data under each, and
    says PASS, FAIL or INCONCLUSIVE.

    Prints the conclusion and what to do next; --verbose prints every figure. Rerunning an unchanged
    check returns the saved result, by default from runs/.

    Exit codes: 0 PASS; 1 FAIL; 2 bad usage or input; 3 INCONCLUSIVE.
    """
    from judgesense.checking.check import check as run_check
    from judgesense.checking.check import planned
    from judgesense.files.tables import SUFFIXES

    people = opt.names(human) or ()
    if source is not None and data is None and source.suffix.lower() not in RUBRICS:
        given = {"--judge": judge, "--wordings": wordings, "--variants": variants}
        if taken := [flag for flag, value in given.items() if value is not None]:
            raise JudgeSenseError(
                f"{taken[0]}: {source} has verdicts already; to judge its rows: judgesense check "
                f"RUBRIC.txt --data {source} --judge JUDGE"
            )
        _check_file(source, opt.names(verdict) or (), people, columns, map, answers, pick, epsilon,
                    baseline, margin, out, verbose, format, inconclusive)  # fmt: skip
        return
    if data is not None and source is not None and source.suffix.lower() in SUFFIXES:
        raise JudgeSenseError(
            f"{source} is a table, not a rubric: judgesense check RUBRIC.txt --data {source}, or "
            f"without --data if it has verdicts"
        )
    of_verdicts = {"--verdict": verdict, "--columns": columns, "--map": map, "--pick": pick}
    for flag, value in of_verdicts.items():
        if value is not None:
            raise JudgeSenseError(f"{flag} is for a FILE of verdicts, not for a rubric")
    shared: dict[str, Any] = {
        "wordings": wordings,
        "paraphraser": paraphraser,
        "n_paraphrases": paraphrases,
        "threshold": threshold,
        "inconclusive": inconclusive,
        "scoring": scoring,
        "variants": opt.names(variants),
        "attacks": attacks,
        "repeats": repeats,
        "seed": seed,
        "limit": limit,
        "out": out,
        "baseline": baseline,
        "margin": margin,
        **opt.judge_options(settings, max_cost=max_cost),
    }
    needed = {"RUBRIC.txt": source, "--data": data, "--judge": judge}
    if absent := [name for name, value in needed.items() if value is None]:
        raise JudgeSenseError(
            f"{absent[0]} is missing (or name a FILE of verdicts); see judgesense check --help"
        )
    assert source is not None and data is not None  # noqa: PT018
    own: dict[str, Any] = {
        "human": people, "answers": opt.names(answers),
        "options": opt.pairs(options, "--options") or None,
    }  # fmt: skip
    if dry_run:
        size: dict[str, Any] = {"wordings": wordings, "n_paraphrases": paraphrases}
        typer.echo(planned(source, data, **own, **size, limit=limit))
        return
    found = run_check(source, data, judge, **own, **shared)
    opt.output(format, found.to_dict, lambda: _print(found, verbose))
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def _check_file(
    source: Path, verdict: Sequence[str], human: Sequence[str], columns: list[str] | None,
    map: str | None, answers: str | None, pick: str | None, epsilon: float | None,
    baseline: Path | None, margin: float, out: Path | None, verbose: bool, format: str,
    inconclusive: Any,
) -> None:  # fmt: skip
    from judgesense.checking.check import check
    from judgesense.importers.column_names import FRIENDLY
    from judgesense.importers.columns import TARGETS, parse_columns
    from judgesense.reporting.terminal import MOST_LINES, print_report
    from judgesense.statistics.alternative_annotator import EPSILON

    roles = parse_columns(columns or [], (*TARGETS, *FRIENDLY))
    shared: dict[str, Any] = {
        "verdict": verdict,
        "human": human,
        "columns": {FRIENDLY.get(role, role): column for role, column in roles.items()},
        "mapping": opt.mapping(map),
        "answers": opt.names(answers),
        "pick": pick,
        "epsilon": EPSILON if epsilon is None else epsilon,
        "inconclusive": inconclusive,
    }
    found = check(source, baseline=baseline, margin=margin, out=out, note=opt.note, **shared)
    report, change = found.report, found.change
    if change is None:
        opt.output(format, report.to_dict, lambda: print_report(report, found.out, verbose=verbose))
        return

    def show() -> None:
        text = f"{change.gate.text}.\n{change}"
        typer.echo(f"{text}\n")
        most = max(_FEWEST_LINES, MOST_LINES - len(text.splitlines()) - 1)
        print_report(report, found.out, verbose=verbose, most=most)

    opt.output(format, lambda: {**report.to_dict(), "change": change.to_dict()}, show)
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def _print(found: CheckResult, verbose: bool) -> None:
    from dataclasses import replace

    from judgesense.cli.study import show
    from judgesense.reporting.terminal import MOST_LINES, print_report
    from judgesense.text import sentence

    text = f"{found.verdict}." if found.change is None else f"{found.verdict}.\n{found.change}"
    typer.echo(f"{text}\n")
    if not verbose:
        most = max(_FEWEST_LINES, MOST_LINES - len(text.splitlines()) - 1)
        print_report(found.report, found.out, most=most)
        return
    for finding in found.result.findings[1:]:
        typer.echo(f"- {sentence(finding)}")
    typer.echo("")
    show(replace(found.result, findings=[]))
    typer.echo(f"\n{found.out}/check/study.md has all of this, {found.out}/report.html more.")
