"""How a file of verdicts is read: its labels, and the lines that say it to a person."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import Rows
from judgesense.importers.choices import LABELS
from judgesense.importers.column_names import Column, Columns, columns_of, header_key
from judgesense.importers.columns import REPEAT, ROW
from judgesense.importers.label_space import space_of
from judgesense.importers.layout import Layout, lay_out
from judgesense.importers.numbers import ScoresOfJudge, scores_beside
from judgesense.importers.people import Vocabulary
from judgesense.importers.recognise import looks_like_labels
from judgesense.importers.roles import MOST_TASKS
from judgesense.importers.scale import at_a_cut, cut_at, require_same_side
from judgesense.importers.shape import Step, only, through
from judgesense.importers.values import is_label, with_other
from judgesense.tasks import UNCLEAR
from judgesense.text import join, plural_s, sentence

_SHOWN = {
    "judge": "judges",
    "template_id": "wordings",
    "raw_text": "reasons",
    "order": "orders",
    "repeat": "repeats",
    "item_id": "items",
    "task": "tasks",
    "cluster_id": "clusters",
}


class FileReading(NamedTuple):
    """How a file is read: ``columns``, ``people``, ``labels``, ``mapping``, ``texts`` and ``steps``
    as `judgesense.importers.log.import_log` takes them, and ``lines`` that say it to a person."""

    columns: Mapping[str, str]
    people: tuple[str, ...]
    labels: tuple[str, ...] | None
    mapping: Mapping[str, str]
    texts: tuple[str, ...]
    tasks: Mapping[str, Vocabulary]
    """Labels and mapping of each task, where they differ."""
    steps: Callable[[], Sequence[Step]]
    """The steps of the file's shape, new for each pass over the file."""
    lines: tuple[str, ...]
    scores: tuple[Mapping[str, object], ...]
    """Judges' scores beside people's, where both are numbers."""
    identity: Mapping[str, str]
    """What the file says of its judge in every row: the model, the prompt, the rubric."""
    found: Columns
    """The file's columns, also those inside others."""

    @property
    def facts(self) -> dict[str, Any]:
        """What `judgesense.importers.log.import_log` is asked, but for the steps."""
        names = ("columns", "labels", "people", "texts", "tasks")
        return {name: getattr(self, name) for name in names} | {"mapping": dict(self.mapping)}


def understand(
    read: Callable[[], Iterable[Rows]],
    where: str,
    *,
    labels: Sequence[str] | None = None,
    is_log: bool = False,
    positive: str | None = None,
    **given: Any,
) -> FileReading:
    """How a file is read; ``labels`` and what else is ``given`` to `lay_out` is taken as it is.
    ``positive`` is the label that 1, yes or true means.

    In a log of another tool people's labels are inside other columns (``metadata.label``). Raises
    JudgeSenseError as `lay_out`, and for labels that cannot be compared.
    """
    notes: list[str] = []
    layout = lay_out(read, where, notes, is_log=is_log, **given)
    found, judged, people, roles = layout.found, layout.judged, layout.people, layout.roles
    words, space = layout.mapping, tuple(labels) if labels else None
    scores = scores_beside(through(layout.steps(), read()), found, judged, people, roles)
    if layout.rescaled:
        scores = [replace(each, tops=(1, 1)) for each in scores]
    notes += [each.text for each in scores]
    tasks: dict[str, Vocabulary] = {}
    if space is None and not words:
        tasks = _tasks(read, layout, scores, where, notes, positive)
        if not tasks:
            judged, words = at_a_cut(found, judged, people, roles, scores, where, notes)
    left_out = [task for task, vocabulary in tasks.items() if vocabulary.labels is None]
    spaces = {vocabulary.labels for vocabulary in tasks.values()} - {None}
    if tasks and len(spaces) == 1 and not any(each.mapping for each in tasks.values()):
        space, tasks = spaces.pop(), {}
    if space is None and not tasks and (people or not is_log):
        told = found.get(roles.get("task", "task"), Column()).texts
        space = space_of(found, judged, people, where, words, notes, " ".join(told), positive)
        if not given.get("mapping"):
            rows = through(layout.steps(), read())
            require_same_side(rows, judged, people, words, where, notes)
    known = [space or (), *(each.labels or () for each in tasks.values())]
    if positive and all(is_label(positive, each) == UNCLEAR for each in known):
        raise JudgeSenseError(
            f"{where}: --positive {positive!r} is none of the labels "
            f"{', '.join(dict.fromkeys(label for each in known for label in each))}"
        )
    if layout.choices is not None and space is not None and {*space} <= {*LABELS}:
        space = tuple(label for label in LABELS if label in space or label != "tie")
    task = roles.get("task", "task")
    late = [partial(_without_tasks, task, left_out)] if left_out else []
    texts = [name for name in judged if name in found and not found[name].labels]
    parts = _parts(layout, judged, people, space, tasks, where)
    if not is_log and (unused := _unused(layout, judged, people, space, notes)):
        notes.append(unused)
    return FileReading(
        roles,
        tuple(people),
        space,
        words,
        () if words else tuple(name for name in texts if not found[name].decimals),
        tasks,
        lambda: [*layout.steps(), *late],
        tuple(map(sentence, [*parts, *notes])),
        tuple(each.to_dict() for each in scores),
        {name: next(iter(found[name].texts)) for name in found if _is_identity(name, found[name])},
        found,
    )


