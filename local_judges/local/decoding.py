"""How the next token is chosen: greedily, or sampled with a separate seed for each prompt."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Decoding:
    """At most ``max_tokens`` tokens: greedy at ``temperature`` 0, else sampled from the softmax of
    logits / temperature."""

    max_tokens: int
    temperature: float = 0.0
    seed: int = 0

    def seed_of(self, prompt_id: str, repeat: int = 0) -> int:
        """The seed of a prompt and repeat, so that a text does not depend on its batch.

        >>> Decoding(20, 0.7).seed_of("p1") == Decoding(20, 0.7).seed_of("p1", repeat=1)
        False
        """
        digest = hashlib.sha256(f"{self.seed}:{prompt_id}:{repeat}".encode()).digest()
        return int.from_bytes(digest[:8], "big")
