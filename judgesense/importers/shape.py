"""What a row of a file is: tables as people keep them, with one row a verdict.

Index columns are left out; a column of verdicts and one of people's labels for each of several
criteria become one task each; two columns of verdicts, one for each option order, become two rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from judgesense.files.tables import Rows
from judgesense.importers.column_names import (
    NOT_LABELS,
    RATERS,
    ROLES,
    VERDICTS,
    Column,
    Columns,
    columns_of,
    header_key,
    is_beside_label,
    item_of,
)
from judgesense.importers.columns import ORDER, REPEAT, TASK, VERDICT, values_in
from judgesense.importers.criteria import Criteria, by_criterion, criteria_in
from judgesense.importers.sides import (
    SIDE,
    chosen,
    higher,
    one_hot,
    scored_sides,
    sides_of,
)
from judgesense.importers.summary_rows import SummaryRows
from judgesense.importers.tool_tables import BY_PEOPLE, table_of_tool
from judgesense.importers.values import (
    SAME,
    fold,
    parsed,
    place_of,
)
from judgesense.importers.who import JUDGE, PERSON, subject, tokens, who
from judgesense.tasks import ORDERS
from judgesense.text import join, plural_s

Step = Callable[[Rows], Rows]

_INDEX = re.compile(r"\s*|unnamed[: _]*\d+.*|__index_level_\d+__", re.IGNORECASE)
_FORWARD = (
    "ab original orig normal forward first straight unswapped 1 g1 game1 round1 normale "
    "ursprünglich directo directa direct directe originale 正順 正序 順 原順 元順 정순"
)
_BACKWARD = (
    "ba swapped swap flipped flip reversed reverse inverted second 2 g2 game2 round2 vertauscht "
    "getauscht umgekehrt inversé inversée inverse invertido invertida inverso inversa invertito "
    "invertita scambiato scambiata 逆順 反序 逆 交換後 交换后 역순"
)
_LEADS = re.compile(
    r"\b([ab12])\b\s*(?:(?:/|→|->|>|-|vor|then|dann|puis|luego|poi)\s*[ab12]\b"
    r"|(?:is |shown |wird )?(?:first|zuerst|d.abord|primero|prima|先))",
    re.IGNORECASE,
)
"""What is shown first: ``A/B``, ``B → A``, ``B first``."""
_LETTER_OF = re.compile(r"\(\s*([^()=]+?)\s*=\s*([ABab12])\s*\)")
"""In a column's name, which letter a system had: ``run 2 (baseline=B)``."""
_AB, _BA = frozenset(_FORWARD.split()), frozenset(_BACKWARD.split())
"""In the name of a column of verdicts, the order of the options."""
_ORDER = frozenset({"order", "pass", "position", "positions", "game", "round", "g", "options"})
_ORDINAL = frozenset({"first", "second", "1", "2"})
"""These name an order only beside a word for one."""


def order_in(name: str) -> tuple[str, int] | None:
    """A column's name without its order, and 0 for AB or 1 for BA; None without an order.

    >>> order_in("judge_pick_swapped_order (A = response_b)"), order_in("Modellurteil A/B")
    (('judge_pick', 1), ('modellurteil', 0))
    """
    joined = _LEADS.sub(lambda lead: f" {'ab' if lead[1] in 'aA1' else 'ba'} ", name)
    words = tokens(re.sub(r"\([^)]*=[^)]*\)", "", joined))
    named = [word for word in words if word in _AB | _BA]
    if len(named) != 1 or (named[0] in _ORDINAL and not {*words} & _ORDER):
        return None
    return "_".join(w for w in words if w not in _ORDER | {named[0]}), int(named[0] in _BA)


@dataclass
class Shape:
    """The steps that make a file's rows one row a verdict, and what a person should know."""

    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    has_tasks: bool = False
    """Whether its columns became tasks."""
    added: dict[str, str] = field(default_factory=dict)
    """Column of the decision log -> column that a step adds."""
    people: list[str] = field(default_factory=list)
    """The columns of people's labels that a step adds."""

    def rows(self, blocks: Iterable[Rows]) -> Iterator[Rows]:
        """The rows of a file after all steps."""
        return through(self.steps, blocks)


def through(steps: Iterable[Step], blocks: Iterable[Rows]) -> Iterator[Rows]:
    """The rows after some steps."""
    for rows in blocks:
        for step in steps:
            rows = step(rows)
        yield rows


