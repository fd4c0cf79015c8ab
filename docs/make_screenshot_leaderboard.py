"""Take the docs' screenshot of the leaderboard, and the picture of shared links.

    python docs/make_screenshot_leaderboard.py

Needs Debian's Chromium and playwright.
"""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import sync_playwright

from hub_scripts.leaderboard.site import build, launch
from hub_scripts.leaderboard.sources import open_results
from hub_scripts.leaderboard.web import PICTURE

DOCS_PICTURE = Path(__file__).parent / "images" / "leaderboard.png"


def main() -> None:
    """Serve the embedded runs and take both pictures of the page."""
    demo = build(open_results(None))
    _, url, _ = launch(demo, server_name="127.0.0.1", prevent_thread_lock=True, quiet=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        # The size that sites expect of a shared link's picture.
        for path, height in ((DOCS_PICTURE, 900), (PICTURE, 630)):
            page = browser.new_page(viewport={"width": 1200, "height": height})
            page.set_default_timeout(120_000)
            page.goto(f"{url}?task=relevance")
            page.wait_for_selector("label.selected:has-text('relevance')")
            page.wait_for_selector("#table-place caption:has-text('relevance')", state="attached")
            page.wait_for_load_state("networkidle")
            page.screenshot(path=path)
        browser.close()
    demo.close()


if __name__ == "__main__":
    main()
