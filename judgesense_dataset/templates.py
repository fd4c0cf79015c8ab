"""Read template files and items, with errors that name the line or row.

A template file is YAML; ``data/templates.yaml`` documents the format and is a file to copy. Items
are rows of a table: the columns that the layout shows, and optionally ``item_id``, ``gold``,
``cluster_id``, ``system_id`` and ``task``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import (
    Shape,
    Text,
    YamlNode,
    invalid,
    read_nodes,
    validate,
    validate_node,
)
from judgesense.files.tables import Record, read_table
from judgesense.guards import GUARDS
from judgesense.tasks import PLACEHOLDER, UNDECIDED, Item, Task, Template, wrong_alias

DATA = Path(__file__).parent / "data"
"""The folder of the data files in the package."""

EMBEDDED_SOURCE = "judgesense-embedded"
"""The `source` of the items that come with the package."""

LANGUAGE_FILES = {path.parent.name: path for path in sorted(DATA.glob("??/templates.yaml"))}
"""The template files in other languages than English, by language."""

TRANSLATION = "machine-made, read by nobody"
"""How far people have read the package's texts in other languages."""

# Braces around anything but a name are text, such as JSON, which a wording may show as it is.
_BRACES = re.compile(r"\{([^{}\":,\n]+)\}")


def _wording(text: str) -> str:
    for inner in _BRACES.findall(text):
        if not PLACEHOLDER.fullmatch(f"{{{inner}}}"):
            raise invalid(
                f"{{{inner}}} is not a placeholder: a placeholder is a field's name (letters, "
                f"digits and underscores) in braces, and may end with |{', |'.join(GUARDS)}"
            )
    return text


def _layout(text: str) -> str:
    if "{instruction}" not in text:
        raise invalid("the layout lacks {instruction}, which marks the place of the wording")
    return text


def _accepted(text: str) -> str | None:
    return None if text in ("null", "~", "") else text


Wording = Annotated[Text, AfterValidator(_wording)]
Layout = Annotated[Wording, AfterValidator(_layout)]


class _TemplateEntry(Shape, extra="forbid"):
    """A template in a file; a candidate waits with ``accepted: null``."""

    id: Text
    text: Wording
    label_map: dict[str, Text] = Field(default_factory=dict)
    aliases: dict[str, list[Text]] = Field(default_factory=dict)
    layout: Layout | None = None
    accepted: Annotated[bool | None, BeforeValidator(_accepted)] = True
    measured: Any = None


class _TaskEntry(Shape, extra="forbid"):
    labels: list[Text]
    ordinal: bool = False
    options: dict[str, Text] = Field(default_factory=dict)
    layout: Layout
    templates: list[_TemplateEntry]


@dataclass(frozen=True, slots=True)
class TaskTemplates:
    """A task and its templates: one entry of a template file."""

    task: Task
    templates: tuple[Template, ...]

    @property
    def fields(self) -> frozenset[str]:
        """The item fields that the templates show."""
        return frozenset().union(*(template.placeholders for template in self.templates))

    def to_dict(self) -> dict[str, Any]:
        """The task's entry in a template file; what a template shares with the task is left out."""
        task, layout = self.task, self.templates[0].layout
        templates = []
        for template in self.templates:
            entry: dict[str, Any] = {"id": template.template_id, "text": template.text}
            if template.layout != layout:
                entry["layout"] = template.layout
            if dict(template.label_map) != {label: label for label in task.labels}:
                entry["label_map"] = dict(template.label_map)
            if template.aliases:
                entry["aliases"] = {key: list(texts) for key, texts in template.aliases.items()}
            templates.append(entry)
        return {
            "labels": list(task.labels),
            **({"ordinal": True} if task.ordinal else {}),
            **({"options": dict(task.options)} if task.options else {}),
            "layout": layout,
            "templates": templates,
        }


@dataclass(frozen=True, slots=True)
class LayoutPattern:
    """A layout as a pattern with a group for each of ``names``; ``step`` -1 reads from the end."""

    names: tuple[str, ...]
    pattern: re.Pattern[str]
    step: int

    def fullmatch(self, text: str) -> dict[str, str] | None:
        """The fields in a text; None if it is not laid out so."""
        if (match := self.pattern.fullmatch(text[:: self.step])) is None:
            return None
        groups = (group[:: self.step] for group in match.groups())
        return dict(zip(self.names, groups, strict=True))


