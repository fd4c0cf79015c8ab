"""The scripts of pages: checked by TypeScript, and few lines."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from judgesense.reporting.html import SCRIPTS
from judgesense.reporting.overview import SCRIPT
from judgesense.reporting.palette import TEMPLATES

TSC = Path(__file__).parents[2] / "build" / "axe" / "node_modules" / "typescript" / "bin" / "tsc"
FLAGS = ("--allowJs", "--checkJs", "--noEmit", "--strict", "--target", "es2022")


@pytest.mark.parametrize("scripts", [SCRIPTS, ("element.js", "label.js"), (SCRIPT,)])
def test_types_hold(scripts) -> None:
    if not TSC.is_file():
        pytest.skip("needs typescript from npm: make browser")
    libraries = ("--lib", "es2023,dom,dom.iterable")
    files = [str(TEMPLATES / name) for name in scripts]
    done = subprocess.run(
        ["node", str(TSC), *FLAGS, *libraries, *files], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_all_scripts_together_stay_small() -> None:
    texts = [path.read_text("utf-8") for path in TEMPLATES.glob("*.js")]
    assert sum(len(text.splitlines()) for text in texts) <= 1500
    assert not [text for text in texts if "innerHTML" in text or "insertAdjacent" in text]
