"""``judgesense match``: score responses, by a heuristic and, if wanted, by a grader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError
from judgesense.text import middle_cut, number

if TYPE_CHECKING:
    from judgesense.answers.matching.scores import ModelScores
    from judgesense.pipeline.matching import Matched


_EXAMPLES = 5
"""Responses that are printed per kind."""


def match(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="LOG|QUESTIONS",
            help=(
                "A response log (folder or table). With --responder, a table of questions with "
                "item_id, template_id, message and, for multiple choice, options (in CSV, a "
                "JSON list)."
            ),
        ),
    ],
    responder: Annotated[
        str | None,
        typer.Option(
            "--responder",
            "-r",
            metavar="MODEL",
            help="A model that answers the questions first. Its answers are saved in --out.",
        ),
    ] = None,
    references: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The references, if the log has none.")
    ] = None,
    method: Annotated[
        Literal["choice", "f1", "math", "exact"],
        typer.Option("--method", "-m", help="How to match responses with references."),
    ] = "choice",
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TARGET=COLUMN,...",
            help=(
                "The columns for model, template_id, text, reference, question and options. "
                "TARGET=:TEXT sets a constant. With --references, these are the columns of that "
                "file."
            ),
        ),
    ] = None,
    label_style: Annotated[
        Literal["letters", "numbers", "auto"] | None,
        typer.Option(help="How the prompts label the options."),
    ] = None,
    grader: opt.Grader = None,
    grading_prompt: Annotated[
        str | None,
        typer.Option(metavar="NAME|FILE", help="The grader's prompt: figure-3, gpqa or a file."),
    ] = None,
    max_cost: opt.MaxCost = None,
    settings: opt.Settings = None,
    out: opt.MaybeOut = None,
    format: opt.Format = "text",
) -> None:
    """Score free-text responses against their references, by model and template.

    It prints each model's score under every template, the mean and standard deviation of these
    scores over templates, and the responses that could not be read. With --grader, a judge also
    grades the responses, and the output shows where its grades differ from the scores. --out writes
    match.json and matches.parquet.

    With --responder, a model answers the questions first, in at most 512 tokens (--set
    max_tokens=N). Interrupt the command at any time; rerun it to resume.

    Exit codes: 0 done; 1 a question has no response or no verdict from the grader; 2 bad input.
    """
    from judgesense.pipeline.matching import match_log

    options = opt.judge_options(settings, max_cost=max_cost)
    if responder is not None:
        if out is None or grader is not None:
            raise JudgeSenseError("--responder needs --out DIR; grade DIR in a second step")
        failed = _respond(responder, source, out, options, format if references is None else None)
        if references is None:
            raise typer.Exit(int(failed))
        source, options = out, {}
    prompt = {} if grading_prompt is None else {"grading_prompt": grading_prompt}
    if grader is None and (alone := {**options, **prompt}):
        raise JudgeSenseError(
            f"--{min(alone).replace('_', '-')} is for the grader; name one with --grader"
        )
    found = match_log(
        source,
        references,
        method=method,
        columns=columns or (),
        grader=grader,
        prompt=grading_prompt or "figure-3",
        out=out,
        matcher_options={} if label_style is None else {"labels": label_style},
        **options,
    )
    if format == "json":
        opt.print_json({**found.to_dict(), "without_response": found.failed})
        raise typer.Exit(int(found.incomplete))
    lines = [line for name, table in found.tables.items() for line in _scores(name, table)]
    lines += [*_unread(found), *_graded(found)]
    if out is not None:
        lines.append(f"\nWritten to {out}: match.json, matches.parquet")
    opt.echo("\n".join(lines))
    if found.failed:
        opt.note(f"\n{len(found.failed)} questions have no response and are left out:")
        for line in found.failed[:_EXAMPLES]:
            opt.note(f"  {line}")
    if found.incomplete:
        raise typer.Exit(1)


def _respond(
    responder: str, questions: Path, out: Path, options: dict[str, Any], format: str | None
) -> bool:
    """Write the responder's answers to a log in ``out``; whether some have none."""
    from judgesense.pipeline.matching import read_questions
    from local_judges.responder import respond

    log = respond(responder, list(read_questions(questions)), out, note=opt.note, **options)
    reasons = Counter(log["finish_reason"].to_pylist())
    name, number = log["model"][0].as_py(), log.num_rows
    counts = ", ".join(f"{count} {reason}" for reason, count in reasons.items())
    if format is not None:
        opt.output(
            format,
            lambda: {
                "out": str(out),
                "model": name,
                "responses": number,
                "finish_reasons": dict(reasons),
            },
            lambda: (
                f"{name}: {number} responses ({counts}) in {out}\nNext: judgesense match {out} "
                "--references FILE"
            ),
        )
    return "error" in reasons


