"""A scorer for Inspect, by the entry point ``inspect_ai``.

``judgesense/stable`` scores with a judge of JudgeSense, such as an improved judge's file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.serve.served_judge import ServedJudge, Verdict, load_served
from judgesense.tasks import UNDECIDED

try:
    import anyio
    from inspect_ai.scorer import (
        CORRECT,
        INCORRECT,
        Score,
        Scorer,
        Target,
        accuracy,
        scorer,
        stderr,
    )
    from inspect_ai.solver import TaskState
except ImportError as error:
    raise MissingExtraError("inspect-ai", "inspect", "scoring in Inspect") from error

_NAMES = {
    "input": ("input", "question", "query", "prompt"),
    "output": ("output", "answer", "response", "completion", "submission"),
    "target": ("target", "criterion", "reference", "expected"),
}
"""The names under which a wording can show a sample's input, output and target."""


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
            raise JudgeSenseError("no task; add task=NAME")
        own = served.judges[served.one].improved
        if not set(accepted) < set(own.recipe.labels) or not accepted:
            raise JudgeSenseError(
                f"passing is {', '.join(accepted) or 'empty'}; name some of the verdicts "
                f"{', '.join(own.recipe.labels)}, but not all"
            )
        if unknown := sorted(set(fields or ()) - own.fields):
            raise JudgeSenseError(
                f"fields: the wordings do not show {unknown[0]!r}; they show "
                f"{', '.join(sorted(own.fields))}"
            )
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
            "explanation": found.reason or found.note,
            "metadata": {name: getattr(found.verdict, name) for name in kept},
        }
        if verdict in UNDECIDED:
            return Score.unscored(reason="grader_failed", **common)
        return Score(value=CORRECT if verdict in accepted else INCORRECT, **common)

    return score


def _labels(given: str | int | Sequence[str | int]) -> list[str]:
    """Labels as text: on the command line (``-S passing=YES``) Inspect reads YAML, in which YES is
    true and 4 a number."""
    listed = [given] if isinstance(given, (str, int)) else given
    return [("YES" if each else "NO") if isinstance(each, bool) else str(each) for each in listed]


def _case(state: TaskState, target: Target) -> dict[str, str]:
    """What a wording can show of a sample: its input, output and target, and its metadata."""
    texts = {"input": state.input_text, "output": state.output.completion, "target": target.text}
    metadata = {
        name: value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, default=str)
        for name, value in (state.metadata or {}).items()
        if value is not None
    }
    named = {name: texts[key] for key, names in _NAMES.items() for name in names}
    return {**named, **metadata, **texts}
