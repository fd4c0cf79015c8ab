"""A pipe is refused before it is read, and a pipe, a device or a link is never replaced."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judgesense.errors import JudgeSenseError
from judgesense.files.atomic import write_text
from judgesense.files.parquet import column_names, read_parquet
from judgesense.files.tables import read_json, read_table
from judgesense.files.yaml import read_yaml
from judgesense.run_folder.folder import read_record
from judgesense.run_folder.report import load_report
from judgesense.systems.monitor_history import read_history
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


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text("utf-8")), daemon=True)
    reader.start()
    write_text(pipe, "verdicts")
    reader.join(20)
    assert read == ["verdicts"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_link_is_kept_and_its_file_replaced(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "real.txt").write_text("old", "utf-8")
    (tmp_path / "link.txt").symlink_to(Path("kept", "real.txt"))
    write_text(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "kept" / "real.txt").read_text("utf-8") == "new"
