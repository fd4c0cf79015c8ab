"""``badge.svg``: a run's trust values, for a README or a pull request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from judgesense.reporting.document import environment
from judgesense.reporting.style import MARKS
from judgesense.text import join, short_names, shorten

BADGE_FILE = "badge.svg"

# White text reads at 4.5:1 on each.
_COLOURS = {"use": "#0063A0", "care": "#8A6100", "unknown": "#8C4173", "avoid": "#B34700"}
_WORST_FIRST = ("avoid", "unknown", "care", "use")
_CHARACTER = 6.6


def render_badge(report: Mapping[str, Any]) -> str:
    """The badge of a report as SVG: who is judged, and the trust values, worst first.

    One judge on one task shows its value; several show how many have each. The title, which
    screen readers and a pointer show, lists every judge and task. The file requests nothing.

    >>> card = {"judge": "j@1", "task": "relevance", "scoring": "options", "trust": "avoid"}
    >>> "relevance" in render_badge({"trust": [card]})
    True
    """
    cards = report["trust"]
    names = short_names({card["judge"] for card in cards})
    counts = Counter(card["trust"] for card in cards)
    judges = list(dict.fromkeys(names[card["judge"]] for card in cards))
    tasks = list(dict.fromkeys(card["task"] for card in cards))
    who = judges[0] if len(judges) == 1 else f"{len(judges)} judges"
    on = f" on {tasks[0]}" if len(tasks) == 1 else ""
    label = shorten(f"{who}{on}" if cards else "LLM judge", 48)
    found = [trust for trust in _WORST_FIRST if counts[trust]]
    worst = found[0] if found else "unknown"
    shown = [trust if len(found) == 1 else f"{trust} {counts[trust]}" for trust in found]
    value = f"{MARKS[worst]} {', '.join(shown) or worst}"
    told = [f"{names[c['judge']]} on {c['task']} ({c['scoring']}): {c['trust']}" for c in cards]
    listed = join(told) if told else "No judge was measured"
    template = environment().get_template(BADGE_FILE)
    return template.render(
        title=f"JudgeSense trust. {listed}.",
        label=label,
        value=value,
        label_width=_width(label),
        value_width=_width(value),
        colour=_COLOURS[worst],
    )


def _width(text: str) -> int:
    return round(len(text) * _CHARACTER) + 12
