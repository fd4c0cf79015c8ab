"""An endpoint: its key, its client, the body of a request, and one prompt asked with retries."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import random
import time
import weakref
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import ip_address
from socket import inet_aton
from typing import Any
from urllib.parse import urlsplit

from judgesense.errors import JudgeSenseError, MissingExtraError
from local_judges.answer_format import fields_of, instruction_of, obeys
from local_judges.api.bounded import bounded_hooks, bounded_sync_hooks
from local_judges.api.replies import answer_of
from local_judges.api.retry import FatalError, Retry, diagnose, without_secrets
from local_judges.api.token_scoring import Create, TokenScorer, find_scorer
from local_judges.options import KEY_VARIABLE, ApiOptions, Style
from local_judges.protocol import Answer, Request

TOP_LOGPROBS = 20
"""The largest number of alternatives per token that OpenAI-compatible endpoints return."""

TIMEOUT_S = 60.0
LOOK_S = 10.0
"""Seconds per call while looking for what an endpoint can do."""
_NO_KEY = "none"


class Endpoint:
    """A model at an endpoint: a base URL, or an inference provider of huggingface_hub.

    ``proven`` becomes true with the first answer: an endpoint that cannot be reached before it is
    given up. ``writes`` says whether the text is wanted, not only option probabilities. ``scorer``
    reads these by token id where the endpoint can return them (see
    :func:`~local_judges.api.token_scoring.find_scorer`). Raises JudgeSenseError for a URL that
    holds a secret, a missing key (names the variable) and a ``timeout_s`` above the retry budget.
    """

    def __init__(self, model: str, options: ApiOptions, retry: Retry | None = None) -> None:
        self.model, self.options, self.provider = model, options, options.provider
        self.base_url = options.base_url
        if self.provider is None and self.base_url is None:
            self.base_url = os.environ.get("OPENAI_BASE_URL") or None
        if self.base_url:
            require_loggable(self.base_url, options.key_variable or KEY_VARIABLE)
        self._key = _read_key(options.key_variable, self.base_url)
        budget_s = options.retry_budget_s
        self.retry = retry or (Retry.within(budget_s) if budget_s else Retry())
        self.timeout_s = options.timeout_s or min(TIMEOUT_S, self.retry.budget_s)
        if self.timeout_s > self.retry.budget_s:
            raise JudgeSenseError(
                f"timeout_s is {self.timeout_s:g} for one request, but all tries of a prompt may "
                f"take {self.retry.budget_s:g} s; set retry_budget_s to {self.timeout_s:g} or more"
            )
        self.proven = False
        self.scorer: TokenScorer | None = None
        self.writes = True
        self.complete: Create | None = None
        self._looked = self._obeyed = False
        self._unreached: FatalError | None = None
        self._noise = random.Random(0).random

    def __str__(self) -> str:
        return f"{self.model} at {self.provider or self.base_url or 'the default endpoint'}"

    def hide(self, text: str) -> str:
        """The text without the key and without anything that looks like one."""
        return without_secrets(text if self._key == _NO_KEY else text.replace(self._key, "***"))

    def client(self) -> Any:
        """A new asynchronous client. Raises MissingExtraError if its package is not installed."""
        if self.provider:
            try:
                from huggingface_hub import AsyncInferenceClient
            except ImportError as error:
                raise MissingExtraError(
                    "huggingface_hub", "api", "an inference provider"
                ) from error
            return AsyncInferenceClient(
                provider=self.provider, api_key=self._key, timeout=self.timeout_s
            )
        try:
            from openai import AsyncOpenAI, DefaultAioHttpClient
        except ImportError as error:
            raise MissingExtraError("openai", "api", "an API judge") from error
        if importlib.util.find_spec("aiohttp") is None:
            raise MissingExtraError("aiohttp", "api", "an API judge")
        # A request over aiohttp takes two thirds of the processor time of one over httpx.
        return AsyncOpenAI(
            api_key=self._key,
            base_url=self.base_url,
            timeout=self.timeout_s,
            max_retries=0,
            http_client=DefaultAioHttpClient(event_hooks=bounded_hooks()),
        )

    def find_scorer(self, tries: int = 3) -> TokenScorer | None:
        """Look once whether the endpoint returns option probabilities by token id.

        An endpoint with a price or a limit is not asked, because these count one call per prompt.
        Raises FatalError if it cannot be reached, again at each call: what reads the options of a
        run must not change after the run was described.
        """
        if self._unreached is not None:
            raise self._unreached
        options = self.options
        counted = (options.price, options.requests_per_minute, options.tokens_per_minute)
        if self._looked or not self.base_url or self.provider or any(counted):
            return self.scorer
        try:
            from openai import APIConnectionError, DefaultHttpxClient, OpenAI
        except ImportError as error:
            raise MissingExtraError("openai", "api", "an API judge") from error
        asked = body_of(Request("", "", ()), model=self.model, options=options, logprobs=True)
        timeout_s = min(self.timeout_s, LOOK_S)
        # The scorer keeps the client for its tokenizer.
        http = DefaultHttpxClient(event_hooks=bounded_sync_hooks(timeout_s))
        client = OpenAI(
            api_key=self._key,
            base_url=self.base_url,
            timeout=timeout_s,
            max_retries=tries - 1,
            http_client=http,
        )
        weakref.finalize(client, http.close)
        try:
            self.scorer = find_scorer(client, self.model, asked)
        except APIConnectionError as error:
            self._unreached = FatalError(
                f"{diagnose(error, self.hide)[1]}; the endpoint has never answered: check that it "
                "is up and that the URL is right"
            )
            raise self._unreached from None
        self._looked = True
        return self.scorer

    async def ask(self, create: Create, request: Request, logprobs: bool) -> Answer:
        """The answer to one prompt, after as many tries as the retry budget allows.

        Raises FatalError for failures that no other try and no other prompt can avoid, and for an
        ``answer_format`` that the endpoint refuses or ignores; JudgeSenseError for options that
        its tokenizer cannot spell.
        """
        started = time.perf_counter()
        for attempt in range(self.retry.attempts):
            left = self.retry.budget_s - (time.perf_counter() - started)
            try:
                async with asyncio.timeout(max(min(left, self.timeout_s), 0.001)):
                    answer = await self._once(create, request, logprobs)
                answer.latency_s = time.perf_counter() - started
                return answer
            except JudgeSenseError:
                raise
            except Exception as error:  # noqa: BLE001 - diagnose raises what it does not know
                kind, reason, retry_after = diagnose(error, self.hide)
            if kind == "fatal":
                raise FatalError(reason)
            if kind == "bad request":
                if self.options.answer_format and not self._obeyed:
                    await self._require_format(create, request, reason)
                return Answer(error=reason, latency_s=time.perf_counter() - started)
            wait = self.retry.wait(attempt, retry_after, self._noise())
            late = time.perf_counter() - started + wait > self.retry.budget_s
            last = late or attempt + 1 == self.retry.attempts
            if not self.proven and kind == "unreachable" and (last or attempt >= 2):
                raise FatalError(
                    f"{reason}; the endpoint has never answered: check that it is up and that the "
                    "URL is right"
                )
            if last:
                break
            await asyncio.sleep(wait)
        tried = f"{attempt + 1} tries in {time.perf_counter() - started:.0f} s"
        return Answer(error=f"{reason} ({tried})", latency_s=time.perf_counter() - started)

    async def _once(self, create: Create, request: Request, logprobs: bool) -> Answer:
        body = body_of(request, model=self.model, options=self.options, logprobs=logprobs)
        begins_thinking = self.options.style.begins_thinking
        if logprobs and self.scorer is not None:
            assert self.complete is not None
            return await self.scorer.ask(
                create, self.complete, body, request, begins_thinking, self.writes
            )
        answer = answer_of(await create(**body), request, begins_thinking)
        wanted, text = self.options.answer_format, answer.text or ""
        # The end of a text that was cut off or refused cannot have the format.
        if (
            wanted
            and request.options
            and not self._obeyed
            and not (answer.truncated or answer.refused)
        ):
            if not obeys(text, wanted, request.options):
                raise FatalError(
                    f"the endpoint ignores answer_format={wanted}: asked for one of "
                    f"{', '.join(request.options)}, it wrote {self.hide(text)[:100]!r}. Leave "
                    "answer_format out, or use an endpoint that enforces it"
                )
            self._obeyed = True
        return answer

    async def _require_format(self, create: Create, request: Request, reason: str) -> None:
        """Raise FatalError if a prompt that was a bad request is none without the format."""
        plain = replace(self.options, answer_format=None)
        body = body_of(request, model=self.model, options=plain, logprobs=False)
        try:
            async with asyncio.timeout(self.timeout_s):
                answer_of(await create(**body), request)
        except Exception as error:  # noqa: BLE001 - diagnose raises what it does not know
            diagnose(error, self.hide)
            return
        raise FatalError(
            f"{reason}; the endpoint answers the same prompt without "
            f"answer_format={self.options.answer_format}, so it refuses that format. Leave it out"
            + (
                ", or use answer_format=json"
                if self.options.answer_format == "choice"
                else ', or try --set "style={json_schema: false}"'
            )
        )


def scorings_of(options: ApiOptions) -> frozenset[str]:
    """The scorings of a judge with these options.

    With an ``answer_format`` it is ``generate`` alone: the first token is then a brace, or has the
    probabilities of a masked distribution.
    """
    if options.logprobs and not options.answer_format:
        return frozenset({"generate", "options"})
    return frozenset({"generate"})


def body_of(request: Request, *, model: str, options: ApiOptions, logprobs: bool) -> dict[str, Any]:
    """The arguments of ``chat.completions.create`` for one prompt.

    A request without options, such as one for a paraphrase, has no answer format.
    """
    style, system_prompt = options.style, request.system_after(options.system_prompt)
    wanted: Mapping[str, Any] = {}
    if options.answer_format and request.options:
        wanted = fields_of(options.answer_format, request.options, style.json_schema)
        if options.answer_format == "json" and not style.json_schema:
            # JSON mode is refused unless the prompt names JSON.
            system_prompt = f"{system_prompt} {instruction_of(request.options)}".strip()
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
    # The client knows response_format; what else a format needs goes beside the style's own.
    body |= {key: value for key, value in wanted.items() if key == "response_format"}
    others = {key: value for key, value in wanted.items() if key != "response_format"}
    if request.thinking:
        body[style.token_parameter] += request.thinking
        others |= _capped(style, request.thinking)
    elif request.effort:
        others["reasoning_effort"] = request.effort
    if extra := {**style.extra_body, **others}:
        body["extra_body"] = extra
    return body


def _capped(style: Style, tokens: int) -> dict[str, Any]:
    """The parameter that caps thinking, with what the style sends beside it."""
    assert style.thinking_parameter is not None
    name, _, inner = style.thinking_parameter.partition(".")
    return {name: {**style.extra_body.get(name, {}), inner: tokens} if inner else tokens}


def sender(client: Any, path: str = "/chat/completions") -> Create:
    """The function that sends one request through a client; ``path`` is for OpenAI's client."""
    if not hasattr(client, "post"):  # a client of huggingface_hub

        async def create(**body: Any) -> Any:
            reply = await client.chat.completions.create(**body)
            choices = getattr(reply, "choices", None) or ()
            # As mappings its messages lack fields that it does not list, such as a refusal.
            return {**reply, "choices": [{**c, "message": vars(c.message)} for c in choices]}

        return create

    async def post(extra_body: Mapping[str, Any] | None = None, **body: Any) -> Any:
        # create() without the type checks of request and reply, which take 40% of its time.
        whole = {**body, **(extra_body or {})}
        reply = await client.post(path, cast_to=object, body=whole)
        return json.loads(reply) if isinstance(reply, str) else reply

    return post


