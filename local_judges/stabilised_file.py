"""The file of a stabilised judge: a judge, its wordings, and the rule that makes one verdict.

It is plain YAML without keys or code. Everything in it is checked before a model is loaded.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import read_text, write_text
from judgesense.files.documents import YamlNode, parse_nodes, parse_yaml
from judgesense.trust.rules import OTHER_WORDINGS, Rule
from judgesense_dataset.templates import TaskTemplates, read_tasks

log = logging.getLogger(__name__)

VERSION = 1
"""The version of the file that is written; others are refused."""

MARK = "judgesense_stabilised"
"""The key that every such file begins with; its value is the version."""

_KEYS = {MARK, "judge", "tasks", "rule", "ask_person", "expected", "data", "card"}
_RULE_KEYS = {"remedy", "wordings", "orders", "read", "offsets"}
_JUDGE_KEYS = {"name", "judge", "engine", "model", "options"}
_ASK_KEYS = {
    "max_error", "threshold", "answered", "error", "error_bound", "confidence", "verdicts",
    "needed",
}  # fmt: skip

Plain = Mapping[str, Any]


@dataclass(frozen=True)
class Stabilised:
    """A stabilised judge as its file states it; nothing is loaded.

    ``judge`` says which judge to ask: ``name`` as in the decision log (with its fingerprint), and
    ``judge``, ``engine``, ``model`` and ``options`` as in a run's record; without an engine it is a
    Python function that the caller must pass. ``ask_person`` has the margin below which a person
    is to be asked (``threshold``, None if none holds ``max_error``). ``expected``, ``data`` and
    ``card`` say what it was measured on and what is expected of it; ``data["rule"]`` is the digest
    of the rule and wordings that they are about.
    """

    judge: Plain
    entry: TaskTemplates
    rule: Rule
    ask_person: Plain = field(default_factory=dict)
    expected: Plain = field(default_factory=dict)
    data: Plain = field(default_factory=dict)
    card: Plain = field(default_factory=dict)
    where: str = "the stabilised judge"

    def __post_init__(self) -> None:
        task, rule = self.entry.task, self.rule
        known = {template.template_id for template in self.entry.templates}
        if rule.labels != task.labels:
            raise JudgeSenseError(
                f"{self.where}: the rule is for the labels {', '.join(rule.labels)}, and the task "
                f"{task.name} has {', '.join(task.labels)}"
            )
        if absent := [wording for wording in rule.wordings if wording not in known]:
            raise JudgeSenseError(
                f"{self.where}: the rule asks the wording {absent[0]!r}, which is not among the "
                f"templates {', '.join(sorted(known))}"
            )
        if absent := [key for key in rule.offsets if key not in known | {OTHER_WORDINGS}]:
            raise JudgeSenseError(
                f"{self.where}: the rule has offsets for the wording {absent[0]!r}, which is not "
                f"among the templates {', '.join(sorted(known))}"
            )
        if absent := [order for order in rule.orders if order not in task.orders]:
            raise JudgeSenseError(
                f"{self.where}: the task {task.name} has the orders {', '.join(task.orders)}, "
                f"and the rule asks in {absent[0]}"
            )

    @property
    def digest(self) -> str:
        """Eight hex digits of everything that fixes the verdicts, apart from the judge asked."""
        return digest_of(self.entry, self.rule)

    @property
    def scoring(self) -> str:
        """How the judge is asked: ``options``, or ``generate`` for votes."""
        return "options" if self.rule.needs_probabilities else "generate"

    @property
    def fields(self) -> frozenset[str]:
        """The fields of an item that the rule's wordings show."""
        own = [t.placeholders for t in self.entry.templates if t.template_id in self.rule.wordings]
        return frozenset().union(*own)

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
        task = self.entry.task
        listed: dict[str, Any] = {"labels": list(task.labels)}
        if task.ordinal:
            listed["ordinal"] = True
        if task.comparative:
            listed["options"] = dict(task.options)
        first = self.entry.templates[0]
        listed["layout"] = first.layout
        listed["templates"] = []
        for template in self.entry.templates:
            own: dict[str, Any] = {"id": template.template_id, "text": template.text}
            if template.layout != first.layout:
                own["layout"] = template.layout
            if dict(template.label_map) != {label: label for label in task.labels}:
                own["label_map"] = dict(template.label_map)
            if template.aliases:
                own["aliases"] = {key: list(texts) for key, texts in template.aliases.items()}
            listed["templates"].append(own)
        rule = self.rule.to_dict()
        del rule["labels"]
        return {
            MARK: VERSION,
            "judge": dict(self.judge),
            "tasks": {task.name: listed},
            "rule": rule,
            "ask_person": dict(self.ask_person),
            "expected": dict(self.expected),
            "data": dict(self.data),
            "card": dict(self.card),
        }

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all. Raises JudgeSenseError if it cannot be written."""
        try:
            write_text(path, self.text())
        except OSError as error:
            raise JudgeSenseError(f"cannot write {path}: {error.strerror or error}") from error

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


def digest_of(entry: TaskTemplates, rule: Rule) -> str:
    """Eight hex digits of a rule and the wordings that it may ask."""
    templates = {t.template_id: (t.text, t.layout, dict(t.label_map)) for t in entry.templates}
    task = [entry.task.name, list(entry.task.labels), dict(entry.task.options)]
    fixed = json.dumps([task, rule.to_dict(), templates], sort_keys=True)
    return hashlib.sha256(fixed.encode()).hexdigest()[:8]


_HEAD = """\
# A judge made by judgesense stabilise. Judge items with it:
#   judgesense judge ITEMS --judge THIS_FILE --out verdicts.parquet
# Offsets and margins are in nats. data.rule is the fingerprint of the rule and the wordings.
"""


class _Dumper(yaml.SafeDumper):
    """YAML for people: short lists and mappings on one line, long texts as they read."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _represent_text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _short(values: Any) -> bool:
    return not any(isinstance(each, (dict, list)) for each in values) and len(str(values)) < 90


