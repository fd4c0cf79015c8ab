"""What is not a file is refused before it is read: reading a pipe may never end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judgesense.errors import JudgeSenseError
from judgesense.parquet_files import column_names, read_parquet
from judgesense.report_file import load_report
from judgesense.run_folder import read_record
from judgesense.systems.monitor_history import read_history
from judgesense.table_files import read_json, read_table
from judgesense.yaml_files import read_yaml
from judgesense_dataset.items import read_rows

READERS: dict[str, Callable[[Path], Any]] = {
    "run.json": lambda path: read_record(path.parent),
    "report.json": lambda path: load_report(path.parent),
    "looks.jsonl": read_history,
    "log.json": read_json,
    "log.jsonl": lambda path: list(read_table(path)),
    "log.csv": lambda path: list(read_table(path)),
    "items.jsonl": lambda path: list(read_rows(path)),
    "items.parquet": lambda path: list(read_rows(path)),
    "part.parquet": read_parquet,
    "footer.parquet": column_names,
    "own.yaml": read_yaml,
}


@pytest.mark.parametrize("name", READERS)
def test_a_pipe_is_no_file(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(JudgeSenseError, match=f"{name}.*a pipe or a device|damaged.*a pipe"):
        READERS[name](tmp_path / name)
