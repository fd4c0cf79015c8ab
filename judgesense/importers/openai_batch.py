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

from pydantic import AliasPath, Field

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Shape, fit
from judgesense.files.tables import Record, read_json_lines
from judgesense.importers.columns import check_target
from judgesense.importers.importer import Importer, ReadOptions

CUSTOM_ID = "{task}|{item_id}|{template_id}|{order}"
"""The default form of a ``custom_id``."""


class Token(Shape):
    """A token of the answer, or one that could have come."""

    token: str
    logprob: float
    top_logprobs: list[Token] | None = None


class Part(Shape):
    """A part of a message: text or a refusal."""

    type: str | None = None
    text: str | None = None
    logprobs: list[Token] | None = None


class Message(Shape):
    """The message of a choice, whose text some servers send in parts."""

    content: str | list[Part] | None = None
    refusal: str | None = None


class Choice(Shape):
    """A chat completion's answer."""

    message: Message = Message()
    finish_reason: str | None = None
    tokens: list[Token] | None = Field(None, validation_alias=AliasPath("logprobs", "content"))


class Output(Shape):
    """An entry of a response's output."""

    type: str | None = None
    content: list[Part] | None = None


class Body(Shape):
    """A chat completion or a response."""

    model: str | None = None
    choices: list[Choice] | None = None
    output: list[Output] | None = None
    status: str | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


class Response(Shape):
    """What the server answered."""

    status_code: int | None = None
    body: Body | str | None = None


class Line(Shape):
    """A line of batch output."""

    custom_id: str | int
    response: Response | None = None
    error: Any = None

    @property
    def body(self) -> Body:
        """The answer; an empty one if the request failed."""
        body = self.response.body if self.response else None
        return body if isinstance(body, Body) else Body()


def read(path: Path, options: ReadOptions) -> Iterator[Record]:
    """One record per choice of each request, and one more if it has log-probabilities.

    ``custom_id`` is the form of the ids: column names of the decision log in braces, with any text
    between them. ``labels`` are the options to find among the log-probabilities. A failed request
    is an ERROR with the provider's message.

    Raises JudgeSenseError for a line that is not batch output, naming its field, and for an id of
    another form.
    """
    custom_id = options.custom_id or CUSTOM_ID
    form = id_pattern(custom_id)
    lines = [
        (fit(Line, record.values, record.place, "a line of batch output"), record.place)
        for record in read_json_lines(path, options.encoding)
    ]
    models = {line.body.model for line, _ in lines} - {None}
    # A failed request does not name its model; it is the model of the other requests.
    only_model = models.pop() if len(models) == 1 else None
    for line, place in lines:
        id_parts = form.fullmatch(str(line.custom_id))
        if not id_parts:
            raise JudgeSenseError(
                f"{place}, custom_id: {line.custom_id!r} does not have the form "
                f"{custom_id!r}; set the form, such as --custom-id '{{template_id}}/{{item_id}}'"
            )
        judge = line.body.model or only_model
        common = {**id_parts.groupdict(), "custom_id": line.custom_id, "judge": judge}
        if problem := _problem(line):
            yield Record({**common, "status": "error", "error": problem}, place)
            continue
        usage = line.body.usage or {}
        common["input_tokens"] = usage.get("prompt_tokens", usage.get("input_tokens"))
        common["output_tokens"] = usage.get("completion_tokens", usage.get("output_tokens"))
        for number, (values, tokens) in enumerate(_answers(line.body, place)):
            yield Record({**common, "scoring": "generate", "repeat": number, **values}, place)
            if logprobs := _first_token(tokens, options.labels or ()):
                scored = {"scoring": "options", "option_logprobs": logprobs, "repeat": number}
                yield Record({**common, **scored}, place)


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


def _problem(line: Line) -> str | None:
    error = line.error or line.body.error
    if error:
        return str(error.get("message") or error) if isinstance(error, Mapping) else str(error)
    status = line.response.status_code if line.response else None
    if status != 200:
        return f"status {status}" if status else "no response"
    return None


def _answers(body: Body, place: str) -> Iterator[tuple[dict[str, Any], list[Token]]]:
    """Text and status of each choice, and its tokens' log-probabilities."""
    for choice in body.choices or ():
        message, finish = choice.message, choice.finish_reason
        refused = bool(message.refusal) or finish == "content_filter"
        text = _text(message.content) or message.refusal
        yield _answer(text, refused, finish == "length"), choice.tokens or []
    if body.output is not None:
        messages = [entry for entry in body.output if entry.type == "message"]
        parts = [part for entry in messages for part in entry.content or []]
        refused = any(part.type == "refusal" for part in parts)
        tokens = [token for part in parts for token in part.logprobs or []]
        yield _answer(_text(parts), refused, body.status == "incomplete"), tokens
    elif body.choices is None:
        raise JudgeSenseError(f"{place}: the response has neither choices nor output")


def _text(content: str | list[Part] | None) -> str:
    if isinstance(content, list):
        return "".join(part.text or "" for part in content)
    return content or ""


def _answer(text: str | None, refused: bool, truncated: bool) -> dict[str, Any]:
    status = "refused" if refused else None if text else "unclear"
    return {"raw_text": text or "", "status": status, "truncated": truncated}


def _first_token(tokens: Sequence[Token], labels: Sequence[str]) -> dict[str, float]:
    """The options among the first token's candidates, in the labels' order.

    Spellings that differ in white space are one option. Their probabilities are not added: the
    most probable one counts.
    """
    found: dict[str, float] = {}
    for candidate in (tokens[0].top_logprobs if tokens else None) or ():
        label = candidate.token.strip()
        if label in labels:
            found[label] = max(found.get(label, float("-inf")), candidate.logprob)
    return {label: found[label] for label in labels if label in found}


IMPORTER = Importer(
    name="openai-batch",
    summary="output of the OpenAI batch API (chat completions or responses)",
    patterns=("*.jsonl",),
    read=read,
    options=("custom_id",),
)
