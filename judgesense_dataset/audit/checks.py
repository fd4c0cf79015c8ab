"""Checks of a task's rows: repeats, items, gold labels, label maps, templates, licences.

Every message ends with the effect on JSS or on the conclusions, and the remedy.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import comb, sqrt

from judgesense_dataset.audit.findings import (
    ERROR,
    INFO,
    WARNING,
    Finding,
    constant,
    count,
    oracle,
    some,
)
from judgesense_dataset.audit.rows import (
    AuditRow,
    PromptSide,
    TaskRows,
    content_roots,
    distinct_pairs,
)
from judgesense_dataset.polarity import inverted_map, is_identity

FEW_ITEMS = 20
"""Below this number of independent items the audit warns."""

_MOST_LABELS = 1.2
"""How much more frequent a label may be than if all were equally frequent."""

_MOST_TEMPLATES = 2.0
"""How much more often the commonest wording may be used than the rarest."""


def _repeats(task: TaskRows) -> Iterator[Finding]:
    rows, distinct = task.rows, distinct_pairs(task.rows)
    if len(distinct) < len(rows):
        kept = {row.number for row in distinct}
        again = [row.pair_id for row in rows if row.number not in kept]
        yield Finding(
            "duplicate_pairs",
            ERROR,
            f"{len(again)} of {len(rows)} rows repeat the two prompts of an earlier row "
            f"({some(again)}), which leaves {len(distinct)} distinct pairs. A repeated row adds "
            "nothing to JSS but makes its interval too narrow: keep each pair once.",
        )
    ids = Counter(row.pair_id for row in distinct)
    if repeated := [pair for pair, times in ids.items() if times > 1]:
        yield Finding(
            "duplicate_ids",
            ERROR,
            f"different pairs share a pair id ({some(repeated)}). Their verdicts and decisions "
            "cannot be told apart: give every pair its own id.",
        )
    same = [row.pair_id for row in distinct if row.a.prompt == row.b.prompt]
    if same:
        yield Finding(
            "identical_prompts",
            ERROR,
            f"{count(len(same), 'pair')} with the same text in both prompts ({some(same)}). Every "
            "judge agrees with itself there, which raises JSS: pair different wordings.",
        )


def _items(task: TaskRows) -> Iterator[Finding]:
    rows, distinct = task.rows, distinct_pairs(task.rows)
    items = len(set(content_roots(rows).values()))
    for severity, repeated in _same_items(distinct).items():
        first, second = repeated[0]
        effect = (
            "They count as independent but are not, so intervals come out too narrow: "
            if severity == ERROR
            else "They share a cluster, so intervals are right, but they add no information: "
        )
        yield Finding(
            "duplicate_items",
            severity,
            f"{count(len(repeated), 'item')} with the text of another item (such as {second}, the "
            f"text of {first}). {effect}keep each item once.",
        )
    clusters = len({row.cluster_id for row in rows})
    independent = min(clusters, items)
    worth = f"between {independent} and {len(distinct)}"
    if independent == len(distinct):
        worth = str(independent)
    narrow = sqrt(len(rows) / independent)
    effect = (
        ", depending on how alike the pairs of an item are. An interval that treats rows as "
        f"independent can be {narrow:.1f} times too narrow."
    )
    yield Finding(
        "effective_sample_size",
        INFO,
        f"{count(len(rows), 'row')}: {count(len(distinct), 'distinct pair')} of "
        f"{count(items, 'distinct item')} in {count(clusters, 'cluster')}, worth {worth} "
        f"independent observations{effect if narrow > 1 else '.'}",
    )
    if independent < FEW_ITEMS:
        yield Finding(
            "few_items",
            WARNING,
            f"only {count(independent, 'independent item')}. A JSS measured here says little "
            "about other items, however many rows there are: use 25 items or more.",
        )
    golds: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row.gold in task.labels:
            swapped = row.order == "BA" and task.comparative
            place = task.labels.index(row.gold)
            golds[row.item_id].add(task.labels[1 - place] if swapped else row.gold)
    torn = sorted(item for item, labels in golds.items() if len(labels) > 1)
    # One label throughout contradicts swapped orders, and is a finding of its own.
    if torn and len({row.gold for row in rows}) > 1:
        yield Finding(
            "gold_conflict",
            ERROR,
            f"{count(len(torn), 'item')} with different gold labels in different rows "
            f"({some(torn)}); the label must change if and only if the options are swapped. "
            "Accuracy cannot be measured on them: settle the label.",
        )


def _same_items(rows: Sequence[AuditRow]) -> dict[str, list[tuple[str, str]]]:
    """Items with an earlier item's content; a warning if they share its cluster, else an error."""
    cluster = {row.item_id: row.cluster_id for row in rows}
    members: dict[str, list[str]] = defaultdict(list)
    for item, root in content_roots(rows).items():
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
        yield Finding(
            "gold_missing",
            WARNING,
            f"{count(missing, 'row')} without a gold label. JSS needs none, but these rows cannot "
            "show that a judge is consistent and wrong.",
        )
    if strange := sorted(set(counts) - set(task.labels)):
        where = [row.pair_id for row in graded if row.gold in strange]
        yield Finding(
            "gold_outside_labels",
            ERROR,
            f"the gold label {some(strange)} is not one of {', '.join(task.labels)} "
            f"({some(where)}). No judge can be right there: correct the label.",
        )
    if not counts:
        return
    label, most = counts.most_common(1)[0]
    share = most / len(graded)
    if len(counts) == 1:
        position = ", so the right option is always in the same place" if task.comparative else ""
        remedy = (
            "Show half of the items with the options swapped."
            if task.comparative
            else "Add items with other labels."
        )
        yield Finding(
            "gold_one_label",
            ERROR,
            f"every gold label is {label}{position}. A judge that always answers {label} gets "
            "JSS 1 (kappa undefined) and accuracy 1, so a perfect score proves nothing. " + remedy,
        )
    elif share > _MOST_LABELS / len(task.labels):
        yield Finding(
            "gold_position" if task.comparative else "gold_imbalance",
            WARNING,
            f"{label} is the gold label of {most} of {len(graded)} rows ({share:.0%}). A judge "
            f"that always answers {label} gets JSS 1 and accuracy {share:.2f}: read accuracy "
            "and kappa beside JSS.",
        )
    if 1 < len(counts) < len(task.labels):
        absent = [name for name in task.labels if name not in counts]
        yield Finding(
            "gold_labels_unused",
            WARNING,
            f"no row has the gold label {some(absent)}. The effect of wording on such items is "
            "not measured.",
        )


