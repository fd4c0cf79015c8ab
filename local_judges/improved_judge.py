"""The file of an improved judge: judges, their wordings, and the recipe that makes one verdict.

It is plain YAML without keys or code. Everything in it is checked before a model is loaded.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import ConfigDict, Field

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import read_text, write_text, writing
from judgesense.files.documents import (
    OwnShape,
    YamlNode,
    parse_nodes,
    parse_yaml,
    validate,
    validate_node,
)
from judgesense.recipes.recipe import OTHER_WORDINGS, Combine, Read, Recipe
from judgesense.tasks import Template
from judgesense_dataset.templates import TaskTemplates, is_alone, read_tasks

log = logging.getLogger(__name__)

VERSION = 2
"""The version of the file that is written."""

MARK = "judgesense_judge"
"""The key that every such file begins with; its value is the version."""

EARLIER = {"judgesense_stabilised": 1}
"""The keys and versions of earlier files, which are read as well."""

Plain = Mapping[str, Any]

_Margin = Annotated[float, Field(ge=0)] | None


class _Strict(OwnShape):
    model_config = ConfigDict(extra="forbid")


class _Judge(_Strict):
    name: str
    judge: str | None = None
    engine: str | None = None
    model: str | None = None
    options: dict[str, Any] = {}  # noqa: RUF012


class _Rule(_Strict):
    remedy: str
    wordings: list[str]
    orders: list[str]
    read: Read
    offsets: dict[str, dict[str, float]] = {}  # noqa: RUF012
    ablated: int = 0


class _AskPerson(OwnShape, extra="allow"):
    threshold: _Margin = None


class _Stage(_Strict):
    judge: _Judge
    rule: Any
    margin: _Margin = None


class _File(_Stage):
    tasks: Any
    combine: Combine | None = None
    others: list[_Stage] = []  # noqa: RUF012
    search: dict[str, Any] | None = None
    ask_person: _AskPerson | None = None
    expected: dict[str, Any] | None = None
    data: dict[str, Any] | None = None
    card: dict[str, Any] | None = None


@dataclass(frozen=True)
class ImprovedJudge:
    """An improved judge as its file states it; nothing is loaded.

    ``judges`` says which judge each part of the recipe asks: ``name`` as in the decision log (with
    its fingerprint), and ``judge``, ``engine``, ``model`` and ``options`` as in a run's record;
    without an engine it is a Python function that the caller must pass. ``ask_person`` has the
    margin below which a person is to be asked (``threshold``, None if none keeps ``max_error``).
    ``expected``, ``data`` and ``card`` say what it was measured on and what to expect;
    ``data["rule"]`` is the digest of the measured recipe and wordings. ``search`` records how the
    judge was found.
    """

    judges: tuple[Plain, ...]
    entry: TaskTemplates
    recipe: Recipe
    ask_person: Plain = field(default_factory=dict)
    expected: Plain = field(default_factory=dict)
    data: Plain = field(default_factory=dict)
    card: Plain = field(default_factory=dict)
    where: str = "the improved judge"
    search: Plain = field(default_factory=dict)

    def __post_init__(self) -> None:
        task, parts = self.entry.task, self.recipe.leaves
        if len(parts) > 1 and (
            len({part.read == "vote" for part in parts}) > 1
            or any(part.read == "expected score" for part in parts)
        ):
            raise JudgeSenseError(
                f"{self.where}: read all judges that decide together by their most probable "
                "label, or all by votes"
            )
        if self.recipe.combine == "cascade" and None in self.recipe.margins[:-1]:
            raise JudgeSenseError(f"{self.where}: all judges of a cascade but the last need margin")
        templates = [template.template_id for template in self.entry.templates]
        for part in parts:
            for role, names, known in (
                ("asks the wording", part.wordings, templates),
                ("has offsets for the wording", part.offsets, [*templates, OTHER_WORDINGS]),
                ("asks in the order", part.orders, task.orders),
            ):
                if unknown := [name for name in names if name not in known]:
                    raise JudgeSenseError(
                        f"{self.where}: the rule {role} {unknown[0]!r}, which is not among those "
                        f"of the task {task.name}: {', '.join(known)}"
                    )
            lone_ids = {t.template_id for t in self.entry.templates if is_alone(task, t)}
            if part.ablated and task.comparative and not lone_ids.issuperset(part.wordings):
                raise JudgeSenseError(
                    f"{self.where}: the rule is ablated, which needs wordings that show each "
                    "option alone; make the file from such a way of asking, or remove ablated"
                )
        if unshown := sorted({*task.options.values()} - self.fields):
            raise JudgeSenseError(
                f"{self.where}: no wording shows {{{unshown[0]}}}, which the task's options name"
            )

    @cached_property
    def digest(self) -> str:
        """Eight hex digits of everything that fixes the verdicts, apart from the first judge."""
        first, *others = self.digests
        if not others:
            return first
        margin, *margins = self.recipe.margins
        names = [judge.get("name") for judge in self.judges[1:]]
        stages = [list(stage) for stage in zip(names, others, margins, strict=True)]
        text = json.dumps([first, self.recipe.combine, margin, stages])
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """The digest of each judge's part of the recipe."""
        return tuple(digest_of(self.entry, part) for part in self.recipe.leaves)

    @property
    def scoring(self) -> str:
        """How the judge is asked: ``options``, or ``generate`` for votes."""
        return "options" if self.recipe.needs_probabilities else "generate"

    @cached_property
    def base(self) -> Template:
        """The template that items are rendered with: the recipe's first wording."""
        first_id = self.recipe.wordings[0]
        return next(t for t in self.entry.templates if t.template_id == first_id)

    def wordings_of(self, *parts: Recipe) -> TaskTemplates:
        """The wordings that recipes ask, after one that shows both options if theirs do not."""
        task, names = self.entry.task, {name for part in parts for name in part.wordings}
        templates = tuple(t for t in self.entry.templates if t.template_id in names)
        if any(is_alone(task, template) for template in templates):
            comparison = next((t for t in self.entry.templates if not is_alone(task, t)), None)
            if comparison is not None and comparison not in templates:
                templates = (comparison, *templates)
        return TaskTemplates(task, templates)

    @cached_property
    def wordings(self) -> TaskTemplates:
        """The wordings that are asked, of all judges."""
        return self.wordings_of(*self.recipe.leaves)

    @property
    def fields(self) -> frozenset[str]:
        """The fields of an item that the wordings asked show, of all judges."""
        return self.wordings.fields

    @property
    def edited(self) -> bool:
        """Whether the recipe or a wording was changed after the card was measured."""
        return self.data.get("rule") not in (None, self.digest)

    @property
    def threshold(self) -> float | None:
        """The margin below which a person is asked.

        None if no margin is good enough, and in an edited file, whose error nobody measured.
        """
        threshold: float | None = self.ask_person.get("threshold")
        return None if self.edited else threshold

    def to_dict(self) -> dict[str, Any]:
        """The contents of the file."""
        first, *others = (
            {
                "judge": dict(judge),
                "rule": {key: value for key, value in part.to_dict().items() if key != "labels"},
                **({} if margin is None else {"margin": margin}),
            }
            for judge, part, margin in zip(
                self.judges, self.recipe.leaves, self.recipe.margins or (None,), strict=True
            )
        )
        return {
            MARK: VERSION,
            "judge": first.pop("judge"),
            "tasks": {self.entry.task.name: self.entry.to_dict()},
            **first,
            **({"combine": self.recipe.combine, "others": others} if others else {}),
            "ask_person": dict(self.ask_person),
            "expected": dict(self.expected),
            "data": dict(self.data),
            "card": dict(self.card),
            **({"search": dict(self.search)} if self.search else {}),
        }

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all. Raises JudgeSenseError if it cannot be written."""
        with writing(path):
            write_text(path, self.text())

    def text(self) -> str:
        """The file's text: a comment on how to use it, then :meth:`to_dict` as YAML."""
        body = yaml.dump(
            self.to_dict(), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100
        )
        return _HEAD + body

    def __reduce__(self) -> tuple[Any, ...]:
        # Templates hold read-only mappings, which cannot be pickled (for Ray's actors); the text
        # is also checked where it arrives.
        return parse_improved, (self.text(), self.where)


