"""Shared by the benchmarks: the machine's description, TruthfulQA prompts, the last line."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from judgesense.tasks import NO_ORDER, render
from judgesense_dataset.embedded import TEMPLATES, embedded_items
from judgesense_dataset.sources import get_source
from judgesense_dataset.sources.loader import Reader
from judgesense_dataset.templates import load_templates
from local_judges.protocol import Request

MIRROR = (
    Path(os.environ.get("JUDGESENSE_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    / "hub_mirror"
)


def machine(*packages: str) -> str:
    """The processor, the number of cores and the versions of the given packages."""
    cpu = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").is_file():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        cpu = next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), cpu)
    versions = [f"{package} {version(package)}" for package in packages]
    return ", ".join([f"{os.cpu_count()} {cpu} cores", *versions])


def factuality_requests(n: int) -> tuple[list[Request], str]:
    """n factuality prompts, and the source of their items.

    The items are TruthfulQA questions from the mirror beside the checkout, each with one of its
    answers and in one of the paper's five wordings. Without the mirror or ``datasets``, they are
    the embedded items in all five wordings.
    """
    entry = load_templates(TEMPLATES)["factuality"]
    if MIRROR.is_dir() and importlib.util.find_spec("datasets"):
        items = get_source("truthfulqa").collect(Reader(MIRROR), n, 0).items
        shown = [(entry.templates[at % 5], item) for at, item in enumerate(items)]
        source = "TruthfulQA"
    else:
        items = [item for item in embedded_items() if item.task == "factuality"]
        shown = [(template, item) for template in entry.templates for item in items][:n]
        source = "the embedded benchmark"
    prompts = [render(entry.task, template, item, NO_ORDER) for template, item in shown]
    return [Request(p.prompt_id, p.text, entry.task.labels) for p in prompts], source


def finish(results: list[dict[str, Any]]) -> None:
    """Print the results as one line of JSON, the last line of a benchmark's output."""
    print(json.dumps(results, ensure_ascii=False))


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as a CSV file, numbers to three digits; a row may lack columns."""
    with path.open("w", encoding="utf-8", newline="") as out:
        names = list(dict.fromkeys(name for row in rows for name in row))
        writer = csv.DictWriter(out, names, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()})
