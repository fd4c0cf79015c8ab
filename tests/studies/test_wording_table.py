"""Which wording to use: one that gets no verdict out of a judge is no better for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from judgesense.decisions import SCHEMA
from judgesense.studies.common.measures import wording_table

N = 50


def _log(said: Mapping[str, list[str]], gold: str | None = "YES") -> pa.Table:
    """A judge's decisions on the same items under each wording."""
    rows: list[dict[str, Any]] = [
        {
            "judge": "a@1", "task": "fact", "scoring": "generate", "item_id": f"i{n}",
            "cluster_id": f"i{n}", "template_id": template, "order": "-", "repeat": 0,
            "prompt_id": f"{template} {n}", "raw_decision": word, "decision": word,
            "status": word.lower() if word == "UNCLEAR" else "ok", "gold": gold,
            "truncated": False,
        }
        for template, words in said.items()
        for n, word in enumerate(words)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=SCHEMA)


ALMOST_RIGHT = ["NO" if n == 7 else "YES" for n in range(N)]
SELDOM_HEARD = ["YES" if n % 3 == 0 else "UNCLEAR" for n in range(N)]


def _columns(log: pa.Table, *names: str) -> dict[str, tuple[Any, ...]]:
    table, _ = wording_table(log)
    return {row["template"]: tuple(row[name] for name in names) for row in table.rows}


def test_a_wording_that_mostly_gets_no_verdict_is_not_the_one_to_use() -> None:
    log = _log({"seldom": SELDOM_HEARD, "plain": ALMOST_RIGHT})
    assert wording_table(log)[1] == {("a", "fact", "generate"): "plain"}
    assert _columns(log, "score", "undecided", "n_prompts", "use") == {
        "seldom": (pytest.approx(17 / N), pytest.approx(33 / N), N, False),
        "plain": (pytest.approx(49 / N), 0.0, N, True),
    }


def test_without_gold_an_undecided_answer_disagrees_with_the_majority_of_the_others() -> None:
    right = ["YES"] * N
    log = _log({"one": right, "two": right, "seldom": SELDOM_HEARD, "off": ALMOST_RIGHT}, gold=None)
    assert _columns(log, "score_type", "score", "n_prompts") == {
        "one": ("agreement", 1.0, N - 1),  # of item 7 the others have two opinions, one each
        "two": ("agreement", 1.0, N - 1),
        "seldom": ("agreement", pytest.approx(17 / N), N),
        "off": ("agreement", pytest.approx(49 / N), N),
    }


def test_where_the_best_wording_leaves_most_undecided_none_is_recommended() -> None:
    table, chosen = wording_table(_log({"seldom": SELDOM_HEARD, "mute": ["UNCLEAR"] * N}))
    assert chosen == {}
    assert not any(row["use"] for row in table.rows)
