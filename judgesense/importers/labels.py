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

from judgesense.errors import JudgeSenseError
from judgesense.importers.column_names import MOST_LABELS, Column
from judgesense.importers.rows import Columns
from judgesense.importers.values import (
    LONGEST,
    NUMBER,
    RARE,
    SAME,
    Words,
    fold,
    has_failed,
    is_usual,
    place_of,
    stated,
)
from judgesense.tasks import NO_ORDER, UNDECIDED, is_scale
from judgesense.text import join

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
            if len(answer) <= LONGEST and answer not in UNDECIDED and not has_failed(answer):
                self._spelling.setdefault(fold(answer), answer)
                counts = self._answers if column == "raw_decision" else self._texts
                counts[fold(answer)] += count
        else:
            self._mapped |= column == "decision"
            for label in value if column == "options" else (value,):
                self._labels.setdefault(fold(label), label)


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
    """Whether two vocabularies, folded, share a word, or mean the same (`SAME`)."""
    families = ({*" ".join(family).replace("_", " ").split(" ")} for family in SAME)
    return bool(ours & theirs) or any(ours <= words and theirs <= words for words in families)


def space_of(
    found: Mapping[str, Column],
    judged: Sequence[str],
    people: Sequence[str],
    where: str,
    mapping: dict[str, str],
    notes: list[str],
) -> tuple[str, ...] | None:
    """The labels in order, after adding to ``mapping`` what makes two vocabularies one.

    The labels are people's, else those of the verdicts. Raises JudgeSenseError for numbers with
    fractions and for texts, with the flag that makes them labels.
    """
    columns = {name: found[name] for name in (*judged, *people) if name in found}
    ours, theirs = (
        Words.of(sum((columns[n].texts for n in names if n in columns), Counter[str]()))
        for names in (judged, people)
    )
    scores = [name for name, column in columns.items() if column.decimals]
    words = [set(side.counts) for side in (ours, theirs)]
    known = theirs.classes()
    if len(known) > len(classes := ours.classes()) == 2 and is_usual(classes):
        for word, meant in theirs.synonyms(known).items():
            notes.append(f"{known.pop(word)!r} is read as {known[meant]!r}")
    stating = (
        []
        if not known
        else [
            stated(text, tuple(known.values())) in known.values() for text in ours.spelled.values()
        ]
    )
    if not mapping and not scores and known and 2 * sum(stating) > len(stating):
        scores = []
    elif all(words) and is_scale(words[0]) != is_scale(words[1]) and not comparable(*words):
        scores = scores or [name for name in columns if (name in judged) is is_scale(words[0])]
    if mapping:
        mapped = set(map(fold, mapping))
        limits = any(key.lstrip()[:1] in "<>" for key in mapping)
        rest = [
            word
            for name, column in columns.items()
            if name not in scores and column.labels
            for key, word in column.words.items()
            if key not in mapped
            and (name in people or not people)
            and not (limits and NUMBER.fullmatch(word))
        ]
        return _ordered(_distinct([*mapping.values(), *rest]))
    sides = [side for name in people if name in columns for side in [columns[name].sides] if side]
    if scores and sides and len(sides) == len(people) and {*scores} <= {*judged}:
        good, bad = sides[0].values()
        if all(columns[name].is_share for name in scores):
            mapping |= {">=0.5": good, "<0.5": bad}
            notes.append(
                f"scores from 0 to 1 are cut in the middle: {good} from 0.5 on; for another cut "
                f"add --map {shlex.quote(f'>=0.7={good},<0.7={bad}')}"
            )
            return _ordered(_distinct([good, bad]))
    if scores:
        raise _not_labels(columns, scores[0], theirs if scores[0] in judged else ours, where)
    if texts := [name for name in people if not columns[name].labels]:
        raise JudgeSenseError(
            f"{where}: {texts[0]!r} holds texts such as {columns[texts[0]].shown!r}, not labels; "
            "name the labels: --human COLUMN"
        )
    read = [name for name in judged if name in columns and not columns[name].labels]
    if read and not theirs.counts:
        raise JudgeSenseError(
            f"{where}: {read[0]!r} holds texts such as {columns[read[0]].shown!r}; list the "
            "possible verdicts, which are then read in them: --answers YES,NO"
        )
    if read or not ours.counts:
        return _ordered(known.values()) or None
    if not known:
        return _ordered(ours.classes().values())
    if len(known) == 1:
        known = {**ours.classes(), **known}
    if ours.counts.keys() & known.keys():
        numbers = [int(word) for word in ours.counts if is_scale([word])]
        if is_scale(known) and numbers and max(numbers) > max(map(int, known)) + 1:
            notes.append(
                f"verdicts go up to {max(numbers)}, and labels up to "
                f"{max(map(int, known))}. If these are two scales, translate one with --map"
            )
        own = ours.beside(known)
        if is_scale(known) and len(known) > 2:
            # A rating that nobody among the people gave is on their scale.
            least, most = min(map(int, known)), max(map(int, known))
            most = next((end for end in (5, 10) if most <= end), most)
            own += [f"{n}" for n in numbers if min(1, least) <= n <= most and f"{n}" not in known]
        if own and not is_scale(known):
            notes.append(f"no person gave {join(own)}: verdicts of their own")
        return _ordered([*known.values(), *own])
    if (meaning := ours.meaning(known)) is not None and {*meaning.values()} <= known.keys():
        # The verdicts' words name the labels; of two for one label, the commonest.
        by_label = {known[label]: ours.spelled[word] for word, label in [*meaning.items()][::-1]}
        mapping |= {**by_label, **{ours.spelled[w]: by_label[known[m]] for w, m in meaning.items()}}
        pairs = sorted(by_label.items(), key=lambda pair: ours.spelled.get(fold(pair[1]), ""))
        notes.append(
            f"labels are read as verdicts: {','.join(map('='.join, pairs))}. To read them "
            "otherwise, add --map"
        )
        return _ordered(_distinct([by_label.get(word, word) for word in known.values()]))
    labels = _ordered(known.values())
    if 2 * sum(stated(text, labels) in labels for text in ours.spelled.values()) > len(ours.counts):
        return labels  # short texts that state a label
    pairs_wanted = ",".join(map("=".join, zip(known.values(), ours.spelled.values(), strict=False)))
    raise JudgeSenseError(
        f"{where}: labels ({', '.join([*known.values()][:5])}) and verdicts "
        f"({', '.join([*ours.spelled.values()][:5])}) have no word in common; say which label is "
        f"which verdict, such as --map {shlex.quote(pairs_wanted)}"
    )


