"""The badge: one picture of a run's trust, which says the same in words."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from judgesense.reporting.documents import render_badge

SVG = "{http://www.w3.org/2000/svg}"


def card(trust: str, judge: str = "j@12345678", task: str = "relevance") -> dict[str, Any]:
    return {"judge": judge, "task": task, "scoring": "options", "trust": trust}


@pytest.mark.parametrize(
    ("cards", "label", "value"),
    [
        ([card("use")], "j on relevance", "✓ use"),
        ([card("use"), card("avoid", task="coherence")], "j", "✗ avoid 1, use 1"),
        ([card("care"), card("use", judge="k@1")], "2 judges on relevance", "! care 1, use 1"),
        ([], "LLM judge", "? unknown"),
        ([card("unknown", judge="<script>&\"'")], "<script>&\"' on relevance", "? unknown"),
        ([card("use", judge="long-" * 40)], "long-long-", "✓ use"),
    ],
)
def test_a_badge_shows_the_worst_value_first_and_lists_all(
    cards: list[dict[str, Any]], label: str, value: str
) -> None:
    drawn = render_badge({"trust": cards})
    root = ElementTree.fromstring(drawn)
    shown = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert shown[0].startswith(label)
    assert shown[1] == value
    assert int(root.get("width", "0")) < 500
    title = root.findtext(f"{SVG}title") or ""
    assert all(f"on {c['task']} (options): {c['trust']}" in title for c in cards)
    assert drawn.count("http") == 1