def shape_of(
    read: Callable[[], Iterable[Rows]],
    given: Iterable[str],
    named: Collection[str],
    criteria: Criteria,
    where: str,
) -> tuple[Shape, Columns, int]:
    """The shape of a file, and its columns and number of rows after that.

    ``given`` are the columns that the user names, of which ``named`` are of verdicts or people's
    labels: where there are any, each row is a verdict, or one of the ``criteria`` named.
    """
    shape, taken = Shape(), {*given}
    summaries = SummaryRows()
    held, size = columns_of(map(summaries, read()))
    if summaries.count:
        shape.steps.append(SummaryRows())
        shape.notes.append(
            f"{summaries.count} row{plural_s(summaries.count)} of averages, totals or a remark "
            f"{'are' if summaries.count > 1 else 'is'} no row"
        )
    found: Columns = held
    index = {name for name in found if name not in taken and _is_index(name, found[name], size)}
    if index:
        shape.steps.append(lambda rows: _without(rows, index))
        found = {name: column for name, column in found.items() if name not in index}
        names = [repr(name) if name.strip() else "a column without a name" for name in index]
        shape.notes.append(f"{join(sorted(names))} only counts rows")
    if listed := {n for n in found if n not in taken and _is_list(found[n], who(n) == PERSON)}:
        shape.steps.append(lambda rows: _spread(rows, listed))
        found = columns_of(shape.rows(read()))[0]
    if nested := {name for name in found if name not in taken and _is_nested(found[name])}:
        shape.steps.append(lambda rows: _with(rows, nested, parsed))
        found = columns_of(shape.rows(read()))[0]
    if hot := {} if named else one_hot(found, shape.rows(read())):
        shape.steps.append(lambda rows: chosen(rows, hot))
        found = columns_of(shape.rows(read()))[0]
        shape.notes += [f"{join([*map(repr, of.values())])} are one choice" for of in hot.values()]
    sides = sides_of(found) or ()
    others = {name: column for name, column in found.items() if name not in sides}
    judges = {name for name in found if header_key(name) in ROLES["judge"].split()}
    if any(_first(text) != text for name in judges for text in found[name].texts):
        shape.steps.append(lambda rows: _with(rows, judges, _first))
        found = columns_of(shape.rows(read()))[0]
    if pairs := criteria or ({} if named else criteria_in(others, where)):
        _add_criteria(shape, found, pairs)
    elif not named:
        _add_orders(shape, found, read)
    if len(shape.steps):
        found, size = columns_of(shape.rows(read()))
    return shape, found, size


def _add_criteria(shape: Shape, found: Columns, pairs: Criteria) -> None:
    """Add the step of columns of criteria."""
    shape.steps.append(lambda rows: by_criterion(rows, pairs))
    parts = (f"{task} ({join([*of.values()])})" for task, of in pairs.items())
    shape.notes.append(f"each criterion is a task: {join([*parts])}")
    used = {name for of in pairs.values() for name in of.values()}
    more = [n for n in found if who(n) == JUDGE and subject(n) in pairs and n not in used]
    more = [n for n in more if found[n].labels and not is_beside_label(found, n)]
    if more:
        shape.notes.append(
            f"{join([*map(repr, more)])} {'are' if more[1:] else 'is'} not used: of each "
            "criterion one judge is read; to read another one, name it with --verdict"
        )
    shape.added = {"task": TASK, "raw_decision": VERDICT}
    people = dict.fromkeys(target for of in pairs.values() for target in of)
    shape.people = [target for target in people if target != VERDICT]
    shape.has_tasks = True


def _add_orders(shape: Shape, found: Columns, read: Callable[[], Iterable[Rows]]) -> None:
    """Add the step of a file in both option orders, or of a tool's table."""
    if scored := scored_sides(found):
        shape.steps.append(lambda rows: higher(rows, scored))
        shape.notes.append(
            f"the higher of {join([*map(repr, scored)])} is the judge's choice; equal scores are a "
            "tie"
        )
        shape.added = {"raw_decision": VERDICT, "judge": f":{SIDE.fullmatch(scored[0])[1]}"}  # type: ignore[index]
    elif orders := _both_orders(found):
        pairs = {order: {VERDICT: name} for order, name in zip(ORDERS, orders, strict=True)}
        shape.steps.append(lambda rows: by_criterion(rows, pairs, ORDER))
        shape.notes.append(f"{orders[0]!r} is in the order AB, {orders[1]!r} in BA")
        left = [n for n in found if n not in orders and who(n) == JUDGE and order_in(n)]
        if left:
            shape.notes.append(
                f"{join([*map(repr, left)])} {'are' if left[1:] else 'is'} not used: of the "
                "judges in both orders the first is read"
            )
        shape.added = {"raw_decision": VERDICT, "order": ORDER}
    elif runs := _runs(found):
        _add_runs(shape, runs)
    elif sides := _sides_swapped(found, shape.rows(read())):
        shape.steps.append(lambda rows: _in_one_order(rows, *sides))
        shape.notes.append(
            f"{join([*map(repr, sides)])} change places between rows of an item: its two orders"
        )
        shape.added = {"order": ORDER}
    elif (tool := table_of_tool(found)) is not None:
        step, shape.added = tool
        if by := found.get(f"{shape.added.get('gold')}{BY_PEOPLE}"):
            shape.notes.append(f"{by.texts['no']} labels by a model are no labels of people")
        shape.steps += [step] if step is not None else []


