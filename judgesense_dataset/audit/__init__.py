"""Audit a dataset: what its rows can and cannot show about judges, before any is asked."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from judgesense.text import aligned, number, s
from judgesense_dataset.audit.checks import ERROR, WARNING, Finding, findings, oracle
from judgesense_dataset.audit.rows import TaskRows, read_audit_rows

_COLUMNS = ("task", "rows", "items", "prompts", "pairs", "oracle raw", "oracle mapped", "gold")


@dataclass(frozen=True)
class TaskAudit:
    """The audit of one task; ``gold`` counts rows by gold label, in the task's order.

    ``items`` counts different contents, ``prompts`` different texts, and ``pairs`` different
    pairs of texts, whatever their ids. The oracle knows every gold label and understands every
    wording; its JSS is None if no row has a gold label.
    """

    rows: int
    items: int
    prompts: int
    pairs: int
    gold: dict[str, int]
    oracle_jss_raw: float | None
    oracle_jss_mapped: float | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Audit:
    """The audit of a dataset, by task."""

    dataset: str
    tasks: dict[str, TaskAudit]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values: ``{"tasks": {name: ...}}``."""
        tasks = {name: asdict(task) for name, task in self.tasks.items()}
        for task in tasks.values():
            task["findings"] = list(task["findings"])
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
    gold = Counter(row.gold for row in task.rows if row.gold is not None)
    raw, _, mapped = oracle(task.rows)
    return TaskAudit(
        rows=len(task.rows),
        items=len(task.clusters) - len(task.twins),
        prompts=len({prompt.text for row in task.rows for prompt in row.prompts}),
        pairs=len(task.distinct),
        gold={label: gold[label] for label in dict.fromkeys((*task.labels, *gold)) if gold[label]},
        oracle_jss_raw=raw,
        oracle_jss_mapped=mapped,
        findings=findings(task),
    )


def render(audit: Audit) -> str:
    """The audit as text: the counts of each task, then its findings."""
    severities = [f.severity for task in audit.tasks.values() for f in task.findings]
    counts = {name: severities.count(name) for name in (ERROR, WARNING)}
    summary = " and ".join(f"{n} {name}{s(n)}" for name, n in counts.items())
    table: list[tuple[str, ...]] = [_COLUMNS]
    for name, task in audit.tasks.items():
        gold = ", ".join(f"{label}: {rows}" for label, rows in task.gold.items())
        scores = (number(score, 4) for score in (task.oracle_jss_raw, task.oracle_jss_mapped))
        numbers = map(str, (task.rows, task.items, task.prompts, task.pairs))
        table.append((name, *numbers, *scores, gold or "none"))
    lines = [f"Audit of {audit.dataset}: {summary}", "", *aligned(table)]
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
