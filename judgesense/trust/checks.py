"""All five checks of a trust card, from a judge's decisions on one task.

Prompts of contrast and intervention variants count for `responsive` alone.
"""

from __future__ import annotations

from collections.abc import Collection

from judgesense.decisions.stream import Stream
from judgesense.trust.card import TrustCard, conclude
from judgesense.trust.rewording import responsive, same_polarity, steady
from judgesense.trust.thresholds import DEFAULTS, Thresholds
from judgesense.trust.verdicts import fair, readable, right

__all__ = ["fair", "readable", "responsive", "right", "same_polarity", "steady", "trust_card"]


def trust_card(
    stream: Stream,
    *,
    thresholds: Thresholds = DEFAULTS,
    mislabelled: Collection[str] = (),
) -> TrustCard:
    """The trust card of a judge on a task.

    Args:
        stream: a judge's decisions (not a baseline's).
        thresholds: what each check is compared with.
        mislabelled: templates whose answers mean the opposite of what their label map says. They
            are left out of `steady`, `responsive` and `right`: they tell of the wording, not of
            the judge.

    >>> import pyarrow as pa
    >>> from judgesense.decisions import SCHEMA
    >>> from judgesense.decisions.streams import view
    >>> row = {"judge": "j", "task": "t", "scoring": "generate", "status": "ok"}
    >>> said = [{**row, "template_id": t, "item_id": f"i{n}", "decision": "YES", "gold": g}
    ...         for t in "12" for n, g in enumerate(["YES", "NO"] * 30)]
    >>> (stream,) = view(pa.Table.from_pylist(said, schema=SCHEMA)).judged
    >>> card = trust_card(stream)
    >>> card.trust, card.because, card.checks["steady"].state
    ('avoid', ('right',), 'pass')
    """
    return conclude({
        "readable": readable(stream, thresholds.readable),
        "steady": steady(stream, thresholds.steady, mislabelled, thresholds.confidence),
        "responsive": responsive(stream, thresholds.responsive, mislabelled),
        "right": right(stream, thresholds.right, mislabelled),
        "fair": fair(stream, thresholds.fair),
    })  # fmt: skip
