"""A rule: how the answers to several prompts on an item become one verdict.

A remedy fitted to a log is a rule; an improved judge is a rule with the wordings' texts. Answers
come as log-probabilities of the canonical labels **as shown**: under the order BA, A is the option
stored second. Verdicts are in the item's own order, AB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from judgesense.errors import JudgeSenseError
from judgesense.statistics.arrays import Bools, Codes, Floats
from judgesense.statistics.calibration import (
    UNDECIDED,
    calibrated,
    expected_score,
    log_shares,
    majority,
    mean_log_odds,
    most_probable,
    votes,
)
from judgesense.tasks import NO_ORDER, is_scale

Read = Literal["most probable", "expected score", "vote"]
READS: tuple[Read, ...] = get_args(Read)

_ORDERS = ((NO_ORDER,), ("AB",), ("BA",), ("AB", "BA"), ("BA", "AB"))

TIE = 1e-9
"""A margin, in nats, up to which two labels are equally probable."""

OTHER_WORDINGS = "other wordings"
"""The key of the offsets for a wording that was not fitted."""


@dataclass(frozen=True)
class Decided:
    """Verdicts on n items, in each item's own order.

    ``codes`` index the rule's labels (-1: undecided), shape (n,). ``logprobs`` are the labels' log-
    probabilities after the remedy, shape (n, L), NaN where nothing was read; for an expected score
    s they are -(label - s)^2, normalised, so that the nearest label is the most probable; for votes
    the logs of their shares. ``margin`` is the difference of the two best, in nats; 0 where
    undecided, and for votes the difference of the shares.
    """

    codes: Codes
    logprobs: Floats
    margin: Floats

    @property
    def shares(self) -> Floats:
        """The labels' probabilities, or shares of the votes, shape (n, L)."""
        return np.exp(self.logprobs)


