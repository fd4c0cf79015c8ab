"""Audit a dataset: what its rows can and cannot show about judges, before any is asked.

A check of a task's rows yields codes and the facts for their messages, which are in
``findings.yaml``.
"""

from __future__ import annotations

import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from math import sqrt
from pathlib import Path
from typing import Any

from judgesense.files.documents import read_yaml
from judgesense.statistics.kappa import cohen_kappa
from judgesense.text import aligned, number, plural_s
from judgesense_dataset.audit.rows import AuditRow, TaskRows, read_audit_rows
from judgesense_dataset.polarity import is_identity

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)

FEW_ITEMS = 20
"""Below this number of independent items the audit warns."""

_MOST_LABELS = 1.2
"""How much more frequent a label may be than if all were equally frequent."""

_MOST_TEMPLATES = 2.0
"""How much more often the commonest wording may be used than the rarest."""

_MIN_SHOWN = 8
"""With fewer characters in common, a prompt shows another text and not a cut one."""

Facts = Iterator[tuple[str, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check: a stable code, a severity, and a message."""

    code: str
    severity: str
    message: str


@lru_cache(maxsize=1)
def catalogue() -> Mapping[str, Mapping[str, str]]:
    """What ``findings.yaml`` holds: code -> severity and message."""
    codes: Mapping[str, Mapping[str, str]] = read_yaml(Path(__file__).parent / "findings.yaml")
    return codes


def findings(task: TaskRows) -> tuple[Finding, ...]:
    """Everything that the checks find in a task, errors first."""
    results = []
    for check in _CHECKS:
        for code, facts in check(task):
            entry = catalogue()[code]
            results.append(Finding(code, entry["severity"], entry["message"].format(**facts)))
    return tuple(sorted(results, key=lambda finding: SEVERITIES.index(finding.severity)))


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{plural_s(n)}"


def _some(names: Sequence[str], limit: int = 3) -> str:
    text = ", ".join(names[:limit])
    return text if len(names) <= limit else f"{text} and {len(names) - limit} more"


def _pairs(names: Sequence[str]) -> dict[str, str]:
    names = list(dict.fromkeys(names))
    return {"pairs": _count(len(names), "pair"), "names": _some(names)}


def oracle(rows: Sequence[AuditRow]) -> tuple[float | None, float | None, float | None]:
    """Raw JSS, its kappa and mapped JSS of a judge that knows every gold label and understands
    every wording; None where undefined or without gold labels.
    """
    graded = [row for row in rows if row.gold is not None]
    if not graded:
        return None, None, None
    first = [row.a.answer(str(row.gold)) for row in graded]
    second = [row.b.answer(str(row.gold)) for row in graded]
    raw = sum(a == b for a, b in zip(first, second, strict=True))
    mapped = sum(
        row.a.decision(a) == row.b.decision(b)
        for row, a, b in zip(graded, first, second, strict=True)
    )
    return raw / len(graded), cohen_kappa(first, second), mapped / len(graded)


def _repeats(task: TaskRows) -> Facts:
    rows, distinct = task.rows, task.distinct
    if n_repeats := len(rows) - len(distinct):
        yield "duplicate_pairs", {"again": n_repeats, "rows": len(rows), "pairs": len(distinct)}
    ids = Counter(row.pair_id for row in distinct)
    if repeated := [pair for pair, times in ids.items() if times > 1]:
        yield "duplicate_ids", {"names": _some(repeated)}
    if identical := [row.pair_id for row in distinct if row.a.text == row.b.text]:
        yield "identical_prompts", _pairs(identical)


def _items(task: TaskRows) -> Facts:
    apart = [
        (item, first)
        for item, first in task.twins.items()
        if task.clusters[item] != task.clusters[first]
    ]
    if apart:
        item, first = apart[0]
        yield (
            "duplicate_items",
            {
                "items": _count(len(apart), "item"),
                "first": first,
                "second": item,
            },
        )
    items = len(task.clusters) - len(task.twins)
    clusters = len(set(task.clusters.values()))
    independent = min(clusters, items)
    if independent < len(task.rows):
        yield (
            "effective_sample_size",
            {
                "rows": _count(len(task.rows), "row"),
                "pairs": _count(len(task.distinct), "distinct pair"),
                "items": _count(items, "distinct item"),
                "clusters": _count(clusters, "cluster"),
                "narrow": sqrt(len(task.rows) / independent),
            },
        )
    if independent < FEW_ITEMS:
        yield "few_items", {"items": _count(independent, "independent item")}


def _gold(task: TaskRows) -> Facts:
    graded = [(str(row.gold), row) for row in task.rows if row.gold is not None]
    counts = Counter(gold for gold, _ in graded)
    if n_missing := len(task.rows) - len(graded):
        yield "gold_missing", {"rows": _count(n_missing, "row")}
    if strange := [row.pair_id for gold, row in graded if gold not in task.labels]:
        yield "gold_outside_labels", {"labels": ", ".join(task.labels), **_pairs(strange)}
    if not counts:
        return
    label, count = counts.most_common(1)[0]
    if len(counts) == 1:
        yield "gold_one_label", {"label": label}
        return
    if count > _MOST_LABELS * len(graded) / len(task.labels):
        share = count / len(graded)
        yield "gold_imbalance", {"label": label, "rows": len(graded), "most": count, "share": share}
    if absent := [name for name in task.labels if name not in counts]:
        yield "gold_labels_unused", {"labels": _some(absent)}
    owners: dict[str, set[str]] = defaultdict(set)
    golds: dict[str, set[str]] = defaultdict(set)
    for gold, row in graded:
        owners[gold].add(row.item_id)
        if task.comparative and row.order == "BA" and gold in task.labels:
            gold = task.labels[1 - task.labels.index(gold)]
        golds[row.item_id].add(gold)
    if len(task.labels) > 2 and max(map(len, owners.values())) == 1:
        yield "gold_one_item_each", {"labels": len(owners)}
    # One label throughout contradicts swapped orders too, but is a finding of its own.
    if torn := sorted(item for item, of_item in golds.items() if len(of_item) > 1):
        yield "gold_conflict", {"items": _count(len(torn), "item"), "names": _some(torn)}


def _maps(task: TaskRows) -> Facts:
    outside, swapped = [], []
    missing: dict[str, list[str]] = defaultdict(list)
    for row in task.rows:
        if any(set((p.recorded or {}).values()) - set(task.labels) for p in row.prompts):
            outside.append(row.pair_id)
            continue
        misread = [prompt for prompt in row.prompts if prompt.misread]
        if any(prompt.recorded and not is_identity(prompt.recorded) for prompt in misread):
            swapped.append(row.pair_id)
        elif misread:
            missing[misread[0].wording].append(row.pair_id)
    if outside:
        yield "label_map_outside_labels", {"labels": ", ".join(task.labels), **_pairs(outside)}
    if swapped:
        yield "label_map_swapped", _pairs(swapped)
    for wording, pairs in missing.items():
        yield "inverted_template_without_map", {"wording": wording, **_pairs(pairs)}


def _wordings(task: TaskRows) -> Facts:
    uses = Counter(prompt.wording for row in task.rows for prompt in row.prompts)
    if len(uses) > max(10, len(task.rows) / 2):
        yield (
            "templates_unknown",
            {
                "wordings": len(uses),
                "rows": _count(len(task.rows), "row"),
            },
        )
        return
    (common, high), *_, (rare, low) = [*uses.most_common(), *uses.most_common()[-1:]]
    if high > _MOST_TEMPLATES * low:
        yield "template_imbalance", {"common": common, "most": high, "rare": rare, "least": low}


def _texts(task: TaskRows) -> Facts:
    cut: list[str] = []
    absent: list[str] = []
    for row in task.rows:
        for text in row.texts:
            for prompt in row.prompts:
                if text in prompt.text:
                    continue
                start = text[: max(_MIN_SHOWN, len(text) // 10)]
                (cut if start in prompt.text else absent).append(row.pair_id)
    if cut:
        yield "truncated_text", _pairs(cut)
    # Where most prompts do not show the text, the column holds something else.
    if absent and len(set(absent)) <= len(task.rows) / 2:
        yield "text_not_shown", _pairs(absent)


def _origins(task: TaskRows) -> Facts:
    rows = task.rows
    if nameless := sum(not row.license for row in rows):
        yield "license_missing", {"missing": nameless, "rows": len(rows)}
    if unproven := [row.source for row in rows if row.source and not row.revision]:
        sources = _some(sorted(set(unproven)))
        yield "source_unproven", {"rows": _count(len(unproven), "row"), "sources": sources}


def _oracle(task: TaskRows) -> Facts:
    raw, kappa, mapped = oracle(task.rows)
    if raw is not None:
        yield (
            "oracle",
            {
                "raw": raw,
                "kappa": "undefined" if kappa is None else f"{kappa:.4f}",
                "mapped": mapped,
                "rows": _count(sum(row.gold is not None for row in task.rows), "row"),
                "cause": ""
                if raw == 1
                else " A gap to 1 comes from the dataset, not from the judge.",
            },
        )


_CHECKS = (_repeats, _items, _gold, _maps, _wordings, _texts, _origins, _oracle)


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


def audit(dataset: str | Path | None = None, *, revision: str | None = None) -> Audit:
    """Audit a Hub dataset, a dataset folder, a ``.jsonl`` file, or the embedded benchmark (None).

    Faults become findings; JudgeSenseError is raised only for unreadable input, naming file, row
    and column.

    >>> result = audit("embedded")
    >>> result.failed, result.tasks["coherence"].pairs
    (False, 250)
    """
    tasks = read_audit_rows(dataset, revision)
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
    summary = " and ".join(f"{n} {name}{plural_s(n)}" for name, n in counts.items())
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
