"""The trust card: seven checks on a judge and a task, and the one conclusion drawn from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal, Unpack

# Before Python 3.12, pydantic cannot read the TypedDict of the standard library.
from typing_extensions import TypedDict

from judgesense.text import join, percent

State = Literal["pass", "fail", "open", "unmeasured"]
Trust = Literal["use", "care", "avoid", "unknown"]

CHECKS = ("readable", "steady", "responsive", "right", "fair", "notices", "resistant")
"""The checks, in the order in which they are shown."""

TRUST: tuple[Trust, ...] = ("use", "care", "unknown", "avoid")
"""The values of ``trust``, best first."""

USABLE: tuple[Trust, ...] = ("use", "care")
"""The values of ``trust`` of a judge that may be used."""

_SEVERITY = ("readable", "fair", "right", "responsive", "steady")
"""Failed checks, worst first: one that fails often explains those after it. Without `notices`,
which counts for less than people's labels, and `resistant`, which matters only where authors want
to win."""

LEADS: Mapping[str, str] = MappingProxyType(
    {
        "use": "use",
        "care": "use with care",
        "avoid": "avoid",
        "unknown": "not known yet",
    }
)
"""How the text of a card begins."""

_CLAUSES: Mapping[str, tuple[str, str, str, str]] = MappingProxyType(
    {
        "readable": (
            "its answers can be read as verdicts",
            "only {} of its answers can be read as verdicts",
            "it is uncertain how many of its answers can be read",
            "no answer can be read",
        ),
        "steady": (
            "rewording changes {} of its verdicts",
            "rewording changes {} of its verdicts",
            "it is uncertain how steady it is under rewording",
            "the effect of rewording has not been measured",
        ),
        "responsive": (
            "it follows the question",
            "it ignores what the question asks",
            "it may ignore what the question asks",
            "no opposite question was asked",
        ),
        "right": (
            "it agrees with people",
            "it agrees too little with people",
            "its agreement with people is uncertain",
            "its agreement with people has not been measured",
        ),
        "fair": (
            "its choice rarely depends on the order of the options",
            "its choice depends on the order of the options",
            "the effect of the option order is uncertain",
            "it judged in one option order only",
        ),
        "notices": (
            "it marks down outputs made wrong on purpose",
            "it marks down only {} of outputs made wrong on purpose",
            "it is uncertain whether it marks down outputs made wrong on purpose",
            "damage was not tried",
        ),
        "resistant": (
            "attacks change few of its verdicts",
            "the worst attack leaves only {} of its right verdicts",
            "the effect of attacks is uncertain",
            "attacks were not tried",
        ),
    }
)
"""By check: a clause for a check that passes, fails, is open or is unmeasured."""

_KINDS = 4
"""Kinds of damage that a conclusion names."""

STEADY: Mapping[str, str] = MappingProxyType(
    {
        "measured": "rewording changes {} of its verdicts",
        "together": "wording and noise together change {} of its verdicts",
        "all": "{} of its verdicts change, with or without rewording",
    }
)
"""What changes verdicts under rewording, by what is known of noise: the same prompt asked again.

