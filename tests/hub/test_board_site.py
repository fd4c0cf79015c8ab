"""The leaderboard's pages: what is written, what is left out, and how they work in a browser.

Needs Debian's Chromium (``apt-get install chromium``); screenshots are left in tests/artifacts.
"""

from __future__ import annotations

import csv
import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml
from rule_run import make_run, make_runs

from hub_scripts.leaderboard.runs import EMBEDDED, find_runs, report_of
from hub_scripts.leaderboard.site import space_publication, write_pages, write_site
from judgesense.errors import JudgeSenseError
from judgesense.published import figures

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "tests" / "artifacts" / "leaderboard"
HOSTILE = '=1+1"><script>window.hacked=1</script><img src=x onerror="window.hacked=1">\u202e'


class Links(HTMLParser):
    """Where a page links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src"):
                kept = self.links if tag == "a" else self.loads
                kept.append(value or "")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three judges by rule, one of a hostile name, and runs that must not be shown."""
    folder = tmp_path_factory.mktemp("runs")
    make_runs(folder, ("steady-70b", "wavering-1.5b", "always-yes-360m"))
    make_run(folder / "hostile", HOSTILE)
    older = make_run(folder / "older", "older@1")
    (older / "report.json").write_text(json.dumps({"schema": 1, "cells": []}), "utf-8")
    foreign = make_run(folder / "foreign", "foreign@1") / "report.json"
    report = json.loads(foreign.read_text("utf-8"))
    report["cells"][0]["jss"] = 0.99
    foreign.write_text(json.dumps(report), "utf-8")
    (folder / "bare").mkdir()
    (folder / "bare" / "report.json").write_text(json.dumps(report), "utf-8")
    (folder / "notes").mkdir()
    return folder


