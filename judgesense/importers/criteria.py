"""Criteria of a file: a judge's column and people's columns of each become one task."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import ABSENT, Rows
from judgesense.importers.column_names import NOT_LABELS, Columns, header_key, is_beside_label
from judgesense.importers.columns import HUMAN, ITEM, TASK, VERDICT, ColumnMap, values_in
from judgesense.importers.rows import texts_of
from judgesense.importers.tool_tables import RAGAS
from judgesense.importers.tools import CODE_NAMES
from judgesense.importers.who import (
    JUDGE,
    PERSON,
    is_criterion,
    matched,
    subject,
    tokens,
    who,
)
from judgesense.text import join

Criteria = dict[str, dict[str, str]]
"""Criterion -> the columns that become `VERDICT`, and `HUMAN` or one for each of several people."""


def criteria_in(found: Columns, where: str) -> Criteria:
    """The criteria of a file whose columns name them; none for a file of one.

    Raises JudgeSenseError where no name says whose the other column of each criterion is.
    """
    usable = {
        n: c
        for n, c in found.items()
        if (c.labels or c.decimals or not c.filled) and not is_beside_label(found, n)
    }
    judged: dict[str, str] = {}
    people: dict[str, dict[str, str]] = {}
    others: dict[str, str] = {}
    for name in usable:
        stem = subject(name)
        if not stem or re.search(r"\d", stem) or re.fullmatch(r"[a-z]|left|right", stem):
            continue
        if who(name) == JUDGE and NOT_LABELS.fullmatch(header_key(name)):
            continue
        if who(name) == JUDGE:
            judged.setdefault(stem, name)
        elif who(name) == PERSON:
            people.setdefault(stem, {})[_without_subject(name, stem)] = name
        elif not NOT_LABELS.fullmatch(header_key(name)):
            others.setdefault(stem, name)
    metrics = {
        header_key(name): name for name in found if header_key(name) in RAGAS and found[name].filled
    }
    # Azure writes each score under its old name, gpt_tone, and its new one, which comes later.
    azure = [match for name in sorted(found) if (match := _AZURE.fullmatch(name))]
    metrics |= {match[1]: match[0] for match in azure if not CODE_NAMES.fullmatch(match[1])}
    # LangSmith has a column for each evaluator, and for what people said.
    evaluators = [n for n in usable if n.startswith("feedback.") and who(n) != PERSON]
    if len({*map(subject, evaluators)} - {""}) == len(evaluators) > 1:
        metrics |= {subject(name): name for name in evaluators}
    if metrics:
        return _paired(metrics, people)
    pairs = {stem: key for stem, key in matched(judged, people).items() if stem in people}
    if not judged and len(pairs := _meeting(found, others, people)) > 1:
        judged = {key: others[key] for key in pairs.values()}
    if not pairs and len(judged) > 1:
        people = _people_by_criterion(usable, judged)
        if len(people) < 2:
            _ask_whose(found, judged, others, where)
    if len(matched(judged, people)) < 2:  # One pair is the file's own task.
        ends = {name[: -len(".label")] for name in found if name.endswith(".label")}
        own = {stem: {VERDICT: f"{stem}.label"} for stem in ends if f"{stem}.score" in found}
        return dict(sorted(own.items())) if len(own) > 1 else {}
    return _paired(judged, people)


_AZURE = re.compile(r"outputs\.(\w+)\.(?:gpt_)?\1")


def criteria_of(verdicts: Sequence[str], people: Sequence[str]) -> Criteria:
    """The criteria of as many columns of verdicts as of people's labels that the user names; none
    where these are several judges and people."""
    judged = {subject(name): name for name in verdicts}
    labels = {subject(name): {HUMAN: name} for name in people}
    whole = len(judged) == len(verdicts) == len(labels) == len(people) > 1
    return _paired(judged, labels) if whole and len(matched(judged, labels)) == len(judged) else {}


def _paired(judged: Mapping[str, str], people: Mapping[str, Mapping[str, str]]) -> Criteria:
    by_criterion = {key: people[stem] for stem, key in matched(judged, people).items()}
    one = all(len(each) == 1 for each in by_criterion.values())
    ends = [subject(name.rpartition(".")[2]) for name in judged.values()]
    short = ends if any("." in name for name in judged.values()) else []  # outputs.tone.gpt_tone
    names = short if len({*filter(None, short)}) == len(judged) else [*judged]
    return {
        criterion: {VERDICT: name}
        | {HUMAN if one else who_said: each for who_said, each in by_criterion.get(key, {}).items()}
        for criterion, (key, name) in zip(names, judged.items(), strict=True)
    }


def _meeting(
    found: Columns, others: Mapping[str, str], people: Mapping[str, Mapping[str, str]]
) -> dict[str, str]:
    """People's subjects -> those of columns that name nobody and whose values meet people's:
    ``correctness`` beside ``sme_correctness``."""
    return {
        stem: key
        for stem, key in matched(others, people).items()
        if all(found[others[key]].meets(found[name]) for name in people[stem].values())
    }


def _ask_whose(
    found: Columns, judged: Mapping[str, str], others: Mapping[str, str], where: str
) -> None:
    """Raise JudgeSenseError for columns that name a judge's criteria, and nobody: ``tone`` beside
    ``llm_tone``."""
    pairs = {
        judged[key]: others[stem]
        for stem, key in matched(judged, others).items()
        if found[others[stem]].meets(found[judged[key]])
    }
    if len(pairs) > 1:
        raise JudgeSenseError(
            f"{where}: {join([*map(repr, pairs.values())])} may be people's labels of the criteria "
            f"of {join([*map(repr, pairs)])}, but their names do not say so: --verdict "
            f"{shlex.quote(','.join(pairs))} --human {shlex.quote(','.join(pairs.values()))}, or "
            f"--verdict {shlex.quote(','.join(pairs))} alone"
        )


def require_one_criterion(judged: Sequence[str], people: Sequence[str], where: str) -> None:
    """Raise JudgeSenseError where columns of several criteria would be read as several judges or
    people: where their names pair neither all of them nor say that they are persons."""
    ours, theirs = ([subject(name) for name in names] for names in (judged, people))
    known = [
        names
        for names, stems in ((judged, ours), (people, theirs))
        if len({*stems}) == len(stems) > 1 and all(map(is_criterion, stems))
    ]
    unclear = len({*ours}) == len({*theirs}) == len(judged) == len(people) > 1
    stems = "".join(ours + theirs)
    if people and (known or (unclear and all(ours + theirs) and not re.search(r"\d", stems))):
        names = join([*map(repr, known[0] if known else [*judged, *people])])
        raise JudgeSenseError(
            f"{where}: {names} may be several criteria, not several judges or people; name "
            f"one: --verdict {shlex.quote(judged[0])} --human {shlex.quote(people[0])}, or all, "
            f"which are paired by name: --verdict {shlex.quote(','.join(judged))} --human "
            f"{shlex.quote(','.join(people))}"
        )


def _without_subject(name: str, stem: str) -> str:
    words = [word for word in tokens(name) if word not in stem.split("_")]
    return "_".join(words) or name


def _people_by_criterion(found: Columns, judged: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Criterion -> person -> column, where the names begin with persons': ``mk_tone``, ``js_tone``
    beside ``llm_tone``."""
    people: dict[str, dict[str, str]] = {}
    for name, column in found.items():
        joined = "_".join(tokens(name))
        for stem, verdicts in judged.items():
            person = joined.removesuffix(f"_{stem}")
            if who(name) is None and person != joined and column.meets(found[verdicts]):
                people.setdefault(stem, {})[person] = name
    counts = Counter(person for each in people.values() for person in each)
    kept = {
        stem: {person: name for person, name in each.items() if counts[person] > 1}
        for stem, each in people.items()
    }
    return {stem: each for stem, each in kept.items() if each}


