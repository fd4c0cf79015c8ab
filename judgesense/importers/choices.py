"""Choices between two: every spelling of order and winner becomes one convention.

In the log a verdict names what was shown, A first, and so does the gold label of its row; a tie is
``tie``. Files name what was shown (``first``, ``2``), the item's own options (``model_a``, a
system's name), or a letter, which may be either.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from math import sqrt

from judgesense.answers import parse
from judgesense.errors import JudgeSenseError
from judgesense.files.tables import Rows
from judgesense.importers.column_names import Columns, header_key
from judgesense.importers.columns import ORDER, VERDICT, ColumnMap, values_in
from judgesense.importers.rows import cells_in
from judgesense.importers.shape import order_in
from judgesense.importers.sides import sides_of
from judgesense.importers.values import (
    SAME,
    fold,
    is_choice,
    is_tie,
    place_of,
    says_nothing,
    side_named,
)
from judgesense.importers.word_counts import WordCounts
from judgesense.tasks import NO_ORDER, ORDERS

LABELS = ("A", "B", "tie")
_SHOWN = frozenset(["first", "second", "left", "right"])
_OWN = ("model a", "model b", "model 1", "model 2")
_BACK = ("swapped_back", "own_order", "unswapped", "realigned")
"""In the name of a column whose verdicts name the item's own options although letters do."""
_SEEN = 20_000
_JUDGESENSE = {"item_id", "verdict"}
"""Columns of a table of verdicts, and of a file of ``judgesense judge`` beside them, whose verdicts
name the item's own options."""
_OF_JUDGE = {"ask_person", "cost_usd"}
_CLEAR = 3.0
"""Standard errors beyond which an association of verdicts and labels is no chance."""


@dataclass
class Choices:
    """How a file of choices is read: the sides of `SAME` by folded word, and whose order they name.

    ``own`` are the columns whose labels name the item's own options, in every row.
    """

    columns: tuple[str, ...]
    order: str
    sides: Mapping[str, int]
    names: tuple[str, str] | None
    """The columns with the names of both systems, which also name a winner."""
    own: set[str] = field(default_factory=set)

    def side(self, text: object, names: Sequence[str]) -> int | None:
        """The side that a label names, 0, 1, or 2 for a tie."""
        named = side_named(text, names)
        return self.sides.get(fold(str(text))) if named is None else named

    def __call__(self, rows: Rows) -> Rows:
        """The rows with ``A``, ``B`` and ``tie`` as shown, and with the orders AB and BA."""
        columns = dict(rows.columns)
        systems = [values_in(rows, name) or [""] * len(rows) for name in self.names or ()]
        named = [[fold(str(name)) for name in pair] for pair in zip(*systems, strict=True)]
        named = named or [[]] * len(rows)
        orders = [
            self.order_of(value, names)
            for value, names in zip(rows.columns[self.order], named, strict=True)
        ]
        for name in self.columns:
            values = cells_in(rows, name)
            cells: list[object] = []
            for value, order, names in zip(values, orders, named, strict=True):
                place = None if says_nothing(value) else self.side(value, names)
                if place in (0, 1) and (name in self.own or side_named(value, names) is not None):
                    place = place if order == "AB" else 1 - int(place or 0)
                cells.append(value if place is None else LABELS[place])
            columns[name] = cells
        columns[ORDER] = orders
        return Rows(columns, rows.places)

    def order_of(self, value: object, names: Sequence[str]) -> str:
        """AB or BA, as `order_named`; AB for a blank cell."""
        return order_named(value, names) or "AB"


def order_named(value: object, names: Sequence[str] = ()) -> str | None:
    """The order that a cell names: as AB, by what is shown first, or by whether it was swapped."""
    word = fold(str(value))
    if (order := re.sub(r"[\W_]", "", word).upper()) in ORDERS:
        return order
    if word in names:
        return ORDERS[names.index(word)]
    if word in ("true", "false", "yes", "no"):
        return ORDERS[word in ("true", "yes")]
    if (place := place_of(word, SAME[1])) is not None:
        return ORDERS[place % 2]
    named = order_in(f"{value} order")
    return None if named is None else ORDERS[named[1]]


