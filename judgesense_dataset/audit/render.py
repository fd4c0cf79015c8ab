"""An audit as plain text, Markdown or JSON, and a validation as text."""

from __future__ import annotations

import json
import textwrap

from judgesense.reporting.documents import escape_markdown as escape
from judgesense.text import aligned, s
from judgesense_dataset.audit import Audit, TaskAudit
from judgesense_dataset.audit.chance import (
    BAND,
    FEATURES,
    MODEL,
    POSITION,
    SYSTEM,
    Shortcut,
)

FORMATS = ("text", "md", "json")
_RULES_TITLE = (
    "Accuracy of rules that do not read. Chance is 0.5 on this scale, intervals are 95% over "
    f"clusters, and {BAND[0]} to {BAND[1]} counts as chance. The model combines length, overlap, "
    "sentences and punctuation, cross-validated over clusters:"
)
_COLUMNS = ("task", "rows", "items", "prompts", "pairs", "oracle raw", "oracle mapped", "gold")


def render(audit: Audit, form: str) -> str:
    """The audit as text, Markdown or JSON. Markdown has no heading, so that a card can hold it."""
    return {"text": _text, "md": _markdown, "json": _json}[form](audit)


def _json(audit: Audit) -> str:
    return json.dumps(audit.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def _text(audit: Audit) -> str:
    table = [_COLUMNS, *(_cells(name, task) for name, task in audit.tasks.items())]
    lines = [f"Audit of {audit.dataset}: {_summary(audit)}", "", *aligned(table)]
    if rules := _rules(audit):
        lines += ["", _RULES_TITLE, "", *aligned(rules)]
    for name, task in audit.tasks.items():
        lines += ["", f"{name}:"]
        for finding in task.findings:
            wrapped = textwrap.wrap(
                f"{finding.severity:7}  {finding.code}: {finding.message}",
                width=100,
                initial_indent="  ",
                subsequent_indent=" " * 11,
                break_long_words=False,
                break_on_hyphens=False,
            )
            lines += wrapped
    return "\n".join(lines)


def _markdown(audit: Audit) -> str:
    lines = [
        f"{_summary(audit).capitalize()}.",
        "",
        "| " + " | ".join(_COLUMNS) + " |",
        "| --- " * len(_COLUMNS) + "|",
    ]
    lines += ["| " + " | ".join(_cells(*entry)) + " |" for entry in audit.tasks.items()]
    if rules := _rules(audit):
        head, *body = ["| " + " | ".join(row) + " |" for row in rules]
        lines += ["", _RULES_TITLE, "", head, "| --- " * len(rules[0]) + "|", *body]
    for name, task in audit.tasks.items():
        lines += ["", f"**{name}**", ""]
        lines += [f"- {f.severity} `{f.code}`: {escape(f.message)}" for f in task.findings]
    return "\n".join(lines)


def _rules(audit: Audit) -> list[tuple[str, ...]]:
    """The table of what shallow rules achieve: a row a task, a column a rule."""
    present = {name for task in audit.tasks.values() for name in task.shortcuts}
    names = [name for name in (POSITION, *FEATURES, SYSTEM, MODEL) if name in present]
    if not names:
        return []
    rows = [
        (task, *(_rule(found.shortcuts.get(name)) for name in names))
        for task, found in audit.tasks.items()
    ]
    return [("task", *names), *rows]


def _rule(found: Shortcut | None) -> str:
    if found is None:
        return "-"
    if found.ci_low is None or found.ci_high is None:
        return f"{found.accuracy:.2f}"
    return f"{found.accuracy:.2f} [{found.ci_low:.2f}, {found.ci_high:.2f}]"


def _cells(name: str, task: TaskAudit) -> tuple[str, ...]:
    gold = ", ".join(f"{label}: {rows}" for label, rows in task.gold.items())
    numbers = (task.rows, task.items, task.prompts, task.pairs)
    scores = (task.oracle_jss_raw, task.oracle_jss_mapped)
    return (
        name,
        *map(str, numbers),
        *("undefined" if score is None else f"{score:.4f}" for score in scores),
        gold or "none",
    )


def _summary(audit: Audit) -> str:
    severities = [f.severity for task in audit.tasks.values() for f in task.findings]
    counts = ((severities.count(name), name) for name in ("error", "warning"))
    return " and ".join(f"{n} {name}{s(n)}" for n, name in counts)
