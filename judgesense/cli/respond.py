"""``judgesense respond``: let a model answer questions in free text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgesense.errors import JudgeSenseError

if TYPE_CHECKING:
    from local_judges.responder import Question

MODEL = "The responder"


def respond(
    responder: Annotated[
        str, typer.Option("--responder", "-r", metavar="NAME|HUB_ID|PATH", help="Who answers.")
    ],
    questions: Annotated[
        Path,
        typer.Option(
            "--questions", "-q", metavar="FILE",
            help="item_id, template_id, message and, for choices, options (in CSV a JSON list): "
            "JSONL, CSV, Parquet.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder; given again, it goes on.")],
    max_tokens: Annotated[int, typer.Option(help="Cap on generated tokens.")] = 512,
    temperature: Annotated[
        float | None, typer.Option(help="Sampling temperature. Default: the responder's own, or 0.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Fixes what is drawn at random.")] = 0,
    repeats: Annotated[int, typer.Option(help="Ask each question so often.")] = 1,
    engine: Annotated[
        str | None, typer.Option(help="What runs the model.", rich_help_panel=MODEL)
    ] = None,
    system_prompt: Annotated[
        str | None, typer.Option(help="Default: none.", rich_help_panel=MODEL)
    ] = None,
    thinking: Annotated[
        bool,
        typer.Option("--thinking", help="Let a model think aloud first.", rich_help_panel=MODEL),
    ] = False,
    revision: Annotated[
        str | None, typer.Option(help="The model's Hub revision.", rich_help_panel=MODEL)
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(help="float32, bfloat16, float16.", rich_help_panel=MODEL)
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1, mps.", rich_help_panel=MODEL)
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(help="An OpenAI-compatible endpoint (engine api).", rich_help_panel=MODEL),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="The endpoint's name of the model.", rich_help_panel=MODEL)
    ] = None,
) -> None:  # fmt: skip
    """Let a model answer questions in free text, into a response log for judgesense match.

    Stopped at any moment and given again, it goes on where it was. Exit code 0: done. 1: done,
    but some questions have no answer (they are named). 2: bad input, before a model is loaded.
    """
    from local_judges.responder import respond as ask

    given = {
        "engine": "api" if engine is None and base_url is not None else engine,
        "system_prompt": system_prompt,
        "thinking": thinking or None,
        "revision": revision,
        "dtype": dtype,
        "device": device,
        "base_url": base_url,
        "model": model,
    }
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    log = ask(
        responder,
        list(_read(questions)),
        out,
        max_tokens=max_tokens,
        temperature=temperature,
        seed=seed,
        repeats=repeats,
        note=lambda message: typer.echo(message, err=True),
        **options,
    )
    reasons = log["finish_reason"].to_pylist()
    counts = ", ".join(f"{reasons.count(reason)} {reason}" for reason in dict.fromkeys(reasons))
    typer.echo(f"{log['model'][0].as_py()}: {len(reasons)} responses ({counts}) in {out}")
    if "error" in reasons:
        raise typer.Exit(1)


def _from_cell(text: str) -> list[Any] | None:
    """The JSON list in a cell; None if it is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, list) else None


def _read(path: Path) -> Iterator[Question]:
    from judgesense.importers.files import read_table
    from local_judges.responder import Question

    for record in read_table(path):
        values = record.values
        for name in ("item_id", "template_id", "message"):
            if values.get(name) in (None, ""):
                raise JudgeSenseError(
                    f"{record.place}: no {name}; a question has item_id, template_id, message"
                )
        options = values.get("options") or ()
        if isinstance(options, str):
            options = _from_cell(options)
        if options is None or not all(isinstance(option, str) for option in options):
            raise JudgeSenseError(
                f"{record.place}: options must be a list of texts, in a CSV cell as JSON, got "
                f"{values['options']!r}"
            )
        yield Question(
            str(values["item_id"]),
            str(values["template_id"]),
            str(values["message"]),
            tuple(options),
        )
