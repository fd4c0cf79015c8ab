"""Options as token sequences: their trie, and their log-probabilities from a few logits.

The score of an option is the log-probability, in nats, of its whole token sequence after the
prompt. "YES" has two tokens in some tokenizers, so the model's distribution is needed after the
prompt and after every token sequence that an option continues: the inner nodes of the trie.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgesense.errors import JudgeSenseError
from local_judges.protocol import around_answer

ROOT = -1
"""The trie's root: the end of the prompt."""

MOST_TOKEN_IDS = 128
"""vLLM's limit of token ids per request whose log-probability it returns."""


@dataclass(frozen=True, slots=True)
class OptionTrie:
    """The options of a task as tokens after the end of a prompt.

    ``nodes`` are the inner nodes below the root as (token, parent), parents first; those before
    the options, such as the start of a JSON object, come first and are not scored. ``paths`` are
    the steps of each option as (preceding node, token). ``ends`` is for each option the node after
    which the answer must stop, or None: if one option begins another ("1" and "10"), the scores of
    all options of the task include the end, so that they stay comparable.
    """

    nodes: tuple[tuple[int, int], ...]
    paths: tuple[tuple[tuple[int, int], ...], ...]
    ends: tuple[int | None, ...]

    @property
    def steps(self) -> list[tuple[int, int]]:
        """The steps of all options, concatenated."""
        return [step for path in self.paths for step in path]

    @property
    def depths(self) -> list[int]:
        """The number of tokens after the prompt for each inner node, from 1."""
        depths: list[int] = []
        for _, parent in self.nodes:
            depths.append(1 + (depths[parent] if parent != ROOT else 0))
        return depths


def build_trie(
    sequences: Sequence[tuple[int, ...]], stop_tokens: Sequence[int], before: Sequence[int] = ()
) -> OptionTrie:
    """The trie of the options' token sequences, which follow the tokens ``before``.

    Raises JudgeSenseError if two options have the same tokens, or if one begins another and the
    model has no token that ends an answer.

    >>> trie = build_trie([(5, 6), (5, 7), (8,)], stop_tokens=[2])
    >>> trie.nodes, trie.paths[1]
    (((5, -1),), ((-1, 5), (0, 7)))
    """
    if len(set(sequences)) != len(sequences):
        raise JudgeSenseError("two options have the same tokens, so they cannot be told apart")
    is_nested = _has_prefix_pair(sequences)
    if is_nested and not stop_tokens:
        raise JudgeSenseError(
            "one option begins another, and the model has no end-of-text token to tell them "
            "apart; use options of which none begins another"
        )
    nodes = [(token, place + ROOT) for place, token in enumerate(before)]
    index: dict[tuple[int, ...], int] = {(): len(before) + ROOT}
    paths, ends = [], []
    for sequence in sequences:
        inner = len(sequence) if is_nested else len(sequence) - 1
        for length in range(1, inner + 1):
            if sequence[:length] not in index:
                index[sequence[:length]] = len(nodes)
                nodes.append((sequence[length - 1], index[sequence[: length - 1]]))
        paths.append(tuple((index[sequence[:n]], token) for n, token in enumerate(sequence)))
        ends.append(index[sequence] if is_nested else None)
    return OptionTrie(tuple(nodes), tuple(paths), tuple(ends))


def _has_prefix_pair(sequences: Sequence[tuple[int, ...]]) -> bool:
    """Whether a sequence begins another."""
    return any(b[: len(a)] == a for a in sequences for b in sequences if len(a) < len(b))


def option_trie(
    tokenizer: Any,
    tail: str,
    options: Sequence[str],
    stop_tokens: Sequence[int],
    reply_form: str = "",
) -> OptionTrie:
    """The trie of the options after a prompt that ends in ``tail``, inside the form of a reply.

    The form's text before the answer is read as if the model had begun its reply with it. If one
    option begins another, the first token after the answer belongs to each of them.

    Raises JudgeSenseError if the vocabulary cannot spell an option or the form.
    """
    before, after = around_answer(reply_form)
    # A model writes a space as a part of the word behind it.
    visible = before.rstrip(" ")
    start, gap = tail + visible, before[len(visible) :]
    form_tokens = tokenise_option(tokenizer, tail, visible) if visible else ()
    sequences = [tokenise_option(tokenizer, start, gap + option) for option in options]
    if after.strip() and _has_prefix_pair(sequences):
        sequences = [
            (*tokens, tokenise_option(tokenizer, tail + before + option, after)[0])
            for tokens, option in zip(sequences, options, strict=True)
        ]
    return build_trie(sequences, stop_tokens, form_tokens)


