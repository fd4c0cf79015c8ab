"""Judged text that tries to act, in every output: it is shown, and does nothing."""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml

import judgesense
from judgesense.files.tables import cell_text, csv_text, read_table

HOSTILE = (
    '=HYPERLINK("http://x.invalid","a")\x1b[2J\x1b]0;gone\x07\x9b31m\u202e<script>window.hacked=1'
    '</script><img src=x onerror="window.hacked=1">](javascript:hacked) {{7*7}} ${HOME} `id` $(id) '
    "!!python/object:os.system ../../x"
)
ACTING = ("\x1b", "\x07", "\x9b", "\u202e")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("inert")
    items = [
        {"item_id": f"=1+{n}{HOSTILE}", "text": f"{n} {HOSTILE}", "gold": ("FAIL", "PASS")[n % 2]}
        for n in range(12)
    ]
    (place / "w.txt").write_text("One: {text}\n---\nTwo: {text}\n---\nThree: {text}", "utf-8")

    def judge(texts):
        # An attack that names the answer wins.
        told = [text.count("PASS") > text.startswith("Good?") or "One" in text for text in texts]
        return [f"PASS {HOSTILE}" if each else "FAIL" for each in told]

    judgesense.check(
        "Good? PASS or FAIL.\n{text}",
        items,
        judge,
        wordings=place / "w.txt",
        attacks="all",
        out=place / "run",
        note=str,
    )
    return place / "run"


def printed(folder, *command):
    done = subprocess.run(
        [sys.executable, "-m", "judgesense", *command],
        cwd=folder,
        capture_output=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        check=False,
    )
    return (done.stdout + done.stderr).decode()


@pytest.mark.parametrize("form", ["--verbose", "--format=md"])
def test_what_is_printed_does_not_act_on_a_terminal(folder, form) -> None:
    text = printed(folder, "report", ".", form)
    assert len(text) > 200
    assert not [sign for sign in ACTING if sign in text]


def test_an_error_that_quotes_text_does_not_act_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(csv_text(["item_id", "gold"], [{"gold": HOSTILE}]), "utf-8")
    (tmp_path / "r.txt").write_text(f"Good? {{{HOSTILE[:40]}}}", "utf-8")
    given = ("check", "r.txt", "--data", "items.csv", "--judge", "always-yes")
    text = printed(tmp_path, *given)
    assert not [sign for sign in ACTING if sign in text]


def test_no_cell_is_a_formula_and_every_cell_is_read_back(folder, tmp_path: Path) -> None:
    for path in folder.rglob("*.csv"):
        for row in csv.reader(io.StringIO(path.read_text("utf-8"))):
            assert not [cell for cell in row if cell[:1] in tuple("=+@") and not _number(cell)]
    texts = [HOSTILE, "-1.5", "+cmd|'/C calc'!A0", "@SUM(A1)", "'=x", "- a list", "-", "", "a"]
    written = csv_text(["n", "text"], [{"n": -2, "text": text} for text in texts])
    (tmp_path / "t.csv").write_text(written, "utf-8", newline="")
    assert [row.values["text"] or "" for row in read_table(tmp_path / "t.csv")] == texts
    cells = [row[1] for row in csv.reader(io.StringIO(written, newline=""))][1:]
    assert [cell_text(cell) for cell in cells] == texts
    assert not [
        cell for cell in cells if cell[:1] in tuple("=+-@") and len(cell) > 1 and not _number(cell)
    ]


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_markdown_and_yaml_hold_text_alone(folder) -> None:
    assert not [sign for sign in ACTING if sign in (folder / "report.html").read_text("utf-8")]
    for path in folder.rglob("*.md"):
        text = path.read_text("utf-8")
        assert not [sign for sign in ACTING if sign in text]
        assert "<script>" not in text
        assert not re.search(r"(?<!\\)\]\(javascript", text)
    for path in folder.parent.rglob("*.yaml"):
        yaml.safe_load(path.read_text("utf-8"))
    assert not (folder.parent / "x").exists()


@pytest.mark.slow
def test_the_page_runs_nothing_in_a_browser(folder, browser) -> None:
    page = browser.new_page()
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto((folder / "report.html").as_uri())
    page.click("#turned summary")
    assert page.evaluate("window.hacked") is None
    assert "window.hacked=1" in page.inner_text("#turned")
    assert len(requests) == 1
    # An address comes from anybody.
    acts = quote("<img src=x onerror=window.hacked=1>")
    page.evaluate(f"location.hash = 'judge=&q={acts}&group={acts}&sort={acts}&item={acts}'")
    page.wait_for_function("document.querySelector('.facets').textContent.includes('<img')")
    page.evaluate("location.hash = 'judge='")
    page.wait_for_selector(".entry")
    page.keyboard.press("j")
    assert page.locator(".listed img").count() == 0
    assert page.evaluate("window.hacked") is None
    page.close()
