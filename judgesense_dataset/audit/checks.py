"""Checks of a task's rows: repeats, items, gold labels, label maps, templates, licences.

The messages are in ``findings.yaml``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb, sqrt
from pathlib import Path
from typing import Any

from judgesense.files.documents import read_yaml
from judgesense.statistics.kappa import cohen_kappa
from judgesense_dataset.audit.rows import AuditPrompt, AuditRow, TaskRows, content_roots
from judgesense_dataset.polarity import inverted_map, is_identity

ERROR, WARNING, INFO = "error", "warning", "info"
SEVERITIES = (ERROR, WARNING, INFO)

FEW_ITEMS = 20
"""Below this number of independent items the audit warns."""

_MOST_LABELS = 1.2
"""How much more frequent a label may be than if all were equally frequent."""

_MOST_TEMPLATES = 2.0
"""How much more often the commonest wording may be used than the rarest."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check: a stable code, a severity, and a message."""

    code: str
    severity: str
    message: str


@lru_cache(maxsize=1)
def catalogue() -> Mapping[str, Mapping[str, str]]:
    """The messages of ``findings.yaml``: code -> severity -> message."""
    messages: Mapping[str, Mapping[str, str]] = read_yaml(Path(__file__).parent / "findings.yaml")
    return messages


def finding(code: str, severity: str | None = None, **facts: Any) -> Finding:
    """The finding of that code; ``severity`` is needed only if the code has several.

    >>> finding("gold_missing", rows="2 rows").severity
    'warning'
    """
    messages = catalogue()[code]
    severity = severity or next(iter(messages))
    return Finding(code, severity, messages[severity].format(**facts))


def count(n: int, noun: str) -> str:
    """The number with its noun: 1 row, 2 rows."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def some(names: Sequence[str], most: int = 3) -> str:
    """The first names, and the number of the others."""
    shown = ", ".join(str(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


@dataclass(frozen=True, slots=True)
class Score:
    """JSS and kappa of an imagined judge; None where undefined or without gold labels."""

    n: int
    raw: float | None
    raw_kappa: float | None
    mapped: float | None

    def __str__(self) -> str:
        if self.raw is None or self.mapped is None:
            return "undefined (no gold labels)"
        kappa = "undefined" if self.raw_kappa is None else f"{self.raw_kappa:.4f}"
        return (
            f"raw JSS {self.raw:.4f} (kappa {kappa}) and mapped JSS {self.mapped:.4f} "
            f"on {count(self.n, 'row')}"
        )


def oracle(rows: Sequence[AuditRow]) -> Score:
    """The score of a judge that knows every gold label and understands every wording."""
    graded = [row for row in rows if row.gold is not None]
    return _score(graded, [(r.a.answer(str(r.gold)), r.b.answer(str(r.gold))) for r in graded])


def _score(rows: Sequence[AuditRow], raw: Sequence[tuple[str, str]]) -> Score:
    """The score of a judge with these raw answers, two a row."""
    n = len(rows)
    if not n:
        return Score(0, None, None, None)
    mapped = sum(
        row.a.decision(first) == row.b.decision(second)
        for row, (first, second) in zip(rows, raw, strict=True)
    )
    kappa = cohen_kappa([first for first, _ in raw], [second for _, second in raw])
    return Score(n, sum(a == b for a, b in raw) / n, kappa, mapped / n)


def _repeats(task: TaskRows) -> Iterator[Finding]:
    rows, distinct = task.rows, task.distinct
    if len(distinct) < len(rows):
        kept = {row.number for row in distinct}
        again = [row.pair_id for row in rows if row.number not in kept]
        yield finding(
            "duplicate_pairs",
            again=len(again), rows=len(rows), names=some(again), pairs=len(distinct),
        )  # fmt: skip
    ids = Counter(row.pair_id for row in distinct)
    if repeated := [pair for pair, times in ids.items() if times > 1]:
        yield finding("duplicate_ids", names=some(repeated))
    if same := [row.pair_id for row in distinct if row.a.text == row.b.text]:
        yield finding("identical_prompts", pairs=count(len(same), "pair"), names=some(same))


def _items(task: TaskRows) -> Iterator[Finding]:
    rows, distinct = task.rows, task.distinct
    for severity, twins in _twins(task).items():
        first, second = twins[0]
        number = count(len(twins), "item")
        yield finding("duplicate_items", severity, items=number, first=first, second=second)
    items = len(set(task.roots.values()))
    clusters = len({row.cluster_id for row in rows})
    independent = min(clusters, items)
    narrow = sqrt(len(rows) / independent)
    certain = independent == len(distinct)
    yield finding(
        "effective_sample_size",
        rows=count(len(rows), "row"),
        pairs=count(len(distinct), "distinct pair"),
        items=count(items, "distinct item"),
        clusters=count(clusters, "cluster"),
        worth=independent if certain else f"between {independent} and {len(distinct)}",
        effect=", depending on how alike the pairs of an item are. An interval that treats rows as "
        f"independent can be {narrow:.1f} times too narrow"
        if narrow > 1
        else "",
    )
    if independent < FEW_ITEMS:
        yield finding("few_items", items=count(independent, "independent item"))


def _twins(task: TaskRows) -> dict[str, list[tuple[str, str]]]:
    """Items with an earlier item's content; a warning if they share its cluster, else an error."""
    cluster = {row.item_id: row.cluster_id for row in task.distinct}
    twins: dict[str, list[tuple[str, str]]] = {ERROR: [], WARNING: []}
    members: dict[str, list[str]] = defaultdict(list)
    for item, root in content_roots(task.distinct).items():
        members[root].append(item)
    for first, *others in members.values():
        for other in others:
            twins[WARNING if cluster[first] == cluster[other] else ERROR].append((first, other))
    return {severity: pairs for severity, pairs in twins.items() if pairs}


