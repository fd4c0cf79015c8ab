"""Texts with human scores on the 12 attributes: read, checked against the scales, and drawn.

The four tasks and their attributes are those of "All Prompts Are Created Equal?" (Bhat and Varma,
section 3); SummEval replaces TL;DR by default. Where a set has the mean of several raters,
``human`` is that mean, and an item's gold label is the mean rounded to a level, halves up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.files.tables import read_table
from judgesense.studies.paraphrase_robustness.scored_sets import (
    MIRRORED,
    SETS,
    SOURCES,
    Scored,
    Texts,
    text_fields,
)
from judgesense.tasks import Item
from judgesense.text import shorten
from judgesense_dataset.embedded import Attribute, load_attributes
from judgesense_dataset.pairing import build
from judgesense_dataset.sources.loader import Reader, generator, shuffled
from judgesense_dataset.templates import TaskTemplates, load_templates

PAPER_FILE = Path(__file__).with_name("paper_templates.yaml")
"""The seven wordings that the paper prints: two of coherence, five of interestingness."""

BANDS = 5
"""Items are drawn equally from this many bands of the human score."""


def attributes_of(
    names: Sequence[str] | None, groups: Sequence[str] | None, paper: bool = False
) -> dict[str, Attribute]:
    """Attributes by their full name: those of the groups (tasks), or those named.

    A name may leave out its task (``clarity``). ``paper``: those whose wordings the paper prints,
    with these wordings.

    Raises:
        JudgeSenseError: an unknown name, or no attribute is left.
    """
    attributes = load_attributes()
    if unknown := [group for group in groups or () if group not in SOURCES]:
        raise JudgeSenseError(f"unknown task {unknown[0]!r}; choose from {', '.join(SOURCES)}")
    if names is not None:
        keys = [_full_name(name, attributes) for name in names]
    else:
        keys = [n for n, a in attributes.items() if groups is None or a.group in groups]
    if paper:
        printed = load_templates(PAPER_FILE)
        attributes = {n: replace(attributes[n], templates=entry) for n, entry in printed.items()}
        if names is None:
            keys = [name for name in keys if name in attributes]
        if not keys or set(keys) - attributes.keys():
            raise JudgeSenseError(f"the paper prints wordings only of {', '.join(attributes)}")
    return {name: attributes[name] for name in keys}


def _full_name(name: str, attributes: Iterable[str]) -> str:
    """An attribute's name with its task; JudgeSenseError lists the attributes if unknown."""
    matches = [task for task in attributes if name in (task, task.split("-", 1)[1])]
    if len(matches) != 1:
        raise JudgeSenseError(f"unknown attribute {name!r}; choose from {', '.join(attributes)}")
    return matches[0]


def sources(data: Mapping[str, str], groups: Iterable[str]) -> dict[str, str]:
    """The source of each group: the given or the default one; JudgeSenseError if unknown."""
    if unknown := [group for group in data if group not in SOURCES]:
        raise JudgeSenseError(f"--source: unknown task {unknown[0]}; use {', '.join(SOURCES)}")
    source_of = {group: data.get(group, SOURCES[group][0]) for group in dict.fromkeys(groups)}
    for group, source in source_of.items():
        if source not in SOURCES[group] and not Path(source).is_file():
            raise JudgeSenseError(
                f"--source {group}={source}: no such file; name a file, or one of "
                f"{', '.join(SOURCES[group])}"
            )
    return source_of


def sample(
    attributes: Mapping[str, Attribute],
    data: Mapping[str, str],
    reader: Reader,
    n: int,
    seed: int,
    wordings: int,
) -> tuple[Benchmark, dict[str, dict[str, float]], list[str]]:
    """n texts per task, with the first wordings of every attribute: the benchmark; the raters' mean
    by task and item; notes on the sources.

    The same texts are judged on all attributes of a task. They are drawn equally from five bands
    of the human score (its mean over the attributes, each scaled to 0 to 1), spread over clusters;
    if a band has too few texts, the others contribute more.

    Raises JudgeSenseError, naming file or set, row and column, for a score off the scale and for a
    missing text or column.
    """
    templates: dict[str, TaskTemplates] = {}
    items: list[Item] = []
    human: dict[str, dict[str, float]] = {}
    notes = []
    for group in dict.fromkeys(attribute.group for attribute in attributes.values()):
        of_group = {name: a for name, a in attributes.items() if a.group == group}
        scored, note = _read(group, data[group], of_group, reader)
        distinct = list({tuple(s.fields.values()): s for s in reversed(scored)}.values())[::-1]
        drawn_texts = _draw_by_band(distinct, of_group, n, seed)
        notes.append(f"{group}: {len(drawn_texts)} of {len(distinct)} distinct texts from {note}")
        for name, attribute in of_group.items():
            entry = attribute.templates
            templates[name] = TaskTemplates(entry.task, entry.templates[:wordings])
            human[name] = {s.item_id: s.human[name] for s in drawn_texts}
            items += [
                Item(
                    s.item_id,
                    name,
                    s.fields,
                    level(s.human[name], entry.task.labels),
                    s.cluster_id,
                    s.system_id,
                    data[group],
                )
                for s in drawn_texts
            ]
    return build(templates, items, design="full", seed=seed), human, notes