_RUN = re.compile(
    rf"(?:(.*?)_)?(?:{'|'.join(ROLES['repeat'].split())}|try|rep|lauf|durchlauf|essai|intento"
    r"|corrida|tentativa|prova|运行|運行|試行|실행|第|(?=\d+(?:回|次|轮|회)))_?(\d+)(?:回目?|次|轮|회차?)?_?(.*)"
)
"""The number of a run in a column's name: ``judge_run_2``, ``第2回``."""


def _runs(found: Columns) -> dict[str, dict[str, str]]:
    """Judge -> run -> the column with its verdicts, where each run has a column of its own."""
    by_judge: dict[str, dict[str, str]] = {}
    for name, column in found.items():
        match = _RUN.fullmatch(header_key(name))
        if match and column.labels and who(name) != PERSON and not NOT_LABELS.fullmatch(match[3]):
            judge = "_".join(filter(None, (match[1], match[3])))
            runs = by_judge.setdefault(judge, {})
            if not runs or column.meets(found[next(iter(runs.values()))]):
                runs[match[2]] = name
    by_judge = {judge: runs for judge, runs in by_judge.items() if len(runs) > 1}
    # Of a judge's verdict_1 and score_1, the first is read.
    unnamed = next((name for name in ("", *VERDICTS) if name in by_judge), None)
    return by_judge if unnamed is None else {"judge": by_judge[unnamed]}


def _add_runs(shape: Shape, runs: Mapping[str, Mapping[str, str]]) -> None:
    """Add the steps of columns of one judge's runs, or of several judges'."""
    numbers = dict.fromkeys(number for of in runs.values() for number in of)
    pairs = {n: {judge: of[n] for judge, of in runs.items() if n in of} for n in numbers}
    judges = {judge: {VERDICT: judge} for judge in runs}
    shape.steps += [
        lambda rows: by_criterion(rows, pairs, REPEAT),
        lambda rows: by_criterion(rows, judges, "judge"),
    ]
    names = (f"{join([*map(repr, of.values())])} are runs of {judge}" for judge, of in runs.items())
    shape.notes += names
    shape.added = {"raw_decision": VERDICT, "repeat": REPEAT, "judge": "judge"}


def _is_index(name: str, column: Column, size: int) -> bool:
    """Whether a column only counts the rows: it has no name, or that of an index of pandas."""
    return bool(_INDEX.fullmatch(name)) and column.unique and column.counts(size)


def _is_nested(column: Column) -> bool:
    """Whether its cells are the text of an evaluator's objects, with a label or a score."""
    objects = (parsed(text) for text in column.texts)
    return bool(column.texts) and all(
        isinstance(each, dict) and bool(each.keys() & {"label", "score", "verdict", "passed"})
        for each in objects
    )


_WHO = (*RATERS, "who", "evaluator", "scorer", "author")


def _is_list(column: Column, of_people: bool) -> bool:
    """Whether its cells are lists of objects, one for each of several people."""
    cells = [parsed(text) for text in column.texts]
    objects = [one for each in cells if isinstance(each, list) for one in each]
    return (
        bool(objects)
        and all(isinstance(each, list) for each in cells)
        and all(isinstance(one, Mapping) for one in objects)
        and (of_people or all(one.keys() & {*_WHO} for one in objects))
    )


