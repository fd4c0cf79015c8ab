"""Options as tokens: their trie, and what of it the model must read."""

from __future__ import annotations

import math

import pytest

from judgesense.errors import JudgeSenseError
from local_judges.local.option_scoring import (
    ROOT,
    build_trie,
    option_logprobs,
    path_to,
    tokens_asked,
)

END = 2


def test_options_of_one_token_need_nothing_beyond_the_prompt() -> None:
    trie = build_trie([(5,), (6,)], [END])
    assert trie.nodes == ()
    assert option_logprobs(trie, [-1.0, -2.0], [-9.0]) == (-1.0, -2.0)


def test_an_option_of_several_tokens_sums_its_steps_and_shares_beginnings() -> None:
    trie = build_trie([(5, 6, 7), (5, 8), (9,)], [END])
    assert trie.nodes == ((5, ROOT), (6, 0))
    assert trie.depths == [1, 2]
    assert trie.steps == [(ROOT, 5), (0, 6), (1, 7), (ROOT, 5), (0, 8), (ROOT, 9)]
    scores = option_logprobs(trie, [-1.0, -0.5, -0.25, -1.0, -3.0, -4.0], [-9.0] * 3)
    assert scores == (-1.75, -4.0, -4.0)


def test_an_option_that_begins_another_is_scored_up_to_its_end_as_are_all() -> None:
    trie = build_trie([(5,), (5, 6), (7,)], [END])
    assert trie.nodes == ((5, ROOT), (6, 0), (7, ROOT))
    # After the root, and after "5", "5 6" and "7": the answer may stop there with these.
    stops = [-50.0, math.log(0.5), math.log(0.25), math.log(0.125)]
    scores = option_logprobs(trie, [-1.0, -1.0, -2.0, -3.0], stops)
    assert scores == pytest.approx((-1 + stops[1], -3 + stops[2], -3 + stops[3]))


def test_the_beginning_of_a_reply_is_read_and_not_scored() -> None:
    trie = build_trie([(5, 6), (7,)], [END], before=(3, 4))
    assert trie.nodes == ((3, ROOT), (4, 0), (5, 1))
    assert trie.depths == [1, 2, 3]
    assert tokens_asked(trie, [END]) == {1: [5, 7], 2: [6]}
    assert path_to(trie, 2) == [3, 4, 5]
    assert option_logprobs(trie, [-1.0, -0.5, -2.0], [-9.0] * 4) == (-1.5, -2.0)


def test_options_that_cannot_be_told_apart_are_refused() -> None:
    with pytest.raises(JudgeSenseError, match="two options have the same tokens"):
        build_trie([(5,), (5,)], [END])
    with pytest.raises(JudgeSenseError, match="one option begins another"):
        build_trie([(5,), (5, 6)], [])
