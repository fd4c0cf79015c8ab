"""The file of an improved judge: a judge, its wordings, and the rule that makes one verdict.

Several judges decide together as a cascade (the next decides where a margin is small) or a jury
(the mean decides). It is plain YAML without keys or code. Everything in it is checked before a
model is loaded.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import ConfigDict, Field

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import read_text, write_text, writing
from judgesense.files.documents import (
    OwnShape,
    YamlNode,
    fit,
    fit_node,
    parse_nodes,
    parse_yaml,
)
from judgesense.recipes.rules import OTHER_WORDINGS, Read, Rule
from judgesense.tasks import Template
from judgesense_dataset.templates import TaskTemplates, is_alone, read_tasks

log = logging.getLogger(__name__)

VERSION = 2
"""The version of the file that is written."""

MARK = "judgesense_judge"
"""The key that every such file begins with; its value is the version."""

EARLIER = {"judgesense_stabilised": 1}
"""The keys and versions of earlier files, which are read as well."""

Combine = Literal["cascade", "jury"]

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


class _AskPerson(OwnShape, extra="allow"):
    threshold: _Margin = None


class _Next(_Strict):
    judge: _Judge
    rule: Any
    margin: _Margin = None


class _File(_Strict):
    judge: _Judge
    tasks: Any
    rule: Any
    margin: _Margin = None
    combine: Combine | None = None
    others: list[_Next] = []  # noqa: RUF012
    search: dict[str, Any] | None = None
    ask_person: _AskPerson | None = None
    expected: dict[str, Any] | None = None
    data: dict[str, Any] | None = None
    card: dict[str, Any] | None = None


@dataclass(frozen=True)
class Stabilised:
    """An improved judge as its file states it; nothing is loaded.

    ``judge`` says which judge to ask: ``name`` as in the decision log (with its fingerprint), and
    ``judge``, ``engine``, ``model`` and ``options`` as in a run's record; without an engine it is a
    Python function that the caller must pass. ``ask_person`` has the margin below which a person
    is to be asked (``threshold``, None if none keeps ``max_error``). ``expected``, ``data`` and
    ``card`` say what it was measured on and what to expect; ``data["rule"]`` is the digest of the
    measured rule and wordings. ``others`` decide with the first judge: in a cascade each is asked
    where the margin of the one before is below that one's ``margin`` (nats; share of votes), in a
    jury all are. ``search`` records how the judge was found.
    """

    judge: Plain
    entry: TaskTemplates
    rule: Rule
    ask_person: Plain = field(default_factory=dict)
    expected: Plain = field(default_factory=dict)
    data: Plain = field(default_factory=dict)
    card: Plain = field(default_factory=dict)
    where: str = "the improved judge"
    combine: Combine | None = None
    others: tuple[Stabilised, ...] = ()
    margin: float | None = None
    search: Plain = field(default_factory=dict)

    def __post_init__(self) -> None:
        task, rule = self.entry.task, self.rule
        if bool(self.others) != bool(self.combine):
            raise JudgeSenseError(f"{self.where}: combine (cascade, jury) and others go together")
        stages = (self, *self.others)
        if self.others and (
            len({each.rule.read == "vote" for each in stages}) > 1
            or any(each.rule.read == "expected score" for each in stages)
        ):
            raise JudgeSenseError(
                f"{self.where}: read all judges that decide together by their most probable "
                "label, or all by votes"
            )
        if self.combine == "cascade" and any(each.margin is None for each in stages[:-1]):
            raise JudgeSenseError(f"{self.where}: all judges of a cascade but the last need margin")
        templates = [template.template_id for template in self.entry.templates]
        for what, used, known in (
            ("asks the wording", rule.wordings, templates),
            ("has offsets for the wording", rule.offsets, [*templates, OTHER_WORDINGS]),
            ("asks in the order", rule.orders, task.orders),
        ):
            if absent := [name for name in used if name not in known]:
                raise JudgeSenseError(
                    f"{self.where}: the rule {what} {absent[0]!r}, which is not among those of the "
                    f"task {task.name}: {', '.join(known)}"
                )
        if hidden := sorted({*task.options.values()} - self.fields):
            raise JudgeSenseError(
                f"{self.where}: no wording shows {{{hidden[0]}}}, which the task's options name"
            )

    @cached_property
    def digest(self) -> str:
        """Eight hex digits of everything that fixes the verdicts, apart from the first judge."""
        own = digest_of(self.entry, self.rule)
        if not self.others:
            return own
        others = [[each.judge.get("name"), each.digest, each.margin] for each in self.others]
        stated = json.dumps([own, self.combine, self.margin, others])
        return hashlib.sha256(stated.encode()).hexdigest()[:8]

    @property
    def scoring(self) -> str:
        """How the judge is asked: ``options``, or ``generate`` for votes."""
        return "options" if self.rule.needs_probabilities else "generate"

    @cached_property
    def base(self) -> Template:
        """The template that items are rendered with: the rule's first wording."""
        first = self.rule.wordings[0]
        return next(each for each in self.entry.templates if each.template_id == first)

    @property
    def asked(self) -> TaskTemplates:
        """The wordings that are asked, after one that shows both options if theirs do not."""
        names = {name for each in (self, *self.others) for name in each.rule.wordings}
        shown = tuple(t for t in self.entry.templates if t.template_id in names)
        if any(is_alone(self.entry.task, t) for t in shown):
            whole = (t for t in self.entry.templates if not is_alone(self.entry.task, t))
            shown = (*(t for t in islice(whole, 1) if t not in shown), *shown)
        return TaskTemplates(self.entry.task, shown)

    @cached_property
    def asks_own(self) -> bool:
        """Whether it asks its own wordings, whatever a message's wording."""
        chosen = [t for t in self.entry.templates if t.template_id in self.rule.wordings]
        return len(chosen) > 1 or any(is_alone(self.entry.task, t) for t in chosen)

    @cached_property
    def fields(self) -> frozenset[str]:
        """The fields of an item that the wordings asked show, of all judges."""
        return self.asked.fields

    @property
    def edited(self) -> bool:
        """Whether the rule or a wording was changed after the card was measured."""
        return self.data.get("rule") not in (None, self.digest)

    @property
    def threshold(self) -> float | None:
        """The margin below which a person is asked.

        None if no margin is good enough, and in an edited file, whose error nobody measured.
        """
        found: float | None = self.ask_person.get("threshold")
        return None if self.edited else found

    def to_dict(self) -> dict[str, Any]:
        """The contents of the file."""
        stages = (self, *self.others)
        rule, *rules = [
            {key: value for key, value in each.rule.to_dict().items() if key != "labels"}
            for each in stages
        ]
        others = [
            {
                "judge": dict(each.judge),
                "rule": own,
                **({} if each.margin is None else {"margin": each.margin}),
            }
            for each, own in zip(self.others, rules, strict=True)
        ]
        return {
            MARK: VERSION,
            "judge": dict(self.judge),
            "tasks": {self.entry.task.name: self.entry.to_dict()},
            "rule": rule,
            **({} if self.margin is None else {"margin": self.margin}),
            **({"combine": self.combine, "others": others} if others else {}),
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
        return parse_stabilised, (self.text(), self.where)


def judge_entry(name: str, identity: Plain) -> Plain:
    """The judge of a file, by its identity in a run's record; a function has its name alone."""
    options = dict(identity)
    if "engine" not in options:
        return {"name": name}
    stated = {key: options.pop(key) for key in ("judge", "engine", "model")}
    return {"name": name, **stated, "options": options}


def digest_of(entry: TaskTemplates, rule: Rule) -> str:
    """Eight hex digits of a rule and the wordings that it may ask."""
    templates = {t.template_id: (t.text, t.layout, dict(t.label_map)) for t in entry.templates}
    task = [entry.task.name, list(entry.task.labels), dict(entry.task.options)]
    fixed = json.dumps([task, rule.to_dict(), templates], sort_keys=True)
    return hashlib.sha256(fixed.encode()).hexdigest()[:8]


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
    flow = not any(isinstance(each, (dict, list)) for each in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=flow)


def _represent_mapping(dumper: yaml.SafeDumper, value: dict[str, Any]) -> yaml.Node:
    nested = any(isinstance(each, (dict, list)) for each in value.values())
    flow = not nested and len(str(value)) < 120 and "text" not in value
    return dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=flow)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(list, _represent_list)
