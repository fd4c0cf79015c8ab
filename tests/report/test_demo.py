"""The recorded run that comes with the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import judgesense
from judgesense.errors import JudgeSenseError


@pytest.mark.slow
def test_the_demo_needs_no_model_and_shows_a_judge_that_a_change_saves(tmp_path: Path) -> None:
    for name in ("torch", "transformers", "matplotlib", "huggingface_hub"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('loaded')")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "judgesense", "demo", "--out", "demo"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) <= 30
    assert "report.html" in done.stdout
    report = judgesense.demo(tmp_path / "demo")
    trust = {card["judge"].partition("@")[0]: card for card in report.trust}
    assert set(trust) == {"smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"}
    assert {card["trust"] for card in trust.values()} == {"avoid"}
    saved = {step["judge"].partition("@")[0]: step["kind"] for step in report.next}
    assert saved["qwen2.5-coder-1.5b"] == "use_changed"


def test_the_demo_keeps_what_is_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(JudgeSenseError, match="holds other files"):
        judgesense.demo(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"
