"""Runs of judges by rule: a small one on twelve items, and others on the embedded benchmark."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow.parquet as pq

import judgesense
from judgesense.benchmark import table_of_pairs
from judgesense.log.schema import PARTS, SCHEMA, write_part
from judgesense.measure.report_file import report_json
from judgesense.reporting.report import measure_run
from judgesense.tasks import Item, Task, Template, pair_up, render
from judgesense_dataset.embedded import embedded_items, embedded_templates

JUDGES = {
    "steady-70b": (0.02, 0.05),
    "wavering-1.5b": (0.30, 0.10),
    "always-yes-360m": None,
}
"""Name -> share of prompts answered at random, and of items judged wrongly; None: one answer."""

_ORDERS = {True: ("AB", "BA"), False: ("-",)}


def _answers() -> dict[str, tuple[list[str], str, str]]:
    """Prompt -> its raw answers, the right one, and the item that it is about."""
    tasks = embedded_templates()
    found = {}
    for item in embedded_items():
        entry = tasks[item.task]
        for template in entry.templates:
            for order in _ORDERS[entry.task.comparative]:
                prompt = render(entry.task, template, item, order)
                means = {meant: raw for raw, meant in template.label_map.items()}
                found[prompt.text] = (sorted(means.values()), means[prompt.gold], item.item_id)
    return found


def _share(*parts: str) -> float:
    return int(hashlib.sha256("|".join(parts).encode()).hexdigest()[:8], 16) / 16**8


def make_judge(name: str):
    """A judge that wavers and errs as `JUDGES` says, the same at every call."""
    answers, kind = _answers(), JUDGES[name]

    def judge(prompts: list[str]) -> list[str]:
        replies = []
        for text in prompts:
            options, right, item = answers[text]
            if kind is None:
                reply = options[-1] if "YES" in options else options[0]
            else:
                wavers, errs = kind
                wrong = options[(options.index(right) + 1) % len(options)]
                reply = wrong if _share(name, "item", item) < errs else right
                if _share(name, "prompt", text) < wavers:
                    reply = options[int(_share(name, "which", text) * len(options))]
            replies.append(reply)
        return replies

    return judge


def make_runs(folder: Path, names=tuple(JUDGES)) -> Path:
    """A folder of runs, one a judge."""
    for name in names:
        judgesense.run(make_judge(name), name=name, out=folder / name, note=lambda text: None)
    return folder


def make_run(
    folder: Path,
    judge: str = "rule@0001",
    record: dict | None = None,
    scoring: str = "generate",
    always: str | None = None,
    error: str | None = None,
) -> Path:
    """Twelve items under two wordings; the judge changes its mind on items 1 and 5.

    ``record`` is what ``run.json`` says beside the run's id; ``always`` is the judge's one answer;
    ``error`` is why the first item has none.
    """
    import pyarrow as pa

    task = Task("factuality", ("YES", "NO"))
    same = {"YES": "YES", "NO": "NO"}
    wordings = [
        Template(f"w{n}", task.name, f"Wording {n}?", "{instruction}\n\n{text}", same)
        for n in (1, 2)
    ]
    rows, pairs = [], []
    for number in range(12):
        item = Item(f"item-{number:02}", task.name, {"text": f"Text {number}"}, "YES")
        prompts = [render(task, wording, item, "-") for wording in wordings]
        pairs.append(pair_up(*prompts))
        for side, prompt in enumerate(prompts):
            said = "NO" if number % 3 == 0 or (side and number % 4 == 1) else "YES"
            said = always or said
            row = {name: getattr(prompt, name, None) for name in SCHEMA.names}
            row |= {"judge": judge, "scoring": scoring, "repeat": 0, "raw_text": said}
            row |= {"raw_decision": said, "decision": said, "status": "ok", "truncated": False}
            if error and number == 0:
                row |= {"raw_text": None, "raw_decision": "ERROR", "decision": "ERROR"}
                row |= {"status": "error", "error": error}
            rows.append(row)
    write_part(pa.Table.from_pylist(rows, schema=SCHEMA), folder / PARTS, "part-00-000.parquet")
    pq.write_table(table_of_pairs(pairs), folder / "pairs.parquet")
    whole = {"run_id": "by-rule", "schema": 1, **(record or {})}
    (folder / "run.json").write_text(json.dumps(whole), "utf-8")
    # The figures and pages of write_report are not published.
    report = json.dumps(report_json(measure_run(folder)), allow_nan=False)
    (folder / "report.json").write_text(report, "utf-8")
    return folder
