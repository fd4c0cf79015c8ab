"""The wordings that `improve` tries: those given, paraphrases, other forms, each option alone.

Every way to render a prompt is a template, so that a judge's file can hold it and ask it anywhere.
`FORMS` is the list to extend: names of variants (``judgesense_dataset/data/variants.yaml``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import read_yaml
from judgesense.tasks import Template
from judgesense_dataset.paraphrase import reason_to_drop
from judgesense_dataset.reply_labels import has_own_form
from judgesense_dataset.rubric import read_wordings
from judgesense_dataset.surface import measure
from judgesense_dataset.templates import DATA, TaskTemplates
from judgesense_dataset.variant_changes import VariantMaker
from judgesense_dataset.variants import DEFENCES, load_variants

FORMS = (
    "instruction-last",
    "fields-reversed",
    "labels-digits",
    "rubric",
    "separators",
    "role",
    "json",
)
"""Variants of the base wording that are tried, the likelier gains first."""

_ASK_FOR_A_FORM = frozenset({"labels-digits", "json"})
"""Those of them that ask for another form of reply."""

SAMPLES = 3
"""Samples of a text whose majority is tried, where a judge draws its answers."""

REASONING = ("reasoning-short", "reasoning")
"""Variants that ask for reasons first; only for judges that write enough tokens."""

_REWRITES = (
    (r"\bAnswer (?=\S+( only)?\.?)", "Reply with "),
    (r"^(Which|Is|Does|Are|Do|Has|Can)\b", r"Decide: \1"),
    (r"^(Rate|Choose|Pick|Compare|Judge|Decide)\b", r"Please \1"),
)
"""The package's rules for paraphrases: a pattern in the wording and its replacement."""


@dataclass(frozen=True)
class WordingToTry:
    """A template to try, and where it comes from: ``given``, ``paraphrase``, ``form``, ``alone``,
    ``examples``, ``reasoning`` (its answer is at the end of a text) or ``repeat`` (the base again).
    """

    template: Template
    kind: str = "given"


def wordings_to_try(
    entry: TaskTemplates,
    paraphrases: Sequence[Template] = (),
    *,
    reasons: bool,
    probabilities: bool,
    defences: bool = False,
) -> list[WordingToTry]:
    """All wordings for a task, the base first.

    ``reasons`` says whether a judge can write its reasons first, ``probabilities`` whether one
    gives option probabilities, which judging each option alone needs. ``defences`` adds ways to ask
    that guard the judged text. A base with a form of reply of its own keeps it, so nothing is tried
    that asks for another one.
    """
    task, base = entry.task, entry.templates[0]
    is_formed = has_own_form(base)
    wordings = [WordingToTry(template) for template in entry.templates]
    alone = single_option_wordings(entry) if probabilities and task.comparative else []
    alone = [] if is_formed else alone
    wordings += [WordingToTry(template, "alone") for template in alone]
    for start, kind in [(base, "form"), *((each, "alone") for each in alone[:1])]:
        guarded = load_variants(DEFENCES) if defences else ()
        wordings += [
            WordingToTry(template, kind)
            for template in _varied(TaskTemplates(task, (start,)), guarded, False)
        ]
    forms = [name for name in FORMS if not (is_formed and name in _ASK_FOR_A_FORM)]
    wordings += [WordingToTry(each, "form") for each in _varied(entry, forms, probabilities)]
    wordings += [WordingToTry(template, "paraphrase") for template in paraphrases]
    if reasons and not is_formed:
        wordings += [WordingToTry(each, "reasoning") for each in _varied(entry, REASONING, False)]
    distinct: dict[tuple[str, str], WordingToTry] = {}
    for wording in wordings:
        distinct.setdefault((wording.template.text, wording.template.layout), wording)
    return _with_names_apart(distinct.values())


def repeats_of(base: Template) -> list[WordingToTry]:
    """The base wording again, for the majority of several samples of an answer."""
    return [
        WordingToTry(replace(base, template_id=f"{base.template_id}-again-{n}"), "repeat")
        for n in range(2, SAMPLES + 1)
    ]


def _with_names_apart(wordings: Iterable[WordingToTry]) -> list[WordingToTry]:
    """The wordings with numbers after names that another one has: two files may both number theirs
    from 1."""
    named: dict[str, WordingToTry] = {}
    for wording in wordings:
        name, number = wording.template.template_id, 2
        while name in named:
            name, number = f"{wording.template.template_id}-{number}", number + 1
        named[name] = replace(wording, template=replace(wording.template, template_id=name))
    return list(named.values())


