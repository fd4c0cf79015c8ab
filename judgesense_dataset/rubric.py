"""A person's own rubric as a template: a text with placeholders, and other wordings of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.tasks import Task, Template, is_scale
from judgesense_dataset.items import read_rows
from judgesense_dataset.paraphrase import paraphrase, write_candidates
from judgesense_dataset.templates import TaskTemplates, load_templates

NAME = "rubric"
"""The task of a rubric, and the id of its own wording."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_BRACES = re.compile(r"\{([^{}]*)\}")
_RULE = re.compile(r"^---+[ \t]*$", re.MULTILINE)


def read_rubric(
    path: Path, data: Path, answers: Sequence[str] | None, options: Mapping[str, str] | None
) -> TaskTemplates:
    """The rubric's text as a task with one template.

    What stands before the first line with a placeholder is the wording; that line and all after
    it are the layout, which every wording shares. ``answers`` are the decisions, best first or in
    order; by default the gold labels that occur in ``data``. ``options`` names, for a choice
    between two, the column shown under each answer.

    Raises JudgeSenseError for an empty rubric, one without a placeholder or with one that is no
    column of the data, and answers that are neither given nor to be found.
    """
    try:
        text = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise JudgeSenseError(f"{path}: cannot be read as UTF-8 text ({error})") from error
    if not text:
        raise JudgeSenseError(f"{path}: the rubric is empty")
    first, gold = None, set()
    for _, row in read_rows(data):
        first = first or row
        if row.get("gold") not in (None, ""):
            gold.add(str(row["gold"]))
    if first is None:
        raise JudgeSenseError(f"{data}: holds no rows")
    for inner in _BRACES.findall(text):
        if inner not in first:
            raise JudgeSenseError(
                f"{path}: {{{inner}}} is no column of {data}; its columns are {', '.join(first)}"
            )
    if not _PLACEHOLDER.search(text):
        raise JudgeSenseError(
            f"{path}: the rubric shows nothing of the data; write a column's name in braces where "
            f"it belongs, e.g. {{{next(iter(first))}}}; the columns are {', '.join(first)}"
        )
    labels = tuple(answers or sorted(gold, key=_in_order))
    if len(labels) < 2:
        raise JudgeSenseError(
            f"which answers does {path} admit? {data} has {len(labels)} gold label(s); give "
            "--answers with commas between, e.g. --answers YES,NO"
        )
    ordinal = is_scale(labels)
    task = Task(NAME, labels, ordinal, MappingProxyType(dict(options or {})))
    return TaskTemplates(task, (_template(NAME, text, task, None),))


def _in_order(label: str) -> tuple[bool, int, str]:
    whole = is_scale([label])
    return not whole, int(label) if whole else 0, label


def _template(template_id: str, text: str, task: Task, like: Template | None) -> Template:
    """A wording as a template; one without placeholders takes the layout of ``like``."""
    found = _PLACEHOLDER.search(text)
    if found is None and like is not None:
        wording, layout = text, like.layout
    elif found is None:
        raise JudgeSenseError(f"the wording {text[:60]!r} has no placeholder")
    else:
        start = text.rfind("\n", 0, found.start()) + 1
        wording = text[:start].rstrip()
        layout = "{instruction}" + text[len(wording) :]
        if not wording:
            wording, layout = text, "{instruction}"
    same = MappingProxyType({label: label for label in task.labels})
    return Template(template_id, task.name, wording, layout, same)


def read_wordings(path: Path, rubric: TaskTemplates) -> TaskTemplates:
    """The rubric with the wordings of a file, its own first.

    A ``.txt`` file holds wordings with lines of ``---`` between; each may show the data anew or
    leave that to the rubric's layout. A YAML file is a template file with one task of the same
    answers, as ``judgesense dataset paraphrase`` writes it; candidates count unless they say
    ``accepted: false``.

    Raises JudgeSenseError for a file that cannot be read, other answers, no wording but the
    rubric's own, or a wording `rubric` that is not this rubric's: the others were made for another
    text than the one they would be compared with.
    """
    task, (own,) = rubric.task, rubric.templates
    if path.suffix in (".yaml", ".yml"):
        entries = load_templates(path, at_least=1, unread=True)
        if len(entries) != 1:
            raise JudgeSenseError(f"{path}: must hold one task, not {len(entries)}")
        (entry,) = entries.values()
        if entry.task.labels != task.labels:
            raise JudgeSenseError(
                f"{path}: its answers are {', '.join(entry.task.labels)}, the rubric's "
                f"{', '.join(task.labels)}"
            )
        found = [
            Template(each.template_id, task.name, each.text, each.layout, each.label_map)
            for each in entry.templates
        ]
        for each in found:
            if each.template_id == NAME and (each.text, each.layout) != (own.text, own.layout):
                raise JudgeSenseError(
                    f"{path}: its wordings were made for another rubric, which begins "
                    f"{each.text[:60]!r}; remove the file to have new ones proposed, or, if the "
                    f"wordings still ask the same, write the new text and layout under {NAME!r}"
                )
    else:
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise JudgeSenseError(f"{path}: cannot be read as UTF-8 text ({error})") from error
        parts = [part.strip() for part in _RULE.split(text) if part.strip()]
        found = [
            _template(f"wording-{number}", part, task, own)
            for number, part in enumerate(parts, start=1)
        ]
    others = [each for each in found if (each.text, each.layout) != (own.text, own.layout)]
    if not others:
        raise JudgeSenseError(f"{path}: holds no wording but the rubric's own; add one")
    return TaskTemplates(task, (own, *others))


def propose_wordings(
    rubric: TaskTemplates, judge: Any, n: int, path: Path, note: Callable[[str], None]
) -> TaskTemplates:
    """Have a judge paraphrase the rubric, write what passes the filter to ``path``, read it back.

    Raises JudgeSenseError, naming why the proposals fell, if none passed.
    """
    found = paraphrase(rubric, judge, n, note=note)
    if not found.candidates:
        why = ", ".join(f"{reason}: {count}" for reason, count in found.dropped.most_common())
        raise JudgeSenseError(
            f"none of {found.asked} paraphrases that {found.judge} proposed could be used ({why}); "
            "give --wordings a file with wordings of your own, or --paraphraser a stronger model"
        )
    write_candidates(path, rubric, found)
    note(
        f"{len(found.candidates)} wordings proposed by {found.judge} are in {path}: read them, and "
        "write accepted: false where one asks something else"
    )
    return read_wordings(path, rubric)
