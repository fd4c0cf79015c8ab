"""Texts that are the same, or nearly, under several ids."""

from __future__ import annotations

import numpy as np

from judgesense.statistics.copies import FILLED, folded, linked, near_copies

LETTERS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]


def test_rows_that_share_any_key_are_one_group():
    assert linked(["a", "b", "c", "a"], ["x", "y", "y", "z"]).tolist() == [0, 1, 1, 0]


def test_case_width_and_space_make_no_other_text():
    assert folded("Ｔhe  cat\n") == folded("the CAT") != folded("the cat.")


def test_edits_of_a_text_are_near_copies_and_a_shared_form_is_not():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(LETTERS, 20)) for _ in range(60)]
    form = "Please read the following complaint with care and say what is to be done: "
    edited = [text.replace(text.split()[4], "other") for text in texts[:10]]
    groups = near_copies([form + text for text in [*texts, *edited]])
    assert groups.tolist() == [*range(60), *range(10)]


def test_few_texts_may_all_be_edits_of_one():
    text = "Is the answer correct and does it follow from what the passage says about it?"
    texts = [text, text.replace("passage", "text"), text.replace("Is", "Decide whether"), "Right?"]
    assert near_copies(texts, len(texts)).tolist() == [0, 0, 0, 1]
    assert near_copies(["", ""]).tolist() == [0, 1]


def test_one_form_with_other_words_filled_in_is_nearly_the_same():
    rng = np.random.default_rng(1)
    words = [str(word) for word in rng.choice(LETTERS, 16)]
    texts = [" ".join([*words[:3], f"a{n}", *words[4:9], f"b{n}", *words[10:]]) for n in range(4)]
    assert near_copies(texts, near=FILLED).tolist() == [0, 0, 0, 0]
    assert near_copies([texts[0], " ".join(words[::-1])], near=FILLED).tolist() == [0, 1]