def choices_of(
    blocks: Iterable[Rows],
    found: Columns,
    judged: Sequence[str],
    people: Sequence[str],
    roles: Mapping[str, str],
    mapping: Mapping[str, str],
    notes: list[str],
    where: str,
    *,
    is_table: bool = False,
) -> Choices | None:
    """How a file's choices between two are read; None for a file of other verdicts.

    A letter names what was shown or the item's own option. The words of ``mapping`` settle it, or
    people's labels, if the judge clearly agrees with them in one reading. In a table of verdicts
    (``is_table``) and a file of ``judgesense judge`` it is the item's own. Otherwise the program
    asks if an item has rows in both orders; if none has, it is what was shown, as ``notes`` says.

    Raises JudgeSenseError for letters in both orders of which nothing says what they name.
    """
    order = roles.get("order", ":")
    if order not in found or not judged or {*found[order].texts} <= {NO_ORDER}:
        return None
    names = sides_of(found)
    systems = {fold(t) for name in names or () for t in found[name].texts}
    shown = [text for text in found[order].texts if fold(text) not in systems]
    if len(found[order].texts) > 1 and not all(map(order_named, shown)):
        raise JudgeSenseError(
            f"{where}: {order!r} holds {found[order].shown}, which do not say what was shown "
            "first: write AB and BA, or leave it out with --columns order=:AB"
        )
    places = {word: _meant(word, mapping) for word in _words(found, [*judged, *people])}
    if places.keys() == {"0", "1", "2"}:
        places["0"] = 2
    if any("[[C]]" in found[name].texts for name in judged):
        places["c"] = 2  # MT-Bench's prompt for pairs asks for it.
    sides = {word: n for word, n in places.items() if n is not None and word not in systems}
    words = WordCounts.of(found[judged[0]].texts).counts
    chosen = [word for word in words if word in systems or sides.get(word) in (0, 1)]
    others = sum(n for word, n in words.items() if word not in sides and word not in systems)
    if not chosen or 10 * others > sum(words.values()):
        return None
    choices = Choices((*judged, *people), order, sides, names)
    for name in choices.columns:
        if {*found[name].words} & {*_OWN} or header_key(name).endswith(_BACK):
            choices.own.add(name)
    rows = list(_sample(blocks))
    letters = [n for n in choices.columns if n not in choices.own and not _shown(found, n, systems)]
    stated = {fold(mapping[key]) for key in mapping if fold(key) in choices.sides}
    if stated & {*_OWN}:
        choices.own.update(name for name in letters if name in judged)
    for name in [n for n in people if n in letters]:
        if _follows_item(rows, choices, name, roles):
            choices.own.add(name)
    is_own = found.keys() >= _JUDGESENSE and (is_table or found.keys() >= _OF_JUDGE)
    for name in [n for n in judged if n in letters and not stated & {*_OWN, *_SHOWN}]:
        reading = _as_people(rows, choices, name, people[0]) if people else None
        word = {n: text for text, n in sides.items() if text in found[name].words}
        a, b = (found[name].words.get(word.get(n, ""), LABELS[n]) for n in (0, 1))
        several = len({*map(choices.order_of, found[order].texts, repeat(()))}) > 1
        differs = _has_both(rows, choices, name, roles) or (several and people)
        is_asked = not is_own and order != ORDER and differs
        if reading is None and is_asked:
            raise JudgeSenseError(
                f"{where}: {a} and {b} in {name!r} may name what was shown (in the order BA, {a} "
                f"is the second option of the item) or the item's own options ({a} is the same in "
                f"both orders). Say which: --map {a}=first,{b}=second for what was shown, --map "
                f"{a}=model_a,{b}=model_b for the item's own"
                f"{f', as people name them in {people[0]!r}' if people else ''}"
            )
        if reading is None:
            other = f"{a}=first,{b}=second" if is_own else f"{a}=model_a,{b}=model_b"
            notes.append(
                f"letters in {name!r} name {'the own options of an item' if is_own else _FIRST}; "
                f"to read them otherwise, add --map {other}"
            )
        if is_own if reading is None else reading:
            choices.own.add(name)
    return choices


def concluded(rows: Rows, name: str, labels: tuple[str, ...]) -> Rows:
    """The rows with the side that each text of a column states as its verdict; C is a tie."""
    texts = cells_in(rows, name)
    said = [None if text is None else parse(text, labels) for text in texts]
    cells = [text if side not in labels else side for text, side in zip(texts, said, strict=True)]
    cells = ["tie" if side == "C" else side for side in cells]
    return Rows({**rows.columns, VERDICT: cells}, rows.places)


def winners_of(
    found: Columns, judged: Sequence[str], people: Sequence[str], roles: Mapping[str, str]
) -> tuple[str, str] | None:
    """The columns with the systems by whose names a file without orders names its winners, if
    these differ between rows, or if other columns of verdicts or labels name the sides."""
    sides = sides_of(found)
    if sides is None or roles.get("order", ":") in found:
        return None
    systems = {fold(text) for name in sides for text in found[name].texts}
    used = [WordCounts.of(found[n].texts).counts for n in (*judged, *people) if n in found]
    others = [
        c for c in used if 2 * sum(n for w, n in c.items() if w in systems) <= sum(c.values())
    ]
    if len(others) == len(used) or not all(is_choice(words) for words in others):
        return None
    return sides if others or len(systems) > 2 else None


