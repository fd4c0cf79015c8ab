"""The leaderboard in a browser: every page, by mouse and keyboard, in the dark and on a phone.

Needs Debian's Chromium (``apt-get install chromium``); screenshots are left in tests/artifacts.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from leaderboard_runs import make_runs
from rule_run import make_run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "tests" / "artifacts" / "leaderboard"
HOSTILE = (
    '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\u202e${window.hacked=1}'
)


WATCH = """
import os, sys

def watch(event, arguments):
    if event in ("socket.getaddrinfo", "socket.connect", "socket.sendto"):
        place = arguments[0] if event == "socket.getaddrinfo" else arguments[1]
        host = place[0] if isinstance(place, tuple) else place
        with open(os.environ["ASKED"], "a") as asked:
            print(event, host, file=asked)

sys.addaudithook(watch)
"""
"""A ``sitecustomize`` module: notes every host that the server looks up or connects to."""
HERE = {"127.0.0.1", "localhost", "::1", "0.0.0.0", "None"}


def serve(results: Path, *options: str, watched: Path) -> tuple[subprocess.Popen, str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "judgesense", "leaderboard", "--no-browser"]
    command += ["--port", str(port), "--results", str(results), *options]
    (watched / "sitecustomize.py").write_text(WATCH, "utf-8")
    asked = {"ASKED": str(watched / "asked"), "PYTHONPATH": f"{watched}{os.pathsep}{ROOT}"}
    env = {**os.environ, **asked, "no_proxy": "127.0.0.1"}
    server = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/"
    for _ in range(240):
        assert server.poll() is None, "the leaderboard did not start"
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            time.sleep(0.5)
        else:
            return server, url
    server.kill()
    raise AssertionError("the leaderboard does not answer")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Three judges by rule, and one whose name and texts attack the page."""
    folder = make_runs(
        tmp_path_factory.mktemp("results"), ("steady-70b", "wavering-1.5b", "always-yes-360m")
    )
    report = json.loads((folder / "wavering-1.5b" / "report.json").read_text("utf-8"))
    text = json.dumps(report).replace('"wavering-1.5b@callable"', json.dumps(HOSTILE))
    made = json.loads(text)
    for example in made["examples"]:
        for side in "ab":
            example[side].update(text=HOSTILE * 40, answer=HOSTILE)
    (folder / "hostile").mkdir()
    (folder / "hostile" / "report.json").write_text(json.dumps(made), "utf-8")
    (folder / "broken").mkdir()
    (folder / "broken" / "report.json").write_text('{"schema": 1, "cells": [NaN]}', "utf-8")
    return folder


@pytest.fixture(scope="module")
def site(results, tmp_path_factory):
    watched = tmp_path_factory.mktemp("watched")
    server, url = serve(results, "--accept", watched=watched)
    yield url
    assert server.poll() is None, "the leaderboard fell"
    server.terminate()
    server.wait(20)
    asked = [line.split(" ", 1) for line in (watched / "asked").read_text("utf-8").splitlines()]
    # Gradio asks its own server once; runs in a folder need no network at all.
    assert asked
    assert {host for _, host in asked} <= HERE


