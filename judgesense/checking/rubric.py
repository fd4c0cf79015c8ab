"""``judgesense check RUBRIC --data FILE --judge J``: a rubric's data under several wordings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from judgesense.checking.verdicts import labelled_rows
from judgesense.errors import JudgeSenseError
from judgesense.measure.planning import assumed
from judgesense.pipeline import Settings
from judgesense.pipeline.data import DataReference, attacked

if TYPE_CHECKING:
    from judgesense.tasks import Item
    from judgesense_dataset.templates import TaskTemplates

PARAPHRASES = 4
"""The default number of proposed wordings."""


def planned(
    rubric: Path,
    *read: Any,
    wordings: Path | None,
    paraphrases: int | None,
    limit: int | None,
) -> str:
    """What a check of this size can settle, from assumed figures; nothing is loaded or judged.

    ``read`` are the other arguments of `read_items`. Raises JudgeSenseError for bad input.
    """
    from judgesense_dataset.rubric import read_wordings

    own, items = read_items(rubric, *read)
    items = items[:limit]
    n_wordings = 1 + (PARAPHRASES if paraphrases is None else paraphrases)
    if (place := wordings or rubric.with_suffix(".wordings.yaml")).exists():
        n_wordings = len(read_wordings(place, own).templates)
    labelled = sum(item.gold is not None for item in items)
    return assumed(len(items), n_wordings, 2 if own.task.comparative else 1, labelled)


def read_items(
    rubric: Path,
    data: Path,
    human: Sequence[str],
    answers: Sequence[str] | None,
    options: Mapping[str, str] | None,
    note: Callable[[str], None],
) -> tuple[TaskTemplates, list[Item]]:
    """The rubric as a task with one template, and the items to judge."""
    from judgesense_dataset.rubric import read_rubric, shown_in
    from judgesense_dataset.templates import items_of

    rows = labelled_rows(data, human, shown_in(rubric), note)
    own = read_rubric(rubric, data, answers, options, rows)
    return own, items_of(rows, str(data), own.task, own.fields)


def with_quick_attacks(
    data: DataReference, settings: Settings, note: Callable[[str], None]
) -> DataReference:
    """The data with the quick attacks where they add at most a third more prompts; a note says
    how many, or why there are none."""
    tried = attacked(data, "quick")
    try:
        rows = [each.selected(settings).prompts for each in (data, tried)]
    except JudgeSenseError as error:
        note(f"attacks are not tried: {error}")
        return data
    asked, more = (len(pc.unique(table["prompt_id"])) for table in rows)
    asked, more = asked * settings.repeats, more - asked
    if 3 * more > asked:
        note(f"attacks are not tried; --attacks quick would add {more} prompts to {asked}")
        return data
    note(f"three kinds of attack add {more} prompts to {asked}; leave them out with --attacks none")
    return tried


@contextmanager
def writer_of(judge: Any, options: Mapping[str, Any], seed: int) -> Iterator[Any]:
    """The model that proposes wordings: a name for paraphrase() to load, or the judge with the
    user's options."""
    from local_judges.registry import load_writer

    if not (isinstance(judge, (str, Path)) and options):
        yield judge
        return
    own = {**options, "temperature": 0.7, "seed": seed, "max_tokens": 512, "system_prompt": ""}
    writer = load_writer(judge, **own)
    try:
        yield writer
    finally:
        writer.close()
