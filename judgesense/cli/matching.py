"""``judgesense match``: score a response log, by a heuristic and, if asked, by a judge."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgesense.errors import JudgeSenseError

if TYPE_CHECKING:
    from judgesense.cli.match_input import Response
    from judgesense.matching import AnswerMatch
    from judgesense.matching.scores import Disagreement, ModelScores
    from local_judges.llm_matcher import JudgedMatches


def match(
    source: Annotated[Path, typer.Argument(metavar="LOG", help="The response log.")],
    references: Annotated[
        Path | None,
        typer.Option(
            "--references", "-r", metavar="FILE", help="The references, where the log has none."
        ),
    ] = None,
    method: Annotated[
        str, typer.Option("--method", "-m", help="choice, f1, math or exact.")
    ] = "choice",
    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TARGET=COLUMN,...",
            help="Where model, template_id, text, reference, question, options come from; "
            "TARGET=:TEXT is a constant. With --references: in that file.",
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option("--judge", "-j", metavar="NAME|HUB_ID|PATH", help="Also ask this judge."),
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(help="The judge's prompt: figure-3 (the default), gpqa or a text file."),
    ] = None,
    engine: Annotated[str | None, typer.Option(help="What runs the judge.")] = None,
    base_url: Annotated[
        str | None, typer.Option(help="The judge's OpenAI-compatible endpoint (engine api).")
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(help="Cap on the judge's tokens. Default: 256, or its own if that is more."),
    ] = None,
    n_options: Annotated[
        int | None, typer.Option(help="Options of a choice (4), where their texts are not given.")
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="Labels the prompts show: letters, numbers or auto.")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds to compare one mathematical answer (5).")
    ] = None,
    examples: Annotated[int, typer.Option(help="Examples to print of each kind.")] = 5,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for match.json and matches.parquet."),
    ] = None,
    encoding: Annotated[str, typer.Option(help="The text encoding of CSV and JSONL.")] = "utf-8",
) -> None:
    """Score free-text responses against their references, by model and template.

    The log is a folder of judgesense respond, with --references, or a table that has both.

    Prints every model's score under every template, mean and standard deviation, and responses
    that were missed; with --judge also what the judge makes of them and where the two differ.
    Exit code 1: some questions have no response, or the judge no verdict on some. 2: bad input.
    """
    from judgesense.cli.match_input import TARGETS, option_texts, read_rows
    from judgesense.importers import parse_columns
    from judgesense.matching import match_answers
    from judgesense.matching.scores import disagreement, score_models
    from judgesense.run_folder import require_writable

    wanted: dict[str, Any] = {"engine": engine, "base_url": base_url, "max_tokens": max_tokens}
    if judge is None:
        _refuse_without_judge({**wanted, "prompt": prompt})
    elif engine is None and base_url is not None:
        wanted["engine"] = "api"
    prompt = "figure-3" if prompt is None else prompt
    read = read_rows(source, references, parse_columns(columns or [], TARGETS), encoding)
    rows = read.rows
    given = {"n_options": n_options, "labels": labels, "time_limit_s": time_limit}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if method == "choice" and (shown := option_texts(rows)) is not None:
        options["options"] = shown
    loaded = _load(judge, wanted, prompt, rows) if judge is not None else None
    if out is not None:
        require_writable(out)
    texts, accepted = [row.text for row in rows], [row.reference for row in rows]
    result = match_answers(texts, accepted, method, **options)
    models, templates = [row.model for row in rows], [row.template_id for row in rows]
    tables = {method: score_models(models, templates, result.per_example)}
    judged, differ = None, None
    if loaded is not None:
        judged = _judge(loaded, prompt, rows)
        tables[judged.judge] = score_models(models, templates, judged.per_example)
        differ = disagreement(result.per_example, judged.per_example)
    for name, table in tables.items():
        _show_scores(name, table)
    _show_unread(result, rows, examples)
    if judged is not None and differ is not None:
        _show_judged(judged, differ, result, rows, examples)
    if out is not None:
        _write(out, source, method, tables, result, judged, differ, rows)
    if read.failed:
        typer.echo(f"\n{len(read.failed)} questions have no response and are left out:", err=True)
        for line in read.failed[:examples]:
            typer.echo(f"  {line}", err=True)
    if read.failed or (judged is not None and judged.n_unread):
        raise typer.Exit(1)


def _refuse_without_judge(given: dict[str, Any]) -> None:
    for name, value in given.items():
        if value is not None:
            raise JudgeSenseError(
                f"--{name.replace('_', '-')} is about the judge; name one with --judge"
            )


def _load(judge: str, wanted: dict[str, Any], prompt: str, rows: Sequence[Response]) -> Any:
    from dataclasses import replace

    from local_judges.llm_matcher import MAX_TOKENS, check_prompt
    from local_judges.registry import resolve

    check_prompt(prompt)
    if missing := [row.place for row in rows if row.question is None]:
        raise JudgeSenseError(
            f"{missing[0]}: no question, which a judge needs (--columns question=COLUMN)"
        )
    spec = resolve(judge, **wanted, system_prompt="")
    if wanted.get("max_tokens") is not None:
        return spec
    # A model that reasons first needs what its entry allows.
    cap = max(MAX_TOKENS, spec.options.get("max_tokens", 0))
    return replace(spec, options={**spec.options, "max_tokens": cap})


def _judge(spec: Any, prompt: str, rows: Sequence[Response]) -> JudgedMatches:
    from local_judges.llm_matcher import judge_matches

    judge = spec.load()
    try:
        return judge_matches(
            judge,
            [row.question or "" for row in rows],
            [row.reference for row in rows],
            [row.text for row in rows],
            prompt,
        )
    finally:
        judge.close()


def _show_scores(name: str, table: Sequence[ModelScores]) -> None:
    from judgesense.matching.scores import mean_rank_correlation

    typer.echo(f"Scored by {name}")
    for model in table:
        width = max(len("mean ± std"), *map(len, model.by_template))
        typer.echo(f"  {model.model}")
        for template, cell in model.by_template.items():
            of = f"n={cell.n_scored}" + ("" if cell.n_scored == cell.n else f" of {cell.n}")
            typer.echo(f"    {template:<{width}}  {_figure(cell.score)}  {of}")
        spread = f"{_figure(model.mean)} ± {_figure(model.std)}"
        typer.echo(
            f"    {'mean ± std':<{width}}  {spread}  over {len(model.by_template)} templates"
        )
    if (rho := mean_rank_correlation(table)) is not None:
        typer.echo(f"  mean Spearman's rho of the models' ranking over template pairs: {rho:.4f}")
    typer.echo("")


def _figure(value: float | None) -> str:
    return "     -" if value is None else f"{value:.4f}"


def _show_unread(result: AnswerMatch, rows: Sequence[Response], examples: int) -> None:
    if cut := sum(row.truncated for row in rows):
        typer.echo(f"{cut} of {len(rows)} responses were cut off at the token cap")
    unread = [i for i, value in enumerate(result.readings) if value is None]
    reasons = "; ".join(f"{n} {problem}" for problem, n in result.problem_counts.items())
    typer.echo(
        f"{len(unread)} of {result.n} responses could not be read by {result.method}"
        f"{f' ({reasons})' if reasons else ''}: they score 0"
    )
    for i in unread[:examples]:
        typer.echo(f"  {_example(rows[i])}  [{result.problems[i]}]")
    wrong = [i for i, s in enumerate(result.per_example) if s == 0 and result.readings[i]]
    typer.echo(f"{len(wrong)} were read and score 0")
    for i in wrong[:examples]:
        typer.echo(f"  {_example(rows[i])}  [read as {_short(result.readings[i] or '', 60)!r}]")


def _show_judged(
    judged: JudgedMatches,
    differ: Disagreement,
    result: AnswerMatch,
    rows: Sequence[Response],
    examples: int,
) -> None:
    from collections import Counter

    rate = "undefined" if differ.rate is None else f"{differ.rate:.4f}"
    typer.echo(
        f"\n{result.method} and {judged.judge} differ on a share of {rate}: both right "
        f"{differ.both_right}, both wrong {differ.both_wrong}, no verdict "
        f"{len(differ.no_verdict)} (score {judged.score_low:.4f} to {judged.score_high:.4f})"
    )
    for heading, found in (
        ("right for the judge alone", differ.missed),
        (f"right for {result.method} alone", differ.invented),
        ("no verdict", differ.no_verdict),
    ):
        typer.echo(f"{len(found)} {heading}")
        for i in found[:examples]:
            typer.echo(f"  {_example(rows[i])}  [{_short(judged.reasons[i], 120)}]")
    outcomes = Counter(outcome for outcome in judged.outcomes if outcome != "ok")
    for outcome, number in outcomes.items():
        typer.echo(f"no verdict, {outcome}: {number}")


def _example(row: Response) -> str:
    where = f"{row.model} {row.template_id} {row.item_id}"
    return f"{where}: {_short(row.text, 120)!r} for {_short(str(row.reference), 60)!r}"


def _short(text: str, length: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= length else f"{flat[: length // 2]} … {flat[-length // 2 :]}"


def _write(
    out: Path,
    source: Path,
    method: str,
    tables: dict[str, list[ModelScores]],
    result: AnswerMatch,
    judged: JudgedMatches | None,
    differ: Disagreement | None,
    rows: Sequence[Response],
) -> None:
    from dataclasses import asdict

    import pyarrow as pa
    import pyarrow.parquet as pq

    summary = {
        "source": source.name,
        "method": method,
        "n": result.n,
        "n_unread": result.n_unread,
        "problems": result.problem_counts,
        "scores": {name: [asdict(model) for model in table] for name, table in tables.items()},
        "judge": None if judged is None else {"name": judged.judge, "prompt": judged.prompt},
        "disagreement": None if differ is None else differ.as_dict(),
    }
    table = {
        "model": [row.model for row in rows],
        "template_id": [row.template_id for row in rows],
        "item_id": [row.item_id for row in rows],
        "score": result.per_example,
        "reading": pa.array(result.readings, pa.string()),
        "problem": result.problems,
    }
    if judged is not None:
        table["judged"] = pa.array(judged.per_example, pa.float64())
        table["judged_outcome"] = judged.outcomes
        table["judge_reason"] = judged.reasons
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "match.json").write_text(json.dumps(summary, indent=2, ensure_ascii=False), "utf-8")
        pq.write_table(pa.table(table), out / "matches.parquet", compression="zstd")
    except OSError as error:
        raise JudgeSenseError(f"cannot write to {out}: {error.strerror or error}") from error
    typer.echo(f"\nWritten to {out}: match.json, matches.parquet")
