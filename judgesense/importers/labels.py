"""The decision space of an imported task: given, stated by the file, or shown by its answers.

A stray answer must not become a label. So labels come from gold, options and mapped decisions; the
judges' own answers count only where these do not show the space, and then only the answers that
look like the others.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

from judgesense.answers import parse
from judgesense.errors import JudgeSenseError
from judgesense.importers.column_names import LONGEST, MOST_LABELS, NUMBER, SAME, Column
from judgesense.importers.rows import Columns
from judgesense.tasks import NO_ORDER, UNDECIDED, is_scale

RARE = 0.02
"""An answer is a label only if it has at least this share of the task's answers."""

_KINDS = (
    ("yes", "no"),
    ("true", "false"),
    ("pass", "fail"),
    ("correct", "incorrect"),
    ("c", "i"),
    ("c", "p", "i"),
    ("a", "b"),
    ("a", "b", "tie"),
)
"""Usual decision spaces. If most answers are of one, the others are strays."""


class TaskLabels:
    """What the rows of a task show of its labels."""

    def __init__(self) -> None:
        self.ordered = False
        self._stated: dict[tuple[str, ...], None] = {}
        # By case-folded spelling; the first spelling is kept.
        self._labels: dict[str, str] = {}
        self._answers: Counter[str] = Counter()
        self._texts: Counter[str] = Counter()
        self._mapped = False
        self._rows = 0
        self._spelling: dict[str, str] = {}

    def space(self, task: str) -> tuple[str, ...]:
        """The labels in order. Raises JudgeSenseError if the rows do not show them."""
        if self._stated:
            longest_first = sorted(self._stated, key=len, reverse=True)
            return tuple(dict.fromkeys(label for one in longest_first for label in one))
        labels = dict(self._labels)
        # Two gold labels that are not ratings are the whole space: other answers are not labels.
        if len(labels) < 2 or is_scale(labels):
            for answer in self._common_answers():
                labels.setdefault(answer, self._spelling[answer])
        elif not self._mapped:
            # Gold labels of another vocabulary: the verdicts are still verdicts.
            labels = {**self._other_space(), **labels}
        named = [label for label in labels.values() if label not in UNDECIDED]
        if self.ordered and set(named) <= {"A", "B"}:
            return ("A", "B")
        if not 2 <= len(named) <= MOST_LABELS:
            shown = ", ".join(map(repr, named[:5])) or "none"
            raise JudgeSenseError(
                f"task {task!r}: the log does not show its labels ({len(named)} found: {shown}"
                f"{', ...' if len(named) > 5 else ''}); set them in order (--labels YES,NO)"
            )
        return _ordered(named) if self.ordered or is_scale(named) else tuple(named)

    def _common_answers(self) -> list[str]:
        """The judges' answers, case-folded, that are frequent and of the kind of most."""
        counts, known = self._answers, self._labels
        total = counts.total()
        numbers = [answer for answer in counts if is_scale([answer])]
        words = [answer for answer in counts if answer not in numbers]
        if is_scale(known) if known else 2 * sum(counts[number] for number in numbers) > total:
            kept = numbers
        else:
            usual = (_of_kind(kind, counts, words, total) for kind in _KINDS)
            kept = next(filter(None, usual), words)
        return [answer for answer in kept if answer in known or counts[answer] >= RARE * total]

    def _other_space(self) -> dict[str, str]:
        """The answers and texts, if most are of a usual decision space that is not that of gold."""
        counts = self._answers + self._texts
        if counts.keys() & self._labels.keys():
            return {}
        spaces = ([label for label in kind if label in counts] for kind in _KINDS)
        for labels in spaces:
            if len(labels) > 1 and 2 * sum(counts[label] for label in labels) > self._rows:
                return {label: self._spelling[label] for label in labels}
        return {}

    def add(self, column: str, value: Any, count: int) -> None:
        """Count a value of one of the columns that `show_labels` reads."""
        if value is None:
            return
        if column == "order":
            self.ordered |= value != NO_ORDER
            self._rows += count
        elif column == "space":
            self._stated[value] = None
        elif column in ("raw_decision", "text"):
            answer = value.strip()
            if len(answer) <= LONGEST and answer not in UNDECIDED:
                self._spelling.setdefault(answer.casefold(), answer)
                counts = self._answers if column == "raw_decision" else self._texts
                counts[answer.casefold()] += count
        else:
            self._mapped |= column == "decision"
            for label in value if column == "options" else (value,):
                self._labels.setdefault(label.casefold(), label)


def _of_kind(
    kind: Sequence[str], counts: Mapping[str, int], words: Sequence[str], total: int
) -> list[str]:
    """The words of a usual decision space, if most answers are; no letters beside others."""
    inside = [word for word in words if word in kind]
    letters = len(kind[0]) == 1 and any(len(word) == 1 for word in words if word not in kind)
    return inside if 2 * sum(counts[word] for word in inside) > total and not letters else []


