"""What may not change a figure: names, order and spelling; and what changes only the counts."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import judgesense
from judgesense.errors import JudgeSenseError

Row = dict[str, Any]
QUICK = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SPELLINGS = ("{}", " {} ", "**{}**", "{}.", '"{}"', "{}\u200b")


def figures(rows: list[Row], **options: Any) -> dict[str, Any]:
    """What a check of rows says: people's figures and the checks of the first card."""
    with tempfile.TemporaryDirectory() as folder:
        result = judgesense.check(rows, out=Path(folder, "out"), note=str, **options)
        (entry,) = result.people
        checks = result.trust[0]["checks"]
        return {
            **{name: entry[name] for name in ("n", "accuracy")},
            "kappa": None if entry["kappa"] is None else round(entry["kappa"], 9),
            "readable": checks["readable"]["estimate"],
            "rows": checks["readable"]["n_items"],
            "fair": checks["fair"]["estimate"],
        }


@st.composite
def tables(draw: st.DrawFn) -> list[Row]:
    """Verdicts and labels on some items, of both classes."""
    pairs = draw(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=6, max_size=25))
    pairs += [(True, True), (False, False), (True, False)]
    words = draw(st.sampled_from([("PASS", "FAIL"), ("yes", "no"), ("correct", "incorrect")]))
    return [
        {"id": f"q{n}", "text": f"text {n}", "verdict": words[not a], "human": words[not b]}
        for n, (a, b) in enumerate(pairs)
    ]


@pytest.mark.slow
@QUICK
@given(tables(), st.randoms(use_true_random=False))
def test_spelling_order_and_names_change_no_figure(rows: list[Row], chance: random.Random) -> None:
    before = figures(rows)
    spelled = []
    for row in rows:
        word = chance.choice([str.upper, str.lower, str.title])(row["verdict"])
        spelled.append({**row, "verdict": chance.choice(SPELLINGS).format(word)})
    assert figures(spelled) == before
    shuffled = [dict(chance.sample(list(row.items()), len(row))) for row in rows]
    columns = list(shuffled[0])
    shuffled = [{name: row[name] for name in columns} for row in shuffled]
    chance.shuffle(shuffled)
    assert figures(shuffled) == before
    names = {"id": "item_id", "text": "reply", "verdict": "judge_label", "human": "Human Label"}
    assert figures([{names[key]: value for key, value in row.items()} for row in rows]) == before


@pytest.mark.slow
@QUICK
@given(tables(), st.integers(0, 4))
def test_copies_and_an_index_change_nothing_and_failed_rows_only_counts(
    rows: list[Row], extra: int
) -> None:
    before = figures(rows)
    assert figures([*rows, *rows[:extra]]) == before
    assert figures([{"Unnamed: 0": n, **row} for n, row in enumerate(rows)]) == before
    failed = [
        {"id": f"x{n}", "text": "other", "verdict": "Error code: 429 - slow down", "human": "yes"}
        for n in range(extra)
    ]
    label = rows[0]["human"]
    after = figures([*rows, *({**row, "human": label} for row in failed)])
    assert {**after, "readable": 1.0, "rows": len(rows)} == before
    assert after["readable"] == pytest.approx(len(rows) / (len(rows) + extra))


CHOICES = st.sampled_from(["first", "second", "tie"])
SWAPPED = {"first": "second", "second": "first", "tie": "tie"}


@QUICK
@given(st.lists(st.tuples(CHOICES, CHOICES, st.sampled_from("ABt")), min_size=6, max_size=20))
def test_swapping_all_orders_changes_no_figure(items: list[tuple[str, str, str]]) -> None:
    items = [*items, ("first", "second", "A"), ("second", "first", "B"), ("tie", "first", "t")]
    people = {"A": "model_a", "B": "model_b", "t": "tie"}

    def rows(orders: tuple[str, str]) -> list[Row]:
        return [
            {"pair_id": n, "order": order, "verdict": word, "winner_human": people[label]}
            for n, (one, two, label) in enumerate(items)
            for order, word in zip(orders, (one, two), strict=True)
        ]

    before = figures(rows(("AB", "BA")), human="winner_human")
    # What was shown first in AB is shown second in BA: the same choices of the same outputs.
    swapped = [
        {
            **row,
            "order": {"AB": "BA", "BA": "AB"}[row["order"]],
            "verdict": SWAPPED[row["verdict"]],
        }
        for row in rows(("AB", "BA"))
    ]
    assert figures(swapped, human="winner_human") == before
    same = sum(SWAPPED[one] == two for one, two, _ in items) / len(items)
    assert before["fair"] == pytest.approx(same)


@settings(QUICK, max_examples=4)
@given(tables())
def test_commands_read_the_same_shares(rows: list[Row]) -> None:
    found = figures(rows)
    good = rows[0]["verdict"] if rows[0]["verdict"] in ("PASS", "yes", "correct") else None
    good = good or {"FAIL": "PASS", "no": "yes", "incorrect": "correct"}[rows[0]["verdict"]]
    verdicts = judgesense.read_verdicts(rows, columns={"gold": "human"})
    assert len(verdicts) == found["n"]
    assert (verdicts.verdict == verdicts.gold).mean() == pytest.approx(found["accuracy"])
    share = judgesense.estimate(rows, positive=good).systems[0]["naive"]
    assert share == pytest.approx(sum(row["verdict"] == good for row in rows) / len(rows))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30))
def test_damaged_files_are_read_or_refused(seed: int, tmp_path: Path) -> None:
    """A field that is missing, null, nested, of another type or huge ends in no traceback."""
    chance = random.Random(seed)
    good: list[list[Row]] = [
        [{"id": n, "verdict": "PF"[n % 2], "human": "PF"[n % 3 == 0]} for n in range(8)],
        [
            {"id": n, "order": o, "verdict": "AB"[n % 2], "winner": "model_a", "model_a": "x"}
            for n in range(4)
            for o in ("AB", "BA")
        ],
        [
            {
                "trace_id": n,
                "assessments": [
                    {
                        "name": "tone",
                        "source": {"source_type": kind},
                        "feedback": {"value": "yes" if n % 2 else "no"},
                    }
                    for kind in ("HUMAN", "LLM_JUDGE")
                ],
            }
            for n in range(6)
        ],
        [{"id": n, "score": n / 10, "human_score": n / 9} for n in range(9)],
        [
            {"id": n, "judge_x": n % 2, "human_x": 1, "judge_y": 1, "human_y": n % 2}
            for n in range(9)
        ],
    ]
    values = [
        None,
        "",
        [],
        {},
        {"a": 1},
        [1],
        "x" * 9999,
        1e300,
        -1,
        True,
        "Error code: 500",
        "N/A",
    ]
    for number in range(10):
        rows = [dict(row) for row in chance.choice(good)]
        for _ in range(chance.randint(1, 3)):
            row = chance.choice(rows)
            name = chance.choice(list(row) or ["id"])
            if chance.random() < 0.3:
                row.pop(name, None)
            else:
                row[name] = chance.choice(values)
        try:
            judgesense.check(rows, out=tmp_path / str(number), runs=tmp_path, note=str)
        except JudgeSenseError:
            continue  # A question, or what is missing.
