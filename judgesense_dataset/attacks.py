"""Attacks: texts that try to win a verdict, from a YAML file, and the prompts that hold them.

``data/attacks.yaml`` has those of the package and documents the format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import pyarrow.compute as pc
from pydantic import AfterValidator, BeforeValidator, Field

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Shape, Text, invalid, read_nodes, validate_node
from judgesense.log.schema import ATTACK
from judgesense.tasks import Item, Task, Template, render
from judgesense_dataset.templates import DATA, TaskTemplates
from judgesense_dataset.variant_changes import VariantMaker, judged_field, more_prompts, row_of
from judgesense_dataset.variants import Variant

ATTACKS = DATA / "attacks.yaml"
SPLITS = ("build", "held_out")
SEARCH = "search"
CHOICES = ("quick", "all", SEARCH, *SPLITS)
"""Kinds tried first; all; the first ones and a sentence that a run searches for its judge; and the
two halves of the phrasings."""

WINNING = ("YES", "PASS", "CORRECT", "TRUE", "GOOD", "SAFE", "ACCEPT", "POLITE", "C")
"""Labels of single answers that an author wants, whatever their case; one of a task's labels."""

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_SIDE = re.compile(r"[_ -]?(?:[ab]|[12]|one|two|first|second)$")


def _phrase(text: str) -> str:
    names = ("noun", "label", "query")
    if unknown := [name for name in _PLACEHOLDER.findall(text) if name not in names]:
        raise invalid(f"shows {{{unknown[0]}}}; choose from {{noun}}, {{label}} and {{query}}")
    return text


class Phrasing(Shape, extra="forbid"):
    """One text of a kind of attack."""

    text: Annotated[Text, AfterValidator(_phrase)]
    language: Text = "en"
    split: Literal["build", "held_out"] = "build"
    source: Text = "judgesense"


_OR_TEXT = BeforeValidator(lambda given: {"text": given} if isinstance(given, str) else given)


class Attack(Shape, extra="forbid"):
    """A kind of attack: where its text goes, and its phrasings."""

    name: str
    about: Text
    place: Literal["before", "after", "replace"]
    quick: bool = False
    texts: Annotated[tuple[Annotated[Phrasing, _OR_TEXT], ...], Field(min_length=1)]


class Source(Shape, extra="forbid"):
    """Where phrasings come from; a source that is ``held_out`` chose no defence."""

    about: Text
    licence: Text
    url: str = ""
    held_out: bool = False


@dataclass(frozen=True)
class Attacks:
    """Kinds of attacks and, where a file names them, the labels that an attacker wants by task and
    the sources of the phrasings."""

    kinds: tuple[Attack, ...]
    wins: Mapping[str, str]
    where: str
    sources: Mapping[str, Source] = field(default_factory=dict)

    def wanted(self, task: Task) -> str:
        """The label that an attacker wants; "" for a task with options, where it is the one that
        should lose.

        Raises JudgeSenseError where nothing tells it.
        """
        if task.comparative:
            return ""
        good = [label for label in task.labels if label.upper() in WINNING]
        winner = self.wins.get(task.name, max(task.labels, key=int) if task.ordinal else None)
        if (wanted := winner or (good[0] if len(good) == 1 else None)) is None:
            raise JudgeSenseError(
                f"the task {task.name!r} does not say which of {', '.join(task.labels)} an "
                f"attacker wants; write wins: {{{task.name}: LABEL}} in your attack file"
            )
        choices = _ends(task) if task.ordinal else task.labels
        if wanted not in choices:
            raise JudgeSenseError(
                f"{self.where}: {wanted!r} in 'wins' cannot win task {task.name!r}; choose from "
                f"{', '.join(choices)}"
            )
        return wanted


def _ends(task: Task) -> tuple[str, str]:
    return min(task.labels, key=int), max(task.labels, key=int)


