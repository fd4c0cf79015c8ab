"""One question to one endpoint: the request, what is tried again, and what the reply says."""

from __future__ import annotations

import asyncio
import math
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from judgesense.errors import JudgeSenseError
from local_judges.options import ApiOptions
from local_judges.protocol import Answer, Request

TOP_LOGPROBS = 20
"""The most alternatives that OpenAI-compatible endpoints show for a token."""

_SECRET = re.compile(r"\b(?:sk|hf|gsk|xai|AIza)[-_A-Za-z0-9*.]{6,}")


class FatalError(JudgeSenseError):
    """No prompt can be answered: a bad key, an unknown model, an endpoint that is not there."""


class _Unusable(ValueError):
    """A reply that arrived but says nothing: no choices, not JSON; worth another try."""


@dataclass
class Retry:
    """Exponential backoff with jitter, Retry-After honoured, bounded in tries and in seconds.

    Raises JudgeSenseError for a budget of no seconds and for less than one try.
    """

    attempts: int = 6
    budget_s: float = 120.0
    first_s: float = 0.5
    most_s: float = 30.0

    def __post_init__(self) -> None:
        if not 0 < self.budget_s < math.inf:
            raise JudgeSenseError(f"retry_budget_s must be seconds above 0, got {self.budget_s:g}")
        if self.attempts < 1:
            raise JudgeSenseError(f"a prompt needs at least one try, got {self.attempts}")

    @classmethod
    def within(cls, budget_s: float) -> Retry:
        """As many tries as fit into these seconds."""
        return cls(attempts=sys.maxsize, budget_s=budget_s)

    def wait(self, attempt: int, retry_after: float | None, noise: float) -> float:
        """Seconds to wait after this attempt (0-based); ``noise`` is uniform on [0, 1)."""
        jitter = 0.5 + 0.5 * noise
        if retry_after is not None:
            # An endpoint that says 0 would otherwise be asked without a pause.
            return max(retry_after + 0.1 * noise, self.first_s * jitter)
        # 2.0**1024 is no float any more.
        return min(self.most_s, self.first_s * 2.0 ** min(attempt, 60)) * jitter


def body_of(request: Request, *, model: str, options: ApiOptions, logprobs: bool) -> dict[str, Any]:
    """The chat-completion request: what ``chat.completions.create`` is given."""
    style, system_prompt = options.style, options.system_prompt
    messages = [{"role": "user", "content": request.text}]
    if system_prompt and style.system_role:
        messages.insert(0, {"role": "system", "content": system_prompt})
    elif system_prompt:
        messages[0]["content"] = f"{system_prompt}\n\n{request.text}"
    body: dict[str, Any] = {
        "model": model, "messages": messages, style.token_parameter: options.max_tokens
    }  # fmt: skip
    if style.sends_temperature:
        body["temperature"] = max(options.temperature, style.min_temperature)
    if style.sends_seed:
        body["seed"] = options.seed + request.repeat
    if logprobs:
        body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
    if style.extra_body:
        body["extra_body"] = dict(style.extra_body)
    return body


async def ask(
    create: Any,
    body: Mapping[str, Any],
    request: Request,
    retry: Retry,
    timeout_s: float,
    noise: Any,
    proven: bool,
    begins_thinking: bool,
    hide: Callable[[str], str],
) -> Answer:
    """One prompt's answer, after as many tries as the retry budget allows.

    ``timeout_s`` is for each try. ``proven`` says whether the endpoint has answered before: one
    that cannot be reached and never was is given up. ``hide`` takes secrets out of a message.
    Raises FatalError for what no further try and no other prompt can mend.
    """
    started = time.perf_counter()
    for attempt in range(retry.attempts):
        left = retry.budget_s - (time.perf_counter() - started)
        try:
            async with asyncio.timeout(max(min(left, timeout_s), 0.001)):
                reply = await create(**body)
            answer = answer_of(reply, request, begins_thinking)
            answer.latency_s = time.perf_counter() - started
            return answer
        except Exception as error:  # noqa: BLE001 - sorted into fatal, final and passing at once
            kind, reason, retry_after = diagnose(error, hide)
        if kind == "fatal":
            raise FatalError(reason)
        if kind == "bad request":
            return Answer(error=reason, latency_s=time.perf_counter() - started)
        wait = retry.wait(attempt, retry_after, noise())
        late = time.perf_counter() - started + wait > retry.budget_s
        last = late or attempt + 1 == retry.attempts
        if not proven and kind == "unreachable" and (last or attempt >= 2):
            raise FatalError(
                f"{reason}; the endpoint has not answered once: is it up, and the URL right?"
            )
        if last:
            break
        await asyncio.sleep(wait)
    tried = f"{attempt + 1} tries in {time.perf_counter() - started:.0f} s"
    return Answer(error=f"{reason} ({tried})", latency_s=time.perf_counter() - started)


