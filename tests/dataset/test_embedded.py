"""The embedded benchmark holds what its page says: counts, balance, and no cheap way to win."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
import yaml
from scipy.stats import spearmanr

from judgesense.benchmark import Benchmark
from judgesense.tasks import Item, template_pairs
from judgesense_dataset.embedded import (
    TEMPLATES,
    VERIFIABILITIES,
    embedded_items,
    load_attributes,
    load_embedded,
)
from judgesense_dataset.similarity import PAPER_COSINE, PAPER_EDIT_DISTANCE
from judgesense_dataset.templates import DATA, load_templates

ROOT = Path(__file__).resolve().parents[2]
TASKS = ("factuality", "coherence", "relevance", "preference")
SHOWN = {
    "relevance": ("passage_a", "passage_b"),
    "preference": ("response_a", "response_b"),
}
CHANCE = 0.6

FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a an the of to in on is it and or for with that this be are was were at by as from do does
        did how what why when who which can you i if not no they its their than then so but has
        have had my
        """,
    )
)


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    return load_embedded()


@pytest.fixture(scope="module")
def items() -> dict[str, list[Item]]:
    groups: dict[str, list[Item]] = {name: [] for name in TASKS}
    for item in embedded_items():
        groups[item.task].append(item)
    return groups


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9']+", text.lower()))


def content_words(text: str) -> set[str]:
    return words(text) - FUNCTION_WORDS


def test_every_task_has_50_items_and_all_200_are_distinct(items: dict[str, list[Item]]) -> None:
    assert {name: len(group) for name, group in items.items()} == dict.fromkeys(TASKS, 50)
    shown = [text for group in items.values() for item in group for text in item.fields.values()]
    assert len(set(shown)) == len(shown), "no question, response, summary or passage occurs twice"


def test_gold_is_balanced_in_every_task(items: dict[str, list[Item]]) -> None:
    gold = {name: Counter(item.gold for item in group) for name, group in items.items()}
    assert gold["coherence"] == dict.fromkeys("12345", 10)
    assert gold["factuality"] == {"YES": 25, "NO": 25}
    assert gold["relevance"] == gold["preference"] == {"A": 25, "B": 25}


@pytest.mark.parametrize("task", TASKS)
def test_the_first_items_of_a_task_already_span_its_labels(
    items: dict[str, list[Item]], task: str
) -> None:
    labels = load_templates(TEMPLATES)[task].task.labels
    assert {item.gold for item in items[task][:5]} == set(labels)


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
    assert set(by_templates) == set(template_pairs(ids))
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


def test_the_prompts_are_the_full_grid_in_both_orders(benchmark: Benchmark) -> None:
    counts = Counter(benchmark.prompts["task"].to_pylist())
    assert counts == {"factuality": 250, "coherence": 250, "relevance": 500, "preference": 500}
    assert len(set(benchmark.prompts["prompt_id"].to_pylist())) == 1500


def test_loading_twice_gives_the_same_tables_and_says_what_they_are(benchmark: Benchmark) -> None:
    again = load_embedded()
    assert again.prompts.equals(benchmark.prompts)
    assert again.pairs.equals(benchmark.pairs)
    assert again.source == benchmark.source


def test_a_change_of_content_needs_a_new_version(benchmark: Benchmark) -> None:
    """A run is identified by the version; the hashes hold it to the content."""
    source = benchmark.source
    assert (source["name"], source["version"]) == ("embedded", "2.0.0")
    assert source["sha256"][:16] == "4a6571a4ebf7bb71"
    assert benchmark.data_hash == "1f36a324"


def test_every_item_carries_its_licence_and_source() -> None:
    assert {(i.source, i.license) for i in embedded_items()} == {
        ("judgesense-embedded", "cc-by-4.0")
    }


def accuracy_of_choosing_more(group: list[Item], measure: Callable[[Item, str], float]) -> float:
    """How often the option with more of something is the right one; a tie counts one half."""
    first, second = SHOWN[group[0].task]
    score = 0.0
    for item in group:
        a, b = measure(item, item.fields[first]), measure(item, item.fields[second])
        score += 0.5 if a == b else float((a > b) == (item.gold == "A"))
    return score / len(group)