def by_criterion(rows: Rows, pairs: Mapping[str, Mapping[str, str]], named: str = TASK) -> Rows:
    """One row a criterion, which the column ``named`` names."""
    used = {named} | {name for of in pairs.values() for name in of.values()}
    used |= {name.partition(".")[0] for name in used if name not in rows.columns}
    used |= {f"{name}_{what}" for name in used for what in ("result", "threshold")}
    used |= {f"{name[: -len('label')]}score" for name in used if name.endswith(".label")}
    n, empty = len(pairs), [None] * len(rows)
    columns: dict[str, list[Any]] = {
        name: [value for value in values for _ in range(n)]
        for name, values in rows.columns.items()
        if name not in used
    }
    for column in dict.fromkeys(target for of in pairs.values() for target in of):
        parts = [values_in(rows, of[column]) if column in of else empty for of in pairs.values()]
        cells = zip(*(part or empty for part in parts), strict=True)
        columns[column] = [None if v is ABSENT else v for row in cells for v in row]
    columns[named] = [*pairs] * len(rows)
    columns[ITEM] = [place.rpartition(" ")[2] for place in rows.places for _ in range(n)]
    return Rows(columns, [place for place in rows.places for _ in range(n)])


@dataclass(frozen=True)
class OnTheirTask:
    """Leaves people's labels of one task out of the rows of the others: ``human_relevant`` says
    nothing on ``Faithfulness``. ``tasks`` has the task of each column."""

    columns: ColumnMap
    tasks: Mapping[str, str]

    @classmethod
    def of(
        cls, found: Columns, people: Sequence[str], roles: Mapping[str, str], where: str
    ) -> OnTheirTask | None:
        """The step of a file whose tasks are in a column; None without such labels. Raises
        JudgeSenseError where only some of several columns name their tasks."""
        column = found.get(roles.get("task", "task"))
        if column is None or len(column.texts) < 2 or not column.is_complete:
            return None
        named = {header_key(text): text for text in column.texts}
        subjects = {name: subject(name.rpartition(".")[2]) for name in people}
        pairs = matched(named, [stem for stem in subjects.values() if stem])
        tasks = {name: named[pairs[stem]] for name, stem in subjects.items() if stem in pairs}
        if tasks and (unclear := [name for name in people if name not in tasks]):
            raise JudgeSenseError(
                f"{where}: {join([*map(repr, tasks)])} are labels of one task each, and "
                f"{join([*map(repr, unclear)])} of none that its name says; name the others: "
                f"--human {shlex.quote(','.join(tasks))}"
            )
        return cls(ColumnMap(roles), tasks) if tasks else None

    def __call__(self, rows: Rows) -> Rows:
        """The rows with each label on its task only."""
        tasks = texts_of(self.columns.column(rows, "task")) or [None] * len(rows)
        kept = {
            name: [
                value if task == own and value is not ABSENT else None
                for value, task in zip(values_in(rows, name) or [], tasks, strict=False)
            ]
            for name, own in self.tasks.items()
        }
        return Rows(
            {**rows.columns, **{k: v or [None] * len(rows) for k, v in kept.items()}}, rows.places
        )
