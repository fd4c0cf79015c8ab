"""The template sets of answer-matching: read, check and render templates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import read_yaml
from judgesense.studies.common.question_sets import (
    BenchmarkItem,
    fill,
    read_wordings,
    require_fields,
)

CHOICE, STORY, MATH, FACTS = "multiple-choice", "narrativeqa", "math", "simpleqa"
SET_OF: Mapping[str, str] = {
    "arc-challenge": CHOICE,
    "openbookqa": CHOICE,
    "gpqa-diamond": CHOICE,
    "narrativeqa": STORY,
    "narrativeqa-summaries": STORY,
    "math": MATH,
    "simpleqa": FACTS,
}
"""The benchmarks of the study and their template sets."""

OPTION_FIELDS = ("first_option", "second_option", "third_option", "fourth_option")

_FILE = Path(__file__).parent / "templates.yaml"
_FIELDS: Mapping[str, tuple[str, ...]] = {
    CHOICE: ("question", *OPTION_FIELDS),
    STORY: ("context", "question"),
    MATH: ("question",),
    FACTS: ("question",),
}
_LABEL = re.compile(r"(?<!\w)[A-D1-4](?!\w)")


@dataclass(frozen=True)
class AnswerTemplate:
    """One wording; ``labels`` are the option labels of a multiple-choice template."""

    name: str
    text: str
    labels: tuple[str, ...] = ()

    @property
    def style(self) -> str:
        """The kind of labels, as the matcher names it: "letters" or "numbers"."""
        return "numbers" if self.labels and self.labels[0].isdigit() else "letters"

    def render(self, item: BenchmarkItem) -> str:
        """The message; braces in the item stay text."""
        values = {"question": item.question, "context": item.context}
        values.update(zip(OPTION_FIELDS, item.options, strict=False))
        return fill(self.text, values)


@cache
def _content() -> Mapping[str, Any]:
    content: Mapping[str, Any] = read_yaml(_FILE)
    return content


def simpleqa_grader() -> str:
    """This project's prompt that grades SimpleQA answers."""
    return str(_content()["grader"])


@cache
def paper_templates(kind: str) -> tuple[AnswerTemplate, ...]:
    """The paper's 12 templates of a set."""
    return _templates(kind, _content()["sets"][kind], str(_FILE))


def own_templates(path: Path, kind: str) -> tuple[AnswerTemplate, ...]:
    """Your templates from a YAML file ``sets: {multiple-choice: [text, ...], ...}``.

    Raises JudgeSenseError, naming the place, for an unreadable file, a missing set, fewer than two
    templates, and a template that lacks a field.
    """
    return _templates(kind, read_wordings(path, "sets", kind), str(path))


def _templates(kind: str, entries: Sequence[Any], where: str) -> tuple[AnswerTemplate, ...]:
    found = []
    for number, entry in enumerate(entries, 1):
        place = f"{where}, sets.{kind}, template {number}"
        text = _text(kind, entry, place)
        require_fields(text, _FIELDS[kind], place)
        labels = _labels(text, place) if kind == CHOICE else ()
        found.append(AnswerTemplate(f"{kind}-{number:02d}", text, labels))
    return tuple(found)


def _text(kind: str, entry: Any, place: str) -> str:
    if kind == MATH and isinstance(entry, Mapping):
        shown = [*entry["examples"], ("{question}", None)]
        parts = [f"{entry['before']}{asked}{entry['after']}" for asked, _ in shown]
        solved = [solution for _, solution in entry["examples"]]
        return "\n\n".join([*map("".join, zip(parts, solved, strict=False)), parts[-1]])
    require_fields(entry, (), place)
    # SimpleQA's are instructions that precede the question.
    return entry + "{question}" if kind == FACTS and "{question}" not in entry else str(entry)


def _labels(text: str, place: str) -> tuple[str, ...]:
    """The last label before each option on its line: "Option A: " gives A."""
    found = []
    for field in OPTION_FIELDS:
        line = text[: text.index(f"{{{field}}}")].rpartition("\n")[2]
        labels = _LABEL.findall(line)
        if not labels:
            raise JudgeSenseError(f"{place}: the option {{{field}}} has no label A-D or 1-4")
        found.append(labels[-1])
    if found not in (list("ABCD"), list("1234")):
        raise JudgeSenseError(f"{place}: options are labelled {found}, not A-D or 1-4 in order")
    return tuple(found)
