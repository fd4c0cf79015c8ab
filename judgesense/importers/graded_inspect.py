"""Inspect's ``model_graded_qa`` and ``model_graded_fact`` as graded logs."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.importers.graded import Grade, GradedLog, Wording, graded_log, only, quoted
from judgesense.importers.inspect_files import Evaluation, Sample, Score, open_log
from judgesense.importers.inspect_logs import of_scorer
from judgesense.importers.wordings import known_wordings, own_wording
from judgesense.tasks import ERROR, REFUSED, UNCLEAR

GRADES = ("C", "I")
FORMAT = 2
"""The version of Inspect's log format that this was written for."""

_DELIMITERS = (("[BEGIN DATA]", "[BEGIN-DATA]"), ("[END DATA]", "[END-DATA]"))


def read(path: Path, pick: str | None = None) -> GradedLog:
    """The grading of a log: ``pick`` names the scorer if several scorers are model-graded.

    The grading prompt is the scorer's ``template`` where the header has it, Inspect's own, or else
    what the stored prompts share. Raises JudgeSenseError for a log without model-graded samples,
    with a panel of graders, or without the grader's name.
    """
    evaluation, found = open_log(path)
    try:
        samples = list(found)
    except JudgeSenseError as error:
        if (evaluation.version or 0) <= FORMAT:
            raise
        raise JudgeSenseError(
            f"{error}. The log has format version {evaluation.version}, and this JudgeSense reads "
            f"{FORMAT}: update JudgeSense, or write the log with an older inspect_ai"
        ) from error
    names = [
        name
        for _, sample in samples
        for name, score in (sample.scores or {}).items()
        if score is not None and (score.grading or _kind(name))
    ]
    if not names:
        raise JudgeSenseError(
            f"{path}: no sample is graded by a model (model_graded_qa, model_graded_fact), so "
            "there is no rubric to reword; import its verdicts with: judgesense import"
        )
    scorer = only(names, "scorer", path, pick)
    models, space = of_scorer(evaluation, scorer)
    scored = [
        (place, sample, score)
        for place, sample in samples
        if sample.scores and (score := sample.scores.get(scorer)) is not None
    ]
    if len(models) > 1:
        raise JudgeSenseError(
            f"{path}: scorer {scorer} is a panel ({', '.join(models)}), and a check asks one judge "
            "again. Grade with one model, or run: judgesense import"
        )
    given = _options(evaluation, scorer)
    grades = [_grade(evaluation, *each) for each in scored]
    if space is None:
        said = {grade.stored for grade in grades} - {UNCLEAR, REFUSED, ERROR}
        space = GRADES if said <= set(GRADES) else ("C", "P", "I")
        if not said <= set(space):
            space = tuple(sorted(said))
    kind = _kind(scorer)
    default = not given.get("template") and kind is not None
    judge = _grader(evaluation, models, scored)
    return graded_log(
        "inspect", path, judge, space, grades,
        _candidates(given, kind, samples[0][1]),
        known=known_wordings(f"inspect-{kind}", space) if default else (),
        options={"system_prompt": ""}, base_url=_base_url(evaluation, judge),
    )  # fmt: skip


def _grader(
    evaluation: Evaluation, models: Sequence[str], scored: Sequence[tuple[str, Sample, Score]]
) -> str:
    """The model that graded; "" if the log does not name it. Without a grader of its own, a scorer
    asks the evaluated model, whose name in the header has its provider."""
    if models:
        return _local(evaluation) or models[0] if models[0] == "hf/local" else models[0]
    said = next((score.grader for _, _, score in scored if score.grader), None)
    own = "" if evaluation.model in ("none", "none/none") else evaluation.model
    return own if said is None or own.endswith(said) else said


def _local(evaluation: Evaluation) -> str | None:
    """The folder of a grader called ``hf/local``, where the header has it."""
    given = [(scorer.options or {}).get("model") for scorer in evaluation.scorers or ()]
    for model in [*given, *(evaluation.model_roles or {}).values()]:
        if isinstance(model, Mapping) and model.get("model") == "hf/local":
            arguments = model.get("model_args") or model.get("args") or {}
            if path := arguments.get("model_path"):
                return f"hf/{path}"
    return None


def _base_url(evaluation: Evaluation, judge: str) -> str | None:
    """The endpoint of the grader, where the header names it."""
    for role in (evaluation.model_roles or {}).values():
        if isinstance(role, Mapping) and role.get("model") == judge and role.get("base_url"):
            return str(role["base_url"])
    return evaluation.model_base_url if judge == evaluation.model else None


