"""The form in which a chat request wants its verdict: the bare answer, or fields of JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.serve.served_judge import Verdict
from judgesense.tasks import UNDECIDED, Task, Template, typed_answer
from judgesense_dataset.reply_labels import shown_fields

_KEY = re.compile(r"[{,]\s*[\"']?([A-Za-z_]{2,30})[\"']?\s*:")
_KINDS = {
    "verdict": "verdict label answer choice decision result value grade rating",
    "pass": "pass passed passing success correct is_correct",
    "score": "score",
    "probability": "probability",
    "ask_person": "ask_person",
    "reason": "reason reasoning rationale explanation analysis comment justification critique",
    "note": "note",
}
_KIND = {key: kind for kind, keys in _KINDS.items() for key in keys.split()}
_TYPES = {"boolean": "pass", "number": "score"}

Form = Mapping[str, str]
"""The keys of a JSON object, and what each holds."""


def form_of(
    response_format: Mapping[str, Any] | None,
    task: Task | None,
    *instructions: str,
    template: Template | None = None,
) -> Form | None:
    """The keys that a request asks for; None for a bare answer.

    They are those of the ``response_format``, or of a JSON object in the instructions or in the
    ``template`` of a prompt. What is judged is data: a JSON object there is no request.

    >>> form_of(None, None, 'Reply as {"verdict": "YES" or "NO", "why": "", "reason": ""}')
    {'verdict': 'verdict', 'reason': 'reason'}
    """
    kind = (response_format or {}).get("type")
    if template is not None and kind != "json_schema":
        shown = shown_fields(f"{template.text}\n{template.layout}")
        verdicts = [key for key, values in shown.items() if {*values} >= {*template.label_map}]
        if len(verdicts) == 1:
            return {
                key: "raw" if key in verdicts else _KIND.get(key, "reason")
                for key, values in shown.items()
                if key in verdicts or not values
            }
    if response_format and kind == "json_schema":
        try:
            properties = response_format["json_schema"]["schema"]["properties"].items()
            types = {str(key): str(each.get("type")) for key, each in properties}
        except (AttributeError, KeyError, TypeError) as error:
            raise JudgeSenseError("response_format: expected a schema with properties") from error
        return {key: _TYPES.get(type_, _KIND.get(key, "verdict")) for key, type_ in types.items()}
    for text in instructions:
        form = {key: _KIND[key] for key in _KEY.findall(text) if key in _KIND}
        if set(form.values()) - {"reason", "note"}:
            return form
    if kind != "json_object":
        return None
    binary = task is not None and not (task.ordinal or task.comparative)
    return {key: key for key in _KINDS if binary or key != "pass"}


def content_of(verdict: Verdict, form: Form | None, task: Task | None) -> str:
    """The reply. Raises JudgeSenseError for a form that the verdict cannot fill."""
    if form is None:
        # A message that no wording explains gets what the judge wrote.
        as_sent = verdict.judged == "as sent" and not verdict.answer.refused
        return verdict.answer.text or verdict.raw if as_sent else verdict.raw
    own, labels = verdict.verdict, task.labels if task else ()
    if own.verdict in UNDECIDED:
        raise JudgeSenseError(f"there is no verdict for the JSON reply: {verdict.note}")
    if "pass" in form.values() and (task is None or task.ordinal or task.comparative):
        raise JudgeSenseError(
            f'the labels {", ".join(labels)} are not true and false; ask for a field "verdict"'
        )
    score = own.score
    if score is None and labels and not (task and task.ordinal):
        shares = verdict.probabilities or {label: own.verdict == label for label in labels}
        score = float(shares[labels[0]])
    told = {
        "raw": typed_answer(verdict.raw),
        "verdict": own.verdict,
        "pass": own.verdict == labels[0] if labels else None,
        "score": score,
        "probability": own.probability,
        "ask_person": own.ask_person,
        # A client that asks for a reason needs a text, also of a judge that gives none.
        "reason": verdict.reason or verdict.note,
        "note": verdict.note,
    }
    return json.dumps({key: told[kind] for key, kind in form.items()}, ensure_ascii=False)
