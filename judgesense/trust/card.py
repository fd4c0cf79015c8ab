"""The trust card: five checks on a judge and a task, and the one conclusion drawn from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Literal

State = Literal["pass", "fail", "open", "unmeasured"]
Trust = Literal["use", "care", "avoid", "unknown"]

CHECKS = ("readable", "steady", "responsive", "right", "fair")
"""The checks, in the order in which they are shown."""

TRUST = ("use", "care", "unknown", "avoid")
"""The values of ``trust``, best first."""

QUESTIONS: Mapping[str, str] = MappingProxyType({
    "readable": "does it give verdicts?",
    "steady": "same verdict after rewording?",
    "responsive": "does another question get another answer?",
    "right": "does it agree with people?",
    "fair": "same choice in both orders?",
})  # fmt: skip
"""What each check asks."""

_SEVERITY = ("readable", "fair", "right", "responsive", "steady")
"""Failed checks, worst first: one that fails often explains those after it."""

LEADS: Mapping[str, str] = MappingProxyType({
    "use": "use",
    "care": "use with care",
    "avoid": "avoid",
    "unknown": "not known yet",
})  # fmt: skip
"""How the text of a card begins."""


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
    details: Mapping[str, Any] = field(default_factory=dict)
    """More figures by name: see each check in `judgesense.trust.checks`."""

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
        **details: Any,
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

    def to_dict(self) -> dict[str, Any]:
        """The check as in ``report.json``."""
        return asdict(self)


@dataclass(frozen=True)
class TrustCard:
    """The conclusion on a judge and a task.

    ``because`` names the checks that decide ``trust``, worst first; it is empty for ``use``.
    ``text`` is the conclusion in one sentence without its full stop.
    """

    trust: Trust
    because: tuple[str, ...]
    text: str
    checks: Mapping[str, Check]

    def to_dict(self) -> dict[str, Any]:
        """The card as in ``report.json``."""
        return {
            "trust": self.trust,
            "because": list(self.because),
            "text": self.text,
            "checks": {name: self.checks[name].to_dict() for name in CHECKS},
        }


def no_interval(n_items: int) -> str:
    """Why an open check has no interval, and what to add.

    >>> no_interval(1)
    'a single item has no interval: add items'
    """
    if n_items == 1:
        return "a single item has no interval: add items"
    return "items of a single cluster have no interval: add items of other clusters"


def conclude(checks: Mapping[str, Check]) -> TrustCard:
    """The card that follows from the five checks.

    ``avoid`` if any check fails; else ``unknown`` unless `steady` passes; else ``use`` if every
    check that applies passes; else ``care``.

    Args:
        checks: a `Check` for each name of `CHECKS`.

    Raises:
        ValueError: a check is missing, or has an unknown name.

    >>> known = Check.of(0.95, 0.9, 0.98, threshold=0.8, n_items=60, text="JSS 0.950")
    >>> missing = Check.unmeasured(0.2, "no gold labels: add some")
    >>> card = conclude({**dict.fromkeys(CHECKS, known), "right": missing})
    >>> card.trust, card.because
    ('care', ('right',))
    """
    if set(checks) != set(CHECKS):
        raise ValueError(f"checks has {sorted(checks)}: pass one for each of {', '.join(CHECKS)}")
    in_state: dict[str, list[str]] = {"pass": [], "fail": [], "open": [], "unmeasured": []}
    for name in _SEVERITY:
        if checks[name].applies:
            in_state[checks[name].state].append(name)
    trust: Trust
    if because := in_state["fail"]:
        trust = "avoid"
    elif checks["steady"].state != "pass":
        trust, because = "unknown", ["steady"]
    elif because := [*in_state["open"], *in_state["unmeasured"]]:
        trust = "care"
    else:
        trust = "use"
    return TrustCard(
        trust=trust,
        because=tuple(because),
        text=_text(trust, because, checks),
        checks=MappingProxyType({name: checks[name] for name in CHECKS}),
    )


def _text(trust: Trust, because: list[str], checks: Mapping[str, Check]) -> str:
    """The conclusion, why, and for a judge that may be used how steady it is."""
    told = because if trust in ("avoid", "unknown") else ["steady", *because]
    if trust == "use":
        told = [name for name in ("steady", "right") if checks[name].state == "pass"]
    return f"{LEADS[trust]}: {'; '.join(checks[name].text for name in told)}"
