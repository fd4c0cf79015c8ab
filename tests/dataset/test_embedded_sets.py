"""The German and the five-point embedded sets ask the same of the same items as the English one."""

from __future__ import annotations

from collections import Counter

import pytest

from judgesense.answers import parse
from judgesense.benchmark import Benchmark
from judgesense.files.documents import read_yaml
from judgesense.tasks import Template
from judgesense_dataset.audit import audit
from judgesense_dataset.embedded import (
    EMBEDDED,
    SCALE,
    embedded_items,
    embedded_templates,
)
from judgesense_dataset.load import load_benchmark
from judgesense_dataset.polarity import INVERTED, polarity_cue
from judgesense_dataset.templates import (
    DATA,
    LANGUAGE_FILES,
    TaskTemplates,
    load_templates,
)


@pytest.fixture(scope="module")
def sets() -> dict[str, Benchmark]:
    return {name: load_benchmark(name) for name in (EMBEDDED, "embedded-de", SCALE)}


def places(benchmark: Benchmark, ordered: bool = True) -> list[tuple[str, ...]]:
    columns = ["task", "item_id", "template_a", "template_b", *(["order"] if ordered else [])]
    return [tuple(row.values()) for row in benchmark.pairs.select(columns).to_pylist()]


def test_the_scale_has_the_pairs_of_the_binary_tasks(sets: dict[str, Benchmark]) -> None:
    binary = [place for place in places(sets[EMBEDDED], ordered=False) if place[0] != "coherence"]
    assert places(sets[SCALE], ordered=False) == binary


@pytest.mark.parametrize("name", ["embedded-es", "embedded-zh"])
def test_a_partial_set_has_items_of_the_english_one_and_their_back_translation(name: str) -> None:
    english = {item.item_id: item for item in embedded_items()}
    items = embedded_items(name)
    assert len(items) == 25
    for item in items:
        source = english[item.item_id]
        assert (item.task, item.gold) == (source.task, source.gold)
        assert all(item.fields[field] != text for field, text in source.fields.items())
    golds = Counter((item.task, item.gold) for item in items)
    assert set(golds.values()) == {1, 3, 4}
    assert load_benchmark(name).pairs.num_rows == 202
    assert not audit(name).failed


@pytest.mark.parametrize("language", LANGUAGE_FILES)
def test_every_language_has_the_twenty_templates_and_a_parser_that_reads_them(
    language: str,
) -> None:
    known, english = load_templates(LANGUAGE_FILES[language]), embedded_templates()
    assert list(known) == list(english)
    backs = read_yaml(DATA / "back_translations.yaml")
    for task, entry in known.items():
        source = english[task]
        assert entry.task.labels == source.task.labels
        assert [t.template_id for t in entry.templates] == [t.template_id for t in source.templates]
        for template in entry.templates:
            assert template.placeholders == source.templates[0].placeholders
            answers = tuple(template.label_map)
            assert all(raw in template.text for raw in answers if not entry.task.ordinal)
            for raw in answers:
                for said in (raw, f"{raw}.", f"**{raw}**", f'{{"verdict": "{raw}"}}'):
                    assert parse(said, answers, aliases=template.aliases) == raw
            if language != "de":
                back = backs[language][template.template_id]
                turned = template.template_id == "factuality-4"
                expected = (
                    INVERTED
                    if turned
                    else polarity_cue(source_text(source, template), answers_of(task))
                )
                assert polarity_cue(back, answers_of(task)) in (expected, None), (language, back)


def source_text(entry: TaskTemplates, template: Template) -> str:
    return next(t.text for t in entry.templates if t.template_id == template.template_id)


def answers_of(task: str) -> tuple[str, ...]:
    return embedded_templates()[task].task.labels
