"""How a token is chosen from logits: greedily, or drawn with a seed of the prompt's own."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Decoding:
    """At most ``max_tokens`` tokens; greedy at ``temperature`` 0, else drawn from the softmax of
    logits / temperature."""

    max_tokens: int
    temperature: float = 0.0
    seed: int = 0

    def seed_of(self, prompt_id: str, repeat: int = 0) -> int:
        """A prompt's own seed, so that its text does not depend on its batch; another each time
        that the prompt is asked again."""
        digest = hashlib.sha256(f"{self.seed}:{prompt_id}:{repeat}".encode()).digest()
        return int.from_bytes(digest[:8], "big")
