"""Variants of a prompt: what each changes, declared in a YAML file, and how one is chosen.

``data/variants.yaml`` has those of the package and documents the format; `applied` in
:mod:`judgesense_dataset.variant_changes` makes a variant's template.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, model_validator

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Shape, Text, invalid, read_nodes, validate_node
from judgesense.guards import Guard
from judgesense.log.schema import (
    CONTRAST,
    EQUIVALENT,
    INTERVENTION,
    OTHER_ITEM,
    REWORDING,
    WITHOUT,
)
from judgesense.tasks import ANSWER
from judgesense_dataset.templates import DATA, LANGUAGE_FILES

VARIANTS = DATA / "variants.yaml"
LANGUAGE_VARIANTS = DATA / "language_variants.yaml"
DEFENCES = DATA / "defences.yaml"
ALL = "all"
Group = Literal[
    "format", "order", "structure", "language", "contrast", "intervention", "defence", "sentences"
]
GROUPS = (REWORDING, *get_args(Group))
"""The groups that variants are chosen by; `rewording` stands for the templates themselves.

Those of `language` are not among ``all``: languages would be mixed into one figure unasked. Nor are
those of `defence`, which are there to be asked under attack, and of `sentences`, which leave out
each sentence of the wording in turn.
"""
SENTENCES = "sentences"
MOST_SENTENCES = 60
"""Sentences of a wording that are left out in turn, at most."""


def _reply_form(text: str) -> str:
    before, *rest = text.split(ANSWER)
    if len(rest) != 1 or not before.strip() or before[-1].isalnum():
        raise invalid(
            f"write a reply that has {ANSWER} once, after text that ends with a space or a mark, "
            f'as in {{"verdict": "{ANSWER}"}}'
        )
    return text


def _language(code: str) -> str:
    if code not in LANGUAGE_FILES:
        raise invalid(f"choose from {', '.join(LANGUAGE_FILES)}")
    return code


Verbatim = Annotated[str, Field(min_length=1)]
"""Text that may be white space alone, such as a separator."""


class TaskText(Shape, extra="forbid"):
    """A wording for one task, and what its answers mean: raw answer -> label."""

    text: Text
    label_map: dict[str, Text] | None = None


class Variant(Shape, extra="forbid"):
    """One declared change of the base wording. "" and 0 stand for "leaves it as it is".

    ``texts`` has a wording for each task that the variant exists for.
    """

    name: str
    where: str
    variant_class: Literal["equivalent", "contrast", "intervention"] = Field(alias="class")
    group: Group | Literal[""] = ""
    fields_order: Literal["", "reversed"] = Field("", alias="fields")
    instruction: Literal["", "last", "system"] = ""
    casing: Literal["", "upper", "lower", "title"] = ""
    examples: Literal["forward", "reversed"] = "forward"
    item: Literal["", "opposite"] = ""
    language: Annotated[str, AfterValidator(_language)] = ""
    guard: Guard | Literal[""] = ""
    separator: Verbatim = ""
    spacing: Verbatim = ""
    enumeration: Verbatim = ""
    before: Verbatim = ""
    after: Verbatim = ""
    append: Verbatim = ""
    texts: dict[str, TaskText] = Field(default_factory=dict)
    option_labels: Annotated[tuple[Text, ...], Field(min_length=2, max_length=2)] = ()
    without: Annotated[int, Field(ge=1, le=MOST_SENTENCES)] | None = None
    sampled: Annotated[int, Field(ge=1, le=999)] = 0
    few_shot: Annotated[int, Field(ge=1, le=64)] = 0
    keep: Annotated[float, Field(gt=0, le=1)] = 0.0
    effort: Literal["", "low", "medium", "high"] = ""
    reply_form: Annotated[str, AfterValidator(_reply_form)] = ""

    @model_validator(mode="after")
    def _changes_something(self) -> Variant:
        changes = self.model_fields_set - {"name", "where", "variant_class", "group", "examples"}
        if self.name in (ALL, *GROUPS):
            raise invalid(f"{self.name!r} is the name of a group; choose another name")
        if not changes:
            raise invalid("changes nothing; add a key that changes the prompt")
        if changes == {"reply_form"}:
            raise invalid("does not ask for its reply_form; ask in the prompt, as with 'after'")
        if (bool(self.item) and self.variant_class == CONTRAST) != self.name.endswith(OTHER_ITEM):
            raise invalid(
                f"end its name with {OTHER_ITEM!r} if, and only if, it is a contrast that shows "
                "another item"
            )
        if len(set(self.option_labels)) == 1:
            raise invalid("option_labels must be two different labels")
        return self

    def fail(self, reason: str) -> JudgeSenseError:
        """The error to raise for this variant: its place, its name and the reason."""
        return JudgeSenseError(f"{self.where}: the {self.name!r} variant {reason}")

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
    root = read_nodes(Path(path)).mapping("a file of variants", {"variants"})
    variants = {}
    for name, node in root["variants"].mapping("variants").items():
        variant = validate_node(Variant, node, f"the {name!r} variant", name=name, where=node.where)
        group = variant.group or (
            "structure" if variant.variant_class == EQUIVALENT else variant.variant_class
        )
        variants[name] = variant.model_copy(update={"group": group})
    return variants


def chosen_variants(names: Sequence[str]) -> tuple[bool, list[Variant]]:
    """Whether a choice includes the rewordings, and the variants that it names.

    ``names`` are ``all``, groups (`GROUPS`), names of variants, and YAML files, whose variants are
    all chosen and which may replace one of the package. Raises JudgeSenseError for an unknown name,
    or a file that cannot be read.

    >>> reworded, variants = chosen_variants(["rewording", "order"])
    >>> reworded, [variant.name for variant in variants]
    (True, ['fields-reversed', 'instruction-last'])
    """
    if isinstance(names, str):
        raise JudgeSenseError(f"variants is the text {names!r}; pass a list, such as [{names!r}]")
    files = {path: load_variants(path) for path in variant_files(names)}
    unasked = load_variants(LANGUAGE_VARIANTS) | load_variants(DEFENCES)
    by_name = {**load_variants(), **unasked}
    for variants in files.values():
        by_name.update(variants)
    listed = ", ".join(by_name)
    unasked |= {variant.name: variant for variant in _without_sentences()}
    by_name = {**unasked, **by_name}
    chosen: dict[str, None] = {}
    for name in names:
        if name in files:
            chosen.update(dict.fromkeys(files[name]))
        elif name == ALL:
            chosen.update(dict.fromkeys(name for name in by_name if name not in unasked))
        elif name in GROUPS:
            chosen.update(dict.fromkeys(v.name for v in by_name.values() if v.group == name))
        elif name in by_name:
            chosen[name] = None
        else:
            raise JudgeSenseError(
                f"unknown variant {name!r}; choose from {ALL}, the groups {', '.join(GROUPS)}, the "
                f"variants {listed}, or your own YAML file"
            )
    reworded = ALL in names or REWORDING in names
    return reworded, [by_name[name] for name in by_name if name in chosen]


def _without_sentences() -> list[Variant]:
    """The variants that leave out the first sentence, the second one, ..."""
    common = {"where": str(VARIANTS), "class": INTERVENTION, "group": SENTENCES}
    return [
        Variant.model_validate({**common, "name": f"{WITHOUT}{n}", "without": n})
        for n in range(1, MOST_SENTENCES + 1)
    ]


def variant_files(names: Sequence[str]) -> list[str]:
    """Those of the names that are files."""
    return [name for name in names if name.endswith((".yaml", ".yml"))]
