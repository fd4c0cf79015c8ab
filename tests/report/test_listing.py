"""The items in a page: what tells them apart, how much fits, and that the page reads it back."""

from __future__ import annotations

import base64
import gzip
import json
import random

import pytest

from judgesense.measure.disagreements import KINDS
from judgesense.reporting.listing import MOST_CHARACTERS, Answer, ListedItem, listing

CASES = [{"name": name, "task": "t", "labels": None} for name in ("one", "two")]
RUBRIC = "Is the reply polite? Answer YES or NO, and think before you do.\n\nReply: "


def items(n, texts, kinds=lambda n: frozenset()):
    for case in range(len(CASES)):
        for at in range(n):
            answer = Answer("-", "YES", "NO", None, {"w": "NO"}, {"w": f"because {at}"})
            yield ListedItem(case, f"i{at}", kinds(at), (answer,), texts(at))


def contents(found):
    text = str(found.data)
    return json.loads(gzip.decompress(base64.b64decode(text)) if found.compressed else text)


def test_a_line_shows_what_differs_and_not_the_rubric() -> None:
    listed = list(items(9, lambda n: {"code": "abc", "prompt": f"{RUBRIC}{n} thanks"}))
    found = listing(listed, KINDS, CASES, {}, KINDS)
    assert found.briefs == [f"{n} thanks" for n in range(9)] * 2
    # Each item's texts are in the page once, however many judges it has.
    assert len(contents(found)["items"]) == 9
    assert len(contents(found)["rows"]) == 18


@pytest.mark.parametrize("n", [10, 4000])
def test_all_items_are_carried_and_the_wrong_ones_are_cut_last(n) -> None:
    letters = random.Random(1)
    texts = ["".join(letters.choices("abcdefgh ", k=3900)) for _ in range(n)]
    listed = list(
        items(n, lambda at: {"text": texts[at]}, lambda at: frozenset(KINDS[:1] if at < 5 else ()))
    )
    found = listing(listed, KINDS, CASES, {}, KINDS)
    read = contents(found)
    assert len(read["items"]) == n == len(read["rows"]) / 2
    assert [row[2] for row in read["items"][:5]] == [{"text": text} for text in texts[:5]]
    assert found.longest[0] is None
    assert (found.longest[1] is not None) == (n * 3900 > MOST_CHARACTERS)
    assert len(found.data) < 9_000_000
    assert found.counts == ((KINDS[0], 1, 10),)
