"""A recipe: how judges are asked about an item, and how their answers become one verdict.

Answers come as log-probabilities of the canonical labels **as shown**: under the order BA, A is the
option stored second. Verdicts are in the item's own order, AB. What people read is the recipe's
name: "asked in both orders", never "recipe 7". Reports call it a remedy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from judgesense.errors import JudgeSenseError
from judgesense.log.array import NOT_ASKED, AnswerArray
from judgesense.statistics.arrays import Bools, Codes, Floats
from judgesense.statistics.calibration import (
    NO_VERDICT,
    batch_offsets,
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

Combine = Literal["cascade", "jury"]

_ORDERS = ((NO_ORDER,), ("AB",), ("BA",), ("AB", "BA"), ("BA", "AB"))

AS_ASKED = "as asked"
"""The name of the recipe that changes nothing: one wording, asked once."""

BEST_WORDING = "another wording"
"""What the name of a recipe says that asks the wording which was best on other items."""

TIE = 1e-9
"""A margin, in nats, up to which two labels are equally probable."""

OTHER_WORDINGS = "other wordings"
"""The key of the offsets for a wording that was not fitted."""


@dataclass(frozen=True)
class RecipeVerdicts:
    """A recipe's verdicts on n items, in each item's own order.

    ``codes`` index the recipe's labels (-1: undecided), shape (n,). ``logprobs`` are the labels'
    log-probabilities with the recipe, shape (n, L), NaN where nothing was read; for an expected
    score s they are -(label - s)^2, normalised, so that the nearest label is the most probable; for
    votes the logs of their shares. ``margin`` is the difference of the two best, in nats; 0 where
    undecided, and for votes the difference of the shares.
    """

    codes: Codes
    logprobs: Floats
    margin: Floats

    @property
    def shares(self) -> Floats:
        """The labels' probabilities, or shares of the votes, shape (n, L)."""
        return np.exp(self.logprobs)

    def is_confident(self, margin: float) -> Bools:
        """Whether each verdict has at least this margin."""
        confident: Bools = (self.codes >= 0) & (self.margin >= margin)
        return confident


