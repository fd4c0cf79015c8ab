"""Texts with human scores on the 12 attributes: read, checked against the scales, and drawn.

The four tasks and their attributes are those of "All Prompts Are Created Equal?" (Bhat and Varma,
section 3); SummEval replaces TL;DR by default. Where a set has the mean of several raters,
``human`` is that mean, and an item's gold label is the mean rounded to a level, halves up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of
from judgesense.files.tables import read_table
from judgesense.studies.paraphrase_robustness.attribute_sets import SETS, Scored
from judgesense.tasks import Item, Template
from judgesense.text import shorten
from judgesense_dataset.embedded import Attribute, load_attributes
from judgesense_dataset.pairing import build
from judgesense_dataset.sources.loader import Reader, clean_text, generator, shuffled
from judgesense_dataset.templates import TaskTemplates

GROUPS = ("dialogue", "question-generation", "summarisation", "essays")
SOURCES: Mapping[str, tuple[str, ...]] = {
    "dialogue": ("usr",),
    "question-generation": ("qgeval",),
    "summarisation": ("summeval", "tldr"),
    "essays": ("asap++",),
}
"""The public sets of each task, the default first; your own file can replace any."""

BANDS = 5
"""Items are drawn equally from this many bands of the human score."""


@dataclass(frozen=True)
class Sample:
    """The items drawn: a benchmark of every wording, and the human scores.

    ``human[task][item_id]`` is the raters' mean; ``notes`` describe the sources of the items.
    """

    benchmark: Benchmark
    human: Mapping[str, Mapping[str, float]]
    notes: Sequence[str]


def attributes_of(
    names: Sequence[str] | None, groups: Sequence[str] | None
) -> dict[str, Attribute]:
    """Attributes by their full name: those of the groups, or those named.

    A name may leave out its task (``clarity``). Raises JudgeSenseError for an unknown name.
    """
    known = load_attributes()
    if unknown := [group for group in groups or () if group not in GROUPS]:
        raise JudgeSenseError(f"unknown task {unknown[0]!r}; choose from {', '.join(GROUPS)}")
    if names is None:
        return {n: a for n, a in known.items() if groups is None or a.group in groups}
    return {name: known[name] for name in dict.fromkeys(full_name(n, known) for n in names)}


def full_name(name: str, known: Iterable[str]) -> str:
    """An attribute's name with its task; JudgeSenseError lists the attributes if unknown."""
    found = [task for task in known if name in (task, task.split("-", 1)[1])]
    if len(found) != 1:
        raise JudgeSenseError(f"unknown attribute {name!r}; choose from {', '.join(known)}")
    return found[0]


def sources(data: Mapping[str, str], groups: Iterable[str]) -> dict[str, str]:
    """The source of each group: the given or the default one; JudgeSenseError if unknown."""
    if unknown := [group for group in data if group not in GROUPS]:
        raise JudgeSenseError(f"--source {unknown[0]}=...: choose a task from {', '.join(GROUPS)}")
    chosen = {group: data.get(group, SOURCES[group][0]) for group in dict.fromkeys(groups)}
    for group, source in chosen.items():
        if source not in SOURCES[group] and not Path(source).is_file():
            raise JudgeSenseError(
                f"--source {group}={source}: no such file; name a file, or a set of "
                f"{', '.join(SOURCES[group])}"
            )
    return chosen


def identity_of(chosen: Mapping[str, str]) -> dict[str, str]:
    """The sources as JSON values: a set's name, or a file's hash."""
    return {
        group: source if source in SOURCES[group] else f"sha256:{sha256_of(Path(source))}"
        for group, source in chosen.items()
    }


def sample(
    wanted: Mapping[str, Attribute],
    data: Mapping[str, str],
    reader: Reader,
    n: int,
    seed: int,
    paraphrases: int,
    max_words: int | None = None,
) -> Sample:
    """n texts per task, with the base and ``paraphrases`` more wordings of every attribute.

    The same texts are judged on all attributes of a task. They are drawn equally from five bands
    of the human score (its mean over the attributes, each scaled to 0 to 1), spread over clusters;
    if a band has too few texts, the others contribute more. ``max_words`` leaves out longer texts.

    Raises JudgeSenseError, naming file or set, row and column, for a score off the scale and for a
    missing text or column.
    """
    templates: dict[str, TaskTemplates] = {}
    items: list[Item] = []
    human: dict[str, dict[str, float]] = {}
    notes = []
    for group in dict.fromkeys(attribute.group for attribute in wanted.values()):
        own = {name: a for name, a in wanted.items() if a.group == group}
        scored, note = _read(group, data[group], own, reader)
        distinct = list({tuple(s.fields.values()): s for s in reversed(scored)}.values())[::-1]
        short = [s for s in distinct if max_words is None or _words(s) <= max_words]
        if not short:
            raise JudgeSenseError(f"{data[group]}: no text has at most {max_words} words")
        drawn = stratified(short, own, n, seed)
        notes.append(
            f"{group}: {len(drawn)} of {len(short)} distinct texts from {note}"
            + (f" with at most {max_words} words" if max_words else "")
        )
        for name, attribute in own.items():
            templates[name] = _first(attribute.templates, paraphrases)
            levels = attribute.templates.task.labels
            human[name] = {s.item_id: s.human[name] for s in drawn}
            items += [
                Item(s.item_id, name, s.fields, level(s.human[name], levels), s.cluster_id,
                     s.system_id, data[group])
                for s in drawn
            ]  # fmt: skip
    return Sample(build(templates, items, design="full", seed=seed), human, notes)


