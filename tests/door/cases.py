"""What the tests of the door share: the folder of cases, and the figures of a check."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import judgesense

CASES = Path(__file__).parents[3] / "shared" / "cases"


def case(name: str) -> Path:
    """A file of the shared cases; its test is skipped where they are missing, except in a CI."""
    if not CASES.is_dir():
        if os.environ.get("CI"):
            pytest.fail(f"{CASES} is missing")
        pytest.skip(f"{CASES} is missing")
    (path,) = CASES.glob(name)
    return path


def checked(source: Any, folder: Path, **options: Any) -> tuple[dict[tuple[str, str], Any], Any]:
    """People's entries of a check by task and person, and the check."""
    result = judgesense.check(source, out=folder / "out", runs=folder, note=str, **options)
    return {(entry["task"], entry["human"]): entry for entry in result.people}, result


def readable(result: Any) -> tuple[float, int]:
    """The share of readable rows of the first card, and its items."""
    check = result.trust[0]["checks"]["readable"]
    return check["estimate"], check["n_items"]
