"""The README and the pages: short, without broken links, and what they show is what runs."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import click
import pytest
import typer.main
import yaml

from judgesense.cli import app
from judgesense.reporting.tables import BASELINE_NOTE, COLUMNS, LEGEND

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = [README, *sorted(DOCS.rglob("*.md"))]
# The others only name modules: mkdocstrings writes them from docstrings.
WRITTEN = [page for page in PAGES if "\n:::" not in page.read_text("utf-8")]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


# Commands with their output that need neither a model nor files of the reader's.
SHOWN = re.compile(r"```sh\n((?:cat > .*?END\n)(?:judgesense .*?))\n```\n\n```text\n(.*?)```", re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text("utf-8")) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_words_for_the_search_are_of_pages_that_are_there() -> None:
    words = yaml.safe_load((DOCS / "search.yml").read_text("utf-8"))
    assert [page for page in words if not (DOCS / page).is_file()] == []
    assert all(isinstance(each, str) and each for each in words.values())


def _commands(page: Path) -> list[str]:
    """Every judgesense command in a page's shell blocks, one line each."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    lines = [
        line
        for block in re.findall(r"```(?:ba)?sh\n(.*?)```", text, re.S)
        for line in block.splitlines()
    ]
    return [
        line[line.index("judgesense") :]
        for line in lines
        if re.match(r"(\w+=\S+ )*judgesense ", line)
    ]


def _parse(command: str) -> None:
    words = shlex.split(command.split("  #")[0].replace("|", "/").replace("[", "").replace("]", ""))
    group: Any = typer.main.get_command(app)
    name, *arguments = words[1:]
    inner = group.commands[name] if not name.startswith("-") else group
    while isinstance(inner, click.Group) and arguments and arguments[0] in inner.commands:
        inner = inner.commands[arguments.pop(0)]
    context = click.Context(inner, info_name=name)
    inner.make_parser(context).parse_args([word for word in arguments if word not in ("...", "…")])


@pytest.mark.slow
@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_is_one_that_exists(page: Path) -> None:
    for command in _commands(page):
        try:
            _parse(command)
        except (click.ClickException, KeyError, ValueError) as error:
            pytest.fail(f"{command}: {error!r}")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["import", "matching"])
def test_a_command_prints_what_the_page_shows(name: str, tmp_path: Path) -> None:
    ((script, shown),) = SHOWN.findall((DOCS / f"{name}.md").read_text("utf-8"))
    script = f'judgesense() {{ "{sys.executable}" -m judgesense "$@"; }}\n{script}'
    done = subprocess.run(
        ["bash", "-ec", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == shown.strip()


def test_the_readme_shows_the_demo_as_it_is(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "demo")])
    shown = re.findall(r"```text\n(.*?)```", README.read_text("utf-8"), re.S)[0]
    assert set(shown.strip().splitlines()) <= set(done.output.splitlines())


@pytest.mark.parametrize("name", ["metrics/jss", "matching"])
def test_python_prints_what_stands_under_it(name: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / f"{name}.md").read_text("utf-8"), re.S)
    told = [line[2:] for block in blocks for line in block.splitlines() if line[:2] == "# "]
    printed = io.StringIO()
    names: dict[str, object] = {}
    with redirect_stdout(printed):
        for block in blocks:
            exec(block, names)
    assert told
    assert printed.getvalue().splitlines() == told


def test_answers_are_read_as_the_page_says() -> None:
    (block,) = re.findall(
        r"```python\n(.*?)```", (DOCS / "judges/parsing.md").read_text("utf-8"), re.S
    )
    names: dict[str, Any] = {}
    for line in block.strip().splitlines():
        code, _, told = line.partition("  # ")
        if told:
            assert eval(code, names) == told.strip("'")
        else:
            exec(code, names)


def test_every_report_on_a_page_has_todays_columns_and_legend() -> None:
    """Their figures come from models; what surrounds them is the program's."""
    shown = 0
    for page in PAGES:
        text = page.read_text("utf-8")
        for heading in re.findall(r"^trust +judge .*", text, re.MULTILINE):
            # Columns that say nothing are left out.
            names = re.split(r" {2,}", heading.strip())
            assert names == [name for name in COLUMNS.values() if name in names], page
            shown += 1
        for start, line in (("JSS: share of", LEGEND), ("The baseline oracle", BASELINE_NOTE)):
            told = re.findall(f"^{start}.*", text, re.MULTILINE)
            assert all(part in line for each in told for part in each.split(". ")), page
    assert shown >= 3
