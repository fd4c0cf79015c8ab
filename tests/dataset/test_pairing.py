"""Designs: which pairs are measured, in which order, and that they depend on nothing but a seed."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgesense.errors import JudgeSenseError
from judgesense.tasks import Item
from judgesense_dataset.embedded import TEMPLATES
from judgesense_dataset.pairing import balanced_cells, build, build_from_files
from judgesense_dataset.templates import TaskTemplates, load_templates


@pytest.fixture(scope="module")
def templates() -> dict[str, TaskTemplates]:
    return load_templates(TEMPLATES)


def items_of(entry: TaskTemplates, n: int) -> list[Item]:
    labels = entry.task.labels
    return [
        Item(
            item_id=f"{entry.task.name}-{i}",
            task=entry.task.name,
            fields={field: f"{field} of item {i}" for field in entry.fields},
            gold=labels[i % len(labels)],
        )
        for i in range(n)
    ]


@settings(deadline=None, max_examples=200)
@given(rows=st.integers(1, 40), columns=st.integers(1, 21), data=st.data())
def test_any_number_of_balanced_cells_is_distinct_and_even_on_both_sides(
    rows: int, columns: int, data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, rows * columns))
    cells = balanced_cells(rows, columns, n, np.random.default_rng(data.draw(st.integers(0, 99))))
    assert len(set(cells)) == n
    for axis, size in ((0, rows), (1, columns)):
        counts = Counter(cell[axis] for cell in cells)
        evenness = [counts[index] for index in range(size)]
        assert max(evenness) - min(evenness) <= 1


def test_the_full_design_pairs_all_templates_of_every_item_in_both_orders(
    templates: dict[str, TaskTemplates],
) -> None:
    built = build(templates, items_of(templates["relevance"], 4), design="full")
    assert built.pairs.num_rows == 4 * 10 * 2
    assert built.prompts.num_rows == 4 * 5 * 2
    ids = [template.template_id for template in templates["relevance"].templates]
    joined = set(
        zip(
            built.pairs["template_a"].to_pylist(),
            built.pairs["template_b"].to_pylist(),
            strict=True,
        )
    )
    assert joined == set(combinations(ids, 2))


def test_gold_follows_the_order_and_each_gold_is_shown_first_half_the_time(
    templates: dict[str, TaskTemplates],
) -> None:
    built = build(templates, items_of(templates["relevance"], 125), seed=5)
    prompts = {
        (row["item_id"], row["order"], row["template_id"]): row for row in built.prompts.to_pylist()
    }
    for pair in built.pairs.to_pylist():
        row = prompts[pair["item_id"], pair["order"], pair["template_a"]]
        stored = "AB"[int(pair["item_id"].split("-")[1]) % 2]
        assert row["gold"] == (stored if pair["order"] == "AB" else "BA"["AB".index(stored)])
        first = row["text"].index("passage_a of"), row["text"].index("passage_b of")
        assert (first[0] < first[1]) == (pair["order"] == "AB")
    orders = Counter(
        (pair["item_id"].split("-")[1][-1] in "02468", pair["order"])
        for pair in built.pairs.to_pylist()
    )
    assert max(orders.values()) - min(orders.values()) <= 2
    within = Counter(
        (pair["template_a"], pair["template_b"], pair["order"]) for pair in built.pairs.to_pylist()
    )
    assert min(within.values()) >= 5
    assert max(within.values()) <= 8


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"design": "random"}, "'random'.*balanced, full"),
        ({"orders": "BB"}, "counterbalanced, both, AB, BA"),
        ({"pairs": 251}, "allow 1 to 250"),
        ({"pairs": 0}, "allow 1 to 250"),
        ({"design": "full", "pairs": 5}, "leave out the number"),
    ],
)
def test_a_design_that_cannot_be_had_says_what_can(
    templates: dict[str, TaskTemplates], arguments: dict[str, object], says: str
) -> None:
    with pytest.raises(JudgeSenseError, match=says):
        build(templates, items_of(templates["factuality"], 25), **arguments)  # type: ignore[arg-type]


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"task": "humour", "summary": "s"}, "names the unknown task 'humour'"),
        ({"summary": "s"}, "is missing or empty"),
    ],
)
def test_a_row_whose_task_is_unknown_is_named_not_dropped(
    tmp_path: Path, row: dict[str, object], says: str
) -> None:
    path = write(tmp_path / "items.jsonl", [{"task": "coherence", "summary": "s"}, row])
    with pytest.raises(JudgeSenseError, match=f"line 2: the 'task' column {says}"):
        build_from_files(TEMPLATES, path)


def test_items_that_do_not_fit_are_named(templates: dict[str, TaskTemplates]) -> None:
    twice = [Item("x", "coherence", {"summary": "s"})] * 2
    with pytest.raises(JudgeSenseError, match="'x' occurs twice"):
        build(templates, twice)
    with pytest.raises(JudgeSenseError, match="the tasks are factuality, coherence"):
        build(templates, [Item("x", "humour", {"summary": "s"})])
    with pytest.raises(JudgeSenseError, match=r"shows \{summary\}, which item 'x' lacks"):
        build(templates, [Item("x", "coherence", {"text": "s"})])
