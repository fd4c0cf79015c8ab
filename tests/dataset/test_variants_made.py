"""Variants: what is declared, what a variant renders, and what is refused before judging."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from judgesense.errors import JudgeSenseError
from judgesense.pipeline.data import data_reference
from judgesense.pipeline.settings import Settings
from judgesense.tasks import Item, render
from judgesense_dataset.embedded import embedded_items, embedded_templates, load_embedded
from judgesense_dataset.variant_changes import VariantMaker
from judgesense_dataset.variant_design import made_variants, with_variants
from judgesense_dataset.variants import chosen_variants, load_variants

ENTRIES, ITEMS = embedded_templates(), embedded_items()
OWN = load_variants()


def items_of(task: str) -> list[Item]:
    return [item for item in ITEMS if item.task == task]


def shown(name: str, task: str, order: str = "", number: int = 0) -> tuple[str, str | None]:
    """The text and the gold label of a variant on an item."""
    maker = VariantMaker(ENTRIES[task], items_of(task))
    order = order or maker.task.orders[0]
    template = maker.template(OWN[name])
    assert template is not None
    item = maker.item(OWN[name], maker.pool[number], order)
    assert item is not None
    prompt = render(maker.task, template, item, order)
    return prompt.text, prompt.gold


def own_file(folder: Path, text: str) -> str:
    (folder / "mine.yaml").write_text(f"variants:\n  mine: {text}\n", "utf-8")
    return str(folder / "mine.yaml")


def test_every_variant_of_the_package_fits_a_task_and_passes_its_checks() -> None:
    used = {
        variant.name
        for task, entry in ENTRIES.items()
        for variant, _ in made_variants(
            VariantMaker(entry, items_of(task)), items_of(task)[:3], [*OWN.values()]
        )
    }
    assert used == set(OWN)
    assert {v.variant_class for v in OWN.values()} == {"equivalent", "contrast", "intervention"}


def test_the_format_of_a_prompt_changes_and_its_fields_stay() -> None:
    passage = items_of("relevance")[0].fields["passage_a"]
    assert f"\n1: {passage}\n2: " in shown("labels-digits", "relevance")[0]
    assert shown("labels-roman", "relevance")[0].splitlines()[0].endswith("Answer I or II.")
    assert f"A: {passage}" in shown("casing", "relevance")[0]
    assert "\n\nQUERY: " in shown("casing", "relevance")[0]
    assert shown("instruction-last", "relevance")[0].startswith("Query: ")
    assert shown("fields-reversed", "relevance")[0].splitlines()[2].startswith("A: ")
    assert shown("fields-reversed", "factuality")[0].splitlines()[2].startswith("Response: ")
    assert shown("separators", "coherence")[0].splitlines()[2].startswith("Summary - ")


def test_an_opposite_item_has_another_gold_label() -> None:
    for task, least in (("factuality", 1), ("coherence", 2), ("relevance", 1)):
        labels = ENTRIES[task].task.labels
        for number, item in enumerate(items_of(task)[:8]):
            text, gold = shown("opposite-item", task, number=number)
            assert item.gold is not None
            assert gold is not None
            assert abs(labels.index(gold) - labels.index(item.gold)) >= least
            assert (
                text
                != render(ENTRIES[task].task, VariantMaker(ENTRIES[task]).base, item, "AB").text
            )


def test_a_star_is_asked_in_both_orders_and_its_base_twice() -> None:
    plain = load_embedded().select(["relevance"], limit=3)
    _, found = chosen_variants(["json", "inverted", "persona"])
    whole = with_variants(plain, ENTRIES, ITEMS, found)
    rows = whole.prompts.to_pylist()
    star = [row for row in rows if row["variant"]]
    assert {(row["variant"], row["variant_class"]) for row in star} == {
        ("json", "equivalent"),
        ("inverted", "contrast"),
        ("persona", "intervention"),
    }
    assert len(star) == 3 * 3 * 2
    assert {row["template_id"] for row in star} == {"relevance-1"}
    again = [row for row in rows if row["again"]]
    assert len(again) == 6
    assert {row["variant"] for row in again} == {None}
    added = whole.pairs.num_rows - plain.pairs.num_rows
    assert added == 6
    new = [p for p in whole.pairs.to_pylist() if p["template_b"] == "relevance-1+json"]
    assert len(new) == 6
    alone = with_variants(plain, ENTRIES, ITEMS, found, reworded=False, orders=["AB"])
    assert alone.pairs.num_rows == 3
    assert set(alone.prompts["template_id"].to_pylist()) == {"relevance-1"}


def test_the_label_map_and_gold_of_a_contrast() -> None:
    plain = load_embedded().select(["factuality"], limit=2)
    _, found = chosen_variants(["contrast"])
    rows = with_variants(plain, ENTRIES, ITEMS, found).prompts.to_pylist()
    gold = {row["item_id"]: row["gold"] for row in rows if row["variant"] is None}
    for row in rows:
        if row["variant"] == "inverted":
            assert json.loads(row["label_map"]) == {"YES": "NO", "NO": "YES"}
            assert row["gold"] == gold[row["item_id"]]
        elif row["variant"] == "opposite-item":
            assert {row["gold"], gold[row["item_id"]]} == {"YES", "NO"}
        elif row["variant_class"] == "contrast":
            assert row["gold"] is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{class: equivalent, texts: {factuality: {text: "TRUE or FALSE?"}}}', "label_map"),
        (
            '{class: equivalent, texts: {factuality: {text: "Is this wrong? YES or NO."}}}',
            "class: contrast",
        ),
        (
            '{class: equivalent, texts: {factuality: {text: "Right? YES or NO.", label_map: '
            "{YES: NO, NO: YES}}}}",
            "class: contrast",
        ),
        ('{class: equivalent, texts: {factuality: {text: "Is it right?"}}}', "'YES'"),
        ('{class: equivalent, texts: {factuality: {text: "{topic}: YES or NO?"}}}', "{topic}"),
        (
            "{class: contrast, texts: {factuality: "
            '{text: "P or Q?", label_map: {P: YES, Q: MAYBE}}}}',
            "'MAYBE'",
        ),
        (
            "{class: contrast, texts: {factuality: "
            '{text: "P or Q?", label_map: {P: YES, Q: YES}}}}',
            "'NO'",
        ),
        ('{class: equivalent, separator: ": "}', "renders like the base wording"),
    ],
)
def test_a_variant_that_cannot_be_used_is_named_with_its_place(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = own_file(tmp_path, text)
    _, found = chosen_variants([path])
    with pytest.raises(JudgeSenseError) as caught:
        with_variants(load_embedded().select(limit=2), ENTRIES, ITEMS, found)
    assert "mine.yaml, line 2: the 'mine' variant" in str(caught.value)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "{class: neutral, casing: upper}",
        "{casing: upper}",
        "{class: equivalent}",
        "{class: equivalent, casing: bold}",
        "{class: equivalent, colour: red}",
        "{class: intervention, few_shot: many}",
        "{class: equivalent, option_labels: [1]}",
        "{class: intervention, keep: 2}",
        "{class: intervention, effort: huge}",
        "{class: intervention, effort: 0}",
        "{class: equivalent, reply_form: 'In short: ANSWER'}",
        '{class: equivalent, after: Use JSON., reply_form: \'{"verdict": "YES"}\'}',
        "{class: equivalent, after: Use JSON., reply_form: ANSWER}",
        "{class: equivalent, after: Repeat it., reply_form: ': ANSWER or ANSWER'}",
        "{class: equivalent, after: Use JSON., reply_form: isANSWER}",
    ],
)
def test_a_file_of_variants_is_checked_with_its_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(JudgeSenseError, match=r"mine\.yaml, line 2"):
        load_variants(own_file(tmp_path, text))


def test_choosing_by_name_group_and_file(tmp_path: Path) -> None:
    assert chosen_variants(["all"]) == (True, [*OWN.values()])
    reworded, found = chosen_variants(["structure", "inverted"])
    assert (reworded, [v.name for v in found]) == (
        False,
        ["role", "system-message", "json", "inverted"],
    )
    own = chosen_variants([own_file(tmp_path, "{class: equivalent, casing: lower}")])[1]
    assert [v.name for v in own] == ["mine"]
    with pytest.raises(JudgeSenseError, match="pass a list"):
        chosen_variants("rewording,json")
    with pytest.raises(JudgeSenseError, match="unknown variant 'jsn'"):
        chosen_variants(["jsn"])


def test_english_texts_stay_out_of_german_data_and_of_other_labels() -> None:
    settings = Settings.of(limit=2)
    german = data_reference("embedded-de", None, None, ["all"]).selected(settings)
    asked = set(german.prompts["variant"].to_pylist()) - {None}
    assert {"separators", "opposite-item"} <= asked
    assert not asked & {"json", "inverted", "rubric", "longer", "few-shot"}
    with pytest.raises(JudgeSenseError, match=r"'json' variant has no text in .* language \(de\)"):
        data_reference("embedded-de", None, None, ["json"]).selected(settings)
    scale = data_reference("embedded-scale", None, None, ["all"]).selected(settings)
    asked = set(scale.prompts["variant"].to_pylist())
    assert "json" in asked
    assert not asked & {"inverted", "rubric"}


def test_a_language_is_asked_of_translated_items_only_and_never_unasked(tmp_path: Path) -> None:
    names = {"german", "spanish", "chinese"}
    assert not names & {v.name for v in chosen_variants(["all"])[1]}
    chosen = chosen_variants(["language"])[1]
    assert {v.name for v in chosen} == names
    whole = load_embedded().select(["factuality"])
    made = with_variants(whole, ENTRIES, ITEMS, chosen, reworded=False).pairs.to_pylist()
    counts = Counter(pair["template_b"] for pair in made)
    assert counts == {
        "factuality-1+german": 50,
        "factuality-1+spanish": 8,
        "factuality-1+chinese": 8,
    }
    assert {dict(json.loads(pair["label_map_b"])).get("SÍ") for pair in made} == {"YES", None}
    # Items of your own have no translation, whatever their ids.
    own = [replace(item, source="mine") for item in ITEMS]
    assert with_variants(whole, ENTRIES, own, chosen, reworded=False).pairs.num_rows == 0
    with pytest.raises(JudgeSenseError, match="'german' variant fits none of the tasks factuality"):
        with_variants(whole, ENTRIES, own, chosen, named=["german"])
    with pytest.raises(JudgeSenseError, match="choose from de, es"):
        chosen_variants([own_file(tmp_path, "{class: equivalent, language: xx}")])
