"""The batch APIs of OpenAI and Anthropic: many prompts at once for half the price, within a day.

Both take prompts with ids of ours, say how far they are, and return a line for each prompt, in any
order. Their documentation:
https://platform.openai.com/docs/guides/batch and
https://platform.claude.com/docs/en/build-with-claude/batch-processing.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.files.limits import REPLY_BYTES
from local_judges.api.endpoint import Endpoint
from local_judges.api.replies import FILTERED, diagnose

SHARE = 0.5
"""The price of a prompt in a batch, as a share of that of a direct request."""

_CLOCK_SKEW_S = 600.0
"""How far this machine's clock may be behind the provider's."""
_MAX_ERRORS, _LOOK_S = 3, 60.0

Body = Mapping[str, Any]


class ProviderError(Exception):
    """A provider's refusal, in the form that `diagnose` reads."""

    def __init__(self, status_code: int, body: Any) -> None:
        error = body.get("error") if isinstance(body, Mapping) else None
        details = error if isinstance(error, Mapping) else {"message": error or body}
        self.status_code, self.code = status_code, details.get("code")
        super().__init__(f"{details.get('message') or details}"[:2000])


@dataclass(frozen=True)
class BatchState:
    """A batch's progress; ``status`` is the provider's word, ``failure`` why none of it was asked,
    ``files`` where its results are."""

    status: str
    done: int
    total: int
    has_ended: bool
    failure: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """The line of a prompt: its reply as a chat completion, or an error; neither if it was not
    asked, and so not paid, before the batch expired or was cancelled."""

    custom_id: str
    reply: Body | None = None
    error: ProviderError | None = None


def find_batch_api(endpoint: Endpoint) -> BatchApi:
    """The batch API of an endpoint, which is asked for its list of batches.

    Raises JudgeSenseError, naming the flag, for an endpoint without one.
    """
    try:
        from openai import DefaultHttpxClient
    except ImportError as error:
        raise MissingExtraError("openai", "api", "an API judge") from error
    base, key = endpoint.base_url or "https://api.openai.com/v1", endpoint.key
    kinds: list[tuple[type[BatchApi], dict[str, str]]] = [
        (OpenAIBatches, {"Authorization": f"Bearer {key}"}),
        (AnthropicBatches, {"x-api-key": key, "anthropic-version": "2023-06-01"}),
    ]
    reasons = []
    for kind, headers in kinds if endpoint.provider is None else []:
        # A redirect would take the key to another host.
        http = DefaultHttpxClient(base_url=base, headers=headers, follow_redirects=False)
        try:
            page = _fetch_object(http, "GET", kind.path, params={"limit": 1})
            if isinstance(page.get("data"), list):
                api = kind(http)
                weakref.finalize(api, http.close)
                return api
            reasons.append(f"{kind.path}: no list of batches")
        except Exception as error:  # noqa: BLE001 - diagnose raises what it does not know
            reasons.append(f"{kind.path}: {diagnose(error, endpoint.hide)[1]}")
        http.close()
    what = "; ".join(reasons) or "a Hugging Face provider is asked directly"
    raise JudgeSenseError(
        f"--batch: no batch API of OpenAI's or Anthropic's kind was found at {endpoint} ({what}). "
        "Leave --batch out to ask it directly"
    )


class _Api:
    path: str

    def __init__(self, http: Any) -> None:
        self._http = http

    def _fetch(self, batch: str) -> dict[str, Any]:
        return _fetch_object(self._http, "GET", f"{self.path}/{quote(batch, safe='')}")


