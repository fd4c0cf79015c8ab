"""``judgesense respond``: let a model answer questions in free text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from judgesense.cli import options as opt


def respond(
    responder: Annotated[str, opt.option("MODEL", "The model that answers.", "--responder", "-r")],
    questions: Annotated[
        Path,
        opt.option(
            "FILE",
            "JSONL, CSV or Parquet with item_id, template_id, message and, for choices, "
            "options (in CSV a JSON list).",
            "--questions",
            "-q",
        ),
    ],
    out: opt.Out,
    engine: opt.Engine = None,
    base_url: opt.BaseUrl = None,
    model: opt.Model = None,
    max_cost: opt.MaxCost = None,
    settings: opt.Settings = None,
    repeats: opt.Repeats = 1,
    seed: opt.Seed = 0,
    format: opt.Format = "text",
) -> None:
    """Collect a model's free-text answers in a response log for judgesense match.

    Answers have at most 512 tokens (--set max_tokens=N). Interrupt it at any time; rerun the same
    command to resume.

    Exit codes: 0 done; 1 some questions have no answer; 2 bad usage or input.
    """
    from judgesense.pipeline.response_tables import read_questions
    from local_judges.responder import respond as ask

    options = opt.judge_options(
        settings, engine=engine, base_url=base_url, model=model, max_cost=max_cost
    )
    asked = list(read_questions(questions))
    log = ask(responder, asked, out, seed=seed, repeats=repeats, note=opt.note, **options)
    reasons = log["finish_reason"].to_pylist()
    counts = Counter(reasons)
    name = log["model"][0].as_py()
    told = ", ".join(f"{number} {reason}" for reason, number in counts.items())
    opt.output(
        format,
        lambda: {"out": str(out), "model": name, "responses": len(reasons),
                 "finish_reasons": dict(counts)},
        lambda: f"{name}: {len(reasons)} responses ({told}) in {out}",
    )  # fmt: skip
    if "error" in reasons:
        raise typer.Exit(1)