def diagnose(error: Exception, hide: Callable[[str], str]) -> tuple[str, str, float | None]:
    """(kind, reason without secrets, seconds of Retry-After) of what a call raised.

    Kinds: ``fatal`` (no prompt can succeed), ``bad request`` (this prompt cannot), ``busy`` and
    ``unreachable`` (worth another try).
    """
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    # Hidden first, then cut: half a key is not known for one.
    message = hide(str(error))[:300]
    reason = f"{type(error).__name__}: {message}"
    if status is not None:
        reason = f"HTTP {status}: {message}"
        quota = getattr(error, "code", None) == "insufficient_quota"
        if status in (401, 402, 403, 404) or quota:
            return "fatal", reason, None
        if status in (408, 409, 425, 429) or status >= 500:
            return "busy", reason, _retry_after(getattr(response, "headers", {}))
        if status >= 400:
            return "bad request", reason, None
    # A reply that cannot be read: no JSON, no UTF-8, a number of 5,000 digits.
    if isinstance(error, (ValueError, RecursionError)):
        return "busy", reason, None
    if isinstance(error, (TimeoutError, OSError)) or _named(error, "APIConnectionError"):
        return "unreachable", reason, None
    if _named(error, "APIResponseValidationError", "APIError", "HTTPError", "TransportError"):
        return "busy", reason, None
    raise error


def _named(error: Exception, *names: str) -> bool:
    """Whether the error is one of these classes of a client library, none of which is imported."""
    return any(kind.__name__ in names for kind in type(error).__mro__)


def without_secrets(text: str) -> str:
    """The text with whatever looks like a key replaced; providers echo keys in their errors."""
    return _SECRET.sub("***", text)


def require_loggable(url: str, key_variable: str) -> None:
    """Raise JudgeSenseError if an endpoint's URL has a place for secrets: the log names the URL."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise JudgeSenseError(f"the endpoint's URL is none: {error}") from None
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise JudgeSenseError(
            "the endpoint's URL holds a name, a password or a query, which would be logged; give "
            f"the key in the environment variable {key_variable}"
        )


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from milliseconds, seconds or a date; None if none of them can be read."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        then = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    now = datetime.now(UTC if then.tzinfo else None)
    return max(0.0, (then - now).total_seconds())


def answer_of(reply: Any, request: Request, begins_thinking: bool = False) -> Answer:
    """What a chat completion, as JSON, says. Raises ValueError if it says nothing at all.

    ``begins_thinking`` puts the ``<think>`` that the server's template wrote before the text.
    """
    try:
        choice = reply["choices"][0]
        message, usage = choice["message"], reply.get("usage")
        refusal = message.get("refusal")
        text = _text(message.get("content")) or (refusal if isinstance(refusal, str) else "")
        reason = choice.get("finish_reason")
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        said = reply.get("error") if isinstance(reply, Mapping) else None
        raise _Unusable(
            f"the reply is an error: {said}" if said else "the reply has no choices that say a text"
        ) from error
    if begins_thinking and not text.lstrip().startswith("<think>"):
        text = f"<think>\n{text}"
    answer = Answer(
        # A lone surrogate cannot be written.
        text=text.encode("utf-8", "replace").decode(),
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        truncated=reason == "length",
        refused=bool(refusal) or reason == "content_filter",
    )
    if top := _top(choice):
        answer.option_logprobs, answer.option_mass = first_token_options(top, request.options)
    return answer


def _text(content: Any) -> str:
    """A message's text; where it comes in parts, the parts that are text (thinking is not)."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if part["type"] == "text")
    if content is None or isinstance(content, str):
        return content or ""
    raise TypeError(f"content is {type(content).__name__}")


def _count(usage: Any, name: str) -> int | None:
    """A number of tokens; None where the endpoint states none, or nonsense."""
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return value if type(value) is int and 0 <= value < 2**31 else None


def _top(choice: Mapping[str, Any]) -> list[tuple[str, float]]:
    """The first token's best alternatives; nothing where they are not of the known shape."""
    try:
        entries = choice["logprobs"]["content"][0]["top_logprobs"]
        found = [(entry["token"], float(entry["logprob"])) for entry in entries]
    except (IndexError, KeyError, TypeError, ValueError):
        return []
    # A server's rounding may put a logarithm a little above 0.
    return [(t, min(p, 0.0)) for t, p in found if isinstance(t, str) and -math.inf < p < 0.01]


def first_token_options(
    top: Sequence[tuple[str, float]], options: Sequence[str]
) -> tuple[tuple[float, ...] | None, float | None]:
    """Option log-probabilities from the first token's best alternatives, and their mass.

    A token counts for the option that it begins ("Y" and " YES" for YES), if it begins no other.
    What begins several ("1" of a scale to 10) or is not shown (at most the last alternative's
    probability, or the mass that is left) can still be any of theirs. An option of which nothing
    is shown gets the most that it can have. If that could make another option the best, there is
    no decision (None): the endpoint did not show enough.
    """
    found = dict.fromkeys(options, 0.0)
    shared = dict.fromkeys(options, 0.0)
    for token, logprob in top:
        stem = token.strip().lstrip("▁Ġ")
        begun = [option for option in options if stem and option.startswith(stem)]
        for option in begun:
            (found if len(begun) == 1 else shared)[option] += math.exp(logprob)
    mass = sum(found.values())
    if mass == 0.0:
        return None, 0.0
    unseen = max(1.0 - sum(math.exp(logprob) for _, logprob in top), 0.0)
    bound = min(unseen, math.exp(min(logprob for _, logprob in top)))
    best = max(found, key=lambda option: found[option])
    most = {o: p + shared[o] + (0.0 if p else bound) for o, p in found.items()}
    if any(most[option] >= found[best] for option in options if option != best):
        return None, min(mass, 1.0)
    values = (p if p else max(most[option], 1e-12) for option, p in found.items())
    return tuple(math.log(p) for p in values), min(mass, 1.0)
