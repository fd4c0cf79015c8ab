"""The dataset card: README.md with the YAML that the Hub reads, and what a reader must know."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from judgesense.tasks import Item
from judgesense.version import __version__
from judgesense_dataset.folder import (
    ALL,
    PAIR_ROWS,
    PROMPT_ROWS,
    PROMPTS,
    README,
    SPLIT,
    config_file,
    config_sizes,
    dump_header,
    write_text,
)
from judgesense_dataset.sources.loader import Collected
from judgesense_dataset.templates import TaskTemplates

_AUDIT = "## Audit\n"
_NO_AUDIT = "`judgesense dataset audit` prints the audit of these pairs.\n"

_HUB_LICENSES = {
    "apache-2.0", "mit", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0",
    "cc0-1.0", "odc-by", "bsd-3-clause", "cc-by-3.0", "cc-by-sa-3.0", "unknown", "other",
}  # fmt: skip

JUDGESENSE_CITATION = """@misc{judgesense2026,
  title = {{JudgeSense}: A Benchmark for Prompt Sensitivity in {LLM}-as-a-Judge Systems},
  year = {2026},
  eprint = {2604.23478},
  archivePrefix = {arXiv}
}"""

_COLUMNS = {
    "pair_id": "item, option order and the two templates",
    "task_type": "task",
    "source_benchmark": "the set that the item comes from",
    "prompt_a`, `prompt_b": "the two rendered user messages",
    "response_being_judged": "what is judged; options as `A: ... | B: ...` as shown",
    "ground_truth_label": "canonical gold label, as shown in `order`",
    "semantic_equivalence_score": "mean of the validators' scores; null before validation",
    "item_id`, `cluster_id": "the item, and what items share (resample clusters, not rows)",
    "template_a`, `template_b": "the two wordings",
    "order": "`AB` as stored, `BA` options swapped, `-` no options",
    "label_map_a`, `label_map_b": "JSON: raw answer to canonical label",
    "valid`, `validation": "the validators' consensus, and each verdict as JSON; null before",
    "system_id": "what produced the judged text, in the order AB",
    "license`, `source_revision": "of the item's source (Hub commit, or sha256 of a mirror)",
}


@dataclass
class Facts:
    """What a build knows that the card says."""

    design: str
    orders: str
    seed: int
    sources: list[dict[str, Any]] = field(default_factory=list)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    citations: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add_source(self, title: str, citation: str, collected: Collected) -> None:
        """Take down where items came from."""
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
        if citation:
            self.citations += [c for c in citation.split("\n\n") if c not in self.citations]
        self.notes += [f"{title}: {note}" for note in collected.notes]

    def add_task(
        self, entry: TaskTemplates, items: Sequence[Item], counts: Mapping[str, int]
    ) -> None:
        """Take down what a task holds."""
        golds = Counter(item.gold for item in items)
        self.tasks[entry.task.name] = {
            **counts,
            "clusters": len({item.cluster_id for item in items}),
            "templates": len(entry.templates),
            "gold": {label: golds[label] for label in entry.task.labels},
        }


def write_card(folder: Path, facts: Facts) -> None:
    """Write the folder's README.md."""
    write_text(folder / README, _card(facts, dump_header(_header(folder, facts))))


def _card(facts: Facts, header: str) -> str:
    paired = any("pairs" in counts for counts in facts.tasks.values())
    sections = [
        f"---\n{header}---\n\n# JudgeSense pairs\n\n"
        "Prompts that ask a judge the same question about the same item in two wordings, with gold "
        "labels. The Judge Sensitivity Score (JSS) of a judge is the share of pairs on which its "
        "two decisions agree; label maps translate the answers to inverted wordings.\n",
        _use(facts, paired),
        "## Contents\n\n" + _contents(facts),
        "## Sources\n\n" + _sources(facts) + _bullets(facts.notes),
        "## Columns\n\n" + (_columns() if paired else "") + "\n`prompts`: one row for each item, "
        f"template and option order, with the columns {', '.join(PROMPT_ROWS.names)}.\n",
        _AUDIT + "\n" + _NO_AUDIT,
        "## Citation\n\n```bibtex\n"
        + "\n\n".join([JUDGESENSE_CITATION, *facts.citations])
        + "\n```\n",
    ]
    return "\n".join(section for section in sections if section)


def set_audit(folder: Path, markdown: str) -> None:
    """Put an audit's Markdown under the card's heading "Audit", in place of what stands there."""
    readme = folder / README
    text = readme.read_text(encoding="utf-8")
    section = f"{_AUDIT}\n{markdown.strip()}\n\n"
    text = re.sub(rf"^{_AUDIT}.*?(?=^## |\Z)", lambda _: section, text, count=1, flags=re.M | re.S)
    write_text(readme, text)


