"""The embedded benchmark holds what its page says: counts, balance, and no cheap way to win."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pyarrow.compute as pc
import pytest
import yaml

from judgesense.benchmark import Benchmark
from judgesense.tasks import Item
from judgesense_dataset.embedded import (
    TEMPLATES,
    embedded_items,
    load_attributes,
    load_embedded,
)
from judgesense_dataset.templates import DATA, load_templates

TASKS = ("factuality", "coherence", "relevance", "preference")


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
    # Two templates name no criterion: they are asked, but not paired.
    doubtful = {"relevance-4", "preference-4"}
    assert set(by_templates) == {two for two in combinations(ids, 2) if not doubtful & {*two}}
    assert max(by_templates.values()) - min(by_templates.values()) <= 1
    assert set(Counter(pair["item_id"] for pair in pairs).values()) == {5}


def test_a_change_of_content_needs_a_new_version(benchmark: Benchmark) -> None:
    """A run is identified by the version; the hashes hold it to the content."""
    source = benchmark.source
    assert (source["name"], source["version"]) == ("embedded", "2.1.0")
    assert source["sha256"][:16] == "4a6571a4ebf7bb71"
    assert benchmark.data_hash == "5ecc5a9c"


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
