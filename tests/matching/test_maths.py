"""Mathematical answers: boxes, equal forms, references of MATH-500, the time limit."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesense.answers.matching import last_boxed, match_answers
from judgesense.errors import JudgeSenseError


@pytest.mark.parametrize(
    ("text", "boxed"),
    [
        (r"so $\boxed{5}$", "5"),
        (r"\boxed{\frac{1}{2}} done", r"\frac{1}{2}"),
        (r"\fbox{x}", "x"),
        (r"\boxed{1}, no: \fbox{2}", "2"),
        (r"\boxed 7.", "7"),
        (r"\boxed -3", "-3"),
        (r"\boxed{a} and \boxed{unfinished", "a"),
        (r"\boxed{\left\{1, 2\right\}}", r"\left\{1, 2\right\}"),
        (r"\boxed{unfinished \frac{1}{2}", None),
        ("no box", None),
        (r"\boxed{}", ""),
    ],
)
def test_the_last_complete_box_holds_the_answer(text: str, boxed: str | None) -> None:
    assert last_boxed(text) == boxed


@given(
    st.recursive(
        st.sampled_from(["x", "1", r"\{", r"\}", ""]),
        lambda inner: st.builds(lambda left, right: f"{{{left}}}{right}", inner, inner),
        max_leaves=8,
    )
)
def test_a_box_gives_back_any_balanced_content(content: str) -> None:
    assert last_boxed(rf"thus \boxed{{{content}}}.") == content.strip()


RIGHT = [
    ("0.5", r"\frac{1}{2}"),
    (r"\frac12", r"\frac{1}{2}"),
    (r"\boxed{\dfrac{1}{2}}", r"\frac{1}{2}"),
    (r"\boxed{50\%}", r"\frac{1}{2}"),
    ("x = 5", "5"),
    (r"\boxed{2,3}", "3,2"),
    (r"The point is \boxed{(3, \pi/2)}.", r"\left( 3, \frac{\pi}{2} \right)"),
    (r"$\boxed{12\text{ cm}}$", "12"),
    ("Final answer: 1,000", "1000"),
    ("So 6*7 = 42 apples.", "42"),
    (r"\boxed{x^2+2x+1}", "(x+1)^2"),
    (r"\boxed{\sqrt{12}}", r"2\sqrt{3}"),
    ("Evelyn", r"\text{Evelyn}"),
    (r"\fbox{$7i - 2$}", "-2 + 7i"),
    (r"\boxed{90}", r"90^\circ"),
    (r"\boxed{\$18.90}", "18.90"),
]
WRONG = [
    (r"\boxed{\frac{1}{3}}", r"\frac{1}{2}"),
    ("0.49", r"\frac{1}{2}"),
    (r"\boxed{5} then \boxed{6}", "5"),
    (r"\boxed{(3, 4)}", "(4, 3)"),
    (r"\boxed{x^2+2x}", "(x+1)^2"),
    (r"\boxed{Zoe}", r"\text{Evelyn}"),
]


def test_equal_answers_match_whatever_their_form() -> None:
    result = match_answers([said for said, _ in RIGHT], [wanted for _, wanted in RIGHT], "math")
    assert [pair for pair, hit in zip(RIGHT, result.per_example, strict=True) if not hit] == []


def test_different_answers_do_not_match_but_are_read() -> None:
    result = match_answers([said for said, _ in WRONG], [wanted for _, wanted in WRONG], "math")
    assert result.score == 0.0
    assert result.n_unread == 0


def test_a_response_without_a_readable_answer_is_unread_with_its_reason() -> None:
    result = match_answers(
        ["I do not know", "", r"\boxed{\frac{1}{2", r"\boxed{}"], ["4", "4", "1/2", "4"], "math"
    )
    assert result.score == 0.0
    assert result.problems == [
        "no expression found",
        "empty response",
        "box never closed",
        "no expression found",
    ]


def math_500(mirror: Path) -> list[str]:
    table = pq.read_table(mirror / "HuggingFaceH4/MATH-500/default/test.parquet")
    return table["answer"].to_pylist()


def test_every_reference_of_math_500_matches_itself_in_a_box(mirror: Path) -> None:
    answers = math_500(mirror)
    for form in ("%s", r"\boxed{%s}", r"Hence \fbox{$%s$}.", r"\[\boxed{\displaystyle %s}\]"):
        assert match_answers([form % answer for answer in answers], answers, "math").score == 1.0


@pytest.mark.slow
def test_every_reference_of_math_500_matches_itself_through_math_verify(mirror: Path) -> None:
    answers = math_500(mirror)
    for form in ("The answer is $%s$.", "**Answer:** \\(%s\\)"):
        assert match_answers([form % answer for answer in answers], answers, "math").score == 1.0


@pytest.mark.slow
def test_another_problems_reference_of_math_500_does_not_match(mirror: Path) -> None:
    answers = math_500(mirror)
    others = answers[1:] + answers[:1]
    matched = match_answers([rf"\boxed{{{a}}}" for a in answers], others, "math").per_example
    pairs = [(a, b) for a, b, hit in zip(answers, others, matched, strict=True) if hit and a != b]
    assert pairs == [("5", "x=5")]


@pytest.mark.slow
def test_the_worked_solutions_of_math_500_give_their_references(mirror: Path) -> None:
    table = pq.read_table(mirror / "HuggingFaceH4/MATH-500/default/test.parquet")
    solutions, answers = table["solution"].to_pylist(), table["answer"].to_pylist()
    assert match_answers(solutions, answers, "math").score == 1.0


@pytest.mark.slow
def test_an_answer_that_takes_too_long_is_unread_and_the_next_one_is_still_scored() -> None:
    # Integer powers run inside one C call, which no signal interrupts.
    responses = [r"\boxed{9^{9^{9^{9}}}}", r"\boxed{0.5}", r"\boxed{10^{10^{10}}}"]
    result = match_answers(responses, ["8", r"\frac{1}{2}", "3"], "math", time_limit_s=1.0)
    assert result.per_example == [0.0, 1.0, 0.0]
    assert [bool(problem) for problem in result.problems] == [True, False, True]


def test_a_time_limit_that_is_not_positive_is_refused() -> None:
    with pytest.raises(JudgeSenseError, match="time_limit_s"):
        match_answers(["1"], ["1"], "math", time_limit_s=0)


def test_matching_works_outside_the_main_thread() -> None:
    scores: list[float] = []
    thread = threading.Thread(
        target=lambda: scores.append(match_answers(["0.5"], [r"\frac12"], "math").score)
    )
    thread.start()
    thread.join()
    assert scores == [1.0]
