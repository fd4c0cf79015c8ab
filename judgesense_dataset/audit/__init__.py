"""Audit a dataset: what its rows can and cannot show about judges, before any is asked."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from judgesense_dataset.audit import checks, texts
from judgesense_dataset.audit.chance import Shortcut
from judgesense_dataset.audit.findings import ERROR, SEVERITIES, Finding, oracle
from judgesense_dataset.audit.rows import TaskRows, read_audit_rows


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
        for task in tasks.values():
            task["findings"] = list(task["findings"])
        for name, measured in self.tasks.items():
            tasks[name]["shortcuts"] = {m.name: m.to_dict() for m in measured.shortcuts.values()}
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

    >>> found = audit("embedded")
    >>> found.failed, found.tasks["coherence"].pairs
    (False, 250)
    """
    with _without_collection():
        tasks = read_audit_rows(dataset, revision, exclude)
        found = {name: _audit(task) for name, task in tasks.items()}
    return Audit(str(dataset or "embedded"), found)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Look for no reference cycles: rows form none, and the look takes a sixth of a large audit."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _audit(task: TaskRows) -> TaskAudit:
    found = [finding for look in (*checks.CHECKS, *texts.CHECKS) for finding in look(task)]
    shortcuts = texts.measure_shortcuts(task)
    found += texts.shortcut_findings(task, shortcuts)
    gold = Counter(row.gold for row in task.rows if row.gold is not None)
    score = oracle(task.rows)
    order = [*task.labels, *sorted(set(gold) - set(task.labels))]
    return TaskAudit(
        rows=len(task.rows),
        items=len(set(task.roots.values())),
        prompts=len({side.prompt for row in task.rows for side in row.sides}),
        pairs=len(task.distinct),
        gold={label: gold[label] for label in order if gold[label]},
        oracle_jss_raw=score.raw,
        oracle_jss_mapped=score.mapped,
        findings=tuple(sorted(found, key=lambda f: SEVERITIES.index(f.severity))),
        shortcuts=shortcuts,
    )