def level(mean: float, levels: Sequence[str]) -> str:
    """The level nearest to a mean, halves up."""
    return str(min(max(math.floor(mean + 0.5), int(levels[0])), int(levels[-1])))


def _draw_by_band(
    scored: Sequence[Scored], attributes: Mapping[str, Attribute], n: int, seed: int
) -> list[Scored]:
    """n texts (or all), one per band in turn, least used clusters first."""
    ends = {
        name: (float(a.templates.task.labels[0]), float(a.templates.task.labels[-1]))
        for name, a in attributes.items()
    }
    pools: dict[int, list[Scored]] = {}
    for text in shuffled(scored, generator(seed, "attributes")):
        shares = [(text.human[name] - low) / (high - low) for name, (low, high) in ends.items()]
        band = min(BANDS - 1, int(sum(shares) / len(shares) * BANDS))
        pools.setdefault(band, []).append(text)
    uses: Counter[str] = Counter()
    texts: list[Scored] = []
    while len(texts) < min(n, len(scored)):
        for key in sorted(pools):
            if pools[key] and len(texts) < n:
                pick = min(pools[key], key=lambda text: uses[text.cluster_id or text.item_id])
                pools[key].remove(pick)
                uses[pick.cluster_id or pick.item_id] += 1
                texts.append(pick)
    return texts


def _read(
    group: str, source: str, attributes: Mapping[str, Attribute], reader: Reader
) -> tuple[list[Scored], str]:
    """Every text of a source with its scores by attribute, and a description of the source."""
    if source not in SOURCES[group]:
        texts, note = _own_file(Path(source), attributes), source
    else:
        scored_set = (MIRRORED if reader.mirror and source in MIRRORED else SETS)[source]
        place = scored_set.hub_id, scored_set.config, scored_set.split
        try:
            table = reader.split(*place, scored_set.columns, scored_set.licence)
        except JudgeSenseError as error:
            raise JudgeSenseError(
                f"{error}. Use your own file (--source {group}=FILE), or leave out this task by "
                "naming the others (--tasks)"
            ) from error
        texts, note = scored_set.read(table), scored_set.note.format(where=table.where)
    scored = [
        replace(
            text,
            human={
                name: _on_scale(text.human[a.attribute], a, f"{place}, {a.attribute}")
                for name, a in attributes.items()
            },
        )
        for place, text in texts
    ]
    if not scored:
        raise JudgeSenseError(f"{source}: the file has no rows")
    return scored, note


def _own_file(path: Path, attributes: Mapping[str, Attribute]) -> Texts:
    """Your own file: a column per field of the texts, and a column per attribute."""
    fields = sorted(set().union(*(a.templates.fields for a in attributes.values())))
    ids: set[str] = set()
    for number, record in enumerate(read_table(path), 1):
        row, place = record.values, record.place
        if missing := {*fields, *(a.attribute for a in attributes.values())} - row.keys():
            raise JudgeSenseError(
                f"{place}: the {min(missing)!r} column is missing; the file has {', '.join(row)}"
            )
        item_id = str(row.get("item_id") or f"{path.stem}-{number}")
        if item_id in ids:
            raise JudgeSenseError(f"{place}: the id {item_id!r} appears twice")
        ids.add(item_id)
        yield (
            place,
            Scored(
                item_id,
                text_fields(row, place, **{name: name for name in fields}),
                row,
                str(row.get("cluster_id") or item_id),
                str(row.get("system_id") or ""),
            ),
        )


def _on_scale(value: Any, attribute: Attribute, place: str) -> float:
    """A human score; JudgeSenseError off the scale."""
    labels = attribute.templates.task.labels
    try:
        score = float(value)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not float(labels[0]) <= score <= float(labels[-1]):
        raise JudgeSenseError(
            f"{place}: the human score {shorten(repr(value))} is off the scale of "
            f"{attribute.name}, {labels[0]} to {labels[-1]}"
        )
    return score
