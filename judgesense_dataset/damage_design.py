"""Add outputs made wrong on purpose, and harmless edits of outputs, to a benchmark.

They are asked under the base wording, once. Which of them a judge notices is measured by
:mod:`judgesense.measure.notices`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.importers.values import SAME, fold, place_of
from judgesense.log.schema import DAMAGE, HARMLESS
from judgesense.tasks import ORDERS, Item, Task, Template, render
from judgesense_dataset.attacks import WINNING
from judgesense_dataset.damage import changed
from judgesense_dataset.damage_rules import Output, kinds_for, rules
from judgesense_dataset.polarity import INVERTED, polarity_cue
from judgesense_dataset.templates import TaskTemplates
from judgesense_dataset.variant_changes import VariantMaker, more_prompts, row_of

FEWEST = 16
"""Damaged copies from which on a check tries them by default."""
MOST = 120
"""Damaged copies that a check tries by default at most."""
POOL = 400
"""Outputs that copies are drawn from, and that sentences of other items come from."""

_OUTPUTS = {
    *("response", "output", "answer", "summary", "completion", "reply", "generation"),
    *("prediction", "translation", "candidate", "hypothesis"),
}
_SOURCES = {
    *("context", "source", "document", "article", "passage", "passages", "reference", "expected"),
    *("gold", "ideal", "target", "text", "facts", "evidence"),
}
_QUESTIONS = {"question", "query", "prompt", "instruction", "input", "topic", "title", "criteria"}
_NO_BETTER = re.compile(
    r"\b(?:severity|how (?:severe|many|much|often)|number of|amount of|degree of"
    r" (?:hallucination|error)|hallucination (?:score|level|rate)|risk)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Copy:
    """A changed output: its item, the kind of change and its class, and the item to show."""

    item: Item
    kind: str
    variant_class: str
    shown: Item


def with_damage(
    benchmark: Benchmark,
    templates: Mapping[str, TaskTemplates],
    items: Sequence[Item],
    n: int,
    *,
    orders: Sequence[str] | None = None,
    seed: int = 0,
    unnamed: bool = True,
) -> Benchmark:
    """The benchmark with n outputs made wrong on purpose, and half as many harmless edits.

    Outputs without a label come first, then those with a good one: what was wrong before could
    become right. Kinds take turns. In a choice between two, the output is one option and its copy
    the other one, in both orders. Fewer copies are made where the rules do not fit more outputs.
    Unless ``unnamed``, a question with labels has to name a criterion that damage is known to hurt.

    Raises JudgeSenseError where nothing tells which label is good or which field is the output, for
    a rubric that damage does not concern, and where no rule fits an output.

    >>> from judgesense_dataset.embedded import embedded_items, embedded_templates, load_embedded
    >>> whole = load_embedded().select(["factuality"])
    >>> more = with_damage(whole, embedded_templates(), embedded_items(), 20)
    >>> more.prompts.num_rows - whole.prompts.num_rows
    30
    """
    if len(benchmark.tasks) != 1:
        raise JudgeSenseError("damage is tried only on rubrics that ask for one verdict")
    ((name, task),) = benchmark.tasks.items()
    base = VariantMaker(templates[name]).base
    if task.comparative and orders and not set(ORDERS) <= set(orders):
        raise JudgeSenseError("an output and its damaged copy must be shown in both orders")
    wins = good_label(task, base)
    kinds = kinds_for(base.text, unnamed or task.ordinal or task.comparative)
    if not kinds:
        raise JudgeSenseError(
            "the rubric names no criterion that damage is known to hurt, such as correct, complete "
            "or coherent"
        )
    rows = benchmark.prompts.to_pylist()
    keys = {(row["item_id"], row["order"], row["template_id"]) for row in rows}
    ids = {row["item_id"] for row in rows}
    asked_items = [item for item in items if item.task == name and item.item_id in ids]
    copies = list(_copies(task, base, asked_items, wins, kinds, n, seed))
    if {copy.variant_class for copy in copies} != {DAMAGE, HARMLESS}:
        raise JudgeSenseError(
            "no rule fits an output: they are code, too short, labelled wrong, or in a language "
            "other than English"
        )
    added_rows = []
    for copy in copies:
        for order in task.orders:
            if not task.comparative and (copy.item.item_id, order, base.template_id) not in keys:
                keys.add((copy.item.item_id, order, base.template_id))
                added_rows.append(row_of(render(task, base, copy.item, order), again=False))
            marks = {"variant": copy.kind, "variant_class": copy.variant_class}
            added_rows.append(row_of(render(task, base, copy.shown, order), again=None, **marks))
    facts = {**rules().damage, **rules().harmless}
    return replace(
        benchmark,
        prompts=more_prompts(rows, added_rows),
        damage={
            "kinds": {kind: facts[kind].about for kind in sorted({copy.kind for copy in copies})},
            "wins": wins,
            "where": "" if task.comparative else f" ({output_field(task, base, asked_items[0])})",
        },
    )


def damaged_items(
    entry: TaskTemplates, items: Sequence[Item], seed: int = 0
) -> tuple[list[Item], list[str]]:
    """Outputs that nobody labelled, each followed by a copy made wrong on purpose, and the kind of
    change of each ("" of an output as it is): what ways of asking can be compared on.

    An output counts as good and its copy as bad; in a choice between two, they are the options, in
    turns in front. Of outputs some are bad, which costs every way of asking the same: the share of
    these items that are right is one half plus half of how much oftener outputs pass than copies.

    Raises JudgeSenseError as `with_damage`, and for a task of more than two labels, which has no
    one bad label.
    """
    task, base = entry.task, VariantMaker(entry).base
    if len(task.labels) != 2:
        raise JudgeSenseError(
            f"no item has a label, and without labels improve compares two answers, not "
            f"{len(task.labels)}: label items with {', '.join(task.labels)}, or ask for two"
        )
    wins = good_label(task, base)
    kinds = kinds_for(base.text, task.comparative)
    if not kinds:
        raise JudgeSenseError(
            "no item has a label, and the rubric names no criterion that damage is known to hurt, "
            "such as correct, complete or coherent: label items"
        )
    made: list[Item] = []
    of: list[str] = []
    seen: set[str] = set()
    for copy in _copies(task, base, items, wins, kinds, 2 * len(items), seed):
        if copy.variant_class != DAMAGE or copy.item.item_id in seen:
            continue
        seen.add(copy.item.item_id)
        first, second = task.labels
        changed_item = replace(copy.shown, item_id=f"{copy.item.item_id} {copy.kind}")
        if task.comparative:
            if len(made) % 2:
                one, two = (task.options[label] for label in task.labels)
                fields = changed_item.fields
                fields = {**fields, one: fields[two], two: fields[one]}
                changed_item = replace(changed_item, fields=fields, gold=second)
            made.append(changed_item)
            of.append(copy.kind)
            continue
        bad = second if wins == first else first
        made += [replace(copy.item, gold=wins), replace(changed_item, gold=bad)]
        of += ["", copy.kind]
    return made, of


def good_label(task: Task, base: Template) -> str:
    """The label of a good output, "" for a choice between two.

    Raises JudgeSenseError where nothing tells it.
    """
    if task.comparative:
        return ""
    if task.ordinal:
        if _NO_BETTER.search(base.text):
            raise JudgeSenseError("the rubric does not say whether a high score is good")
        low, high = min(task.labels, key=int), max(task.labels, key=int)
        return low if polarity_cue(base.text, task.labels) == INVERTED else high
    good = [label for label in task.labels if label.upper() in WINNING]
    # Compliant, relevant, helpful: no answers to any question, but good ones.
    good = good or [label for label in task.labels if place_of(fold(label), SAME[0]) == 0]
    if len(good) != 1:
        first, *others = task.labels
        raise JudgeSenseError(
            f"nothing tells which of the labels {', '.join(task.labels)} a good output has; if it "
            f"is {first}, add --map {shlex.quote(f'{first}=PASS,{others[0]}=FAIL')}"
        )
    others = [label for label in task.labels if label not in good]
    # YES may mean that there are errors; PASS means the same in every question.
    asks_for_errors = len(others) == 1 and polarity_cue(base.text, (good[0], others[0])) == INVERTED
    return others[0] if good[0].upper() in ("YES", "TRUE") and asks_for_errors else good[0]


def output_field(task: Task, base: Template, item: Item) -> str:
    """The field that holds the output; in a choice, the better option or else the first.

    Raises JudgeSenseError where nothing tells it.
    """
    if task.comparative:
        return task.options.get(item.gold or "", task.options[task.labels[0]])
    shown = [name for name in item.fields if name in base.placeholders]
    parts = {name: {*re.split(r"[^a-z]+", name.lower())} for name in shown}
    outputs = [name for name in shown if parts[name] & _OUTPUTS and not parts[name] & _SOURCES]
    candidates = [name for name in shown if not parts[name] & (_QUESTIONS | _SOURCES - {"text"})]
    if names := outputs or candidates:
        return names[-1]
    raise JudgeSenseError(
        f"none of the columns {', '.join(shown)} is known as the output that is judged; "
        "name it response, output or answer"
    )


def _copies(
    task: Task,
    base: Template,
    items: Sequence[Item],
    wins: str,
    kinds: Sequence[str],
    n: int,
    seed: int,
) -> Iterator[Copy]:
    """The damaged copies, then the harmless ones."""
    rng = np.random.default_rng([seed, 53])
    items = [items[at] for at in rng.permutation(len(items)).tolist()]
    fields = {item.item_id: output_field(task, base, item) for item in items[:POOL]}
    items = items[:POOL]
    good = [item for item in items if _may_be_good(task, item, wins)]
    good.sort(key=lambda item: item.gold is not None)
    outputs = {item.item_id: item.fields[fields[item.item_id]] for item in items}
    harmless = list(rules().harmless)
    for variant_class, names, limit in ((DAMAGE, kinds, n), (HARMLESS, harmless, (n + 1) // 2)):
        streams = [
            _copies_of_kind(
                task, base, _rotate(good, at / len(names)), items, kind, fields, outputs, seed
            )
            for at, kind in enumerate(names)
        ]
        count = 0
        for turn in zip_longest(*streams):
            for kind, copy in zip(names, turn, strict=True):
                if copy is not None and count < limit:
                    count += 1
                    yield Copy(copy[0], kind, variant_class, copy[1])
            if count == limit:
                break


def _may_be_good(task: Task, item: Item, wins: str) -> bool:
    if item.gold is None or task.comparative:
        return True
    if not task.ordinal:
        return item.gold == wins
    from_best = abs(task.labels.index(item.gold) - task.labels.index(wins))
    return 2 * from_best < len(task.labels) - 1


def _rotate(items: Sequence[Item], share: float) -> list[Item]:
    """The items without a label, then the others, each from another place on: kinds then start
    at different items."""
    rotated: list[Item] = []
    for group in (
        [item for item in items if item.gold is None],
        [item for item in items if item.gold is not None],
    ):
        start = int(share * len(group))
        rotated += group[start:] + group[:start]
    return rotated


def _copies_of_kind(
    task: Task,
    base: Template,
    items: Sequence[Item],
    pool: Sequence[Item],
    kind: str,
    fields: Mapping[str, str],
    outputs: Mapping[str, str],
    seed: int,
) -> Iterator[tuple[Item, Item]]:
    """Items and their copies that show the output changed, where the kind fits it."""
    names = base.placeholders
    for item in items:
        field = fields[item.item_id]
        judged = {field, *task.options.values()}
        inputs = {name: item.fields[name] for name in item.fields.keys() & names - judged}
        parts = {name: {*re.split(r"[^a-z]+", name.lower())} for name in inputs}
        output = Output(
            item.fields[field],
            "\n".join(text for name, text in sorted(inputs.items()) if not parts[name] & _SOURCES),
            "\n".join(text for _, text in sorted(inputs.items())),
            [outputs[other.item_id] for other in pool if other.cluster_id != item.cluster_id],
        )
        rng = np.random.default_rng([seed, 59, *f"{kind} {item.item_id}".encode()])
        if (text := changed(kind, output, rng)) is None:
            continue
        new = {field: text}
        if task.comparative:
            first, second = (task.options[label] for label in task.labels)
            new = {first: output.text, second: text}
        gold = task.labels[0] if task.comparative else None
        yield item, replace(item, fields={**item.fields, **new}, gold=gold)
