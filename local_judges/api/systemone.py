"""The shape of ``/v1/systemone``: a state, typed questions about it, answers with probabilities.

As the public APIs of decision models document it: TypeSafe (docs.typesafe.ai, and the schemas of
its client typesafe-sdk 0.7.5), Fireworks, Upstage, Databricks. The server of ``judgesense serve``
and the engine ``systemone`` both use these classes. Questions about images are not among them.

`SystemOneJudge` asks such an endpoint.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from judgesense.errors import JudgeSenseError
from judgesense.tasks import Task, is_scale
from local_judges.api.endpoint import Endpoint, Retry
from local_judges.api.judge import ApiJudge
from local_judges.api.keys import is_here
from local_judges.options import SystemOneOptions, settings_of
from local_judges.protocol import Answer, Request

MOST_OPTIONS, MOST_LEVELS = 255, 10
"""The most options of a choice, and the most levels of a score."""

YES, NO = "YES", "NO"

Content = str | dict[str, Any] | list[Any]


class Question(BaseModel):
    """A question: ``noul`` (the probability of true), ``choice`` among the keys of ``criteria``, or
    ``score`` on the levels of ``criteria``, from 0.

    >>> Question(type="choice", instructions="Which?", criteria={"A": None, "B": None}).options
    ('A', 'B')
    """

    model_config = ConfigDict(extra="forbid")

    type: Literal["noul", "choice", "score"]
    instructions: Content | None = None
    criteria: dict[str, Content | None] | list[Content] | None = None

    @model_validator(mode="after")
    def _check_criteria(self) -> Question:
        criteria, form = self.criteria, ""
        if self.type == "noul":
            is_mapping = isinstance(criteria, dict) and criteria.keys() <= _TRUTHS
            if criteria is not None and not is_mapping:
                form = 'a mapping that describes "true" and "false", or absent'
            elif self.instructions is None and not criteria:
                raise ValueError("a noul needs instructions or criteria")
        elif self.type == "choice":
            if not isinstance(criteria, dict) or not 1 <= len(criteria) <= MOST_OPTIONS:
                form = f"a mapping of 1 to {MOST_OPTIONS} options"
        elif not isinstance(criteria, list) or not 1 <= len(criteria) <= MOST_LEVELS:
            form = f"a list of 1 to {MOST_LEVELS} levels"
        if form:
            size = f", got {len(criteria)}" if criteria is not None else ""
            raise ValueError(f"the criteria of a {self.type} must be {form}{size}")
        return self

    @property
    def options(self) -> tuple[str, ...]:
        """The answers that it allows: the choices, the numbers of the levels, or YES and NO."""
        if self.type == "noul":
            return YES, NO
        criteria = self.criteria or ()
        if isinstance(criteria, dict):
            return tuple(criteria)
        return tuple(str(level) for level in range(len(criteria)))

    def labels(self, task: Task) -> tuple[str, ...] | None:
        """The task's labels that its options stand for, in their order; None for other labels.

        A noul asks for the first label of two.
        """
        if self.type == "choice":
            return self.options if set(self.options) == set(task.labels) else None
        is_binary = not (task.ordinal or task.comparative)
        is_same_kind = task.ordinal if self.type == "score" else is_binary
        return task.labels if is_same_kind and len(self.options) == len(task.labels) else None

    def text(self, state: Content) -> str:
        """The question and the state as one message, for a judge that reads text."""
        parts = [plain(self.instructions or ""), plain(state)]
        if self.criteria:
            criteria: Mapping[Any, Content | None] = (
                self.criteria if isinstance(self.criteria, dict) else dict(enumerate(self.criteria))
            )
            names = {"true": YES, "false": NO} if self.type == "noul" else {}
            lines = []
            for key, meaning in criteria.items():
                after = "" if meaning is None else f": {plain(meaning)}"
                lines.append(f"- {names.get(str(key), key)}{after}")
            parts.append("\n".join(lines))
        parts.append(f"Answer with one of: {', '.join(self.options)}")
        return "\n\n".join(part for part in parts if part)

    def answer(self, shares: Sequence[float]) -> dict[str, Any]:
        """The answer with the probabilities of its options, in their order."""
        if self.type == "noul":
            return {"type": "noul", "noul": shares[0]}
        answer: dict[str, Any] = {
            "type": self.type,
            "probabilities": dict(zip(self.options, shares, strict=True)),
        }
        best = max(range(len(shares)), key=lambda level: shares[level])
        n = len(shares)
        if self.type == "choice":
            # 0 where all options are equally probable, 1 where one is certain.
            excess = 1.0 if n == 1 else (n * shares[best] - 1) / (n - 1)
            confidence = min(max(excess, 0.0), 1.0)
            return {**answer, "choice": self.options[best], "confidence": confidence}
        distance = sum(share * abs(level - best) for level, share in enumerate(shares))
        even_distance = sum(abs(level - (n - 1) / 2) for level in range(n)) / n
        assert isinstance(self.criteria, list)
        return {
            **answer,
            "score": sum(level * share for level, share in enumerate(shares)),
            "legend": {str(level): meaning for level, meaning in enumerate(self.criteria)},
            "confidence": 1.0 if n == 1 else max(0.0, 1 - distance / even_distance),
        }

    def shares(self, answer: Mapping[str, Any]) -> tuple[float, ...]:
        """The probabilities in an answer, in the order of the options.

        Raises ValueError if they are not there, or are no probabilities.
        """
        try:
            if self.type == "noul":
                shares = [float(answer["noul"])]
                shares.append(1 - shares[0])
            else:
                shares = [float(answer["probabilities"][option]) for option in self.options]
        except (KeyError, TypeError) as error:
            raise ValueError(f"the answer to a {self.type} lacks {error}") from error
        total = sum(shares)
        if not (all(0 <= share <= 1 for share in shares) and 0.5 < total < 1.5):
            raise ValueError(f"the answer to a {self.type} has no probabilities: {answer!s:.200}")
        return tuple(share / total for share in shares)


_TRUTHS = {"true", "false"}


class SystemOneRequest(BaseModel):
    """A request: each question is answered by itself, from the same state."""

    model: str
    state: Content
    questions: Annotated[dict[str, Question], Field(min_length=1, max_length=1000)]


def plain(content: Any) -> str:
    """A value as a judge reads it: a mapping as ``name: value`` lines, a list of texts with blank
    lines between them, any other value as JSON.

    >>> plain({"question": "2+2?", "n": [1]}), plain(["a", "b"])
    ('question: 2+2?\\nn: [1]', 'a\\n\\nb')
    """
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return "\n".join(f"{name}: {plain(value)}" for name, value in content.items())
    if isinstance(content, (list, tuple)) and all(isinstance(text, str) for text in content):
        return "\n\n".join(content)
    return json.dumps(content, ensure_ascii=False, default=str)


def question_for(instructions: str, options: Sequence[str]) -> Question:
    """The question whose answers are these options: a noul for YES and NO, a score for 2 to 10
    whole numbers in a row, else a choice.

    >>> question_for("Right?", ("YES", "NO")).type, question_for("How?", ("1", "2", "3")).type
    ('noul', 'score')
    """
    if tuple(options) == (YES, NO):
        return Question(type="noul", instructions=instructions)
    if len(options) <= MOST_LEVELS and is_scale(options):
        numbers = [int(option) for option in options]
        if numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            return Question(type="score", instructions=instructions, criteria=list(options))
    return Question(type="choice", instructions=instructions, criteria=dict.fromkeys(options))


_FIELD = re.compile(r"^[A-Z][\w ]{0,30}: ", re.MULTILINE)
_BEFORE_FIELD = re.compile(r"\n+(?=[A-Z][\w ]{0,30}: )")
_MOST_QUESTIONS = 32
_STATED_PROBABILITIES = "the answers' probabilities, as the endpoint states them"


def split_message(message: str) -> tuple[str, Content]:
    """The instructions of a message, and the state after them: its fields where every field begins
    with its name, else a text.

    >>> split_message("Right? YES or NO.\\n\\nQuestion: 2+2?\\nResponse: 4")
    ('Right? YES or NO.', {'Question': '2+2?', 'Response': '4'})
    """
    field_break = _BEFORE_FIELD.search(message)
    instructions, _, rest = message.partition("\n\n")
    if field_break is not None:
        instructions, rest = message[: field_break.start()], message[field_break.end() :]
    starts = [match.start() for match in _FIELD.finditer(rest)]
    lines = [rest[start:stop].removesuffix("\n") for start, stop in pairwise([*starts, len(rest)])]
    fields = dict(line.split(": ", 1) for line in lines)
    return instructions, fields if fields and plain(fields) == rest else rest


class _SystemOneEndpoint(Endpoint):
    path = "/systemone"

    def body(self, requests: Sequence[Request], logprobs: bool) -> dict[str, Any]:
        questions = {}
        for n, request in enumerate(requests, 1):
            instructions, state = split_message(request.text)
            wording = f"{request.system}\n\n{instructions}" if request.system else instructions
            question = question_for(wording, request.options).model_dump().items()
            # Not exclude_none, which would also drop the options that have no description.
            questions[f"q{n}"] = {key: value for key, value in question if value is not None}
        return {"model": self.model, "state": state, "questions": questions}

    def answers(self, reply: Any, requests: Sequence[Request]) -> list[Answer]:
        try:
            replies, usage = reply["answers"], reply.get("usage") or {}
            shares = [
                question_for("", request.options).shares(replies[f"q{n}"])
                for n, request in enumerate(requests, 1)
            ]
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"the reply lacks an answer: {error}") from error
        answers = []
        for n, option_shares in enumerate(shares):
            # The tokens of the HTTP request, spread over its questions.
            tokens = {
                name: (usage[name] + n) // len(requests)
                for name in ("input_tokens", "output_tokens")
                if type(usage.get(name)) is int
            }
            logprobs = tuple(math.log(max(share, 1e-12)) for share in option_shares)
            answers.append(Answer(option_logprobs=logprobs, option_mass=1.0, **tokens))
        return answers


class SystemOneJudge(ApiJudge):
    """A decision model: it answers with probabilities, and writes no text.

    The wording of a prompt is the question's instructions, the item's fields are the state, and the
    prompts of one item are asked in one request. The endpoint takes no system prompt and no
    settings of decoding. ``options`` are those of :class:`~local_judges.options.SystemOneOptions`;
    all else is as in `ApiJudge`.
    """

    endpoint_class = _SystemOneEndpoint

    def __init__(
        self, model: str, *, name: str | None = None, retry: Retry | None = None, **options: Any
    ) -> None:
        settings = settings_of(SystemOneOptions, options).model_dump(exclude_none=True)
        url = settings.get("base_url")
        missing = [] if url else ["base_url=URL"]
        if "key_variable" not in settings and not is_here(url):
            missing.append("key_variable=NAME")
        if missing:
            raise JudgeSenseError(f"the engine systemone needs --set {' --set '.join(missing)}")
        super().__init__(model, name=name, retry=retry, **settings, system_prompt="", max_tokens=1)
        self.scorings = frozenset({"options"})

    def _identity(self) -> dict[str, Any]:
        return {
            "engine": "systemone",
            "model": self.endpoint.model,
            "endpoint": self.endpoint.base_url,
        }

    def _probability_source(self) -> str:
        return _STATED_PROBABILITIES

    def plan(self, requests: Sequence[Request], scorings: frozenset[str]) -> list[Sequence[int]]:
        """The prompts of one state together."""
        groups: dict[str, list[int]] = {}
        for number, request in enumerate(requests):
            groups.setdefault(plain(split_message(request.text)[1]), []).append(number)
        return [
            group[at : at + _MOST_QUESTIONS]
            for group in groups.values()
            for at in range(0, len(group), _MOST_QUESTIONS)
        ]