def _gold(task: TaskRows) -> Iterator[Finding]:
    graded = [row for row in task.rows if row.gold is not None]
    counts = Counter(str(row.gold) for row in graded)
    if missing := len(task.rows) - len(graded):
        yield finding("gold_missing", rows=count(missing, "row"))
    if strange := sorted(set(counts) - set(task.labels)):
        where = [row.pair_id for row in graded if row.gold in strange]
        labels = ", ".join(task.labels)
        yield finding(
            "gold_outside_labels", strange=some(strange), labels=labels, names=some(where)
        )
    if not counts:
        return
    label, most = counts.most_common(1)[0]
    share = most / len(graded)
    if len(counts) == 1:
        swap = "Show half of the items with the options swapped"
        remedy = swap if task.comparative else "Add items with other labels"
        yield finding("gold_one_label", label=label, remedy=remedy)
        return
    if share > _MOST_LABELS / len(task.labels):
        code = "gold_position" if task.comparative else "gold_imbalance"
        yield finding(code, label=label, most=most, rows=len(graded), share=share)
    if absent := [name for name in task.labels if name not in counts]:
        yield finding("gold_labels_unused", labels=some(absent))
    owners: dict[str, set[str]] = defaultdict(set)
    golds: dict[str, set[str]] = defaultdict(set)
    for row in graded:
        owners[str(row.gold)].add(row.item_id)
        if row.gold in task.labels:
            swapped = row.order == "BA" and task.comparative
            place = task.labels.index(row.gold)
            golds[row.item_id].add(task.labels[1 - place] if swapped else row.gold)
    if len(task.labels) > 2 and max(map(len, owners.values())) == 1:
        yield finding("gold_one_item_each", labels=len(owners))
    # One label throughout contradicts swapped orders too, but is a finding of its own.
    if torn := sorted(item for item, labels_of_item in golds.items() if len(labels_of_item) > 1):
        yield finding("gold_conflict", items=count(len(torn), "item"), names=some(torn))


def _maps(task: TaskRows) -> Iterator[Finding]:
    """Label maps against the meaning of the wordings."""
    # A prompt is shared by its pairs.
    prompts = {id(prompt): prompt for row in task.rows for prompt in row.prompts}.values()
    recorded = {one.wording for one in prompts if one.recorded is not None}
    inverted = {one.wording for one in prompts if one.recorded and not is_identity(one.recorded)}
    odd = {id(p) for p in prompts if set((p.recorded or {}).values()) - set(task.labels)}
    false = {id(p) for p in prompts if not _right(p, task.labels)}
    plain = {id(p) for p in prompts if p.recorded is None or is_identity(p.recorded)}
    turned = {id(p) for p in prompts if not is_identity(p.truth)}
    outside: list[str] = []
    swapped: list[str] = []
    missing: dict[str, list[str]] = defaultdict(list)
    for row in task.rows:
        if id(row.a) in odd or id(row.b) in odd:
            outside.append(row.pair_id)
            continue
        wrong = [id(prompt) in false for prompt in row.prompts]
        exchanged = all(wrong) and row.a.recorded == row.b.truth and row.b.recorded == row.a.truth
        for prompt, is_wrong in zip(row.prompts, wrong, strict=True):
            unmapped = id(prompt) in plain
            if exchanged or (is_wrong and (not unmapped or prompt.wording in inverted)):
                swapped.append(row.pair_id)
            elif id(prompt) in turned and unmapped:
                missing[prompt.wording].append(row.pair_id)
    if outside:
        number, labels = count(len(outside), "pair"), ", ".join(task.labels)
        yield finding("label_map_outside_labels", pairs=number, labels=labels, names=some(outside))
    if swapped:
        pairs = list(dict.fromkeys(swapped))
        yield finding("label_map_swapped", pairs=count(len(pairs), "pair"), names=some(pairs))
    for wording, pairs in missing.items():
        state = "its label map is the identity" if wording in recorded else "it has no label map"
        number = count(len(pairs), "pair")
        yield finding("inverted_template_without_map", wording=wording, state=state, pairs=number)