def load_attacks(path: str | Path = ATTACKS) -> Attacks:
    """The attacks of a file.

    Raises JudgeSenseError naming file and line for invalid YAML, an unknown key, place, split or
    placeholder, a kind without a text, and a name that could not be told from a phrasing's.

    >>> load_attacks().kinds[0].place
    'after'
    """
    form = "{NAME: {about: TEXT, place: after, texts: [TEXT, ...]}}"
    noun = f"a file of attacks (attacks: {form})"
    root = read_nodes(Path(path)).mapping(noun, {"attacks", "wins", "sources"})
    if "attacks" not in root:
        raise JudgeSenseError(f"{path}: missing key 'attacks' in {noun}")
    kinds = []
    for name, node in root["attacks"].mapping(f"attacks ({form})").items():
        if {*"#@"} & {*name} or name in CHOICES:
            raise node.fail(f"choose another name for the attack {name!r}, without # and @")
        kinds.append(validate_node(Attack, node, f"the attack {name!r}", name=name))
    wins = root["wins"].mapping("wins") if "wins" in root else {}
    winners = {task: node.text(f"the label of task {task!r}") for task, node in wins.items()}
    nodes = root["sources"].mapping("sources") if "sources" in root else {}
    sources = {n: validate_node(Source, node, f"the source {n!r}") for n, node in nodes.items()}
    return Attacks(tuple(kinds), winners, str(path), sources)


def chosen_attacks(choice: str | Path) -> Attacks:
    """The attacks of a choice: ``quick``, ``all``, one half of the phrasings (``build`` or
    ``held_out``), or a YAML file; of ``search`` those beside the one that a run searches.

    Raises JudgeSenseError for an unknown choice, or a file that cannot be read.

    >>> [kind.name for kind in chosen_attacks("quick").kinds]
    ['self-praise', 'instruction', 'fake-verdict']
    """
    if Path(choice).suffix in (".yaml", ".yml"):
        return load_attacks(choice)
    if choice not in CHOICES:
        raise JudgeSenseError(
            f"unknown attacks {choice!r}; choose {', '.join(CHOICES)}, or your own YAML file"
        )
    attacks = load_attacks()
    kinds = [kind for kind in attacks.kinds if kind.quick or choice not in ("quick", SEARCH)]
    if choice in SPLITS:
        halves = [[text for text in kind.texts if text.split == choice] for kind in kinds]
        kinds = [
            kind.model_copy(update={"texts": tuple(half)})
            for kind, half in zip(kinds, halves, strict=True)
            if half
        ]
    return replace(attacks, kinds=tuple(kinds))


def with_attacks(
    benchmark: Benchmark,
    templates: Mapping[str, TaskTemplates],
    items: Sequence[Item],
    attacks: Attacks,
    *,
    defences: Sequence[Variant] = (),
    orders: Sequence[str] | None = None,
    seed: int = 0,
) -> Benchmark:
    """The benchmark with each kind of attack on every item that an attack could win.

    An attack goes into the option that should lose, or into the judged text of an item whose gold
    label is not the winning one; on a scale also where there is no gold label. It is asked under
    the base wording, in every option order, once. Each item gets one phrasing of a kind, in turn;
    ``seed`` fixes which.

    ``defences`` are variants of the benchmark that the attacks are asked under as well; ``orders``
    those of comparative tasks, both by default. Raises JudgeSenseError for a task without a side
    that should lose.

    >>> from judgesense_dataset.embedded import embedded_items, embedded_templates, load_embedded
    >>> whole = load_embedded().select(["relevance"], limit=2)
    >>> more = with_attacks(whole, embedded_templates(), embedded_items(), chosen_attacks("quick"))
    >>> more.prompts.num_rows - whole.prompts.num_rows  # 3 kinds, 2 items, 2 orders
    12
    """
    texts: dict[str, dict[str, Any]] = {}
    wins: dict[str, str] = {}
    old = benchmark.prompts.to_pylist()
    base_keys = {(row["task"], row["item_id"], row["order"], row["template_id"]) for row in old}
    rows: list[dict[str, Any]] = []
    for name, task in benchmark.tasks.items():
        wins[name] = attacks.wanted(task)
        maker = VariantMaker(templates[name])
        base = maker.base
        templates_of = {d.name: maker.template(d) for d in defences}
        asked_as = {"": base, **{f"@{d}": made for d, made in templates_of.items() if made}}
        losing = losing_items(benchmark, task, items, wins[name])
        sides = [order for order in task.orders if not orders or order in orders] or task.orders
        for number, item in enumerate(losing):
            for order in sides:
                if (name, item.item_id, order, base.template_id) not in base_keys:
                    rows.append(row_of(render(task, base, item, order), again=False))
                for variant, fact, shown_item in attacked_items(
                    task,
                    base,
                    item,
                    order,
                    wins[name],
                    attacks.kinds,
                    number + seed,
                    base.label_map,
                ):
                    for suffix, template in asked_as.items():
                        texts[f"{variant}{suffix}"] = fact
                        prompt = render(task, template, shown_item, order)
                        # It is asked once, however often a run asks the others.
                        attacked = {"variant": f"{variant}{suffix}", "variant_class": ATTACK}
                        rows.append(row_of(prompt, again=None, **attacked))
    if not texts:
        raise JudgeSenseError(
            "no item has a side that should lose: attacks need gold labels (or a scale), and items "
            "whose label is not the one that an attacker wants"
        )
    return replace(
        benchmark,
        prompts=more_prompts(old, rows),
        attacks={"texts": texts, "wins": wins},
    )


