"""Word-level F1 and exact match against LongBench's published definition."""

from __future__ import annotations

import re
import string
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgesense.answers.matching import match_answers, word_f1

HAND_COMPUTED = [
    ("Fifty years", "50 years", 0.5),  # the paper's example, Appendix C
    ("50 years", "50 years", 1.0),
    ("The 50 years.", "50 Years", 1.0),
    ("in his house", "his house", 0.8),  # precision 2/3, recall 1
    ("a b c", "the", 0.0),
    ("the dog, the dog", "dog", 2 / 3),  # precision 1/2, recall 1: repeats count once
    ("U.S.A.", "USA", 1.0),
    ("co-operate", "cooperate", 1.0),
    ("", "anything", 0.0),
    ("a an the", "a an the", 0.0),  # nothing left on either side
    ("he ran away to sea", "to sea he ran", 8 / 9),  # order is ignored
    ("naïve", "naive", 0.0),
]


@pytest.mark.parametrize(("prediction", "reference", "f1"), HAND_COMPUTED)
def test_f1_equals_the_hand_computed_value(prediction: str, reference: str, f1: float) -> None:
    assert word_f1(prediction, reference) == pytest.approx(f1, abs=1e-12)


def longbench_qa_f1(prediction: str, ground_truth: str) -> float:
    """LongBench's metrics.py (normalize_answer, f1_score, qa_f1_score), as published."""

    def normalize_answer(s: str) -> str:
        def remove_articles(text: str) -> str:
            return re.sub(r"\b(a|an|the)\b", " ", text)

        def white_space_fix(text: str) -> str:
            return " ".join(text.split())

        def remove_punc(text: str) -> str:
            exclude = set(string.punctuation)
            return "".join(ch for ch in text if ch not in exclude)

        return white_space_fix(remove_articles(remove_punc(s.lower())))

    prediction_tokens = normalize_answer(prediction).split()
    truth_tokens = normalize_answer(ground_truth).split()
    common = Counter(prediction_tokens) & Counter(truth_tokens)
    num_same = sum(common.values())
    if num_same == 0:
        return 0
    precision = num_same / len(prediction_tokens)
    recall = num_same / len(truth_tokens)
    return (2 * precision * recall) / (precision + recall)


WORDS = st.text(alphabet="ab the'-.,A\n ", max_size=30) | st.text(max_size=30)


@given(WORDS, WORDS)
def test_f1_equals_longbench_on_any_text(prediction: str, reference: str) -> None:
    assert word_f1(prediction, reference) == pytest.approx(
        longbench_qa_f1(prediction, reference), abs=1e-12
    )


def test_exact_match_normalises_unless_told_not_to() -> None:
    responses, answers = ["The Eiffel Tower.", " yes\n"], ["Eiffel tower", "yes"]
    assert match_answers(responses, answers, "exact").per_example == [1.0, 1.0]
    assert match_answers(responses, answers, "exact", normalized=False).per_example == [0.0, 1.0]


@pytest.mark.parametrize("method", ["exact", "f1"])
def test_no_response_without_words_scores_against_another_text(method: str) -> None:
    said = ["The", "...", "", "<think>A</think>", "an"]
    for answer in ("A", "!", "the answer"):
        result = match_answers(said, [answer] * len(said), method)
        assert result.per_example == [0.0] * len(said)
        assert result.problem_counts == {"no words": len(said)}


def test_exact_match_compares_as_written_where_the_answer_has_no_words() -> None:
    result = match_answers([" A\n", "...", "A", "B"], ["A", ["!", "..."], "B", "A"], "exact")
    assert result.per_example == [1.0, 1.0, 0.0, 0.0]
    assert result.readings == ["A", "...", None, "b"]


@given(WORDS, WORDS.filter(lambda text: text.strip()), st.booleans())
def test_an_unread_response_never_scores(said: str, answer: str, normalized: bool) -> None:
    result = match_answers([said], [answer], "exact", normalized=normalized)
    assert result.per_example == [0.0] or result.readings != [None]
    assert match_answers([answer], [answer], "exact", normalized=normalized).score == 1.0
