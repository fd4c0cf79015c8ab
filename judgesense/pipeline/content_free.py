"""Prompts without content, which show a judge's prior: ``judgesense run --content-free``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from judgesense.benchmark import Benchmark
from judgesense.decisions.log import CONTENT_FREE, INTERVENTION
from judgesense.errors import JudgeSenseError
from judgesense.run_folder.folder import VARIANT_SCHEMA
from judgesense.tasks import Item, Task, Template, load_label_map, render
from judgesense_dataset.recognition import recognise

TEXTS = ("N/A", "[MASK]", "")
"""What stands in place of every field of an item: the three inputs of Zhao et al."""


def with_content_free(benchmark: Benchmark) -> Benchmark:
    """The benchmark with each wording asked about input without content as well.

    The log marks these rows by the variant `judgesense.decisions.log.CONTENT_FREE`; nothing but the
    remedy "calibrated by content-free input" reads them. A choice of two options looks alike in
    both orders, so it is asked in one.

    Source: Zhao et al., "Calibrate Before Use", arXiv:2102.09690, section 5.

    Raises:
        JudgeSenseError: the text of a wording is not known.

    >>> from judgesense_dataset.load import load_benchmark
    >>> whole = with_content_free(load_benchmark("embedded").select(["factuality"], limit=1))
    >>> whole.prompts.num_rows, whole.prompts["text"][-3].as_py().splitlines()[-1]
    (20, 'Response: N/A')
    """
    rows = [
        row
        for task in benchmark.tasks.values()
        for template, order in _templates(benchmark, task)
        for row in _rows(task, template, order)
    ]
    prompts = benchmark.prompts
    for field in VARIANT_SCHEMA:
        if field.name not in prompts.column_names:
            empty = [False] * len(prompts) if field.name == "again" else [None] * len(prompts)
            prompts = prompts.append_column(field, pa.array(empty, field.type))
    added = pa.Table.from_pylist(rows, schema=VARIANT_SCHEMA)
    return replace(benchmark, prompts=pa.concat_tables([prompts, added]))


def _rows(task: Task, template: Template, order: str) -> list[dict[str, Any]]:
    found = []
    for number, text in enumerate(TEXTS, 1):
        name = f"{CONTENT_FREE}-{number}"
        item = Item(name, task.name, dict.fromkeys(template.placeholders, text))
        prompt = render(task, template, item, order)
        found.append({
            **{field: getattr(prompt, field) for field in prompt.__slots__},
            "variant": CONTENT_FREE,
            "variant_class": INTERVENTION,
            "again": False,
        })  # fmt: skip
    return found


def _templates(benchmark: Benchmark, task: Task) -> list[tuple[Template, str]]:
    """The task's wordings without a variant, and an order in which each is asked."""
    prompts = benchmark.prompts
    own = prompts.filter(pc.equal(prompts["task"], task.name))
    if "variant" in own.column_names:
        own = own.filter(pc.is_null(own["variant"]))
    found = []
    wordings = benchmark.wordings.get(task.name, {})
    layouts = benchmark.layouts.get(task.name, {})
    for name in pc.unique(own["template_id"]).to_pylist():
        row = own.filter(pc.equal(own["template_id"], name)).slice(0, 1).to_pylist()[0]
        label_map = dict(load_label_map(row["label_map"]))
        if name in wordings and name in layouts:
            template = Template(name, task.name, wordings[name], layouts[name], label_map)
        elif known := recognise(task.name, row["text"]):
            template = replace(known[0], template_id=name, label_map=label_map)
        else:
            raise JudgeSenseError(
                f"--content-free: the text of the wording {name!r} is not known, so it cannot be "
                "asked without content. Use --templates FILE --items FILE, or leave it out"
            )
        found.append((template, str(row["order"])))
    return found
