"""Scorers and metrics for Inspect, by the entry point ``inspect_ai``.

- ``judgesense/stable`` scores with a judge of JudgeSense, such as a stabilised judge's file.
- ``judgesense/model_graded`` grades with a model of Inspect under several wordings, both orders
  where two answers are compared, and says whether the grades depend on the wording.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args

from judgesense.answers import parse
from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.importers.graded import known_wordings, own_wording
from judgesense.importers.inspect_logs import GRADES, default_instructions
from judgesense.integrations.grading import Grader
from judgesense.integrations.inspect_verdicts import KEY, figures, row
from judgesense.tasks import (
    UNDECIDED,
    Item,
    Prompt,
    Task,
    Template,
    is_scale,
    load_label_map,
    render,
)
from judgesense.trust.card import Trust
from judgesense_dataset.templates import TaskTemplates, load_templates

try:
    import anyio
    from inspect_ai.model import Model, get_model
    from inspect_ai.scorer import (
        CORRECT,
        INCORRECT,
        NOANSWER,
        Metric,
        SampleScore,
        Score,
        Scorer,
        Target,
        Value,
        accuracy,
        metric,
        scorer,
        stderr,
    )
    from inspect_ai.solver import TaskState
    from inspect_ai.util import collect
except ImportError as error:
    raise MissingExtraError("inspect-ai", "inspect", "scoring in Inspect") from error

_NAMES = {
    "input": ("input", "question", "query", "prompt"),
    "output": ("output", "answer", "response", "completion", "submission"),
    "target": ("target", "criterion", "reference", "expected"),
}
"""The names under which a wording can show a sample's input, output and target."""


@metric(scores="unreduced")
def jss() -> Metric:
    """The share of pairs of wordings with the same verdict, with its 95% interval over clusters.

    It is the check `steady` of the trust card: equivalent wordings of one polarity.
    """
    names = {"jss": "estimate", "jss_low": "ci_low", "jss_high": "ci_high"}
    return _of_cards(
        lambda card: {name: card["checks"]["steady"][key] for name, key in names.items()}
    )


@metric(scores="unreduced")
def delta_jss() -> Metric:
    """JSS minus the agreement of the same prompt with itself: what rewording does beyond asking
    again. It needs ``repeats=2`` or more."""
    names = {"delta_jss": "delta_jss", "delta_jss_low": "delta_ci_low",
             "delta_jss_high": "delta_ci_high"}  # fmt: skip

    def figures_of(card: Mapping[str, Any]) -> dict[str, Any]:
        details = card["checks"]["steady"].get("details", {})
        return {name: details.get(key) for name, key in names.items()}

    return _of_cards(figures_of)


@metric(scores="unreduced")
def trust() -> Metric:
    """The conclusion of the trust card: 1 for the one of ``use``, ``care``, ``avoid`` and
    ``unknown`` that it draws, 0 for the others."""
    return _of_cards(lambda card: {name: int(card["trust"] == name) for name in get_args(Trust)})


