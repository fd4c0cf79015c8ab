"""Which option a free-text response chose, on answers as models write them."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesense.errors import JudgeSenseError
from judgesense.matching import match_answers, read_choice

FORMATS = {
    "1": ["I have chosen option {L}", "I have chosen option [{L}]", "'I have chosen option {L}'"],
    "2": ["{L} ) {text}", "{L})", "{L} )", "{L}) {text}", "Response: {L} ) {text}"],
    "3": ["Option {L}", "Option [{L}]", "[{L}]", "[{L}] {text}", "option {L}."],
    "4": ["The answer is [{L}].", "The answer is {L}.", "'The answer is [{L}].'"],
    "5": ["Your choice: {L}", "Your choice: [{L}]", "'Your choice: {L}: {text}'"],
    "6": ["{N}", "{N}.", "{N}. {text}", "Response: {N}. {text}", "Response: {N}"],
    "7": ["The choice is {L}: {text}", "The choice is {L}", "I choose: The choice is {L}: {text}"],
    "8": ["Answer: {L}", "'Answer: {L}'", "Answer: [{L}]", "Answer: {L}: {text}"],
    "9": ["Option {N} - {text}", "Option {N}", "Your response: Option {N} - {text}"],
    "10": ["Option {N}: {text}", "I select: Option {N}: {text}", "I select option {N}."],
    "11": ["Final answer: Option [{L}] {text}", "Option [{L}] {text}", "Final answer: [{L}]"],
    "12": [
        "Select option {N}: {text}",
        "Choice provided: Select option {N}",
        "Choice provided: {N}",
    ],
}
OPTIONS = ("gravity", "static friction", "a magnetic field", "air resistance")


@pytest.mark.parametrize("template", FORMATS)
@pytest.mark.parametrize("letter", "ABCD")
def test_an_answer_in_each_of_the_twelve_templates_formats_is_read(
    template: str, letter: str
) -> None:
    index = "ABCD".index(letter)
    for form in FORMATS[template]:
        response = form.format(L=letter, N=index + 1, text=OPTIONS[index])
        assert read_choice(response).value == letter, response
        assert read_choice(response, options=OPTIONS).value == letter, response
        assert read_choice(f"**{response}**\n").value == letter, response


MESSY = [
    ("B", "B"),
    ("b", "B"),
    ("(b)", "B"),
    ("**B**", "B"),
    ("Ｂ", "B"),
    ("（Ｂ）", "B"),
    ("$\\boxed{C}$", "C"),
    ("\\boxed{\\text{C}}", "C"),
    ("\\fbox{2}", "B"),
    ("So the final answer is $\\boxed{B}$.", "B"),
    ("ANSWER: D", "D"),
    ("Answer:\nD", "D"),
    ("The correct answer is:\n\nC) a magnetic field", "C"),
    ("The best answer is (C) because the needle turns.", "C"),
    ("A is the correct answer.", "A"),
    ("A, since it falls.", "A"),
    ("I'd go with C.", "C"),
    ("Definitely C!", "C"),
    ("It's not A but C.", "C"),
    ("Neither A nor B nor D; therefore C.", "C"),
    ("A is wrong. B is incorrect. D does not apply. So C.", "C"),
    ("Option A is incorrect, option B is incorrect, option C is correct.", "C"),
    ("Option B is correct. Option A cannot be right, as nothing falls.", "B"),
    ("We can rule out A and D. Final answer: B", "B"),
    ("A: gravity\nB: static friction\nC: a magnetic field\nD: air resistance\n\nAnswer: B", "B"),
    ("1. gravity\n2. static friction\n3. a magnetic field\n\nThe answer is 3.", "C"),
    ("B\n\nExplanation:\nA) is too weak.\nC) is not at work here.", "B"),
    ("<think>Could be A? Or the answer is D.</think>\n\nThe answer is B.", "B"),
    ("Let me think step by step.\nThings fall.\nTherefore, the answer is: **A) gravity**", "A"),
    ("The correct choice is B – static friction.", "B"),
    ("B) static friction is the correct answer.", "B"),
    ("**Answer:** C\n\n**Explanation:** A and B are forces of contact.", "C"),
    ("The answer is 2.", "B"),
    ("(3)", "C"),
    ("The answer that best fits the question is D.", "D"),
    ("Looking at the options, (C) fits.", "C"),
    ("C ) A rock sitting in a garden.", "C"),
    ("Answer: B: they cannot fly", "B"),
    ("A and B are wrong. C.", "C"),
    ("Sure! Here is my answer:\n\nOption D", "D"),
]

UNREAD = [
    "",
    "   \n",
    "INCORRECT",
    "not A",
    "A or B",
    "The answer is A or B.",
    "Option A and option C are both correct answers in my view",
    "A dog chases the ball.",
    "The answer is a mammal.",
    "I cannot answer this question.",
    "None of the above",
    "All of the options are right",
    "The answer is 2.5 metres.",
    "2 + 2 = 4",
    "A: gravity\nB: static friction\nC: a magnetic field\nD: air resistance",
    "1. gravity\n2. static friction\n3. a magnetic field\n4. air resistance",
    "Oranges hold a lot of Vitamin C",
    "The answer is E.",
    "<think>The answer is B, or is it",
    "C++ is a language.",
    "The answer is not C.",
    "I",
]


@pytest.mark.parametrize(("response", "letter"), MESSY)
def test_a_messy_response_that_names_its_choice_is_read(response: str, letter: str) -> None:
    assert read_choice(response).value == letter


@pytest.mark.parametrize("response", UNREAD)
def test_a_response_that_names_no_single_option_is_unread_not_guessed(response: str) -> None:
    reading = read_choice(response)
    assert reading.value is None
    assert reading.problem


TEXTS = [
    ("gravity", "A"),
    ("Gravity.", "A"),
    ("It is static friction.", "B"),
    ("The answer is the magnetic field, not gravity.", "C"),
    ("not gravity but air resistance", "D"),
    ("Air resistance slows it down.", "D"),
    ("Friction", None),
    ("gravity and air resistance", None),
    ("The ball meets air resistance while gravity pulls it.", None),
]


@pytest.mark.parametrize(("response", "letter"), TEXTS)
def test_an_option_is_recognised_by_its_text(response: str, letter: str | None) -> None:
    assert read_choice(response, options=OPTIONS).value == letter


def test_an_option_whose_own_text_denies_something_is_still_chosen() -> None:
    options = ["They cannot fly", "They do not swim", "It is not the right size", "None of these"]
    for index, option in enumerate(options):
        for form in ("{L}: {text}", "The answer is {L}. {text}.", "Option {N} - {text}"):
            response = form.format(L="ABCD"[index], N=index + 1, text=option)
            assert read_choice(response, options=options).value == "ABCD"[index], response
            if not form.startswith("The"):
                assert read_choice(f"Not {response}", options=options).value is None, response


def test_the_longer_of_two_nested_option_texts_is_the_one_meant() -> None:
    options = ["water", "salt water", "oil", "sand"]
    assert read_choice("It must be salt water", options=options).value == "B"
    assert read_choice("It must be water", options=options).value == "A"


def test_a_number_that_is_a_label_and_another_options_text_is_unread_unless_the_style_is_told() -> (
    None
):
    options = ["3", "4", "2", "5"]
    assert read_choice("The answer is 2.", options=options).value is None
    assert read_choice("The answer is 2.", options=options, labels="numbers").value == "B"
    assert read_choice("The answer is 2.", options=options, labels="letters").value == "C"
    assert read_choice("Option 2", options=options).value == "B"
    assert read_choice("The answer is 5.", options=options).value == "D"


@pytest.mark.slow
def test_no_answer_to_real_questions_in_the_templates_formats_is_misread(mirror: Path) -> None:
    files = [
        file
        for name in ("allenai/ai2_arc", "allenai/openbookqa")
        for file in sorted((mirror / name).glob("*/*.parquet"))
    ]
    rows = [row for file in files for row in pq.read_table(file).to_pylist()][::8]
    read = unread = 0
    for options in (row["choices"]["text"] for row in rows):
        if len(options) != 4:
            continue
        for form in (form for forms in FORMATS.values() for form in forms):
            for index, text in enumerate(options):
                response = form.format(L="ABCD"[index], N=index + 1, text=text)
                for shown in (None, options):
                    value = read_choice(response, options=shown).value
                    assert value in ("ABCD"[index], None), response
                    read, unread = read + 1, unread + (value is None)
    assert unread <= 0.001 * read


def test_references_may_be_letters_numbers_or_option_texts() -> None:
    result = match_answers(
        ["B", "Option 2", "static friction", "C"],
        ["B", "2", "Static friction", "static friction"],
        options=[OPTIONS] * 4,
    )
    assert result.per_example == [1.0, 1.0, 1.0, 0.0]
    assert result.score == 0.75
    assert result.readings == ["B", "B", "B", "C"]


def test_unread_responses_score_nothing_and_are_counted_with_their_reason() -> None:
    result = match_answers(["A or B", "Not B.", "B", "hm"], ["A", "B", "B", "C"])
    assert result.per_example == [0.0, 0.0, 1.0, 0.0]
    assert result.n_unread == 3
    assert result.problem_counts == {
        "no single option": 1,
        "no option chosen": 2,
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((["A"], ["A", "B"]), "predictions has 1 rows and references 2"),
        (([], []), "predictions is empty"),
        (("A", ["A"]), "predictions is one string"),
        (([None], ["A"]), "predictions, row 0"),
        ((["A"], [""]), "references, row 0"),
        ((["A"], ["Z"]), "references, row 0: 'Z'"),
        ((["A"], ["AB"]), "references, row 0: 'AB'"),
        ((["A"], ["(.)"]), r"references, row 0: '\(\.\)'"),
        ((["A", "B"], ["A", "gravity"]), "references, row 1: 'gravity'"),
    ],
)
def test_what_cannot_be_scored_is_refused_with_its_place(arguments: tuple, said: str) -> None:
    with pytest.raises(JudgeSenseError, match=said):
        match_answers(*arguments)


def test_an_unknown_method_or_option_is_refused_with_those_that_exist() -> None:
    with pytest.raises(JudgeSenseError, match="choice, f1, math, exact"):
        match_answers(["A"], ["A"], method="fuzzy")
    with pytest.raises(JudgeSenseError, match="it has n_options, options, labels"):
        match_answers(["A"], ["A"], option=["x"])
    with pytest.raises(JudgeSenseError, match=r"labels .roman"):
        match_answers(["A"], ["A"], labels="roman")


@given(st.text(max_size=80))
def test_any_text_is_read_or_has_a_problem(text: str) -> None:
    reading = read_choice(text, options=OPTIONS)
    assert (reading.value in {"A", "B", "C", "D"}) != bool(reading.problem)


@given(st.sampled_from("ABCD"), st.sampled_from("ABCD"))
def test_denying_an_option_never_chooses_it(chosen: str, denied: str) -> None:
    value = read_choice(f"The answer is {chosen}, not {denied}.").value
    assert value == chosen
    assert read_choice(f"The answer is not {denied}.").value is None
