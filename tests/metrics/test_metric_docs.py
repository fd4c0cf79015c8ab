"""The pages on the metrics: what their examples print is what they say."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs" / "metrics"


EXAMPLES = sorted(
    page.stem for page in PAGES.glob("*.md") if "```python" in page.read_text("utf-8")
)


def test_every_metric_family_has_a_page_with_an_example():
    assert len(EXAMPLES) >= 8
    assert {"jss", "position_bias", "ranking", "robustness", "answer_match"} <= set(EXAMPLES)


@pytest.mark.parametrize("page", EXAMPLES)
def test_a_pages_examples_print_what_stands_under_them(page):
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    told = [line[2:] for block in blocks for line in block.splitlines() if line[:2] == "# "]
    printed, names = io.StringIO(), {}
    with redirect_stdout(printed):
        for block in blocks:
            exec(block, names)
    assert told
    assert printed.getvalue().splitlines() == told


@pytest.mark.parametrize("page", EXAMPLES)
def test_a_page_says_when_the_figure_misleads_and_shows_a_picture(page):
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    assert "# When it misleads" in text
    pictures = re.findall(r"!\[.+?\]\((.+?)\)", text)
    assert pictures
    assert all((PAGES / picture).is_file() for picture in pictures)
