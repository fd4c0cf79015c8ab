"""Decision logs that tests on studies write by hand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from judgesense.log.schema import SCHEMA, write_part


def decision(judge: str, item: str, template: str, label: str, **more: Any) -> dict[str, Any]:
    """A row of a decision log."""
    return {
        "judge": judge,
        "task": "fact",
        "scoring": "generate",
        "item_id": item,
        "cluster_id": item,
        "template_id": template,
        "order": "-",
        "repeat": 0,
        "prompt_id": f"{item} {template} {more.get('order')}",
        "raw_decision": label,
        "decision": label,
        "status": "ok",
        "gold": "YES",
        "truncated": False,
    } | more


def write_log(folder: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """A folder with a decision log and a record of its judges."""
    table = pa.Table.from_pylist(list(rows), schema=SCHEMA)
    write_part(table, folder / "decisions", "part-0.parquet")
    names = dict.fromkeys(table["judge"].to_pylist())
    judges = [{"name": name, "describe": {"max_tokens": 20}} for name in names]
    (folder / "run.json").write_text(json.dumps({"run_id": folder.name, "judges": judges}))
    return folder
