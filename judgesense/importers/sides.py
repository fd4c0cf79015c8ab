"""The two sides of a choice: the columns that name them, mark one of them, or score both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from judgesense.files.tables import Rows
from judgesense.importers.column_names import Columns, header_key
from judgesense.importers.columns import VERDICT
from judgesense.importers.rows import cells_in
from judgesense.importers.values import (
    SAME,
    fold,
    is_choice,
    is_usual,
    number_in,
    place_of,
    says_nothing,
    word_of,
)
from judgesense.importers.who import JUDGE, PERSON, subject, tokens, who
from judgesense.tasks import is_scale

SIDES = (
    ("shown_first", "shown_second"),
    ("model_a", "model_b"),
    ("generator_1", "generator_2"),
    ("system_a", "system_b"),
    ("model_1", "model_2"),
)
"""Names of the columns with the names of the two systems that are compared."""


def sides_of(found: Columns) -> tuple[str, str] | None:
    """The columns with the names of the two systems that are compared: of usual names, or of names
    that end in A and B, whose values are the same few names. Columns of yes and no are verdicts."""
    by_name = {header_key(name): name for name, column in found.items() if column.sides is None}
    if usual := next(
        ((by_name[a], by_name[b]) for a, b in SIDES if {a, b} <= by_name.keys()), None
    ):
        return usual
    ends: dict[str, str] = {}
    for name, column in found.items():
        *words, last = tokens(name) or [""]
        is_end = last in ("a", "b", "left", "right") or (
            last in ("1", "2") and subject(" ".join(words))
        )
        # A blind test calls its columns Left and Right.
        if (words or len(last) > 1) and is_end and column.labels and who(name) != PERSON:
            ends.setdefault(last, name)
    pairs = [
        (ends[a], ends[b]) for a, b in ("ab", "12", ("left", "right")) if {a, b} <= ends.keys()
    ]
    for pair in pairs:
        one, two = (found[name].words.keys() for name in pair)
        same = len(one & two) > 1 or (len(one) == len(two) == 1 and one != two)
        if same and not is_usual(one | two):
            return pair
    return None


SIDE = re.compile(
    r"(.+?)[\W_]+((?:model|response|answer|output)?[\W_]*(?:[ab12]|left|right)|tie|draw|both)\W*",
    re.IGNORECASE,
)
"""The side of a choice at the end of a column's name."""
_YES, _NO = ("1", "true", "yes", "t", "y", "x"), ("0", "false", "no", "f", "n")


def by_side(found: Columns) -> dict[str, dict[int, str]]:
    """What columns are on -> side, 0, 1 or 2 for a tie -> column."""
    groups: dict[str, dict[int, str]] = {}
    for name in found:
        if match := SIDE.fullmatch(name):
            place = place_of(header_key(match[2]).replace("_", " "), SAME[1])
            if place is not None:
                groups.setdefault(match[1], {}).setdefault(place, name)
    return {stem: of for stem, of in groups.items() if {0, 1} <= of.keys()}


def one_hot(found: Columns, blocks: Iterable[Rows]) -> dict[str, dict[int, str]]:
    """`by_side` of the columns of which each row marks one: ``winner_model_a``, ``winner_tie``."""
    groups = {
        stem: of
        for stem, of in by_side(found).items()
        if stem not in found
        and all({*found[name].words} <= {*_YES, *_NO} for name in of.values())
        and (2 in of or re.search("win|prefer|choice|chosen|pick|best", stem.casefold()))
    }
    rows = list(blocks) if groups else []
    return {
        stem: of
        for stem, of in groups.items()
        if all(len(marked) == 1 or not any(said) for marked, said in _marks(rows, of))
    }


def _marks(blocks: Iterable[Rows], of: Mapping[int, str]) -> Iterator[tuple[list[int], list[str]]]:
    """In each row, the sides that are marked, and what the columns say."""
    for rows in blocks:
        for cells in zip(*(cells_in(rows, name) for name in of.values()), strict=True):
            said = ["" if says_nothing(cell) else fold(cell) for cell in cells]
            yield [side for side, word in zip(of, said, strict=True) if word in _YES], said


def chosen(rows: Rows, groups: Mapping[str, Mapping[int, str]]) -> Rows:
    """The rows with one column for the columns of each side."""
    used = {name for of in groups.values() for name in of.values()}
    columns = {name: cells for name, cells in rows.columns.items() if name not in used}
    for stem, of in groups.items():
        marks = (marked for marked, _ in _marks([rows], of))
        columns[stem] = [("model_a", "model_b", "tie")[each[0]] if each else None for each in marks]
    return Rows(columns, rows.places)


def scored_sides(found: Columns) -> list[str]:
    """A judge's columns with scores of both sides, where another column holds choices between
    them."""
    for of in by_side(found).values():
        pair = [of[0], of[1]]
        others = [column for name, column in found.items() if name not in pair and column.labels]
        rates = all(
            who(n) == JUDGE and (found[n].numeric or is_scale(found[n].words)) for n in pair
        )
        if rates and any(is_choice(c.words) and not is_scale(c.words) for c in others):
            return pair
    return []


def higher(rows: Rows, pair: Sequence[str]) -> Rows:
    """The rows with the side that has the higher score as the verdict."""
    scores = ([number_in(word_of(cell) or "") for cell in cells_in(rows, n)] for n in pair)
    cells = [
        None if a is None or b is None else "tie" if a == b else "A" if a > b else "B"
        for a, b in zip(*scores, strict=True)
    ]
    return Rows({**rows.columns, VERDICT: cells}, rows.places)
