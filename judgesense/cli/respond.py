"""``judgesense respond``: let a model answer questions in free text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from judgesense.cli.options import (
    BaseUrl,
    Engine,
    MaxCost,
    Model,
    Out,
    Repeats,
    Seed,
    Settings,
    judge_options,
    note,
)


def respond(
    responder: Annotated[
        str, typer.Option("--responder", "-r", metavar="MODEL", help="The model that answers.")
    ],
    questions: Annotated[
        Path,
        typer.Option(
            "--questions", "-q", metavar="FILE",
            help="JSONL, CSV or Parquet with item_id, template_id, message and, for choices, "
            "options (in CSV a JSON list).",
        ),
    ],
    out: Out,
    engine: Engine = None,
    base_url: BaseUrl = None,
    model: Model = None,
    max_cost: MaxCost = None,
    settings: Settings = None,
    repeats: Repeats = 1,
    seed: Seed = 0,
) -> None:  # fmt: skip
    """Let a model answer questions in free text, into a response log for judgesense match.

    Answers have at most 512 tokens (--set max_tokens=N). Interrupt it at any time; rerun the same
    command to resume.

    Exit codes: 0 done; 1 some questions have no answer; 2 bad usage or input.
    """
    from judgesense.pipeline.response_tables import read_questions
    from local_judges.responder import respond as ask

    options = judge_options(
        settings, engine=engine, base_url=base_url, model=model, max_cost=max_cost
    )
    asked = list(read_questions(questions))
    log = ask(responder, asked, out, seed=seed, repeats=repeats, note=note, **options)
    reasons = log["finish_reason"].to_pylist()
    counts = ", ".join(f"{reasons.count(reason)} {reason}" for reason in dict.fromkeys(reasons))
    typer.echo(f"{log['model'][0].as_py()}: {len(reasons)} responses ({counts}) in {out}")
    if "error" in reasons:
        raise typer.Exit(1)