def tokenise_option(tokenizer: Any, tail: str, option: str) -> tuple[int, ...]:
    """The tokens of an option directly after a prompt that ends in ``tail``, without a space.

    They are those of ``tail + option`` tokenised together, because a tokenizer may mark the start
    of a separate text as that of a word. If a token spans the border, which the model could not
    write after the prompt's own tokens, they are those of the option alone. Raises JudgeSenseError
    if the vocabulary cannot spell the option.
    """

    def encode(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False).input_ids)

    context, joint = encode(tail), encode(tail + option)
    ids = joint[len(context) :] if joint[: len(context)] == context else encode(option)
    decoded = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    if not option.strip() or decoded.strip() != option.strip():
        raise JudgeSenseError(
            f"the tokenizer cannot spell the {option!r} option (it decodes to {decoded!r}); use "
            "generate scoring, or options in the vocabulary of this model"
        )
    return tuple(ids)


def option_logprobs(
    trie: OptionTrie, logprobs: Sequence[float], stop_logprobs: Sequence[float]
) -> tuple[float, ...]:
    """The log-probability of each option in nats.

    ``logprobs`` are those of ``trie.steps``; ``stop_logprobs[node + 1]`` is the log-probability of
    all stop tokens together, after the root (index 0) and after each inner node.
    """
    values = iter(logprobs)
    scores = []
    for path, end in zip(trie.paths, trie.ends, strict=True):
        score = sum(next(values) for _ in path)
        scores.append(score + (stop_logprobs[end + 1] if end is not None else 0.0))
    return tuple(scores)


def needed_tokens(trie: OptionTrie, stop_tokens: Sequence[int]) -> dict[int, list[int]]:
    """The tokens whose log-probabilities are needed, by the node that they follow.

    Raises JudgeSenseError if vLLM does not return as many at one place.

    >>> needed_tokens(build_trie([(5, 6), (5, 7), (8,)], stop_tokens=[2]), [2])
    {-1: [5, 8], 0: [6, 7]}
    """
    tokens: dict[int, set[int]] = {node: set() for node in (ROOT, *range(len(trie.nodes)))}
    for node, token in trie.steps:
        tokens[node].add(token)
    for end in trie.ends:
        if end is not None:
            tokens[end].update(stop_tokens)
    most = max(map(len, tokens.values()))
    if most > MOST_TOKEN_IDS:
        raise JudgeSenseError(
            f"{len(trie.paths)} options differ in {most} tokens at one place, but vLLM returns at "
            f"most {MOST_TOKEN_IDS}; use generate scoring or the engine transformers"
        )
    return {node: sorted(ids) for node, ids in tokens.items() if ids}


def path_to(trie: OptionTrie, node: int) -> list[int]:
    """The tokens from the end of the prompt to a node.

    >>> path_to(build_trie([(5, 6, 7)], stop_tokens=[]), 1)
    [5, 6]
    """
    path = []
    while node != ROOT:
        token, node = trie.nodes[node]
        path.append(token)
    return path[::-1]


def scores_of(
    trie: OptionTrie, logprobs_after: Mapping[int, Mapping[int, float]], stop_tokens: Sequence[int]
) -> tuple[float, ...]:
    """The log-probabilities of the options in nats.

    ``logprobs_after`` has those of the tokens of :func:`needed_tokens` after each node.

    >>> scores_of(build_trie([(5, 6), (8,)], []), {-1: {5: -1.0, 8: -2.0}, 0: {6: -0.5}}, [])
    (-1.5, -2.0)
    """
    stops = [-math.inf] * (len(trie.nodes) + 1)
    for end in trie.ends:
        if end is not None:
            after = [logprobs_after[end][token] for token in stop_tokens]
            best = max(after)
            stops[end + 1] = best + math.log(sum(math.exp(value - best) for value in after))
    return option_logprobs(trie, [logprobs_after[node][token] for node, token in trie.steps], stops)


def shared_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """The number of leading tokens that two sequences share.

    >>> shared_prefix([1, 2, 3], [1, 2, 4])
    2
    """
    length = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        length += 1
    return length