def show_labels(tasks: dict[str, TaskLabels], columns: Columns) -> None:
    """Add what some rows show of their tasks' labels to ``tasks``."""
    options = columns["option_logprobs"]
    names = options and [tuple(name for name, _ in pairs or ()) for pairs in options]
    texts = columns["raw_text"] and [
        None if decision is not None or text is None or len(text) > LONGEST else text
        for text, decision in zip(
            columns["raw_text"], columns["raw_decision"] or repeat(None), strict=False
        )
    ]
    columns = {**columns, "options": names, "text": texts}
    for column in ("order", "space", "options", "gold", "decision", "raw_decision", "text"):
        values = columns[column]
        pairs = zip(columns["task"] or (), repeat(None) if values is None else values, strict=False)
        for (task, value), count in Counter(pairs).items():
            tasks.setdefault(task, TaskLabels()).add(column, value, count)


def comparable(ours: set[str], theirs: set[str]) -> bool:
    """Whether two vocabularies share a word, or mean the same (`SAME`)."""
    families = ({*" ".join(family).split()} for family in SAME)
    return bool(ours & theirs) or any(ours <= words and theirs <= words for words in families)


def space_of(
    found: Mapping[str, Column],
    judged: Sequence[str],
    people: Sequence[str],
    where: str,
    mapping: dict[str, str],
    notes: list[str],
) -> tuple[str, ...] | None:
    """The labels in order, after adding to ``mapping`` what makes two vocabularies one."""
    ours, theirs = (
        {key: word for name in names if name in found for key, word in found[name].words.items()}
        for names in (judged, people)
    )
    columns = {name: found[name] for name in (*judged, *people) if name in found}
    scores = [name for name, column in columns.items() if column.decimals]
    if (
        ours
        and theirs
        and is_scale(ours) != is_scale(theirs)
        and not comparable({*ours}, {*theirs})
    ):
        scores = scores or [name for name in columns if (name in judged) is is_scale(ours)]
    if mapping:
        mapped = {key.casefold() for key in mapping}
        rest = [
            word
            for name, column in columns.items()
            if name not in scores and column.labels
            for key, word in column.words.items()
            if key not in mapped
        ]
        return _ordered({*mapping.values(), *rest})
    if scores:
        other = theirs if scores[0] in judged else ours
        good, bad = ([other[key] for key in other if key in side.split()] for side in SAME[0])
        words = (good[0], bad[0]) if good and bad else ("PASS", "FAIL")
        most = max(float(text) for text in columns[scores[0]].texts if NUMBER.fullmatch(text))
        limit = 0.5 if most <= 1 else most / 2
        limits = shlex.quote(f">={limit:g}={words[0]},<{limit:g}={words[1]}")
        raise JudgeSenseError(
            f"{where}: {scores[0]!r} holds numbers such as {columns[scores[0]].shown}, not labels; "
            f"round them, or name the limits of the labels, such as --map {limits}"
        )
    if texts := [name for name in people if not columns[name].labels]:
        raise JudgeSenseError(
            f"{where}: {texts[0]!r} holds texts such as {columns[texts[0]].shown!r}, not labels; "
            "name the labels: --human COLUMN"
        )
    read = [name for name in judged if name in columns and not columns[name].labels]
    if read and not theirs:
        raise JudgeSenseError(
            f"{where}: {read[0]!r} holds texts such as {columns[read[0]].shown!r}; list the "
            "possible verdicts, which are then read in them: --answers YES,NO"
        )
    if read or not ours:
        return _ordered(theirs.values())
    if not theirs:
        return _ordered(ours.values())
    if ours.keys() & theirs.keys():
        counts = Counter[str]()
        for name in judged:
            for text, number in found[name].texts.items():
                counts[text.casefold()] += number
        often = {key: word for key, word in ours.items() if counts[key] >= RARE * counts.total()}
        if is_scale([*ours, *theirs]) and max(map(int, ours)) > max(map(int, theirs)) + 1:
            notes.append(
                f"verdicts go up to {max(map(int, ours))}, and labels up to "
                f"{max(map(int, theirs))}. If these are two scales, translate one with --map"
            )
        return _ordered({**often, **theirs}.values())
    for family in SAME:
        mine, others = (
            {n: words[key] for n, side in enumerate(family) for key in side.split() if key in words}
            for words in (ours, theirs)
        )
        whole = len(mine) == len(ours) and len(others) == len(theirs) > 1
        if whole and others.keys() <= mine.keys():
            mapping |= {word: mine[place] for place, word in sorted(others.items())}
            same = ",".join(f"{word}={verdict}" for word, verdict in mapping.items())
            notes.append(f"labels are read as verdicts: {same}. To read them otherwise, add --map")
            return _ordered(ours.values())
    labels = _ordered(theirs.values())
    if 2 * sum(parse(text, labels) in labels for text in ours.values()) > len(ours):
        return labels  # short texts that state a label
    pairs = ",".join(map("=".join, zip(theirs.values(), ours.values(), strict=False)))
    raise JudgeSenseError(
        f"{where}: labels ({', '.join([*theirs.values()][:5])}) and verdicts "
        f"({', '.join([*ours.values()][:5])}) have no word in common; say which label is which "
        f"verdict, such as --map {shlex.quote(pairs)}"
    )


def _ordered(words: Iterable[str]) -> tuple[str, ...]:
    """Labels as text, or a scale with every rating: one that nobody gave is a label, too."""
    if not is_scale(names := sorted(set(words))):
        return tuple(names)
    low, high = min(map(int, names)), max(map(int, names))
    every = map(str, range(low, high + 1))
    return tuple(every if high - low < MOST_LABELS else sorted(names, key=int))
