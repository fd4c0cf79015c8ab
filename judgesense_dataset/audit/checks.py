"""Checks of a task's rows: repeats, items, gold labels, label maps, templates, licences.

The messages are in ``findings.yaml``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import comb, sqrt

from judgesense_dataset.audit.findings import (
    ERROR,
    WARNING,
    Finding,
    constant,
    count,
    finding,
    oracle,
    some,
)
from judgesense_dataset.audit.rows import PromptSide, TaskRows, content_roots
from judgesense_dataset.polarity import inverted_map, is_identity

FEW_ITEMS = 20
"""Below this number of independent items the audit warns."""

_MOST_LABELS = 1.2
"""How much more frequent a label may be than if all were equally frequent."""

_MOST_TEMPLATES = 2.0
"""How much more often the commonest wording may be used than the rarest."""


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
    if same := [row.pair_id for row in distinct if row.a.prompt == row.b.prompt]:
        yield finding("identical_prompts", pairs=count(len(same), "pair"), names=some(same))


def _items(task: TaskRows) -> Iterator[Finding]:
    rows, distinct = task.rows, task.distinct
    for severity, repeated in _same_items(task).items():
        first, second = repeated[0]
        number = count(len(repeated), "item")
        yield finding("duplicate_items", severity, items=number, first=first, second=second)
    items = len(set(task.roots.values()))
    clusters = len({row.cluster_id for row in rows})
    independent = min(clusters, items)
    narrow = sqrt(len(rows) / independent)
    yield finding(
        "effective_sample_size",
        rows=count(len(rows), "row"),
        pairs=count(len(distinct), "distinct pair"),
        items=count(items, "distinct item"),
        clusters=count(clusters, "cluster"),
        worth=f"between {independent} and {len(distinct)}"
        if independent != len(distinct)
        else independent,
        effect=", depending on how alike the pairs of an item are. An interval that treats rows as "
        f"independent can be {narrow:.1f} times too narrow"
        if narrow > 1
        else "",
    )
    if independent < FEW_ITEMS:
        yield finding("few_items", items=count(independent, "independent item"))


def _same_items(task: TaskRows) -> dict[str, list[tuple[str, str]]]:
    """Items with an earlier item's content; a warning if they share its cluster, else an error."""
    cluster = {row.item_id: row.cluster_id for row in task.distinct}
    whole = len(task.distinct) == len(task.rows)
    roots = task.roots if whole else content_roots(task.distinct)
    members: dict[str, list[str]] = defaultdict(list)
    for item, root in roots.items():
        members[root].append(item)
    found: dict[str, list[tuple[str, str]]] = {ERROR: [], WARNING: []}
    for first, *others in members.values():
        for other in others:
            found[WARNING if cluster[first] == cluster[other] else ERROR].append((first, other))
    return {severity: pairs for severity, pairs in found.items() if pairs}


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
    for row in graded:
        owners[str(row.gold)].add(row.item_id)
    if len(task.labels) > 2 and max(map(len, owners.values())) == 1:
        yield finding("gold_one_item_each", labels=len(owners))
    # One label throughout contradicts swapped orders too, but is a finding of its own.
    if torn := _torn_items(task):
        yield finding("gold_conflict", items=count(len(torn), "item"), names=some(torn))


def _torn_items(task: TaskRows) -> list[str]:
    """Items whose rows disagree about the gold label, given the option order."""
    golds: dict[str, set[str]] = defaultdict(set)
    for row in task.rows:
        if row.gold in task.labels:
            swapped = row.order == "BA" and task.comparative
            place = task.labels.index(row.gold)
            golds[row.item_id].add(task.labels[1 - place] if swapped else row.gold)
    return sorted(item for item, labels in golds.items() if len(labels) > 1)


