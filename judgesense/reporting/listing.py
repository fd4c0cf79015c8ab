"""The items of a page as data for its script: one row an item, every text once, all in one file.

A page that is sent to somebody has to carry its items, and a browser reads no second file beside a
page that was opened from a disk. Many items are therefore compressed rather than left out.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypedDict
from urllib.parse import urlencode

import numpy as np
from markupsafe import Markup

from judgesense.measure.texts import LONGEST_TEXT, WordingTexts
from judgesense.text import printable, same_start

MOST_ROWS = 150_000
"""Answers (an item in one order by one judge) in a page."""
MOST_CHARACTERS, SHORTEST_TEXT, LONGEST_BRIEF = 10_000_000, 40, 140
"""Of all texts in a page, of a text that is cut for that, of the line that tells an item apart."""
MOST_PLAIN = 1_000_000
"""Characters of data beyond which it is compressed."""

_LINE, _SHORT = 12, 30
"""Mean characters from which a column counts as text rather than as a code, and of a beginning that
all items share and that is shown nevertheless."""


_Key = tuple[str, str, tuple[tuple[str, str], ...]]
"""What makes two items one: the task, the name and the texts."""


class CaseNames(TypedDict):
    """A judge and task in the list; ``labels`` are the two options of a comparison."""

    name: str
    task: str
    labels: Sequence[str] | None


class Answer(NamedTuple):
    """What a judge said of an item in one order of its options, in the order of the page's data.

    ``label`` and ``verdict`` name the option as shown; ``shares`` are the verdicts' probabilities.
    """

    order: str
    label: str | None
    verdict: str | None
    margin: float | None
    verdicts: Mapping[str, str]
    answers: Mapping[str, str] = {}
    people: Mapping[str, str] = {}
    shares: Mapping[str, float] = {}


@dataclass(frozen=True)
class ListedItem:
    """An item by the number of its case, why it is listed, its answer in each order, its texts."""

    case: int
    item_id: str
    kinds: frozenset[str]
    answers: tuple[Answer, ...]
    texts: Mapping[str, str]
    groups: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Listing:
    """What the templates need: the buttons, how much the page carries, and the data.

    ``longest`` is where texts are cut, those of items with a kind in ``first`` and of the others;
    None where all are whole. ``briefs`` has the line of each item.
    """

    cases: tuple[str, ...]
    counts: tuple[tuple[str, int, int], ...]
    n_shown: int
    longest: tuple[int | None, int | None]
    briefs: Sequence[str]
    compressed: bool
    data: Markup


def listing(
    items: Sequence[ListedItem],
    kinds: Sequence[str],
    cases: Sequence[CaseNames],
    wordings: WordingTexts,
    first: Collection[str],
    what: str | None = None,
) -> Listing:
    """The items as data; ``what`` heads the verdicts of an item, by default those of wordings.

    The texts of items with a kind in ``first`` are the last that are cut.
    """
    briefs = _briefs(items, cases)
    # Two runs may have different texts of an item of the same name.
    keys = [(cases[item.case]["task"], item.item_id, (*item.texts.items(),)) for item in items]
    urgent = {key for key, item in zip(keys, items, strict=True) if item.kinds & {*first}}
    whole = [item for key, item in zip(keys, items, strict=True) if key in urgent]
    others = [item for key, item in zip(keys, items, strict=True) if key not in urgent]
    most, used = _longest(whole, MOST_CHARACTERS * 3 // 4)
    most_of_others, _ = _longest(others, MOST_CHARACTERS - used)

    def cut(texts: Mapping[str, str], key: _Key) -> dict[str, str]:
        longest = most if key in urgent else most_of_others
        return {
            name: text if len(text) <= longest else f"{text[:longest]} …"
            for name, text in texts.items()
        }

    # Judges share the texts of an item; each is in the page once.
    places: dict[_Key, int] = {}
    shared: list[tuple[object, ...]] = []
    rows: list[tuple[object, ...]] = []
    for key, item, brief in zip(keys, items, briefs, strict=True):
        if key not in places:
            places[key] = len(shared)
            shared.append((item.item_id, brief, cut(item.texts, key), item.groups))
        bits = sum(1 << bit for bit, kind in enumerate(kinds) if kind in item.kinds)
        answers = [answer._replace(answers=cut(answer.answers, key)) for answer in item.answers]
        rows.append((item.case, places[key], bits, answers))
    data = page_data(
        {
            "kinds": kinds,
            "cases": cases,
            "wordings": wordings,
            "items": shared,
            "rows": rows,
            "what": what,
        }
    )
    compressed = len(data) > MOST_PLAIN
    if compressed:
        data = Markup(b64encode(gzip.compress(data.encode(), 6, mtime=0)).decode())
    return Listing(
        cases=tuple(case["name"] for case in cases),
        counts=tuple(
            (kind, 1 << bit, n)
            for bit, kind in enumerate(kinds)
            if (n := sum(kind in item.kinds for item in items))
        ),
        n_shown=len(items),
        longest=(
            most if most < LONGEST_TEXT else None,
            most_of_others if most_of_others < LONGEST_TEXT else None,
        ),
        briefs=briefs,
        compressed=compressed,
        data=data,
    )


def page_data(data: Mapping[str, object]) -> Markup:
    """Data for a script of a page; nothing in a text can end the script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(printable(text).replace("<", "\\u003c"))


