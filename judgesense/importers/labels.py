"""The decision space of a task in a log: given, stated by the file, or shown by its answers.

A stray answer must not become a label. So labels come from gold, options and mapped decisions; the
judges' own answers count only where these do not show the space, and then only the answers that
look like the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.importers.column_names import MOST_LABELS
from judgesense.importers.rows import Columns
from judgesense.importers.values import LONGEST, UNREAD, fold, has_failed
from judgesense.importers.word_counts import RARE
from judgesense.tasks import NO_ORDER, UNDECIDED, is_scale

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
        return with_every_rating(named) if self.ordered or is_scale(named) else tuple(named)

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
        if "valid" not in counts:
            kept = [answer for answer in kept if answer != UNREAD]
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


_SCALES = (
    "strongly_disagree disagree somewhat_disagree=slightly_disagree neutral="
    "neither_agree_nor_disagree=neither_agree_or_disagree=neither=undecided "
    "somewhat_agree=slightly_agree agree strongly_agree",
    "very_dissatisfied dissatisfied=unsatisfied neutral=neither_satisfied_nor_dissatisfied "
    "satisfied very_satisfied",
    "very_poor=very_bad=terrible poor=bad fair=average=acceptable=mediocre good very_good "
    "excellent",
    "very_unlikely unlikely neutral likely very_likely",
    "never rarely=seldom sometimes often=usually always",
    "very_low low medium=moderate high very_high",
    "stimme_überhaupt_nicht_zu=trifft_überhaupt_nicht_zu=trifft_gar_nicht_zu "
    "stimme_nicht_zu=trifft_nicht_zu stimme_eher_nicht_zu=trifft_eher_nicht_zu "
    "neutral=teils_teils=teils/teils=weder_noch stimme_eher_zu=trifft_eher_zu stimme_zu=trifft_zu "
    "stimme_voll_zu=stimme_voll_und_ganz_zu=trifft_voll_zu=trifft_voll_und_ganz_zu",
    "totalmente_en_desacuerdo=muy_en_desacuerdo en_desacuerdo neutral="
    "ni_de_acuerdo_ni_en_desacuerdo de_acuerdo totalmente_de_acuerdo=muy_de_acuerdo",
    "pas_du_tout_d'accord pas_d'accord neutre=ni_d'accord_ni_pas_d'accord d'accord "
    "tout_à_fait_d'accord",
    "kesinlikle_katılmıyorum katılmıyorum kararsızım=ne_katılıyorum_ne_katılmıyorum katılıyorum "
    "kesinlikle_katılıyorum",
)
"""Scales in words, the lowest level first; a space is written _."""
_LEVELS = [
    {fold(word): n for n, level in enumerate(scale.split()) for word in level.split("=")}
    for scale in _SCALES
]


def levels_of(words: Iterable[str]) -> dict[str, int] | None:
    """The level of each folded word on a scale of three levels or more; None where they are no
    scale.

    >>> levels_of(["agree", "neutral", "disagree"]), levels_of(["good", "bad"])
    ({'agree': 5, 'neutral': 3, 'disagree': 1}, None)
    """
    names = [*words]
    scale = next((scale for scale in _LEVELS if scale.keys() >= {*names}), {})
    levels = {name: scale[name] for name in names if scale}
    return levels if len({*levels.values()}) > 2 else None


def is_ordered(labels: Sequence[str]) -> bool:
    """Whether labels are a scale, of numbers or of words that are in order."""
    levels = levels_of(map(fold, labels))
    return is_scale(labels) or (
        levels is not None and [*levels.values()] == sorted(levels.values())
    )


def with_every_rating(words: Iterable[str]) -> tuple[str, ...]:
    """Labels as text, or a scale with every rating: one that nobody gave is a label, too. A scale
    in words is in its order."""
    names = sorted(set(words))
    if levels := levels_of(map(fold, names)):
        return tuple(sorted(names, key=lambda name: levels[fold(name)]))
    if not names or not is_scale(names):
        return tuple(names)
    low, high = min(map(int, names)), max(map(int, names))
    every = map(str, range(low, high + 1))
    return tuple(every if high - low < MOST_LABELS else sorted(names, key=int))