@lru_cache(maxsize=256)
def layout_patterns(whole: str) -> tuple[LayoutPattern, LayoutPattern]:
    """A layout with its wording as two patterns: fields match as little, or as much, as possible.

    Where the two read a prompt differently, a field's text looks like the layout. Unless a field is
    shown twice, they take time linear in the text: what is judged may be made to look like the
    layout.

    >>> little, much = layout_patterns("Which? A: {one} B: {two}")
    >>> little.fullmatch("Which? A: x B: y B: z")
    {'one': 'x', 'two': 'y B: z'}
    """
    # A message shows the text itself where the layout would guard it.
    parts = re.split(r"\{(\w+)\}", PLACEHOLDER.sub(r"{\1}", whole))
    if len(set(parts[1::2])) < len(parts[1::2]):
        return _pattern(parts, 1, "(.*?)", "{}"), _pattern(parts, 1, "(.*)", "{}")
    # Up to the first place of what follows, from either end.
    backwards = [part[::-1] for part in reversed(parts)]
    return _pattern(parts, 1, "(.*?)", "(?>{})"), _pattern(backwards, -1, "(.*?)", "(?>{})")


def _pattern(parts: Sequence[str], step: int, field: str, whole: str) -> LayoutPattern:
    """Literals and names of fields in turn, read in one direction, as a pattern."""
    groups: dict[str, int] = {}
    pattern = re.escape(parts[0])
    for at in range(1, len(parts), 2):
        name, literal = parts[at][::step], re.escape(parts[at + 1])
        group = rf"(?:\{groups[name]})" if name in groups else field
        groups.setdefault(name, len(groups) + 1)
        pattern += (whole if at + 2 < len(parts) else "{}").format(group + literal)
    return LayoutPattern(tuple(groups), re.compile(pattern, re.DOTALL), step)


def patterns_of(template: Template) -> tuple[LayoutPattern, LayoutPattern]:
    """The `layout_patterns` of the prompts of a template."""
    return layout_patterns(template.layout.replace("{instruction}", template.text))


def load_templates(path: str | Path, unread: bool = False) -> dict[str, TaskTemplates]:
    """Load the tasks of a template file by name, in the file's order.

    Candidates of ``judgesense dataset paraphrase`` are left out until they say ``accepted: true``;
    with ``unread`` they count unless they say ``accepted: false``.

    Raises JudgeSenseError naming the file and line for invalid YAML, an unknown or missing key, a
    layout without ``{instruction}``, a brace that is not a placeholder, a comparative task that
    does not show its options, a label map that leads outside the labels or never reaches one, an
    alias of no answer or of two, a repeated id, or a task without a template.

    >>> list(load_templates(DATA / "templates.yaml"))
    ['factuality', 'coherence', 'relevance', 'preference']
    """
    root = read_nodes(Path(path)).mapping("a template file", {"source", "license", "tasks"})
    if "tasks" not in root:
        raise JudgeSenseError(f"{path}: missing key 'tasks' in a template file")
    return read_tasks(root["tasks"], unread)


def is_alone(task: Task, template: Template) -> bool:
    """Whether a wording of a choice between two shows the first option only.

    Its answers say whether that option is good: YES stands for the first label. Asked in both
    orders it shows each option by itself, so that their log-odds can be compared.
    """
    is_shown = [field in template.placeholders for field in task.options.values()]
    return is_shown == [True, False]


def read_tasks(
    node: YamlNode, unread: bool = False, alone: bool = False
) -> dict[str, TaskTemplates]:
    """The tasks in a YAML mapping; raises as :func:`load_templates`.

    ``alone`` allows wordings that show one option of two (see :func:`is_alone`).
    """
    places: dict[str, str] = {}
    tasks = {}
    for name, task_node in node.mapping("the key 'tasks'").items():
        entry = validate_node(_TaskEntry, task_node, f"task {name!r}")
        nodes = task_node.value["templates"]
        try:
            task = Task(name, tuple(entry.labels), entry.ordinal, MappingProxyType(entry.options))
        except JudgeSenseError as error:
            raise task_node.fail(str(error)) from error
        templates = tuple(
            _template(template, place, task, entry.layout, places, alone)
            for template, place in zip(entry.templates, nodes.value, strict=True)
            if template.accepted or (unread and template.accepted is None)
        )
        if not templates:
            waiting = len(entry.templates)
            hint = f" ({waiting} candidates wait: write accepted: true to use one)"
            raise nodes.fail(f"task {name!r} has no template" + (hint if waiting else ""))
        tasks[name] = TaskTemplates(task, templates)
    return tasks


