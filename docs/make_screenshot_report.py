"""Take the docs' picture of a report's first screen, in light and in dark.

    python docs/make_screenshot_report.py RUN

Needs Debian's Chromium and playwright.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parent / "images"
SIZE = {"width": 1100, "height": 800}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def main(run: Path) -> None:
    """Open ``report.html`` of a run and take both pictures."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        for scheme in SCHEMES:
            page = browser.new_page(viewport=SIZE, color_scheme=scheme)  # type: ignore[arg-type]
            page.goto((run / "report.html").resolve().as_uri())
            page.screenshot(path=IMAGES / f"report_first_screen_{scheme}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