def _header(folder: Path, facts: Facts) -> dict[str, Any]:
    tasks = [name for name, counts in facts.tasks.items() if "pairs" in counts]
    named = (name for source in facts.sources for name in source["license"].lower().split(", "))
    licenses = sorted({*named, "cc-by-4.0"})
    stated = sorted({name if name in _HUB_LICENSES else "other" for name in licenses})
    rows = sum(counts.get("pairs", counts["prompts"]) for counts in facts.tasks.values())
    configs: list[dict[str, Any]] = []
    infos = []
    if tasks:
        configs.append(_config(ALL, [config_file(task) for task in tasks], default=True))
        infos.append(_info(ALL, PAIR_ROWS, [folder / config_file(task) for task in tasks]))
        for task in tasks:
            configs.append(_config(task, [config_file(task)]))
            infos.append(_info(task, PAIR_ROWS, [folder / config_file(task)]))
    configs.append(_config(PROMPTS, [config_file(PROMPTS)], default=not tasks))
    infos.append(_info(PROMPTS, PROMPT_ROWS, [folder / config_file(PROMPTS)]))
    header: dict[str, Any] = {
        "pretty_name": "JudgeSense",
        "language": ["en"],
        "license": stated,
    }
    if "other" in stated:
        header["license_name"] = ", ".join(name for name in licenses if name not in _HUB_LICENSES)
    return {
        **header,
        "task_categories": ["text-classification"],
        "tags": ["llm-as-a-judge", "prompt-sensitivity", "paraphrase", "evaluation", "judgesense"],
        "size_categories": [_size(rows)],
        "source_datasets": sorted(
            {f"extended|{source['id']}" for source in facts.sources if "/" in source["id"]}
        ),
        "configs": configs,
        "dataset_info": infos,
    }


def _config(name: str, files: list[str], default: bool = False) -> dict[str, Any]:
    path: str | list[str] = files[0] if len(files) == 1 else files
    config: dict[str, Any] = {
        "config_name": name,
        "data_files": [{"split": SPLIT, "path": path}],
    }
    return {**config, "default": True} if default else config


def _info(name: str, schema: pa.Schema, files: list[Path]) -> dict[str, Any]:
    dtypes = {pa.string(): "string", pa.float64(): "float64", pa.bool_(): "bool"}
    return {
        "config_name": name,
        "features": [{"name": column.name, "dtype": dtypes[column.type]} for column in schema],
        **config_sizes(files),
    }


def _size(rows: int) -> str:
    for limit, name in ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K")):
        if rows < limit:
            return name
    return "100K<n<1M" if rows < 1_000_000 else "n>1M"


def _use(facts: Facts, paired: bool) -> str:
    config = next(iter(facts.tasks)) if paired else PROMPTS
    return (
        "```python\nfrom datasets import load_dataset\n\n"
        f'rows = load_dataset("DIR_OR_REPO", "{config}", split="{SPLIT}")\n```\n\n'
        "```sh\njudgesense run --judge smollm2-135m --dataset DIR_OR_REPO --out runs/mine\n```\n"
    )


def _contents(facts: Facts) -> str:
    lines = [
        "| task | items | clusters | templates | pairs | prompts | gold of the items |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for name, counts in facts.tasks.items():
        gold = ", ".join(f"{label} {n}" for label, n in counts["gold"].items())
        lines.append(
            f"| {name} | {counts['items']} | {counts['clusters']} | {counts['templates']} "
            f"| {counts.get('pairs', 0)} | {counts['prompts']} | {gold} |"
        )
    lines.append(
        f"\nDesign `{facts.design}`, option orders `{facts.orders}`, seed {facts.seed}; built by "
        f"`judgesense dataset build` {__version__}. Config `{ALL}` joins the tasks; `{PROMPTS}` is "
        "the full grid of item, template and option order.\n"
    )
    return "\n".join(lines)


def _sources(facts: Facts) -> str:
    lines = [
        "| source | set | task | items | licence | revision |",
        "| --- | --- | --- | ---: | --- | --- |",
    ]
    lines += [
        "| {title} | {id} | {task} | {items} | {license} | `{revision}` |".format(**source)
        for source in facts.sources
    ]
    return "\n".join(lines) + "\n\n"


def _bullets(notes: Sequence[str]) -> str:
    templates = (
        "The wordings are the templates of JudgeSense's Appendix A (CC-BY-4.0) unless a template "
        "file was given; each item keeps its source's licence."
    )
    return "\n".join(f"- {note}" for note in [*notes, templates]) + "\n"


def _columns() -> str:
    lines = ["| column | meaning |", "| --- | --- |"]
    lines += [f"| `{name}` | {meaning} |" for name, meaning in _COLUMNS.items()]
    return "\n".join(lines) + "\n"
