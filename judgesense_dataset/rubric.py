"""Your own rubric as a template: a text with placeholders, and other wordings of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import read_text
from judgesense.files.tables import Record
from judgesense.guards import GUARDS
from judgesense.tasks import PLACEHOLDER, Task, Template, is_scale
from judgesense.text import join
from judgesense_dataset.paraphrase import paraphrase, write_candidates
from judgesense_dataset.reply_labels import declared_fields, label_map_of
from judgesense_dataset.templates import TaskTemplates, load_templates

NAME = "rubric"
"""The name of a rubric's task, and the id of its own wording."""

_BRACES = re.compile(r"\{([^{}]*)\}")
_RULE = re.compile(r"^---+[ \t]*$", re.MULTILINE)


def shown_in(rubric: Path) -> set[str]:
    """The columns that a rubric shows."""
    return {inner.partition("|")[0] for inner in _BRACES.findall(read_text(rubric))}


def read_rubric(
    path: Path,
    data: Path,
    answers: Sequence[str] | None,
    options: Mapping[str, str] | None,
    records: Sequence[Record],
    mapping: Mapping[str, str] | None = None,
    positive: str | None = None,
    field: str = "",
    *,
    columns: Sequence[str],
) -> TaskTemplates:
    """Read a rubric as a task with one template.

    The text before the first line with a placeholder is the wording; that line and the rest are the
    layout, which all wordings share. ``answers`` are the decisions, best first or in order; by
    default the gold labels that occur in ``records``, the rows of ``data``. ``options`` names, for
    a choice between two, the column shown under each answer. ``mapping`` and ``positive`` say which
    label a reply means (:func:`~judgesense_dataset.reply_labels.label_map_of`). ``field`` is the
    one of several verdicts that is judged; the task has its name. ``columns`` are all of ``data``.

    Raises JudgeSenseError for an empty rubric, one without a placeholder or with a placeholder that
    is not a column of the data, and if the answers are neither passed nor found in the data.
    """
    text = read_text(path).strip()
    if not text:
        raise JudgeSenseError(f"{path}: the rubric is empty")
    rows = [record.values for record in records]
    gold = {str(row["gold"]) for row in rows if row.get("gold") not in (None, "")}
    reply_fields = declared_fields(text)
    if field:
        reply_fields = {field: reply_fields[field]}
    scales = [values for values in reply_fields.values() if is_scale(values)]
    for inner in _BRACES.findall(text):
        name, bar, guard = inner.partition("|")
        if name not in columns and not re.fullmatch(r"\w+", name):
            continue  # Text, such as an example of JSON.
        if bar and guard not in GUARDS:
            raise JudgeSenseError(
                f"{path}: unknown guard {guard!r} in {{{inner}}}; choose from {', '.join(GUARDS)}"
            )
        if name not in columns:
            raise JudgeSenseError(
                f"{path}: {{{name}}} is not a column of {data}; its columns are "
                f"{', '.join(columns)}"
            )
        if not PLACEHOLDER.fullmatch(f"{{{inner}}}"):
            raise JudgeSenseError(
                f"{path}: {{{name}}} is not a placeholder: rename the column, using only letters, "
                "digits and underscores"
            )
    if not PLACEHOLDER.search(text):
        raise JudgeSenseError(
            f"{path}: the rubric has no placeholder; write a column's name in braces, such as "
            f"{{{columns[0]}}}; the columns are {', '.join(columns)}"
        )
    labels = tuple(answers or sorted({*gold, *(mapping or {}).values()}, key=_in_order))
    if not answers and gold and is_scale(labels) and len(scales) == 1 and gold <= {*scales[0]}:
        labels = scales[0]  # Nobody need have given every score.
    if len(labels) < 2:
        raise JudgeSenseError(
            f"{path}: the answers are unknown, because {data} has {len(labels)} gold label(s); "
            "list them, for example --answers YES,NO, or name a column of labels with --human"
        )
    ordinal = is_scale(labels)
    task = Task(field or NAME, labels, ordinal, MappingProxyType(dict(options or {})))
    label_map = label_map_of(reply_fields, labels, mapping, positive, str(path))
    if field and not {*label_map} & {*reply_fields[field]}:
        raise JudgeSenseError(
            f"{path}: {field} is one of {join(reply_fields[field], 'or')}, but people's labels are "
            f"{join(sorted(gold))}; say which is which with --human COLUMN --map THEIRS=OURS"
        )
    template = _template(NAME, text, label_map)
    return TaskTemplates(task, (replace(template, task=task.name),))