def _maps(task: TaskRows) -> Iterator[Finding]:
    """Label maps against the meaning of the wordings."""
    swapped: list[str] = []
    missing: dict[str, list[str]] = defaultdict(list)
    sides = [side for row in task.rows for side in row.sides]
    recorded = {side.wording for side in sides if side.recorded is not None}
    ever_inverted = {
        side.wording
        for side in sides
        if side.recorded is not None and not is_identity(side.recorded)
    }
    outside: list[str] = []
    for row in task.rows:
        if any(set((s.recorded or {}).values()) - set(task.labels) for s in row.sides):
            outside.append(row.pair_id)
            continue
        wrong = [not _right(side, task.labels) for side in row.sides]
        exchanged = all(wrong) and row.a.recorded == row.b.truth and row.b.recorded == row.a.truth
        for side, is_wrong in zip(row.sides, wrong, strict=True):
            unmapped = side.recorded is None or is_identity(side.recorded)
            if exchanged or (is_wrong and (not unmapped or side.wording in ever_inverted)):
                swapped.append(row.pair_id)
            elif not is_identity(side.truth) and unmapped:
                missing[side.wording].append(row.pair_id)
    if outside:
        yield Finding(
            "label_map_outside_labels",
            ERROR,
            f"the label map of {count(len(outside), 'pair')} leads outside the labels "
            f"{', '.join(task.labels)} ({some(outside)}). Mapped JSS cannot be computed: correct "
            "label_map_a and label_map_b.",
        )
    if swapped:
        pairs = list(dict.fromkeys(swapped))
        yield Finding(
            "label_map_swapped",
            ERROR,
            f"the label map of {count(len(pairs), 'pair')} contradicts the wording "
            f"({some(pairs)}). Mapped JSS counts consistent answers as flips and flips as "
            "agreement: correct label_map_a and label_map_b.",
        )
    for wording, pairs in missing.items():
        state = "its label map is the identity" if wording in recorded else "it has no label map"
        yield Finding(
            "inverted_template_without_map",
            ERROR,
            f"the wording {wording!r} is inverted, but {state} ({count(len(pairs), 'pair')}). "
            "Measured as they are, these rows count a judge that is right both times as a flip: "
            "add label_map_a and label_map_b.",
        )


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
    if len(uses) > len(task.rows) / 2 and len(uses) > 10:
        yield Finding(
            "templates_unknown",
            WARNING,
            f"{len(uses)} different wordings in {count(len(task.rows), 'row')}: templates cannot "
            "be told from items, so no wording can be recommended. Add the columns template_a "
            "and template_b.",
        )
        return
    least, most = min(uses.values()), max(uses.values())
    if most > _MOST_TEMPLATES * least:
        common, rare = max(uses, key=lambda w: uses[w]), min(uses, key=lambda w: uses[w])
        yield Finding(
            "template_imbalance",
            WARNING,
            f"the wording {common!r} is used {most} times, {rare!r} {least} times. JSS mostly "
            "describes the common wordings.",
        )
    possible = comb(len(uses), 2)
    if len(joined) < possible:
        yield Finding(
            "template_pairs_missing",
            WARNING,
            f"only {len(joined)} of {possible} pairs of the {len(uses)} wordings occur. JSS is not "
            "the average over all pairs: it depends on which of them occur.",
        )
    elif joined and max(joined.values()) > _MOST_TEMPLATES * min(joined.values()):
        yield Finding(
            "template_pair_imbalance",
            WARNING,
            f"wording pairs occur between {min(joined.values())} and {max(joined.values())} "
            "times. JSS mostly describes the common pairs.",
        )
    mixed = sum(row.a.truth != row.b.truth for row in task.rows)
    if mixed:
        inverted = sorted(
            {s.wording for r in task.rows for s in r.sides if not is_identity(s.truth)}
        )
        yield Finding(
            "polarity_mix",
            INFO,
            f"{mixed} of {len(task.rows)} rows ({mixed / len(task.rows):.0%}) pair an inverted "
            f"wording ({some(inverted)}) with another. A judge that is right both times flips on "
            "them in raw JSS and agrees in mapped JSS: quote both.",
        )


