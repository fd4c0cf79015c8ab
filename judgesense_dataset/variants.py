"""Variants of a prompt: what each changes, declared in a YAML file, and how one is chosen.

``data/variants.yaml`` has those of the package and documents the format; `applied` in
:mod:`judgesense_dataset.variant_changes` makes a variant's template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from judgesense.decisions import (
    CONTRAST,
    EQUIVALENT,
    INTERVENTION,
    OTHER_ITEM,
    REWORDING,
    VARIANT_CLASSES,
)
from judgesense.errors import JudgeSenseError
from judgesense.files.documents import YamlNode, read_nodes
from judgesense.tasks import ANSWER
from judgesense_dataset.templates import DATA, LANGUAGE_FILES

VARIANTS = DATA / "variants.yaml"
LANGUAGE_VARIANTS = DATA / "language_variants.yaml"
THINKING_VARIANTS = DATA / "thinking_variants.yaml"
ALL = "all"
LANGUAGE, THINKING = "language", "thinking"
GROUPS = (REWORDING, "format", "order", "structure", LANGUAGE, CONTRAST, INTERVENTION, THINKING)
"""The groups that variants are chosen by; `rewording` stands for the templates themselves.

Those of `language` and `thinking` are not among ``all``: languages would be mixed into one figure
unasked, and thinking takes many times as long as an answer.
"""
MOST_THINKING = 32768
"""The most tokens of thinking that a variant may ask for."""

_CHOICES = {
    "fields": ("reversed",),
    "instruction": ("last", "system"),
    "casing": ("upper", "lower", "title"),
    "examples": ("forward", "reversed"),
    "item": ("opposite",),
    "language": tuple(LANGUAGE_FILES),
}
_TEXTS = {"separator", "spacing", "enumeration", "before", "after", "append"}
_KEYS = {
    "class", "group", "option_labels", "texts", "few_shot", "keep", "sampled", "effort",
    "reply_form",
    *_CHOICES, *_TEXTS,
}  # fmt: skip
_TEXT_KEYS = {"text", "label_map"}
_EFFORTS = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class Variant:
    """One declared change of the base wording. "" and 0 stand for "leaves it as it is".

    ``texts`` has a wording for each task that the variant exists for, ``label_maps`` what its
    answers mean (raw answer -> label; the identity for a task without a map).
    """

    name: str
    variant_class: str
    group: str
    where: str
    fields: str = ""
    instruction: str = ""
    effort: str = ""
    reply_form: str = ""
    separator: str = ""
    spacing: str = ""
    casing: str = ""
    enumeration: str = ""
    sampled: int = 0
    option_labels: tuple[str, ...] = ()
    before: str = ""
    after: str = ""
    texts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    label_maps: Mapping[str, Mapping[str, str]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    few_shot: int = 0
    examples: str = "forward"
    item: str = ""
    append: str = ""
    keep: float = 0.0
    language: str = ""

    def fail(self, reason: str) -> JudgeSenseError:
        """The error to raise for this variant: its place, its name and the reason."""
        return JudgeSenseError(f"{self.where}: the variant {self.name!r} {reason}")

    @property
    def in_english(self) -> bool:
        """Whether it is one of the package with a text, all of which are English."""
        spoken = self.texts or self.before or self.after or self.append or self.few_shot
        return bool(spoken) and self.where.startswith(str(VARIANTS))

    @property
    def changes_item(self) -> bool:
        """Whether it changes what is judged, not how it is asked."""
        return bool(self.item or self.append or self.keep)


def load_variants(path: str | Path = VARIANTS) -> dict[str, Variant]:
    """The variants of a file by name.

    Raises JudgeSenseError naming file and line for invalid YAML, an unknown key, class, group or
    value, a variant that changes nothing, and a name that is a group's.

    >>> load_variants()["json"].variant_class
    'equivalent'
    """
    root = read_nodes(Path(path))
    listed = root.mapping("a file of variants", {"variants"}).get("variants")
    assert listed is not None
    return {name: _variant(name, node) for name, node in listed.mapping("variants").items()}


def chosen_variants(
    names: Sequence[str], known: Mapping[str, Variant] | None = None
) -> tuple[bool, list[Variant]]:
    """Whether the rewordings are asked, and the variants, that a choice names.

    Args:
        names: ``all``, groups (`GROUPS`), names of variants, and YAML files, whose variants are
            all chosen and which may replace one of the package.
        known: the variants of the package by name; read from their file by default.

    Raises:
        JudgeSenseError: for an unknown name, or a file that cannot be read.

    >>> reworded, found = chosen_variants(["rewording", "order"])
    >>> reworded, [variant.name for variant in found]
    (True, ['fields-reversed', 'instruction-last'])
    """
    own = {path: load_variants(path) for path in variant_files(names)}
    whole = dict(load_variants() if known is None else known)
    unasked = {**load_variants(LANGUAGE_VARIANTS), **load_variants(THINKING_VARIANTS)}
    whole.update({name: v for name, v in unasked.items() if name not in whole})
    for variants in own.values():
        whole.update(variants)
    wanted: dict[str, None] = {}
    for name in names:
        if name in own:
            wanted.update(dict.fromkeys(own[name]))
        elif name == ALL:
            wanted.update(dict.fromkeys(name for name in whole if name not in unasked))
        elif name in GROUPS:
            wanted.update(dict.fromkeys(v.name for v in whole.values() if v.group == name))
        elif name in whole:
            wanted[name] = None
        else:
            raise JudgeSenseError(
                f"unknown variant {name!r}; choose from {ALL}, the groups {', '.join(GROUPS)}, the "
                f"variants {', '.join(whole)}, or your own YAML file"
            )
    reworded = ALL in names or REWORDING in names
    return reworded, [whole[name] for name in whole if name in wanted]


def variant_files(names: Sequence[str]) -> list[str]:
    """Those of the names that are files."""
    return [name for name in names if name.endswith((".yaml", ".yml"))]


def _variant(name: str, node: YamlNode) -> Variant:
    entries = node.mapping(f"the variant {name!r}", _KEYS)
    if name in (ALL, *GROUPS):
        raise node.fail(f"{name!r} is the name of a group; choose another name for the variant")
    if "class" not in entries:
        raise node.fail(f"missing key 'class' in the variant {name!r}")
    kind = _one_of(entries["class"], "class", VARIANT_CLASSES)
    group = "structure" if kind == EQUIVALENT else kind
    if "group" in entries:
        group = _one_of(entries["group"], "group", GROUPS[1:])
    if not set(entries) - {"class", "group", "examples"}:
        raise node.fail(f"the variant {name!r} changes nothing; add one of the keys of a change")
    if not set(entries) - {"class", "group", "examples", "reply_form"}:
        raise node.fail(
            f"the variant {name!r} has a reply_form and does not ask for it; add it to the prompt, "
            "as with after"
        )
    if ("item" in entries and kind == CONTRAST) != name.endswith(OTHER_ITEM):
        raise node.fail(
            f"the name of a contrast that shows another item, and no other, ends with "
            f"{OTHER_ITEM!r}: rename the variant {name!r}"
        )
    found = {key: _one_of(entries[key], key, _CHOICES[key]) for key in _CHOICES if key in entries}
    found |= {key: _verbatim(entries[key], key) for key in _TEXTS if key in entries}
    texts: dict[str, str] = {}
    maps: dict[str, Mapping[str, str]] = {}
    if "texts" in entries:
        for task, each in entries["texts"].mapping("texts").items():
            own = each.mapping(f"the text of task {task!r}", _TEXT_KEYS)
            if "text" not in own:
                raise each.fail(f"missing key 'text' of task {task!r}")
            texts[task] = own["text"].text("text")
            if "label_map" in own:
                pairs = own["label_map"].mapping("label_map")
                maps[task] = MappingProxyType({r: n.text("a label") for r, n in pairs.items()})
    labels: tuple[str, ...] = ()
    if "option_labels" in entries:
        listed = entries["option_labels"].sequence("option_labels")
        labels = tuple(each.text("an option label") for each in listed)
        if len(set(labels)) != 2 or len(labels) != 2:
            raise entries["option_labels"].fail("option_labels must be two different labels")
    return Variant(
        name=name,
        variant_class=kind,
        group=group,
        where=node.where,
        option_labels=labels,
        texts=MappingProxyType(texts),
        label_maps=MappingProxyType(maps),
        sampled=int(_number(entries, "sampled", 1, 999, whole=True)),
        few_shot=int(_number(entries, "few_shot", 1, 64, whole=True)),
        keep=_number(entries, "keep", 0, 1),
        effort=_effort(entries["effort"]) if "effort" in entries else "",
        reply_form=_reply_form(entries["reply_form"]) if "reply_form" in entries else "",
        **found,
    )


def _one_of(node: YamlNode, key: str, known: Sequence[str]) -> str:
    value = node.text(key)
    if value not in known:
        raise node.fail(f"unknown {key} {value!r}; choose from {', '.join(known)}")
    return value


def _effort(node: YamlNode) -> str:
    """A reasoning effort, or a number of tokens in digits."""
    text = node.text("effort")
    if text in _EFFORTS:
        return text
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_THINKING):
        raise node.fail(
            f"effort must be {', '.join(_EFFORTS)}, or a whole number of tokens of thinking from 1 "
            f"to {MOST_THINKING}, got {text!r}"
        )
    return str(int(text))


def _reply_form(node: YamlNode) -> str:
    """A reply with the answer's place in it, behind some text."""
    text = _verbatim(node, "reply_form")
    before, *rest = text.split(ANSWER)
    if len(rest) != 1 or not before.strip():
        raise node.fail(
            f"reply_form must be a reply with {ANSWER} once and text before it, as in "
            f'{{"verdict": "{ANSWER}"}}, got {text!r}'
        )
    if before[-1].isalnum():
        raise node.fail(
            f"reply_form has {before[-1]!r} right before {ANSWER}, so they would be one word: "
            "put a space or a mark between them"
        )
    return text


def _verbatim(node: YamlNode, key: str) -> str:
    """Text that may be white space alone, such as a separator."""
    if not isinstance(node.value, str) or not node.value:
        raise node.fail(f"{key} must be text")
    return node.value


def _number(
    entries: Mapping[str, YamlNode], key: str, low: float, high: float, *, whole: bool = False
) -> float:
    if key not in entries:
        return 0.0
    text = entries[key].text(key)
    try:
        value = float(int(text)) if whole else float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high or value == 0:
        kind = "a whole number" if whole else "a number"
        raise entries[key].fail(f"{key} must be {kind} above 0, at most {high:g}, got {text!r}")
    return value
