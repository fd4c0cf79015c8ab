"""Items asked again by their old value, and anchors that are other items than the rest."""

from __future__ import annotations

import numpy as np
import pytest

from judgesense.comparison.selection import anchors_unlike, chosen_by_value


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("all again", None),
        ("low again", "unchanged"),
        ("high missing", "missing"),
        ("any missing", None),
        ("a shift", None),
        ("two labels", None),
    ],
)
def test_items_that_were_chosen_by_their_old_value(kind: str, found: str | None) -> None:
    rng = np.random.default_rng(3)
    old = rng.choice([1.0, 2, 3, 4, 5], 120, p=[0.1, 0.2, 0.3, 0.25, 0.15])
    moves, none = rng.choice([-1.0, 0, 1], 120, p=[0.2, 0.6, 0.2]), np.array([])
    new, low = np.clip(old + moves, 1, 5), old <= 3
    kept = rng.random(120) < 0.6
    sides = {
        "all again": (old, new, none),
        "low again": (old, np.where(low, new, old), none),
        "high missing": (old[low], new[low], old[~low]),
        "any missing": (old[kept], new[kept], old[~kept]),
        "a shift": (old, np.where(low & (moves > 0), old - 1, old), none),
        "two labels": (np.minimum(old, 2), np.where(low, np.minimum(new, 2), 2), none),
    }[kind]
    assert chosen_by_value(*sides) == found


@pytest.mark.parametrize(
    ("kind", "named"), [("short", "length"), ("kind", "'topic'"), ("alike", None), ("all", None)]
)
def test_anchors_that_differ_from_the_other_items(kind: str, named: str | None) -> None:
    rng = np.random.default_rng(0)
    is_anchor = rng.random(90) < 0.4
    sizes = np.where(is_anchor, 5, 50) if kind == "short" else np.full(90, 20)
    shares = np.where(is_anchor, 0.9, 0.2) if kind == "kind" else np.full(90, 0.5)
    texts = {
        "output": [" ".join(["word"] * size) for size in sizes + rng.integers(0, 4, 90)],
        "topic": ["ab"[each] for each in (rng.random(90) < shares).astype(int)],
    }
    mask = np.ones(90, bool) if kind == "all" else is_anchor
    found = anchors_unlike(texts, ["output"], mask)
    assert found is None if named is None else found is not None and named in found
