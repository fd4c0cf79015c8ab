"""Rubrics that ask for several verdicts in one reply: one task for each field with people's labels.

``{"correctness": 0-1, "tone": 1-5}`` is judged in one call, and read once for each field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from judgesense.files.disk import read_text
from judgesense.files.tables import read_table_rows
from judgesense.importers.column_names import columns_of, header_key

if TYPE_CHECKING:
    from judgesense_dataset.templates import TaskTemplates

_LABELS = (
    "(?:human|people|person|expert|annotator|annotated|gold|golden|manual|reviewer|rater|label|score"
    "|rating|grade|true|truth|expected|reference)"
)


def fields_with_labels(
    rubric: Path, data: Path, human: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """The columns of people's labels of each field of a rubric, by their names: ``tone``,
    ``human_tone``, ``tone_expert_2``.

    ``human`` names the columns that count. {} where the rubric declares fewer than two fields, and
    where the columns are not those of fields alone.
    """
    from judgesense_dataset.reply_labels import declared_fields
    from judgesense_dataset.rubric import shown_in

    declared = declared_fields(read_text(rubric))
    if len(declared) < 2:
        return {}
    columns, _ = columns_of(list(read_table_rows(data)))
    names = list(human) or [name for name in columns if name not in shown_in(rubric)]
    found = {field: tuple(_of_field(field, names)) for field in declared}
    found = {field: labels for field, labels in found.items() if labels}
    if human and set(human) - {name for labels in found.values() for name in labels}:
        return {}
    return found


def _of_field(field: str, names: Iterable[str]) -> Iterable[str]:
    own = re.compile(rf"(?:{_LABELS}_)*{re.escape(header_key(field))}(?:_{_LABELS})*(?:_\d+)?")
    return [name for name in names if own.fullmatch(header_key(name))]


def in_each_task(
    wordings: TaskTemplates, bases: Sequence[TaskTemplates]
) -> Mapping[str, TaskTemplates]:
    """The wordings of a rubric as those of each of its tasks, which read them in their own way."""
    if len(bases) == 1:
        return {wordings.task.name: wordings}
    return {
        base.task.name: replace(
            base,
            templates=tuple(
                replace(
                    each,
                    template_id=f"{base.task.name}-{each.template_id}",
                    task=base.task.name,
                    label_map=base.templates[0].label_map,
                    aliases=base.templates[0].aliases,
                )
                for each in wordings.templates
            ),
        )
        for base in bases
    }