def _not_labels(
    columns: Mapping[str, Column], name: str, other: Words, where: str
) -> JudgeSenseError:
    """The question for limits of a column of scores, with the words of the ``other`` side."""
    good, bad = (
        [other.spelled[word] for word in other.counts if place_of(word, SAME[0]) == place]
        for place in (0, 1)
    )
    words = (good[0], bad[0]) if good and bad else ("PASS", "FAIL")
    most = max(float(text) for text in columns[name].texts if NUMBER.fullmatch(text))
    limit = 0.5 if most <= 1 else most / 2
    limits = shlex.quote(f">={limit:g}={words[0]},<{limit:g}={words[1]}")
    return JudgeSenseError(
        f"{where}: {name!r} holds numbers such as {columns[name].shown}, not labels; "
        f"round them, or name the limits of the labels, such as --map {limits}"
    )


def _distinct(words: Iterable[str]) -> list[str]:
    """The words, of each spelling the first."""
    spelled: dict[str, str] = {}
    for word in words:
        spelled.setdefault(fold(word), word)
    return [*spelled.values()]


def _ordered(words: Iterable[str]) -> tuple[str, ...]:
    """Labels as text, or a scale with every rating: one that nobody gave is a label, too."""
    names = sorted(set(words))
    if not names or not is_scale(names):
        return tuple(names)
    low, high = min(map(int, names)), max(map(int, names))
    every = map(str, range(low, high + 1))
    return tuple(every if high - low < MOST_LABELS else sorted(names, key=int))
