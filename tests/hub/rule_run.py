"""A run of a judge by rule, with its report, in a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq

from judgesense.benchmark import table_of_pairs
from judgesense.decisions.log import PARTS, SCHEMA, write_part
from judgesense.reporting.report import measure_run
from judgesense.tasks import Item, Task, Template, pair_up, render


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
    report = json.dumps(measure_run(folder), allow_nan=False)
    (folder / "report.json").write_text(report, "utf-8")
    return folder
