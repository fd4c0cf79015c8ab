"""The dataset card: README.md with the YAML header that the Hub reads (``data/card.md.j2``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from jinja2 import Environment, StrictUndefined

from judgesense.files.disk import write_text
from judgesense.tasks import Item
from judgesense.version import __version__
from judgesense_dataset.folder import (
    PROMPTS,
    README,
    SPLIT,
    config_file,
    declared,
    dump_header,
)
from judgesense_dataset.sources.loader import Collected
from judgesense_dataset.templates import DATA, TaskTemplates

_HUB_LICENSES = {
    "apache-2.0", "mit", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0",
    "cc0-1.0", "odc-by", "bsd-3-clause", "cc-by-3.0", "cc-by-sa-3.0", "unknown", "other",
}  # fmt: skip
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


@dataclass
class Facts:
    """The facts of a build that the card states."""

    design: str
    orders: str
    seed: int
    sources: list[dict[str, Any]] = field(default_factory=list)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    citations: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add_source(self, title: str, citation: str, collected: Collected) -> None:
        """Record the origin of items."""
        first = collected.items[0]
        self.sources.append(
            {
                "title": title,
                "id": first.source,
                "revision": first.revision,
                "license": first.license or "unknown",
                "items": len(collected.items),
                "task": first.task,
            }
        )
        parts = citation.split("\n\n") if citation else []
        self.citations += [part for part in parts if part not in self.citations]
        self.notes += [f"{title}: {note}" for note in collected.notes]

    def add_task(
        self, entry: TaskTemplates, items: Sequence[Item], counts: Mapping[str, int]
    ) -> None:
        """Record the contents of a task; ``counts`` has items, prompts and pairs."""
        golds = Counter(item.gold for item in items)
        self.tasks[entry.task.name] = {
            **counts,
            "clusters": len({item.cluster_id for item in items}),
            "templates": len(entry.templates),
            "gold": {label: golds[label] for label in entry.task.labels},
        }


def write_card(folder: Path, facts: Facts) -> None:
    """Write the folder's README.md."""
    tasks = list(facts.tasks)
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    template = environment.from_string((DATA / "card.md.j2").read_text(encoding="utf-8"))
    card = template.render(
        facts=facts,
        header=dump_header(_header(folder, facts, tasks)),
        config=tasks[0],
        split=SPLIT,
        version=__version__,
        prompt_columns=", ".join(pq.read_schema(folder / config_file(PROMPTS)).names),
    )
    write_text(folder / README, card)


def _header(folder: Path, facts: Facts, tasks: Sequence[str]) -> dict[str, Any]:
    named = (name for source in facts.sources for name in source["license"].lower().split(", "))
    licenses = sorted({*named, "cc-by-4.0"})
    stated = sorted({name if name in _HUB_LICENSES else "other" for name in licenses})
    other = ", ".join(name for name in licenses if name not in _HUB_LICENSES)
    rows = sum(counts["pairs"] for counts in facts.tasks.values())
    return {
        "pretty_name": "JudgeSense",
        "language": ["en"],
        "license": stated,
        **({"license_name": other} if other else {}),
        "task_categories": ["text-classification"],
        "tags": ["llm-as-a-judge", "prompt-sensitivity", "paraphrase", "evaluation", "judgesense"],
        "size_categories": [next((name for limit, name in _SIZES if rows < limit), "n>1M")],
        "source_datasets": sorted(
            {f"extended|{source['id']}" for source in facts.sources if "/" in source["id"]}
        ),
        **declared(folder, tasks),
    }
