"""OpenAI batch output: one JSON object a request, told apart by its ``custom_id``.

Chat completions and responses are read. The option log-probabilities are those of the first
token's ``top_logprobs``; options that are not among them are absent, and ``option_mass`` is what
the rest have together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.importers.files import Record, read_json_lines

DEFAULTS: Mapping[str, str] = {}
CUSTOM_ID = "{task}|{item_id}|{template_id}|{order}"
"""The default form of a ``custom_id``."""


def read(
    source: Path,
    *,
    custom_id: str = CUSTOM_ID,
    labels: Sequence[str] | None = None,
    encoding: str = "utf-8",
) -> Iterator[Record]:
    """One record for each choice of each request, and one more where log-probabilities are there.

    ``custom_id`` is the form of the ids: the decision log's column names in braces, with
    anything between. ``labels`` names the options to find among the log-probabilities. A failed
    request is an ERROR with the provider's message, of the model that answered the others.

    Raises JudgeSenseError for a line that is no batch output and for an id of another form.
    """
    form = id_pattern(custom_id)
    records = list(read_json_lines(source, encoding))
    bodies = [(record.values.get("response") or {}).get("body") or {} for record in records]
    models = {body["model"] for body in bodies if "model" in body}
    only_model = models.pop() if len(models) == 1 else None
    for record, body in zip(records, bodies, strict=True):
        line = record.values
        if "custom_id" not in line or not {"response", "error"} & set(line):
            raise JudgeSenseError(
                f"{record.place}: no line of batch output (it needs custom_id, response, error)"
            )
        found = form.fullmatch(str(line["custom_id"]))
        if not found:
            raise JudgeSenseError(
                f"{record.place}, custom_id: {line['custom_id']!r} has not the form {custom_id!r}; "
                "say which (--custom-id '{template_id}/{item_id}')"
            )
        response = line.get("response") or {}
        judge = body.get("model", only_model)
        common = {**found.groupdict(), "custom_id": line["custom_id"], "judge": judge}
        if problem := _problem(line, response, body):
            yield Record({**common, "status": "error", "error": problem}, record.place)
            continue
        for number, values in enumerate(_answers(body, record)):
            logprobs = _first_token(values.pop("logprobs"), labels or ())
            yield Record({**common, **_usage(body), "repeat": number, **values}, record.place)
            if logprobs:
                scored = {"scoring": "options", "option_logprobs": logprobs, "repeat": number}
                yield Record({**common, **scored}, record.place)


def id_pattern(custom_id: str) -> re.Pattern[str]:
    """The pattern of a form such as ``{task}|{item_id}``; the columns become its groups."""
    from judgesense.importers.columns import check_target

    parts = re.split(r"\{(\w+)\}", custom_id)
    names = parts[1::2]
    if not names or len(set(names)) != len(names):
        raise JudgeSenseError(
            f"custom_id: {custom_id!r} must name columns in braces, each once, as {CUSTOM_ID} does"
        )
    for name in names:
        check_target(name)
    return re.compile(
        "".join(f"(?P<{part}>.+?)" if i % 2 else re.escape(part) for i, part in enumerate(parts))
    )


def _problem(
    line: Mapping[str, Any], response: Mapping[str, Any], body: Mapping[str, Any]
) -> str | None:
    error = line.get("error") or body.get("error")
    if error:
        return str(error.get("message") or error) if isinstance(error, Mapping) else str(error)
    status = response.get("status_code")
    if status != 200:
        return f"status {status}" if status else "no response"
    return None


def _answers(body: Mapping[str, Any], record: Record) -> Iterator[dict[str, Any]]:
    """Text, status and log-probabilities of each choice."""
    if "choices" in body:
        for choice in body["choices"]:
            message = choice.get("message") or {}
            finish = choice.get("finish_reason")
            refused = bool(message.get("refusal")) or finish == "content_filter"
            yield {
                "scoring": "generate",
                "raw_text": message.get("content") or message.get("refusal") or "",
                "status": "refused" if refused else None if message.get("content") else "unclear",
                "truncated": finish == "length",
                "logprobs": (choice.get("logprobs") or {}).get("content") or [],
            }
    elif "output" in body:
        parts = [
            part
            for item in body["output"]
            if item.get("type") == "message"
            for part in item.get("content") or []
        ]
        text = "".join(part.get("text") or "" for part in parts)
        refused = any(part.get("type") == "refusal" for part in parts)
        yield {
            "scoring": "generate",
            "raw_text": text,
            "status": "refused" if refused else None if text else "unclear",
            "truncated": body.get("status") == "incomplete",
            "logprobs": [token for part in parts for token in part.get("logprobs") or []],
        }
    else:
        raise JudgeSenseError(f"{record.place}: the response has neither choices nor output")


def _usage(body: Mapping[str, Any]) -> dict[str, Any]:
    usage = body.get("usage") or {}
    return {
        "input_tokens": usage.get("prompt_tokens", usage.get("input_tokens")),
        "output_tokens": usage.get("completion_tokens", usage.get("output_tokens")),
    }


def _first_token(tokens: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> dict[str, float]:
    """The options among the first token's candidates, in the labels' order.

    Spellings of an option that differ in white space or case are one option: their
    probabilities are not added, the most probable stands for it.
    """
    found: dict[str, float] = {}
    if tokens:
        for candidate in tokens[0].get("top_logprobs") or []:
            for label in labels:
                if str(candidate["token"]).strip() == label:
                    found[label] = max(found.get(label, float("-inf")), candidate["logprob"])
    return {label: found[label] for label in labels if label in found}
