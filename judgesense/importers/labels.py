"""The decision space of an imported task: given, stated by the file, or shown by its answers.

A stray answer must not become a label. So labels come from gold, options and mapped decisions; the
judges' own answers count only where these do not show the space, and then only the answers that
look like the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, repeat
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.importers.rows import Block
from judgesense.tasks import NO_ORDER, UNDECIDED, is_scale

MOST_LABELS = 20
RARE = 0.02
"""An answer outside gold is a label only if it has at least this share of the task's answers."""

_LONGEST = 40
"""In characters; a longer answer is a text, not a label."""
_TOO_LONG = "-" * (_LONGEST + 1)

_KINDS = (
    ("yes", "no"), ("true", "false"), ("pass", "fail"), ("correct", "incorrect"),
    ("c", "i"), ("c", "p", "i"), ("a", "b"), ("a", "b", "tie"),
)  # fmt: skip
"""Usual decision spaces. If most answers are of one, the others are strays."""


class Tally:
    """How often each kind of row came, as far as `decision_space` tells rows apart.

    ``rows`` are the kinds, in the order in which they came first; each has its ``count``.
    """

    def __init__(self) -> None:
        self.tasks: dict[str, None] = {}
        self.ordered: set[str] = set()
        self._kinds: dict[tuple[Any, ...], int] = {}

    def add(self, block: Block) -> None:
        """Count the rows of a block."""
        for task, order in dict.fromkeys(block.zipped("task", "order")):
            self.tasks[task] = None
            if order != NO_ORDER:
                self.ordered.add(task)
        told = block.columns["option_logprobs"]
        options = () if told is None else (tuple(name for name, _ in own or ()) for own in told)
        kinds = zip(
            block.some("task"), block.some("space"), options or repeat(()), block.some("gold"),
            block.some("decision"), block.some("order"), _kept(block, "raw_decision"),
            _kept(block, "raw_text", unless="raw_decision"), strict=False,
        )  # fmt: skip
        for kind, count in Counter(islice(kinds, block.n)).items():
            self._kinds[kind] = self._kinds.get(kind, 0) + count

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The kinds as rows."""
        names = ("task", "space", "options", "gold", "decision", "order", "raw_decision",
                 "raw_text", "count")  # fmt: skip
        return [dict(zip(names, (*kind, n), strict=True)) for kind, n in self._kinds.items()]


def _kept(block: Block, name: str, unless: str | None = None) -> Iterable[str | None]:
    """The texts that can be labels, and one for all that cannot.

    Where there is a value in the column ``unless``, the text makes no difference.
    """
    texts, others = block.columns[name], unless and block.columns[unless]
    if texts is None:
        return repeat(None)
    return (
        None
        if text is None or other
        else text
        if len(text) <= _LONGEST or len(text.strip()) <= _LONGEST
        else _TOO_LONG
        for text, other in zip(texts, others or repeat(None), strict=False)
    )


def decision_space(
    task: str, rows: Sequence[Mapping[str, Any]], given: Sequence[str] | None
) -> tuple[str, ...]:
    """The labels of a task, in order.

    ``rows`` are those of a `Tally`; ``space`` has the labels that the file states for the row.
    Raises JudgeSenseError if the labels are unknown.
    """
    if given is not None:
        if len(given) < 2 or len(set(given)) != len(given):
            raise JudgeSenseError(f"labels must be at least two distinct ones, not {list(given)}")
        return tuple(given)
    mine = [row for row in rows if row["task"] == task]
    stated = dict.fromkeys(row["space"] for row in mine if row["space"])
    if stated:
        return tuple(dict.fromkeys(label for one in sorted(stated, key=len)[::-1] for label in one))
    # By case-folded spelling. Gold labels and options come first: their spelling is kept.
    found: dict[str, str] = {}
    for row in mine:
        for label in (*row["options"], row["gold"], row["decision"]):
            if label is not None:
                found.setdefault(label.casefold(), label)
    # Two gold labels that are not ratings are the whole space: other answers are not labels.
    if len(found) < 2 or is_scale(found):
        for label in _said(mine, set(found)):
            found.setdefault(label.casefold(), label)
    elif other := _other_vocabulary(mine, set(found)):
        # The gold labels are of another vocabulary: the verdicts are still verdicts.
        found = {**other, **found}
    ordered = any(row["order"] != NO_ORDER for row in mine)
    named = [label for label in found.values() if label not in UNDECIDED]
    if ordered and set(named) <= {"A", "B"}:
        return ("A", "B")
    if not 2 <= len(named) <= MOST_LABELS:
        shown = ", ".join(repr(label) for label in named[:5]) or "none"
        raise JudgeSenseError(
            f"task {task!r}: the log does not show its labels ({len(named)} found: {shown}"
            f"{', ...' if len(named) > 5 else ''}); set them in order (--labels YES,NO)"
        )
    if is_scale(named):
        low, high = min(map(int, named)), max(map(int, named))
        # A rating that nobody gave is still a label of the scale.
        if high - low < MOST_LABELS:
            return tuple(map(str, range(low, high + 1)))
        return tuple(sorted(named, key=int))
    return tuple(sorted(named) if ordered else named)


def _said(rows: Sequence[Mapping[str, Any]], known: set[str]) -> list[str]:
    """The judges' answers that can be labels; free texts cannot."""
    spelling: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for row in rows:
        said = row["raw_decision"]
        if said is None or len(said) > _LONGEST or said in UNDECIDED:
            continue
        folded = said.strip().casefold()
        spelling.setdefault(folded, said.strip())
        counts[folded] += row["count"]
    kept = _of_one_kind(counts, known)
    total = sum(counts.values())
    return [spelling[label] for label in kept if label in known or counts[label] >= RARE * total]


def _other_vocabulary(rows: Sequence[Mapping[str, Any]], known: set[str]) -> dict[str, str]:
    """The answers' spellings, if they are of a usual decision space that is not that of gold."""
    counts: Counter[str] = Counter()
    spelling: dict[str, str] = {}
    for row in rows:
        said = (row["raw_decision"] or row["raw_text"] or "").strip()
        if len(said) <= _LONGEST and said not in UNDECIDED and said:
            spelling.setdefault(said.casefold(), said)
            counts[said.casefold()] += row["count"]
    if known & set(counts) or any(row["decision"] is not None for row in rows):
        return {}
    n_rows = sum(row["count"] for row in rows)
    for kind in _KINDS:
        inside = {label: spelling[label] for label in counts if label in kind}
        if len(inside) > 1 and 2 * sum(counts[label] for label in inside) > n_rows:
            return inside
    return {}


def _of_one_kind(counts: Mapping[str, int], known: set[str]) -> list[str]:
    """The answers without those of another kind than most: a word among ratings, say."""
    total = sum(counts.values())
    numbers = [label for label in counts if is_scale([label])]
    words = [label for label in counts if label not in numbers]
    if is_scale(known) if known else 2 * sum(counts[label] for label in numbers) > total:
        return numbers
    for kind in _KINDS:
        inside = [label for label in words if label in kind]
        others = [label for label in words if label not in kind]
        letters = len(kind[0]) == 1 and any(len(label) == 1 for label in others)
        if 2 * sum(counts[label] for label in inside) > total and not letters:
            return inside
    return words