def _in_order(label: str) -> tuple[bool, int, str]:
    is_whole = is_scale([label])
    return not is_whole, int(label) if is_whole else 0, label


def _template(
    template_id: str, text: str, label_map: Mapping[str, str], layout: str = ""
) -> Template:
    """A wording as a template; one without placeholders takes ``layout``."""
    wording = text
    if match := PLACEHOLDER.search(text):
        wording = text[: text.rfind("\n", 0, match.start()) + 1].rstrip()
        layout = "{instruction}" + text[len(wording) :]
        if not wording:
            wording, layout = text, "{instruction}"
    # A judge may name the label itself as well, where it is no other raw answer.
    raw = {label: raw for raw, label in label_map.items()}
    aliases = {
        raw[label]: (label,)
        for label in raw
        if label not in label_map and list(label_map.values()).count(label) == 1
    }
    return Template(
        template_id,
        NAME,
        wording,
        layout,
        MappingProxyType(dict(label_map)),
        MappingProxyType(aliases),
    )


def read_wordings(path: Path, rubric: TaskTemplates) -> TaskTemplates:
    """Add the wordings of a file to the rubric, after its own.

    A ``.txt`` file holds wordings separated by lines of ``---``; each may have its own placeholders
    or else uses the rubric's layout. A YAML file is a template file with one task of the same
    answers, such as ``judgesense dataset paraphrase`` writes; candidates count unless they say
    ``accepted: false``.

    Raises JudgeSenseError for a file that cannot be read, other answers, or a wording called
    `rubric` with another text: the others then belong to another rubric.
    """
    task, (base,) = rubric.task, rubric.templates
    if path.suffix in (".yaml", ".yml"):
        entries = load_templates(path, unread=True)
        if len(entries) != 1:
            raise JudgeSenseError(f"{path}: has {len(entries)} tasks; keep one")
        (entry,) = entries.values()
        if entry.task.labels != task.labels:
            raise JudgeSenseError(
                f"{path}: its answers are {', '.join(entry.task.labels)}, but the rubric's are "
                f"{', '.join(task.labels)}"
            )
        identity = {label: label for label in task.labels}
        wordings = [
            replace(
                each,
                task=task.name,
                label_map=base.label_map if dict(each.label_map) == identity else each.label_map,
            )
            for each in entry.templates
        ]
        for each in wordings:
            if each.template_id == NAME and (each.text, each.layout) != (base.text, base.layout):
                raise JudgeSenseError(
                    f"{path}: its wordings belong to another rubric, which begins "
                    f"{each.text[:60]!r}; remove the file to get new wordings, or, if they still "
                    f"ask the same, write the new text and layout under {NAME!r}"
                )
    else:
        parts = [part.strip() for part in _RULE.split(read_text(path)) if part.strip()]
        wordings = [
            _template(f"wording-{number}", part, base.label_map, base.layout)
            for number, part in enumerate(parts, start=1)
        ]
    others = [each for each in wordings if (each.text, each.layout) != (base.text, base.layout)]
    for each in others:
        if base.placeholders and not each.placeholders:
            names = ", ".join(f"{{{name}}}" for name in sorted(base.placeholders))
            raise JudgeSenseError(
                f"{path}: the wording {each.template_id!r} does not show the judged text; write "
                f"the whole prompt, with {names}"
            )
    others = [replace(each, aliases=each.aliases or base.aliases) for each in others]
    return TaskTemplates(task, (base, *others))


def propose_wordings(
    rubric: TaskTemplates, judge: Any, n: int, path: Path, note: Callable[[str], None]
) -> TaskTemplates:
    """Have a judge paraphrase the rubric, and write the proposals that pass the filter to ``path``.

    If no proposal passes, a note says why, and the rubric keeps its one wording.
    """
    drafts = paraphrase(rubric, judge, n, note=note)
    if not drafts.candidates:
        why = ", ".join(f"{reason}: {count}" for reason, count in drafts.dropped.most_common())
        note(
            f"none of {drafts.asked} paraphrases by {drafts.judge} could be used ({why}): your "
            "wording is judged alone, and rewording is not measured. To measure it, pass "
            "--wordings FILE or a stronger --paraphraser"
        )
        return rubric
    write_candidates(path, rubric, drafts, unread=True)
    note(
        f"{len(drafts.candidates)} wordings by {drafts.judge} are in {path}: read them, and "
        "write accepted: false for any that asks something else"
    )
    return read_wordings(path, rubric)