def _scores(name: str, table: Sequence[ModelScores]) -> Iterator[str]:
    """Each model's scores under every template, and their mean."""
    from judgesense.answers.matching.scores import mean_rank_correlation

    yield f"Scored by {name}"
    for model in table:
        cells = model["by_template"]
        rows = [
            (
                template,
                number(cell["score"], 4),
                f"n={cell['n_scored']}" + f" of {cell['n']}" * (cell["n_scored"] != cell["n"]),
            )
            for template, cell in cells.items()
        ]
        spread = f"{number(model['mean'], 4)} ± {number(model['std'], 4)}"
        rows.append(("mean ± std", spread, f"over {len(cells)} templates"))
        width = max(len(row[0]) for row in rows)
        yield f"  {model['model']}"
        yield from (f"    {row[0]:<{width}}  {'  '.join(row[1:])}" for row in rows)
    if (rho := mean_rank_correlation(table)) is not None:
        yield f"  mean Spearman's rho of the models' ranking over template pairs: {rho:.4f}"
    yield ""


def _unread(found: Matched) -> Iterator[str]:
    """The responses that were cut off, could not be read, or are wrong."""
    rows, result = found.rows, found.result
    if cut := sum(row.truncated for row in rows):
        yield f"{cut} of {len(rows)} responses were cut off at the token cap"
    unread = {i: result.problems[i] for i, value in enumerate(result.readings) if value is None}
    reasons = "; ".join(f"{n} {problem}" for problem, n in result.problem_counts.items())
    heading = f"of {result.n} responses could not be read by {result.method} and score 0"
    yield from _examples(found, heading + f" ({reasons})" * bool(reasons), unread)
    wrong = {
        i: f"read as {_short(reading, 60)!r}"
        for i, (reading, score) in enumerate(zip(result.readings, result.per_example, strict=True))
        if score == 0 and reading
    }
    yield from _examples(found, "responses were read and score 0", wrong)


def _graded(found: Matched) -> Iterator[str]:
    """Where the grader's verdicts differ from the scores."""
    judged, differ, method = found.judged, found.differ, found.result.method
    if judged is None or differ is None:
        return
    counts = found.to_dict()["disagreement"]
    yield (
        f"\n{method} and {judged.judge} differ on a share of {number(counts['rate'], 4)} of the "
        f"responses. Both say right for {counts['both_right']} responses and wrong for "
        f"{counts['both_wrong']}. For {counts['no_verdict']}, the judge gives no verdict; "
        f"depending on these, its score is {judged.score_low:.4f} to {judged.score_high:.4f}."
    )
    for heading, kind in (
        ("right for the grader only", "missed_by_heuristic"),
        (f"right for {method} only", "only_heuristic"),
        ("no verdict", "no_verdict"),
    ):
        reasons = {i: _short(judged.reasons[i], 120) for i in differ[kind]}
        yield from _examples(found, heading, reasons)
    outcomes = Counter(outcome for outcome in judged.outcomes if outcome != "ok")
    yield from (f"no verdict, {outcome}: {count}" for outcome, count in outcomes.items())


def _examples(found: Matched, heading: str, notes: Mapping[int, str | None]) -> Iterator[str]:
    """How many responses are of a kind, and some of them; ``notes`` are by their places."""
    yield f"{len(notes)} {heading}"
    for i in [*notes][:_EXAMPLES]:
        row = found.rows[i]
        where = f"{row.model} {row.template_id} {row.item_id}"
        texts = f"{_short(row.text or '', 120)!r} for {_short(str(row.reference), 60)!r}"
        yield f"  {where}: {texts}  [{notes[i]}]"


def _short(text: str, length: int) -> str:
    return middle_cut(" ".join(text.split()), length)