def losing_items(benchmark: Benchmark, task: Task, items: Sequence[Item], wins: str) -> list[Item]:
    """The items of a benchmark's task that an attack could win."""
    of_task = benchmark.prompts.filter(pc.equal(benchmark.prompts["task"], task.name))
    item_ids = set(of_task["item_id"].to_pylist())
    return [
        item
        for item in items
        if item.task == task.name and item.item_id in item_ids and _can_win(task, item, wins)
    ]


Copy = Callable[[Template, str], Item]
"""An attacked copy of an item, as a wording shows it in an option order."""


def attacked_copies(entry: TaskTemplates, items: Sequence[Item], attacks: Attacks) -> list[Copy]:
    """A copy of each item that an attack could win, with one kind of attack, in turn.

    A copy has the cluster of its item. An attack that names an answer names the one with which it
    wins under the wording and in the order that show the copy.
    Raises JudgeSenseError for a task without a side that should lose.
    """
    task, wins, base = entry.task, attacks.wanted(entry.task), VariantMaker(entry).base
    losing = [item for item in items if _can_win(task, item, wins)]

    def copy_of(n: int, template: Template, order: str) -> Item | None:
        # Kinds in turn, and the next phrasing each time that a kind comes round.
        turn, kind = divmod(n, len(attacks.kinds))
        kinds, labels = attacks.kinds[kind:][:1], template.label_map
        for name, _, copy in attacked_items(
            task, base, losing[n], order, wins, kinds, turn, labels
        ):
            return replace(copy, item_id=f"{copy.item_id}~{name}")
        return None

    usable = [n for n in range(len(losing)) if copy_of(n, base, task.orders[0])]
    return [cast(Copy, partial(copy_of, n)) for n in usable]


def _can_win(task: Task, item: Item, wins: str) -> bool:
    return item.gold is not None and item.gold != wins if not task.ordinal else item.gold != wins


def attacked_items(
    task: Task,
    base: Template,
    item: Item,
    order: str,
    wins: str,
    kinds: Sequence[Attack],
    turn: int,
    labels: Mapping[str, str],
) -> Iterator[tuple[str, dict[str, Any], Item]]:
    """Each kind's name with the number of its phrasing, what it is, and the item that holds it.

    ``labels`` is the label map of the wording that shows the item in this order.
    """
    target = judged_field(task, item, "-")
    winner = wins
    if task.comparative:
        winner = next(label for label in task.labels if label != item.gold)
        target = task.options[winner]
    names = [name for name in item.fields if name != target and name not in task.options.values()]
    context = [name for name in names if name in base.placeholders]
    label = task.gold_as_shown(winner, order)
    values = {
        "noun": _SIDE.sub("", target).replace("_", " ") or "text",
        "label": next(raw for raw, meant in labels.items() if meant == label),
        "query": item.fields[context[0]] if context else "",
    }
    for shift, kind in enumerate(kinds):
        usable = [n for n, each in enumerate(kind.texts) if context or "{query}" not in each.text]
        if not usable:
            continue
        number = usable[(turn + shift) % len(usable)]
        phrasing = kind.texts[number]
        # One pass, so that braces in the item's own text are no placeholders.
        text = _PLACEHOLDER.sub(lambda match: values[match.group(1)], phrasing.text)
        old = item.fields[target]
        joint = "" if text[:1].isspace() else " "
        new = {"after": f"{old}{joint}{text}", "before": f"{text} {old}", "replace": text}
        attacked = replace(item, fields={**item.fields, target: new[kind.place]})
        fact = {
            "kind": kind.name,
            "about": kind.about,
            "place": kind.place,
            "text": phrasing.text,
            "language": phrasing.language,
            "split": phrasing.split,
            "source": phrasing.source,
        }
        yield f"{kind.name}#{number + 1}", fact, attacked
