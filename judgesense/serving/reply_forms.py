"""The form in which a chat request wants its verdict: the bare answer, or fields of JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.serving.served_judge import Verdict
from judgesense.tasks import UNDECIDED, Task

_KEY = re.compile(r"[{,]\s*[\"']?([A-Za-z_]{2,30})[\"']?\s*:")
_VERDICT = {
    "verdict",
    "label",
    "answer",
    "choice",
    "decision",
    "result",
    "value",
    "grade",
    "rating",
}
_PASS = frozenset(["pass", "passed", "passing", "success", "correct", "is_correct"])
_SCORE = frozenset({"score", "probability"})
_REASON = frozenset(["reason", "rationale", "explanation", "analysis", "comment", "justification"])

Form = Mapping[str, str | None]
"""Keys of the JSON object, and their JSON types where a schema states them."""

ALL_KEYS: Form = dict.fromkeys(("verdict", "pass", "score", "probability", "ask_person", "reason"))


def form_of(response_format: Mapping[str, Any] | None, *instructions: str) -> Form | None:
    """The keys that a request asks for; None for a bare answer.

    They are the ``response_format``'s, or those of a JSON object in the instructions. What is
    judged is data: a JSON object there asks for nothing.

    >>> dict(form_of(None, 'Reply as {"verdict": "YES" or "NO", "reason": "..."}'))
    {'verdict': None, 'reason': None}
    """
    kind = (response_format or {}).get("type")
    if kind == "json_schema":
        schema = response_format["json_schema"].get("schema") or {}  # type: ignore[index]
        return {str(key): _type(each) for key, each in (schema.get("properties") or {}).items()}
    for text in instructions:
        keys = [key for key in _KEY.findall(text) if key in _VERDICT | _PASS | _SCORE | _REASON]
        if keys and not set(keys) <= _REASON:
            return dict.fromkeys(keys)
    return ALL_KEYS if kind == "json_object" else None


def _type(schema: Any) -> str | None:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    return kind if isinstance(kind, str) else None


def content_of(verdict: Verdict, form: Form | None, task: Task | None) -> str:
    """The reply. Raises JudgeSenseError for a form that the verdict cannot fill."""
    if form is None:
        return verdict.raw
    own = verdict.verdict
    if own.verdict in UNDECIDED:
        raise JudgeSenseError(f"no verdict to put into JSON: {verdict.reason}")
    told: dict[str, Any] = {}
    for key, kind in form.items():
        name = key.lower()
        if name in _PASS or kind == "boolean":
            if task is None or task.ordinal or task.comparative:
                if form is ALL_KEYS:
                    continue
                raise JudgeSenseError(
                    f"the reply's {key!r} is true or false, and the labels are "
                    f"{', '.join(task.labels) if task else 'not known'}; ask for a verdict or score"
                )
            told[key] = own.verdict == task.labels[0]
        elif name == "ask_person":
            told[key] = own.ask_person
        elif name in _REASON:
            told[key] = verdict.reason
        elif name == "probability" and kind in (None, "number"):
            told[key] = own.probability
        elif name in _SCORE or kind in ("number", "integer"):
            value = _score(verdict, task)
            told[key] = round(value) if kind == "integer" else value
        elif name in _VERDICT or kind in (None, "string"):
            told[key] = own.verdict
    return json.dumps(told, ensure_ascii=False)


def _score(verdict: Verdict, task: Task | None) -> float:
    """The expected score on a scale, else the probability of the first label (1 or 0 without)."""
    own = verdict.verdict
    if own.score is not None:
        return own.score
    if task is not None and task.ordinal:
        try:
            return float(own.verdict)
        except ValueError as error:
            raise JudgeSenseError(f"the verdict {own.verdict} is no number") from error
    first = task.labels[0] if task else own.verdict
    if verdict.probabilities is not None:
        return verdict.probabilities[first]
    return float(own.verdict == first)
