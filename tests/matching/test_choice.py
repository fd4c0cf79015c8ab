"""Which option a free-text response chose, on answers as models write them."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from judgesense.answers.matching import match_answers, read_choice
from judgesense.errors import JudgeSenseError

CHOICES = yaml.safe_load(Path(__file__).with_name("choices.yaml").read_text("utf-8"))
FORMATS: dict[str, list[str]] = CHOICES["formats"]
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


def rows(group: str) -> list[tuple[str, str]]:
    return [(text, letter) for letter, texts in CHOICES[group].items() for text in texts]


@pytest.mark.parametrize(("response", "letter"), rows("messy"))
def test_a_messy_response_is_read_only_if_it_names_one_choice(response: str, letter: str) -> None:
    reading = read_choice(response)
    assert (reading.value or "unread") == letter
    assert bool(reading.problem) == (letter == "unread")


@pytest.mark.parametrize(("response", "letter"), rows("texts"))
def test_an_option_is_recognised_by_its_text(response: str, letter: str) -> None:
    assert (read_choice(response, options=OPTIONS).value or "unread") == letter


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
        ((["A"], ["A", "B"]), "predictions has 1 rows and references has 2"),
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
