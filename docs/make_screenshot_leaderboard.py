"""Take the docs' screenshot of the leaderboard: ``python docs/make_screenshot_leaderboard.py``.

Needs Debian's Chromium and playwright.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from hub_scripts.leaderboard.runs import find_runs
from hub_scripts.leaderboard.site import write_site

PICTURE = Path(__file__).parent / "images" / "leaderboard.png"


def main() -> None:
    """Write the pages of the embedded runs and take a picture of the first one."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        write_site(find_runs(None), Path(folder))
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1366, "height": 960})
        page.goto(f"{(Path(folder) / 'index.html').as_uri()}#task=preference")
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
