"""What a report concludes of a judge on a task: the lists ``trust`` to ``remedies``."""

from __future__ import annotations

from typing import Any

from judgesense.decisions.streams import Stream
from judgesense.trust.checks import trust_card
from judgesense.trust.recommendation import recommendation
from judgesense.trust.thresholds import Thresholds
from judgesense.trust.wordings import Wordings, wordings

Rows = list[dict[str, Any]]


def conclusions(stream: Stream, thresholds: Thresholds) -> dict[str, Rows]:
    """The rows of ``trust``, ``wordings``, ``recommendation`` and ``remedies`` of a stream.

    The wordings are looked at one by one first, so that the card leaves out those whose label map
    is wrong; the recommendation and the remedies then start from the card.
    """
    table = Wordings.of(stream)
    card = trust_card(stream, thresholds=thresholds, mislabelled=table.mislabelled)
    found: dict[str, Rows] = {
        "trust": [card.to_dict()],
        "wordings": wordings(table),
        "recommendation": [recommendation(table, card)],
        "remedies": [],
    }
    return found
