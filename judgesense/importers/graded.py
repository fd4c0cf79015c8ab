"""Graded logs: the rubric, what was graded, and the grades, read from another tool's log.

An importer takes the verdicts of a log. This takes all that is needed to ask again: the wording of
the grading prompt, the fields that it shows, and the judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import read_yaml
from judgesense.importers.items import Items
from judgesense.tasks import NO_ORDER, Aliases, Item, Task, Template, render

TASK = "rubric"
"""The name of the task, and the id of the log's own wording."""

RUBRIC = "rubric"
"""The field that is the wording of a whole prompt, if all grades have the same text in it."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_BRACES = re.compile(r"\{[^{}]*\}|[{}]")
_MOST_TRIED = 20
"""Prompts that are tried as the source of a template."""

_LEAST = (1, 3, 8)
"""The lengths from which a field's text is taken for the field."""


@dataclass(frozen=True)
class Grade:
    """One grade in a log: the fields that the grading prompt showed, and what came of it.

    ``stored`` is the tool's grade, as a label of the task, or UNCLEAR, REFUSED or ERROR. ``prompt``
    is the grading prompt and ``text`` the judge's answer, where the log has them. A grade that a
    person corrected later counts as the tool gave it.
    """

    item_id: str
    cluster_id: str
    system_id: str
    fields: Mapping[str, str]
    stored: str
    place: str
    prompt: str | None = None
    text: str | None = None


