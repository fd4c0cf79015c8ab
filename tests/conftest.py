"""What all tests share: no Hub, the shared folder where it is there, the real models."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

# Before any library reads them: the tests never ask a Hub.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no failure, and a check that passes must pass again.
settings.register_profile(
    "steady",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")

ROOT = Path(__file__).resolve().parent.parent


LONGEST = (
    "judges/test_ray_runner.py",
    "judges/test_vllm_judge.py",
    "hub/test_publish_hub.py",
    "integrations/test_serve_tools.py",
    "docs/test_notebooks.py",
    "studies/test_paraphrase_robustness.py",
    "judges/test_api_real_server.py",
    "core/test_hostile_input.py",
    "release/test_wheel.py",
    "metrics/test_metric_install.py",
    "hub/test_board_site.py",
    "studies/test_judge_sensitivity.py",
    "studies/test_answer_matching.py",
    "studies/test_run.py",
    "integrations/test_github.py",
    "integrations/test_pytest_plugin.py",
    "importers/test_import_tools.py",
    "studies/test_own_study.py",
    "studies/test_prompt_ranking.py",
    "dataset/test_folder.py",
    "dataset/test_paraphrase.py",
)
"""Files under tests/ that take long, the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the long files first: one begun at the end keeps a worker busy, and the other idle."""
    ranks = {ROOT / "tests" / name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with public mirrors, published tables and foreign logs, beside a checkout."""
    folder = Path(os.environ.get("JUDGESENSE_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"needs the folder {folder} (set JUDGESENSE_SHARED to where it lies)")
    return folder


@pytest.fixture(scope="session")
def mirror(shared: Path) -> Path:
    """Public datasets in the schema of the Hub datasets of those names."""
    return shared / "hub_mirror"


@pytest.fixture(scope="session")
def published(shared: Path) -> Path:
    """The earlier benchmark's pairs and result tables."""
    return shared / "published"


@pytest.fixture
def command_line(monkeypatch):
    """``judgesense ...`` in this process, which spares its start: exit code and output."""
    from judgesense.cli import main

    def call(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        typed = ["judgesense", *map(str, arguments)]
        out, err = io.StringIO(), io.StringIO()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", typed)
            for name, value in variables.items():
                patch.setenv(name, value)
            with (
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
                pytest.raises(SystemExit) as ended,
            ):
                main()
        return subprocess.CompletedProcess(typed, ended.value.code, out.getvalue(), err.getvalue())

    return call


CHROMIUM = Path("/usr/bin/chromium")
AXE = ROOT / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium; ``make browser`` installs it."""
    playwright = pytest.importorskip("playwright.sync_api")
    if not CHROMIUM.exists():
        pytest.skip(f"needs {CHROMIUM}: make browser")
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(
            executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"]
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def violations():
    """What axe-core finds on a page: the rule and the first elements; the page must bypass CSP."""
    if not AXE.is_file():
        pytest.skip(f"needs {AXE.relative_to(ROOT)}: make browser")
    script = AXE.read_text("utf-8")

    def found(page):
        page.evaluate(script)
        result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            (each["id"], [node["html"][:150] for node in each["nodes"][:3]])
            for each in result["violations"]
        ]

    return found