def _template(
    entry: _TemplateEntry,
    node: YamlNode,
    task: Task,
    layout: str,
    places: dict[str, str],
    alone: bool,
) -> Template:
    """A template with its label map checked against the task; ``places`` are those of the ids."""
    if entry.id in places:
        raise node.fail(f"the template id {entry.id!r} is already used at {places[entry.id]}")
    places[entry.id] = node.where
    if "{instruction}" in entry.text:
        raise node.fail("{instruction} belongs in the layout, not in the text")
    label_map = entry.label_map or dict(zip(task.labels, task.labels, strict=True))
    maps = node.value.get("label_map", node)
    for raw, label in label_map.items():
        if label not in task.labels:
            raise maps.fail(
                f"the label map maps {raw!r} to {label!r}, which is not a label of task "
                f"{task.name!r}; the labels are {', '.join(task.labels)}"
            )
        if raw in UNDECIDED:
            raise maps.fail(f"{raw!r} is a reserved word; use another answer")
    if unreached := set(task.labels) - set(label_map.values()):
        raise maps.fail(f"the label map maps no answer to the label {min(unreached)!r}")
    if problem := wrong_alias(tuple(label_map), entry.aliases):
        raise node.value["aliases"].fail(f"the aliases of a template: {problem[2]}")
    template = Template(
        template_id=entry.id,
        task=task.name,
        text=entry.text,
        layout=entry.layout or layout,
        label_map=MappingProxyType(label_map),
        aliases=MappingProxyType({a: tuple(texts) for a, texts in entry.aliases.items()}),
    )
    absent = set(task.options.values()) - template.placeholders
    if absent and not (alone and is_alone(task, template)):
        raise node.fail(
            f"template {entry.id!r} never shows the option {{{min(absent)}}}; add it to the layout"
        )
    return template


def _as_label(value: Any) -> Any:
    """Whole numbers are allowed, so that the gold level 4 is the label "4"."""
    if value is None:
        return ""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Label = Annotated[str, BeforeValidator(_as_label)]
"""An id or a label: text or a whole number, "" for none."""


class _ItemRow(Shape):
    """A row of an item file; ``fields`` are the columns that the templates show."""

    item_id: Label = ""
    gold: Label = ""
    cluster_id: Label = ""
    system_id: Label = ""
    source: Label = ""
    revision: Label = ""
    license: Label = ""
    fields: dict[str, Text]


_COLUMNS = {"task", "id", *_ItemRow.model_fields} - {"fields"}


def load_items(path: str | Path, task: Task, fields: Iterable[str] | None = None) -> list[Item]:
    """Load the items of one task from a JSONL, CSV or Parquet file, in the file's order.

    ``fields`` are the columns that the templates show (``TaskTemplates.fields``); without it,
    every text column is a field. ``item_id`` defaults to the column ``id`` and then to
    ``<task>-<row>``, ``cluster_id`` to the item's id. In a file with a ``task`` column only the
    task's rows are read.

    Raises JudgeSenseError naming the file, row and column for a missing or empty field, a value
    that is not text, a repeated id, a gold label outside the decision space, or a file without
    items.
    """
    return items_of(read_table(Path(path)), str(path), task, fields)


def items_of(
    records: Iterable[Record], where: str, task: Task, fields: Iterable[str] | None = None
) -> list[Item]:
    """The items of one task in the records of ``where``; raises as :func:`load_items`."""
    required = None if fields is None else sorted(fields)
    items: dict[str, Item] = {}
    for number, record in enumerate(records, 1):
        values = record.values
        if values.get("task") not in (None, "", task.name):
            continue
        field_names = required or [n for n in values if n not in _COLUMNS and values[n] is not None]
        if absent := [name for name in field_names if values.get(name) is None]:
            raise JudgeSenseError(
                f"{record.place}: missing column {absent[0]!r}, which the templates of task "
                f"{task.name!r} show; the row's columns are {', '.join(values)}"
            )
        id_column = "item_id" if "item_id" in values or "id" in field_names else "id"
        texts = {name: values[name] for name in field_names}
        entry = {**values, "item_id": values.get(id_column), "fields": texts}
        row = validate(_ItemRow, entry, record.place, "an item")
        if row.gold and row.gold not in task.labels:
            raise JudgeSenseError(
                f"{record.place}, column gold: {row.gold!r} is not a label of task "
                f"{task.name!r}; the labels are {', '.join(task.labels)}"
            )
        item_id = row.item_id or f"{task.name}-{number}"
        if item_id in items:
            raise JudgeSenseError(
                f"{record.place}, column {id_column}: {item_id!r} is already the id of an earlier "
                "row; give every item its own id"
            )
        items[item_id] = Item(
            item_id=item_id,
            task=task.name,
            fields=row.fields,
            gold=row.gold or None,
            cluster_id=row.cluster_id,
            system_id=row.system_id,
            source=row.source,
            revision=row.revision,
            license=row.license,
        )
    if not items:
        raise JudgeSenseError(f"{where}: no row is an item of task {task.name!r}")
    return list(items.values())
