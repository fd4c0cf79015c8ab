"""The roles of columns in the decision log: judges, items, tasks, orders, repeats, reasons."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from judgesense.errors import JudgeSenseError
from judgesense.importers.column_names import (
    MOST_LABELS,
    ROLES,
    VERDICTS,
    Column,
    Columns,
    header_key,
    item_of,
)
from judgesense.importers.columns import ITEM, ROW, TARGETS, VERDICT
from judgesense.importers.label_space import concludes
from judgesense.importers.rows import fits
from judgesense.importers.shape import order_in
from judgesense.importers.values import LONGEST, SAME, place_of
from judgesense.importers.who import JUDGE, who
from judgesense.text import join

MOST_TASKS = 12
"""A column with more values is about the items, whatever its name."""


def roles_of(
    found: Columns,
    judged: Sequence[str],
    people: Sequence[str],
    given: dict[str, str],
    where: str,
    notes: list[str],
) -> dict[str, str]:
    """Column of the decision log -> column of the file; what is given goes first."""
    roles, used = given, {*judged, *people, *given.values()}
    if verdicts_of_arena(found) in judged:
        used |= {name for name in found if header_key(name) == "judge"}  # The user who voted.
    by_name = {header_key(name): name for name in reversed([*found]) if name not in used}
    for target, names in ROLES.items():
        for key in names.split():
            name = by_name.get(key, "")
            if (
                name
                and target not in roles
                and found[name].filled
                and (fits(target, found[name].texts) or is_named(target, key, found[name]))
            ):
                if target == "system_id" and max(map(len, found[name].texts)) > 3 * LONGEST:
                    continue  # The answers themselves.
                if target == "task" and (values := len(found[name].texts)) > MOST_TASKS:
                    notes.append(
                        f"{name!r} has {values} values, too many for tasks: not used. If rows with "
                        f"the same value are related, add --columns cluster_id={shlex.quote(name)}"
                    )
                    continue
                roles[target] = by_name.pop(key)
    models = [
        n for n in by_name.values() if _JUDGES_MODEL.fullmatch(header_key(n)) and found[n].labels
    ]
    if "judge" not in roles and len(judged) == len(models) == 1:
        roles["judge"] = models[0]
    if "order" not in roles and (order := _order_of(found, judged, used)):
        roles["order"] = order
    for target in TARGETS:
        # A column of the log's own name would be read as such; one with other values is not.
        if target in found and target not in roles and not fits(target, found[target].texts):
            roles[target] = ":"
            notes.append(
                f"{target!r} ({found[target].shown}) is not used: it is not JudgeSense's column"
            )
    _name_judges(found, judged, roles, where)
    # Elsewhere than in a log, a prompt is what the judged system was asked.
    for target, value in (("task", Path(where).stem), ("template_id", "as judged"), ("prompt", "")):
        roles.setdefault(target, f":{value}")
    _name_items({n: c for n, c in found.items() if n not in used}, found, roles, where)
    return roles


_JUDGES_MODEL = re.compile(r"(.*_)?(judge|grader|evaluator|scorer)_?(.*_)?(model|llm)(_name|_id)?")
"""The name of a column with the model of a judge."""


def _order_of(found: Columns, judged: Sequence[str], used: Collection[str]) -> str | None:
    """The column of another name whose values name both orders, beside a choice between two:
    ``A then B``, or yes and no to ``position_swapped``."""
    columns = [found[name] for name in judged if name in found]
    sides = {place_of(word, SAME[1]) for column in columns for word in column.words}
    if not {0, 1} <= sides and not any(concludes(column, ()) for column in columns):
        return None
    for name, column in found.items():
        shown = [order_in(text) for text in column.texts]
        orders = {order[1] for order in shown if order is not None}
        named = order_in(f"{name} order") is not None and column.sides is not None
        if name not in used and len(column.texts) == 2 and (orders == {0, 1} or named):
            return name
    return None


def _name_judges(found: Columns, judged: Sequence[str], roles: dict[str, str], where: str) -> None:
    """Add the columns of verdicts to ``roles``, with the judges' names and reasons."""
    reasons = [_reason_of(found, name) for name in judged]
    roles["raw_decision"] = ",".join(judged)
    if len(judged) == 1:
        generic = header_key(judged[0]) in (
            *VERDICTS,
            *ROLES["raw_text"].split(),
            header_key(VERDICT),
        )
        roles.setdefault("judge", ":judge" if generic else f":{judged[0]}")
        if reasons[0]:
            roles.setdefault("raw_text", reasons[0])
        return
    if (judge := roles.pop("judge", ":")) in found and len(found[judge].texts) > 1:
        raise JudgeSenseError(
            f"{where}: {judge!r} names judges, and {join([*map(repr, judged)])} look like "
            f"verdicts; choose one: --verdict {shlex.quote(judged[0])}"
        )
    roles["raw_text"] = ",".join(filter(None, reasons)) if all(reasons) else ":"


