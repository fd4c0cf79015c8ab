"""Damage: what each rule changes, what it refuses, and which outputs get a copy."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pyarrow.compute as pc
import pytest

from judgesense.errors import JudgeSenseError
from judgesense.measure.notices import change_of
from judgesense.tasks import Item, Task, Template
from judgesense_dataset.damage import RULES, changed
from judgesense_dataset.damage_design import good_label, output_field, with_damage
from judgesense_dataset.damage_rules import Output, kinds_for, rules
from judgesense_dataset.pairing import build
from judgesense_dataset.templates import TaskTemplates

LONG = (
    "The bridge was opened to the public in the spring after four hard winters of work, and the "
    "town paid for the stone itself. Since then it is repaired every few years by masons."
)
OTHERS = ["Penguins carry their eggs on their feet beneath warm feathers during polar nights."]
STEPS = "How to make tea, in steps:\n1. Boil water.\n2. Fill the pot.\n3. Wait.\n4. Pour the tea."


def tried(kind: str, text: str, question: str = "", asked: str = "") -> set[str | None]:
    """What twenty draws of a kind make of a text."""
    output = Output(text, question, f"{question}\n{asked}", OTHERS)
    return {changed(kind, output, np.random.default_rng(seed)) for seed in range(20)}


@pytest.mark.parametrize(
    ("kind", "text", "new"),
    [
        (
            "negation-dropped",
            "The moon does not shine by itself.",
            "The moon does shine by itself.",
        ),
        ("negation-dropped", "You can't see it at night.", "You can see it at night."),
        ("negation-dropped", "No, the sea is salty.", "Yes, the sea is salty."),
        ("negation-added", "The sea is salty at Dover.", "The sea is not salty at Dover."),
        ("names", "They say that Rome beat Milan.", "They say that Milan beat Rome."),
        ("unit", "The road is 5 miles long.", "The road is 5 feet long."),
        (
            "contradiction",
            "The sea is salty at Dover.",
            "The sea is salty at Dover. The sea is not salty at Dover.",
        ),
        (
            "steps",
            STEPS,
            "How to make tea, in steps:\n1. Pour the tea.\n2. Wait.\n3. Fill the pot.\n"
            "4. Boil water.",
        ),
        (
            "foreign-sentence",
            "The sea is salty at Dover",
            f"The sea is salty at Dover. {OTHERS[0]}",
        ),
        ("other-output", "The sea is salty.", OTHERS[0]),
        ("contraction", "It does not rain.", "It doesn't rain."),
        ("spelling", "The color of the sea", "The colour of the sea"),
        ("bullets", "The list is:\n- one\n- two", "The list is:\n* one\n* two"),
        ("whitespace", "One. Two.", "One.  Two.\n"),
    ],
)
def test_a_rule_makes_its_change(kind, text, new) -> None:
    assert tried(kind, text) == {new}


@pytest.mark.parametrize(
    ("kind", "text", "question", "asked"),
    [
        ("number", "It has 12 parts, and all 12 are old.", "", ""),  # It is stated twice.
        ("number", "The house has 12 rooms.", "Is it true that the house has 12 rooms?", ""),
        ("number", 'The sign says "Open since 1912" on the door.', "", ""),
        ("number", "There are at least 40 of them in the house.", "", ""),
        ("number", "1. The house is old.\n2. The garden is new.", "", ""),
        ("number", "The crew of 12 found the ship.", "Write a story of a ship.", ""),
        ("negation-dropped", "It is not only old but rare.", "", ""),
        ("negation-dropped", "I do not know the answer to that.", "", ""),
        ("negation-dropped", "It is not so that nobody came to the party.", "", ""),
        ("negation-added", "Some of the houses are old.", "", ""),
        ("negation-added", "Is the sea salty at Dover?", "", ""),
        ("names", "They say that Rome is not in Milan.", "", ""),
        ("names", "They say that Rome and Milan are old.", "", ""),
        ("unit", "It takes more than 5 days to get there.", "", ""),
        ("cut", "It is too short to cut.", "", ""),
        ("steps", "The tips are:\n1. Sleep.\n2. Eat.\n3. Walk.\n4. Read.", "", ""),
        ("other-output", "The penguins carry eggs beneath their feet.", "", ""),
        ("number", "Das Haus hat 12 Zimmer und einen Garten am Fluss.", "Wie ist das Haus?", ""),
        ("contradiction", "def area(r):\n    return 3 * r  # it is an area of a disc", "", ""),
        ("whitespace", "```\nx = 1. y = 2.\n```", "", ""),
        ("cut", json.dumps({"answer": LONG}), "", ""),
        ("empty", json.dumps({"answer": "The sea is salty."}), "", ""),
    ],
)
def test_a_rule_refuses_what_it_cannot_guarantee(kind, text, question, asked) -> None:
    assert tried(kind, text, question, asked) == {None}


def test_a_number_becomes_one_that_no_text_states() -> None:
    found = tried("number", "The house has 4 rooms.", "", "Houses with 7, 8 and 10 rooms.")
    assert found - {None} == {"The house has 9 rooms."}
    years = tried("number", "It was opened in 1969.") - {None}
    assert len(years) > 5
    assert all(1900 < int(year[-5:-1]) < 1950 for year in years)
    shares = tried("number", "It holds for 80% of them.") - {None}
    assert shares == {"It holds for 57% of them."}


def test_a_cut_ends_within_a_sentence_and_a_json_output_stays_valid() -> None:
    (cut,) = tried("cut", LONG)
    assert cut
    assert LONG.startswith(cut)
    assert cut[-1].isalpha()
    (wide,) = tried("whitespace", '{"answer": "The sea is salty."}')
    assert json.loads(wide or "") == {"answer": "The sea is salty."}
    valid = tried("number", '{"year": 1969, "is": "the year of it"}') - {None}
    assert valid
    assert all(json.loads(text or "")["year"] < 1950 for text in valid)


def test_every_kind_has_a_rule_and_criteria() -> None:
    known = rules()
    assert RULES.keys() == {*known.damage, *known.harmless}
    named = {name for kind in known.damage.values() for name in kind.criteria}
    assert named < known.criteria.keys()


@pytest.mark.parametrize(
    ("wording", "kinds", "absent"),
    [
        ("Is this factually correct?", {"number", "negation-added", "empty"}, {"cut"}),
        ("How coherent is this summary?", {"cut", "foreign-sentence"}, {"number", "other-output"}),
        ("Which passage is more relevant?", {"other-output"}, {"number", "cut"}),
        ("Rate the text from 1 to 5.", {"number", "cut", "names"}, set()),
        ("Is the tone polite?", set(), {*rules().damage}),
    ],
)
def test_a_rubric_decides_which_kinds_hurt(wording, kinds, absent) -> None:
    found = {*kinds_for(wording)}
    assert kinds <= found
    assert not absent & found


def test_a_question_that_names_no_criterion_is_not_taken_for_one_about_facts() -> None:
    assert kinds_for("Does it mention the refund?", unnamed=False) == []
    assert "number" in kinds_for("Does it mention the refund?")


@pytest.mark.parametrize("text", ["[" * 100_000, "“A is (" * 9_000, "It is 7. " * 4_000])
def test_a_long_or_deep_output_is_read(text) -> None:
    for kind in RULES:
        changed(kind, Output(text, "", "", OTHERS), np.random.default_rng(0))


def template(
    task: Task, text: str, layout: str = "{instruction}\n{question}\n{answer}"
) -> Template:
    return Template("w", task.name, text, layout, {label: label for label in task.labels})


YESNO, GRADE = Task("t", ("YES", "NO")), Task("t", ("1", "2", "3"), ordinal=True)


@pytest.mark.parametrize(
    ("task", "text", "good"),
    [
        (YESNO, "Is the answer correct? YES or NO.", "YES"),
        (YESNO, "Does the answer contain factual errors? YES or NO.", "NO"),
        (Task("t", ("FAIL", "PASS")), "Check for hallucinations: PASS or FAIL.", "PASS"),
        (GRADE, "Rate its quality from 1 to 3.", "3"),
        (GRADE, "Rate its quality (1 = best, 3 = worst).", "1"),
    ],
)
def test_the_good_label_is_read_from_the_labels_and_the_rubric(task, text, good) -> None:
    assert good_label(task, template(task, text)) == good


def test_what_nothing_tells_is_an_error() -> None:
    with pytest.raises(JudgeSenseError, match="which of the labels RED, BLUE"):
        good_label(Task("t", ("RED", "BLUE")), template(YESNO, "Which?"))
    with pytest.raises(JudgeSenseError, match="whether a high score is good"):
        good_label(GRADE, template(GRADE, "Rate the severity from 1 to 3."))
    item = Item("i", "t", {"question": "a", "reference": "b"})
    shown = template(YESNO, "?", "{instruction} {question} {reference}")
    with pytest.raises(JudgeSenseError, match="question, reference is known as the output"):
        output_field(YESNO, shown, item)
    item = Item("i", "t", {"model_answer": "a", "context": "b"})
    assert output_field(
        YESNO, template(YESNO, "", "{instruction}{model_answer}{context}"), item
    ) == ("model_answer")


NAMES = ("Ann", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jon", "Kim", "Leo")


def items(gold: list[str | None]) -> list[Item]:
    animals = ("otters", "ravens", "spiders", "herrings")
    return [
        Item(
            f"i{n}",
            "t",
            {
                "question": f"What is told of {name}?",
                "answer": f"{name} was seen in the year {1900 + n} by {animals[n % 4]} of the zoo.",
            },
            label,
            f"c{n}",
        )
        for n, (name, label) in enumerate(zip(NAMES, gold, strict=True))
    ]


def test_outputs_without_a_label_come_first_and_bad_ones_never() -> None:
    entry = TaskTemplates(YESNO, (template(YESNO, "Is the answer correct? YES or NO."),))
    some = items([None] * 4 + ["YES"] * 4 + ["NO"] * 4)
    plain = build({"t": entry}, some, "full", seed=0)

    def copied(n: int) -> Counter[str]:
        rows = with_damage(plain, {"t": entry}, some, n).prompts
        rows = rows.filter(pc.equal(rows["variant_class"], "damage"))
        assert rows["gold"].null_count == rows.num_rows
        assert set(rows["again"].to_pylist()) == {None}
        return Counter(rows["item_id"].to_pylist())

    assert set(copied(8)) <= {"i0", "i1", "i2", "i3"}
    assert sum(copied(8).values()) == 8
    assert set(copied(60)) <= {f"i{n}" for n in range(8)}
    bad = items(["NO"] * 12)
    plain = build({"t": entry}, bad, "full", seed=0)
    with pytest.raises(JudgeSenseError, match="no rule fits an output"):
        with_damage(plain, {"t": entry}, bad, 8)


def test_a_choice_shows_the_output_beside_its_copy_in_both_orders() -> None:
    task = Task("t", ("A", "B"), options={"A": "one", "B": "two"})
    base = template(
        task, "Which answer is better?", "{instruction}\n{question}\n1: {one}\n2: {two}"
    )
    entry = TaskTemplates(task, (base,))
    some = [
        Item(item.item_id, "t", {**item.fields, "one": "bad", "two": item.fields["answer"]}, "B")
        for item in items([None] * 12)
    ]
    plain = build({"t": entry}, some, "full", seed=0)
    rows = with_damage(plain, {"t": entry}, some, 6).prompts
    copies = rows.filter(pc.is_valid(rows["variant_class"])).to_pylist()
    assert len(copies) == 2 * (6 + 3)
    outputs = {item.item_id: item.fields["two"] for item in some}
    for row in copies:
        shown = row["text"].split("\n1: ")[1].split("\n2: ")
        assert shown["AB".index(row["gold"])].strip() == outputs[row["item_id"]]
    with pytest.raises(JudgeSenseError, match="both orders"):
        with_damage(plain, {"t": entry}, some, 6, orders=["AB"])


def test_a_change_is_shown_in_whole_words() -> None:
    assert change_of("a b c", "a b") == "'b c' became 'b'"
    assert change_of("x " * 200, "y " * 200).count("…") == 2