def _right(prompt: AuditPrompt, labels: Sequence[str]) -> bool:
    """Whether the recorded map, if any, can be the meaning of the wording."""
    if prompt.recorded is None:
        return is_identity(prompt.truth)
    if prompt.known or prompt.asks is not None:
        return dict(prompt.recorded) == dict(prompt.truth)
    return is_identity(prompt.recorded) or dict(prompt.recorded) == inverted_map(labels)


def _templates(task: TaskRows) -> Iterator[Finding]:
    rows = len(task.rows)
    uses = Counter(prompt.wording for row in task.rows for prompt in row.prompts)
    joined = Counter(
        frozenset((row.a.wording, row.b.wording))
        for row in task.rows
        if row.a.wording != row.b.wording
    )
    if len(uses) > rows / 2 and len(uses) > 10:
        yield finding("templates_unknown", wordings=len(uses), rows=count(rows, "row"))
        return
    rare, least = min(uses.items(), key=lambda use: use[1])
    common, most = max(uses.items(), key=lambda use: use[1])
    if most > _MOST_TEMPLATES * least:
        yield finding("template_imbalance", common=common, most=most, rare=rare, least=least)
    if len(joined) < (possible := comb(len(uses), 2)):
        yield finding(
            "template_pairs_missing", pairs=len(joined), possible=possible, wordings=len(uses)
        )
    elif joined and max(joined.values()) > _MOST_TEMPLATES * min(joined.values()):
        least, most = min(joined.values()), max(joined.values())
        yield finding("template_pair_imbalance", least=least, most=most)
    if mixed := sum(row.a.truth != row.b.truth for row in task.rows):
        turned = {p.wording for r in task.rows for p in r.prompts if not is_identity(p.truth)}
        names = some(sorted(turned))
        yield finding("polarity_mix", mixed=mixed, rows=rows, share=mixed / rows, names=names)


def _origins(task: TaskRows) -> Iterator[Finding]:
    """Licences, sources and raters."""
    counts = Counter(row.license for row in task.rows)
    if nameless := counts.pop("", 0):
        yield finding("license_missing", missing=nameless, rows=len(task.rows))
    if counts:
        named = (f"{name} ({count(n, 'row')})" for name, n in counts.most_common())
        yield finding("licenses", named=", ".join(named))
    unproven = [row for row in task.rows if row.source and not row.revision]
    if unproven:
        sources = some(sorted({row.source for row in unproven}))
        yield finding("source_unproven", rows=count(len(unproven), "row"), sources=sources)
    if len(raters := set(task.raters.values())) == 1:
        yield finding("one_rater", file=some(sorted(task.raters)), rater=raters.pop())


def _imagined_judges(task: TaskRows) -> Iterator[Finding]:
    """The scores of an imagined perfect judge, and of one that does not read."""
    score = oracle(task.rows)
    parts = [f"a judge that answers every row correctly gets {score}"]
    if task.left_out:
        whole = sorted((*task.rows, *task.left_out), key=lambda row: row.number)
        parts.append(f"{oracle(whole)} including those excluded")
    verdicts = dict(task.verdicts)
    if any(row.valid is not None for row in task.rows):
        verdicts["the column valid"] = {row.pair_id: row.valid for row in task.rows}
    for name, by_pair in verdicts.items():
        valid = [row for row in task.rows if by_pair.get(row.pair_id)]
        if len(valid) < len(task.rows):
            parts.append(f"{oracle(valid)} that {name} calls equivalent")
    flaw = score.raw is not None and score.raw < 1
    cause = ". The gap in raw JSS comes from the dataset, not from the judge" if flaw else ""
    yield finding("oracle", scores="; ".join(parts), cause=cause)
    answer = task.labels[0]
    graded = [row for row in task.rows if row.gold is not None]
    right = sum(prompt.decision(answer) == row.gold for row in graded for prompt in row.prompts)
    accuracy = f", accuracy {right / (2 * len(graded)):.2f}" if graded else ""
    always = _score(task.rows, [(answer, answer)] * len(task.rows))
    yield finding("constant_judge", answer=answer, score=always, accuracy=accuracy)


CHECKS = (_repeats, _items, _gold, _maps, _templates, _origins, _imagined_judges)