class OpenAIBatches(_Api):
    """A file of requests is uploaded, and a batch created from it."""

    path = "batches"
    max_prompts, max_bytes = 50_000, 150_000_000  # 200 MB are allowed.

    def send(self, prompts: Mapping[str, Body], label: str) -> str:
        """The id of a new batch of chat requests by custom id; ``label`` marks it."""
        url = "/v1/chat/completions"
        lines = (
            {"custom_id": prompt, "method": "POST", "url": url, "body": body}
            for prompt, body in prompts.items()
        )
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        upload = {"file": ("judgesense.jsonl", text.encode(), "application/jsonl")}
        file = _fetch_object(self._http, "POST", "files", data={"purpose": "batch"}, files=upload)
        body = {
            "input_file_id": file["id"],
            "endpoint": url,
            "completion_window": "24h",
            "metadata": {"judgesense": label},
        }
        return str(_fetch_object(self._http, "POST", self.path, json=body)["id"])

    def find(self, label: str, prompts: int, since: float) -> list[str]:
        """The ids of batches that may be the one sent with this label, since a time."""
        batches = _list_batches(self._http, self.path, since, "after")
        return [b["id"] for b in batches if (b.get("metadata") or {}).get("judgesense") == label]

    def state(self, batch: str) -> BatchState:
        """The progress of a batch."""
        fields = self._fetch(batch)
        status, counts = str(fields["status"]), fields.get("request_counts") or {}
        errors = ((fields.get("errors") or {}).get("data") or [])[:_MAX_ERRORS]
        reasons = [f"{error.get('code')}: {error.get('message')}" for error in errors]
        files = (fields.get("output_file_id"), fields.get("error_file_id"))
        return BatchState(
            status,
            int(counts.get("completed", 0)) + int(counts.get("failed", 0)),
            int(counts.get("total", 0)),
            status in ("completed", "expired", "cancelled", "failed"),
            ("; ".join(reasons) or "no reason is stated") if status == "failed" else "",
            tuple(str(file) for file in files if file),
        )

    def results(self, batch: str, state: BatchState) -> Iterator[Result]:
        """The lines of a batch that has ended."""
        for file in state.files:
            for line in _fetch_lines(self._http, f"files/{quote(file, safe='')}/content"):
                reply, error = line.get("response") or {}, line.get("error") or {}
                code, status = error.get("code"), int(reply.get("status_code") or 500)
                if code in ("batch_expired", "batch_cancelled"):
                    yield Result(line["custom_id"])
                elif error or status >= 400:
                    body = {"error": error} if error else reply.get("body")
                    yield Result(line["custom_id"], error=ProviderError(status, body))
                else:
                    yield Result(line["custom_id"], reply.get("body") or {})


class AnthropicBatches(_Api):
    """The requests are in the call that creates a batch, in the form of its Messages API."""

    path = "messages/batches"
    max_prompts, max_bytes = 100_000, 200_000_000  # 256 MB are allowed.

    def send(self, prompts: Mapping[str, Body], label: str) -> str:  # noqa: D102
        requests = [
            {"custom_id": prompt, "params": _anthropic_body(body)}
            for prompt, body in prompts.items()
        ]
        return str(_fetch_object(self._http, "POST", self.path, json={"requests": requests})["id"])

    def find(self, label: str, prompts: int, since: float) -> list[str]:
        """Batches of the same size: without labels, only their results show whose they are."""
        batches = _list_batches(self._http, self.path, since, "after_id")
        return [b["id"] for b in batches if sum(b["request_counts"].values()) == prompts]

    def state(self, batch: str) -> BatchState:  # noqa: D102
        fields = self._fetch(batch)
        status, counts = str(fields["processing_status"]), fields["request_counts"]
        total = sum(counts.values())
        return BatchState(status, total - counts["processing"], total, status == "ended")

    def results(self, batch: str, state: BatchState) -> Iterator[Result]:  # noqa: D102
        # Not the `results_url` of the reply: it could name a host that the key is not for.
        for line in _fetch_lines(self._http, f"{self.path}/{quote(batch, safe='')}/results"):
            result = line["result"]
            if result["type"] == "succeeded":
                yield Result(line["custom_id"], _as_completion(result["message"]))
            elif result["type"] == "errored":
                body = result.get("error") or {}
                kind = (body.get("error") or {}).get("type")
                status = 400 if kind == "invalid_request_error" else 500
                yield Result(line["custom_id"], error=ProviderError(status, body))
            else:
                yield Result(line["custom_id"])


BatchApi = OpenAIBatches | AnthropicBatches