def judge_entry(name: str, identity: Plain) -> Plain:
    """The judge of a file, by its identity in a run's record; a function has its name alone."""
    options = dict(identity)
    if "engine" not in options:
        return {"name": name}
    source = {key: options.pop(key) for key in ("judge", "engine", "model")}
    return {"name": name, **source, "options": options}


def digest_of(entry: TaskTemplates, recipe: Recipe) -> str:
    """Eight hex digits of a recipe of one judge and the wordings that it may ask."""
    templates = {t.template_id: (t.text, t.layout, dict(t.label_map)) for t in entry.templates}
    task = [entry.task.name, list(entry.task.labels), dict(entry.task.options)]
    text = json.dumps([task, recipe.to_dict(), templates], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


_HEAD = """\
# A judge made by judgesense improve. Judge items with it:
#   judgesense judge ITEMS --judge THIS_FILE --out verdicts.parquet
# Offsets and margins are in nats. data.rule is the fingerprint of the rule and the wordings.
"""


class _Dumper(yaml.SafeDumper):
    """YAML for people: short lists and mappings on one line, long texts as they read."""


def _represent_text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _represent_list(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.Node:
    is_flow = not any(isinstance(each, (dict, list)) for each in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=is_flow)


def _represent_mapping(dumper: yaml.SafeDumper, value: dict[str, Any]) -> yaml.Node:
    is_nested = any(isinstance(each, (dict, list)) for each in value.values())
    is_flow = not is_nested and len(str(value)) < 120 and "text" not in value
    return dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=is_flow)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(list, _represent_list)
_Dumper.add_representer(dict, _represent_mapping)


def read_improved(path: str | Path) -> ImprovedJudge:
    """Read and check the file of an improved judge; warn of one that was edited by hand.

    Raises JudgeSenseError naming the file and the key or line: another version, a missing or
    unknown key, labels of the offsets that are not the task's, a wording that is not there, a
    number out of range.
    """
    improved = parse_improved(read_text(Path(path)), str(path))
    if improved.edited:
        log.warning(
            "%s: the rule or a wording was edited, so the file's card, expected accuracy and "
            "ask_person threshold no longer apply; ask_person stays empty",
            path,
        )
    return improved


def parse_improved(text: str, where: str) -> ImprovedJudge:
    """The improved judge in the text of a file; ``where`` names it. Raises as
    :func:`read_improved`."""
    content = parse_yaml(text, where)
    marks = {MARK: VERSION, **EARLIER}
    mark = next((key for key in marks if isinstance(content, dict) and key in content), None)
    if mark is None:
        raise JudgeSenseError(
            f"{where} is not a judge's file: it lacks the key {MARK}; make one with "
            "judgesense improve RUBRIC --data FILE --judge J --out FILE.yaml"
        )
    if (version := content.pop(mark)) != marks[mark]:
        raise JudgeSenseError(
            f"{where}: the file has version {version}, but this JudgeSense reads version "
            f"{marks[mark]}; make the file again with judgesense improve"
        )
    validate(_File, content, where, "a judge's file")
    # Read as text, so that a label such as YES is no boolean.
    nodes = parse_nodes(text, where).value
    tasks = read_tasks(nodes["tasks"], alone=True)
    if len(tasks) != 1:
        raise nodes["tasks"].fail(f"a judge's file has one task, got {', '.join(tasks)}")
    (entry,) = tasks.values()
    stages, rules = [content], [nodes["rule"]]
    if others := content.get("others"):
        stages += others
        rules += [stage.value["rule"] for stage in nodes["others"].value]
    if bool(others) != bool(content.get("combine")):
        raise JudgeSenseError(f"{where}: combine (cascade, jury) and others go together")
    parts = [_recipe(rule, entry, judge) for judge, rule in enumerate(rules)]
    recipe = parts[0]
    if others:
        margins = [stage.get("margin") for stage in stages]
        recipe = Recipe.together(recipe.name, content["combine"], parts, margins)
    optional = ("ask_person", "expected", "data", "card", "search")
    return ImprovedJudge(
        tuple(stage["judge"] for stage in stages),
        entry,
        recipe,
        where=where,
        **{key: content.get(key) or {} for key in optional},
    )


def _recipe(node: YamlNode, entry: TaskTemplates, judge: int) -> Recipe:
    rule = validate_node(_Rule, node, "the rule")
    try:
        ablated = ", ablated" if rule.ablated and "ablated" not in rule.remedy else ""
        return Recipe(
            f"{rule.remedy}{ablated}",
            tuple(rule.wordings),
            tuple(rule.orders),
            entry.task.labels,
            rule.read,
            calibrated=bool(rule.offsets),
            offsets=rule.offsets,
            judge=judge,
            ablated=rule.ablated,
        )
    except JudgeSenseError as error:
        raise node.fail(str(error)) from error
