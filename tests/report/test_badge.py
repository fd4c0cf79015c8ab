"""The badge: one picture of a run's trust, which says the same in words."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from judgesense.measure.assessment import Assessment, ReportContents
from judgesense.measure.card import TrustCard
from judgesense.reporting.documents import render_badge

SVG = "{http://www.w3.org/2000/svg}"


def judged(trust: str, judge: str = "j@12345678", task: str = "relevance") -> Assessment:
    return Assessment("r", judge, task, "options", (), TrustCard(trust, (), "", {}))


@pytest.mark.parametrize(
    ("entries", "label", "value"),
    [
        ([judged("use")], "j on relevance", "✓ use"),
        ([judged("use"), judged("avoid", task="coherence")], "j", "✗ avoid 1, use 1"),
        ([judged("care"), judged("use", judge="k@1")], "2 judges on relevance", "! care 1, use 1"),
        ([], "LLM judge", "? unknown"),
        ([judged("unknown", judge="<script>&\"'")], "<script>&\"' on relevance", "? unknown"),
        ([judged("use", judge="long-" * 40)], "long-long-", "✓ use"),
    ],
)
def test_a_badge_shows_the_worst_value_first_and_lists_all(
    entries: list[Assessment], label: str, value: str
) -> None:
    drawn = render_badge(ReportContents(tuple(entries)))
    root = ElementTree.fromstring(drawn)
    shown = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert shown[0].startswith(label)
    assert shown[1] == value
    assert int(root.get("width", "0")) < 500
    title = root.findtext(f"{SVG}title") or ""
    assert all(f"on {e.task} (options): {e.card.trust}" in title for e in entries)
    assert drawn.count("http") == 1
