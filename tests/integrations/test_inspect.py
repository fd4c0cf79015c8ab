"""Inspect's own program with our scorer and task; the tests of its page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback, factual, section, serving, stable_file

from judgesense.errors import MissingExtraError

pytest.importorskip("inspect_ai")
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = section("Inspect")
TASK = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]

ANSWERS = {"France": "Paris.", "Spain": "Nice.", "Italy": "Lyon."}


def rule(text: str) -> str:
    """The evaluated model, and the judge of the improved judge."""
    if "Response:" in text:
        said = factual(text)
        return "YES" if said.startswith("Hard") else said
    return next((said for country, said in ANSWERS.items() if country in text), "YES")


@pytest.fixture(scope="module")
def inspect(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Runs ``inspect ...`` in a folder with the page's task; returns the log that it wrote."""
    home = tmp_path_factory.mktemp("inspect")
    # What installing JudgeSense adds: an editable install does not have new entry points.
    info = home / "entry" / "judgesense_entry-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: judgesense-entry\nVersion: 0\n")
    (info / "entry_points.txt").write_text(
        "[inspect_ai]\njudgesense = judgesense.integrations.inspect\n"
    )
    (home / "capitals.py").write_text(TASK)
    with serving(Loopback(rule)) as url:
        stable_file(home / "stable.yaml", f"{url}/v1")
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{home / 'entry'}",
            "LOOP_API_KEY": "none",
            "LOOP_BASE_URL": f"{url}/v1",
            "INSPECT_DISPLAY": "none",
        }
        program = Path(sys.executable).with_name("inspect")

        def run(*arguments: str) -> dict[str, Any]:
            place = home / f"logs-{len(list(home.iterdir()))}"
            into = "--output-file" if arguments[0] == "score" else "--log-dir"
            where = str(place / "scored.json") if arguments[0] == "score" else str(place)
            more = ["--log-format", "json"] if arguments[0] == "eval" else []
            done = subprocess.run(
                [str(program), *arguments, into, where, *more],
                cwd=home,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
            (path,) = place.iterdir()
            log = json.loads(path.read_text("utf-8"))
            assert log["status"] == "success", log.get("error")
            return {**log, "path": str(path)}

        yield run


def test_without_inspect_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai.scorer", None)
    monkeypatch.delitem(sys.modules, "judgesense.integrations.inspect", raising=False)
    with pytest.raises(MissingExtraError, match=r"judgesense\[inspect\]"):
        import judgesense.integrations.inspect  # noqa: F401


def test_the_pages_task_is_scored_by_the_file(inspect: Callable[..., Any]) -> None:
    log = inspect("eval", "capitals.py", "--model", "openai-api/loop/rule")
    values = {s["id"]: s["scores"]["stable"]["value"] for s in log["samples"]}
    assert values == {"France": "C", "Spain": "C", "Italy": "I"}

    # The log's answers again, by the scorer's name.
    again = inspect(
        "score",
        log["path"],
        "--scorer",
        "judgesense/stable",
        "-S",
        "judge=stable.yaml",
        "-S",
        "passing=NO",
        "--action",
        "overwrite",
    )
    values = {s["id"]: s["scores"]["stable"] for s in again["samples"]}
    assert {name: score["value"] for name, score in values.items()} == {
        "France": "I",
        "Spain": "I",
        "Italy": "C",
    }
    assert values["Spain"]["metadata"]["margin"] == pytest.approx(1 / 3)
    assert values["Spain"]["metadata"]["ask_person"] is True
