"""Take the docs' screenshot of the leaderboard: ``python docs/make_screenshot_leaderboard.py``.

Needs Debian's Chromium and playwright.
"""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import sync_playwright

from hub_scripts.leaderboard.site import build, launch
from hub_scripts.leaderboard.sources import open_results

PICTURE = Path(__file__).parent / "images" / "leaderboard.png"


def main() -> None:
    """Serve the embedded runs and take a screenshot of the page."""
    demo = build(open_results(None))
    _, url, _ = launch(demo, server_name="127.0.0.1", prevent_thread_lock=True, quiet=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 1080})
        page.goto(url)
        page.wait_for_selector("#table .board")
        page.screenshot(path=PICTURE)
        browser.close()
    demo.close()


if __name__ == "__main__":
    main()
