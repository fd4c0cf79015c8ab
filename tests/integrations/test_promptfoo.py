"""The promptfoo assertion: in this process, and in the real program as its page says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback, factual, section, serving, stable_file

from judgesense.integrations.promptfoo import get_assert

ROOT = Path(__file__).resolve().parents[2]
PAGE = section("promptfoo")
MADE = Path(".venv-promptfoo/.ready")


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"judge": "rule"}, "config, passing: "),
        ({"judge": "rule", "passing": ["YES"], "threshold": 0.5}, "config, threshold: "),
        ({"judge": "rule", "passing": ["YES"], "options": []}, "config, options: "),
        ({"judge": "rule", "passing": ["YES"], "task": "factuality"}, "unknown judge 'rule'"),
        ({"judge": "stable.yaml", "passing": ["YES"]}, "stable.yaml"),
        (None, "config, judge: "),
    ],
)
def test_a_wrong_config_fails_with_the_reason(config: Any, named: str) -> None:
    told = get_assert("Paris.", {"vars": {}, "config": config})
    assert (told["pass"], told["score"]) == (False, 0.0)
    assert named in told["reason"]


@pytest.mark.slow
def test_the_real_promptfoo(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("needs npm, which is not installed")
    made = subprocess.run(
        ["make", "--silent", str(MADE)], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert made.returncode == 0, made.stderr
    (one_line,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (config,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "judge.py").write_text(one_line)
    (tmp_path / "promptfooconfig.yaml").write_text(config)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OPENAI_", "PROMPTFOO_"))}
    quiet = ("TELEMETRY", "UPDATE", "REMOTE_GENERATION", "SHARING")
    program = ROOT / MADE.parent / "node_modules/.bin/promptfoo"
    server = Loopback(factual)
    with serving(server):
        stable_file(tmp_path / "stable.yaml", f"{server.url}/v1")
        done = subprocess.run(
            [program, "eval", "--no-cache", "-o", "out.json"],
            cwd=tmp_path,
            env={
                **kept, **{f"PROMPTFOO_DISABLE_{name}": "1" for name in quiet},
                "PROMPTFOO_CONFIG_DIR": str(tmp_path / "home"),
                "PROMPTFOO_PYTHON": sys.executable, "PYTHONPATH": str(ROOT),
            },
            capture_output=True, text=True, timeout=400,
        )  # fmt: skip
    found = json.loads((tmp_path / "out.json").read_text("utf-8"))["results"]["results"]
    assert len(found) == 4, done.stderr
    by_answer = {each["vars"]["answer"]: each["gradingResult"] for each in found}
    reasons = {answer: each["componentResults"][0]["reason"] for answer, each in by_answer.items()}
    assert {answer: each["pass"] for answer, each in by_answer.items()} == {
        "Paris.": True, "Lyon.": False, "Nice.": True, "It is a city.": False,
    }  # fmt: skip
    assert reasons["It is a city."].startswith("UNCLEAR")
    assert "ask a person" in reasons["Nice."]
    assert "ask a person" not in reasons["Paris."]
    assert by_answer["Nice."]["namedScores"]["margin"] == pytest.approx(1 / 3)
    assert server.asked == 12  # three wordings of each
