"""Read what a chat-completion endpoint sends: answers, and errors as what to do about them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from judgesense.errors import JudgeSenseError
from local_judges.options import SECRET
from local_judges.protocol import Answer, Request


class FatalError(JudgeSenseError):
    """No prompt can be answered: a wrong key, an unknown model, an unreachable endpoint."""


class PageError(ValueError):
    """The endpoint answered with an HTML page: a login, or an address that is not the API's."""

    def __init__(self, page: str) -> None:
        text = " ".join(re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", page[:5000]).split())
        super().__init__(
            f"the reply is an HTML page, not JSON ({text[:80]!r}); base_url must be the API's "
            "address, such as https://HOST/v1"
        )


def answer_of(reply: Any, request: Request, begins_thinking: bool = False) -> Answer:
    """The answer in a chat completion, given as JSON. Raises ValueError if it holds none.

    ``begins_thinking`` adds the ``<think>`` that the server's template wrote before the text.

    >>> reply = {"choices": [{"message": {"content": "YES"}, "finish_reason": "length"}]}
    >>> answer = answer_of(reply, Request("1", "Is it?", ("YES", "NO")))
    >>> answer.text, answer.truncated
    ('YES', True)
    """
    try:
        choice = _first_choice(reply["choices"])
        finish_reason = choice.get("finish_reason")
        is_filtered = finish_reason == FILTERED
        message = choice["message"] if not is_filtered else choice.get("message") or {}
        usage = reply.get("usage")
        refusal = message.get("refusal")
        text = _message_text(message.get("content")) or (
            refusal if isinstance(refusal, str) else ""
        )
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        problem = reply.get("error") if isinstance(reply, Mapping) else None
        raise ValueError(
            f"the reply is an error: {problem}" if problem else "the reply has no choices with text"
        ) from error
    if begins_thinking and not text.lstrip().startswith("<think>"):
        text = f"<think>\n{text}"
    answer = Answer(
        # A lone surrogate cannot be encoded.
        text=text.encode("utf-8", "replace").decode(),
        input_tokens=_token_count(usage, "prompt_tokens"),
        output_tokens=_token_count(usage, "completion_tokens"),
        truncated=finish_reason == "length",
        refused=bool(refusal) or is_filtered,
    )
    if top := _top_logprobs(choice):
        answer.option_logprobs, answer.option_mass = first_token_options(top, request.options)
    return answer


FILTERED = "content_filter"
"""A provider's name for an answer, or a prompt, that its filter removed."""


def _first_choice(choices: Any) -> Mapping[str, Any]:
    """The choice with the index 0; the order of a list of choices says nothing."""
    if not isinstance(choices, list):
        raise TypeError("choices is no list")
    first: Mapping[str, Any] = next((c for c in choices if c.get("index") == 0), choices[0])
    return first


def _message_text(content: Any) -> str:
    """The text of a message; if it is in parts, the parts of type text (not thinking)."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part["type"] == "text")
    if content is None or isinstance(content, str):
        return content or ""
    raise TypeError(f"content is {type(content).__name__}")


def _token_count(usage: Any, name: str) -> int | None:
    """A number of tokens; None if the endpoint returns none or an invalid one."""
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return value if type(value) is int and 0 <= value < 2**31 else None


def _top_logprobs(choice: Mapping[str, Any]) -> list[tuple[str, float]]:
    """The first token's best alternatives; empty if the endpoint sends none.

    Raises ValueError for a list with a malformed entry: without that entry, the runner-up would
    pass for the best.
    """
    try:
        entries = choice["logprobs"]["content"][0]["top_logprobs"]
    except (IndexError, KeyError, TypeError):
        return []
    if not isinstance(entries, list):
        raise ValueError("the reply's top_logprobs are not a list")
    top = [_alternative(entry) for entry in entries]
    if sum(math.exp(logprob) for _, logprob in top) > _MAX_TOTAL:
        raise ValueError("the probabilities of the reply's top_logprobs add up to more than 1")
    return top


_MAX_TOTAL = 1.01
"""The most that probabilities add up to: servers round them."""


def _alternative(entry: Any) -> tuple[str, float]:
    """A token and its log-probability. Raises ValueError for anything else."""
    match entry:
        # A boolean is an integer in Python; rounding may leave a logarithm slightly above 0.
        case {"token": str(token), "logprob": int(p) | float(p)} if type(p) is not bool:
            if -math.inf < p < 0.01:
                return token, min(float(p), 0.0)
    raise ValueError(f"the reply's top_logprobs have a malformed entry: {entry!r:.80}")


def first_token_options(
    top: Sequence[tuple[str, float]], options: Sequence[str]
) -> tuple[tuple[float, ...] | None, float | None]:
    """The options' log-probabilities, from the first token's best alternatives, and their mass.

    A token counts for the option that it begins ("Y" and " YES" for YES) if it begins no other.
    The probability of tokens that begin several options ("1" on a scale to 10), and of those not
    shown (at most that of the last alternative, or the remaining mass), may belong to any of them.
    An option without a token of its own gets the highest probability that it can have. If another
    option could then be the best, there is no decision (None): too few alternatives were shown.

    >>> values, mass = first_token_options([("YES", -0.1), ("NO", -2.5)], ("YES", "NO"))
    >>> [round(value, 3) for value in values], round(mass, 3)
    ([-0.1, -2.5], 0.987)
    """
    probability = dict.fromkeys(options, 0.0)
    shared = dict.fromkeys(options, 0.0)
    for token, logprob in top:
        stem = token.strip().lstrip("▁Ġ")
        candidates = [option for option in options if stem and option.startswith(stem)]
        for option in candidates:
            (probability if len(candidates) == 1 else shared)[option] += math.exp(logprob)
    mass = sum(probability.values())
    if mass == 0.0:
        return None, 0.0
    unseen_mass = max(1.0 - sum(math.exp(logprob) for _, logprob in top), 0.0)
    unseen_bound = min(unseen_mass, math.exp(min(logprob for _, logprob in top)))
    best = max(probability, key=lambda option: probability[option])
    upper_bounds = {o: p + shared[o] + (0.0 if p else unseen_bound) for o, p in probability.items()}
    if any(upper_bounds[option] >= probability[best] for option in options if option != best):
        return None, min(mass, 1.0)
    probabilities = (
        p if p else max(upper_bounds[option], 1e-12) for option, p in probability.items()
    )
    return tuple(math.log(p) for p in probabilities), min(mass, 1.0)


def diagnose(error: Exception, hide: Callable[[str], str]) -> tuple[str, str, float | None]:
    """(kind, reason without secrets, seconds of Retry-After) of an error that a call raised.

    Kinds: ``fatal`` (no prompt can succeed), ``bad request`` (this prompt cannot), ``refused`` (by
    the provider's filter), ``busy``, ``page`` and ``unreachable`` (worth another try).

    ``hide`` removes secrets from a text. Raises ``error`` itself if it is none of these.
    """
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    cause = error.__cause__ if _is_instance(error, "APIConnectionError") else None
    description = str(error) + (f" ({str(cause) or type(cause).__name__})" if cause else "")
    # The shape of a decision model's errors, which OpenAI's client does not quote.
    if isinstance(body := getattr(error, "body", None), Mapping) and "detail" in body:
        description += f": {body['detail']}"
    # Hide before cutting: half a key would not be recognised.
    message = hide(description or "no complete reply in time")[:300]
    reason = f"{type(error).__name__}: {message}"
    if status is not None:
        reason = f"HTTP {status}: {message}"
        is_over_quota = getattr(error, "code", None) == "insufficient_quota"
        if status in (401, 402, 403, 404) or is_over_quota:
            return "fatal", reason, None
        if status in (408, 409, 425, 429) or status >= 500:
            return "busy", reason, _retry_after(getattr(response, "headers", {}))
        if status >= 400:
            is_filtered = getattr(error, "code", None) == FILTERED
            return "refused" if is_filtered else "bad request", reason, None
    if isinstance(error, PageError):
        return "page", message, None
    # The reply cannot be parsed: not JSON, not UTF-8, a number of 5,000 digits.
    if isinstance(error, (ValueError, RecursionError)):
        return "busy", reason, None
    if isinstance(error, (TimeoutError, OSError)) or _is_instance(error, "APIConnectionError"):
        return "unreachable", reason, None
    # aiohttp's own errors, such as one for a status line that is none, are ClientErrors.
    if _is_instance(error, "APIError", "ClientError", "HTTPError", "TransportError"):
        return "busy", reason, None
    raise error


def _is_instance(error: Exception, *names: str) -> bool:
    """Whether the error is one of these classes, without importing the client library."""
    return any(kind.__name__ in names for kind in type(error).__mro__)


def without_secrets(text: str) -> str:
    """The text with anything that looks like a key replaced; providers echo keys in errors.

    >>> without_secrets("Incorrect API key provided: sk-abcdef123456.")
    'Incorrect API key provided: ***'
    """
    return SECRET.sub("***", text)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from milliseconds, seconds or a date; None without a valid value."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    now = datetime.now(UTC if date.tzinfo else None)
    return max(0.0, (date - now).total_seconds())
