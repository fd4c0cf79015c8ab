"""Retries: which failures of a call are worth another try, and how long to wait before it."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from judgesense.errors import JudgeSenseError
from local_judges.api.bounded import ReplyBoundError

_SECRET = re.compile(r"\b(?:sk|hf|gsk|xai|AIza)[-_A-Za-z0-9*.]{6,}")


class FatalError(JudgeSenseError):
    """No prompt can be answered: a wrong key, an unknown model, an unreachable endpoint."""


@dataclass
class Retry:
    """Exponential backoff with jitter, bounded in tries and in seconds; respects Retry-After.

    Raises JudgeSenseError unless the budget is above 0 seconds and allows at least one try.

    >>> Retry().wait(attempt=2, retry_after=None, noise=1.0)
    2.0
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
        """As many tries as fit into this many seconds."""
        return cls(attempts=sys.maxsize, budget_s=budget_s)

    def wait(self, attempt: int, retry_after: float | None, noise: float) -> float:
        """Seconds to wait after this attempt (0-based); ``noise`` is uniform on [0, 1)."""
        jitter = 0.5 + 0.5 * noise
        if retry_after is not None:
            # An endpoint that says 0 must not be asked without a pause.
            return max(retry_after + 0.1 * noise, self.first_s * jitter)
        # 2.0**1024 overflows a float.
        return min(self.most_s, self.first_s * 2.0 ** min(attempt, 60)) * jitter


def diagnose(error: Exception, hide: Callable[[str], str]) -> tuple[str, str, float | None]:
    """(kind, reason without secrets, seconds of Retry-After) of an error that a call raised.

    Kinds: ``fatal`` (no prompt can succeed), ``bad request`` (this prompt cannot), ``busy`` and
    ``unreachable`` (worth another try). ``hide`` removes secrets from a text. Raises ``error``
    itself if it is none of these.
    """
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    cause = error.__cause__ if _named(error, "APIConnectionError") else None
    told = str(error) + (f" ({str(cause) or type(cause).__name__})" if cause else "")
    # Hide before cutting: half a key would not be recognised.
    message = hide(told or "no complete reply in time")[:300]
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
    # The reply cannot be parsed: not JSON, not UTF-8, a number of 5,000 digits.
    if isinstance(error, (ValueError, RecursionError)):
        return "busy", reason, None
    if isinstance(error, ReplyBoundError) or isinstance(cause, ReplyBoundError):
        return "busy", reason, None
    if isinstance(error, (TimeoutError, OSError)) or _named(error, "APIConnectionError"):
        return "unreachable", reason, None
    # aiohttp's own errors, such as one for a status line that is none, are ClientErrors.
    if _named(error, "APIError", "ClientError", "HTTPError", "TransportError"):
        return "busy", reason, None
    raise error


def _named(error: Exception, *names: str) -> bool:
    """Whether the error is one of these classes, without importing the client library."""
    return any(kind.__name__ in names for kind in type(error).__mro__)


def without_secrets(text: str) -> str:
    """The text with anything that looks like a key replaced; providers echo keys in errors.

    >>> without_secrets("Incorrect API key provided: sk-abcdef123456.")
    'Incorrect API key provided: ***'
    """
    return _SECRET.sub("***", text)


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
        then = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    now = datetime.now(UTC if then.tzinfo else None)
    return max(0.0, (then - now).total_seconds())