def _kind(scorer: str) -> str | None:
    """``qa`` or ``fact`` for Inspect's own graders."""
    name = scorer.rpartition("/")[2]
    return name.removeprefix("model_graded_") if name.startswith("model_graded_") else None


def _options(evaluation: Evaluation, scorer: str) -> Mapping[str, Any]:
    for found in evaluation.scorers or ():
        if found.name.rpartition("/")[2] == scorer.rpartition("/")[2]:
            return found.options or {}
    return {}


def _candidates(given: Mapping[str, Any], kind: str | None, sample: Sample) -> list[Wording]:
    """The wordings that the header names, as JudgeSense writes them."""
    template = given.get("template")
    if isinstance(template, str) and "{" in template:
        own = _from_format(template, sample)
    elif template is None and kind in ("qa", "fact"):
        own = Wording(own_wording(f"inspect-{kind}"))
    else:
        own = None
    if own is None:
        return []
    partial = bool(given.get("partial_credit"))
    instructions = given.get("instructions") or default_instructions(partial)
    return [Wording(own.text, {**own.constants, "instructions": instructions})]


def _from_format(template: str, sample: Sample) -> Wording | None:
    """A template of Python's ``str.format``; None if it does more than insert names."""
    names = {"question", "answer", "criterion", "instructions", *(sample.metadata or {})}
    text, literal = "", []
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError:
        return None
    for before, name, spec, conversion in parts:
        literal.append(before)
        text += before.replace("{", "\ue000").replace("}", "\ue001")
        if name is None:
            continue
        if spec or conversion or name not in names:
            return None
        text += f"{{{name}}}"
    own = quoted(text, names)
    whole = own.text
    constants = dict(own.constants)
    for mark, brace in (("\ue000", "{"), ("\ue001", "}")):
        if mark in whole:
            name = f"literal_{len(constants) + 1}"
            constants[name] = brace
            whole = whole.replace(mark, f"{{{name}}}")
    return Wording(whole, constants)


def _grade(evaluation: Evaluation, place: str, sample: Sample, score: Score) -> Grade:
    metadata = sample.metadata or {}
    fields = {k: str(v) for k, v in metadata.items() if isinstance(v, (str, int, float))}
    target = sample.target
    fields |= {
        "question": _text(sample.input),
        "answer": sample.output.completion,
        "criterion": "".join(target) if isinstance(target, list) else target or "",
    }
    return Grade(
        str(sample.id),
        str(metadata.get("cluster_id") or sample.id),
        str(metadata.get("system_id") or evaluation.model),
        {name: _without_delimiters(value) for name, value in fields.items()},
        _label(score.original) or UNCLEAR,
        place,
        score.prompt,
        score.raw_text if score.grading else None,
    )


def _label(value: Any) -> str | None:
    """A score's value as a label; Inspect writes NaN where it found no grade."""
    if isinstance(value, float):
        return f"{value:g}" if value == value else None
    return str(value) if isinstance(value, (str, int)) and value != "" else None


def _text(value: Any) -> str:
    """A sample's input as the grader sees it: Inspect's ``input_text``."""
    if isinstance(value, str):
        return value
    for message in reversed(value if isinstance(value, list) else []):
        if isinstance(message, Mapping) and message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, list):
                parts = [part.get("text", "") for part in content if isinstance(part, Mapping)]
                return "".join(parts)
            return str(content or "")
    return ""


def _without_delimiters(text: str) -> str:
    """As Inspect shows a field: its own delimiters cannot be forged."""
    for forged, plain in _DELIMITERS:
        text = text.replace(forged, plain)
    return text


@cache
def default_instructions(partial: bool) -> str:
    """What Inspect asks of a grader (``inspect_ai.scorer._model.default_instructions``).

    >>> "one of CPI" in default_instructions(True)
    True
    """
    letter = "P" if partial else ""
    some = '"P" for partially correct answers,' if partial else ""
    return (
        "\nAfter assessing the submitted answer, reply with 'GRADE: $LETTER' (without quotes) "
        f"where LETTER is one of C{letter}I.  Please choose ONE option for the grade: either "
        f'"C" for correct answers, {some}or "I" for incorrect answers.\n\n'
        "For example, after reviewing a correct answer you might write 'GRADE: C' or after "
        "reviewing an incorrect answer you might write 'GRADE: I'.\n\n"
        "First, write out in a step by step manner your reasoning about the criterion to be sure "
        "that your conclusion is correct. Avoid simply stating the correct answers at the outset. "
        "Then, end with your answer formatted as 'GRADE: $LETTER' (without quotes) where LETTER is "
        f"one of C{letter}I.\n"
    )
