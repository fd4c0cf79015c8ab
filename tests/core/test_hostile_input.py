"""Wrong input for every reader: the cases that once failed, then random ones for a minute."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUDGET_S = 60


@pytest.mark.slow
def test_no_reader_ends_in_a_traceback_a_hang_or_a_crash() -> None:
    seed = os.environ.get("JUDGESENSE_SEED", "0")
    command = [sys.executable, "benchmarks/hostile_input.py", "--seconds", str(BUDGET_S)]
    told = subprocess.run(
        [*command, "--seed", seed],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    print(f"seed {seed}")
    counts = json.loads(told.stdout.splitlines()[-1])[0]
    assert counts["n"] > 50, told.stdout + told.stderr
    assert counts["refused"] > 0
    assert counts["read"] > 0
    assert counts["ours"] == 0, told.stdout
