"""Build a Hub dataset folder from items and templates.

Pairs are rendered one by one and written in row groups, so that memory does not grow with their
number. The same sources at the same revisions and the same seed give the same bytes.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from jinja2 import Environment, StrictUndefined

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import write_text
from judgesense.tasks import Item
from judgesense.version import __version__
from judgesense_dataset.embedded import TEMPLATES
from judgesense_dataset.folder import (
    ALIASES,
    PAIR_ROWS,
    PROMPT_ROWS,
    PROMPTS,
    README,
    REJECTED,
    SPLIT,
    config_file,
    declared,
    dump_header,
    new_folder,
    verdict_columns,
    write_config,
)
from judgesense_dataset.pairing import (
    DEFAULT_PAIRS,
    Cell,
    grid,
    group_items,
    order_plan,
    pair_rows,
    plan,
    shown_orders,
)
from judgesense_dataset.sources import CHOICES, NAMES, get_source
from judgesense_dataset.sources import own as own_source
from judgesense_dataset.sources.loader import DataSource, Reader, citations
from judgesense_dataset.surface import MODEL, Embedder
from judgesense_dataset.templates import DATA, TaskTemplates, load_templates
from judgesense_dataset.validators import consensus, free_votes

DEFAULT_ITEMS = 125
FEWEST_ITEMS = 100
"""Items that a task of a public set needs at least."""

_HUB_LICENSES = {
    "apache-2.0",
    "mit",
    "cc-by-4.0",
    "cc-by-sa-4.0",
    "cc-by-nc-4.0",
    "cc-by-nc-sa-4.0",
    "cc0-1.0",
    "odc-by",
    "bsd-3-clause",
    "cc-by-3.0",
    "cc-by-sa-3.0",
    "unknown",
    "other",
}
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


@dataclass
class BuiltDataset:
    """The folder, the number of items, pairs, rejected pairs and prompts of each task, and the
    card's notes."""

    folder: Path
    tasks: dict[str, dict[str, int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def build_dataset(
    sources: Sequence[str],
    out: Path,
    *,
    mirror: Path | None = None,
    revisions: Mapping[str, str] | None = None,
    items: int | None = DEFAULT_ITEMS,
    pairs: int | None = None,
    design: str = "balanced",
    orders: str | None = None,
    seed: int = 0,
    templates: Path | None = None,
    own: own_source.OwnData | None = None,
    own_task: str | None = None,
    verdicts: bool = True,
) -> BuiltDataset:
    """Build a Hub dataset folder at ``out``; if anything fails, ``out`` is unchanged.

    Args:
        sources: names of :func:`~judgesense_dataset.sources.get_source`, ``all``, or ``own``.
        out: the folder to write.
        mirror: a folder of ``<org>/<name>`` sets to read instead of the Hub.
        revisions: Hub commits by set.
        items: items per task, None for all that a source has (``pairs`` is then an upper limit).
        pairs: pairs per task of the balanced design. By default one per item, or up to 125 if
            there are fewer items.
        design: ``balanced`` or ``full`` (all template pairs of every item).
        orders: as in :func:`judgesense_dataset.pairing.build`.
        seed: draws items, pairs and orders.
        templates: a template file instead of the paper's Appendix A.
        own, own_task: your data and its task, for the source ``own``.
        verdicts: give every pair the verdicts that need no judge: polarity, the recorded reading
            by hand, and surface if the embedding model is available (a note says if not).

    Raises:
        JudgeSenseError: for an unknown source, design or order plan, an error in a source's data,
            and more pairs than exist.
    """
    orders = order_plan(design, orders)
    if pairs is not None and design != "balanced":
        raise JudgeSenseError("only the balanced design takes a number of pairs; leave out --pairs")
    for name, number in (("items", items), ("pairs", pairs)):
        if number is not None and number < 1:
            raise JudgeSenseError(f"the number of {name} must be at least 1, got {number}")
    entries = load_templates(templates or TEMPLATES)
    reader = Reader(mirror, revisions or {})
    built, collected = BuiltDataset(out), list[Item]()
    origins: list[dict[str, Any]] = []
    cites: dict[str, None] = {}
    for source in _sources(sources, entries, own, own_task):
        sample = source.collect(reader, items, seed)
        collected += sample.items
        origins.append(_origin(source, sample.items))
        cites |= dict.fromkeys(source.cites)
        built.notes += [f"{source.title}: {note}" for note in sample.notes]
    groups = group_items(entries, collected)
    request = _Request(items, pairs, design, orders, seed, own is not None)
    free_verdicts = _FreeVerdicts()
    by_task: dict[str, dict[str, Any]] = {}
    with new_folder(out) as folder:
        prompts: list[Iterator[dict[str, Any]]] = []
        rejected: list[dict[str, Any]] = []
        for name, group in groups.items():
            entry = entries[name]
            prompts.append(_prompt_rows(entry, group, orders))
            of_pairs = free_verdicts.of(entry, group[0]) if verdicts else []
            built.tasks[name], invalid = _write_task(folder, entry, group, request, of_pairs)
            rejected += invalid
            by_task[name] = {**built.tasks[name], **_facts(entry, group)}
        if rejected:
            write_config(folder, REJECTED, PAIR_ROWS, rejected)
        schema = PROMPT_ROWS
        if any(template.aliases for name in groups for template in entries[name].templates):
            schema = schema.append(pa.field(ALIASES, pa.string()))
        write_config(folder, PROMPTS, schema, chain.from_iterable(prompts))
        built.notes += free_verdicts.notes() if verdicts else []
        facts = {
            "design": design,
            "orders": orders,
            "seed": seed,
            "sources": origins,
            "tasks": by_task,
            "citations": citations(cites),
            "notes": built.notes,
        }
        _write_card(folder, facts)
    return built


@dataclass(frozen=True)
class _Request:
    """The options of `build_dataset`; ``is_own`` data may be small."""

    items: int | None
    pairs: int | None
    design: str
    orders: str
    seed: int
    is_own: bool


def _origin(source: DataSource, items: Sequence[Item]) -> dict[str, Any]:
    """A source as the card names it."""
    first = items[0]
    return {
        "title": source.title,
        "id": first.source,
        "revision": first.revision,
        "license": first.license or "unknown",
        "items": len(items),
        "task": first.task,
    }


def _facts(entry: TaskTemplates, items: Sequence[Item]) -> dict[str, Any]:
    """The facts on the card about a task, besides its counts."""
    golds = Counter(item.gold for item in items)
    return {
        "clusters": len({item.cluster_id for item in items}),
        "templates": len(entry.templates),
        "gold": {label: golds[label] for label in entry.task.labels},
    }


def _write_task(
    folder: Path,
    entry: TaskTemplates,
    items: Sequence[Item],
    request: _Request,
    verdicts: Sequence[Mapping[str, Any]],
) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Write the valid pairs of a task; the counts, and the rows of as many rejected pairs.

    ``verdicts`` are those on each two wordings; without any, every pair is valid. Raises
    JudgeSenseError without a valid pair, and for a task that falls short of the paper's size.
    """
    name, columns = entry.task.name, range(math.comb(len(entry.templates), 2))
    doubtful = [at for at, verdict in enumerate(verdicts) if verdict["valid"] is False]
    valid = [at for at in columns if at not in doubtful]
    if not valid:
        raise JudgeSenseError(
            f"task {name!r}: no two of its wordings ask for the same judgement; correct "
            "them, or build with --no-verdicts"
        )
    n_orders = len(shown_orders(entry.task, request.orders))
    counts = {"items": len(items), "prompts": len(items) * n_orders * len(entry.templates)}
    cells_of = partial(plan, entry, items, request.design, seed=request.seed, orders=request.orders)
    n_pairs = _pairs_wanted(entry, len(items) * len(valid), request)
    cells = cells_of(n_pairs, columns=valid)
    rows = _with_verdicts(entry, items, cells, verdicts)
    counts["pairs"] = write_config(folder, name, PAIR_ROWS, rows)
    # As many of each two rejected wordings as of two valid ones.
    n_rejected = len({cell[:2] for cell in cells}) * len(doubtful) // len(valid)
    rejected = list[dict[str, Any]]()
    if n_rejected:
        n = n_rejected if request.design == "balanced" else None
        rejected += _with_verdicts(entry, items, cells_of(n, columns=doubtful), verdicts)
    counts["rejected"] = len(rejected)
    is_default = request.pairs is None and (request.items or 0) >= DEFAULT_ITEMS
    if is_default and not request.is_own:
        _require_size(name, counts)
    return counts, rejected


def _sources(
    names: Sequence[str],
    known: Mapping[str, TaskTemplates],
    own: own_source.OwnData | None,
    own_task: str | None,
) -> list[DataSource]:
    sources = []
    for name in dict.fromkeys(n for one in names for n in (NAMES if one == "all" else [one])):
        if name != "own":
            sources.append(get_source(name))
        elif own is None or (own.path is None) == (not own.hub_id):
            raise JudgeSenseError("the source own needs --items FILE or --items ORG/NAME")
        else:
            task = own_task or (next(iter(known)) if len(known) == 1 else "")
            if task not in known:
                raise JudgeSenseError(f"the source own needs --task, one of {', '.join(known)}")
            title = own.path.name if own.path else own.hub_id
            collect = partial(own_source.collect, own, known[task])
            sources.append(DataSource(task, title, collect))
        if sources[-1].task not in known:
            raise JudgeSenseError(
                f"the source {name!r} has items of task {sources[-1].task!r}, but the template "
                f"file has only {', '.join(known)}"
            )
    if not sources:
        raise JudgeSenseError(f"name a source; choose from {', '.join(CHOICES)}")
    return sources


class _FreeVerdicts:
    """The verdicts on pairs of wordings that need no judge, and each validator's YES and NO."""

    def __init__(self) -> None:
        self._embedder = Embedder()
        self._missing: JudgeSenseError | None = None
        self._votes: dict[str, Counter[str | None]] = defaultdict(Counter)

    def of(self, entry: TaskTemplates, item: Item) -> list[dict[str, Any]]:
        """The columns of the verdicts on each two templates, in the plan's order.

        They depend on the wordings alone, so one item shows them all. Without the embedding model,
        surface has none.
        """
        places = range(math.comb(len(entry.templates), 2))
        rows = list(pair_rows(entry, [item], [(0, at, entry.task.orders[0]) for at in places]))
        try:
            votes = free_votes(rows, None if self._missing else self._embedder)
        except JudgeSenseError as error:
            self._missing = error
            votes = free_votes(rows, None)
        columns = []
        for at in places:
            of_pair = {name: votes_of_one[at] for name, votes_of_one in votes.items()}
            validation = {name: vote.to_json() for name, vote in of_pair.items()}
            for name, vote in of_pair.items():
                self._votes[name][vote.to_json()["verdict"]] += 1
            columns.append(verdict_columns(*consensus(of_pair), validation))
        return columns

    def notes(self) -> list[str]:
        """The notes on the card about these verdicts."""
        yes = ", ".join(
            f"{validator} {counts['YES']} of {counts['YES'] + counts['NO']}"
            for validator, counts in self._votes.items()
        )
        return [
            f"Every pair carries the verdicts polarity and reading in `validation`; surface is "
            f"missing ({self._missing}). `judgesense dataset validate` adds it."
            if self._missing
            else "Every pair carries verdicts in `validation`: polarity (label maps compared), "
            "two readings (of the project's own wordings) and surface (edit distance, and "
            f"cosine by {MODEL}). `judgesense dataset validate` adds judges' and people's.",
            f"YES, of the pairs of wordings with a verdict: {yes}.",
        ]


def _with_verdicts(
    entry: TaskTemplates,
    items: Sequence[Item],
    cells: Sequence[Cell],
    verdicts: Sequence[Mapping[str, Any]],
) -> Iterator[dict[str, Any]]:
    """The rows of these cells with the verdicts on their wordings."""
    for cell, row in zip(cells, pair_rows(entry, items, cells), strict=True):
        yield {**row, **verdicts[cell[1]]} if verdicts else row


def _require_size(task: str, counts: Mapping[str, int]) -> None:
    """Raise JudgeSenseError for a task that is smaller than the paper's."""
    if counts["items"] < FEWEST_ITEMS or counts["pairs"] < DEFAULT_PAIRS:
        raise JudgeSenseError(
            f"task {task!r} falls short: {counts['pairs']} valid pairs of {counts['items']} items; "
            f"{DEFAULT_PAIRS} pairs of at least {FEWEST_ITEMS} items are needed. Add a source, or "
            "ask for fewer items with --limit"
        )


def _pairs_wanted(entry: TaskTemplates, capacity: int, request: _Request) -> int | None:
    """The number of cells for the pairs wanted, which both orders halve; None for the default.

    ``capacity`` is the number of cells that there are.
    """
    if request.pairs is None:
        return None
    halved = request.orders == "both" and entry.task.comparative
    n = max(1, request.pairs // (2 if halved else 1))
    return n if request.items else min(n, capacity)


def _prompt_rows(
    entry: TaskTemplates, items: Sequence[Item], orders: str
) -> Iterator[dict[str, Any]]:
    by_id = {item.item_id: item for item in items}
    aliases = {
        template.template_id: json.dumps(dict(template.aliases), ensure_ascii=False)
        for template in entry.templates
        if template.aliases
    }
    for prompt in grid(entry, items, orders):
        item = by_id[prompt.item_id]
        row = {name: getattr(prompt, name) for name in PROMPT_ROWS.names if hasattr(prompt, name)}
        row |= {"source": item.source, "revision": item.revision, "license": item.license}
        yield {**row, ALIASES: aliases.get(prompt.template_id)} if aliases else row


def _write_card(folder: Path, facts: Mapping[str, Any]) -> None:
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    template = environment.from_string((DATA / "card.md.j2").read_text(encoding="utf-8"))
    tasks, sources = list(facts["tasks"]), facts["sources"]
    names = (name for source in sources for name in source["license"].lower().split(", "))
    licenses = sorted({*names, "cc-by-4.0"})
    other_licenses = ", ".join(name for name in licenses if name not in _HUB_LICENSES)
    rows = sum(counts["pairs"] for counts in facts["tasks"].values())
    header = {
        "pretty_name": "JudgeSense",
        "language": ["en"],
        "license": sorted({name if name in _HUB_LICENSES else "other" for name in licenses}),
        **({"license_name": other_licenses} if other_licenses else {}),
        "task_categories": ["text-classification"],
        "tags": ["llm-as-a-judge", "prompt-sensitivity", "paraphrase", "evaluation", "judgesense"],
        "size_categories": [next((name for limit, name in _SIZES if rows < limit), "n>1M")],
        "source_datasets": sorted({f"extended|{s['id']}" for s in sources if "/" in s["id"]}),
        **declared(folder, tasks),
    }
    text = template.render(
        facts=facts,
        header=dump_header(header),
        config=tasks[0],
        split=SPLIT,
        version=__version__,
        prompt_columns=", ".join(pq.read_schema(folder / config_file(PROMPTS)).names),
    )
    write_text(folder / README, text)