@pytest.fixture(scope="module")
def site(runs, tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    notes: list[str] = []
    board = write_site(find_runs(str(runs)), out, notes.append)
    assert board == json.loads((out / "board.json").read_text("utf-8"))
    assert [note.split(":")[0] for note in notes] == ["left out bare", "left out foreign"]
    return out


def test_runs_whose_figures_do_not_follow_are_left_out_with_the_reason(site):
    board = json.loads((site / "board.json").read_text("utf-8"))
    assert board["runs"] == 5
    reasons = {each["run"]: each["why"] for each in board["left_out"]}
    assert "cells[0].jss is 0.99, but recomputed it is 0.8333" in reasons["foreign"]
    assert "no decision log" in reasons["bare"]
    assert "2 runs are left out" in (site / "index.html").read_text("utf-8")
    assert {row["run"] for row in board["rows"]} & {"foreign", "bare"} == set()
    assert "older@1" in {row["judge"] for row in board["rows"]}


def test_every_link_within_the_site_leads_to_a_file_and_nothing_is_loaded_from_elsewhere(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) == 2 + 5 + 5
    for page in pages:
        found = Links(page.read_text("utf-8"))
        for link in (*found.links, *found.loads):
            address = urlsplit(link)
            if address.path and not address.scheme:
                assert (page.parent / urllib.request.unquote(address.path)).is_file(), link
        assert not [link for link in found.loads if link.startswith(("http", "//"))]


def test_a_hostile_name_is_text_on_every_page(site):
    (page,) = (path for path in site.glob("judges/*.html") if "window.hacked" in path.read_text())
    for path in (page, site / "index.html", site / "reports" / "hostile.html"):
        text = path.read_text("utf-8")
        assert "<script>window" not in text
        assert "<img" not in text


def test_a_judges_page_has_its_figures_checks_remedies_signatures_and_sources(tmp_path):
    report = report_of(EMBEDDED / "qwen2.5-coder-1.5b")
    write_pages(
        {"qwen": report},
        tmp_path,
        "here",
        address="https://hub.example/tree/abc",
        verified=["qwen"],
    )
    (page,) = tmp_path.glob("judges/*.html")
    text = page.read_text("utf-8")
    assert "JSS 0.868 [0.680, 0.969]" in text
    assert "it makes the same choice in both orders on 13% of items" in text
    assert "is right on 87% of items instead of 56%" in text
    assert report.assessments[0].mapped.signature in text
    links = Links(text).links
    assert {
        "https://hub.example/tree/abc/qwen",
        "../reports/qwen.html",
        "https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct",
    } <= set(links)


def test_withdrawn_figures_have_a_page_of_their_own(site):
    text = (site / "published.html").read_text("utf-8")
    assert "withdrew it in August 2026" in text
    assert text.count("<tr><td") == len(figures())


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The board of the package: its runs, published logs and published figures."""
    out = tmp_path_factory.mktemp("whole")
    return out, write_site(find_runs(None), out)


def test_the_package_shows_all_judges_of_whom_something_is_known(whole):
    out, board = whole
    judges = {row["page"]: row for row in board["rows"]}
    assert len(judges) == len(list(out.glob("judges/*.html"))) == 50
    kinds = Counter(row["kind"] for row in judges.values())
    assert sorted(kinds.values()) == [2, 23, 25]
    assert all(row["source"] in board["sources"] for row in judges.values() if "log" in row["kind"])
    best = {(row["data"], row["judge"]) for row in board["rows"] if row["rank"] == 1}
    assert ("LLMBar", "GPT-4") in best
    assert not any(row["rank"] for row in board["rows"] if row["kind"] == "published figure")


def test_an_empty_board_says_how_to_add_a_run(tmp_path):
    board = write_pages({}, tmp_path, "org/results at 0a1b2c3d")
    assert (board["rows"], board["first_task"], board["day"]) == ([], None, None)
    text = (tmp_path / "index.html").read_text("utf-8")
    assert "judgesense publish results runs/first" in text


def test_the_space_is_static_and_loses_pages_that_are_gone(site):
    publication = space_publication("org/board", site)
    front = yaml.safe_load((site / "README.md").read_text("utf-8").split("---")[1])
    assert (front["sdk"], front["app_file"]) == ("static", "index.html")
    assert (publication.sdk, publication.tag) == ("static", None)
    assert {"index.html", "board.json", "board.js", "board.css", "README.md"} <= set(
        publication.files
    )
    left = ("judges/gone-1.html", "reports/gone.html", "app.py", "judgesense-0.2.0-py3.whl")
    assert all(map(publication.owned, left))
    assert not publication.owned("notes.md")


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        ("no such folder at all", "no folder"),
        ("org/name/more", "no folder"),
        ("n" * 5000, "no folder"),
        (".", "holds no run"),
    ],
)
def test_results_that_cannot_be_shown_are_named(results, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(JudgeSenseError, match=reason):
        find_runs(results)


@pytest.mark.slow
def test_the_command_serves_the_pages_and_nothing_else_and_stops(runs, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "judgesense", "leaderboard", "--no-browser"]
    command += ["--port", str(port), "--results", str(runs / "older")]
    # A shell that runs the tests in the background has them ignore an interrupt.
    server = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert server.stdout.readline().startswith(f"leaderboard at http://127.0.0.1:{port}")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20) as page:
            assert "older" in page.read().decode()
        for path in ("judges/", "%2e%2e/%2e%2e/etc/passwd", "nothing"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=20)
        again = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert again.returncode == 2
        assert "choose another --port" in again.stderr
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0
    finally:
        server.kill()
        server.communicate()


@pytest.fixture
def visit(browser, site):
    """Open a page as a file; errors, requests to elsewhere and others' scripts fail."""
    wrong, contexts = [], []

    def opened(path="index.html", *, width=1366, scheme="light", folder=site, **options):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, **options
        )
        contexts.append(context)
        context.set_default_timeout(20_000)
        page = context.new_page()
        page.on("console", lambda m: m.type == "error" and logged(m.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda r: r.url.startswith("http") and wrong.append(r.url))
        page.goto(f"{(folder / path.partition('#')[0]).as_uri()}#{path.partition('#')[2]}")
        return page

    def logged(text):
        # axe reads the style sheet once more, which a browser refuses it for files.
        if "XMLHttpRequest at 'file:" not in text and not text.endswith("net::ERR_FAILED"):
            wrong.append(text)

    yield opened
    for context in contexts:
        for page in context.pages:
            assert page.evaluate("window.hacked") is None
        context.close()
    assert wrong == []


def state(page):
    return dict(parse_qsl(urlsplit(page.evaluate("location.href")).fragment))


def judges(page):
    return [
        name.inner_text()
        for name in page.locator("tr[data-n] th.who a bdi").all()
        if name.is_visible()
    ]


def shares(page, column):
    cells = page.locator(f"tr[data-n] td:nth-child({column}) .share > b").all()
    return [float(c.inner_text().strip("<>%")) for c in cells if c.is_visible()]


@pytest.mark.slow
def test_the_table_is_sorted_filtered_and_shared_by_its_address(visit):
    page = visit("index.html#task=preference")
    assert state(page) == {"task": "preference"}
    every = judges(page)
    assert len(every) == 3
    heading = page.get_by_role("button", name="Right, by")
    heading.focus()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    page.wait_for_selector('th[aria-sort="descending"]:has-text("Right")')
    assert shares(page, 3) == sorted(shares(page, 3), reverse=True)
    page.keyboard.press("Enter")
    page.wait_for_selector('th[aria-sort="ascending"]:has-text("Right")')
    assert shares(page, 3) == sorted(shares(page, 3))
    assert state(page) == {"task": "preference", "sort": "kappa_gold.up"}
    page.get_by_label("Find a judge").press_sequentially("STEADY")
    page.wait_for_function("document.querySelector('.count').textContent === '1 row'")
    assert judges(page) == ["steady-70b"]
    again = visit("index.html" + page.evaluate("location.hash"))
    assert judges(again) == ["steady-70b"]
    assert again.get_by_label("Find a judge").input_value() == "STEADY"
    page.get_by_label("Find a judge").fill("")
    page.get_by_role("radio", name="coherence").check()
    page.wait_for_function("document.querySelector('h2').textContent.includes('coherence')")
    page.get_by_label("Trust").select_option("avoid")
    page.wait_for_function("location.hash.includes('trust=avoid')")
    assert all(
        "avoid" in text
        for text in page.locator("tr[data-n]:visible .verdict").all_inner_texts()
        if text
    )
    page.go_back()
    page.wait_for_function("!location.hash.includes('trust')")
    assert sorted(judges(page)) == sorted(every)


@pytest.mark.slow
def test_two_judges_are_compared_by_two_clicks(visit):
    page = visit("index.html#task=relevance")
    for name in ("steady-70b", "wavering-1.5b"):
        page.get_by_label(f"Compare {name}").locator("visible=true").check()
    panel = page.get_by_role("region", name="Comparison")
    panel.get_by_role("table").wait_for()
    rows = panel.locator("tbody tr").all_inner_texts()
    assert len(rows) == 8
    assert sum("relevance, generate\tsteady-70b" in row for row in rows) == 1
    assert any("steady-70b is steadier" in row for row in rows)
    assert panel.locator("pre").inner_text() == "judgesense compare steady-70b wavering-1.5b"
    assert page.evaluate("location.href").count("compare=") == 2
    page.reload()
    panel.get_by_role("table").wait_for()
    panel.get_by_role("button", name="Clear").click()
    panel.wait_for(state="hidden")
    assert state(page) == {"task": "relevance"}


@pytest.mark.slow
def test_the_csv_has_every_column_of_the_rows_that_are_shown_and_no_formula(visit, site, tmp_path):
    page = visit("index.html#task=factuality")
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    assert download.value.suggested_filename == "judgesense-factuality.csv"
    download.value.save_as(tmp_path / "board.csv")
    with (tmp_path / "board.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    board = json.loads((site / "board.json").read_text("utf-8"))["rows"]
    wanted = [row for row in board if row["task"] == "factuality"]
    names = [row["judge"].replace(HOSTILE, f"'{HOSTILE}") for row in wanted]
    assert [row["judge"] for row in rows] == names
    assert list(rows[0]) == list(wanted[0])
    assert [float(row["jss"]) for row in rows] == [row["jss"] for row in wanted]


@pytest.mark.slow
def test_the_chart_shows_each_judge_by_what_it_adds_to_a_constant_answer(visit, site):
    page = visit("index.html#task=preference")
    board = json.loads((site / "board.json").read_text("utf-8"))["rows"]
    rows = [r for r in board if r["task"] == "preference" and r["beats_constant"] is not None]
    titles = page.locator(".chart title").all_text_contents()
    points = page.evaluate("""[...document.querySelectorAll('.chart circle')].map(
        point => ['cx', 'cy'].map(name => parseFloat(point.getAttribute(name))))""")
    by_name = {title.split(",")[0]: at for title, at in zip(titles, points, strict=True)}
    across = sorted(rows, key=lambda row: row["beats_constant"])
    down = sorted(rows, key=lambda row: -row["jss"])
    assert [by_name[row["judge"]][0] for row in across] == sorted(x for x, _ in by_name.values())
    assert [by_name[row["judge"]][1] for row in down] == sorted(y for _, y in by_name.values())


@pytest.mark.slow
def test_without_javascript_the_whole_table_is_there(visit, site):
    page = visit(java_script_enabled=False)
    board = json.loads((site / "board.json").read_text("utf-8"))["rows"]
    assert page.locator("tr[data-n]").count() == len(board)
    assert page.locator("tr[data-n]:visible").count() == len(board)
    assert page.locator("form, .pick, button.csv").locator("visible=true").count() == 0


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1366, "light"), (390, "dark"), (768, "light")])
def test_no_page_is_cut_and_axe_finds_nothing(visit, violations, site, whole, width, scheme):
    (judge,) = site.glob("judges/steady-70b-*.html")
    compare = re.search(r"judges/wavering[^\"]+", (site / "index.html").read_text("utf-8"))[0]
    found = {}
    for name, path in {
        "board": f"index.html#task=preference&compare=judges/{judge.name}&compare={compare}",
        "judge": f"judges/{judge.name}",
        "published": "published.html",
        "whole": "index.html#task=preference",
        "quoted": next(whole[0].glob("judges/kimi-k3-*")).relative_to(whole[0]).as_posix(),
    }.items():
        folder = whole[0] if name in ("whole", "quoted") else site
        page = visit(path, width=width, scheme=scheme, folder=folder, bypass_csp=True)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        PICTURES.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=PICTURES / f"{name}-{width}.png", full_page=True)
        found[name] = violations(page)
    assert not any(found.values()), found


@pytest.mark.slow
def test_two_hundred_judges_are_drawn_and_sorted(visit, tmp_path):
    report = report_of(EMBEDDED / "smollm2-135m")
    reports = {}
    for number in range(200):
        judges_of = []
        for entry in report.assessments:
            steady = replace(
                entry.card.checks["steady"], estimate=number / 200, ci_low=0.0, ci_high=1.0
            )
            card = replace(entry.card, checks={**entry.card.checks, "steady": steady})
            name = entry.judge.replace("smollm2-135m@", f"judge-{number:03}@")
            judges_of.append(replace(entry, judge=name, card=card, examples=()))
        findings = [
            replace(one, judge=one.judge.replace("smollm2-135m@", f"judge-{number:03}@"))
            for one in report.findings
        ]
        reports[f"run-{number:03}"] = replace(
            report, measured=tuple(judges_of), findings=tuple(findings), notes=()
        )
    write_pages(reports, tmp_path, "here")
    page = visit(folder=tmp_path)
    page.wait_for_function("document.querySelector('.count').textContent === '200 rows'")
    page.get_by_role("button", name="Same verdict").click()
    page.wait_for_selector('th[aria-sort="descending"]')
    assert judges(page)[:2] == ["judge-199", "judge-198"]
