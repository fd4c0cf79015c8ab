"""What is compared of many wordings: a sample that grows no faster than their number."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np
import pytest

from judgesense.log.array import AnswerArray, Wording
from judgesense.log.pairs import MOST_COMPARED, pairs_of, steps_of
from judgesense.log.rows import TaskWords, read_rows
from judgesense.log.schema import SCHEMA
from judgesense.measure.card import CHECKS, Check, conclude
from judgesense.measure.remedies import Trial
from judgesense.measure.thresholds import DEFAULTS
from judgesense.recipes.fitting import MOST_PANELS, measurable, n_panels, panels, recipe_named


def drawn(wordings: int, items: int = 60, spread: float = 1.0) -> AnswerArray:
    """Answers in two options; with ``spread``, wordings differ in how often they are right."""
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, items)
    share = 0.75 + 0.2 * spread * np.linspace(-1, 1, wordings)
    right = rng.random((items, wordings)) < share
    codes = np.where(right, gold[:, None], 1 - gold[:, None])[:, :, None]
    return AnswerArray(
        task=TaskWords("t", ("YES", "NO"), comparative=False),
        scoring="generate",
        items=np.arange(items).astype(str).astype(object),
        clusters=np.arange(items),
        gold=gold,
        wordings=tuple(Wording(f"w{n}", raw=("YES", "NO")) for n in range(wordings)),
        orders=("-",),
        verdicts=codes,
        logprobs=np.log(np.where(np.arange(2) == codes[..., None], 0.999, 0.001)),
        has_probabilities=False,
    )


@pytest.mark.parametrize("wordings", [6, 12, 13, 40, 500])
def test_panels_are_distinct_and_few(wordings: int) -> None:
    array = drawn(wordings, items=5)
    for recipe in measurable(array):
        size = len(recipe.wordings)
        if recipe.best_wording or size == 1:
            continue
        found = panels(array, recipe)
        assert len({frozenset(panel) for panel in found}) == len(found)
        assert all(len(set(panel)) == size for panel in found)
        assert len(found) == max(wordings // size, min(MOST_PANELS, comb(wordings, size)))
        assert found == panels(array, recipe)


def test_the_interval_of_a_panels_gain_allows_for_the_panels_not_measured() -> None:
    widths = {}
    for spread in (0.0, 1.0):
        array = drawn(9, items=400, spread=spread)
        checks = {name: Check.unmeasured(0.0, "not tried") for name in CHECKS}
        trial = Trial(array, DEFAULTS, conclude(checks))
        recipe = recipe_named("panel of 3", array)
        assert n_panels(array, recipe) == 84
        row = trial.figures(recipe)
        widths[spread] = row.gain_ci_high - row.gain_ci_low
        assert row.gain_ci_low < row.gain < row.gain_ci_high
    few = drawn(9, items=400)
    every = replace(few, verdicts=few.verdicts[:, :3], logprobs=few.logprobs[:, :3])
    every = replace(every, wordings=few.wordings[:3])
    assert n_panels(every, recipe_named("panel of 3", every)) == 1
    assert widths[1.0] > widths[0.0]


@pytest.mark.parametrize("wordings", [MOST_COMPARED, 300])
def test_of_many_wordings_each_is_compared_about_equally_often(wordings: int) -> None:
    import pyarrow as pa

    rows = [
        {
            "judge": "j",
            "task": "t",
            "scoring": "generate",
            "item_id": item,
            "template_id": f"w{n:03}",
            "order": "-",
            "repeat": 0,
            "decision": "YES" if n % 3 else "NO",
            "raw_decision": "YES" if n % 3 else "NO",
            "status": "ok",
        }
        for item in ("one", "two")
        for n in range(wordings)
    ]
    log, _, _ = read_rows(pa.Table.from_pylist(rows, schema=SCHEMA), None, {})
    pairs = pairs_of(log, 0)
    both = list(zip(pairs.template_a.tolist(), pairs.template_b.tolist(), strict=True))
    per_item = len(both) // 2
    assert len({frozenset(pair) for pair in both}) == per_item
    if wordings == MOST_COMPARED:
        assert per_item == len(list(combinations(range(wordings), 2)))
    else:
        steps = steps_of(wordings)
        assert per_item == wordings * steps - steps * (steps + 1) // 2
        often = Counter(template for pair in both[:per_item] for template in pair)
        assert set(often.values()) <= set(range(steps, 2 * steps + 1)) or len(often) == wordings
