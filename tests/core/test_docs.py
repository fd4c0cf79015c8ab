"""The README and the docs say what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from judgesense.reporting.tables import BASELINE_NOTE, COLUMNS, LEGEND

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text("utf-8")) if "://" not in link]
    missing = [link for link in links if not (page.parent / link).exists()]
    assert missing == []


def test_the_readme_shows_the_example_files_as_they_are() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    for name in ("politeness.yaml", "politeness.jsonl"):
        assert (ROOT / "examples" / name).read_text("utf-8").strip() in readme


def test_the_readmes_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    own = next(block for block in blocks if "def my_judge" in block)
    (tmp_path / "my.yaml").write_bytes((ROOT / "examples/politeness.yaml").read_bytes())
    (tmp_path / "my.jsonl").write_bytes((ROOT / "examples/politeness.jsonl").read_bytes())
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(own, names)
    assert names["report"]["cells"]  # type: ignore[index]
    one_call = next(block for block in blocks if "judgesense.jss(" in block)
    exec(one_call[one_call.index("judgesense.jss(") :], names)


def test_every_report_on_a_page_has_todays_columns_and_legend() -> None:
    """Their figures come from models; what surrounds them is the program's."""
    shown = 0
    for page in PAGES:
        text = page.read_text("utf-8")
        for heading in re.findall(r"^trust +judge .*", text, re.MULTILINE):
            assert re.split(r" {2,}", heading.strip()) == list(COLUMNS.values()), page
            shown += 1
        for start, line in (("JSS: same verdict", LEGEND), ("Baselines: oracle", BASELINE_NOTE)):
            told = re.findall(f"^{start}.*", text, re.MULTILINE)
            assert set(told) <= {line}, page
    assert shown >= 4