def require_loggable(url: str, key_variable: str) -> None:
    """Raise JudgeSenseError if an endpoint's URL may hold a secret, because logs name the URL.

    Also for one that is no URL of a host.
    """
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError as error:
        raise JudgeSenseError(f"the endpoint's URL is invalid: {error}") from None
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise JudgeSenseError(
            "the endpoint's URL holds a name, a password or a query, which would be logged; put "
            f"the key into the environment variable {key_variable}"
        )
    if not named or not url.isprintable() or " " in url:
        raise JudgeSenseError("the endpoint's URL must be such as https://HOST/v1")


def is_here(url: str | None) -> bool:
    """Whether a URL names this machine, by any of its addresses.

    >>> is_here("http://127.0.0.1:8000/v1"), is_here("http://127.0.0.1.example.org/v1")
    (True, False)
    """
    host = ((urlsplit(url).hostname if url else None) or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        try:
            # Short forms, such as 127.1, which clients take as well.
            address = ip_address(inet_aton(host))
        except OSError:
            return False
    address = getattr(address, "ipv4_mapped", None) or address
    # A server that listens on 0.0.0.0 tells people to ask there.
    return address.is_loopback or address.is_unspecified


def _read_key(variable: str | None, base_url: str | None) -> str:
    """The key; ``variable`` is None unless one was named.

    A server on this machine gets a key only if its variable was named: it seldom needs one, and
    whoever opened the port should not get the account's.
    """
    if variable is None and is_here(base_url):
        return _NO_KEY
    variable = variable or KEY_VARIABLE
    if key := os.environ.get(variable, "").strip():
        if not (key.isascii() and key.isprintable()):
            raise JudgeSenseError(
                f"the environment variable {variable} holds characters that an HTTP header cannot "
                "carry; copy the key again"
            )
        return key
    if is_here(base_url):
        return _NO_KEY
    raise JudgeSenseError(f"no key: set the environment variable {variable}")