def level(mean: float, levels: Sequence[str]) -> str:
    """The level nearest to a mean, halves up."""
    return str(min(max(math.floor(mean + 0.5), int(levels[0])), int(levels[-1])))


def stratified(
    scored: Sequence[Scored], wanted: Mapping[str, Attribute], n: int, seed: int
) -> list[Scored]:
    """n texts (or all), one per band in turn, least used clusters first."""
    ends = {name: (float(a.templates.task.labels[0]), float(a.templates.task.labels[-1]))
            for name, a in wanted.items()}  # fmt: skip

    def band(one: Scored) -> int:
        shares = [(one.human[name] - low) / (high - low) for name, (low, high) in ends.items()]
        return min(BANDS - 1, int(sum(shares) / len(shares) * BANDS))

    rng = generator(seed, "attributes")
    pools: dict[int, list[Scored]] = {}
    for one in shuffled(scored, rng):
        pools.setdefault(band(one), []).append(one)
    used: Counter[str] = Counter()
    chosen: list[Scored] = []
    while len(chosen) < min(n, len(scored)):
        for key in sorted(pools):
            if pools[key] and len(chosen) < n:
                best = min(pools[key], key=lambda one: used[one.cluster_id or one.item_id])
                pools[key].remove(best)
                used[best.cluster_id or best.item_id] += 1
                chosen.append(best)
    return chosen


def _first(entry: TaskTemplates, paraphrases: int) -> TaskTemplates:
    kept: tuple[Template, ...] = entry.templates[: paraphrases + 1]
    return TaskTemplates(entry.task, kept)


def _words(scored: Scored) -> int:
    return sum(len(text.split()) for text in scored.fields.values())


def _read(
    group: str, source: str, own: Mapping[str, Attribute], reader: Reader
) -> tuple[list[Scored], str]:
    """Every text of a source with its scores by attribute, and a description of the source."""
    if source not in SOURCES[group]:
        found = list(_own_file(Path(source), own))
        if not found:
            raise JudgeSenseError(f"{source}: the file has no rows")
        return found, source
    try:
        rows, note = SETS[source](reader)
    except JudgeSenseError as error:
        raise JudgeSenseError(
            f"{error}. Use your own file (--source {group}=FILE), or leave out this task by naming "
            "the others (--tasks)"
        ) from error
    scored = []
    for place, one in rows:
        human = {
            name: _on_scale(one.human[a.attribute], a, f"{place}, {a.attribute}")
            for name, a in own.items()
        }
        scored.append(Scored(one.item_id, one.fields, human, one.cluster_id, one.system_id))
    return scored, note


def _on_scale(value: Any, attribute: Attribute, place: str) -> float:
    """A human score, or the mean of a list of scores; JudgeSenseError off the scale."""
    labels = attribute.templates.task.labels
    given = value if isinstance(value, list) else [value]
    numbers = []
    for one in given:
        try:
            number = math.nan if isinstance(one, bool) or one is None else float(one)
        except (OverflowError, TypeError, ValueError):
            number = math.nan
        if not float(labels[0]) <= number <= float(labels[-1]):
            raise JudgeSenseError(
                f"{place}: the human score {shorten(repr(one))} is off the scale of "
                f"{attribute.name}, {labels[0]} to {labels[-1]}"
            )
        numbers.append(number)
    if not numbers:
        raise JudgeSenseError(f"{place}: no human score")
    return sum(numbers) / len(numbers)


def _own_file(path: Path, own: Mapping[str, Attribute]) -> Iterator[Scored]:
    """Your own file: a column per field of the texts, and a column per attribute."""
    fields = sorted(set().union(*(a.templates.fields for a in own.values())))
    seen: dict[str, int] = {}
    for number, record in enumerate(read_table(path), 1):
        row, place = record.values, record.place
        for column in (*fields, *(a.attribute for a in own.values())):
            if column not in row:
                raise JudgeSenseError(
                    f"{place}: the column {column!r} is missing; the file has {', '.join(row)}"
                )
        item_id = str(row.get("item_id") or f"{path.stem}-{number}")
        if item_id in seen:
            raise JudgeSenseError(f"{place}: {item_id!r} is already the id of row {seen[item_id]}")
        seen[item_id] = number
        yield Scored(
            item_id,
            {name: clean_text(row[name], place, name) for name in fields},
            {n: _on_scale(row[a.attribute], a, f"{place}, {a.attribute}") for n, a in own.items()},
            str(row.get("cluster_id") or item_id),
            str(row.get("system_id") or ""),
        )
