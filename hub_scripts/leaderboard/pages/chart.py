"""The chart above the table: what judges add to a constant answer, and how steady they are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

from hub_scripts.leaderboard.board import BoardEntry
from judgesense.trust.card import TRUST
from judgesense.trust.thresholds import STEADY_JSS

STEP = 0.2
"""Between two grid lines, on both axes."""

MOST_NAMED = 40
"""Beyond that many judges there are no intervals, and names show on hover only."""

LONGEST_SHARED = 44
"""Characters of the name that judges at the same place share."""

_LEFT, _RIGHT, _TOP, _FOOT = 0.5, 98.0, 9.0, 91.0
"""The plot's edges in percent of the chart, so that text keeps its size at every width."""


def chart(entries: Iterable[BoardEntry]) -> dict[str, Any] | None:
    """What ``chart.html`` draws: ``points``, ``zone`` (usable judges) and the grid, in percent.

    x is how much more often a judge is right than a constant answer, y the same verdict after
    rewording, each with its interval. None if no judge has both.
    """
    every = [entry for entry in entries if not entry.is_published]
    known = [(entry, *place) for entry in every if (place := _place(entry)) is not None]
    if not known:
        return None
    first = min(-STEP, STEP * math.floor(min(x for _, x, _ in known) / STEP))
    last = max(STEP, STEP * math.ceil(max(x for _, x, _ in known) / STEP))
    ends = [entry.checks["steady"]["ci_low"] for entry, _, _ in known]
    lowest = min([0.6, *(y for _, _, y in known), *(end for end in ends if end is not None)])
    lowest = max(0.0, STEP * math.floor(lowest / STEP + 1e-9))

    def across(value: float) -> float:
        inside = min(max(value, first), last)
        return _LEFT + (_RIGHT - _LEFT) * (inside - first) / (last - first)

    def down(value: float) -> float:
        inside = min(max(value, lowest), 1.0)
        return _FOOT - (_FOOT - _TOP) * (inside - lowest) / (1.0 - lowest)

    scorings = Counter(entry.judge for entry, _, _ in known)
    points = []
    for entry, x, y in known:
        steady, fair, right = (entry.checks[name] for name in ("steady", "fair", "right"))
        details = right["details"]
        called = entry.judge.partition("@")[0] or entry.judge
        points.append(
            {
                "entry": entry,
                "called": f"{called} ({entry.scoring})" if scorings[entry.judge] > 1 else called,
                "x": across(x),
                "y": down(y),
                "x_span": _span(details, "beats_constant_", across),
                "y_span": _span(steady, "", down),
                "hollow": fair["state"] == "fail",
                "tone": (entry.trust or {})["trust"],
                "shown": None,
            }
        )
    points.sort(key=lambda point: point["y"])
    named = len(points) <= MOST_NAMED
    _name(points if named else [])
    return {
        "points": points,
        "named": named,
        "tones": TRUST,
        "hollow": any(point["hollow"] for point in points),
        "left_out": len({entry.judge for entry in every} - {entry.judge for entry, *_ in known}),
        "zone": (across(0), down(1), across(last) - across(0), down(STEADY_JSS) - down(1)),
        "columns": [(across(at), _points(at)) for at in _ticks(first, last)],
        "rows": [(down(at), f"{100 * at:.0f}%") for at in _ticks(lowest, 1.0)],
        "edges": (_LEFT, _RIGHT, _TOP, _FOOT),
    }


def _name(points: list[dict[str, Any]]) -> None:
    """Give every point the name to show; judges that hide each other share one."""
    left = list(points)
    while left:
        first = left.pop(0)
        same = [p for p in left if abs(p["x"] - first["x"]) < 0.8 and abs(p["y"] - first["y"]) < 2]
        left = [point for point in left if point not in same]
        names = [first["called"], *(point["called"] for point in same)]
        together = ", ".join(names)
        if len(together) > LONGEST_SHARED:
            together = f"{names[0]} and {len(same)} more" if same else names[0]
        first["shown"] = together


def _place(entry: BoardEntry) -> tuple[float, float] | None:
    """What a judge adds to a constant answer, and its JSS; None without gold labels or JSS."""
    if not entry.checks:
        return None
    x = entry.checks["right"]["details"].get("beats_constant")
    y = entry.checks["steady"]["estimate"]
    return None if x is None or y is None else (x, y)


def _span(values: Any, prefix: str, scale: Any) -> tuple[float, float] | None:
    low, high = values.get(f"{prefix}ci_low"), values.get(f"{prefix}ci_high")
    return None if low is None or high is None else (scale(low), scale(high))


def _ticks(low: float, high: float) -> list[float]:
    return [low + STEP * n for n in range(round((high - low) / STEP) + 1)]


def _points(share: float) -> str:
    whole = round(100 * share)
    return f"{whole:+d}".replace("-", "−") if whole else "0"