def _name_items(left: Columns, found: Columns, roles: dict[str, str], where: str) -> None:
    """Add what says which item a row is of to ``roles``: a column, one of those ``left``, or the
    row. Raises JudgeSenseError where items have several rows and no column names them."""

    def varies(target: str) -> bool:
        name = roles.get(target, ":")
        return name in found and len(found[name].texts) > 1

    several = [*filter(varies, ("template_id", "order", "repeat", "judge"))]
    free = {n: c for n, c in left.items() if n not in roles.values()}
    ids = {n: c for n, c in free.items() if c.unique or several}
    if "item_id" not in roles and (own := item_of(ids)):
        roles["item_id"] = own
    if "item_id" in roles:
        parts = turns_in({n: found[n] for n in free})
        parts += [roles["system_id"]] if varies("system_id") else []
        for part in parts:
            roles.setdefault("cluster_id", roles["item_id"])
            roles["item_id"] = with_part(roles["item_id"], f"{{{part}}}")
    elif several and (item := _every_time(free, found[roles[several[0]]])):
        roles["item_id"] = item
    elif several:
        raise JudgeSenseError(
            f"{where}: each item has several rows (column {roles[several[0]]!r}), but no "
            "column says which item a row is of; name it with --columns item_id=COLUMN. The "
            f"columns are {', '.join(found)}"
        )
    else:
        roles["item_id"] = ROW


def turns_in(found: Columns) -> list[str]:
    """The column that says on which turn of a conversation a verdict is, if there is one."""
    turns = [n for n in found if re.fullmatch("turn(_(id|index|idx|number|no))?", header_key(n))]
    return [n for n in turns[:1] if 1 < len(found[n].texts) <= MOST_LABELS]


def with_part(item: str, part: str) -> str:
    """The source of an item's id with one more part of it."""
    return f"{item if '{' in item else f'{{{item}}}'}/{part}"


def _every_time(free: Columns, several: Column) -> str | None:
    """The column each of whose values is in as many rows as there are orders or runs; else the
    number of the row that became several."""
    for name, column in free.items():
        if {*column.texts.values()} == {len(several.texts)} and len(column.texts) > MOST_TASKS:
            return name
    return ITEM if ITEM in free else None


def is_named(target: str, key: str, column: Column) -> bool:
    """Whether a column's values are names of runs, or of what is shown first."""
    if target == "repeat":
        few = 1 < len(column.texts) <= MOST_LABELS and column.filled > len(column.texts)
        return few and key != "repeat" and not fits(target, column.texts)
    return target == "order" and 1 <= len(column.words) <= 2 and not key.endswith("order")


def _reason_of(found: Columns, verdict: str) -> str | None:
    """The column with a judge's reasons, such as ``gpt4_reason`` beside ``gpt4``."""
    base = header_key(verdict)
    ends = ROLES["raw_text"].split()
    wanted = {f"{stem}_{end}" for stem in (base, base.rpartition("_")[0]) for end in ends}
    return next((name for name in found if header_key(name) in wanted), None)


def verdicts_of_arena(found: Columns) -> str | None:
    """The column of a judge's verdicts beside the votes of an arena's users (``winner``)."""
    by_name = {header_key(name): name for name in found}
    if not by_name.keys() >= {"model_a", "model_b", "winner"}:
        return None
    votes = found[by_name["winner"]]
    return next((n for n in found if who(n) == JUDGE and found[n].meets(votes)), None)


def shares_words(column: Column, vocabulary: set[str]) -> bool:
    """Whether most words of a column of labels, and at least two, are of a vocabulary."""
    same = {*column.words} & vocabulary
    return column.labels and len(same) > 1 and 2 * len(same) >= len(column.words)
