"""The paper's templates of answer-matching, by set: read and rendered."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from judgesense.files.documents import read_yaml
from judgesense.studies.common.question_sets import BenchmarkItem, fill

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
    content: Mapping[str, Any] = read_yaml(Path(__file__).parent / "templates.yaml")
    return content


def simpleqa_grader() -> str:
    """This project's prompt that grades SimpleQA answers."""
    return str(_content()["grader"])


@cache
def paper_templates(kind: str) -> tuple[AnswerTemplate, ...]:
    """The paper's 12 templates of a set."""
    templates = []
    for number, entry in enumerate(_content()["sets"][kind], 1):
        text = entry
        if kind == MATH:
            examples = "\n\n".join(
                f"{entry['before']}{problem}{entry['after']}{solution}"
                for problem, solution in entry["examples"]
            )
            text = f"{examples}\n\n{entry['before']}{{question}}{entry['after']}"
        elif kind == FACTS:
            text = entry + "{question}"
        labels = _labels(text) if kind == CHOICE else ()
        templates.append(AnswerTemplate(f"{kind}-{number:02d}", text, labels))
    return tuple(templates)


def _labels(text: str) -> tuple[str, ...]:
    """The last label before each option on its line: "Option A: " gives A."""
    lines = (text[: text.index(f"{{{field}}}")].rpartition("\n")[2] for field in OPTION_FIELDS)
    return tuple(_LABEL.findall(line)[-1] for line in lines)
