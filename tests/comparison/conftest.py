"""Files of verdicts, written by a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from judgesense.files.tables import csv_text
from judgesense.log.folder import digests_of, save_run
from judgesense.log.schema import PARTS, SCHEMA, write_part

COLUMNS = (
    "item_id",
    "verdict",
    "judge",
    "task",
    "wording",
    "repeat",
    "gold",
    "score",
    "probability",
    "cluster_id",
    "order",
)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a file of verdicts: ``rule(item, wording, repeat)`` gives a verdict, or a whole row."""

    def call(
        name: str,
        rule: Callable[[int, str, int], Any],
        *,
        items: Iterable[int] = range(100),
        wordings: Iterable[str] = ("w1", "w2", "w3"),
        repeats: int = 1,
        judge: str = "m@old",
        task: str = "factuality",
    ) -> Path:
        path = tmp_path / f"{name}.csv"
        rows = []
        for item, wording, repeat in product(items, wordings, range(repeats)):
            row = rule(item, wording, repeat)
            rows.append(
                {
                    "item_id": f"i{item}",
                    "judge": judge,
                    "task": task,
                    "wording": wording,
                    "repeat": repeat,
                    **(row if isinstance(row, dict) else {"verdict": row}),
                }
            )
        path.write_text(csv_text(COLUMNS, rows), encoding="utf-8")
        return path

    return call


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    """Write a run's folder: ``rules`` gives a verdict to task, item, wording and repeat."""

    def call(
        name: str,
        rules: dict[str, Callable[[int, str, int], str]],
        *,
        judge: str = "m@old",
        items: Iterable[int] = range(60),
        wordings: Iterable[str] = ("w1", "w2", "w3"),
        repeats: int = 1,
        finished: bool = True,
        inverted: str = "",
    ) -> Path:
        turn = {"YES": "NO", "NO": "YES"}
        rows = [
            {
                "judge": judge,
                "task": task,
                "scoring": "generate",
                "status": "ok",
                "order": "-",
                "prompt_id": f"{task}/{item}/{wording}",
                "item_id": f"i{item}",
                "template_id": wording,
                "repeat": repeat,
                "decision": said,
                "raw_decision": turn[said] if wording == inverted else said,
            }
            for task, rule in rules.items()
            for item in items
            for wording in wordings
            for repeat in range(repeats)
            for said in [rule(item, wording, repeat)]
        ]
        path = tmp_path / name
        write_part(pa.Table.from_pylist(rows, schema=SCHEMA), path / PARTS, "part-00000.parquet")
        record = {"schema": 1, "run_id": name, "asked": {}}
        if finished:
            record |= {"finished": "2025-01-01T00:00:00+00:00", "digests": digests_of(path)}
        save_run(path, record)
        return path

    return call
