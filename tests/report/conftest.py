"""Decision logs made by rule, so that every figure can be counted by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judgesense.benchmark import Benchmark, table_of_pairs, table_of_prompts
from judgesense.log.schema import PARTS, SCHEMA, write_part
from judgesense.tasks import Item, Task, Template, load_label_map, pair_up, render

Prompt = Mapping[str, Any]
Decide = Callable[[Prompt], str]
STATUS = {"UNCLEAR": "unclear", "REFUSED": "refused", "ERROR": "error"}


def _benchmark(
    task: Task, maps: Iterable[Mapping[str, str]], golds: Iterable[str], orders: Iterable[str] = ()
) -> Benchmark:
    """All pairs of templates on every item; template ids are w1, w2, ..."""
    layout = "{instruction}\n\n{text}" + "".join(f"\n{{{f}}}" for f in task.options.values())
    templates = [
        Template(f"w{number}", task.name, f"Wording {number}?", layout, label_map)
        for number, label_map in enumerate(maps, 1)
    ]
    prompts, pairs = [], []
    for number, gold in enumerate(golds, 1):
        fields = {"text": f"Text {number}", **{f: f"{f} {number}" for f in task.options.values()}}
        item = Item(f"item-{number:03}", task.name, fields, gold)
        for order in orders or task.orders:
            own = {t.template_id: render(task, t, item, order) for t in templates}
            prompts += own.values()
            pairs += [pair_up(own[a], own[b]) for a, b in combinations(own, 2)]
    return Benchmark(
        {task.name: task}, table_of_prompts(prompts), table_of_pairs(pairs), {"name": "by rule"}
    )


def _log(
    benchmark: Benchmark,
    decide: Decide,
    judge: str = "rule@0001",
    scoring: str = "generate",
    repeat: int = 0,
    logprobs: Callable[[Prompt], Mapping[str, float]] | None = None,
    mass: float | None = None,
) -> pa.Table:
    rows = []
    for prompt in benchmark.prompts.to_pylist():
        raw = decide(prompt)
        row = {key: prompt[key] for key in SCHEMA.names if key in prompt}
        row.update(
            judge=judge,
            scoring=scoring,
            repeat=repeat,
            raw_text=raw,
            raw_decision=raw,
            decision=load_label_map(prompt["label_map"]).get(raw, raw),
            status=STATUS.get(raw, "ok"),
            option_mass=mass,
        )
        if logprobs is not None:
            row["option_logprobs"] = [
                {"option": option, "logprob": value} for option, value in logprobs(prompt).items()
            ]
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _run(benchmark: Benchmark, run_id: str = "by-rule") -> dict[str, Any]:
    return {
        "run_id": run_id,
        "data_hash": benchmark.data_hash,
        "dataset": dict(benchmark.source),
        "tasks": {
            name: {
                "labels": list(task.labels),
                "ordinal": task.ordinal,
                "comparative": task.comparative,
            }
            for name, task in benchmark.tasks.items()
        },
    }


def _folder(path: Path, benchmark: Benchmark, *logs: pa.Table, pairs: bool = True) -> Path:
    """A run's folder as the runner leaves it."""
    write_part(pa.concat_tables(logs), path / PARTS, "part-0.parquet")
    (path / "run.json").write_text(json.dumps(_run(benchmark, path.name)))
    pq.write_table(benchmark.prompts, path / "prompts.parquet")
    if pairs:
        pq.write_table(benchmark.pairs, path / "pairs.parquet")
    return path


class Make:
    """What the tests build with."""

    benchmark = staticmethod(_benchmark)
    log = staticmethod(_log)
    run = staticmethod(_run)
    folder = staticmethod(_folder)
    YESNO = Task("factuality", ("YES", "NO"))
    AB = Task("preference", ("A", "B"), options={"A": "one", "B": "two"})
    SCALE = Task("coherence", ("1", "2", "3", "4", "5"), ordinal=True)
    PLAIN: Mapping[str, str] = {"YES": "YES", "NO": "NO"}
    INVERTED: Mapping[str, str] = {"YES": "NO", "NO": "YES"}
    OPTIONS: Mapping[str, str] = {"A": "A", "B": "B"}

    @staticmethod
    def oracle(prompt: Prompt) -> str:
        """The answer that means the gold label."""
        label_map = load_label_map(prompt["label_map"])
        return next(raw for raw, label in label_map.items() if label == prompt["gold"])

    @staticmethod
    def cell(report: Mapping[str, Any], judge: str, labels: str, **more: str) -> dict[str, Any]:
        """The one cell of a judge with these labels (and task, order, scoring)."""
        wanted = {"judge": judge, "labels": labels, **more}
        found = [c for c in report["cells"] if all(c[k] == v for k, v in wanted.items())]
        assert len(found) == 1, found
        return found[0]


@pytest.fixture(scope="session")
def make() -> Make:
    return Make()