def _varied(entry: TaskTemplates, names: Iterable[str], probabilities: bool) -> list[Template]:
    """The base wording as variants show it; those that do not fit the task are left out."""
    variants, maker = load_variants() | load_variants(DEFENCES), VariantMaker(entry)
    templates = []
    for name in names:
        variant = variants[name]
        # Options are scored where the reply begins, which is no verdict inside a JSON reply.
        if variant.reply_form and probabilities:
            continue
        changed = maker.template(variant)
        if changed is not None and set(changed.label_map.values()) == set(entry.task.labels):
            templates.append(replace(changed, template_id=f"{maker.base.template_id}+{name}"))
    return templates


def single_option_wordings(entry: TaskTemplates) -> list[Template]:
    """Wordings that show the first option only and ask whether it is good.

    Asked in both orders they judge each option by itself; the log-odds of YES are compared. Empty
    where the two options are not on lines of their own.
    """
    task, base = entry.task, entry.templates[0]
    first, second = (task.options[label] for label in task.labels)
    noun = re.sub(r"[_-]?(a|1|one|first)$", "", first).replace("_", " ").strip() or "option"
    lines = base.layout.split("\n")
    left = [line for line in lines if f"{{{second}}}" not in line]
    places = [n for n, line in enumerate(left) if f"{{{first}}}" in line]
    whole = re.compile(r"\s*[^{}]{0,40}\{" + re.escape(first) + r"\}\s*")
    if len(places) != 1 or len(left) == len(lines) or not whole.fullmatch(left[places[0]]):
        return []
    left[places[0]] = f"{noun.capitalize()}: {{{first}}}"
    layout = "\n".join(left).rstrip()
    if "{instruction}" not in layout or f"{{{second}}}" in base.text + layout:
        return []
    texts = read_yaml(DATA / "alone.yaml")
    answers = MappingProxyType(dict(zip(("YES", "NO"), task.labels, strict=True)))
    plain = re.sub(r"\s+", " ", base.text).strip()
    return [
        Template(
            f"{base.template_id}-alone-{n}",
            task.name,
            text.replace("{noun}", noun).replace("{text}", plain),
            layout,
            answers,
        )
        for n, text in enumerate((*texts.get(base.task, ()), *texts["any"]), 1)
    ]


def rule_paraphrases(entry: TaskTemplates) -> list[Template]:
    """Paraphrases of the base wording by the package's rules, which keep its meaning."""
    base = entry.templates[0]
    texts = (re.sub(pattern, new, base.text, count=1) for pattern, new in _REWRITES)
    return [
        replace(base, template_id=f"{base.template_id}-rule-{n}", text=text)
        for n, text in enumerate(texts, 1)
        if text != base.text and reason_to_drop(text, base, entry, set()) is None
    ]


def is_wordings_file(paraphraser: Any) -> bool:
    """Whether a paraphraser is a file with wordings, and no model."""
    suffixes = (".txt", ".yaml", ".yml")
    return isinstance(paraphraser, (str, Path)) and Path(paraphraser).suffix in suffixes


def paraphrases_in(path: Path, entry: TaskTemplates) -> list[Template]:
    """The wordings of a file (see :func:`judgesense_dataset.rubric.read_wordings`)."""
    base = TaskTemplates(entry.task, entry.templates[:1])
    return list(read_wordings(path, base).templates[1:])


def validated(
    proposed: Sequence[Template], entry: TaskTemplates, note: Callable[[str], None]
) -> list[Template]:
    """The paraphrases that pass the checks of ``judgesense dataset paraphrase``; a note names each
    of the others. Without an embedding model the meaning is not compared, which a note says."""
    base, fitting = entry.templates[0], []
    for template in proposed:
        if reason := reason_to_drop(template.text, base, entry, set()):
            note(f"paraphrase {template.template_id} left out: {reason}")
        else:
            fitting.append(template)
    try:
        measures = measure([(base.text, template.text) for template in fitting])
    except JudgeSenseError as error:
        note(f"the meaning of {len(fitting)} paraphrases is not compared: {error}")
        return fitting
    near = []
    for template, distance in zip(fitting, measures, strict=True):
        if distance.verdict is False:
            name, cosine = template.template_id, distance.cosine
            note(f"paraphrase {name} left out: too far in meaning ({cosine:.2f})")
        else:
            near.append(template)
    return near
