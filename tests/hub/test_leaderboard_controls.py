"""The leaderboard in a browser: every control by the mouse, and every control by the keyboard.

Needs Debian's Chromium (``apt-get install chromium``).
"""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from leaderboard_site import judges, pick

pytestmark = pytest.mark.slow


def asked(page):
    """What the page's address says."""
    return dict(parse_qsl(urlsplit(page.url).query))


def becomes(page, **wanted):
    """Wait until the address says this; None for a name that it lacks."""
    page.wait_for_function(
        "wanted => { const now = new URLSearchParams(location.search);"
        " return Object.entries(wanted).every(([key, value]) => now.get(key) === value); }",
        arg=wanted,
    )


def shows(page, text):
    """Wait until the table shows a text."""
    page.wait_for_selector(f"#table :text('{text}')", state="attached")


def test_every_control_works_by_the_mouse(visit):
    page = visit()
    every = judges(page)
    pick(page, "open")
    becomes(page, weights="open")
    shows(page, "No judge matches these filters.")
    page.locator(".filters fieldset", has_text="Model weights").get_by_text("any").click()
    becomes(page, weights=None)
    page.get_by_role("button", name="Advanced").click()
    pick(page, "options")
    becomes(page, scoring="options")
    shows(page, "No judge matches these filters.")
    page.locator(".filters fieldset", has_text="Scoring").get_by_text("any").click()
    becomes(page, scoring=None)
    page.get_by_label("All rows at once").check()
    becomes(page, rows="all")
    page.get_by_label("All rows at once").uncheck()
    becomes(page, rows=None)
    page.get_by_label("Find a judge").fill("steady")
    becomes(page, find="steady")
    page.wait_for_function("document.querySelectorAll('#table tr[data-row]').length === 1")
    page.get_by_label("Find a judge").fill("")
    becomes(page, find=None)
    pick(page, "preference")
    becomes(page, task="preference")
    shows(page, "Judges on preference")
    page.locator("th.c-judge button").click()
    assert asked(page)["sort"] == "judge.up"
    assert sorted(judges(page)) == sorted(every)
    page.get_by_text("Columns").click()
    page.get_by_role("checkbox", name="Items / pairs").check()
    assert page.locator("#table th.c-items").is_visible()
    page.get_by_text("Columns").click()
    for name in ("steady-70b", "wavering-1.5b"):
        page.get_by_role("checkbox", name=f"Compare {name}").first.check()
    bar = page.get_by_role("region", name="Compare")
    bar.get_by_role("button", name="Clear").click()
    assert bar.is_hidden()
    assert asked(page) == {"task": "preference", "sort": "judge.up", "columns": "items"}
    link = page.url
    for tab, sign in (("Published", "#published"), ("Submit", "#upload"), ("Compare", ".go")):
        page.get_by_role("link", name=tab, exact=True).first.click()
        page.wait_for_selector(sign)
        page.go_back()
        page.wait_for_selector("#table-place #table")
        assert page.url == link


def test_every_control_works_by_the_keyboard(visit):
    page = visit()
    page.get_by_label("Find a judge").press_sequentially("steady")
    becomes(page, find="steady")
    page.get_by_label("Find a judge").press("Control+a")
    page.get_by_label("Find a judge").press("Delete")
    becomes(page, find=None)
    page.get_by_role("radio", name="factuality").press("Space")
    becomes(page, task="factuality")
    shows(page, "Judges on factuality")
    weights = page.locator(".filters fieldset", has_text="Model weights")
    weights.get_by_role("radio", name="open").press("Space")
    becomes(page, weights="open")
    weights.get_by_role("radio", name="any").press("Space")
    becomes(page, weights=None)
    size = page.get_by_role("combobox", name="Parameters")
    size.press("ArrowDown")
    size.press("ArrowDown")
    size.press("Enter")
    becomes(page, parameters="1B to 10B")
    shows(page, "wavering-1.5b")
    page.get_by_role("button", name="Advanced").press("Enter")
    page.get_by_label("Published figures").press("Space")
    becomes(page, published="1")
    page.get_by_role("radio", name="raw").press("Space")
    becomes(page, labels="raw")
    page.go_back()
    page.wait_for_selector("#table-place #table")
    becomes(page, labels=None, published="1", task="factuality")
    page.get_by_role("button", name="Usable").press("Enter")
    assert asked(page)["sort"] == "trust.up"
    page.locator("summary", has_text="Columns").press("Enter")
    page.get_by_role("checkbox", name="Noise floor").press("Space")
    assert page.locator("#table th.c-noise").is_visible()
    page.locator("summary", has_text="Columns").press("Enter")
    with page.expect_download():
        page.get_by_role("link", name="CSV").press("Enter")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("summary", has_text="Cite").press("Enter")
    page.get_by_role("button", name="Copy").press("Enter")
    page.wait_for_selector("button:has-text('Copied')")
    page.get_by_role("checkbox", name="Compare wavering-1.5b").press("Space")
    page.get_by_role("button", name="Clear").press("Enter")
    assert "compare" not in asked(page)
    page.get_by_role("link", name="wavering-1.5b", exact=True).first.press("Enter")
    page.wait_for_selector("#about h1:has-text('wavering-1.5b')")
    page.get_by_role("link", name="Submit", exact=True).press("Enter")
    page.wait_for_selector("#upload")
    page.get_by_role("button", name="Check").press("Enter")
    page.wait_for_selector("#checks :text('Choose the folder')")