def _licences(task: TaskRows) -> Iterator[Finding]:
    counts = Counter(row.license for row in task.rows)
    if nameless := counts.pop("", 0):
        yield Finding(
            "license_missing",
            WARNING,
            f"{nameless} of {len(task.rows)} rows name no licence. JSS is not affected, but "
            "nobody can tell whether the dataset may be shared: fill the column license.",
        )
    if counts:
        named = ", ".join(f"{name} ({count(n, 'row')})" for name, n in counts.most_common())
        yield Finding("licenses", INFO, f"licences: {named}.")


def _judges(task: TaskRows) -> Iterator[Finding]:
    """The scores of an imagined perfect judge, and of one that does not read."""
    parts = [f"a judge that answers every row correctly gets {oracle(task.rows)}"]
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
    score = oracle(task.rows)
    flaw = score.raw is not None and score.raw < 1
    end = ". The gap in raw JSS comes from the dataset, not from the judge." if flaw else "."
    yield Finding("oracle", INFO, "; ".join(parts) + end)
    answer = task.labels[0]
    graded = [row for row in task.rows if row.gold is not None]
    right = sum(side.decision(answer) == row.gold for row in graded for side in row.sides)
    accuracy = f", accuracy {right / (2 * len(graded)):.2f}" if graded else ""
    yield Finding(
        "constant_judge",
        INFO,
        f"a judge that always answers {answer} gets {constant(task.rows, answer)}{accuracy}.",
    )


CHECKS = (_repeats, _items, _gold, _maps, _templates, _licences, _judges)
