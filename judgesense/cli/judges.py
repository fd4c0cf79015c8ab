"""``judgesense judges``: the named judges, what is known about each, and the options of engines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError
from judgesense.text import aligned

if TYPE_CHECKING:
    from judgesense.published import PublishedFigure
    from local_judges.judge_files import JudgeEntry

_COLUMNS = ("judge", "engine", "model", "papers")


def judges(
    what: Annotated[Literal["list", "show"], typer.Argument(help="All judges, or one.")],
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The judge to show.")] = None,
    options: Annotated[
        bool,
        typer.Option("--options", help="List the options of the engines instead of the judges."),
    ] = False,
    format: opt.Format = "text",
) -> None:
    """List the named judges (engine or endpoint, model, papers), or show one.

    judges show prints a judge's settings, what papers state about it, and its published JSS.
    """
    if (what == "show") == (name is None) or (options and what == "show"):
        raise JudgeSenseError("expected judges list, judges list --options or judges show NAME")
    if options:
        _list_options(format)
    elif name is not None:
        _show(name, format)
    else:
        _list_judges(format)


def _list_judges(format: str) -> None:
    from local_judges.judge_files import entries, user_file

    rows = [
        (
            entry.name,
            entry.endpoint or entry.engine,
            f"{entry.model or '(not stated)'}"
            f"{' (floating)' if entry.model and entry.floating else ''}",
            ", ".join(entry.papers) or ("your file" if entry.file else ""),
        )
        for entry in entries().values()
    ]
    lines = aligned([_COLUMNS, *rows])
    lines.append("\nYou can also pass a Hub id, a model folder or a GGUF file as a judge.")
    if (path := user_file()) is not None:
        lines.append(f"Your own judges: {path}")
    opt.output(
        format,
        lambda: {"judges": [dict(zip(_COLUMNS, row, strict=True)) for row in rows]},
        lambda: "\n".join(lines),
    )


def _show(name: str, format: str) -> None:
    from judgesense.published import to_show
    from local_judges.registry import entry

    judge, figures = entry(name), to_show(name)
    opt.output(
        format,
        lambda: {**judge.model_dump(), "published": [asdict(figure) for figure in figures]},
        lambda: _print(judge, figures),
    )


def _print(judge: JudgeEntry, figures: Sequence[PublishedFigure]) -> None:
    from judgesense.published import WORDINGS

    opt.echo(f"{judge.name}: {judge.summary}")
    for label, text in _facts(judge):
        opt.echo(f"  {label}: {text}")
    for paper, stated in judge.papers.items():
        opt.echo(f"  {paper}: {stated}")
    for note in judge.notes:
        opt.echo(f"  note: {note}")
    if not figures:
        return
    opt.echo(f"\nPublished JSS, {WORDINGS}:\n")
    numbered: dict[str, int] = {}
    rows = []
    for figure in figures:
        notes = (f"{figure.source}, as {figure.published_as}", *figure.notes)
        marks = [numbered.setdefault(note, len(numbered) + 1) for note in notes]
        interval = (
            "" if figure.ci_low is None else f"[{figure.ci_low:.3f}, {figure.ci_high or 0:.3f}]"
        )
        kappa = "" if figure.kappa is None else f"{figure.kappa:.3f}"
        rows.append(
            (
                figure.task,
                figure.labels,
                f"{figure.jss:.3f}",
                interval,
                kappa,
                str(figure.n_pairs),
                ",".join(map(str, marks)),
            )
        )
    columns = ("task", "labels", "JSS", "95% interval", "kappa", "n", "notes")
    opt.echo("\n".join(aligned([columns, *rows])) + "\n")
    for note, number in numbered.items():
        opt.echo(f"  {number}  {note}")


def _list_options(format: str) -> None:
    from local_judges.options import rows

    columns = ("key", "engines", "default", "meaning")
    listed = rows()
    opt.output(
        format,
        lambda: {"options": [dict(zip(columns, row, strict=True)) for row in listed]},
        lambda: "\n".join(aligned([columns, *listed])),
    )


def _facts(judge: JudgeEntry) -> list[tuple[str, str]]:
    from local_judges.api.endpoint import is_here
    from local_judges.options import KEY_VARIABLE, REMOTE

    options: dict[str, Any] = dict(judge.options)
    model = judge.model or "not stated by any source; add --set model=ID"
    if judge.model is not None and judge.floating:
        model += " (a name that may come to mean another checkpoint)"
    facts = [("engine", judge.engine), ("model", model)]
    if judge.engine in REMOTE:
        where = options.pop("base_url", None) or options.pop("provider", None)
        provider = "Hugging Face, provider " if "provider" in judge.options else ""
        facts.append(
            ("endpoint", f"{provider}{where}" if where else "not stated; add --set base_url=URL")
        )
        named = options.pop("key_variable", None)
        variable = named or KEY_VARIABLE
        state = "set" if os.environ.get(variable) else "not set"
        none = named is None and is_here(where)
        facts.append(("key", "none: it is on this machine" if none else f"${variable} ({state})"))
        price = "not stated; --set price=INPUT,OUTPUT"
        if known := judge.price:
            price = (
                f"{known.input:g} in, {known.output:g} out, US dollars per million tokens "
                f"({known.source}, {known.date})"
            )
        facts.append(("price", price))
    shown = {k: v for k, v in options.items() if k not in ("style", "floating", "price")}
    shown |= {f"style.{key}": value for key, value in options.get("style", {}).items()}
    facts += [(key, str(value)) for key, value in shown.items()]
    return [*facts, ("defined in", judge.file or "the package")]
