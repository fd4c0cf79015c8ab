"""The embedded benchmark holds what its page says: counts, balance, and no cheap way to win."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations

import pyarrow.compute as pc
import pytest
import yaml

from judgesense.benchmark import Benchmark
from judgesense.tasks import Item
from judgesense_dataset.embedded import (
    TEMPLATES,
    VERIFIABILITIES,
    embedded_items,
    load_attributes,
    load_embedded,
)
from judgesense_dataset.templates import DATA, load_templates

TASKS = ("factuality", "coherence", "relevance", "preference")
SHOWN = {
    "relevance": ("passage_a", "passage_b"),
    "preference": ("response_a", "response_b"),
}


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    return load_embedded()


@pytest.fixture(scope="module")
def items() -> dict[str, list[Item]]:
    groups: dict[str, list[Item]] = {name: [] for name in TASKS}
    for item in embedded_items():
        groups[item.task].append(item)
    return groups


@pytest.mark.parametrize("task", TASKS)
def test_250_distinct_pairs_use_every_template_pair_and_every_item_equally_often(
    benchmark: Benchmark, task: str
) -> None:
    pairs = benchmark.pairs.filter(pc.equal(benchmark.pairs["task"], task)).to_pylist()
    assert len(pairs) == 250
    assert len({pair["pair_id"] for pair in pairs}) == 250
    stimuli = {frozenset((pair["prompt_id_a"], pair["prompt_id_b"])) for pair in pairs}
    assert len(stimuli) == 250
    by_templates = Counter((pair["template_a"], pair["template_b"]) for pair in pairs)
    ids = [template.template_id for template in load_templates(TEMPLATES)[task].templates]
    assert set(by_templates) == set(combinations(ids, 2))
    assert set(by_templates.values()) == {25}
    assert set(Counter(pair["item_id"] for pair in pairs).values()) == {5}


@pytest.mark.parametrize("task", SHOWN)
def test_the_right_option_is_shown_first_in_half_of_the_pairs(
    benchmark: Benchmark, task: str
) -> None:
    gold = dict(
        zip(
            benchmark.prompts["prompt_id"].to_pylist(),
            benchmark.prompts["gold"].to_pylist(),
            strict=True,
        )
    )
    pairs = benchmark.pairs.filter(pc.equal(benchmark.pairs["task"], task)).to_pylist()
    orders = Counter(pair["order"] for pair in pairs)
    assert abs(orders["AB"] - orders["BA"]) <= 1
    first = sum(gold[pair["prompt_id_a"]] == "A" for pair in pairs)
    assert abs(first - len(pairs) / 2) <= 2


def test_a_change_of_content_needs_a_new_version(benchmark: Benchmark) -> None:
    """A run is identified by the version; the hashes hold it to the content."""
    source = benchmark.source
    assert (source["name"], source["version"]) == ("embedded", "2.0.0")
    assert source["sha256"][:16] == "4a6571a4ebf7bb71"
    assert benchmark.data_hash == "1f36a324"


def test_every_task_climbs_from_easy_to_hard_on_both_sides_of_gold() -> None:
    for task in TASKS:
        rows = [
            json.loads(line) for line in (DATA / f"{task}.jsonl").read_text("utf-8").splitlines()
        ]
        rungs = Counter(row["difficulty"] for row in rows)
        assert set(rungs) == {"easy", "medium", "hard"}
        assert min(rungs.values()) >= 9
        if task != "coherence":
            for rung in rungs:
                golds = Counter(row["gold"] for row in rows if row["difficulty"] == rung)
                assert max(golds.values()) <= 0.7 * rungs[rung], (task, rung)


def test_every_template_pair_has_a_reading_with_a_reason() -> None:
    recorded = yaml.safe_load((DATA / "readings.yaml").read_text(encoding="utf-8"))["readings"]
    readings = {tuple(entry["pair"].split("~")): entry for entry in recorded}
    assert len(readings) == len(recorded), "no pair is read twice"
    expected = {
        pair
        for entry in load_templates(TEMPLATES).values()
        for pair in combinations([t.template_id for t in entry.templates], 2)
    }
    for attribute in load_attributes().values():
        base, *others = (template.template_id for template in attribute.templates.templates)
        expected.update((base, other) for other in others)
    assert set(readings) == expected
    assert all(type(reading["equivalent"]) is bool for reading in recorded)
    assert all(len(reading["reason"]) > 15 for reading in recorded)
    doubted = {pair for pair, reading in readings.items() if not reading["equivalent"]}
    assert doubted == {pair for pair in expected if "preference-4" in pair}


def test_twelve_attributes_have_a_base_wording_and_ten_distinct_paraphrases() -> None:
    attributes = load_attributes()
    assert len(attributes) == 12
    assert Counter(a.group for a in attributes.values()) == {
        "summarisation": 3,
        "dialogue": 3,
        "question-generation": 3,
        "essays": 3,
    }
    for name, attribute in attributes.items():
        texts = [template.text for template in attribute.templates.templates]
        assert len(texts) == len(set(texts)) == 11, name
        assert attribute.templates.templates[0].template_id == f"{name}-base"
        assert attribute.verifiability in VERIFIABILITIES
        assert attribute.templates.task.ordinal