@dataclass(frozen=True)
class GradedLog:
    """What a log says about one judge and one rubric.

    ``judge`` is its name in the log. ``template`` is the log's own wording, and ``known`` are
    wordings of it that come with JudgeSense. ``items`` and ``stored`` are parallel: each distinct
    grading prompt, and its grade. ``texts`` are the judge's stored answers, None where the log has
    none. ``options`` are those of the judge that its prompts need, such as the system prompt.
    ``notes`` say what could not be used.
    """

    tool: str
    where: Path
    judge: str
    task: Task
    template: Template
    items: tuple[Item, ...]
    stored: tuple[str, ...]
    texts: tuple[str | None, ...]
    known: tuple[Template, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wording:
    """A grading prompt with placeholders in braces, and the constant texts that some stand for."""

    text: str
    constants: Mapping[str, str] = field(default_factory=dict)

    def rendered(self, fields: Mapping[str, str]) -> str | None:
        """The prompt that shows these fields; None if one is missing.

        >>> Wording("Is {answer} right?").rendered({"answer": "4"})
        'Is 4 right?'
        """
        values = {**self.constants, **fields}
        if not set(_PLACEHOLDER.findall(self.text)) <= set(values):
            return None
        return _PLACEHOLDER.sub(lambda found: values[found[1]], self.text)


def quoted(text: str, name: str = "literal") -> Wording:
    """A text without placeholders: its braces become constants, called ``name_1`` and so on.

    >>> quoted('Reply {"pass": true}')
    Wording(text='Reply {literal_1}', constants={'literal_1': '{"pass": true}'})
    """
    constants: dict[str, str] = {}

    def constant(found: re.Match[str]) -> str:
        constants[f"{name}_{len(constants) + 1}"] = found[0]
        return f"{{{name}_{len(constants)}}}"

    return Wording(_BRACES.sub(constant, text), constants)


def derived(prompts: Sequence[tuple[str, Mapping[str, str]]]) -> Wording | None:
    """The wording behind grading prompts: the one that renders most of them.

    A field's text in a prompt becomes its placeholder, the longest first. A short text ("4") may
    also occur by chance, so short fields are left as they are in some candidates, and every
    candidate is checked against all prompts. A field with one text throughout is a constant.

    >>> prompts = [(f"Is {text} right?", {"answer": text, "by": "?"}) for text in ("blue", "i")]
    >>> derived(prompts).text
    'Is {answer} right?'
    """
    texts: dict[str, set[str]] = {}
    for _, fields in prompts:
        for name, value in fields.items():
            texts.setdefault(name, set()).add(value)
    varies = {name for name, values in texts.items() if len(values) > 1 or len(prompts) == 1}
    longest = sorted(
        prompts, key=lambda each: -min(map(len, filter(None, each[1].values())), default=0)
    )
    candidates = (
        _marked(text, {name: v for name, v in fields.items() if name in varies and len(v) >= least})
        for text, fields in longest[:_MOST_TRIED]
        for least in _LEAST
    )
    return _best(candidates, prompts)


def _best(
    wordings: Iterable[Wording], prompts: Sequence[tuple[str, Mapping[str, str]]]
) -> Wording | None:
    """The first of the wordings that renders most prompts; None if none renders any."""
    best, most = None, 0
    for wording in wordings:
        fits = sum(wording.rendered(fields) == text for text, fields in prompts)
        if fits > most:
            best, most = wording, fits
        if fits == len(prompts):
            break
    return best


def _marked(text: str, fields: Mapping[str, str]) -> Wording:
    """A prompt with placeholders where it shows the fields."""
    # A private character marks each field, so that no field is found in another's name.
    marks = {name: chr(0xE000 + at) for at, name in enumerate(fields)}
    for name, value in sorted(fields.items(), key=lambda each: -len(each[1])):
        text = text.replace(value, marks[name])
    wording = quoted(text)
    for name, mark in marks.items():
        wording = replace(wording, text=wording.text.replace(mark, f"{{{name}}}"))
    return wording


def split(text: str) -> tuple[str, str]:
    """A prompt's wording and layout: the paragraphs before the first one with a placeholder, and
    the rest.

    >>> split("Is it right?\\n\\nAnswer: {answer}")
    ('Is it right?', '{instruction}\\n\\nAnswer: {answer}')
    >>> split("Is {answer} right?")
    ('Is {answer} right?', '{instruction}')
    """
    first = _PLACEHOLDER.search(text)
    end = text.rfind("\n\n", 0, first.start()) if first else -1
    wording = text[: max(end, 0)].strip()
    if not wording:
        return text, "{instruction}"
    start = text.index(wording)
    return wording, f"{text[:start]}{{instruction}}{text[start + len(wording) :]}"


def graded_log(
    tool: str,
    where: Path,
    judge: str,
    labels: Sequence[str],
    grades: Sequence[Grade],
    wordings: Sequence[str],
    *,
    whole: bool = False,
    aliases: Mapping[str, Sequence[str]] | None = None,
    known: Sequence[Template] = (),
    options: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> GradedLog:
    """A log of these grades under the first wording that renders all their prompts.

    Where none does, the wording that renders most is taken (also one derived from the prompts), and
    the others are left out, with a note. Grades of the same prompt are one item, and the first
    counts. ``whole`` keeps the prompt in one piece, so that other wordings are whole prompts too;
    but if all grades have the same `RUBRIC`, that is the wording, and the rest its layout.

    Raises JudgeSenseError if no wording renders any prompt.
    """
    prompts = [(each.prompt, each.fields) for each in grades if each.prompt is not None]
    offered = list(map(Wording, wordings))
    best = _best(offered, prompts) if prompts else offered[0]
    if best is None or any(best.rendered(fields) != text for text, fields in prompts):
        best = _best(filter(None, (best, derived(prompts))), prompts)
    if best is None:
        raise JudgeSenseError(
            f"{where}: the rubric cannot be taken from the log, because no wording renders the "
            f"grading prompts (the first is {grades[0].place}); import the log's verdicts with: "
            "judgesense import"
        )
    fitting = [
        each for each in grades
        if (shown := best.rendered(each.fields)) is not None and each.prompt in (None, shown)
    ]  # fmt: skip
    notes = list(notes)
    if left := len(grades) - len(fitting):
        notes.append(f"left out {left} of {len(grades)} grades, whose prompt has another wording")
    constants = dict(best.constants)
    text, layout = (best.text, "{instruction}") if whole else split(best.text)
    rubrics = {grade.fields.get(RUBRIC, "") for grade in fitting}
    if whole and len(rubrics) == 1 and f"{{{RUBRIC}}}" in best.text:
        rubric = quoted(rubrics.pop(), RUBRIC)
        text, layout = rubric.text, best.text.replace(f"{{{RUBRIC}}}", "{instruction}")
        constants |= rubric.constants
        known = ()
    same = MappingProxyType({label: label for label in labels})
    template = Template(TASK, TASK, text, layout, same, MappingProxyType(dict(aliases or {})))
    task = Task(TASK, tuple(labels))
    # Each distinct prompt is an item; the second answer to q1 is q1/2.
    names, kept = Items(), dict[str, tuple[Item, Grade]]()
    for grade in fitting:
        fields = {**constants, **grade.fields}
        item = Item(grade.item_id, TASK, fields, None, grade.cluster_id, grade.system_id, tool)
        prompt = render(task, template, item, NO_ORDER).prompt_id
        item = replace(item, item_id=names.name(grade.item_id, prompt))
        kept.setdefault(prompt, (item, grade))
    if again := len(fitting) - len(kept):
        notes.append(f"{again} grades repeat a prompt; the first grade of each counts")
    return GradedLog(
        tool, where, judge, task, template, tuple(item for item, _ in kept.values()),
        tuple(grade.stored for _, grade in kept.values()),
        tuple(grade.text for _, grade in kept.values()),
        tuple(known), dict(options or {}), tuple(notes),
    )  # fmt: skip


def only(values: Iterable[str], what: str, where: Path, pick: str | None) -> str:
    """The one of ``values`` that is picked, or the only one.

    Raises JudgeSenseError that lists them if there are several, or if ``pick`` is none of them.
    """
    names = list(dict.fromkeys(values))
    if pick is not None and pick not in names:
        raise JudgeSenseError(f"{where}: no {what} {pick!r}; choose from {', '.join(names)}")
    if pick is None and len(names) > 1:
        raise JudgeSenseError(
            f"{where}: holds several {what}s; choose one with --pick: {', '.join(names)}"
        )
    return pick or names[0]


@cache
def _read() -> Mapping[str, Any]:
    found: Mapping[str, Any] = read_yaml(Path(__file__).with_name("wordings.yaml"))
    return found


def own_wording(name: str) -> str:
    """The grading prompt of a tool, as it is without options of the user's.

    >>> "[Criterion]: {criterion}" in own_wording("inspect-qa")
    True
    """
    text: str = _read()[name]["own"]
    return text


def known_wordings(
    name: str, labels: Sequence[str], task: str = "rubric", aliases: Aliases | None = None
) -> tuple[Template, ...]:
    """Other wordings of a tool's grading prompt, as templates of ``task`` with these answers.

    >>> [each.template_id for each in known_wordings("inspect-qa", ("C", "I"))]
    ['grade-against', 'criterion-first', 'examiner']
    """
    same = MappingProxyType({label: label for label in labels})
    return tuple(
        Template(key, task, text, "{instruction}", same, MappingProxyType(dict(aliases or {})))
        for key, text in _read()[name]["wordings"].items()
    )
