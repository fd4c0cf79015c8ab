"""What items of a file share makes clusters of them; what all files have in every row does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from judgesense.files.data import materialise
from judgesense.importers.log import import_log
from judgesense.log.folder import read_run

WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]
Row = dict[str, object]


def text(rng: np.random.Generator, n: int = 14) -> str:
    return " ".join(rng.choice(WORDS, n))


def rows_of(kind: str, n: int = 60) -> list[Row]:
    """60 items, of 12 questions or forms, or with something else in common."""
    rng = np.random.default_rng(0)
    bases = [text(rng, 16) for _ in range(12)]
    rubric, shots = text(rng, 60), [text(rng, 40) for _ in range(3)]
    rows: list[Row] = []
    for at in range(n):
        base, own = bases[at % 12], text(rng)
        filled = base.split()
        for place in (3, 9, 13):
            filled[place] = f"{rng.choice(WORDS)}{at}"
        rows.append(
            {
                "question": {"question": base, "output": own},
                "query": {"user query": base, "context": text(rng), "response": own},
                "filled text": {"output": " ".join(filled)},
                "filled question": {"question": " ".join(filled), "output": own},
                "same text": {"output": base},
                "rubric": {"prompt": rubric, "output": own},
                "rubric in the text": {"output": f"{rubric} {own}"},
                "examples": {"prompt": f"{shots[at % 3]} {own}", "output": text(rng)},
                "few prompts": {"prompt": shots[at % 3], "ticket": own, "output": text(rng)},
                "short texts": {"question": own, "output": "Thank you very much indeed for that."},
                "kinds": {"topic": f"kind number {'abcdef'[at % 6]}", "output": own},
                "instructions": {"instruction": base, "input": own, "output": text(rng)},
            }[kind]
        )
    return rows


@pytest.mark.parametrize(
    ("kind", "clusters"),
    [
        ("question", 12),
        ("query", 12),
        ("filled text", 12),
        ("filled question", 12),
        ("same text", 12),
        ("rubric", 60),
        ("rubric in the text", 60),
        ("examples", 60),
        ("few prompts", 60),
        ("short texts", 60),
        ("kinds", 60),
        ("instructions", 60),
    ],
)
def test_items_that_share_what_was_judged_are_a_cluster(
    tmp_path: Path, kind: str, clusters: int
) -> None:
    rows = [
        {"item_id": f"i{at}", "verdict": "yn"[at % 3 == 0], "label": "yn"[at % 4 == 0], **row}
        for at, row in enumerate(rows_of(kind))
    ]
    file = materialise(rows, tmp_path, "data")
    columns = {"raw_decision": "verdict", "gold": "label", "judge": ":j", "task": ":t"}
    columns |= {"template_id": ":w"}
    import_log(file, "table", tmp_path / "out", columns=columns)
    (judged,) = read_run(tmp_path / "out").judged
    assert len({*judged.log.cluster.tolist()}) == clusters
