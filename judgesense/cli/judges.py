"""``judgesense judges``: the named judges, what is known about each, and the options of engines."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from judgesense.cli import options as opt
from judgesense.errors import JudgeSenseError
from judgesense.text import aligned, brackets, number

if TYPE_CHECKING:
    from judgesense.published import PublishedFigure
    from local_judges.judge_files import JudgeEntry


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
            (entry.model or "(not stated)") + " (floating)" * bool(entry.model and entry.floating),
            ", ".join(entry.papers) or ("your file" if entry.file else ""),
        )
        for entry in entries().values()
    ]
    notes = ["", "You can also pass a Hub id, a model folder or a GGUF file as a judge."]
    if (path := user_file()) is not None:
        notes.append(f"Your own judges: {path}")
    _table(format, "judges", ("judge", "engine", "model", "papers"), rows, notes)


def _list_options(format: str) -> None:
    from local_judges.options import setting_rows

    _table(format, "options", ("key", "engines", "default", "meaning"), setting_rows())


def _table(
    format: str,
    name: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str] = (),
) -> None:
    opt.output(
        format,
        lambda: {name: [dict(zip(columns, row, strict=True)) for row in rows]},
        lambda: "\n".join([*aligned([columns, *rows]), *notes]),
    )


def _show(name: str, format: str) -> None:
    from judgesense.published import to_show
    from local_judges.registry import entry

    judge, figures = entry(name), to_show(name)
    opt.output(
        format,
        lambda: {**judge.model_dump(), "published": [asdict(figure) for figure in figures]},
        lambda: "\n".join([*_facts(judge), *_published(figures)]),
    )


def _published(figures: Sequence[PublishedFigure]) -> Iterator[str]:
    """The published JSS of a judge as a table, and where each figure is from."""
    from judgesense.published import WORDINGS

    if not figures:
        return
    numbered: dict[str, int] = {}
    rows = []
    for figure in figures:
        notes = (f"{figure.source}, as {figure.published_as}", *figure.notes)
        marks = [numbered.setdefault(note, len(numbered) + 1) for note in notes]
        rows.append(
            (
                figure.task,
                figure.labels,
                number(figure.jss),
                brackets(figure.ci_low, figure.ci_high),
                number(figure.kappa),
                str(figure.n_pairs),
                ",".join(map(str, marks)),
            )
        )
    yield f"\nPublished JSS, {WORDINGS}:\n"
    yield from aligned([("task", "labels", "JSS", "95% interval", "kappa", "n", "notes"), *rows])
    yield ""
    yield from (f"  {place}  {note}" for note, place in numbered.items())


def _facts(judge: JudgeEntry) -> list[str]:
    """A judge's settings and what is stated of it, a line each."""
    from local_judges.api.keys import is_here
    from local_judges.options import KEY_VARIABLE, REMOTE

    options: dict[str, Any] = dict(judge.options)
    model = judge.model or "not stated by any source; add --set model=ID"
    if judge.model is not None and judge.floating:
        model += " (a name that may come to mean another checkpoint)"
    facts: dict[str, object] = {"engine": judge.engine, "model": model}
    if judge.engine in REMOTE:
        provider = "Hugging Face, provider " if "provider" in options else ""
        where = options.pop("base_url", None) or options.pop("provider", None)
        facts["endpoint"] = f"{provider}{where}" if where else "not stated; add --set base_url=URL"
        named = options.pop("key_variable", None)
        variable = named or KEY_VARIABLE
        state = "set" if os.environ.get(variable) else "not set"
        is_keyless = named is None and is_here(where)
        facts["key"] = "none: it is on this machine" if is_keyless else f"${variable} ({state})"
        facts["price"] = "not stated; --set price=INPUT,OUTPUT"
        if known := judge.price:
            facts["price"] = (
                f"{known.input:g} in, {known.output:g} out, US dollars per million tokens "
                f"({known.source}, {known.date})"
            )
    facts |= {k: v for k, v in options.items() if k not in ("style", "floating", "price")}
    facts |= {f"style.{key}": value for key, value in options.get("style", {}).items()}
    facts |= {"defined in": judge.file or "the package", **judge.papers}
    lines = [f"{name}: {value}" for name, value in facts.items()]
    lines += [f"note: {note}" for note in judge.notes]
    return [f"{judge.name}: {judge.summary}", *(f"  {line}" for line in lines)]
