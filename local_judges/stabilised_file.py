"""The file of a stabilised judge: a judge, its wordings, and the rule that makes one verdict.

It is plain YAML without keys or code. Everything in it is checked before a model is loaded.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from judgesense.errors import JudgeSenseError
from judgesense.files import write_text
from judgesense.trust.rules import Rule
from judgesense.yaml_files import YamlNode, read_nodes, read_yaml
from judgesense_dataset.templates import TaskTemplates, read_tasks

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
    ``card`` say what it was measured on and what is expected of it.
    """

    judge: Plain
    entry: TaskTemplates
    rule: Rule
    ask_person: Plain = field(default_factory=lambda: MappingProxyType({}))
    expected: Plain = field(default_factory=lambda: MappingProxyType({}))
    data: Plain = field(default_factory=lambda: MappingProxyType({}))
    card: Plain = field(default_factory=lambda: MappingProxyType({}))
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
        if absent := [order for order in rule.orders if order not in task.orders]:
            raise JudgeSenseError(
                f"{self.where}: the task {task.name} has the orders {', '.join(task.orders)}, "
                f"and the rule asks in {absent[0]}"
            )

    @property
    def digest(self) -> str:
        """Eight hex digits of everything that fixes the verdicts, apart from the judge asked."""
        templates = {
            t.template_id: (t.text, t.layout, dict(t.label_map)) for t in self.entry.templates
        }
        fixed = json.dumps([self.rule.to_dict(), templates], sort_keys=True)
        return hashlib.sha256(fixed.encode()).hexdigest()[:8]

    @property
    def threshold(self) -> float | None:
        """The margin below which a person is asked; None if no margin is good enough."""
        found: float | None = self.ask_person.get("threshold")
        return found

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
        text = yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True, width=100)
        try:
            write_text(path, text)
        except OSError as error:
            raise JudgeSenseError(f"cannot write {path}: {error.strerror or error}") from error


def read_stabilised(path: str | Path) -> Stabilised:
    """Read and check the file of a stabilised judge.

    Raises JudgeSenseError naming the file, the line and what differs: another version, a missing or
    unknown key, labels of the offsets that are not the task's, a wording that is not there, a
    number out of range.
    """
    path = Path(path)
    root = read_nodes(path)
    if not isinstance(root.value, dict) or MARK not in root.value:
        raise JudgeSenseError(
            f"{path} is not a stabilised judge: it lacks the key {MARK}; make one with "
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
    plain = read_yaml(path)
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
        where=str(path),
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