def as_sides(rows: Rows, names: Sequence[str], sides: tuple[str, str]) -> Rows:
    """The rows with the names of two columns for the systems that their values name, and ties."""
    words = sides if is_choice(map(fold, sides)) else ("model_a", "model_b")
    systems = [
        [fold(str(system)) for system in row]
        for row in zip(*(rows.columns[side] for side in sides), strict=True)
    ]
    columns = dict(rows.columns)
    for name in names:
        if name in columns:
            cells = zip(systems, columns[name], strict=True)
            named = [(side_named(value, pair), value) for pair, value in cells]
            columns[name] = [
                words[at] if at is not None else "tie" if is_tie(value) else value
                for at, value in named
            ]
    return Rows(columns, rows.places)


_FIRST = "what was shown, A first"


def _words(found: Columns, names: Iterable[str]) -> dict[str, None]:
    return dict.fromkeys(word for name in names for word in found[name].words)


def _meant(word: str, mapping: Mapping[str, str]) -> int | None:
    translated = {fold(key): fold(value) for key, value in mapping.items()}
    word = translated.get(word, word)
    return place_of(word, SAME[1] if word != "c" else (*SAME[1][:2], ""))


def _shown(found: Columns, name: str, systems: set[str]) -> bool:
    words = {*found[name].words}
    return bool(words & _SHOWN) or bool(words & systems)


def _sample(blocks: Iterable[Rows]) -> Iterable[Rows]:
    size = 0
    for rows in blocks:
        yield rows
        size += len(rows)
        if size >= _SEEN:
            return


def _follows_item(
    rows: Sequence[Rows], choices: Choices, name: str, roles: Mapping[str, str]
) -> bool:
    """Whether a person's label stays the same where the order changes, as an item's own does."""
    counts: Counter[bool] = Counter()
    for by_order in _by_item(rows, choices, name, roles):
        if {*by_order.values()} <= {0, 1}:
            counts[by_order["AB"] == by_order["BA"]] += 1
    # With one row an item, people's labels are the item's, but in a decision log as shown.
    return counts[True] > counts[False] or (not counts and header_key(name) != "gold")


def _by_item(
    rows: Sequence[Rows], choices: Choices, name: str, roles: Mapping[str, str]
) -> list[dict[str, int | None]]:
    """The sides that a column names in both orders of an item, as it is."""
    sides: dict[object, dict[str, int | None]] = {}
    for block in rows:
        items = ColumnMap(roles).column(block, "item_id") or [None] * len(block)
        orders = choices(block).columns[ORDER]
        for item, order, value in zip(items, orders, values_in(block, name) or [], strict=False):
            sides.setdefault(str(item), {})[str(order)] = choices.sides.get(fold(str(value)))
    return [by_order for by_order in sides.values() if len(by_order) == 2]


def _has_both(rows: Sequence[Rows], choices: Choices, name: str, roles: Mapping[str, str]) -> bool:
    """Whether a judge chose one of two in both orders of an item: the readings differ then."""
    pairs = _by_item(rows, choices, name, roles)
    return any({*by_order.values()} & {0, 1} for by_order in pairs)


def _as_people(rows: Sequence[Rows], choices: Choices, name: str, person: str) -> bool | None:
    """Whether a judge's letters name the item's own options, by people's labels; None if unclear.

    In the order AB both readings are the same, in BA they are opposites: so the association of
    verdicts and labels keeps its sign if both name the same, and turns if only one names what was
    shown. It is taken beyond the share of each letter, which a judge that always takes the first
    option and people who prefer one would have in common.
    """
    tables = {order: [[0, 0], [0, 0]] for order in ORDERS}
    for block in rows:
        orders = choices(block).columns[ORDER]
        verdicts, labels = values_in(block, name) or [], values_in(block, person) or []
        for order, verdict, label in zip(orders, verdicts, labels, strict=False):
            one, two = (choices.sides.get(fold(str(value))) for value in (verdict, label))
            if one in (0, 1) and two in (0, 1):
                tables[str(order)][one][two] += 1
    same, turned = (_association(tables[order]) for order in ORDERS)
    if min(abs(same), abs(turned)) < _CLEAR:
        return None
    return (same * turned > 0) == (person in choices.own)


def _association(table: Sequence[Sequence[int]]) -> float:
    """The correlation in a table of two by two, in standard errors of chance; 0 without one."""
    (a, b), (c, d) = table
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    return (a * d - b * c) * sqrt((a + b + c + d) / margins) if margins else 0.0
