"""The leaderboard in a browser: its table, its address, in the dark and on a phone.

Needs Debian's Chromium (``apt-get install chromium``); screenshots are left in tests/artifacts.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from leaderboard_site import judges, pick, picture, settled

pytestmark = pytest.mark.slow


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


def test_what_is_degenerate_or_broken_is_shown_and_not_ranked(visit):
    page = visit(wait="#table .board")
    row = page.locator("#table tr", has_text="always-yes-360m")
    assert "says nothing about rewording" in row.inner_text()
    assert row.locator("td.rank").inner_text().strip() == "–"
    page.get_by_text("1 run is left out").click()
    assert "holds NaN" in page.locator("#table").inner_text()
    picture(page, "table")


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
