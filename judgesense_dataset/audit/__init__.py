"""Audit a dataset: what its rows can and cannot show about judges, before any is asked."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from judgesense.reporting.documents import escape_markdown as escape
from judgesense.text import aligned, s
from judgesense_dataset.audit.checks import CHECKS, ERROR, SEVERITIES, WARNING, Finding, oracle
from judgesense_dataset.audit.rows import TaskRows, read_audit_rows
from judgesense_dataset.audit.shortcuts import (
    BAND,
    FEATURES,
    MODEL,
    POSITION,
    SYSTEM,
    Shortcut,
)
from judgesense_dataset.audit.texts import check_texts

_RULES_TITLE = (
    "Accuracy of rules that do not read. Chance is 0.5 on this scale, intervals are 95% over "
    f"clusters, and {BAND[0]} to {BAND[1]} counts as chance. The model combines length, overlap, "
    "sentences and punctuation, cross-validated over clusters:"
)
_COLUMNS = ("task", "rows", "items", "prompts", "pairs", "oracle raw", "oracle mapped", "gold")


@dataclass(frozen=True)
class TaskAudit:
    """The audit of one task; ``gold`` counts rows by gold label, in the task's order.

    ``items`` counts different contents, ``prompts`` different texts, and ``pairs`` different
    pairs of texts, whatever their ids. The oracle knows every gold label and understands every
    wording; its JSS is None if no row has a gold label. ``shortcuts`` holds, by name, what shallow
    rules and a small cross-validated model achieve.
    """

    rows: int
    items: int
    prompts: int
    pairs: int
    gold: dict[str, int]
    oracle_jss_raw: float | None
    oracle_jss_mapped: float | None
    findings: tuple[Finding, ...]
    shortcuts: dict[str, Shortcut] = field(default_factory=dict)


@dataclass(frozen=True)
class Audit:
    """The audit of a dataset, by task."""

    dataset: str
    tasks: dict[str, TaskAudit]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values: ``{"tasks": {name: ...}}``."""
        tasks = {name: asdict(task) for name, task in self.tasks.items()}
        for name, task in self.tasks.items():
            tasks[name]["findings"] = list(tasks[name]["findings"])
            tasks[name]["shortcuts"] = {m.name: m.to_dict() for m in task.shortcuts.values()}
        return {"tasks": tasks}

    @property
    def failed(self) -> bool:
        """Whether any finding is an error."""
        return any(f.severity == ERROR for task in self.tasks.values() for f in task.findings)


def audit(
    dataset: str | Path | None = None,
    *,
    revision: str | None = None,
    exclude: Collection[str] = (),
) -> Audit:
    """Audit a Hub dataset, a dataset folder, a ``.jsonl`` file, or the embedded benchmark (None).

    ``exclude`` are the ids of pairs to leave out. Faults become findings; JudgeSenseError is
    raised only for unreadable input, naming file, row and column.

    >>> result = audit("embedded")
    >>> result.failed, result.tasks["coherence"].pairs
    (False, 250)
    """
    tasks = read_audit_rows(dataset, revision, exclude)
    return Audit(str(dataset or "embedded"), {name: _audit(task) for name, task in tasks.items()})


def _audit(task: TaskRows) -> TaskAudit:
    of_texts, shortcuts = check_texts(task)
    findings = [finding for check in CHECKS for finding in check(task)] + of_texts
    gold = Counter(row.gold for row in task.rows if row.gold is not None)
    score = oracle(task.rows)
    return TaskAudit(
        rows=len(task.rows),
        items=len(set(task.roots.values())),
        prompts=len({prompt.text for row in task.rows for prompt in row.prompts}),
        pairs=len(task.distinct),
        gold={
            label: gold[label]
            for label in (*task.labels, *sorted(set(gold) - set(task.labels)))
            if gold[label]
        },
        oracle_jss_raw=score.raw,
        oracle_jss_mapped=score.mapped,
        findings=tuple(sorted(findings, key=lambda f: SEVERITIES.index(f.severity))),
        shortcuts=shortcuts,
    )


def render(audit: Audit, form: str) -> str:
    """The audit as text, Markdown or JSON. Markdown has no heading, so that a card can hold it."""
    return {"text": _text, "md": _markdown, "json": _json}[form](audit)


def _json(audit: Audit) -> str:
    return json.dumps(audit.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)


def _text(audit: Audit) -> str:
    lines = [f"Audit of {audit.dataset}: {_summary(audit)}", "", *aligned(_counts(audit))]
    if rules := _rules(audit):
        lines += ["", _RULES_TITLE, "", *aligned(rules)]
    for name, task in audit.tasks.items():
        lines += ["", f"{name}:"]
        for finding in task.findings:
            lines += textwrap.wrap(
                f"{finding.severity:7}  {finding.code}: {finding.message}",
                width=100,
                initial_indent="  ",
                subsequent_indent=" " * 11,
                break_long_words=False,
                break_on_hyphens=False,
            )
    return "\n".join(lines)


def _markdown(audit: Audit) -> str:
    def table(rows: list[tuple[str, ...]]) -> list[str]:
        head, *body = ["| " + " | ".join(row) + " |" for row in rows]
        return [head, "| --- " * len(rows[0]) + "|", *body]

    lines = [f"{_summary(audit).capitalize()}.", "", *table(_counts(audit))]
    if rules := _rules(audit):
        lines += ["", _RULES_TITLE, "", *table(rules)]
    for name, task in audit.tasks.items():
        lines += ["", f"**{name}**", ""]
        lines += [f"- {f.severity} `{f.code}`: {escape(f.message)}" for f in task.findings]
    return "\n".join(lines)


def _counts(audit: Audit) -> list[tuple[str, ...]]:
    """The table of counts, oracle scores and gold labels: a row a task."""
    table: list[tuple[str, ...]] = [_COLUMNS]
    for name, task in audit.tasks.items():
        gold = ", ".join(f"{label}: {rows}" for label, rows in task.gold.items())
        scores = (
            "undefined" if score is None else f"{score:.4f}"
            for score in (task.oracle_jss_raw, task.oracle_jss_mapped)
        )
        numbers = map(str, (task.rows, task.items, task.prompts, task.pairs))
        table.append((name, *numbers, *scores, gold or "none"))
    return table


def _rules(audit: Audit) -> list[tuple[str, ...]]:
    """The table of what shallow rules achieve: a row a task, a column a rule."""
    present = {name for task in audit.tasks.values() for name in task.shortcuts}
    names = [name for name in (POSITION, *FEATURES, SYSTEM, MODEL) if name in present]
    if not names:
        return []
    rows = [
        (task, *(_rule(of_task.shortcuts.get(name)) for name in names))
        for task, of_task in audit.tasks.items()
    ]
    return [("task", *names), *rows]


def _rule(shortcut: Shortcut | None) -> str:
    if shortcut is None:
        return "-"
    if shortcut.ci_low is None or shortcut.ci_high is None:
        return f"{shortcut.accuracy:.2f}"
    return f"{shortcut.accuracy:.2f} [{shortcut.ci_low:.2f}, {shortcut.ci_high:.2f}]"


def _summary(audit: Audit) -> str:
    severities = [f.severity for task in audit.tasks.values() for f in task.findings]
    counts = ((severities.count(name), name) for name in (ERROR, WARNING))
    return " and ".join(f"{n} {name}{s(n)}" for n, name in counts)
