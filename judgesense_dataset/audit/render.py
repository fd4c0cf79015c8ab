"""An audit as plain text, Markdown or JSON, and a validation as text."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import Any

from judgesense.reporting.markdown import escape
from judgesense.text import aligned
from judgesense_dataset.audit import Audit, TaskAudit

FORMATS = ("text", "md", "json")
_COLUMNS = ("task", "rows", "items", "prompts", "pairs", "oracle raw", "oracle mapped", "gold")


def render(audit: Audit, form: str) -> str:
    """The audit as text, Markdown or JSON. Markdown has no heading, so that a card can hold it."""
    return {"text": _text, "md": _markdown, "json": _json}[form](audit)


def _json(audit: Audit) -> str:
    return json.dumps(audit.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def _text(audit: Audit) -> str:
    table = [_COLUMNS, *(_cells(name, task) for name, task in audit.tasks.items())]
    lines = [f"Audit of {audit.dataset}: {_summary(audit)}", "", *aligned(table)]
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
    for name, task in audit.tasks.items():
        lines += ["", f"**{name}**", ""]
        lines += [f"- {f.severity} `{f.code}`: {escape(f.message)}" for f in task.findings]
    return "\n".join(lines)


def render_validation(record: Mapping[str, Any]) -> str:
    """A validation's record as text: the consensus, each validator, and their agreement."""
    tasks = [("task", "valid", "invalid", "undecided")]
    tasks += [(name, *map(str, counts.values())) for name, counts in record["tasks"].items()]
    names = ("yes", "no", "silent", "inverted", "mean_score")
    validators = [("validator", *names)]
    for said in record["validators"]:
        validators.append((said["validator"], *(_number(said[name]) for name in names)))
    agreement = [("agreement of", "and", "pairs", "percent", "kappa")]
    for found in record["agreement"]:
        numbers = (found["n"], found["percent"], found["kappa"])
        agreement.append((found["a"], found["b"], *map(_number, numbers)))
    measured = record["surface"]
    lines = [*aligned(tasks), "", *aligned(validators), "", *aligned(agreement), ""]
    lines.append(f"over {measured['n']} distinct pairs of wordings (mean, standard deviation):")
    for name in ("edit_distance", "cosine"):
        m = measured[name]
        lines.append(
            f"  {name.replace('_', ' ')} {m['mean']:.3f}, {m['sd']:.3f} (second paper: "
            f"{m['paper_mean']:.3f}, {m['paper_sd']:.2f})"
        )
    return "\n".join(lines)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.3f}"


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
    return " and ".join(f"{n} {name}{'' if n == 1 else 's'}" for n, name in counts)