@dataclass(frozen=True)
class Recipe:
    """How a judge, or several, are asked about an item, and how the answers become a verdict.

    ``wordings`` are the template ids behind one verdict and ``orders`` the option orders in which
    each is asked. ``read`` says how the mean of these answers is read; ``vote`` counts readable
    verdicts instead and needs no probabilities. A ``calibrated`` recipe is corrected for the
    judge's preference for a label: `fitted` learns ``offsets``, in nats per label as shown, for
    each wording; the key `OTHER_WORDINGS` is the mean over wordings, for one that was not fitted.
    With ``best_wording``, only one of the wordings is asked: the best on other items. ``judge`` is
    the place of the judge among several.

    Several recipes decide together as ``members``, each of one judge: in a ``cascade`` the next is
    asked where the one before has a margin below its entry in ``margins`` (None for the last), in a
    ``jury`` all are.

    ``ablated`` n also asks for the text without each run of 1 to n sentences, and the lowest answer
    decides (`judgesense.recipes.ablation`); 0 asks for the text alone.

    >>> recipe = Recipe("both orders", ("r1",), ("AB", "BA"), ("A", "B"))
    >>> logprobs = np.log([[[[0.9, 0.1], [0.8, 0.2]]]])  # A in AB; A as shown, so B, in BA
    >>> verdicts = recipe.verdicts(logprobs)
    >>> verdicts.codes.tolist(), verdicts.shares.round(2).tolist(), recipe.prompts_per_item
    ([0], [[0.6, 0.4]], 2)
    """

    name: str
    wordings: tuple[str, ...]
    orders: tuple[str, ...]
    labels: tuple[str, ...]
    read: Read = "most probable"
    calibrated: bool = False
    offsets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    best_wording: bool = False
    judge: int = 0
    combine: Combine | None = None
    members: tuple[Recipe, ...] = ()
    margins: tuple[float | None, ...] = ()
    ablated: int = 0

    def __post_init__(self) -> None:
        labels, wordings = set(self.labels), set(self.wordings)
        holds = {
            "labels must be at least two different ones": 2 <= len(labels) == len(self.labels),
            "wordings must be different and at least one": 1 <= len(wordings) == len(self.wordings),
            "orders must be AB, BA, both or '-'": self.orders in _ORDERS,
            f"read must be one of {', '.join(READS)}": self.read in READS,
            "an expected score needs whole numbers as labels": self.read != "expected score"
            or is_scale(self.labels),
            "a vote has no offsets": self.read != "vote" or not self.offsets,
            "ablated must be a number of sentences, 0 or more": self.ablated >= 0,
            "votes have no log-odds, so they cannot be ablated; ask in both orders instead": not (
                self.ablated and self.read == "vote"
            ),
            "ablated needs two labels, or the expected score of one wording": not self.ablated
            or len(self.labels) == 2
            or (self.read == "expected score" and len(self.wordings) == 1),
            "each wording needs offsets for the rule's labels": not self.offsets
            or wordings <= set(self.offsets),
            f"offsets must be for the labels {', '.join(self.labels)}": all(
                set(row) == labels for row in self.offsets.values()
            ),
        }
        for condition, fine in holds.items():
            if not fine:
                raise JudgeSenseError(f"the rule {self.name!r}: {condition}")

    @classmethod
    def together(
        cls,
        name: str,
        combine: Combine,
        members: Sequence[Recipe],
        margins: Sequence[float | None] = (),
    ) -> Recipe:
        """A cascade or jury of recipes; its own wordings and orders are those of the first."""
        return replace(
            members[0],
            name=name,
            combine=combine,
            members=tuple(members),
            margins=tuple(margins) or (None,) * len(members),
        )

    def named(self, *lead: str, panel: str = "", orders: str = "both orders") -> Recipe:
        """The recipe with a name that says what it changes, after ``lead``.

        >>> Recipe("", ("r1",), ("AB", "BA"), ("A", "B"), calibrated=True).named("gpt-4o").name
        'gpt-4o, calibrated, both orders'
        """
        parts = (
            *lead,
            "calibrated" if self.calibrated else "",
            "expected score" if self.read == "expected score" else "",
            panel,
            BEST_WORDING if self.best_wording else "",
            orders if len(self.orders) > 1 else "",
        )
        return replace(self, name=", ".join(part for part in parts if part) or AS_ASKED)

    @property
    def leaves(self) -> tuple[Recipe, ...]:
        """The recipes of one judge that it consists of: itself, or its members."""
        return self.members or (self,)

    @property
    def prompts_per_item(self) -> int:
        """How many prompts one verdict of one judge costs."""
        return (1 if self.best_wording else len(self.wordings)) * len(self.orders)

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

    def fitted(self, *answers: AnswerArray, items: Codes | slice = slice(None)) -> Recipe:
        """The recipe with offsets learned from some items, whose gold labels play no part.

        ``answers`` are those of each judge, by the recipe's numbers.
        """
        if self.members:
            return replace(
                self, members=tuple(member.fitted(*answers, items=items) for member in self.members)
            )
        if not self.calibrated:
            return self
        array = answers[self.judge].under(self.wordings, self.orders, items)
        offsets = {}
        for n, wording in enumerate(self.wordings):
            learned = batch_offsets(array.logprobs[:, n].reshape(-1, len(self.labels))).round(6)
            offsets[wording] = dict(zip(self.labels, learned.tolist(), strict=True))
        return replace(self, offsets=offsets)

    def decide(self, *answers: AnswerArray, items: Codes | slice = slice(None)) -> RecipeVerdicts:
        """The verdicts on some items; NOT_ASKED where one of the recipe's prompts was not asked.

        ``answers`` are those of each judge, by the recipe's numbers.
        """
        if self.members:
            verdicts = [member.decide(*answers, items=items) for member in self.members]
            if self.combine == "cascade":
                return cascade(verdicts, self.margins)
            return jury(verdicts, by_votes=self.read == "vote")
        array = answers[self.judge].under(self.wordings, self.orders, items)
        answer = self.verdicts(array.logprobs)
        is_missing = (array.verdicts == NOT_ASKED).any(axis=(1, 2))
        return replace(answer, codes=np.where(is_missing, NOT_ASKED, answer.codes))

    def verdicts(self, logprobs: npt.ArrayLike) -> RecipeVerdicts:
        """The verdicts of one judge on n items.

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
        answers = values.reshape(len(values), -1, values.shape[-1])
        if self.read == "vote":
            codes = most_probable(answers.reshape(-1, answers.shape[-1]))
            return voted(codes.reshape(answers.shape[:2]), len(self.labels))
        mean = mean_log_odds(answers) if answers.shape[1] > 1 else log_shares(answers[:, 0])
        if self.read == "expected score":
            scale = np.array(self.labels, dtype=np.float64)
            score = expected_score(mean, scale)
            mean = log_shares(-((scale - score[:, None]) ** 2))
        return _by_probability(mean)

    def to_dict(self) -> dict[str, Any]:
        """The recipe of one judge as plain values, for a file."""
        return {
            "remedy": self.name,
            "wordings": list(self.wordings),
            "orders": list(self.orders),
            "labels": list(self.labels),
            "read": self.read,
            "offsets": {wording: dict(row) for wording, row in self.offsets.items()},
            **({"ablated": self.ablated} if self.ablated else {}),
        }


def jury(verdicts: Sequence[RecipeVerdicts], *, by_votes: bool) -> RecipeVerdicts:
    """The verdict of several judges: their majority, or the label with the best mean log-odds."""
    if by_votes:
        codes = np.stack([v.codes for v in verdicts], axis=1)
        return voted(codes, verdicts[0].logprobs.shape[1])
    return _by_probability(mean_log_odds(np.stack([v.logprobs for v in verdicts], axis=1)))


def cascade(verdicts: Sequence[RecipeVerdicts], margins: Sequence[float | None]) -> RecipeVerdicts:
    """The verdict of the first judge that is confident enough, or of the last."""
    final = verdicts[0]
    for margin, later in zip(margins, verdicts[1:], strict=False):
        assert margin is not None
        clear = final.is_confident(margin)
        final = RecipeVerdicts(
            np.where(clear, final.codes, later.codes),
            np.where(clear[:, None], final.logprobs, later.logprobs),
            np.where(clear, final.margin, later.margin),
        )
    return final


def voted(codes: Codes, n_labels: int) -> RecipeVerdicts:
    """The majority of verdicts ``codes``, shape (n, members), on each item."""
    shares, won = votes(codes, n_labels), majority(codes, n_labels)
    ranked = np.sort(np.nan_to_num(shares), axis=1)
    margin = np.where(won == NO_VERDICT, 0.0, ranked[:, -1] - ranked[:, -2])
    with np.errstate(divide="ignore"):
        return RecipeVerdicts(won, np.log(shares), margin)


def _by_probability(mean: Floats) -> RecipeVerdicts:
    ranked = np.sort(np.maximum(np.nan_to_num(mean, nan=0.0), -700.0), axis=1)
    return RecipeVerdicts(most_probable(mean), mean, ranked[:, -1] - ranked[:, -2])


def in_own_order(values: Floats, orders: tuple[str, ...]) -> Floats:
    """Columns of answers under the order BA swapped back: shape (..., orders, L)."""
    if "BA" not in orders:
        return values
    swapped = values.copy()
    place = orders.index("BA")
    swapped[..., place, :2] = values[..., place, 1::-1]
    return swapped
