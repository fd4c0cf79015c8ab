"""What counts as a decision, and what must not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesense.tasks import REFUSED, UNCLEAR
from judgesense.answers import parse

YES_NO, LIKERT, AB = ("YES", "NO"), ("1", "2", "3", "4", "5"), ("A", "B")
GRADES = ("CORRECT", "PARTIALLY CORRECT", "INCORRECT")


@pytest.mark.parametrize(
    ("text", "options", "decision"),
    [
        ("YES", YES_NO, "YES"),
        (" yes.\n", YES_NO, "YES"),
        ("**No**", YES_NO, "NO"),
        ("No, the capital is Canberra.", YES_NO, "NO"),
        ("Yes. There are no errors in it", YES_NO, "YES"),
        ("NO (incorrect)", YES_NO, "NO"),
        ("The answer is NO.", YES_NO, "NO"),
        ("Answer: yes", YES_NO, "YES"),
        ("<think>NO? It may be.</think>\nYES", YES_NO, "YES"),
        ("4", LIKERT, "4"),
        ("4/5", LIKERT, "4"),
        ("4 out of 5", LIKERT, "4"),
        ("Rating: 3", LIKERT, "3"),
        ("I would rate this summary a 2.", LIKERT, "2"),
        ("I'd give it a **5** for flow", LIKERT, "5"),
        ("Score: 2. The sentences jump about.", LIKERT, "2"),
        ("B", AB, "B"),
        ("(A)", AB, "A"),
        ("Passage B is more relevant", AB, "B"),
        ("A is better, since it answers the query", AB, "A"),
        ("The better response is B, not A.", AB, "B"),
        ("A: Machine learning is a field", AB, "A"),
        ("answer: b", AB, "B"),
        ("Correct", GRADES, "CORRECT"),
        ("incorrect.", GRADES, "INCORRECT"),
        ("partially correct", GRADES, "PARTIALLY CORRECT"),
    ],
)
def test_a_plain_answer_is_read(text: str, options: tuple[str, ...], decision: str) -> None:
    assert parse(text, options) == decision


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("", YES_NO),
        ("YES or NO", YES_NO),
        ("YES/NO", YES_NO),
        ("yes and no", YES_NO),
        ("There are no errors in this response.", YES_NO),
        ("The response is factually correct.", YES_NO),
        ("Nobody knows.", YES_NO),
        ("<think>It looks like YES but", YES_NO),
        ("4.5", LIKERT),
        ("1-5", LIKERT),
        ("between 3 and 4", LIKERT),
        ("0", LIKERT),
        ("10", LIKERT),
        ("the summary is coherent", LIKERT),
        ("INCORRECT", ("A", "B", "C")),
        ("not A", AB),
        ("It is not A or B", AB),
        ("She is not RUDE. She is not even a little bit rude.", ("POLITE", "RUDE")),
        ("The message is not polite or rude.", ("POLITE", "RUDE")),
        ("A or B", AB),
        ("A, B", AB),
        ("A good response would cite a source", AB),
        ("Both are fine", AB),
        ("The answer is A. The answer is B.", AB),
    ],
)
def test_what_does_not_say_one_option_is_unclear(text: str, options: tuple[str, ...]) -> None:
    assert parse(text, options) == UNCLEAR


@pytest.mark.parametrize(
    "text",
    [
        "I cannot assist with that request.",
        "I'm sorry, but judging this is not possible for me",
        "As an AI, I do not rate people.",
    ],
)
def test_a_refusal_is_told_from_an_unclear_answer(text: str) -> None:
    assert parse(text, YES_NO) == REFUSED


def test_a_refusal_that_answers_all_the_same_is_an_answer() -> None:
    assert parse("I'm sorry, but the answer is NO.", YES_NO) == "NO"


@given(st.text(max_size=60), st.sampled_from([YES_NO, LIKERT, AB, GRADES]))
def test_any_text_gives_an_option_or_a_word_for_none(text: str, options: tuple[str, ...]) -> None:
    assert parse(text, options) in {*options, UNCLEAR, REFUSED}


@given(st.sampled_from([*YES_NO]), st.sampled_from(["", ".", "\n", "!", " (sure)", "\nBecause."]))
def test_an_option_followed_by_an_end_is_that_option(option: str, end: str) -> None:
    assert parse(option + end, YES_NO) == option