_Dumper.add_representer(dict, _represent_mapping)


def read_stabilised(path: str | Path) -> Stabilised:
    """Read and check the file of an improved judge; warn of one that was edited by hand.

    Raises JudgeSenseError naming the file and the key or line: another version, a missing or
    unknown key, labels of the offsets that are not the task's, a wording that is not there, a
    number out of range.
    """
    found = parse_stabilised(read_text(Path(path)), str(path))
    if found.edited:
        log.warning(
            "%s: the rule or a wording was edited, so the file's card, expected accuracy and "
            "ask_person threshold no longer apply; ask_person stays empty",
            path,
        )
    return found


def parse_stabilised(text: str, where: str) -> Stabilised:
    """The improved judge in the text of a file; ``where`` names it. Raises as
    :func:`read_stabilised`."""
    plain = parse_yaml(text, where)
    marks = {MARK: VERSION, **EARLIER}
    mark = next((key for key in marks if isinstance(plain, dict) and key in plain), None)
    if mark is None:
        raise JudgeSenseError(
            f"{where} is not a judge's file: it lacks the key {MARK}; make one with "
            "judgesense improve RUBRIC --data FILE --judge J --out FILE.yaml"
        )
    if (version := plain.pop(mark)) != marks[mark]:
        raise JudgeSenseError(
            f"{where}: the file has version {version}, but this JudgeSense reads version "
            f"{marks[mark]}; make the file again with judgesense improve"
        )
    fit(_File, plain, where, "a judge's file")
    # Read as text, so that a label such as YES is no boolean.
    nodes = parse_nodes(text, where).value
    tasks = read_tasks(nodes["tasks"], alone=True)
    if len(tasks) != 1:
        raise nodes["tasks"].fail(f"a judge's file has one task, got {', '.join(tasks)}")
    (entry,) = tasks.values()
    more = {
        key: plain.get(key) or {} for key in ("ask_person", "expected", "data", "card", "search")
    }
    others = tuple(
        Stabilised(
            stage["judge"],
            entry,
            _rule(node.value["rule"], entry),
            where=where,
            margin=stage.get("margin"),
        )
        for stage, node in zip(
            plain.get("others") or (),
            nodes["others"].value if plain.get("others") else (),
            strict=True,
        )
    )
    return Stabilised(
        plain["judge"],
        entry,
        _rule(nodes["rule"], entry),
        **more,
        where=where,
        others=others,
        combine=plain.get("combine"),
        margin=plain.get("margin"),
    )


def _rule(node: YamlNode, entry: TaskTemplates) -> Rule:
    stated = fit_node(_Rule, node, "the rule")
    try:
        return Rule(
            stated.remedy,
            tuple(stated.wordings),
            tuple(stated.orders),
            entry.task.labels,
            stated.read,
            stated.offsets,
        )
    except JudgeSenseError as error:
        raise node.fail(str(error)) from error
