"""Wordings other than this project's: the paper's printed ones, or those of your own file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from judgesense.errors import JudgeSenseError
from judgesense.studies.paraphrase_robustness.attributes import full_name
from judgesense_dataset.embedded import Attribute, load_attributes
from judgesense_dataset.templates import load_templates

PAPER = "paper"
PAPER_FILE = Path(__file__).with_name("paper_templates.yaml")
"""The seven wordings that the paper prints: two of coherence, five of interestingness."""


def template_file(templates: str | Path | None) -> Path | None:
    """The file of ``--templates``: the paper's wordings for "paper", else your own file.

    >>> template_file("paper").name
    'paper_templates.yaml'
    """
    if templates is None:
        return None
    return PAPER_FILE if str(templates) == PAPER else Path(templates)


def own_wordings(
    path: Path, names: Sequence[str] | None, groups: Sequence[str] | None
) -> dict[str, Attribute]:
    """The attributes of a template file with its wordings, in the order of the attributes.

    A task of the file is an attribute, named with or without its task (``clarity``). ``names`` and
    ``groups`` select some, as in `attributes.attributes_of`.

    Raises:
        JudgeSenseError: an invalid file, an unknown attribute, a scale or a field that the texts
            of the attribute do not have, or a requested attribute that the file lacks.
    """
    known = load_attributes()
    found: dict[str, Attribute] = {}
    for name, entry in load_templates(path).items():
        attribute = known[full_name(name, known)]
        own = attribute.templates
        if entry.task.labels != own.task.labels:
            raise JudgeSenseError(
                f"{path}, {name}: the labels are {', '.join(entry.task.labels)}; the human scores "
                f"of {attribute.name} need {', '.join(own.task.labels)}"
            )
        if unknown := sorted(entry.fields - own.fields):
            raise JudgeSenseError(
                f"{path}, {name}: the texts of {attribute.name} have no field {unknown[0]}; they "
                f"have {', '.join(sorted(own.fields))}"
            )
        task = replace(entry.task, name=attribute.name, ordinal=True)
        named = tuple(replace(each, task=attribute.name) for each in entry.templates)
        found[attribute.name] = replace(
            attribute, templates=replace(entry, task=task, templates=named)
        )
    wanted = None if names is None else [full_name(name, known) for name in names]
    if absent := [name for name in wanted or () if name not in found]:
        raise JudgeSenseError(f"{path} has no wordings of {absent[0]}; it has {', '.join(found)}")
    kept = _selected(found, wanted, groups)
    if not kept:
        raise JudgeSenseError(f"{path} has no wordings of {', '.join(groups or ())}")
    return {name: kept[name] for name in known if name in kept}


def _selected(
    found: Mapping[str, Attribute], names: Sequence[str] | None, groups: Sequence[str] | None
) -> dict[str, Attribute]:
    if names is not None:
        return {name: found[name] for name in names}
    return {name: one for name, one in found.items() if groups is None or one.group in groups}
