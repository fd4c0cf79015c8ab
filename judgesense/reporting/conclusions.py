"""What a report concludes of a judge on a task: the lists ``trust`` to ``variance_budget``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from judgesense.decisions.stream import Stream
from judgesense.trust.budget import budget
from judgesense.trust.checks import trust_card
from judgesense.trust.recommendation import recommendation
from judgesense.trust.remedies import cheapest_that_passes, remedies, with_first_line
from judgesense.trust.thresholds import Thresholds
from judgesense.trust.variants import variants
from judgesense.trust.wordings import Wordings, wordings

Rows = list[dict[str, Any]]


def conclusions(
    stream: Stream, thresholds: Thresholds, texts: Mapping[str, str] | None = None
) -> dict[str, Rows]:
    """The rows of ``trust``, ``wordings``, ``recommendation``, ``remedies`` and ``variants``.

    The wordings are looked at one by one first, so that the card leaves out those whose label map
    is wrong; the recommendation and the remedies then start from the card. Where a remedy makes a
    judge usable, the card's ``text`` begins with it, and ``remedy`` names the cheapest that passes.
    """
    table = Wordings.of(stream)
    card = trust_card(stream, thresholds=thresholds, mislabelled=table.mislabelled)
    remedied = remedies(stream, thresholds, table.mislabelled)
    best = cheapest_that_passes(remedied)
    own = {
        **card.to_dict(),
        "text": with_first_line(card.text, remedied),
        "remedy": best["remedy"] if best else None,
    }
    found: dict[str, Rows] = {
        "trust": [own],
        "wordings": wordings(table, texts),
        "recommendation": [recommendation(table, card)],
        "remedies": remedied,
        "variants": variants(stream, table.mislabelled),
        "variance_budget": budget(stream, table.mislabelled),
    }
    return found
