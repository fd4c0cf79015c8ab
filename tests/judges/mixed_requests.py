"""Prompts of many lengths, with options of one token, of several, and one that begins another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from local_judges.protocol import Request

Kind = tuple[str, tuple[str, ...]]

YES_NO: Kind = ("Is this right? Answer YES or NO only.", ("YES", "NO"))
SENTENCES: Kind = ("How sure?", ("absolutely certain", "absolutely not, no way", "unsure"))
NESTED: Kind = ("How many, out of 10?", ("1", "10", "2"))
KINDS: tuple[Kind, ...] = (
    YES_NO,
    ("Is this right? Answer with a number from 1 to 5.", ("1", "2", "3", "4", "5")),
    ("Which is better? Reply A or B.", ("A", "B")),
    SENTENCES,
    NESTED,
)
_WORDS = ["one", "apple", "Paris", "1987", "is,", "not:", "the?", "so\n\n", "Łódź", "(maybe)"]


def mixed_requests(n: int, kinds: Sequence[Kind] = KINDS, longest: int = 150) -> list[Request]:
    """Prompts of 1 to ``longest`` words after a few instructions."""
    rng = np.random.default_rng(0)
    requests = []
    for at in range(n):
        instruction, options = kinds[at % len(kinds)]
        words = rng.choice(_WORDS, min(longest, 1 + int(rng.exponential(10))))
        requests.append(Request(f"p{at}", f"{instruction}\n\nText: {' '.join(words)}", options))
    return requests
