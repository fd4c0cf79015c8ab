"""Which item a row of a foreign log judges, and how often it was judged before."""

from __future__ import annotations

from collections import Counter


class Items:
    """Tells a repeated judgement from a judgement of another answer to the same question.

    >>> items = Items()
    >>> items.name("q1", "Paris"), items.name("q1", "Rome"), items.name("q1", "Paris")
    ('q1', 'q1/2', 'q1')
    >>> items.repeat("judge", "q1"), items.repeat("judge", "q1"), items.repeat("judge", "q1/2")
    (0, 1, 0)
    """

    def __init__(self) -> None:
        self._texts: dict[str, dict[object, str]] = {}
        self._judged: Counter[tuple[object, ...]] = Counter()

    def name(self, question: str, judged: object) -> str:
        """The item's name: the question for its first answer, ``question/2`` for its second."""
        texts = self._texts.setdefault(question, {})
        number = len(texts) + 1
        return texts.setdefault(judged, question if number == 1 else f"{question}/{number}")

    def repeat(self, *key: object) -> int:
        """How often this was judged before."""
        self._judged[key] += 1
        return self._judged[key] - 1
