from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from judgesense.tasks import Item
from judgesense_dataset.audit import audit
from judgesense_dataset.audit.shortcuts import BAND, GradedText, Shortcut, shortcuts
from judgesense_dataset.build import build_dataset
from judgesense_dataset.embedded import TEMPLATES
from judgesense_dataset.matching import match_items
from judgesense_dataset.templates import TaskTemplates, load_templates

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def known() -> dict[str, TaskTemplates]:
    return load_templates(TEMPLATES)


def text(rng: np.random.Generator, n: int) -> str:
    return " ".join("".join(rng.choice(list(LETTERS), 5)) for _ in range(n)) + "."


def longer_wins(n: int, share: float, seed: int = 0) -> list[Item]:
    """Preferences for the longer of two answers with this probability; A wins half of them."""
    rng = np.random.default_rng(seed)
    items = []
    for at in range(n):
        short, long = (text(rng, int(k)) for k in sorted(rng.choice(np.arange(5, 40), 2, False)))
        best, other = (long, short) if rng.random() < share else (short, long)
        gold = "AB"[at % 2]
        a, b = (best, other) if gold == "A" else (other, best)
        fields = {"query": text(rng, 6), "response_a": a, "response_b": b}
        items.append(Item(f"i{at}", "preference", fields, gold))
    return items


def cases(items: list[Item]) -> list[GradedText]:
    return [
        GradedText(
            item.item_id, item.gold or "",
            (item.fields["response_a"], item.fields["response_b"]), frozenset(),
        )
        for item in items
    ]  # fmt: skip


def test_a_length_shortcut_is_measured() -> None:
    length = shortcuts(cases(longer_wins(200, 0.8)), ("A", "B"))["length"]
    assert not length.at_chance
    assert length.accuracy == pytest.approx(0.8, abs=0.06)
    # Independent items: Wilson's interval on 200.
    assert length.accuracy - length.ci_low == pytest.approx(0.06, abs=0.01)


def test_single_texts_are_scored_by_pairs_of_items() -> None:
    # Of the nine pairs YES x NO, the longer text is YES in five and ties in one.
    lengths = {"YES": (4, 6, 8), "NO": (3, 6, 7)}
    graded = [
        GradedText(f"{gold}{n}", gold, ("x" * n,), frozenset())
        for gold, found in lengths.items()
        for n in found
    ]
    assert shortcuts(graded, ("YES", "NO"))["length"].accuracy == pytest.approx(5.5 / 9)


@pytest.mark.parametrize(("low", "at_chance"), [(0.49, True), (0.51, False)])
def test_a_feature_outside_the_band_counts_only_if_its_interval_says_so(
    low: float, at_chance: bool
) -> None:
    assert Shortcut(0.6, low, 0.7).at_chance is at_chance
    assert Shortcut(BAND[1], low, 0.7).at_chance


def test_matching_takes_the_shortcut_away_and_keeps_what_was_asked(
    known: dict[str, TaskTemplates],
) -> None:
    pool = longer_wins(400, 0.75)
    matched = match_items(known["preference"], pool, 120, 0)
    assert len({item.item_id for item in matched.items}) == 120
    assert Counter(item.gold for item in matched.items) == {"A": 60, "B": 60}
    found = shortcuts(cases(matched.items), ("A", "B"))
    assert all(BAND[0] <= one.accuracy <= BAND[1] for one in found.values())
    assert match_items(known["preference"], pool, 120, 0) == matched
    assert match_items(known["preference"], pool, 120, 1) != matched


def test_matching_gives_fewer_items_where_no_more_can_be_balanced(
    known: dict[str, TaskTemplates],
) -> None:
    pool = longer_wins(200, 0.8)
    short = sum(
        (len(i.fields["response_a"]) < len(i.fields["response_b"])) == (i.gold == "A") for i in pool
    )
    matched = match_items(known["preference"], pool, 150, 0)
    # The rarer kind is at least 0.44 of a set in the band.
    assert 60 <= len(matched.items) <= short / BAND[0]
    assert f"{len(matched.items)} of 200" in matched.notes[0]
    assert "150 were requested" in matched.notes[0]


@pytest.mark.slow
def test_built_sets_have_no_shortcut(mirror: Path, tmp_path: Path) -> None:
    build_dataset(["all"], tmp_path / "d", mirror=mirror, items=250, verdicts=False)
    found = audit(tmp_path / "d")
    assert not found.failed
    for task in found.tasks.values():
        assert not any("shortcut" in finding.code for finding in task.findings)


def graded(counts: dict[str, int], seed: int = 0) -> list[Item]:
    """Summaries at each level; those of a higher level tend to be longer."""
    rng = np.random.default_rng(seed)
    return [
        Item(
            f"s{level}-{at}",
            "coherence",
            {"summary": text(rng, int(rng.integers(20, 40)) + 2 * int(level))},
            level,
        )
        for level, n in counts.items()
        for at in range(n)
    ]


@pytest.mark.parametrize(
    ("n", "levels"),
    [
        (120, {"1": 20, "2": 25, "3": 25, "4": 25, "5": 25}),
        (3, {"1": 1, "2": 1, "3": 1}),
    ],
)
def test_a_scarce_level_does_not_make_the_set_small(
    known: dict[str, TaskTemplates], n: int, levels: dict[str, int]
) -> None:
    pool = graded({"1": 20, "2": 80, "3": 99, "4": 99, "5": 80})
    matched = match_items(known["coherence"], pool, n, 0)
    assert Counter(item.gold for item in matched.items) == levels