``measured``: repeats change fewer verdicts, or the verdicts are read from probabilities. ``all``:
repeats change as many. ``together``: the two cannot be told apart, or no prompt of a judge that
answers in text was repeated.
"""


class Details(TypedDict, total=False):
    """More figures of a check; each check has its own (`judgesense.measure.checks`)."""

    # In the order of the keys in ``report.json``; fair and steady share one.
    first_position_rate: float | None
    n_wordings: int
    n_families: int
    missed: float
    ci_low_fixed: float | None
    ci_high_fixed: float | None
    kappa: float | None
    jss_repeat: float | None
    delta_jss: float | None
    delta_ci_low: float | None
    delta_ci_high: float | None
    noise: Literal["measured", "together", "all"]
    jss_low: float
    jss_high: float
    jss_low_ci_low: float | None
    jss_high_ci_high: float | None
    # responsive
    moves: float
    turned: float
    follows: float
    follows_item: float
    # right
    picked_labels: bool
    accuracy: float | None
    accuracy_ci_low: float | None
    accuracy_ci_high: float | None
    balanced_accuracy: float | None
    balanced_accuracy_ci_low: float | None
    balanced_accuracy_ci_high: float | None
    gwet_ac1: float | None
    gwet_ac1_ci_low: float | None
    gwet_ac1_ci_high: float | None
    constant_label: str | None
    constant_accuracy: float | None
    beats_constant: float | None
    beats_constant_ci_low: float | None
    beats_constant_ci_high: float | None
    undecided_share: float | None
    kappa_between_people: float
    # notices
    caught: float | None
    n_damaged: int
    blind: list[str]
    kinds: list[str]
    harmless: float | None
    harmless_ci_low: float | None
    harmless_ci_high: float | None
    n_harmless: int
    # resistant
    worst: str
    n_kinds: int
    effective: list[str]
    certified: float


@dataclass(frozen=True)
class Check:
    """One check of a card.

    ``state`` is ``pass`` if the whole interval lies on the good side of the threshold, ``fail`` if
    it lies on the bad side, ``open`` if the interval includes the threshold, and ``unmeasured``
    without an estimate; ``text`` then says what to add. ``applies`` is False if the task has
    nothing to check (no option orders): such a check is ``unmeasured`` and counts for nothing.
    ``estimate`` and the ends of its 95% interval are None where undefined; an end may also be None
    by itself, where the estimate has no bound on that side.
    """

    state: State
    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    threshold: float
    n_items: int
    text: str
    applies: bool = True
    details: Details = field(default_factory=Details)

    @classmethod
    def of(
        cls,
        estimate: float,
        ci_low: float | None,
        ci_high: float | None,
        *,
        threshold: float,
        n_items: int,
        text: str,
        **details: Unpack[Details],
    ) -> Check:
        """The check whose state follows from its interval; without one it is ``open``.

        >>> Check.of(0.9, 0.85, 0.94, threshold=0.8, n_items=60, text="JSS 0.900").state
        'pass'
        """
        state: State = "open"
        if ci_low is not None and ci_low > threshold:
            state = "pass"
        elif ci_high is not None and ci_high < threshold:
            state = "fail"
        return cls(state, estimate, ci_low, ci_high, threshold, n_items, text, details=details)

    @classmethod
    def unmeasured(
        cls, threshold: float, text: str, *, n_items: int = 0, applies: bool = True
    ) -> Check:
        """A check without an estimate; ``text`` says what to add.

        >>> Check.unmeasured(0.7, "add --orders AB,BA").estimate is None
        True
        """
        return cls("unmeasured", None, None, None, threshold, n_items, text, applies)

    def with_reason(self) -> Check:
        """The check; if it is open, its text says why."""
        if self.state != "open":
            return self
        why = f"The interval includes the threshold of {self.threshold:g}"
        if self.ci_low is None:
            why = "A single item or cluster has no interval"
        return replace(self, text=f"{self.text}. {why}")


@dataclass(frozen=True)
class TrustCard:
    """The conclusion on a judge and a task.

    ``because`` names the checks that decide ``trust``, worst first; it is empty for ``use``.
    ``text`` is the conclusion in one sentence without its full stop. ``checks`` has a check for
    each name of `CHECKS`; files of version 0.2 lack some. ``remedy`` is the cheapest remedy that
    makes the judge usable, if there is one.
    """

    trust: Trust
    because: tuple[str, ...]
    text: str
    checks: Mapping[str, Check]
    remedy: str | None = None


def conclude(checks: Mapping[str, Check]) -> TrustCard:
    """The card that follows from the seven checks.

    ``avoid`` if any check fails; else ``unknown`` unless `steady` passes; else ``use`` if every
    check that applies passes; else ``care``. `resistant` and `notices` are exceptions: a judge that
    fails one can be used with care, but without people's labels only one that does not fail
    `notices`. Where they are not measured the text says so and nothing else changes.

    ``checks`` has a `Check` for each name of `CHECKS`, in that order.

    >>> known = Check.of(0.95, 0.9, 0.98, threshold=0.8, n_items=60, text="JSS 0.950")
    >>> missing = Check.unmeasured(0.2, "no gold labels: add some")
    >>> card = conclude({**dict.fromkeys(CHECKS, known), "right": missing})
    >>> card.trust, card.because
    ('care', ('right',))
    """
    in_state: dict[str, list[str]] = {"pass": [], "fail": [], "open": [], "unmeasured": []}
    for name in _SEVERITY:
        if checks[name].applies:
            in_state[checks[name].state].append(name)
    extra = [name for name in ("notices", "resistant") if checks[name].applies]
    if checks["notices"].state == "fail" and checks["right"].state == "unmeasured":
        in_state["fail"].append("notices")
    trust: Trust
    if because := in_state["fail"]:
        trust = "avoid"
    elif checks["steady"].state != "pass":
        trust, because = "unknown", ["steady"]
    elif because := [
        *(name for name in extra if checks[name].state in ("fail", "open")),
        *in_state["open"],
        *in_state["unmeasured"],
    ]:
        trust = "care"
    else:
        trust = "use"
    # Why, and for a judge that may be used how steady it is.
    named = because if trust in ("avoid", "unknown") else ["steady", *because]
    if trust == "use" and checks["right"].state == "pass":
        named = ["steady", "right"]
    if trust in USABLE and checks["responsive"].state == "pass":
        named = [*named, "responsive"]
    if trust == "unknown" and checks["steady"].state == "unmeasured":
        named = [name for name in ("right", "fair") if checks[name].state in ("pass", "open")]
        named += because
    if trust in USABLE:
        if checks["notices"].state == "pass" and checks["right"].state == "unmeasured":
            named = [*named, "notices"]
        named = [*named, *(name for name in extra if checks[name].state == "unmeasured")]
    good, bad = list[str](), list[str]()
    for name in named:
        check = checks[name]
        (good if check.state == "pass" else bad).append(clause_of(name, check))
    text = ", but ".join(join(clauses) for clauses in (good, bad) if clauses)
    return TrustCard(trust, tuple(because), f"{LEADS[trust]}: {text}", dict(checks))


def clause(name: str, state: State, estimate: float | None, noise: str = "measured") -> str:
    """What a check shows, in a few words without its interval.

    >>> clause("steady", "pass", 0.92)
    'rewording changes 8% of its verdicts'
    """
    text = _CLAUSES[name][("pass", "fail", "open", "unmeasured").index(state)]
    if estimate is not None and name == "steady":
        estimate = 1 - estimate
        text = STEADY[noise] if state in ("pass", "fail") else text
    return text.format(percent(estimate))


def clause_of(name: str, check: Check) -> str:
    """The `clause` of a check; of `steady`, with what is known of noise."""
    if name == "right" and "kappa_between_people" in check.details:
        return "people agree too little with each other to judge it"
    if name == "right" and check.details.get("picked_labels"):
        return "the labels are no random part of what it judged"
    if name == "notices" and check.state == "fail" and (check.ci_high or 1) >= check.threshold:
        return f"harmless edits change {percent(check.details.get('harmless'))} of its verdicts"
    if name == "notices" and check.state == "open" and (check.ci_low or 0) > check.threshold:
        return "it is uncertain how often harmless edits change its verdicts"
    text = clause(name, check.state, check.estimate, check.details.get("noise", "measured"))
    if name == "notices" and (kinds := check.details.get("kinds")):
        more = len(kinds) - _KINDS
        named = join([*kinds[:_KINDS], *([f"{more} more"] if more > 0 else [])])
        text = text if check.estimate is not None else "too few kinds of damage fit its task"
        return f"{text} ({named})"
    return text
