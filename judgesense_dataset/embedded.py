"""The embedded benchmark: 50 items a task written for this project, with the paper's templates."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from judgesense.benchmark import Benchmark, table_of_pairs
from judgesense.files.documents import read_yaml
from judgesense.tasks import Item
from judgesense_dataset.folder import load_verdicts
from judgesense_dataset.pairing import (
    Cell,
    build,
    group_items,
    pair_rows,
    paired,
    plan,
    template_pairs,
)
from judgesense_dataset.templates import (
    DATA,
    EMBEDDED_SOURCE,
    LANGUAGE_FILES,
    TRANSLATION,
    TaskTemplates,
    load_items,
    load_templates,
)

EMBEDDED_VERSION = "2.1.0"
"""Changes whenever an item, a wording or the choice of pairs changes, and figures with it."""

EMBEDDED_PAIRS = 250
"""Pairs per task: every item in five, so that nearly every item is asked in all five wordings."""

REJECTED_PAIRS = 25
"""Pairs of each two wordings that are not equivalent, for validators and audits."""


EMBEDDED, SCALE = "embedded", "embedded-scale"
TEMPLATES = DATA / "templates.yaml"
_SETS = {
    EMBEDDED: (TEMPLATES, DATA, EMBEDDED_PAIRS),
    "embedded-de": (LANGUAGE_FILES["de"], DATA / "de", EMBEDDED_PAIRS),
    "embedded-es": (LANGUAGE_FILES["es"], DATA / "es", None),
    "embedded-zh": (LANGUAGE_FILES["zh"], DATA / "zh", None),
    SCALE: (DATA / "scale_templates.yaml", DATA, EMBEDDED_PAIRS),
}
"""By name, the file of templates, the folder of items, and the pairs per task (None for all)."""

EMBEDDED_SETS = tuple(_SETS)
"""The names of the sets that come with the package: the English benchmark, its German translation,
25 of its items in Spanish and in Chinese, and its binary tasks asked on a scale from 1 to 5."""

VERDICTS = DATA / "verdicts.jsonl"
"""The verdicts on the English pairs: ``judgesense dataset validate embedded --judge smollm2-135m
--out DIR`` and a copy of ``DIR/verdicts.jsonl``."""

VERIFIABILITIES = ("verifiable", "semi-objective", "subjective")
"""Kinds of attributes, from the most to the least verifiable."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of generated text: its kind, and a base wording with ten paraphrases.

    ``name`` is also the task's name; ``templates.templates[0]`` is the base wording.
    """

    name: str
    group: str
    attribute: str
    verifiability: str
    templates: TaskTemplates


def embedded_items(name: str = EMBEDDED) -> list[Item]:
    """The 200 items, 50 per task, with gold labels.

    ``embedded-de`` has their translations under the same ids, ``embedded-es`` and ``embedded-zh``
    those of 25 items. ``embedded-scale`` has the 150 items
    of the binary tasks without gold labels, since no level from 1 to 5 is known to be right.

    >>> embedded_items()[0].gold
    'YES'
    """
    templates = embedded_templates(name)
    wordings = load_templates(TEMPLATES) if name == SCALE else templates
    items = [
        replace(item, source=EMBEDDED_SOURCE, revision=EMBEDDED_VERSION, license="cc-by-4.0")
        for task, entry in wordings.items()
        if task in templates
        for item in load_items(_SETS[name][1] / f"{task}.jsonl", entry.task, entry.fields)
    ]
    return [replace(item, gold=None) for item in items] if name == SCALE else items


def embedded_templates(name: str = EMBEDDED) -> dict[str, TaskTemplates]:
    """The tasks of an embedded set with their templates."""
    return load_templates(_SETS[name][0])


def load_embedded(name: str = EMBEDDED, *, only_valid: bool = True) -> Benchmark:
    """The embedded benchmark: four tasks, 250 pairs each from 50 items and the template pairs.

    Every item is in 5 pairs, and every template pair equally often. Each comparative pair is shown
    in one option order, half of them in AB and half in BA; the prompts cover both orders. Wordings
    that may ask for different things are not paired (`VERDICTS`): two templates name no criterion.
    ``only_valid=False`` adds 25 pairs of each two such wordings.
    ``source`` carries the version, the SHA-256 of the templates and items, and how far people have
    read a translation. ``name`` is one of `EMBEDDED_SETS`; the German set and the scale have the
    same items. The sets of 25 items have all pairs of templates of each item.

    >>> load_embedded().pairs.num_rows
    1000
    """
    (file, folder, n_pairs), templates = _SETS[name], embedded_templates(name)
    digest = hashlib.sha256()
    for path in (file, *(folder / f"{task}.jsonl" for task in templates)):
        digest.update(path.read_bytes())
    source = {"name": name, "version": EMBEDDED_VERSION, "sha256": digest.hexdigest()}
    if folder != DATA:
        source["translation"] = TRANSLATION
    rejected = _rejected()
    source["template_pairs_not_valid"] = str(len(rejected))
    items = embedded_items(name)
    benchmark = build(templates, items, pairs=n_pairs, source=source, rejected=rejected)
    if only_valid or name != EMBEDDED:
        return benchmark
    tables = [benchmark.pairs]
    for task, group in group_items(templates, items).items():
        if cells := _rejected_cells(templates[task], group, rejected):
            pairs = [pair for _, pair, _, _ in paired(templates[task], group, cells)]
            tables.append(table_of_pairs(pairs))
    return replace(benchmark, pairs=pa.concat_tables(tables))


def _rejected_cells(
    entry: TaskTemplates, items: Sequence[Item], rejected: Collection[tuple[str, str]]
) -> list[Cell]:
    """Where the rejected wordings of a task are paired, for validators and audits to see."""
    columns = sorted({*template_pairs(entry)} - {*template_pairs(entry, rejected)})
    n = REJECTED_PAIRS * len(columns)
    return plan(entry, items, "balanced", n, 0, "counterbalanced", columns) if n else []


@lru_cache(maxsize=1)
def _rejected() -> frozenset[tuple[str, str]]:
    """The ids of two templates that the recorded verdicts found not equivalent.

    A translation, or the same wording on a scale, has the id of its original and names no more.
    """
    verdicts = load_verdicts(VERDICTS)
    invalid = (pair for pair, verdict in verdicts.items() if verdict["valid"] is False)
    halves = (pair.rpartition(":")[2].partition("~") for pair in invalid)
    return frozenset((first, second) for first, _, second in halves)


def embedded_rows(name: str = EMBEDDED) -> Iterator[dict[str, Any]]:
    """The pairs of an embedded set as rows of ``folder.PAIR_ROWS``, then those that are rejected.

    The pairs of the English set carry their recorded verdicts.
    """
    verdicts = load_verdicts(VERDICTS) if name == EMBEDDED else {}
    templates, rejected, n_pairs = embedded_templates(name), _rejected(), _SETS[name][2]
    for task, group in group_items(templates, embedded_items(name)).items():
        entry = templates[task]
        valid = template_pairs(entry, rejected)
        cells = plan(entry, group, "balanced", n_pairs, 0, "counterbalanced", valid)
        if name == EMBEDDED:
            cells += _rejected_cells(entry, group, rejected)
        for row in pair_rows(entry, group, cells):
            yield {**row, **verdicts.get(row["pair_id"], {})}


def load_attributes() -> dict[str, Attribute]:
    """The 12 attributes of "All Prompts Are Created Equal?" by name, each on the paper's scale.

    The grouping by verifiability is the paper's (section 4 and Table 2); the wordings are this
    project's.
    """
    entries = read_yaml(DATA / "attributes.yaml")
    groups = dict.fromkeys(entry["group"] for entry in entries.values())
    wordings = {
        name: entry
        for group in groups
        for name, entry in load_templates(DATA / "paraphrases" / f"{group}.yaml").items()
    }
    return {
        name: Attribute(name=name, templates=wordings[name], **entry)
        for name, entry in entries.items()
    }