def _of_cards(figures_of: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Metric:
    """A metric of trust cards; with several tasks or judges, their names come first."""

    def compute(scores: list[SampleScore]) -> Value:
        rows = [each for score in scores for each in (score.score.metadata or {}).get(KEY, ())]
        cards = figures(rows)
        several = [key for key in ("task", "judge") if len({card[key] for card in cards}) > 1]
        values: dict[str, Any] = {
            "/".join([*(card[key] for key in several), name]): value
            for card in cards
            for name, value in figures_of(card).items()
            if value is not None
        }
        return values

    return compute


@scorer(metrics=[accuracy(), stderr()])
def stable(
    judge: str,
    passing: str | int | list[str | int],
    fields: dict[str, str] | None = None,
    task: str | None = None,
    wording: str | None = None,
    scoring: str | None = None,
    options: dict[str, Any] | None = None,
) -> Scorer:
    """Score with a judge of JudgeSense: a stabilised judge's file, or any judge with a task.

    Args:
        judge: the file that ``judgesense stabilise`` wrote; or a name, Hub id or path, with
            ``task``.
        passing: the verdicts that are correct, such as ``YES`` or ``["4", "5"]``.
        fields: the field that the judge's wordings show -> ``input``, ``output``, ``target`` or a
            key of the sample's metadata. By default fields are found by their names.
        task, wording, scoring: for a judge that is not stabilised, as in
            :func:`judgesense.load_judge`.
        options: the engine's, such as ``{"dtype": "bfloat16"}``.

    The judge is loaded with the first sample. A sample without a verdict is unscored.
    """
    accepted = _labels(passing)
    made: list[Grader] = []
    lock = anyio.Lock()

    def load() -> Grader:
        return Grader(
            judge, passing=accepted, fields=fields, task=task, wording=wording, scoring=scoring,
            **(options or {}),
        )  # fmt: skip

    async def score(state: TaskState, target: Target) -> Score:
        async with lock:
            if not made:
                made.append(await anyio.to_thread.run_sync(load))
            grade = await anyio.to_thread.run_sync(made[0], _case(state, target))
        kept = ("verdict", "probability", "margin", "ask_person")
        common: dict[str, Any] = {
            "answer": state.output.completion,
            "explanation": grade.reason,
            "metadata": {name: getattr(grade.verdict, name) for name in kept},
        }
        if grade.passed is None:
            return Score.unscored(reason="grader_failed", **common)
        return Score(value=CORRECT if grade.passed else INCORRECT, **common)

    return score


@scorer(metrics=[accuracy(), stderr(), jss(), delta_jss(), trust()])
def model_graded(
    template: str = "qa",
    instructions: str | None = None,
    partial_credit: bool = False,
    correct: str | int | list[str | int] | None = None,
    repeats: int = 1,
    cluster: str = "cluster_id",
    model: str | Model | None = None,
    model_role: str | None = "grader",
) -> Scorer:
    """Grade under several wordings, and measure whether the grades depend on the wording.

    The score is the grade of most wordings (and of both orders, where two answers are compared).

    Args:
        template: ``qa`` or ``fact``: the prompt of Inspect's ``model_graded_qa`` or
            ``model_graded_fact`` and three wordings of it; or a template file with one task.
        instructions: what to ask of the grader, as in ``model_graded_qa``.
        partial_credit: offer the grade P, as in ``model_graded_qa``.
        correct: the labels that count as correct, for a template file whose labels are neither
            grades (C, P, I) nor numbers.
        repeats: times each prompt is asked; 2 or more for `delta_jss`.
        cluster: the key of a sample's metadata that names what samples share.
        model, model_role: the grader, as in ``model_graded_qa``.
    """
    entry = _templates(template, ("C", "P", "I") if partial_credit else GRADES)
    shown = {"instructions": instructions or default_instructions(partial_credit)}
    right = None if correct is None else set(_labels(correct))
    labels = entry.task.labels
    if right is None and not set(labels) <= {"C", "P", "I", "N"} and not is_scale(labels):
        raise JudgeSenseError(
            f"which of the labels {', '.join(labels)} of {template} are correct? Pass correct="
        )
    if right is not None and not right < set(labels):
        raise JudgeSenseError(f"correct: choose some of {', '.join(labels)}, but not all")

    async def score(state: TaskState, target: Target) -> Score:
        grader = model if isinstance(model, Model) else get_model(model, role=model_role)
        prompts = _prompts(entry, _case(state, target) | shown, state, cluster)
        asked = [prompt for prompt in prompts for _ in range(repeats)]
        answers = await collect(*(grader.generate(prompt.text) for prompt in asked))
        aliases = {each.template_id: each.aliases for each in entry.templates}
        rows, votes = [], Counter[str]()
        for prompt, answer in zip(asked, answers, strict=True):
            options = tuple(load_label_map(prompt.label_map))
            raw = parse(answer.completion, options, aliases[prompt.template_id])
            rows.append(row(prompt, labels, str(grader), raw))
            if (decision := rows[-1]["decision"]) not in UNDECIDED:
                # The label in the item's own order.
                votes[str(entry.task.gold_as_shown(decision, prompt.order))] += 1
        explanation = "\n\n".join(
            f"[{prompt.template_id}, {prompt.order}] {answer.completion}".replace(", -]", "]")
            for prompt, answer in zip(asked, answers, strict=True)
        )
        best = votes.most_common(2)
        tied = not best or (len(best) > 1 and best[0][1] == best[1][1])
        return Score(
            value=NOANSWER if tied else _value(best[0][0], labels, right),
            answer=state.output.completion,
            explanation=explanation,
            metadata={KEY: rows, "votes": dict(votes)},
        )

    return score


def _labels(given: str | int | Sequence[str | int]) -> list[str]:
    """Labels as text: on the command line (``-S passing=YES``) Inspect reads YAML, in which YES is
    true and 4 a number."""
    listed = [given] if isinstance(given, (str, int)) else given
    return [("YES" if each else "NO") if isinstance(each, bool) else str(each) for each in listed]


def _templates(template: str, grades: tuple[str, ...]) -> TaskTemplates:
    """The wordings of Inspect's own prompts, or of a file."""
    if template in ("qa", "fact"):
        name = f"inspect-{template}"
        same = MappingProxyType({label: label for label in grades})
        own = Template(template, "model_graded", own_wording(name), "{instruction}", same)
        others = known_wordings(name, grades, "model_graded")
        return TaskTemplates(Task("model_graded", grades), (own, *others))
    path = Path(template)
    if path.suffix not in (".yaml", ".yml"):
        raise JudgeSenseError(
            f"template is {template!r}: choose qa, fact or a template file (YAML)"
        )
    entries = load_templates(path)
    if len(entries) != 1:
        raise JudgeSenseError(f"{path}: must hold one task, not {len(entries)}")
    return next(iter(entries.values()))


def _prompts(
    entry: TaskTemplates, fields: Mapping[str, str], state: TaskState, cluster: str
) -> list[Prompt]:
    """A sample under each wording, in each order."""
    name = str(state.sample_id)
    item = Item(
        name if state.epoch == 1 else f"{name}/{state.epoch}",
        entry.task.name,
        fields,
        cluster_id=str((state.metadata or {}).get(cluster) or name),
    )
    return [
        render(entry.task, each, item, order)
        for each in entry.templates
        for order in entry.task.orders
    ]


def _case(state: TaskState, target: Target) -> dict[str, str]:
    """What a wording can show of a sample: its input, output and target, and its metadata."""
    texts = {
        "input": state.input_text, "output": state.output.completion, "target": target.text
    }  # fmt: skip
    metadata = {
        name: value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, default=str)
        for name, value in (state.metadata or {}).items()
        if value is not None
    }
    named = {name: texts[key] for key, names in _NAMES.items() for name in names}
    return {**named, **metadata, **texts}


def _value(label: str, labels: Sequence[str], right: set[str] | None) -> Value:
    """A label as Inspect's score."""
    if right is not None:
        return CORRECT if label in right else INCORRECT
    return float(label) if is_scale(labels) else label
