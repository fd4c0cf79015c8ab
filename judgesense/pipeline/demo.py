"""A recorded run that comes with the package: real decisions, measured when it is shown."""

from __future__ import annotations

import shutil
from pathlib import Path

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import writing
from judgesense.log.folder import read_record
from judgesense.reporting.report import Report, write_report

RECORDED = Path(__file__).parents[1] / "data" / "demo"
"""Three small judges on 50 relevance items: five wordings, both orders and an opposite question.

Made with ``judgesense run --judge smollm2-135m --judge qwen2.5-coder-0.5b --judge
qwen2.5-coder-1.5b --set dtype=bfloat16 --tasks relevance --variants rewording,inverted --scoring
options``.
"""

FOLDER = "judgesense-demo"


def demo(out: str | Path = FOLDER) -> Report:
    """Copy the recorded run to a folder and report on it: ``judgesense demo`` in Python.

    It needs no model, no network and no extra.

    Args:
        out: the folder to write; the report is ``report.html`` there.

    Raises:
        JudgeSenseError: the folder holds other files, or cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = demo(f"{folder}/demo")
    >>> sorted({card["judge"].partition("@")[0] for card in report.trust})
    ['qwen2.5-coder-0.5b', 'qwen2.5-coder-1.5b', 'smollm2-135m']
    """
    folder = Path(out)
    recorded = read_record(RECORDED) or {}
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        record = read_record(folder) if folder.is_dir() else None
        if record is None or record.get("run_id") != recorded.get("run_id"):
            raise JudgeSenseError(f"{folder} holds other files; name another folder with --out")
    with writing(folder):
        shutil.copytree(RECORDED, folder, dirs_exist_ok=True)
    return write_report(folder)