def _anthropic_body(body: Body) -> dict[str, Any]:
    """A chat request in Anthropic's form, with what its OpenAI-compatible endpoint takes of it."""
    system = "\n".join(m["content"] for m in body["messages"] if m["role"] == "system")
    foreign = ("seed", "reasoning_effort", "response_format", "logprobs", "top_logprobs")
    fields = {key: value for key, value in body.items() if key not in foreign}
    max_tokens = fields.pop("max_completion_tokens", None) or fields.get("max_tokens")
    messages = [m for m in body["messages"] if m["role"] != "system"]
    request = {**fields, "max_tokens": max_tokens, "messages": messages}
    return {**request, "system": system} if system else request


_FINISH_REASONS = {"max_tokens": "length", "refusal": FILTERED}


def _as_completion(message: Body) -> dict[str, Any]:
    usage, reason = message.get("usage") or {}, message.get("stop_reason")
    choice = {
        "message": {"content": message.get("content")},
        "finish_reason": _FINISH_REASONS.get(str(reason), "stop"),
    }
    names = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
    counts = {ours: usage.get(theirs) for ours, theirs in names.items()}
    return {"model": message.get("model"), "choices": [choice], "usage": counts}


def _list_batches(http: Any, path: str, since: float, after: str) -> Iterator[Body]:
    """The batches that were created since a time; the newest are listed first."""
    page: dict[str, Any] = {}
    while True:
        last = {after: page["last_id"]} if page else {}
        page = _fetch_object(http, "GET", path, params={"limit": 100, **last})
        for batch in page["data"]:
            if _timestamp(batch["created_at"]) < since - _CLOCK_SKEW_S:
                return
            yield batch
        if not page.get("has_more"):
            return


def _timestamp(created: Any) -> float:
    """A time in seconds since 1970, from a number or from RFC 3339."""
    return datetime.fromisoformat(created).timestamp() if isinstance(created, str) else created


def _stream(http: Any, method: str, path: str, **arguments: Any) -> Iterator[bytes]:
    """The bytes of a reply as they come. Raises ProviderError unless it is a success."""
    # An upload may take long, a look may not.
    timeout = {"timeout": _LOOK_S} if method == "GET" else {}
    with http.stream(method, path, **timeout, **arguments) as response:
        if response.status_code >= 300:
            text = b"".join(_limit_size(response.iter_bytes()))
            try:
                body = json.loads(text)
            except ValueError:
                body = text[:200].decode("utf-8", "replace")
            raise ProviderError(response.status_code, body)
        yield from response.iter_bytes()


def _limit_size(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces of one object, up to a size: a few compressed bytes may stand for gigabytes."""
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > REPLY_BYTES:
            raise ValueError(f"the reply has more than {REPLY_BYTES} bytes")
        yield piece


def _fetch_object(http: Any, method: str, path: str, **arguments: Any) -> dict[str, Any]:
    """The JSON object of a reply. Raises ProviderError, or ValueError for anything else."""
    value = json.loads(b"".join(_limit_size(_stream(http, method, path, **arguments))))
    if not isinstance(value, dict):
        raise ValueError("the reply is not a JSON object")
    return value


def _fetch_lines(http: Any, path: str) -> Iterator[dict[str, Any]]:
    """The objects of a JSONL file as they come. Lines end at a line feed alone: a text may hold
    other characters that Python takes for the end of a line."""
    rest = b""
    for piece in _stream(http, "GET", path):
        *lines, rest = (rest + piece).split(b"\n")
        yield from (json.loads(line) for line in lines if line.strip())
        if len(rest) > REPLY_BYTES:
            raise ValueError(f"a line of the results has more than {REPLY_BYTES} bytes")
    if rest.strip():
        yield json.loads(rest)


def chunks(bodies: Mapping[str, Body], api: BatchApi) -> Iterator[dict[str, Body]]:
    """The requests in as few batches as the provider's limits allow."""
    chunk, size = dict[str, Body](), 0
    for prompt, body in bodies.items():
        length = len(json.dumps(body)) + 200
        if chunk and (len(chunk) == api.max_prompts or size + length > api.max_bytes):
            yield chunk
            chunk, size = {}, 0
        chunk[prompt], size = body, size + length
    if chunk:
        yield chunk


def flat(body: Body) -> dict[str, Any]:
    """A request's body as it is sent: ``extra_body`` is a word of OpenAI's client."""
    fields = {key: value for key, value in body.items() if key != "extra_body"}
    return {**fields, **body.get("extra_body", {})}
