"""The vocabulary: tasks, templates, items, prompts and pairs, and the rendering of prompts.

A *task* is a kind of judgement with a finite decision space; a *template* is one wording of its
instruction with the map from raw answers to canonical decisions; an *item* is what is judged.
A *prompt* is template x item x option order, rendered to one user message.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import parse_json
from judgesense.guards import GUARDS, guarded

NO_ORDER = "-"
"""The option order of a task that shows no options (factuality, coherence)."""

ORDERS = ("AB", "BA")
"""The two option orders of a comparative task: as the item is stored, and swapped."""

UNCLEAR, REFUSED, ERROR = "UNCLEAR", "REFUSED", "ERROR"
UNDECIDED = (UNCLEAR, REFUSED, ERROR)
"""The values in place of a decision: unreadable, refused, failed."""

ANSWER = "ANSWER"
"""Stands for the answer in a ``reply_form`` such as ``{"verdict": "ANSWER"}``."""

_WHOLE = re.compile(r"-?[0-9]+")
Aliases = Mapping[str, Sequence[str]]
"""Further texts for an answer: answer -> texts."""

_AROUND = " \t\r\n*_`\"'“”‘’«»[](){}<>#$.,;:!?"
PLACEHOLDER = re.compile(rf"\{{([A-Za-z_][A-Za-z0-9_]*)(?:\|({'|'.join(GUARDS)}))?\}}")
"""A field in a wording or layout, and how it is guarded: ``{answer}``, ``{answer|quoted}``."""


def is_scale(labels: Iterable[str]) -> bool:
    """Whether every label is a whole number ("1", "-2"), so that their order is the numbers'."""
    return all(_WHOLE.fullmatch(label) for label in labels)


@dataclass(frozen=True, slots=True)
class Task:
    """A kind of judgement with a finite decision space.

    ``labels`` are the canonical decisions, in order if ``ordinal``. For a comparative task
    ``options`` names the item field shown under each label (``{"A": "passage_a", ...}``), and the
    first label belongs to the option shown first; otherwise ``options`` is empty.

    >>> Task("relevance", ("A", "B"), options={"A": "passage_a", "B": "passage_b"}).orders
    ('AB', 'BA')
    """

    name: str
    labels: tuple[str, ...]
    ordinal: bool = False
    options: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        if len(self.labels) < 2 or len(set(self.labels)) != len(self.labels):
            raise JudgeSenseError(
                f"task {self.name!r}: labels must be at least two different strings, "
                f"got {list(self.labels)}"
            )
        if clash := set(self.labels) & set(UNDECIDED):
            raise JudgeSenseError(f"task {self.name!r}: {sorted(clash)} are reserved words")
        if self.options and (set(self.options) != set(self.labels) or len(self.labels) != 2):
            raise JudgeSenseError(
                f"task {self.name!r}: options must name one item field for each of two labels"
            )

    @property
    def comparative(self) -> bool:
        """Whether the judge chooses between two options."""
        return bool(self.options)

    @property
    def orders(self) -> tuple[str, ...]:
        """The option orders in which an item can be shown."""
        return ORDERS if self.comparative else (NO_ORDER,)

    def gold_as_shown(self, gold: str | None, order: str) -> str | None:
        """The gold label in an option order: an item's gold A is shown second in BA, so it is B."""
        if gold is None or order != "BA":
            return gold
        return self.labels[1 - self.labels.index(gold)]


@dataclass(frozen=True, slots=True)
class Template:
    """One wording of a task's instruction, its label map and its layout.

    ``text`` and ``layout`` may contain ``{field}`` placeholders of the item, or ``{field|guard}``
    with one of `judgesense.guards.GUARDS`; ``layout`` must contain ``{instruction}``.
    ``label_map`` maps every raw answer to a canonical label; it is the identity unless the wording
    is inverted. ``aliases`` are further texts, in any language, that
    are read as a raw answer; they do not change the prompt.
    """

    template_id: str
    task: str
    text: str
    layout: str
    label_map: Mapping[str, str]
    aliases: Aliases = field(default_factory=lambda: MappingProxyType({}))

    @property
    def inverted(self) -> bool:
        """Whether some raw answer is the name of another label than it means.

        Other names of the same labels (1 and 2 for A and B) are no inversion.
        """
        labels = set(self.label_map.values())
        return any(raw != label and raw in labels for raw, label in self.label_map.items())

    @property
    def placeholders(self) -> frozenset[str]:
        """The item fields that the template shows."""
        found = PLACEHOLDER.findall(self.text) + PLACEHOLDER.findall(self.layout)
        return frozenset(name for name, _ in found) - {"instruction"}


@dataclass(frozen=True, slots=True)
class Item:
    """What is judged: its fields, gold label and provenance.

    ``gold`` is canonical and refers to the order AB. ``cluster_id`` names the independent unit:
    the item itself unless several items share a source (MT-Bench: the question).
    """

    item_id: str
    task: str
    fields: Mapping[str, str]
    gold: str | None = None
    cluster_id: str = ""
    system_id: str = ""
    source: str = ""
    revision: str = ""
    license: str = ""

    def __post_init__(self) -> None:
        if not self.cluster_id:
            object.__setattr__(self, "cluster_id", self.item_id)


