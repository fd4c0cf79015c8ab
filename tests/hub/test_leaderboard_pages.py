"""The leaderboard in a browser: a judge's page, a comparison, and what the server answers.

Needs Debian's Chromium (``apt-get install chromium``); screenshots are left in tests/artifacts.
"""

from __future__ import annotations

import json
import re
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from leaderboard_site import picture

pytestmark = pytest.mark.slow


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


def test_a_shared_link_has_a_title_and_a_picture(site):
    with urllib.request.urlopen(f"{site}judge?judge=%3Cb%3E&run=x", timeout=60) as answer:
        page = answer.read().decode()
    assert page.count("<title>") == page.count('property="og:title"') == 1
    assert '<meta property="og:title" content="&lt;b&gt; · JudgeSense leaderboard">' in page
    picture_url = re.search(r'property="og:image" content="([^"]+)"', page)[1]
    with urllib.request.urlopen(picture_url, timeout=60) as answer:
        assert answer.read(8) == b"\x89PNG\r\n\x1a\n"


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