def _maps(task: TaskRows) -> Iterator[Finding]:
    """Label maps against the meaning of the wordings."""
    swapped: list[str] = []
    missing: dict[str, list[str]] = defaultdict(list)
    sides = {id(side): side for row in task.rows for side in row.sides}.values()
    recorded = {side.wording for side in sides if side.recorded is not None}
    inverted = {side.wording for side in sides if side.recorded and not is_identity(side.recorded)}
    # A side is shared by the pairs of its prompt.
    odd = {id(side) for side in sides if set((side.recorded or {}).values()) - set(task.labels)}
    false = {id(side) for side in sides if not _right(side, task.labels)}
    plain = {id(side) for side in sides if side.recorded is None or is_identity(side.recorded)}
    turned = {id(side) for side in sides if not is_identity(side.truth)}
    outside: list[str] = []
    for row in task.rows:
        if odd and (id(row.a) in odd or id(row.b) in odd):
            outside.append(row.pair_id)
            continue
        wrong = [id(side) in false for side in row.sides]
        exchanged = all(wrong) and row.a.recorded == row.b.truth and row.b.recorded == row.a.truth
        for side, is_wrong in zip(row.sides, wrong, strict=True):
            unmapped = id(side) in plain
            if exchanged or (is_wrong and (not unmapped or side.wording in inverted)):
                swapped.append(row.pair_id)
            elif id(side) in turned and unmapped:
                missing[side.wording].append(row.pair_id)
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


def _right(side: PromptSide, labels: Sequence[str]) -> bool:
    """Whether the recorded map, if any, can be the meaning of the wording."""
    if side.recorded is None:
        return is_identity(side.truth)
    if side.known or side.asks is not None:
        return dict(side.recorded) == dict(side.truth)
    return is_identity(side.recorded) or dict(side.recorded) == inverted_map(labels)


def _templates(task: TaskRows) -> Iterator[Finding]:
    uses = Counter(side.wording for row in task.rows for side in row.sides)
    joined = Counter(frozenset(side.wording for side in row.sides) for row in task.rows)
    joined = Counter({pair: n for pair, n in joined.items() if len(pair) == 2})
    rows = len(task.rows)
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
        inverted = {s.wording for r in task.rows for s in r.sides if not is_identity(s.truth)}
        names = some(sorted(inverted))
        yield finding("polarity_mix", mixed=mixed, rows=rows, share=mixed / rows, names=names)


def _licences(task: TaskRows) -> Iterator[Finding]:
    counts = Counter(row.license for row in task.rows)
    if nameless := counts.pop("", 0):
        yield finding("license_missing", missing=nameless, rows=len(task.rows))
    if counts:
        named = (f"{name} ({count(n, 'row')})" for name, n in counts.most_common())
        yield finding("licenses", named=", ".join(named))


def _provenance(task: TaskRows) -> Iterator[Finding]:
    unproven = [row for row in task.rows if row.source and not row.revision]
    if unproven:
        sources = some(sorted({row.source for row in unproven}))
        yield finding("source_unproven", rows=count(len(unproven), "row"), sources=sources)
    if len(raters := set(task.raters.values())) == 1:
        yield finding("one_rater", file=some(sorted(task.raters)), rater=raters.pop())


def _judges(task: TaskRows) -> Iterator[Finding]:
    """The scores of an imagined perfect judge, and of one that does not read."""
    score = oracle(task.rows)
    parts = [f"a judge that answers every row correctly gets {score}"]
    if task.left_out:
        whole = sorted((*task.rows, *task.left_out), key=lambda row: row.number)
        parts.append(f"{oracle(whole)} including those excluded")
    verdicts = dict(task.verdicts)
    if any(row.valid is not None for row in task.rows):
        verdicts["the column valid"] = {row.pair_id: row.valid for row in task.rows}
    for name, said in verdicts.items():
        valid = [row for row in task.rows if said.get(row.pair_id)]
        if len(valid) < len(task.rows):
            parts.append(f"{oracle(valid)} that {name} calls equivalent")
    flaw = score.raw is not None and score.raw < 1
    cause = ". The gap in raw JSS comes from the dataset, not from the judge" if flaw else ""
    yield finding("oracle", scores="; ".join(parts), cause=cause)
    answer = task.labels[0]
    graded = [row for row in task.rows if row.gold is not None]
    right = sum(side.decision(answer) == row.gold for row in graded for side in row.sides)
    accuracy = f", accuracy {right / (2 * len(graded)):.2f}" if graded else ""
    always = constant(task.rows, answer)
    yield finding("constant_judge", answer=answer, score=always, accuracy=accuracy)


CHECKS = (_repeats, _items, _gold, _maps, _templates, _licences, _provenance, _judges)
