"""Word-level F1 and exact match after LongBench's normalisation."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from judgesense.answers.matching.result import AnswerMatch, Reading, Reference, accepted, collect

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@lru_cache(maxsize=65_536)
def normalize(text: str) -> str:
    """Lower case, single-spaced, without ASCII punctuation and the articles a, an, the.

    Source: LongBench's ``normalize_answer`` (Bai et al., 2024), named in "Artifact or Flaw?",
    Appendix C. Punctuation is removed before the articles, as there: "a.m." becomes "am".

    >>> normalize("The  Eiffel Tower!")
    'eiffel tower'
    """
    bare = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def word_f1(prediction: str, reference: str) -> float:
    """F1 of the two normalised bags of words, in [0, 1]; 0 if they share no word.

    Source: LongBench's ``qa_f1_score``.

    >>> word_f1("Fifty years", "50 years")
    0.5
    """
    said, wanted = normalize(prediction).split(), normalize(reference).split()
    shared = (Counter(said) & Counter(wanted)).total()
    if shared == 0:
        return 0.0
    precision, recall = shared / len(said), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


def match_f1(predictions: Sequence[str], references: Sequence[Reference]) -> AnswerMatch:
    """Word-level F1 of each response, the best over its accepted answers, as in LongBench.

    A response without a word left after normalisation is unread and scores 0.

    >>> match_f1(["in Paris"], [["Paris", "Lutetia"]]).score.__round__(3)
    0.667
    """
    return collect(
        "f1",
        [
            (max(word_f1(text, answer) for answer in accepted(reference)), _read(normalize(text)))
            for text, reference in zip(predictions, references, strict=True)
        ],
    )


def match_exact(
    predictions: Sequence[str], references: Sequence[Reference], normalized: bool = True
) -> AnswerMatch:
    """1.0 for every response that equals an accepted answer, else 0.0.

    Both sides are normalised as for F1; with ``normalized=False`` only surrounding white space is
    ignored. A text without a word left after normalisation ("A", "...") is compared as written; if
    it equals no accepted answer it is unread and scores 0.

    >>> match_exact(["the Tower", "A"], ["Tower", "B"]).per_example
    [1.0, 0.0]
    """
    form = normalize if normalized else str.strip
    scored = []
    for text, reference in zip(predictions, references, strict=True):
        compared = form(text) or text.strip()
        if compared and compared in {form(each) or each.strip() for each in accepted(reference)}:
            scored.append((1.0, Reading(compared)))
        else:
            scored.append((0.0, _read(form(text))))
    return collect("exact", scored)


def _read(words: str) -> Reading:
    return Reading(words) if words else Reading(None, "no words")
