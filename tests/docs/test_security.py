"""The security page: its limits are those of the code, and its promises have tests."""

from __future__ import annotations

import re
from pathlib import Path

from judgesense.files import limits

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")


def test_the_limits_on_the_page_are_those_of_the_code() -> None:
    stated = {
        name: float(amount) * (limits.MIB if unit == "MiB" else 1)
        for amount, unit, name in re.findall(r"\| (\d+)( MiB| s)? \| `([A-Z_]+)` \|", PAGE)
        for unit in [unit.strip()]
    }
    in_code = {name: value for name, value in vars(limits).items() if name.isupper()}
    del in_code["MIB"]
    assert stated == in_code


def test_every_promise_names_a_test_that_is_there() -> None:
    promises = PAGE.partition("## What is promised")[2].partition("## Limits")[0]
    rows = [row for row in promises.splitlines() if row.startswith("| ")][1:]
    for row in rows:
        if "---" not in row:
            named = re.findall(r"`(tests/[\w/.]+)`", row)
            assert named, row
            assert all((ROOT / name).is_file() for name in named), row
