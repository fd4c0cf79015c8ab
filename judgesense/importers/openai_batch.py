"""OpenAI batch output: one JSON object per request, identified by its ``custom_id``.

Chat completions and responses are read. The option log-probabilities are those of the first
token's ``top_logprobs``; options that are not among them have none, and ``option_mass`` is the sum
of the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.importers.columns import check_target
from judgesense.importers.files import Record, read_json_lines
from judgesense.importers.protocol import Importer, ReadOptions

CUSTOM_ID = "{task}|{item_id}|{template_id}|{order}"
"""The default form of a ``custom_id``."""


def read(path: Path, options: ReadOptions) -> Iterator[Record]:
    """One record per choice of each request, and one more if it has log-probabilities.

    ``custom_id`` is the form of the ids: column names of the decision log in braces, with any text
    between them. ``labels`` are the options to find among the log-probabilities. A failed request
    is an ERROR with the provider's message.

    Raises JudgeSenseError for a line that is not batch output and for an id of another form.
    """
    custom_id = options.custom_id or CUSTOM_ID
    form = id_pattern(custom_id)
    records = list(read_json_lines(path, options.encoding))
    bodies = [(record.values.get("response") or {}).get("body") or {} for record in records]
    models = {body["model"] for body in bodies if "model" in body}
    # A failed request does not name its model; it is the model of the other requests.
    only_model = models.pop() if len(models) == 1 else None
    for record, body in zip(records, bodies, strict=True):
        line = record.values
        if "custom_id" not in line or not {"response", "error"} & set(line):
            raise JudgeSenseError(
                f"{record.place}: not a line of batch output, which has custom_id, response and "
                "error"
            )
        found = form.fullmatch(str(line["custom_id"]))
        if not found:
            raise JudgeSenseError(
                f"{record.place}, custom_id: {line['custom_id']!r} does not have the form "
                f"{custom_id!r}; set the form, such as --custom-id '{{template_id}}/{{item_id}}'"
            )
        response = line.get("response") or {}
        judge = body.get("model", only_model)
        common = {**found.groupdict(), "custom_id": line["custom_id"], "judge": judge}
        if problem := _problem(line, response, body):
            yield Record({**common, "status": "error", "error": problem}, record.place)
            continue
        for number, values in enumerate(_answers(body, record)):
            logprobs = _first_token(values.pop("logprobs"), options.labels or ())
            yield Record({**common, **_usage(body), "repeat": number, **values}, record.place)
            if logprobs:
                scored = {"scoring": "options", "option_logprobs": logprobs, "repeat": number}
                yield Record({**common, **scored}, record.place)


def id_pattern(custom_id: str) -> re.Pattern[str]:
    """The pattern of a form such as ``{task}|{item_id}``, with a group per column."""
    parts = re.split(r"\{(\w+)\}", custom_id)
    names = parts[1::2]
    if not names or len(set(names)) != len(names):
        raise JudgeSenseError(
            f"custom_id: {custom_id!r} must contain column names in braces, each once, such as "
            f"{CUSTOM_ID}"
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
            message, finish = choice.get("message") or {}, choice.get("finish_reason")
            yield _answer(
                message.get("content") or "",
                message.get("refusal"),
                bool(message.get("refusal")) or finish == "content_filter",
                finish == "length",
                (choice.get("logprobs") or {}).get("content"),
            )
    elif "output" in body:
        messages = [item for item in body["output"] if item.get("type") == "message"]
        parts = [part for item in messages for part in item.get("content") or []]
        yield _answer(
            "".join(part.get("text") or "" for part in parts),
            None,
            any(part.get("type") == "refusal" for part in parts),
            body.get("status") == "incomplete",
            [token for part in parts for token in part.get("logprobs") or []],
        )
    else:
        raise JudgeSenseError(f"{record.place}: the response has neither choices nor output")


def _answer(
    text: str, refusal: str | None, refused: bool, truncated: bool, logprobs: Any
) -> dict[str, Any]:
    return {
        "scoring": "generate",
        "raw_text": text or refusal or "",
        "status": "refused" if refused else None if text else "unclear",
        "truncated": truncated,
        "logprobs": logprobs or [],
    }


def _usage(body: Mapping[str, Any]) -> dict[str, Any]:
    usage = body.get("usage") or {}
    return {
        "input_tokens": usage.get("prompt_tokens", usage.get("input_tokens")),
        "output_tokens": usage.get("completion_tokens", usage.get("output_tokens")),
    }


def _first_token(tokens: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> dict[str, float]:
    """The options among the first token's candidates, in the labels' order.

    Spellings that differ in white space are one option. Their probabilities are not added: the
    most probable one counts.
    """
    found: dict[str, float] = {}
    if tokens:
        for candidate in tokens[0].get("top_logprobs") or []:
            for label in labels:
                if str(candidate["token"]).strip() == label:
                    found[label] = max(found.get(label, float("-inf")), candidate["logprob"])
    return {label: found[label] for label in labels if label in found}


IMPORTER = Importer(
    name="openai-batch",
    summary="output of the OpenAI batch API (chat completions or responses)",
    patterns=("*.jsonl",),
    read=read,
    options=("custom_id",),
)