def _parts(
    layout: Layout,
    judged: Sequence[str],
    people: Sequence[str],
    labels: Sequence[str] | None,
    tasks: Mapping[str, Vocabulary],
    where: str,
) -> list[str]:
    """What is read as what, a line a role."""
    rows = f"{layout.size} row{plural_s(layout.size)}"
    parts = [f"read {rows} of {Path(where).name}", f"verdicts: {join(judged)}"]
    parts.append(f"people's labels: {join(people) if people else 'none'}")
    for target, what in _SHOWN.items():
        source = layout.roles.get(target, ":")
        if source[:1] != ":" and source not in (ROW, REPEAT):
            parts.append(f"{what}: {join(source.split(','))}")
    parts += [f"possible labels: {', '.join(labels)}"] if labels else []
    return parts + [
        f"possible labels of {task}: {', '.join(each.labels)}"
        for task, each in tasks.items()
        if each.labels
    ]


def _unused(
    layout: Layout,
    judged: Sequence[str],
    people: Sequence[str],
    labels: Sequence[str] | None,
    notes: Sequence[str],
) -> str | None:
    """The note on columns that look like labels and are not used."""
    used = {*judged, *people, *(s for each in layout.roles.values() for s in each.split(","))}
    used |= {layout.choices.order} if layout.choices else set()
    used |= {name for name in layout.found if any(repr(name) in note for note in notes)}
    return looks_like_labels(layout.found, used, labels or ())


_IDENTITY = re.compile(
    r"(.*_)?(judge|grader|evaluator)_?(.*_)?(model|name|version|prompt|hash)|judge|grader|evaluator"
    r"|(.*_)?(prompt|rubric)_(hash|version|id|name)|scale|temperature"
)


def _is_identity(name: str, column: Column) -> bool:
    """Whether a column says the same of the judge in every row."""
    return bool(_IDENTITY.fullmatch(header_key(name))) and len(column.texts) == 1


def _tasks(
    read: Callable[[], Iterable[Rows]],
    layout: Layout,
    scores: Sequence[ScoresOfJudge],
    where: str,
    notes: list[str],
    positive: str | None,
) -> dict[str, Vocabulary]:
    """The labels of each task of a file with several; none for a file with one.

    A task without labels, such as one of scores, is left out, and ``notes`` says so; if there is no
    other, its error is raised.
    """
    name = layout.roles.get("task", "task")
    column = layout.found.get(name)
    if column is None or not 1 < len(column.texts) <= MOST_TASKS:
        return {}
    tasks: dict[str, Vocabulary] = {}
    errors: list[JudgeSenseError] = []
    blocks = list(through(layout.steps(), read()))
    for task in column.texts:
        some = (only(rows, name, [task]) for rows in blocks)
        found, _ = columns_of(rows for rows in some if len(rows))
        people = [each for each in layout.people if each in found and found[each].filled]
        scored = [each for each in scores if each.task == task]
        try:
            mapping = cut_at(found, layout.judged, people, scored, where, notes)
            labels = space_of(found, layout.judged, people, where, mapping, notes, task, positive)
            labels = labels and (labels if len(labels) > 1 else with_other(labels[0]))
            tasks[task] = Vocabulary(labels, mapping)
            if labels is None:
                notes.append(f"{task} is left out: it does not have two labels")
        except JudgeSenseError as error:
            errors.insert(0 if people else len(errors), error)  # First of what people labelled.
            tasks[task] = Vocabulary()
            notes.append(f"{task} is left out: {str(error).removeprefix(f'{where}: ')}")
    if errors and not any(each.labels for each in tasks.values()):
        raise errors[0]
    return tasks


def _without_tasks(name: str, tasks: Collection[str], rows: Rows) -> Rows:
    """The rows of other tasks."""
    return only(rows, name, tasks, keep=False)
