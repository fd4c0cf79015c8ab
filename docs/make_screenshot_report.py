"""Take the home page's pictures of a report's first screen: laptop and phone, light and dark.

    cp -r hub_scripts/leaderboard/data/qwen2.5-coder-1.5b runs/demo-1.5b
    judgesense report runs/demo-1.5b && python docs/make_screenshot_report.py runs/demo-1.5b

Needs Debian's Chromium, playwright and Pillow.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parent / "images"
WIDTHS = {"": 860, "_phone": 390}
"""In pixels; the page shows the pictures at about these widths, so that their text can be read."""
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def main(run: Path) -> None:
    """Open ``report.html`` of a run and take its part above the wordings."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        for scheme in SCHEMES:
            for name, width in WIDTHS.items():
                page = browser.new_page(
                    viewport={"width": width, "height": 1000},
                    color_scheme=scheme,
                    device_scale_factor=1.5,
                )
                page.goto((run / "report.html").resolve().as_uri())
                box = page.locator(".boxes").bounding_box()
                assert box is not None
                height = box["y"] + box["height"] + 16
                clip = {"x": 0, "y": 0, "width": width, "height": height}
                taken = Image.open(io.BytesIO(page.screenshot(clip=clip)))  # type: ignore[arg-type]
                target = IMAGES / f"report_first_screen{name}_{scheme}.webp"
                taken.convert("RGB").save(target, lossless=True, method=6)
                print(target, *taken.size)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