@pytest.fixture
def visit(browser, site):
    """Open a page; errors, requests to elsewhere and scripts that others smuggled in fail."""
    wrong, contexts = [], []

    def opened(path="", *, width=1280, scheme="light", wait=".site"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.on("console", lambda m: m.type == "error" and wrong.append(m.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda r: foreign(r.url) and wrong.append(f"asks {r.url}"))
        page.goto(site + path)
        page.wait_for_selector(wait)
        return page

    def foreign(url):
        return not url.startswith((site, "data:", "blob:"))

    yield opened
    for context in contexts:
        for page in context.pages:
            assert page.evaluate("window.hacked") is None
        context.close()
    assert wrong == []


def picture(page, name):
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}.png", full_page=True)


def judges(page):
    return page.locator("#table tr[data-row]:not(.published) th.who a").all_inner_texts()


def settled(page, choose, changed):
    """Do something and wait until the page's expression is true."""
    choose()
    page.wait_for_function(changed)


def test_the_table_is_sorted_by_its_headings_with_the_keyboard(visit):
    page = visit(wait="#table .board")
    start = judges(page)
    button = page.get_by_role("button", name="Accuracy")
    button.focus()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.locator('th[aria-sort="descending"]').inner_text().startswith("Accuracy")
    assert accuracies(page) == sorted(accuracies(page), reverse=True)
    page.keyboard.press("Enter")
    assert accuracies(page) == sorted(accuracies(page))
    assert page.evaluate("document.activeElement.innerText").startswith("Accuracy")
    # Another task keeps the order that was asked for.
    assert page.url.endswith("?sort=accuracy.up")
    settled(
        page,
        lambda: pick(page, "preference"),
        "document.querySelector('#table caption').innerText.includes('preference')",
    )
    page.wait_for_selector('th[aria-sort="ascending"]')
    assert accuracies(page) == sorted(accuracies(page))
    assert len(start) == 4
    picture(page, "table-sorted")


def accuracies(page):
    cells = page.locator("#table tr[data-row]:not(.published) td:nth-child(5)")
    return [float(text.split("%")[0]) for text in cells.all_inner_texts()]


def pick(page, name):
    page.locator(".filters label", has_text=name).first.click()


def test_filters_leave_the_judges_that_fit(visit):
    page = visit(wait="#table .board")
    box = page.get_by_label("Find a judge")
    settled(
        page,
        lambda: box.fill("steady"),
        "document.querySelectorAll('#table tr[data-row]').length === 1",
    )
    assert judges(page) == ["steady-70b"]
    settled(
        page,
        lambda: box.fill("no such judge"),
        "document.querySelector('#table').innerText.includes('No judge matches')",
    )
    settled(
        page,
        lambda: box.fill(""),
        "document.querySelectorAll('#table tr[data-row]').length > 1",
    )
    page.get_by_role("button", name="Advanced").click()
    settled(
        page,
        lambda: page.get_by_label("Published figures").check(),
        "document.querySelectorAll('#table tr.published').length === 13",
    )
    settled(
        page,
        lambda: page.get_by_label("Published figures").uncheck(),
        "document.querySelectorAll('#table tr.published').length === 0",
    )
    settled(
        page,
        lambda: pick(page, "raw"),
        "document.querySelector('#table caption').innerText.includes('raw')",
    )
    page.get_by_role("combobox", name="Parameters").click()
    settled(
        page,
        lambda: page.get_by_role("option", name="10B to 100B").click(),
        "document.querySelectorAll('#table tr[data-row]').length === 1",
    )
    assert judges(page) == ["steady-70b"]
    assert "labels=raw&parameters=10B" in page.url
    page.reload()
    page.wait_for_selector("#table caption:has-text('raw')")
    assert judges(page) == ["steady-70b"]
    picture(page, "table-filtered")


def test_a_link_shows_what_its_sender_saw_and_back_goes_back(visit):
    page = visit("?task=preference&find=e", wait="#table caption:has-text('preference')")
    # The table of a link is there before its filters are.
    page.wait_for_selector("label.selected:has-text('preference')")
    page.get_by_role("button", name="Accuracy").click()
    page.get_by_text("Columns").click()
    page.get_by_role("checkbox", name="κ").check()
    pick(page, "relevance")
    page.wait_for_selector("#table caption:has-text('relevance')", state="attached")
    link = page.url
    assert all(part in link for part in ("find=e", "sort=accuracy.down", "columns=kappa"))
    seen = judges(page)
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("#table caption:has-text('relevance')", state="attached")
    page.wait_for_selector("label.selected:has-text('relevance')")
    assert judges(page) == seen
    assert page.locator('th[aria-sort="descending"]').inner_text().startswith("Accuracy")
    assert page.locator("#table th.c-kappa").is_visible()
    assert not page.locator("#table th.c-noise").is_visible()
    assert page.get_by_label("Find a judge").input_value() == "e"
    pick(page, "coherence")
    page.wait_for_selector("#table caption:has-text('coherence')", state="attached")
    page.go_back()
    page.wait_for_selector("#table caption:has-text('relevance')", state="attached")
    assert page.url == link


def test_two_judges_are_picked_in_the_table_and_compared_by_the_keyboard(visit):
    page = visit(wait="#table .board")
    for name in ("steady-70b", "wavering-1.5b"):
        page.get_by_role("checkbox", name=f"Compare {name}").first.focus()
        page.keyboard.press("Space")
    bar = page.get_by_role("region", name="Compare")
    assert bar.inner_text().startswith("steady-70b and wavering-1.5b")
    assert page.url.count("compare=") == 2
    bar.get_by_role("link").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#comparison table.differences")
    assert "is steadier" in page.locator("#comparison").inner_text()
    page.go_back()
    page.wait_for_selector("#table .comparing:not([hidden])")
    page.get_by_role("button", name="Clear").click()
    assert page.url.count("compare=") == 0


def test_the_table_is_downloaded_and_the_citation_copied(visit):
    page = visit("?task=factuality", wait="#table caption:has-text('factuality')")
    with page.expect_download() as got:
        page.get_by_role("link", name="CSV").click()
    lines = Path(got.value.path()).read_text("utf-8").splitlines()
    assert lines[0].startswith("task,data,pairs,scoring")
    assert all(line.startswith("factuality,") for line in lines[1:])
    page.get_by_text("Cite", exact=True).click()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy").click()
    page.wait_for_selector("button:has-text('Copied')")
    assert "@misc{judgesense-leaderboard," in page.evaluate("navigator.clipboard.readText()")


def test_a_shared_link_has_a_title_and_a_picture(site):
    with urllib.request.urlopen(f"{site}judge?judge=%3Cb%3E&run=x", timeout=60) as answer:
        page = answer.read().decode()
    assert page.count("<title>") == page.count('property="og:title"') == 1
    assert '<meta property="og:title" content="&lt;b&gt; · JudgeSense leaderboard">' in page
    picture_url = re.search(r'property="og:image" content="([^"]+)"', page)[1]
    with urllib.request.urlopen(picture_url, timeout=60) as answer:
        assert answer.read(8) == b"\x89PNG\r\n\x1a\n"


def test_what_is_degenerate_or_broken_is_shown_and_not_ranked(visit):
    page = visit(wait="#table .board")
    row = page.locator("#table tr", has_text="always-yes-360m")
    assert "says nothing about rewording" in row.inner_text()
    assert row.locator("td.rank").inner_text().strip() == "–"
    page.get_by_text("1 run is left out").click()
    assert "report.json contains NaN" in page.locator("#table").inner_text()
    picture(page, "table")


def test_a_judges_page_is_reached_from_the_table_and_has_an_address(visit, site):
    page = visit(wait="#table .board")
    page.get_by_role("link", name="steady-70b").click()
    page.wait_for_selector("#about .card")
    assert page.locator("#about h1").inner_text() == "steady-70b"
    assert page.locator("#about table.heat").count() == 4
    assert page.locator("#about article.flip").count() > 0
    assert page.locator("#about pre.cite").inner_text().count("JSS|task:") == 4
    picture(page, "judge")
    page.get_by_role("combobox", name="Judge").click()
    page.get_by_role("option", name="gpt-4o", exact=True).click()
    page.wait_for_selector("#about h1:has-text('gpt-4o')")
    assert "judge=gpt-4o" in page.url
    assert "not measured here" in page.locator("#about").inner_text()
    page.reload()
    page.wait_for_selector("#about h1:has-text('gpt-4o')")


def test_a_hostile_judges_page_runs_nothing(visit):
    page = visit("judge?run=hostile&judge=x", wait="#about .notice")
    page.get_by_role("combobox", name="Judge").click()
    page.get_by_role("option", name="onerror").click()
    page.wait_for_selector("#about .card")
    assert page.locator("#about img").count() == 0
    assert "onerror=" in page.locator("#about h1").inner_text()
    picture(page, "judge-hostile")


def test_two_judges_are_compared(visit):
    page = visit("compare", wait="button:has-text('Compare')")
    for label, name in (("First judge", "steady-70b"), ("Second judge", "wavering-1.5b")):
        page.get_by_role("combobox", name=label).click()
        page.get_by_role("option", name=name).last.click()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_selector("#comparison table.differences")
    text = page.locator("#comparison").inner_text()
    assert "is steadier" in text
    assert "Holm-corrected" in text
    picture(page, "compare")
    page.get_by_role("combobox", name="Second judge").click()
    page.get_by_role("option", name="gpt-4o", exact=True).last.click()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_selector("#comparison:has-text('No paired test')")


def test_a_good_run_is_accepted_and_then_on_the_table(visit, tmp_path):
    run = make_run(tmp_path / "by-rule")
    archive = shutil.make_archive(str(tmp_path / "good"), "zip", run.parent, run.name)
    page = visit("submit", wait="#upload")
    page.locator("#upload input[type=file]").set_input_files(archive)
    page.wait_for_selector("#upload :text('good')")
    page.get_by_role("button", name="Check").click()
    page.wait_for_selector("#checks [role=status]")
    assert "Accepted" in page.locator("#checks").inner_text()
    assert "Added as" in page.locator("#checks").inner_text()
    assert page.locator("#checks li.use").count() == 7
    picture(page, "submit-good")


def test_a_bad_run_is_refused_with_the_reason(visit, tmp_path):
    run = make_run(tmp_path / "by-rule")
    path = run / "report.json"
    report = json.loads(path.read_text("utf-8"))
    report["cells"][0]["accuracy"] = 1.0
    path.write_text(json.dumps(report), "utf-8")
    page = visit("submit", wait="#upload")
    files = [path, run / "run.json", run / "pairs.parquet", *run.glob("decisions/*")]
    page.locator("#upload input[type=file]").set_input_files([str(file) for file in files])
    page.wait_for_selector("#upload :text('pairs')")
    page.get_by_role("button", name="Check").click()
    page.wait_for_selector("#checks [role=status]")
    text = page.locator("#checks").inner_text()
    assert "Refused" in text
    assert "accuracy is 1.0, but recomputed" in text
    picture(page, "submit-bad")


@pytest.mark.parametrize(
    ("path", "wait", "name"),
    [
        ("", "#table .board", "table"),
        ("judge?run=steady-70b&judge=steady-70b%40callable", "#about .card", "judge"),
        ("compare", "button:has-text('Compare')", "compare"),
        ("published", "#published table", "published"),
        ("submit", "#upload", "submit"),
    ],
)
def test_a_phone_in_the_dark_scrolls_no_page_sideways(visit, path, wait, name):
    page = visit(path, width=390, scheme="dark", wait=wait)
    assert page.evaluate("document.body.classList.contains('dark')")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(int(part) for part in ground[4:-1].split(",")) < 150
    picture(page, f"phone-{name}")
    if name == "table":
        # Each judge is a card; none of its figures is cut.
        cell = page.locator("#table tr[data-row] td.c-first").first.bounding_box()
        assert cell["x"] + cell["width"] <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(visit, violations, scheme):
    two = "a=steady-70b%7Csteady-70b%40callable&b=wavering-1.5b%7Cwavering-1.5b%40callable"
    pages = {
        "?task=preference&columns=kappa+noise&compare=steady-70b%7Csteady-70b%40callable":
            "#table caption:has-text('preference')",
        "judge?run=steady-70b&judge=steady-70b%40callable": "#about .card",
        f"compare?{two}": "#comparison table",
        "published": "#published table",
        "submit": "#upload button:not([aria-label])",
    }  # fmt: skip
    found = {}
    for path, wait in pages.items():
        page = visit(path, scheme=scheme, wait="body")
        page.wait_for_selector(wait, state="attached")
        # Gradio's own "Loading..." lies outside every landmark, and goes when the page is drawn.
        page.wait_for_selector("p.loading", state="detached")
        found[path] = violations(page)
    assert not any(found.values()), found


def test_every_control_is_reached_by_the_tab_key_in_the_order_of_the_page(visit):
    page = visit(wait="#table .board")
    seen = []
    for _ in range(24):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                "(e => e.ariaLabel || e.innerText || e.placeholder || e.value || e.tagName)"
                "(document.activeElement)"
            )
        )
    order = ["Leaderboard", "Submit", "part of its name", "coherence", "any", "Advanced", "Columns",
             "CSV", "Cite", "Judges on"]  # fmt: skip
    places = [next(at for at, text in enumerate(seen) if text.startswith(name)) for name in order]
    assert places == sorted(places), seen


def test_fifty_users_at_once_are_all_served(site):
    filters = ["mapped", "any", "any", "any", "", True]

    def user(number):
        task = ("coherence", "factuality", "preference", "relevance")[number % 4]
        with urllib.request.urlopen(site, timeout=120) as page:
            assert page.status == 200
        body = json.dumps({"data": [task, *filters]}).encode()
        request = urllib.request.Request(
            f"{site}gradio_api/run/table", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.loads(answer.read())["data"][0]

    with ThreadPoolExecutor(50) as pool:
        tables = list(pool.map(user, range(50)))
    assert all("<table" in table and "steady-70b" in table for table in tables)


def test_rubbish_sent_to_the_server_leaves_it_up(site):
    for data in ([{}] * 7, ["none"], ["x" * 100_000, *[None] * 6]):
        body = json.dumps({"data": data}).encode()
        request = urllib.request.Request(
            f"{site}gradio_api/run/table", body, {"Content-Type": "application/json"}
        )
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(request, timeout=60)
    with urllib.request.urlopen(site, timeout=60) as page:
        assert page.status == 200