@dataclass(frozen=True, slots=True)
class Prompt:
    """Template x item x option order, rendered to the user message ``text``.

    ``gold`` is canonical, as shown in this order. Prompts with the same ``prompt_id`` are judged
    once and logged each.
    """

    prompt_id: str
    text: str
    task: str
    item_id: str
    cluster_id: str
    template_id: str
    order: str
    label_map: str
    gold: str | None
    system_id: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two prompts on one item and order from two templates: the unit of JSS."""

    pair_id: str
    task: str
    item_id: str
    cluster_id: str
    order: str
    template_a: str
    template_b: str
    prompt_id_a: str
    prompt_id_b: str
    label_map_a: str
    label_map_b: str


def alias_key(text: str) -> str:
    """What two texts must share to be read as the same answer: case, width and marks around them
    make no difference.

    >>> alias_key(" (Ja!) ") == alias_key("ＪＡ")
    True
    """
    return unicodedata.normalize("NFKC", text).strip(_AROUND).casefold()


def wrong_alias(answers: Sequence[str], aliases: Aliases) -> tuple[str, str, str] | None:
    """The first alias that cannot be used: its answer, the alias, and the reason; None if all can.

    An alias belongs to one of the ``answers``, has a letter, a digit or a symbol, and names no
    other answer, neither as an answer nor as an alias.

    >>> wrong_alias(("YES", "NO"), {"YES": ["ja"], "NO": ["nein", "Ja"]})
    ('NO', 'Ja', "'Ja' is already an alias of 'YES'")
    """
    seen: dict[str, str] = {}
    for answer, texts in aliases.items():
        if answer not in answers:
            return answer, "", f"{answer!r} is not an answer; the answers are {', '.join(answers)}"
        for text in texts:
            key = alias_key(text)
            if not key:
                return answer, text, f"{text!r} is empty or only punctuation"
            if other := next((o for o in answers if o != answer and alias_key(o) == key), None):
                return answer, text, f"{text!r} is the answer {other!r}, not an alias of {answer!r}"
            if seen.setdefault(key, answer) != answer:
                return answer, text, f"{text!r} is already an alias of {seen[key]!r}"
    return None


def typed_answer(raw: str) -> str | int | bool:
    """A raw answer as a value of JSON.

    >>> typed_answer("1"), typed_answer("true"), typed_answer("PASS")
    (1, True, 'PASS')
    """
    if raw in ("true", "false"):
        return raw == "true"
    return int(raw) if is_scale([raw]) else raw


def prompt_id(text: str) -> str:
    """The id of a user message: the first 16 hex digits of its SHA-256."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def dump_label_map(label_map: Mapping[str, str]) -> str:
    """A label map as a table's JSON string; the keys keep their order."""
    return json.dumps(dict(label_map), ensure_ascii=False, separators=(",", ":"))


@lru_cache(maxsize=4096)
def load_label_map(text: str) -> Mapping[str, str]:
    """The label map in a table's JSON string. Raises JudgeSenseError for any other string."""
    loaded = parse_json(text, "a label map")
    if not isinstance(loaded, dict) or not loaded:
        raise JudgeSenseError(f"a label map must be a non-empty JSON object, got {text!r}")
    return MappingProxyType({str(raw): str(label) for raw, label in loaded.items()})


def render(task: Task, template: Template, item: Item, order: str) -> Prompt:
    """Render a prompt: the instruction and the item's fields in the template's layout.

    Raises JudgeSenseError if the item lacks a field that the template shows.

    >>> task = Task("tone", ("POLITE", "RUDE"))
    >>> template = Template("t1", "tone", "Polite?", "{instruction} {text}", {"POLITE": "POLITE"})
    >>> render(task, template, Item("i1", "tone", {"text": "Thanks."}), NO_ORDER).text
    'Polite? Thanks.'
    """
    fields = dict(item.fields)
    if order == "BA":
        first, second = (task.options[label] for label in task.labels)
        fields[first], fields[second] = item.fields[second], item.fields[first]

    def fill(text: str, values: Mapping[str, str]) -> str:
        # One pass, so that braces in an item's text are not read as placeholders.
        return PLACEHOLDER.sub(lambda found: _value(values, *found.groups()), text)

    def _value(values: Mapping[str, str], name: str, guard: Any) -> str:
        if name not in values:
            raise JudgeSenseError(
                f"template {template.template_id!r} of task {task.name!r} shows {{{name}}}, "
                f"which item {item.item_id!r} lacks; its fields are {sorted(item.fields)}"
            )
        if guard is None:
            return values[name]
        others = [fields[field] for field in fields.keys() - {name, *task.options.values()}]
        return guarded(values[name], guard, template.label_map, others)

    instruction = fill(template.text, fields)
    text = fill(template.layout, {**fields, "instruction": instruction})
    return Prompt(
        prompt_id=prompt_id(text),
        text=text,
        task=task.name,
        item_id=item.item_id,
        cluster_id=item.cluster_id,
        template_id=template.template_id,
        order=order,
        label_map=dump_label_map(template.label_map),
        gold=task.gold_as_shown(item.gold, order),
        system_id=item.system_id,
    )


def pair_up(first: Prompt, second: Prompt) -> Pair:
    """The pair of two prompts of the same item and order; the id names all four."""
    order = "" if first.order == NO_ORDER else f":{first.order}"
    return Pair(
        pair_id=f"{first.item_id}{order}:{first.template_id}~{second.template_id}",
        task=first.task,
        item_id=first.item_id,
        cluster_id=first.cluster_id,
        order=first.order,
        template_a=first.template_id,
        template_b=second.template_id,
        prompt_id_a=first.prompt_id,
        prompt_id_b=second.prompt_id,
        label_map_a=first.label_map,
        label_map_b=second.label_map,
    )


def signature_hash(pairs: Iterable[tuple[str, str]]) -> str:
    """The first 8 hex digits of the SHA-256 of the sorted (prompt_id_a, prompt_id_b) pairs.

    It identifies the stimuli of a figure, whatever their order in a file.
    """
    digest = hashlib.sha256()
    for first, second in sorted(pairs):
        digest.update(f"{first} {second}\n".encode())
    return digest.hexdigest()[:8]