@dataclass(frozen=True)
class Rule:
    """How the answers on one item become a verdict.

    ``wordings`` are the template ids behind one verdict and ``orders`` the option orders in which
    each is asked. ``offsets`` has nats per label, as shown, for each calibrated wording; the key
    `OTHER_WORDINGS` is the mean over wordings, for a wording that was not fitted. ``read`` says how
    the mean of the members is read; ``vote`` counts readable verdicts instead and needs no
    probabilities.

    >>> rule = Rule("both orders", ("r1",), ("AB", "BA"), ("A", "B"))
    >>> told = np.log([[[[0.9, 0.1], [0.8, 0.2]]]])  # A in AB; A as shown, so B, in BA
    >>> decided = rule.decide(told)
    >>> decided.codes.tolist(), decided.shares.round(2).tolist(), rule.prompts_per_item
    ([0], [[0.6, 0.4]], 2)
    """

    remedy: str
    wordings: tuple[str, ...]
    orders: tuple[str, ...]
    labels: tuple[str, ...]
    read: Read = "most probable"
    offsets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        labels, wordings = set(self.labels), set(self.wordings)
        wrong = {
            "labels must be at least two different ones": 2 <= len(labels) == len(self.labels),
            "wordings must be different and at least one": 1 <= len(wordings) == len(self.wordings),
            "orders must be AB, BA, both or '-'": self.orders in _ORDERS,
            f"read must be one of {', '.join(READS)}": self.read in READS,
            "an expected score needs whole numbers as labels": self.read != "expected score"
            or is_scale(self.labels),
            "a vote has no offsets": self.read != "vote" or not self.offsets,
            "each wording needs offsets for the rule's labels": not self.offsets
            or wordings <= set(self.offsets),
            f"offsets must be for the labels {', '.join(self.labels)}": all(
                set(row) == labels for row in self.offsets.values()
            ),
        }
        for what, fine in wrong.items():
            if not fine:
                raise JudgeSenseError(f"the rule {self.remedy!r}: {what}")

    @property
    def prompts_per_item(self) -> int:
        """How many prompts one verdict costs."""
        return len(self.wordings) * len(self.orders)

    @property
    def needs_probabilities(self) -> bool:
        """Whether the judge must give log-probabilities of the options."""
        return self.read != "vote"

    @cached_property
    def _matrix(self) -> Floats:
        """Offsets by wording, shape (wordings, 1, L)."""
        rows = [[self.offsets[w][label] for label in self.labels] for w in self.wordings]
        matrix: Floats = np.array(rows, dtype=np.float64)[:, None, :]
        return matrix

    def offsets_for(self, wording: str) -> Mapping[str, float]:
        """The offsets of a wording, or the mean's for one that was not fitted; {} if there are
        none."""
        return self.offsets.get(wording, self.offsets.get(OTHER_WORDINGS, {}))

    def decide(self, logprobs: npt.ArrayLike) -> Decided:
        """The verdicts on n items.

        Args:
            logprobs: shape (n, wordings, orders, L), labels as shown; NaN where nothing was read.
                For ``vote``, the largest of each answer is its verdict.

        Raises:
            ValueError: an array of another shape.
        """
        values = np.asarray(logprobs, dtype=np.float64)
        shape = (len(self.wordings), len(self.orders), len(self.labels))
        if values.ndim != 4 or values.shape[1:] != shape:
            raise ValueError(
                f"logprobs has shape {values.shape}: pass (n, {shape[0]}, {shape[1]}, {shape[2]})"
            )
        if self.offsets:
            values = calibrated(values, self._matrix)
        values = in_own_order(values, self.orders)
        members = values.reshape(len(values), -1, values.shape[-1])
        if self.read == "vote":
            codes = most_probable(members.reshape(-1, members.shape[-1]))
            return voted(codes.reshape(members.shape[:2]), len(self.labels))
        mean = mean_log_odds(members) if members.shape[1] > 1 else log_shares(members[:, 0])
        if self.read == "expected score":
            scale = np.array(self.labels, dtype=np.float64)
            score = expected_score(mean, scale)
            mean = log_shares(-((scale - score[:, None]) ** 2))
        return _by_probability(mean)

    def to_dict(self) -> dict[str, Any]:
        """The rule as plain values, for a file."""
        return {
            "remedy": self.remedy,
            "wordings": list(self.wordings),
            "orders": list(self.orders),
            "labels": list(self.labels),
            "read": self.read,
            "offsets": {wording: dict(row) for wording, row in self.offsets.items()},
        }


def voted(codes: Codes, n_labels: int) -> Decided:
    """The verdicts that most of the members' verdicts, shape (n, members), are for."""
    shares, won = votes(codes, n_labels), majority(codes, n_labels)
    ranked = np.sort(np.nan_to_num(shares), axis=1)
    margin = np.where(won == UNDECIDED, 0.0, ranked[:, -1] - ranked[:, -2])
    with np.errstate(divide="ignore"):
        return Decided(won, np.log(shares), margin)


def averaged(logprobs: Floats) -> Decided:
    """The verdicts by the mean log-odds of members, shape (n, members, L)."""
    return _by_probability(mean_log_odds(logprobs))


def _by_probability(mean: Floats) -> Decided:
    ranked = np.sort(np.maximum(np.nan_to_num(mean, nan=0.0), -700.0), axis=1)
    return Decided(most_probable(mean), mean, ranked[:, -1] - ranked[:, -2])


def sure(decided: Decided, margin: float) -> Bools:
    """Where a verdict is given with at least this margin."""
    clear: Bools = (decided.codes >= 0) & (decided.margin >= margin)
    return clear


def in_own_order(values: Floats, orders: tuple[str, ...]) -> Floats:
    """Columns of answers under the order BA swapped back: shape (..., orders, L)."""
    if "BA" not in orders:
        return values
    swapped = values.copy()
    place = orders.index("BA")
    swapped[..., place, :2] = values[..., place, 1::-1]
    return swapped
