"""What a terminal shows, at any width from 60 columns: whole words, tables and commands."""

from __future__ import annotations

import shlex
from contextlib import chdir
from pathlib import Path

import pytest
from rich.cells import cell_len

from judgesense.pipeline.demo import demo
from judgesense.reporting.layout import fit, terminal_width
from judgesense.reporting.terminal import render_terminal
from judgesense.text import aligned

NAMES = ["qwen2.5-coder-1.5b", "判定者", "a judge whose name is a sentence"]
TABLE = aligned(
    [("judge", "verdict", *[f"figure {n}" for n in range(9)])]
    + [(name, f"it's {at}", *[f"{at}{n}.25" for n in range(9)]) for at, name in enumerate(NAMES, 1)]
)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    with chdir(tmp_path_factory.mktemp("demo")):
        return render_terminal(demo(Path("demo")).contents)


def unbroken(text):
    return [line.rstrip("\\").split() for line in text.splitlines()]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_every_line_fits_and_no_word_is_lost_or_broken(report, width) -> None:
    prose = [line for line in report.splitlines() if "  " not in line.strip()]
    words = [word for line in prose for word in line.split()]
    shown = fit("\n".join(prose), width)
    assert max(map(cell_len, shown.splitlines())) <= width
    assert [word for line in unbroken(shown) for word in line] == words
    assert max(map(cell_len, fit(report, width).splitlines())) <= width


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_wide_table_continues_below_with_every_figure_beside_its_name(width) -> None:
    lines = fit("\n".join(TABLE), width).splitlines()
    assert max(map(cell_len, lines)) <= width
    blocks = "\n".join(lines).split("\n\n")
    figures = [f"{at}{n}.25" for at in (1, 2, 3) for n in range(9)]
    assert sorted(word for word in " ".join(lines).split() if word in figures) == sorted(figures)
    for block in blocks:
        rows = block.splitlines()[2:]
        for at, name in enumerate(NAMES, 1):
            (row,) = [row for row in rows if row.startswith(name[:7])]
            assert {word[0] for word in row.split() if word in figures} == {str(at)}


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_command_is_pasted_as_it_was_meant(width) -> None:
    command = (
        "judgesense improve --log 'runs/my demo' --judge qwen2.5-coder-1.5b@921191f1 --set "
        "task=relevance --set scoring=options --out 'a file.yaml' --columns item=question,text=body"
    )
    shown = fit(f"  {command}", width)
    assert max(map(len, shown.splitlines())) <= width
    assert shlex.split(shown.replace("\\\n", " ")) == shlex.split(command)


def test_a_pipe_gets_whole_lines(monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    assert terminal_width() is None
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert terminal_width() == 72
