"""Graded logs of Inspect, promptfoo and DeepEval, told apart by their content."""

from __future__ import annotations

import zipfile
from pathlib import Path

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import require_file
from judgesense.files.documents import read_json
from judgesense.importers import graded_deepeval, graded_inspect, graded_promptfoo
from judgesense.importers.graded import GradedLog


def read_graded(path: str | Path, pick: str | None = None) -> GradedLog:
    """The rubric, the items, the grades and the judge in another tool's log.

    Args:
        path: an Inspect log (``.eval`` or ``.json``), promptfoo's ``results.json`` or DeepEval's
            ``.latest_test_run.json``.
        pick: the scorer (Inspect) or metric (promptfoo, DeepEval), if the log has several.

    Raises:
        JudgeSenseError: for another file, a log without a model's grades, several scorers without
            ``pick``, and a rubric that cannot be taken from the log.
    """
    path = Path(path)
    require_file(path)
    if zipfile.is_zipfile(path):
        return graded_inspect.read(path, pick)
    content = read_json(path)
    keys = set(content) if isinstance(content, dict) else set()
    if "eval" in keys:
        return graded_inspect.read(path, pick)
    if "results" in keys:
        return graded_promptfoo.read(path, pick)
    if keys & {"testRunData", "testCases", "conversationalTestCases"}:
        return graded_deepeval.read(path, pick)
    raise JudgeSenseError(
        f"{path}: not a log of Inspect (.eval, .json), promptfoo (results.json) or DeepEval "
        "(.latest_test_run.json)"
    )
