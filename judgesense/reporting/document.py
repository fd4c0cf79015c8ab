"""What Markdown, LaTeX and the page share: a report's data, and the templates that lay it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesense.reporting.beside import side_tables
from judgesense.reporting.style import CSS, FEWEST_PAIRS, LOWEST_AGREEMENT, MARKS, TEMPLATES
from judgesense.reporting.table import (
    BASELINE_NOTE,
    COLUMNS,
    LEGEND,
    TEXT_COLUMNS,
    advice_by_case,
    rows,
)
from judgesense.text import interval, number, percent, sentence, shorten
from judgesense.trust.card import CHECKS
from judgesense.trust.thresholds import STEADY_JSS

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment(templates: Path = TEMPLATES) -> Environment:
    """The templates of a folder; HTML ones escape whatever they print."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
    from markupsafe import Markup

    made = Environment(
        loader=FileSystemLoader(templates),
        autoescape=select_autoescape(["html", "svg"]),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    for filter_ in (interval, number, percent, sentence, shorten):
        made.filters[filter_.__name__] = filter_
    made.globals |= {
        "css": Markup(CSS),
        "marks": MARKS,
        "threshold": STEADY_JSS,
        "lowest": LOWEST_AGREEMENT,
        "fewest": FEWEST_PAIRS,
    }
    return made


def render(
    template: str,
    report: Mapping[str, Any],
    filters: Mapping[str, Callable[[str], str]] | None = None,
    **more: Any,
) -> str:
    """A report laid out by a template, which prints names and texts through the filters."""
    made = environment()
    made.filters.update(filters or {})
    table = rows(report)
    method = made.get_template("method.txt").render(
        baseline_note=BASELINE_NOTE, thresholds=_thresholds(report)
    )
    return made.get_template(template).render(
        runs=[run_facts(run) for run in report["runs"] if run],
        rows=table,
        tasks=[
            (task, list(group)) for task, group in groupby(table, key=lambda row: row.cell["task"])
        ],
        columns=COLUMNS,
        text_columns=TEXT_COLUMNS,
        legend=LEGEND,
        sides=side_tables(report),
        advice=advice_by_case(report),
        method=method.splitlines(),
        cells=report["cells"],
        notes=report["notes"],
        **more,
    )


def _thresholds(report: Mapping[str, Any]) -> str:
    """The thresholds of the cards, each with every value that was used."""
    used = {
        name: sorted({card["checks"][name]["threshold"] for card in report["trust"]})
        for name in CHECKS
    }
    return ", ".join(
        f"{name} {' or '.join(f'{value:g}' for value in values)}"
        for name, values in used.items()
        if values
    )


def run_facts(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What identifies a run, as names and values."""
    source = run.get("dataset")
    source = source if isinstance(source, Mapping) else {}
    facts = {
        "run": run.get("run_id") or "-",
        "data": source.get("name"),
        "translation": source.get("translation"),
        "data hash": run.get("data_hash"),
        "started": run.get("started"),
        "judgesense": (run.get("versions") or {}).get("judgesense"),
    }
    return [(name, str(value)) for name, value in facts.items() if value]
