"""The records of the leaderboard: a judge on a task, and what is known of its answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from judgesense.measure.assessment import RemedyFigures
from judgesense.measure.card import State, Trust
from judgesense.statistics.arrays import Floats

RUN, LOG, FIGURE = "measured here", "measured here from a published log", "published figure"
REPORTED = "reported"
"""What kind of figures a row has: from a run whose answers a maintainer has got again, from others'
decisions, quoted, and from a run's decisions that nobody has asked for again."""


@dataclass(frozen=True)
class Tables:
    """A judge's answers beside the gold labels: a table (gold x answer) for each cluster of items.

    Tables have shape (L, L + 1); the last answer is none of the labels. ``answered`` is the share
    of prompts with an answer, be it readable or not, and ``ordinal`` whether labels are a scale.
    """

    by_cluster: Mapping[str, Floats]
    ordinal: bool = False
    answered: float = 1.0


@dataclass(frozen=True)
class Change:
    """The remedy that makes a judge usable, with its gains on the items of both ways of asking."""

    remedy: str
    trust: Trust | None
    prompts_per_item: int | None
    accuracy: float | None
    gain: float | None
    jss: float | None
    jss_gain: float | None

    @classmethod
    def of(cls, row: RemedyFigures) -> Change:
        """The change that a remedy is."""
        jss_gain = None if row.jss is None or row.jss_before is None else row.jss - row.jss_before
        return cls(
            row.remedy, row.trust, row.prompts_per_item, row.accuracy, row.gain, row.jss, jss_gain
        )


@dataclass(frozen=True, kw_only=True)
class Row:
    """A judge on a task, as in board.json and in the CSV.

    Shares are from 0 to 1, undefined is None. Rows with the same ``pairs`` judged the same pairs.
    ``rank`` and ``rank_last`` are the best and the worst rank that the tests allow, ``no_rank``
    says why there is none. ``weights`` is open, api or None, ``model`` a name on the Hub.
    ``change`` makes the judge usable, if it is not as asked. ``trust`` is None for a quoted figure.
    """

    task: str
    kind: str = RUN
    source: str | None = None
    labels: str | None = None
    scale: bool = False
    data: str
    pairs: str
    scoring: str
    rank: int | None = None
    rank_last: int | None = None
    no_rank: str | None = None
    judge: str
    run: str
    page: str
    model: str | None = None
    weights: str | None = None
    trust: Trust | None = None
    reason: str | None = None
    change: Change | None = None
    jss: float | None
    ci_low: float | None
    ci_high: float | None
    raw_jss: float | None = None
    one_label: bool = False
    accuracy: float | None = None
    accuracy_ci_low: float | None = None
    accuracy_ci_high: float | None = None
    constant_accuracy: float | None = None
    beats_constant: float | None = None
    beats_constant_ci_low: float | None = None
    beats_constant_ci_high: float | None = None
    kappa_gold: float | None = None
    kappa_gold_ci_low: float | None = None
    kappa_gold_ci_high: float | None = None
    n_gold: int | None = None
    answered: float | None = None
    fair: State | None = None
    position_consistency: float | None = None
    position_ci_low: float | None = None
    position_ci_high: float | None = None
    first_position_rate: float | None = None
    no_verdict: float | None = None
    noise_floor: float | None = None
    jss_repeat: float | None = None
    delta_jss: float | None = None
    kappa: float | None = None
    n_items: int | None = None
    n_pairs: int | None = None
    signature: str

    @property
    def group(self) -> tuple[str, str, str, str]:
        """What rows share that can be compared: task, data, pairs and scoring."""
        return self.task, self.data, self.pairs, self.scoring
