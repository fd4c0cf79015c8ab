"""Every threshold behind a conclusion, each with its reason; all other modules import them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from judgesense.errors import JudgeSenseError

STEADY_JSS = 0.8
"""JSS from which a judge counts as steady (JudgeSense, section 3.1)."""


@dataclass(frozen=True)
class Thresholds:
    """The thresholds of the trust card's checks; all can be set.

    A check passes if its whole interval lies above the threshold, and fails if it lies below.
    """

    readable: float = 0.9
    """Share of prompts with a verdict."""
    steady: float = STEADY_JSS
    """JSS: share of pairs of wordings with the same verdict."""
    responsive: float = 1.5
    """How many times as often the answer changes with the question as with its wording.

    Where the right answer surely turns, `TURNED` is the threshold.
    """
    right: float = 0.4
    """Kappa with the gold labels: moderate agreement (Landis & Koch 1977)."""
    fair: float = 0.7
    """Share of items with the same choice in both orders."""
    notices: float = 0.6
    """Share of outputs made wrong on purpose that are marked down, beyond harmless edits."""
    harmless: float = 0.2
    """The largest share of harmless edits of an output that may change its verdict."""
    resistant: float = 0.8
    """Share of right verdicts that hold under the worst kind of attack."""
    confidence: float = 0.95
    """Confidence level of the interval of `steady`, within (0, 1)."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            highest = 1e6 if name == "responsive" else 1
            if not isinstance(value, (int, float)) or not 0 <= value <= highest:
                raise JudgeSenseError(
                    f"the threshold {name} must be a number between 0 and {highest:g}, "
                    f"got {value!r}"
                )
        if not 0 < self.confidence < 1:
            raise JudgeSenseError(
                f"confidence must lie between 0 and 1, got {self.confidence!r}; the default is 0.95"
            )

    def updated(self, values: Mapping[str, object] | None) -> Thresholds:
        """These thresholds with those of a mapping in their place.

        Raises:
            JudgeSenseError: an unknown name, or a value that is no number in the name's range.

        >>> Thresholds().updated({"steady": "0.9"}).steady
        0.9
        """
        names, changes = asdict(self), {}
        for name, value in (values or {}).items():
            if name not in names:
                raise JudgeSenseError(f"no threshold {name!r}; choose one of {', '.join(names)}")
            try:
                changes[name] = float(str(value))
            except ValueError:
                raise JudgeSenseError(
                    f"the threshold {name} must be a number, got {value!r}"
                ) from None
        return replace(self, **changes)


DEFAULTS = Thresholds()

LEAST_COVERAGE = 0.5
"""With fewer of the planned pairs decided, JSS describes a minority: no rank, advice or PASS."""

LOW_KAPPA = 0.2
"""Up to this kappa, a high JSS comes mainly from one label that dominates."""

WORDING_PRIOR = (0.25, 4.0)
"""The prior for how much wordings differ: a standard deviation, and its degrees of freedom.

The standard deviation of a wording's own part in JSS, on the logit scale of JSS. Twelve judges with
8 to 15 wordings (flakyjudge, LLMBar) have 0 to 0.66, median 0.22, root mean square 0.28; with the
demo's weak judge the likelihood is highest at 0.20 and 4. A little more is taken, so that intervals
also hold for wordings whose log-odds of a verdict differ by 0.7 (`benchmarks/conclusions`).
"""

TURNED = 0.5
"""Share of answers that turn where the right answer turns: below it, most of them ignore that."""

OPPOSITE = ("invert", "negat", "opposite")
"""A contrast variant with one of these in its name asks for the opposite of every answer."""

NO_DIFFERENCE = 0.02
"""Wordings, or a JSS and 1, that differ by less are not told apart."""

POLARITY_GAP = 0.1
"""With raw and mapped JSS further apart, an inverted wording decides the raw one."""

EVEN_FIRST = (0.35, 0.65)
"""Between these rates a judge that takes the first option favours neither position."""

MOSTLY_NOISE = 0.5
"""From this share of the flips on, flips of the repeated prompt are the main cause."""

MANY_UNDECIDED = 0.05
"""With more pairs lacking a verdict, the advice states the bounds of JSS."""

MANY_CUT_OFF = 0.05
"""From this share of answers cut off on, the token cap is what to change."""

LOW_OPTION_MASS = 0.5
"""Below this median probability of all options together, scores are forced choices."""

FEW_CLUSTERS = 10
"""Fewer independent items support no conclusion, however many pairs they form."""

FEWEST_FOR_REMEDIES = 2
"""With fewer independent items, nothing is left to fit a remedy to."""

MARGIN = 0.05
"""A loss of at most this share counts as no worse than the baseline."""

SIGNIFICANT = 0.05
"""The error of a claim, after correction for its family: one that is wrong is made this often."""
