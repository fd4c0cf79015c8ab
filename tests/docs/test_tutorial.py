"""The tutorial's files and commands, run in its order, print what the page shows."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
STEPS = PAGE[: PAGE.index("## The same with an LLM")]
FILE = re.compile(r'```python title="([\w.]+)"\n(.*?)```', re.DOTALL)
COMMAND = re.compile(
    r"```sh\n((?:python|judgesense|pytest) .*?)\n```\n\n```text\n(.*?)```", re.DOTALL
)
EXAMPLES = ("replies.txt", "replies.jsonl", "replies.wordings.txt")
TOOLS = {
    "python": [],
    "judgesense": ["-m", "judgesense"],
    "pytest": [
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "judgesense.integrations.pytest_plugin",
    ],
}


def test_the_tutorial_shows_the_example_files_as_they_are() -> None:
    for name in ("replies.txt", "replies.wordings.txt"):
        assert (ROOT / "examples" / name).read_text("utf-8").strip() in STEPS
    assert (ROOT / "examples" / "replies.jsonl").read_text("utf-8").splitlines()[0] in STEPS


@pytest.mark.slow
def test_every_command_of_the_tutorial_prints_what_it_shows(tmp_path: Path) -> None:
    for name in EXAMPLES:
        shutil.copyfile(ROOT / "examples" / name, tmp_path / name)
    for name, text in FILE.findall(STEPS):
        (tmp_path / name).write_text(text, "utf-8")
    commands = COMMAND.findall(STEPS)
    assert len(commands) == 5
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    for command, shown in commands:
        tool, *arguments = shlex.split(command)
        done = subprocess.run(
            [sys.executable, *TOOLS[tool], *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said = done.stdout.replace(f"{tmp_path}/", "")
        if tool == "pytest":  # its last lines differ in time and folder
            said, shown = (
                text[: text.index("  Next:")].split("\n", 1)[1] for text in (said, shown)
            )
        assert said.strip() == shown.strip(), command