RULES: dict[str, Callable[[Item, str], float]] = {
    "longer in characters": lambda item, text: len(text),
    "longer in words": lambda item, text: len(text.split()),
    "more words of the query": lambda item, text: len(words(item.fields["query"]) & words(text)),
    "more content words of the query": lambda item, text: len(
        content_words(item.fields["query"]) & content_words(text)
    ),
    "larger share of the query's words": lambda item, text: (
        len(words(item.fields["query"]) & words(text)) / len(words(text))
    ),
    "larger share of the query's content words": lambda item, text: (
        len(content_words(item.fields["query"]) & content_words(text)) / len(content_words(text))
    ),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("task", SHOWN)
def test_no_rule_of_length_or_word_overlap_finds_the_right_option(
    items: dict[str, list[Item]], task: str, rule: str
) -> None:
    accuracy = accuracy_of_choosing_more(items[task], RULES[rule])
    assert 1 - CHANCE <= accuracy <= CHANCE, "nor may the rule's opposite win"


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


def test_always_the_same_answer_stays_near_chance(items: dict[str, list[Item]]) -> None:
    for task in ("factuality", *SHOWN):
        most_frequent = Counter(item.gold for item in items[task]).most_common(1)[0][1]
        assert most_frequent / len(items[task]) <= CHANCE


FACT_RULES: dict[str, Callable[[Item], float]] = {
    "length": lambda item: len(item.fields["response"]),
    "overlap": lambda item: len(
        content_words(item.fields["question"]) & content_words(item.fields["response"])
    ),
    "denial": lambda item: bool(words(item.fields["response"]) & {"no", "not", "never"}),
    "figures": lambda item: bool(re.search(r"\d", item.fields["response"])),
}


@pytest.mark.parametrize("rule", FACT_RULES)
def test_true_responses_cannot_be_told_from_false_ones_by_their_surface(
    items: dict[str, list[Item]], rule: str
) -> None:
    measured = np.array([FACT_RULES[rule](item) for item in items["factuality"]], dtype=float)
    gold = np.array([item.gold == "YES" for item in items["factuality"]])
    cut = np.median(measured) if measured.max() > 1 else 0
    accuracy = np.mean((measured > cut) == gold)
    assert 1 - CHANCE <= accuracy <= CHANCE


def sentences(item: Item) -> list[str]:
    return re.split(r"(?<=\.)\s+", item.fields["summary"])


def overlap_of_neighbours(item: Item) -> float:
    return float(
        np.mean([len(content_words(a) & content_words(b)) for a, b in pairwise(sentences(item))])
    )


@pytest.mark.parametrize(
    "measure",
    [
        lambda item: len(item.fields["summary"]),
        lambda item: len(sentences(item)),
        lambda item: len(item.fields["summary"]) / len(sentences(item)),
        overlap_of_neighbours,
    ],
    ids=["length", "sentences", "sentence length", "words shared by neighbouring sentences"],
)
def test_coherence_levels_do_not_follow_a_surface_measure(
    items: dict[str, list[Item]], measure: Callable[[Item], float]
) -> None:
    levels = [int(item.gold or 0) for item in items["coherence"]]
    rho = spearmanr([measure(item) for item in items["coherence"]], levels).statistic
    assert abs(rho) < 0.3


def test_summaries_have_three_to_six_sentences(items: dict[str, list[Item]]) -> None:
    assert {len(sentences(item)) for item in items["coherence"]} <= {3, 4, 5, 6}


def test_every_template_pair_has_a_reading_with_a_reason() -> None:
    recorded = yaml.safe_load((DATA / "readings.yaml").read_text(encoding="utf-8"))["readings"]
    readings = {tuple(entry["pair"].split("~")): entry for entry in recorded}
    assert len(readings) == len(recorded), "no pair is read twice"
    expected = {
        pair
        for entry in load_templates(TEMPLATES).values()
        for pair in template_pairs([template.template_id for template in entry.templates])
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


def test_attributes_have_the_scales_and_kinds_of_the_paper() -> None:
    attributes = load_attributes()
    points = {name: len(a.templates.task.labels) for name, a in attributes.items()}
    assert {name: points[name] for name in points if name.startswith("summ")} == {
        "summarisation-coherence": 5,
        "summarisation-accuracy": 5,
        "summarisation-quality": 5,
    }
    assert points["dialogue-understandability"] == 2
    assert points["dialogue-naturalness"] == points["question-clarity"] == 3
    assert points["essay-language"] == 6
    kinds = Counter(a.verifiability for a in attributes.values())
    assert kinds == {"verifiable": 3, "semi-objective": 4, "subjective": 5}


@pytest.mark.parametrize("name", list(load_attributes()))
def test_every_paraphrase_states_the_whole_scale(name: str) -> None:
    entry = load_attributes()[name].templates
    anchors = set(re.findall(r"\(([^)]*)\)", entry.templates[0].text))
    for template in entry.templates:
        ends = (entry.task.labels[0], entry.task.labels[-1])
        assert all(re.search(rf"\b{end}\b", template.text) for end in ends), template.template_id
        stated = template.text.lower()
        assert all(anchor in stated for anchor in anchors), template.template_id


def code_and_table(page: Path) -> tuple[str, list[str]]:
    text = page.read_text(encoding="utf-8")
    section = text.split("## How far the wordings differ")[1]
    code = section.split("```python\n")[1].split("```")[0]
    return code, [line for line in section.splitlines() if line.startswith("|")]


@pytest.mark.slow
def test_the_measures_in_the_page_on_paraphrases_are_what_its_command_prints() -> None:
    code, table = code_and_table(ROOT / "docs" / "data" / "paraphrases.md")
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert [line for line in ran.stdout.splitlines() if line.startswith("|")] == table
    *_, overall = table
    edit, cosine = (float(cell.split("±")[0]) for cell in overall.split("|")[2:4])
    assert abs(edit - PAPER_EDIT_DISTANCE[0]) < 0.05
    assert abs(cosine - PAPER_COSINE[0]) < 0.05
