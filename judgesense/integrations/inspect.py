"""Scorers and metrics for Inspect, by the entry point ``inspect_ai``.

- ``judgesense/stable`` scores with a judge of JudgeSense, such as an improved judge's file.
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
from judgesense.files.documents import read_yaml
from judgesense.importers.inspect_logs import GRADES, PARTIAL_GRADES
from judgesense.integrations.inspect_verdicts import KEY, figures
from judgesense.serving.served_judge import ServedJudge, Verdict, load_served
from judgesense.tasks import (
    NO_ORDER,
    UNDECIDED,
    Item,
    Task,
    Template,
    render,
)
from judgesense.trust.card import Trust

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

PROMPTS = Path(__file__).with_name("inspect_prompts.yaml")
"""Inspect's grading prompts, and other wordings of them."""

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
    """Score with a judge of JudgeSense: an improved judge's file, or any judge with a task.

    Args:
        judge: the file that ``judgesense improve`` wrote; or a name, Hub id or path, with
            ``task``.
        passing: the verdicts that are correct, such as ``YES`` or ``["4", "5"]``.
        fields: the field that the judge's wordings show -> ``input``, ``output``, ``target`` or a
            key of the sample's metadata. By default fields are found by their names.
        task, wording, scoring: for any other judge, as in
            :func:`judgesense.load_judge`.
        options: the engine's, such as ``{"dtype": "bfloat16"}``.

    The judge is loaded with the first sample. A sample without a verdict is unscored.
    """
    accepted = _labels(passing)
    made: list[ServedJudge] = []
    lock = anyio.Lock()

    def load() -> ServedJudge:
        asked = {"task": task, "wording": wording, "scoring": scoring}
        given = {name: value for name, value in asked.items() if value is not None}
        served = load_served(judge, **given, **(options or {}))
        if served.one is None:
            raise JudgeSenseError("which task? Add task=NAME")
        own = served.judges[served.one].stabilised
        if not set(accepted) < set(own.rule.labels) or not accepted:
            raise JudgeSenseError(
                f"passing is {', '.join(accepted) or 'empty'}; name some of the verdicts "
                f"{', '.join(own.rule.labels)}, but not all"
            )
        if unknown := sorted(set(fields or ()) - own.fields):
            raise JudgeSenseError(f"fields: the wordings do not show {unknown[0]!r}; they show "
                                  f"{', '.join(sorted(own.fields))}")  # fmt: skip
        return served

    def judged(case: Mapping[str, str]) -> Verdict:
        own = {field: case[name] for field, name in (fields or {}).items() if name in case}
        ask = made[0].of_item({**case, **own}, None)
        return made[0].verdict(ask, *made[0].answer([ask]))

    async def score(state: TaskState, target: Target) -> Score:
        async with lock:
            if not made:
                made.append(await anyio.to_thread.run_sync(load))
            found = await anyio.to_thread.run_sync(judged, _case(state, target))
        kept = ("verdict", "probability", "margin", "ask_person")
        verdict = found.verdict.verdict
        common: dict[str, Any] = {
            "answer": state.output.completion,
            "explanation": found.reason,
            "metadata": {name: getattr(found.verdict, name) for name in kept},
        }
        if verdict in UNDECIDED:
            return Score.unscored(reason="grader_failed", **common)
        return Score(value=CORRECT if verdict in accepted else INCORRECT, **common)

    return score


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


@scorer(metrics=[accuracy(), stderr(), jss(), delta_jss(), trust()])
def model_graded(
    template: str = "qa",
    instructions: str | None = None,
    partial_credit: bool = False,
    repeats: int = 1,
    cluster: str = "cluster_id",
    model: str | Model | None = None,
    model_role: str | None = "grader",
) -> Scorer:
    """Grade under several wordings, and measure whether the grades depend on the wording.

    The score is the grade of most wordings.

    Args:
        template: ``qa`` or ``fact``: the prompt of Inspect's ``model_graded_qa`` or
            ``model_graded_fact`` and three wordings of it.
        instructions: what to ask of the grader, as in ``model_graded_qa``.
        partial_credit: offer the grade P, as in ``model_graded_qa``.
        repeats: times each prompt is asked; 2 or more for `delta_jss`.
        cluster: the key of a sample's metadata that names what samples share.
        model, model_role: the grader, as in ``model_graded_qa``.
    """
    if template not in ("qa", "fact"):
        raise JudgeSenseError(f"template is {template!r}: choose qa or fact")
    labels = PARTIAL_GRADES if partial_credit else GRADES
    same = MappingProxyType({label: label for label in labels})
    graded = Task("model_graded", labels)
    texts = read_yaml(PROMPTS)[template]
    wordings = [
        Template(name, graded.name, text, "{instruction}", same) for name, text in texts.items()
    ]
    shown = {"instructions": instructions or default_instructions(partial_credit)}

    async def score(state: TaskState, target: Target) -> Score:
        grader = model if isinstance(model, Model) else get_model(model, role=model_role)
        sample = str(state.sample_id)
        item = Item(
            sample if state.epoch == 1 else f"{sample}/{state.epoch}",
            graded.name,
            _case(state, target) | shown,
            cluster_id=str((state.metadata or {}).get(cluster) or sample),
        )
        prompts = [render(graded, each, item, NO_ORDER) for each in wordings]
        asked = [prompt for prompt in prompts for _ in range(repeats)]
        answers = await collect(*(grader.generate(prompt.text) for prompt in asked))
        rows, votes = [], Counter[str]()
        for prompt, answer in zip(asked, answers, strict=True):
            grade = parse(answer.completion, labels)
            rows.append({
                "judge": str(grader), "task": graded.name, "labels": list(labels),
                "item_id": item.item_id, "cluster_id": item.cluster_id,
                "template_id": prompt.template_id, "order": prompt.order,
                "prompt_id": prompt.prompt_id, "raw_decision": grade,
            })  # fmt: skip
            if grade not in UNDECIDED:
                votes[grade] += 1
        explanation = "\n\n".join(
            f"[{prompt.template_id}] {answer.completion}"
            for prompt, answer in zip(asked, answers, strict=True)
        )
        best = votes.most_common(2)
        tied = not best or (len(best) > 1 and best[0][1] == best[1][1])
        return Score(
            value=NOANSWER if tied else best[0][0],
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
