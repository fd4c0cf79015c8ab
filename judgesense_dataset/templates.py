"""Read template files, with errors that name the line.

A template file is YAML; ``data/templates.yaml`` documents the format and is a file to copy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import YamlNode, read_nodes
from judgesense.tasks import UNDECIDED, Task, Template, wrong_alias

DATA = Path(__file__).parent / "data"
"""The folder of the data files in the package."""

EMBEDDED_SOURCE = "judgesense-embedded"
"""The `source` of the items that come with the package."""

LANGUAGE_FILES = {path.parent.name: path for path in sorted(DATA.glob("??/templates.yaml"))}
"""The template files in other languages than English, by language."""

_FILE_KEYS = {"source", "license", "tasks"}
_TASK_KEYS = {"labels", "ordinal", "options", "layout", "templates"}
_TEMPLATE_KEYS = {"id", "text", "label_map", "aliases", "layout", "accepted", "measured"}
_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class TaskTemplates:
    """A task and its templates: one entry of a template file."""

    task: Task
    templates: tuple[Template, ...]

    @property
    def fields(self) -> frozenset[str]:
        """The item fields that the templates show."""
        return frozenset().union(*(template.placeholders for template in self.templates))


@lru_cache(maxsize=256)
def layout_patterns(whole: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A layout with its wording as two patterns: fields match as little, or as much, as possible.

    Where the two read a prompt differently, a field's text looks like the layout.

    >>> little, much = layout_patterns("Which? A: {one} B: {two}")
    >>> little.fullmatch("Which? A: x B: y B: z").groupdict()
    {'one': 'x', 'two': 'y B: z'}
    """
    parts = re.split(r"\{(\w+)\}", whole)
    made = []
    for much in ("*?", "*"):
        seen: set[str] = set()
        pattern = re.escape(parts[0])
        for name, literal in zip(parts[1::2], parts[2::2], strict=True):
            pattern += f"(?P={name})" if name in seen else f"(?P<{name}>.{much})"
            pattern += re.escape(literal)
            seen.add(name)
        made.append(re.compile(pattern, re.DOTALL))
    return made[0], made[1]


