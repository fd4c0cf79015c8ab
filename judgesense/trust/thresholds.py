"""Every threshold behind a conclusion, each with its reason; all other modules import them."""

from __future__ import annotations

STEADY_JSS = 0.8
"""JSS from which a judge counts as reliable (JudgeSense, section 3.1)."""

LEAST_COVERAGE = 0.5
"""With fewer of the planned pairs decided, JSS describes a minority: no rank, advice or PASS."""

LOW_KAPPA = 0.2
"""Up to this kappa, a high JSS comes mainly from one label that dominates."""

NO_DIFFERENCE = 0.02
"""Wordings, or a JSS and 1, that differ by less are not told apart."""

FEWEST_WORDINGS = 3
"""Below this number no wording can stand out from the others."""

POLARITY_GAP = 0.1
"""With raw and mapped JSS further apart, an inverted wording decides the raw one."""

SAME_CHOICE = 0.8
"""Below this share of identical choices in both orders, a judge gets a warning."""

FOLLOWS_POSITION = 0.5
"""Below this share of identical choices, most verdicts follow the position of an option."""

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

MOST_ITEMS = 100_000
"""A larger number of items to settle a JSS is no plan."""

SIGNIFICANT = 0.05
"""Corrected p-value below which two judges differ."""
