"""The grading prompts of other tools, and other wordings of them (``wordings.yaml``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judgesense.files.documents import read_yaml
from judgesense.tasks import Aliases, Template


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
