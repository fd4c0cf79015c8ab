"""Options as token sequences: their trie, and their log-probabilities from a few logits.

An option's score is the log-probability, in nats, of its whole token sequence right after the
prompt. "YES" is two tokens for some tokenizers, so the model's distribution is needed after the
prompt and after every token sequence that some option goes on from: the trie's inner nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from judgesense.errors import JudgeSenseError

ROOT = -1
"""The trie's root: the end of the prompt."""


@dataclass(frozen=True, slots=True)
class OptionTrie:
    """The options of a task as tokens, after a given prompt ending.

    ``nodes`` are the inner nodes below the root in an order in which parents come first, as
    (token, parent). ``paths`` gives each option's steps as (node after which, token).
    ``ends`` gives, for each option, the node after which the answer must stop, or None. An
    option must be scored up to its end when it is the beginning of another one ("1" and "10"):
    then all options of that task are, so that their scores stay comparable.
    """

    nodes: tuple[tuple[int, int], ...]
    paths: tuple[tuple[tuple[int, int], ...], ...]
    ends: tuple[int | None, ...]

    @property
    def steps(self) -> list[tuple[int, int]]:
        """All options' steps behind one another, as (node after which, token)."""
        return [step for path in self.paths for step in path]

    @property
    def depths(self) -> list[int]:
        """Each inner node's number of tokens after the prompt, 1 and more."""
        depths: list[int] = []
        for _, parent in self.nodes:
            depths.append(1 + (depths[parent] if parent != ROOT else 0))
        return depths


def build_trie(sequences: Sequence[tuple[int, ...]], stop_tokens: Sequence[int]) -> OptionTrie:
    """The trie of the options' token sequences.

    Raises JudgeSenseError if two options are the same tokens, or if one is the beginning of
    another and the model has no token that ends an answer.
    """
    if len(set(sequences)) != len(sequences):
        raise JudgeSenseError("two options are the same token sequence: they cannot be told apart")
    nested = any(
        a != b and b[: len(a)] == a for a in sequences for b in sequences if len(a) < len(b)
    )
    if nested and not stop_tokens:
        raise JudgeSenseError(
            "one option's tokens are the beginning of another's, and the model has no "
            "end-of-text token to tell them apart; give options of which none begins another"
        )
    nodes: list[tuple[int, int]] = []
    index: dict[tuple[int, ...], int] = {(): ROOT}
    paths, ends = [], []
    for sequence in sequences:
        inner = len(sequence) if nested else len(sequence) - 1
        for length in range(1, inner + 1):
            if sequence[:length] not in index:
                index[sequence[:length]] = len(nodes)
                nodes.append((sequence[length - 1], index[sequence[: length - 1]]))
        paths.append(tuple((index[sequence[:n]], token) for n, token in enumerate(sequence)))
        ends.append(index[sequence] if nested else None)
    return OptionTrie(tuple(nodes), tuple(paths), tuple(ends))


def tokenise_option(tokenizer: Any, tail: str, option: str) -> tuple[int, ...]:
    """The tokens of an option's text right after the prompt ending ``tail``, no space added.

    They are read off the joint tokenisation of ``tail + option``, since a tokenizer may put a
    word-start mark before a text that stands alone; where the joint one merges across the border
    (the model could then not answer so after the prompt's own tokens), the option's own
    tokenisation is taken. Raises JudgeSenseError if the vocabulary cannot spell the option.
    """

    def encode(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False).input_ids)

    context, joint = encode(tail), encode(tail + option)
    ids = joint[len(context) :] if joint[: len(context)] == context else encode(option)
    spelt = tokenizer.decode(ids, clean_up_tokenization_spaces=False)
    if not option.strip() or spelt.strip() != option.strip():
        raise JudgeSenseError(
            f"the tokenizer cannot spell the option {option!r} (it reads back as {spelt!r}); "
            "use generate scoring, or options that this model's vocabulary holds"
        )
    return tuple(ids)


def option_logprobs(
    trie: OptionTrie, logprobs: Sequence[float], stop_logprobs: Sequence[float]
) -> tuple[float, ...]:
    """Each option's log-probability in nats.

    ``logprobs`` belong to ``trie.steps``; ``stop_logprobs[node + 1]`` is the log-probability of
    all stop tokens together after the root (0) and each inner node.
    """
    taken = iter(logprobs)
    scores = []
    for path, end in zip(trie.paths, trie.ends, strict=True):
        score = sum(next(taken) for _ in path)
        scores.append(score + (stop_logprobs[end + 1] if end is not None else 0.0))
    return tuple(scores)


def shared_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """How many leading tokens two sequences have in common."""
    length = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        length += 1
    return length


def trie_floor(prompts: Sequence[Sequence[int]]) -> int:
    """The nodes of the prompts' token trie: the least tokens a model must read to judge them."""
    ordered = sorted(prompts)
    shared = sum(shared_prefix(a, b) for a, b in pairwise(ordered))
    return sum(map(len, ordered)) - shared
