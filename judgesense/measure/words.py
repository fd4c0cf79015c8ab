"""The words and phrases of items' texts, by which items are compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.statistics.arrays import Bools
from judgesense.statistics.groups import SMALLEST

MOST_WORDS = 1_000
"""The most words and phrases that are compared, the commonest first."""

_MOST_ITEMS, _LONGEST = 3_000, 2_000
"""Of more items a random part is read, and of a longer text so many characters."""

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"
)
"""Letters of scripts without spaces between words: Thai, Lao, Burmese, Khmer, Japanese, Chinese."""


def columns_of_items(items: pa.Table | None, task: str) -> dict[str, dict[str, str]]:
    """Item -> column -> text, of an imported file's other columns (`Run.items`)."""
    columns: dict[str, dict[str, str]] = {}
    if items is not None:
        tasks = items["task"].to_pylist() if "task" in items.column_names else repeat(None)
        cells = (items[name].to_pylist() for name in ("item_id", "column", "text"))
        for task_of_item, item, name, text in zip(tasks, *cells, strict=False):
            if task_of_item in (task, None):
                columns.setdefault(item, {})[name] = text
    return columns


_REMARKS = re.compile(r"comment|critique|explanation|note|rationale|reason|remark", re.IGNORECASE)
"""In a column's name: it says what somebody made of the item."""


def item_texts(items: pa.Table | None, prompts: pa.Table | None, task: str) -> dict[str, str]:
    """What each item of a task says: the columns of an imported file, or its prompt."""
    if columns := columns_of_items(items, task):
        return {
            item: "\n".join(text for name, text in row.items() if not _REMARKS.search(name))
            for item, row in columns.items()
        }
    needed = {"task", "item_id", "template_id", "text"}
    if prompts is None or not needed <= set(prompts.column_names):
        return {}
    own = prompts.filter(pc.equal(prompts["task"], task))
    # In one wording, whose own words are then in every text.
    own = own.filter(pc.equal(own["template_id"], own["template_id"][0])) if len(own) else own
    return dict(zip(own["item_id"].to_pylist(), own["text"].to_pylist(), strict=True))


@dataclass(frozen=True)
class ItemWords:
    """Which of ``items`` have which words and phrases, shape (words, items). ``missing`` says why
    none is compared, in a few words."""

    items: Mapping[str, int]
    names: Sequence[str]
    among: Bools
    missing: str | None = None

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> ItemWords:
        """Of the start of each item's text: words and pairs of neighbouring words that at least
        `SMALLEST` items have, and at most half of them. Which are compared depends on no label."""
        items = list(texts)
        if len(items) > _MOST_ITEMS:
            drawn = np.random.default_rng(0).choice(len(items), _MOST_ITEMS, replace=False)
            items = [items[at] for at in np.sort(drawn)]
        held, counts = [], Counter[str]()
        unspaced = 0
        for item in items:
            text = texts[item][:_LONGEST]
            words = [word.casefold() for word in _WORD.findall(text)]
            unspaced += 2 * len(_UNSPACED.findall(text)) > len(text)
            # In the order of the text, so that ties between counts fall alike in every run.
            own = dict.fromkeys([*words, *map(" ".join, pairwise(words))])
            held.append(own)
            counts.update([*own])
        place = {item: at for at, item in enumerate(items)}
        none = np.zeros((0, len(items)), dtype=np.bool_)
        if not items:
            return cls(place, (), none, "the items have no text")
        if 2 * unspaced > len(items):
            return cls(place, (), none, "the texts have no spaces between words")
        common = [
            word for word, n in counts.most_common() if SMALLEST <= n <= max(len(items) // 2, 0)
        ]
        rows = {word: at for at, word in enumerate(common[:MOST_WORDS])}
        among = np.zeros((len(rows), len(items)), dtype=np.bool_)
        for at, own in enumerate(held):
            among[[rows[word] for word in own if word in rows], at] = True
        # A phrase that always comes with its word says nothing more.
        _, first = np.unique(np.packbits(among, axis=1), axis=0, return_index=True)
        kept = np.sort(first)
        names = [word for at, word in enumerate(rows) if at in {*kept.tolist()}]
        missing = None if names else f"no word is in {SMALLEST} items and in at most half of them"
        return cls(place, names, among[kept], missing)

    @classmethod
    def none(cls) -> ItemWords:
        """Of items without texts."""
        return cls.of({})

    def at(self, items: Sequence[str]) -> tuple[Bools, Bools]:
        """Which of some items are read, and which have which word."""
        places = np.array([self.items.get(item, -1) for item in items], dtype=np.intp)
        if not self.items:
            return places >= 0, np.zeros((0, len(items)), dtype=np.bool_)
        return places >= 0, self.among[:, places] & (places >= 0)
