"""A judge made from a Python function: messages in, texts or option log-probabilities out."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, TypeAlias
from uuid import uuid4

from judgesense.errors import JudgeSenseError
from judgesense.text import shorten
from local_judges.plan import plan_by_count
from local_judges.protocol import Answer, Request

Reply: TypeAlias = "str | Mapping[str, float]"
JudgeFunction: TypeAlias = Callable[[list[str]], Sequence[Reply]]


class CallableJudge:
    """A function that takes a list of user messages and returns one reply to each.

    A reply is the judge's text, or a mapping from every option to its log-probability in nats;
    ``scoring`` says which of the two. The judge's name is the function's own, or ``name``, with
    ``@callable``: a record cannot fix the answers of a function.

    >>> judge = CallableJudge(lambda messages: ["YES"] * len(messages), name="yes")
    >>> judge.name, sorted(judge.scorings)
    ('yes@callable', ['generate'])
    """

    answers_alone = True
    """An answer depends on its prompt, not on the prompts in the same batch."""

    def __init__(
        self,
        function: JudgeFunction,
        *,
        name: str | None = None,
        scoring: str = "generate",
        batch_size: int = 256,
    ) -> None:
        if scoring not in ("generate", "options"):
            raise JudgeSenseError(f"scoring must be 'generate' or 'options', got {scoring!r}")
        self._function, self._is_lenient = function, False
        self._batch_size = batch_size
        self.name = f"{name or getattr(function, '__name__', type(function).__name__)}@callable"
        self.scorings = frozenset({scoring})

    def lenient(self) -> CallableJudge:
        """The same judge, whose exceptions are the errors of single prompts: a function that takes
        its prompts apart need not take those of every form."""
        lenient = copy(self)
        lenient._is_lenient = True
        return lenient

    @property
    def function_source(self) -> str:
        """The function's source, by which a folder of results is named; a new text each time where
        its answers may depend on more than that: an object, or a function with a closure."""
        if inspect.isfunction(self._function) and not self._function.__closure__:
            try:
                return inspect.getsource(self._function)
            except OSError:
                pass  # Typed at a prompt: nobody kept it.
        return uuid4().hex

    def describe(self) -> Mapping[str, Any]:
        """The engine and the qualified name of the function."""
        module = getattr(self._function, "__module__", None)
        name = getattr(self._function, "__qualname__", type(self._function).__qualname__)
        return {"engine": "callable", "function": f"{module}.{name}"}

    def plan(self, requests: Sequence[Request], scorings: frozenset[str]) -> list[Sequence[int]]:
        """Consecutive batches of ``batch_size`` requests."""
        return plan_by_count(len(requests), self._batch_size)

    def judge(
        self, batches: Iterable[tuple[int, Sequence[Request]]], scorings: frozenset[str]
    ) -> Iterator[tuple[int, list[Answer]]]:
        """Call the function once per batch; an exception stops the run, with a note, unless the
        judge is `lenient`."""
        for index, requests in batches:
            messages = [request.message for request in requests]
            try:
                replies = self._function(messages)
            except Exception as error:
                if self._is_lenient:
                    yield index, [self._ask_one(request) for request in requests]
                    continue
                error.add_note(
                    f"judge {self.name} raised this on {len(messages)} prompts; the "
                    f"first is {shorten(str(messages[0]), 200)!r}"
                )
                raise
            if len(replies) != len(requests):
                raise JudgeSenseError(
                    f"judge {self.name} returned {len(replies)} replies to {len(requests)} prompts;"
                    " it must return one reply per prompt, in the same order"
                )
            yield index, [self._read_reply(*pair) for pair in zip(requests, replies, strict=True)]

    def close(self) -> None:
        """Nothing to free."""

    def _ask_one(self, request: Request) -> Answer:
        """The answer to one prompt; an exception is its error."""
        try:
            (reply,) = self._function([request.message])
        except Exception as error:  # noqa: BLE001 - a function of the user's may raise anything
            return Answer(error=f"{type(error).__name__}: {error}")
        return self._read_reply(request, reply)

    def _read_reply(self, request: Request, reply: Reply) -> Answer:
        """The answer in a reply, or for a `lenient` judge why there is none."""
        try:
            return self._answer(request, reply)
        except JudgeSenseError as error:
            if not self._is_lenient:
                raise
            return Answer(error=str(error))

    def _answer(self, request: Request, reply: Reply) -> Answer:
        if isinstance(reply, str) and "generate" in self.scorings:
            return Answer(text=reply)
        if isinstance(reply, Mapping) and "options" in self.scorings:
            if missing := [option for option in request.options if option not in reply]:
                raise JudgeSenseError(
                    f"judge {self.name}, prompt {request.prompt_id}: the reply lacks the "
                    f"log-probability of {missing[0]!r}; the options are {list(request.options)}"
                )
            values = tuple(float(reply[option]) for option in request.options)
            if any(math.isnan(value) or value > 0 for value in values):
                raise JudgeSenseError(
                    f"judge {self.name}, prompt {request.prompt_id}: log-probabilities must be "
                    f"numbers of at most 0, got {dict(reply)}"
                )
            return Answer(option_logprobs=values, option_mass=sum(map(math.exp, values)))
        form = (
            "text (for log-probabilities, set scoring='options')"
            if "generate" in self.scorings
            else "a mapping from option to log-probability"
        )
        raise JudgeSenseError(
            f"judge {self.name}, prompt {request.prompt_id}: the reply must be {form}, "
            f"got {type(reply).__name__}"
        )
