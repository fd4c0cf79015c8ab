"""The environment with DeepEval and MLflow, which want other versions than the developer tools."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

ROOT = Path(__file__).resolve().parents[2]
MADE = Path(".venv-integrations/.ready")


@pytest.fixture(scope="session")
def python() -> Path:
    """Its interpreter; the environment is made now if it is not there."""
    (ROOT / "build").mkdir(exist_ok=True)
    with FileLock(ROOT / "build" / "integrations.lock"):  # another worker may be making it
        made = subprocess.run(
            ["make", "--silent", str(MADE), f"PYTHON={sys.executable}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    if made.returncode:
        pytest.fail(f"{MADE.parent} cannot be made, which needs a network:\n{made.stderr[-2000:]}")
    return ROOT / MADE.parent / "bin" / "python"


def environment(home: Path) -> dict[str, str]:
    """Variables for a program in that environment: this checkout, and no settings of the user."""
    left_out = ("OPENAI_", "MLFLOW_", "DEEPEVAL_", "PYTEST_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {**kept, "PYTHONPATH": str(ROOT), "HOME": str(home), "HF_HUB_OFFLINE": "1"}
