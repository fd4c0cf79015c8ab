"""The report's page in a browser: axe-core, every control by keyboard, phone and print."""

from __future__ import annotations

import re
import zlib

import pyarrow as pa
import pytest
from reports import report_of

from judgesense.files.tables import read_table
from judgesense.reporting.html import render_html

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pages(make, tmp_path_factory):
    """The page of one judge on two tasks' worth of pairs, and that of twelve with long names."""
    folder = tmp_path_factory.mktemp("pages")
    benchmark = make.benchmark(make.AB, [make.OPTIONS] * 5, ["A", "B"] * 20, orders=("AB", "BA"))

    def wavers(prompt):
        return ("A", "B")[zlib.crc32(prompt["text"].encode()) % 2]

    def written(name, log):
        listed = []
        report = report_of(
            log, benchmark.pairs, run={}, prompts=benchmark.prompts, disagreements=listed
        )
        (folder / name).write_text(render_html(report.contents, listed), "utf-8")
        return (folder / name).as_uri()

    many = [
        make.log(benchmark, make.oracle if n % 3 else wavers, judge=f"{'n' * 194}-{n:02}@{n:08x}")
        for n in range(12)
    ]
    return {
        "one": written("one.html", make.log(benchmark, wavers)),
        "many": written("many.html", pa.concat_tables(many)),
    }


@pytest.fixture
def opened(browser):
    """Open a page; an error on the console or a request fails."""
    wrong, contexts = [], []

    def call(address, width=1366, height=768, **options):
        context = browser.new_context(
            viewport={"width": width, "height": height}, bypass_csp=True, **options
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: m.type == "error" and wrong.append(m.text))
        page.on("request", lambda r: r.url.partition("#")[0] != address and wrong.append(r.url))
        page.goto(address)
        return page

    yield call
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["one", "many"])
def test_axe_finds_nothing_folded_or_open(opened, pages, violations, scheme, name):
    page = opened(pages[name], color_scheme=scheme)
    assert violations(page) == []
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    assert violations(page) == []


def test_the_keyboard_reaches_links_folds_and_copy_buttons(opened, pages):
    page = opened(pages["many"], permissions=["clipboard-read", "clipboard-write"])
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "copy":
            break
    copied = page.evaluate("document.activeElement.previousElementSibling.textContent")
    page.keyboard.press("Enter")
    page.wait_for_selector("button:has-text('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == copied
    page = opened(pages["one"])
    fold = page.locator("#wordings summary").first
    fold.focus()
    page.keyboard.press("Enter")
    assert page.locator("#wordings details table").first.is_visible()
    link = page.get_by_role("link", name="Method")
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**#method")


def test_the_first_screen_fits_a_laptop_two_phones_and_three_printed_pages(opened, pages, tmp_path):
    for width, height in ((1366, 768), (390, 2 * 844)):
        page = opened(pages["one"], width, height)
        assert page.locator("#wrong").bounding_box()["y"] <= height
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.pdf(path=tmp_path / "page.pdf", prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "page.pdf").read_bytes())) <= 3


def test_items_are_filtered_searched_and_walked_by_keyboard(opened, pages):
    page = opened(pages["many"])
    entries, shown = page.locator(".listed .entry"), page.locator(".listed [role=status]")
    page.locator(".listed .case").select_option("")
    # Every item of twelve judges, one row an item; of hundreds only those in sight are drawn.
    total = 12 * 40
    assert shown.inner_text() == f"{total} of {total} items"
    assert entries.count() < 40
    button = page.get_by_role("button", name="flipped by wording")
    button.click()
    flipped = int(button.locator("small").inner_text())
    assert 0 < flipped < total
    assert shown.inner_text() == f"{flipped} of {total} items"
    page.keyboard.press("/")
    page.keyboard.type("text 1")
    page.wait_for_function("location.hash.includes('q=')")
    # The counts of all kinds follow the search.
    counts = page.locator(".filters small").all_inner_texts()
    assert int(counts[0]) == 12 * 11
    assert max(map(int, counts[1:])) <= 12 * 11
    assert all("Text 1" in text for text in entries.locator("b").all_inner_texts())
    page.keyboard.press("Enter")
    page.keyboard.press("j")
    chosen = page.locator(".entry[aria-selected=true]")
    assert chosen.get_attribute("aria-posinset") == "2"
    page.keyboard.press("ArrowUp")
    assert chosen.get_attribute("aria-posinset") == "1"
    assert page.locator(".detail mark").count() > 0
    page.keyboard.press("o")
    assert page.locator(".detail details[open]").count() == 0
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible()


def test_an_address_restores_the_view_and_numbers_lead_to_items(opened, pages):
    page = opened(pages["one"], permissions=["clipboard-read", "clipboard-write"])
    chosen, status = page.locator(".entry[aria-selected=true]"), page.locator("[role=status]")
    page.get_by_role("link", name="%").first.click()
    assert "filter=flipped+by+wording" in page.url
    page.keyboard.press("j")
    page.get_by_role("button", name="Copy link").click()
    page.wait_for_selector("button:has-text('Copied')")
    copied = page.evaluate("navigator.clipboard.readText()")
    seen = chosen.inner_text(), status.inner_text()
    assert "&item=" in copied
    page.goto("about:blank")
    page.goto(copied)
    assert (chosen.inner_text(), status.inner_text()) == seen
    # A heatmap's cell has the items on which its two wordings differ.
    cell = page.locator(".heat td a").first
    differ = 1 - float(cell.inner_text())
    cell.click()
    n = int(status.inner_text().split()[0])
    assert n > 0
    # Some items differ in both orders, 80 places in all.
    assert 40 * differ <= n <= 80 * differ + 0.5


def test_shown_rows_are_downloaded_without_formulas(opened, pages, tmp_path):
    page = opened(pages["one"])
    page.get_by_role("button", name="right").first.click()
    n = int(page.locator("[role=status]").inner_text().split()[0])
    with page.expect_download() as found:
        page.locator(".listed .rows").click()
    found.value.save_as(tmp_path / "rows.csv")
    rows = [row.values for row in read_table(tmp_path / "rows.csv")]
    assert len(rows) == 2 * n > 0
    assert all(row["kinds"].endswith("right") for row in rows)


def test_without_scripts_the_first_disagreements_are_a_table(opened, pages):
    page = opened(pages["many"], java_script_enabled=False)
    assert page.locator("#wrong .plain tbody tr").count() == 30
    assert not page.locator(".listed").is_visible()


_OUTSIDE = """() => [...document.querySelectorAll('.screen td > *, .screen th > *')]
    .filter(each => each.getBoundingClientRect().width)
    .filter(each => each.getBoundingClientRect().right
        > each.parentElement.getBoundingClientRect().right + 1)
    .map(each => each.outerHTML)"""


@pytest.mark.parametrize("width", [390, 600, 768, 860, 1024])
def test_no_bar_leaves_its_cell_at_any_width(opened, pages, width):
    page = opened(pages["one"], width, 800)
    assert page.locator(".screen .track").count() >= 3
    assert page.evaluate(_OUTSIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_twelve_long_names_fit_a_phone_and_the_matrix_comes_first(opened, pages):
    page = opened(pages["many"], 390, 844)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page = opened(pages["many"])
    box = page.locator(".chips, .matrix").first.bounding_box()
    assert box["y"] + box["height"] <= 768