def address(name: str, **facets: str) -> str:
    """Where a page shows some items of a case.

    >>> address("gpt · x", filter="flipped by order")
    '#judge=gpt+%C2%B7+x&filter=flipped+by+order'
    """
    known = {facet: value for facet, value in facets.items() if value}
    return f"#{urlencode({'judge': name, **known})}"


def _longest(items: Sequence[ListedItem], most: int) -> tuple[int, int]:
    """The length at which texts are cut so that all of them fit, and what they take then."""
    of_item = {(item.item_id, len(item.texts)): item.texts for item in items}
    texts = [text for each in of_item.values() for text in each.values()]
    texts += [t for item in items for answer in item.answers for t in answer.answers.values()]
    sizes, longest = np.array([len(text) for text in texts] or [0]), LONGEST_TEXT
    while longest > SHORTEST_TEXT and np.minimum(sizes, longest).sum() > most:
        longest = max(SHORTEST_TEXT, longest * 3 // 4)
    return longest, int(np.minimum(sizes, longest).sum())


def _briefs(items: Sequence[ListedItem], cases: Sequence[CaseNames]) -> list[str]:
    """The line that tells an item from the others of its task: of the text that differs most from
    item to item, what follows the beginning that all of them share."""
    columns: dict[str, dict[str, list[str]]] = {}
    for item in items:
        of_task = columns.setdefault(cases[item.case]["task"], {})
        for name, text in item.texts.items():
            of_task.setdefault(name, []).append(text)
    chosen: dict[str, tuple[str, int]] = {}
    for task, of_task in columns.items():
        lines = {n: t for n, t in of_task.items() if sum(map(len, t)) >= _LINE * len(t)} or of_task
        if lines:
            name = max(lines, key=lambda name: len({*lines[name]}))
            texts = {*lines[name]}
            start = same_start(min(texts), max(texts)) if len(texts) > 1 else ""
            # A word that begins alike stays whole, and so does a short beginning.
            skipped = max(start.rfind(" "), start.rfind("\n")) + 1
            chosen[task] = (name, skipped if skipped > _SHORT else 0)
    briefs = []
    for item in items:
        name, skipped = chosen.get(cases[item.case]["task"], ("", 0))
        text = item.texts.get(name) or next(iter(item.texts.values()), "")
        briefs.append(" ".join(text[skipped:].split())[:LONGEST_BRIEF])
    return briefs