def _spread(rows: Rows, names: Collection[str]) -> Rows:
    """The rows with a column for each person in lists of objects: ``panel.ana``, ``panel.ben``."""
    columns, about = dict(rows.columns), ROLES["task"].split()
    for name in names:
        for at, cell in enumerate(values_in(rows, name) or []):
            for number, one in enumerate(cell if isinstance(cell, list) else parsed(cell) or [], 1):
                keys = [
                    next((k for k in names if k in one), "") for names in ((*_WHO, "name"), about)
                ]
                person, criterion = (str(one.get(key, "")) for key in keys)
                is_said = who(name) == PERSON or who(person) == JUDGE
                path = [name if is_said else f"people.{name}", person or str(number), criterion]
                cells = columns.setdefault(".".join(filter(None, path)), [None] * len(rows))
                cells[at] = {key: value for key, value in one.items() if key not in keys}
    return Rows(columns, rows.places)


def _first(value: Any) -> Any:
    """The first entry of a list: FastChat names a judge by its model and its prompt."""
    listed = parsed(value)
    return listed[0] if isinstance(listed, list) and listed else value


def _with(rows: Rows, names: Collection[str], read: Callable[[Any], Any]) -> Rows:
    changed = {n: [*map(read, cells)] for n, cells in rows.columns.items() if n in names}
    return Rows({**rows.columns, **changed}, rows.places)


def _without(rows: Rows, names: set[str]) -> Rows:
    return Rows({k: v for k, v in rows.columns.items() if k not in names}, rows.places)


def _both_orders(found: Columns) -> tuple[str, str] | None:
    """The columns with the verdicts in the orders AB and BA; None without them."""
    by_stem: dict[str, dict[int, str]] = {}
    letters = [(name, match) for name in found if (match := _LETTER_OF.search(name))]
    for name, match in letters if len(letters) == 2 else ():
        first = match[1] == letters[0][1][1]  # The system that the first column calls A, or B.
        alike = (match[2].upper() in "A1") == (letters[0][1][2].upper() in "A1")
        if found[name].labels and who(name) != PERSON:
            by_stem.setdefault("", {}).setdefault(int(first != alike), name)
    labels = {"_".join(tokens(name)): name for name, column in found.items() if column.labels}
    for name in labels.values():
        if who(name) != PERSON and (order := order_in(name)) is not None:
            by_stem.setdefault(order[0], {}).setdefault(order[1], name)
    for stem, pair in by_stem.items():
        if 0 not in pair and stem in labels:
            pair[0] = labels[stem]  # pick, and pick_swapped
    sides = {fold(text) for name in sides_of(found) or () for text in found[name].texts}
    for pair in by_stem.values():
        if len(pair) < 2 or not (shared := {*found[pair[0]].words} & {*found[pair[1]].words}):
            continue
        # Two passes over the same order are repeats.
        chosen = any(place_of(word, SAME[1]) is not None or word in sides for word in shared)
        if chosen or not {*tokens(pair[0])} & _ORDINAL:
            return pair[0], pair[1]
    return None


def _sides_swapped(found: Columns, blocks: Iterable[Rows]) -> tuple[str, str] | None:
    """`sides_of` a file in which an item has rows of both orders of the two, as they were shown."""
    sides, item = sides_of(found), item_of(found)
    if sides is None or item is None:
        return None
    seen: set[tuple[str, ...]] = set()
    for rows in blocks:
        cells = (rows.columns.get(name) or [None] * len(rows) for name in (item, *sides))
        seen |= {tuple(map(str, row)) for row in zip(*cells, strict=True)}
    swapped = any(a != b and (item, b, a) in seen for item, a, b in seen)
    return sides if swapped else None


def _in_one_order(rows: Rows, first: str, second: str) -> Rows:
    """The rows with two systems in the order of their names, and the order of what was shown."""
    pairs = list(zip(rows.columns[first], rows.columns[second], strict=True))
    named = [tuple(sorted(pair, key=str)) for pair in pairs]
    orders = ["AB" if own == pair else "BA" for own, pair in zip(named, pairs, strict=True)]
    one, two = ([pair[at] for pair in named] for at in (0, 1))
    return Rows({**rows.columns, first: one, second: two, ORDER: orders}, rows.places)


def only(rows: Rows, name: str, values: Collection[str], keep: bool = True) -> Rows:
    """The rows with one of the values in a column, or with another one."""
    cells = [str(value) for value in values_in(rows, name) or [""] * len(rows)]
    at = [n for n, cell in enumerate(cells) if (cell in values) is keep]
    columns = {key: [column[n] for n in at] for key, column in rows.columns.items()}
    return Rows(columns, [rows.places[n] for n in at])