def patterns_of(template: Template) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The `layout_patterns` of the prompts of a template."""
    return layout_patterns(template.layout.replace("{instruction}", template.text))


def load_templates(
    path: str | Path, at_least: int = 2, unread: bool = False
) -> dict[str, TaskTemplates]:
    """Load the tasks of a template file by name, in the file's order.

    Candidates of ``judgesense dataset paraphrase`` are left out until they say ``accepted: true``;
    with ``unread`` they count unless they say ``accepted: false``.

    Raises JudgeSenseError naming the file and line for invalid YAML, an unknown or missing key, a
    layout without ``{instruction}``, a brace that is not a placeholder, a comparative task that
    does not show its options, a label map that leads outside the labels or never reaches one, an
    alias of no answer or of two, a repeated id, or a task with fewer than ``at_least`` templates.

    >>> list(load_templates(DATA / "templates.yaml"))
    ['factuality', 'coherence', 'relevance', 'preference']
    """
    root = read_nodes(Path(path))
    tasks = root.mapping("a template file", _FILE_KEYS).get("tasks")
    if tasks is None:
        raise root.fail("missing key 'tasks' in a template file")
    return read_tasks(tasks, at_least, unread)


def read_tasks(node: YamlNode, at_least: int = 2, unread: bool = False) -> dict[str, TaskTemplates]:
    """The tasks in a YAML mapping; raises as :func:`load_templates`."""
    seen: dict[str, str] = {}
    return {
        name: _task(name, entry, seen, at_least, unread)
        for name, entry in node.mapping("the key 'tasks'").items()
    }


def _task(
    name: str, node: YamlNode, seen: dict[str, str], at_least: int, unread: bool
) -> TaskTemplates:
    entries = node.mapping(f"task {name!r}", _TASK_KEYS)
    for key in ("labels", "layout", "templates"):
        if key not in entries:
            raise node.fail(f"missing key {key!r} in task {name!r}")
    ordinal = entries["ordinal"].text("ordinal").lower() if "ordinal" in entries else "false"
    if ordinal not in ("true", "false"):
        raise entries["ordinal"].fail(f"ordinal must be true or false, not {ordinal!r}")
    options: dict[str, str] = {}
    if "options" in entries:
        options = {
            label: field.text(f"the option {label!r}")
            for label, field in entries["options"].mapping("options").items()
        }
    labels = tuple(label.text("a label") for label in entries["labels"].sequence("labels"))
    try:
        task = Task(name, labels, ordinal == "true", MappingProxyType(options))
    except JudgeSenseError as error:
        raise node.fail(str(error)) from error
    layout = _layout(entries["layout"])
    listed = entries["templates"].sequence("templates")
    templates = tuple(_template(e, task, layout, seen) for e in listed if _counts(e, unread))
    if len(templates) < at_least:
        waiting = len(listed) - len(templates)
        raise entries["templates"].fail(
            f"task {name!r} needs at least {at_least} templates, got {len(templates)}"
            + (f" ({waiting} candidates are not accepted: write accepted: true)" if waiting else "")
        )
    return TaskTemplates(task, templates)


def _counts(node: YamlNode, unread: bool) -> bool:
    """Whether a template counts: a candidate must say true, or with ``unread`` not say false."""
    entries = node.mapping("a template", _TEMPLATE_KEYS)
    if "accepted" not in entries:
        return True
    said = str(entries["accepted"].value).lower()
    if said not in ("true", "false", "null", "~", ""):
        raise entries["accepted"].fail(f"accepted must be true, false or null, not {said!r}")
    return said == "true" or (unread and said != "false")


def _template(node: YamlNode, task: Task, layout: str, seen: dict[str, str]) -> Template:
    entries = node.mapping("a template", _TEMPLATE_KEYS)
    for key in ("id", "text"):
        if key not in entries:
            raise node.fail(f"missing key {key!r} in a template of task {task.name!r}")
    template_id = entries["id"].text("id")
    if template_id in seen:
        raise entries["id"].fail(
            f"the template id {template_id!r} is already used at {seen[template_id]}"
        )
    seen[template_id] = entries["id"].where
    text = entries["text"].text("text")
    _check_braces(text, entries["text"])
    if "{instruction}" in text:
        raise entries["text"].fail("{instruction} belongs in the layout, not in the text")
    label_map = {label: label for label in task.labels}
    if "label_map" in entries:
        label_map = _label_map(entries["label_map"], task)
    template = Template(
        template_id=template_id,
        task=task.name,
        text=text,
        layout=_layout(entries["layout"]) if "layout" in entries else layout,
        label_map=MappingProxyType(label_map),
        aliases=_aliases(entries["aliases"], label_map) if "aliases" in entries else {},
    )
    if hidden := [field for field in task.options.values() if field not in template.placeholders]:
        raise node.fail(
            f"template {template_id!r} never shows the option {{{hidden[0]}}}; add it to the layout"
        )
    return template


def _aliases(node: YamlNode, label_map: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    listed = {
        answer: texts.sequence(f"the aliases of {answer!r}")
        for answer, texts in node.mapping("aliases").items()
    }
    aliases = {
        answer: tuple(text.text(f"an alias of {answer!r}") for text in texts)
        for answer, texts in listed.items()
    }
    if wrong := wrong_alias(tuple(label_map), aliases):
        answer, alias, reason = wrong
        places = zip(aliases[answer], listed[answer], strict=True)
        raise next((place for text, place in places if text == alias), node).fail(
            f"the aliases of a template: {reason}"
        )
    return MappingProxyType(aliases)


def _layout(node: YamlNode) -> str:
    layout = node.text("layout")
    if "{instruction}" not in layout:
        raise node.fail("the layout needs {instruction}, the place of the wording")
    _check_braces(layout, node)
    return layout


def _check_braces(text: str, node: YamlNode) -> None:
    for inner in _BRACES.findall(text):
        if not inner.isidentifier() or not inner.isascii():
            raise node.fail(
                f"{{{inner}}} is not a placeholder: a placeholder is a field's name (letters, "
                "digits and underscores) in braces"
            )


def _label_map(node: YamlNode, task: Task) -> dict[str, str]:
    entries = node.mapping("label_map")
    label_map = {raw: label.text(f"the label of {raw!r}") for raw, label in entries.items()}
    for raw, label in label_map.items():
        if label not in task.labels:
            raise entries[raw].fail(
                f"the label map leads from {raw!r} to {label!r}, which is not a label of task "
                f"{task.name!r}; the labels are {', '.join(task.labels)}"
            )
        if raw in UNDECIDED:
            raise entries[raw].fail(f"{raw!r} is a reserved word; use another answer")
    if unreached := [label for label in task.labels if label not in label_map.values()]:
        raise node.fail(f"no answer in the label map leads to the label {unreached[0]!r}")
    return label_map
