"""A judge on a task as pages show it: its trust value, why, and its figures as bars."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from judgesense.measure.assessment import Assessment, RemedyFigures, Subject
from judgesense.measure.card import TRUST, USABLE, Trust, TrustCard, clause, clause_of
from judgesense.recipes.recipe import AS_ASKED
from judgesense.text import brackets, percent


@dataclass(frozen=True)
class Bar:
    """A figure with its interval and its reference line, in percent of the bar.

    ``text`` is the figure, or why there is none (``value`` is None then). ``tone`` is the state of
    the check.
    """

    name: str
    text: str
    why: str
    value: float | None = None
    low: float = 0.0
    width: float = 0.0
    line: float | None = None
    interval: str = ""
    tone: str = ""


@dataclass(frozen=True)
class Case:
    """An assessment as pages show it, under a short ``name`` of the judge."""

    entry: Assessment
    name: str

    @property
    def subject(self) -> Subject:
        """What it is about."""
        return self.entry.subject

    @property
    def task(self) -> str:
        """The task's name."""
        return self.entry.task

    @property
    def trust(self) -> Trust:
        """The trust value of the judge as asked."""
        return self.entry.card.trust

    @cached_property
    def remedy(self) -> RemedyFigures | None:
        """The remedy to use, if it is not to ask as before."""
        for row in self.entry.remedies:
            if row.remedy == self.entry.card.remedy != AS_ASKED:
                return row
        return None

    @property
    def usable(self) -> Trust | None:
        """``use`` or ``care`` if the judge can be used, with its remedy if it has one."""
        if self.trust in USABLE:
            return self.trust
        return None if self.remedy is None else self.remedy.trust

    @property
    def change(self) -> str | None:
        """The remedy that makes a judge usable that is not usable as asked."""
        usable_as_asked = self.trust in USABLE
        return None if usable_as_asked or self.remedy is None else self.remedy.remedy

    @property
    def rank(self) -> tuple[int, int, float, float]:
        """Sort key: what can be used first, then the better check `right`."""
        checks = self.entry.card.checks
        right, readable = checks["right"].estimate, checks["readable"].estimate
        word = TRUST.index(self.usable or self.trust)
        return word, TRUST.index(self.trust), -(right or 0.0), -(readable or 0.0)

    @property
    def why(self) -> str:
        """The worst reason for the trust value."""
        return next(reasons(self.entry.card), "passes every check that applies")

    @property
    def bars(self) -> tuple[Bar, Bar, Bar]:
        """How steady, right and fair the judge is."""
        card, first = self.entry.card, self.entry.mapped.first_position_rate
        right = card.checks["right"].details
        constant = right.get("constant_accuracy")
        position = "" if first is None else f"; takes the first option {percent(first)} of the time"
        return (
            _check_bar("same verdict after rewording", card, "steady"),
            _bar(
                "right",
                card,
                "right",
                right.get("accuracy"),
                (right.get("accuracy_ci_low"), right.get("accuracy_ci_high")),
                constant,
                f"; a constant answer is right on {percent(constant)}",
            ),
            _check_bar("same choice in both orders", card, "fair", position),
        )


def reasons(card: TrustCard) -> Iterator[str]:
    """Why a trust card does not say `use`, worst first, each in a few words."""
    for name in card.because:
        yield clause_of(name, card.checks[name])


def _check_bar(name: str, card: TrustCard, key: str, more: str = "") -> Bar:
    """The estimate of a check, and its threshold."""
    check = card.checks[key]
    ends = (check.ci_low, check.ci_high)
    more = f"; needs {percent(check.threshold)}{more}"
    return _bar(name, card, key, check.estimate, ends, check.threshold, more)


def _bar(
    name: str,
    card: TrustCard,
    key: str,
    value: float | None,
    ends: tuple[float | None, float | None],
    line: float | None,
    more: str,
) -> Bar:
    """A figure of a check from 0 to 1, with its reference line; without it, why it is missing."""
    check = card.checks[key]
    if value is None:
        text = "does not apply" if not check.applies else "not measured"
        return Bar(name, text, clause(key, "unmeasured", None))
    low, high = (value if end is None else end for end in ends)
    return Bar(
        name=name,
        text=percent(value),
        why=f"{check.n_items} items{more}",
        value=100 * value,
        low=100 * low,
        width=100 * (high - low),
        line=None if line is None else 100 * line,
        interval=brackets(*ends, percent),
        tone=check.state,
    )