def _represent_mapping(dumper: yaml.SafeDumper, value: dict[str, Any]) -> yaml.Node:
    flow = _short(list(value.values())) and len(str(value)) < 120 and "text" not in value
    return dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=flow)


def _represent_list(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=_short(value))


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(dict, _represent_mapping)
_Dumper.add_representer(list, _represent_list)


def read_stabilised(path: str | Path) -> Stabilised:
    """Read and check the file of a stabilised judge; warn of one that was edited by hand.

    Raises JudgeSenseError naming the file, the line and what differs: another version, a missing or
    unknown key, labels of the offsets that are not the task's, a wording that is not there, a
    number out of range.
    """
    found = parse_stabilised(read_text(Path(path)), str(path))
    if found.edited:
        log.warning(
            "%s: the rule or a wording was edited, so its card, its expected accuracy and its "
            "ask_person threshold are not about it; ask_person stays empty",
            path,
        )
    return found


def parse_stabilised(text: str, where: str) -> Stabilised:
    """The stabilised judge in the text of a file; ``where`` names it. Raises as
    :func:`read_stabilised`."""
    root = parse_nodes(text, where)
    if not isinstance(root.value, dict) or MARK not in root.value:
        raise JudgeSenseError(
            f"{where} is not a stabilised judge: it lacks the key {MARK}; make one with "
            "judgesense stabilise DIR --judge J --task T --out FILE.yaml"
        )
    version = root.value[MARK]
    if version.value != str(VERSION):
        raise version.fail(
            f"this is version {version.value} of the file, and this JudgeSense reads version "
            f"{VERSION}; make the file again with judgesense stabilise"
        )
    nodes = root.mapping("a stabilised judge", _KEYS)
    for key in ("judge", "tasks", "rule"):
        if key not in nodes:
            raise root.fail(f"missing key {key!r} in a stabilised judge")
    tasks = read_tasks(nodes["tasks"], at_least=1)
    if len(tasks) != 1:
        raise nodes["tasks"].fail(f"a stabilised judge has one task, got {', '.join(tasks)}")
    (entry,) = tasks.values()
    plain = parse_yaml(text, where)
    nodes["judge"].mapping("judge", _JUDGE_KEYS)
    judge = plain["judge"]
    if not isinstance(judge.get("name"), str) or not isinstance(judge.get("options", {}), dict):
        raise nodes["judge"].fail("judge needs a name (text), and its options are a mapping")
    return Stabilised(
        judge=judge,
        entry=entry,
        rule=_rule(nodes["rule"], entry),
        ask_person=_ask(nodes.get("ask_person"), plain.get("ask_person") or {}),
        expected=_mapping(plain, "expected", nodes),
        data=_mapping(plain, "data", nodes),
        card=_mapping(plain, "card", nodes),
        where=where,
    )


def _rule(node: YamlNode, entry: TaskTemplates) -> Rule:
    entries = node.mapping("rule", _RULE_KEYS)
    for key in ("remedy", "wordings", "orders", "read"):
        if key not in entries:
            raise node.fail(f"missing key {key!r} in rule")
    offsets: dict[str, dict[str, float]] = {}
    if "offsets" in entries and entries["offsets"].value:
        for wording, row in entries["offsets"].mapping("offsets").items():
            offsets[wording] = {
                label: _number(value, f"the offset of {label!r}")
                for label, value in row.mapping(f"the offsets of {wording!r}").items()
            }
    try:
        return Rule(
            remedy=entries["remedy"].text("remedy"),
            wordings=tuple(w.text("a wording") for w in entries["wordings"].sequence("wordings")),
            orders=tuple(o.text("an order") for o in entries["orders"].sequence("orders")),
            labels=entry.task.labels,
            read=entries["read"].text("read"),  # type: ignore[arg-type]
            offsets=offsets,
        )
    except JudgeSenseError as error:
        if str(error).startswith("the rule"):
            raise node.fail(str(error)) from error
        raise


def _number(node: YamlNode, what: str) -> float:
    try:
        value = float(node.value)
    except (TypeError, ValueError):
        raise node.fail(f"{what} must be a number, got {node.value!r}") from None
    if not math.isfinite(value):
        raise node.fail(f"{what} must be finite, got {node.value}")
    return value


def _ask(node: YamlNode | None, plain: Plain) -> Plain:
    if node is None or not plain:
        return {}
    node.mapping("ask_person", _ASK_KEYS)
    for key, low, high in (
        ("max_error", 0, 1), ("threshold", 0, math.inf), ("answered", 0, 1), ("error", 0, 1),
        ("error_bound", 0, 1), ("confidence", 0, 1),
    ):  # fmt: skip
        value = plain.get(key)
        if value is None:
            continue
        if (
            isinstance(value, bool)
            or not isinstance(value, (int, float))
            or not low <= value <= high
        ):
            raise node.fail(
                f"ask_person.{key} must be a number from {low} to {high}, got {value!r}"
            )
    return plain


def _mapping(plain: Plain, key: str, nodes: Mapping[str, YamlNode]) -> Plain:
    value = plain.get(key) or {}
    if not isinstance(value, dict):
        raise nodes[key].fail(f"{key} must be a mapping")
    return value
