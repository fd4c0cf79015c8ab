"""Reports as Markdown, LaTeX and a badge; the page shares their data and templates."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesense.measure.assessment import ReportContents
from judgesense.measure.card import CHECKS, TRUST
from judgesense.reporting.palette import BADGE, FEWEST_PAIRS, LOWEST_AGREEMENT, MARKS, TEMPLATES
from judgesense.reporting.side_tables import side_tables
from judgesense.reporting.tables import (
    BASELINE_NOTE,
    COLUMNS,
    LEGEND,
    TEXT_COLUMNS,
    advice,
    rows,
    steady_threshold,
)
from judgesense.text import (
    interval,
    join,
    number,
    p_value,
    percent,
    printable,
    sentence,
    short_names,
    shorten,
    signed,
)

if TYPE_CHECKING:
    from jinja2 import Environment

BADGE_FILE = "badge.svg"

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#~$!])")
_BLANK_LINES = re.compile(r"\n{3,}")
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "κ": r"$\kappa$",
        "≈": r"$\approx$",
        "−": r"$-$",
        "–": "--",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\textquotedbl{}",
    }
)


@cache
def environment(folder: Path = TEMPLATES) -> Environment:
    """The templates of a folder; HTML ones escape whatever they print."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    templates = Environment(
        loader=FileSystemLoader(folder),
        autoescape=select_autoescape(["html", "svg"]),
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    for filter_ in (number, p_value, percent, sentence, shorten, signed):
        templates.filters[filter_.__name__] = filter_
    templates.filters |= {"md": escape_markdown, "tex": escape_latex}
    templates.globals |= {
        "interval": interval,
        "listed": join,
        "marks": MARKS,
        "lowest": LOWEST_AGREEMENT,
        "fewest": FEWEST_PAIRS,
    }
    return templates


def script_of(*names: str) -> dict[str, str]:
    """The one script of a page, from files of `TEMPLATES`, and the hash that lets it run."""
    from markupsafe import Markup

    script = "\n".join((TEMPLATES / name).read_text("utf-8") for name in names)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return {"script": Markup(script), "script_hash": f"sha256-{digest}"}


def render(template: str, report: ReportContents, **more: Any) -> str:
    """A report laid out by a template."""
    templates, table = environment(), rows(report)
    used: dict[str, set[str]] = {}
    for entry in report.assessments:
        for name in CHECKS:
            if name in entry.card.checks:  # An earlier version's report lacks `resistant`.
                used.setdefault(name, set()).add(f"{entry.card.checks[name].threshold:g}")
    thresholds = [
        f"{name} {' or '.join(sorted(values))}{' (by kind of change)' * (len(values) > 1)}"
        for name, values in used.items()
    ]
    method = templates.get_template("method.txt").render(
        baseline_note=BASELINE_NOTE, thresholds=", ".join(thresholds)
    )
    return templates.get_template(template).render(
        runs=[run_facts(run) for run in report.runs if run],
        rows=table,
        tasks=[(task, list(group)) for task, group in groupby(table, lambda row: row.entry.task)],
        columns=COLUMNS,
        text_columns=TEXT_COLUMNS,
        legend=LEGEND,
        sides=side_tables(report),
        advice=advice(report),
        method=method.splitlines(),
        cells=[(entry, cell) for entry in report.measured for cell in entry.cells],
        notes=report.notes,
        search=report.search,
        threshold=steady_threshold(report),
        **more,
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


def _shown(value: Any) -> Any:
    """A value as templates print it: text without direction marks and escape codes."""
    is_text = isinstance(value, str) and not hasattr(value, "__html__")
    return printable(value.replace("\r\n", "\n")) if is_text else value


def escape_markdown(text: object) -> str:
    """Text that Markdown (and the HTML within it) shows as it is, on one line."""
    return _MARKDOWN.sub(r"\\\1", printable(" ".join(str(text).split())))


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it is, on one line."""
    return " ".join(text.split()).translate(_LATEX)


def render_markdown(report: ReportContents) -> str:
    """The report as Markdown."""
    text = render("report.md", report)
    return _BLANK_LINES.sub("\n\n", text).rstrip() + "\n"


def render_latex(report: ReportContents) -> str:
    """The table as LaTeX (needs ``booktabs`` and ``textcomp``), signatures as comments."""
    return render("report.tex", report)


def render_badge(report: ReportContents) -> str:
    """The badge of a report as SVG: who is judged, and the trust values, worst first.

    One judge on one task shows its value; several show how many have each. The title, which
    screen readers and a pointer show, lists every judge and task. The file requests nothing.
    """
    entries = report.assessments
    names = short_names({entry.judge for entry in entries})
    counts = Counter(entry.card.trust for entry in entries)
    judges = list(dict.fromkeys(names[entry.judge] for entry in entries))
    tasks = list(dict.fromkeys(entry.task for entry in entries))
    who = judges[0] if len(judges) == 1 else f"{len(judges)} judges"
    on = f" on {tasks[0]}" if len(tasks) == 1 else ""
    label = shorten(f"{who}{on}" if entries else "LLM judge", 48)
    values = [trust for trust in reversed(TRUST) if counts[trust]]
    worst = values[0] if values else "unknown"
    texts = [trust if len(values) == 1 else f"{trust} {counts[trust]}" for trust in values]
    value = f"{MARKS[worst]} {', '.join(texts) or worst}"
    cards = [f"{names[e.judge]} on {e.task} ({e.scoring}): {e.card.trust}" for e in entries]
    label_width, value_width = (round(6.6 * len(text)) + 12 for text in (label, value))
    return (
        environment()
        .get_template(BADGE_FILE)
        .render(
            title=f"JudgeSense trust. {join(cards) if cards else 'No judge was measured'}.",
            label=label,
            value=value,
            label_width=label_width,
            value_width=value_width,
            colour=BADGE[worst],
        )
    )
