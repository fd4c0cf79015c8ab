"""Batch files: write the requests of a run for a provider's batch service, and read the answers.

A provider processes such a file within a day, usually at half price. :class:`BatchFileJudge` is a
judge that reads the answers, so they reach the log through the ordinary runner.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import open_bytes, replacing
from judgesense.files.documents import parse_json
from local_judges.api.endpoint import body_of, scorings_of
from local_judges.api.judge import TOP_TOKENS, cost_of
from local_judges.api.replies import answer_of, without_secrets
from local_judges.options import ApiOptions, made
from local_judges.plan import plan_by_count
from local_judges.protocol import Answer, Request
from local_judges.registry import JudgeSpec
from local_judges.runner import require_scorings

MAX_REQUESTS, MAX_BYTES = 50_000, 200_000_000
"""OpenAI's limits of one input file."""

URL = "/v1/chat/completions"
ABSENT = "not in the batch output"


@dataclass(frozen=True)
class BatchFile:
    """An input file: the number of its requests and its size in bytes."""

    path: Path
    requests: int
    size: int


def write_batch(
    spec: JudgeSpec,
    requests: Iterable[Request],
    scorings: Sequence[str],
    folder: Path,
    *,
    max_requests: int = MAX_REQUESTS,
    max_bytes: int = MAX_BYTES,
) -> list[BatchFile]:
    """Write ``folder/input-0000.jsonl`` and so on: one line per request, split at the limits.

    The ``custom_id`` of a line is the prompt's id and a hash of the rest of the request, so that
    answers to other settings are not mistaken for answers to these. No key is needed.

    Raises JudgeSenseError if the judge is not at an OpenAI-compatible endpoint or lacks a scoring,
    and if the folder already holds a batch.
    """
    form = _Form(spec, "options" in scorings)
    require_scorings(spec.name, form.scorings, scorings)
    if any(folder.glob("input-*.jsonl")):
        raise JudgeSenseError(f"{folder} already holds a batch; remove the folder to write another")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return list(_write(form, requests, folder, max_requests, max_bytes))
    except OSError as error:
        raise JudgeSenseError(f"cannot write to {folder}: {error.strerror or error}") from error


def _write(
    form: _Form, requests: Iterable[Request], folder: Path, max_requests: int, max_bytes: int
) -> Iterator[BatchFile]:
    held: list[bytes] = []
    size = number = 0
    for request in requests:
        line = form.line(request)
        if len(line) > max_bytes:
            raise JudgeSenseError(
                f"prompt {request.prompt_id} alone has {len(line):,} bytes; a batch file may have "
                f"{max_bytes:,}"
            )
        if held and (len(held) == max_requests or size + len(line) > max_bytes):
            yield _save(folder, number, held)
            held, size, number = [], 0, number + 1
        held.append(line)
        size += len(line)
    if held:
        yield _save(folder, number, held)


def _save(folder: Path, number: int, lines: Sequence[bytes]) -> BatchFile:
    path = folder / f"input-{number:04d}.jsonl"
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.writelines(lines)
    return BatchFile(path, len(lines), sum(map(len, lines)))


class _Form:
    """The requests to a judge: everything except the prompt."""

    def __init__(self, spec: JudgeSpec, logprobs: bool) -> None:
        if spec.engine != "api" or "provider" in spec.options:
            raise JudgeSenseError(
                f"judge {spec.name}: batch files need a judge at an OpenAI-compatible endpoint"
            )
        self._model, self._logprobs = str(spec.model), logprobs
        self._options = made(ApiOptions, spec.options)
        self.scorings = scorings_of(self._options)
        fixed = self.body(Request("", "", ()))
        if wanted := self._options.answer_format:
            # Without options a body has no format.
            fixed |= {"answer_format": [wanted, self._options.style.json_schema]}
        empty = json.dumps(fixed, sort_keys=True)
        self.settings = hashlib.sha256(empty.encode()).hexdigest()[:8]

    def body(self, request: Request) -> dict[str, Any]:
        body = body_of(request, model=self._model, options=self._options, logprobs=self._logprobs)
        # The SDK moves extra_body to the top level of a request; a file has no SDK.
        extra = body.pop("extra_body", {})
        return {**body, **extra}

    def id_of(self, request: Request) -> str:
        return f"{request.prompt_id}.{self.settings}"

    def line(self, request: Request) -> bytes:
        entry = {"custom_id": self.id_of(request), "method": "POST", "url": URL}
        text = json.dumps({**entry, "body": self.body(request)}, ensure_ascii=False)
        return text.encode() + b"\n"


@dataclass(frozen=True, slots=True)
class _Line:
    """The position of a line of output, and whether it is an answer or a failure."""

    file: int
    offset: int
    answered: bool


class BatchFileJudge:
    """A judge whose answers come from the output (and error) files of a batch.

    ``spec`` is the judge as it was when the batch was written. The fingerprint in the name covers
    the settings and the files. A prompt without an answer is an ERROR, with the provider's reason
    or ``not in the batch output``; if a prompt has a failure and an answer, the answer counts.

    Raises JudgeSenseError for a file that is not batch output and for two answers to one prompt.
    """

    def __init__(self, spec: JudgeSpec, files: Sequence[Path]) -> None:
        if not files:
            raise JudgeSenseError("no batch output to read")
        self._spec, self._paths = spec, tuple(Path(path) for path in files)
        plain, scored = _Form(spec, False), _Form(spec, True)
        self._forms = {False: plain, True: scored}
        self.scorings, self.takes_effort = plain.scorings, spec.takes_effort
        self.takes_thinking = spec.takes_thinking
        self.price: tuple[float, float] | None = spec.options.get("price")
        self._begins_thinking = bool(spec.options.get("style", {}).get("begins_thinking"))
        self._places: dict[str, _Line] = {}
        self._digests = [self._index(number) for number in range(len(self._paths))]
        described = json.dumps([spec.identity(), sorted(self._digests)], sort_keys=True)
        self.name = f"{spec.name}@{hashlib.sha256(described.encode()).hexdigest()[:8]}"

    def describe(self) -> Mapping[str, Any]:
        """The judge's settings and the SHA-256 of each file."""
        return {
            **self._spec.identity(),
            "engine": "batch files",
            "files": {p.name: d for p, d in zip(self._paths, self._digests, strict=True)},
            "options": TOP_TOKENS,
        }

    def plan(self, requests: Sequence[Request], scorings: frozenset[str]) -> list[Sequence[int]]:
        """Batches of 256. Raises JudgeSenseError if no request has an answer in the files."""
        form = self._forms["options" in scorings]
        if requests and not any(form.id_of(request) in self._places for request in requests):
            known = {identity.partition(".")[0] for identity in self._places}
            settings = any(request.prompt_id in known for request in requests)
            raise JudgeSenseError(
                f"{', '.join(map(str, self._paths))}: "
                + (
                    "the prompts are those of this run, but with other settings (model, system "
                    "prompt, decoding or scoring); use the settings that the batch was written with"
                    if settings
                    else "none of the answers is for a prompt of this run; use the judge, data and "
                    "tasks that the batch was written with"
                )
            )
        return plan_by_count(len(requests), 256)

    def judge(
        self, batches: Iterable[tuple[int, Sequence[Request]]], scorings: frozenset[str]
    ) -> Iterator[tuple[int, list[Answer]]]:
        """The answers, each read from its file when it is needed."""
        form = self._forms["options" in scorings]
        with ExitStack() as stack:
            files = [stack.enter_context(open_bytes(path)) for path in self._paths]
            for index, requests in batches:
                yield index, [self._answer(files, form.id_of(r), r) for r in requests]

    def close(self) -> None:
        """Nothing to free: the files are open only while ``judge`` reads them."""

    def _index(self, number: int) -> str:
        """Record the position of each line of a file; returns the SHA-256 of the file."""
        path, digest, offset = self._paths[number], hashlib.sha256(), 0
        try:
            with open_bytes(path) as file:
                for row, line in enumerate(file, 1):
                    digest.update(line)
                    if line.strip():
                        self._note(line, number, offset, f"{path}, line {row}")
                    offset += len(line)
        except OSError as error:
            raise JudgeSenseError(f"cannot read {path}: {error.strerror or error}") from error
        return digest.hexdigest()

    def _note(self, line: bytes, file: int, offset: int, where: str) -> None:
        try:
            entry = parse_json(line, where)
        except JudgeSenseError as error:
            raise JudgeSenseError(f"{error}; is the file complete?") from error
        if not isinstance(entry, dict) or not isinstance(entry.get("custom_id"), str):
            raise JudgeSenseError(f"{where}: not a line of batch output (no custom_id)")
        if "response" not in entry and "error" not in entry:
            raise JudgeSenseError(
                f"{where}: not a line of batch output (no response or error); an input file?"
            )
        identity = entry["custom_id"]
        place = _Line(file, offset, self._says_something(entry))
        before = self._places.get(identity)
        if before and before.answered and place.answered:
            raise JudgeSenseError(
                f"{where}: a second answer to {identity} (the first is in "
                f"{self._paths[before.file]}); leave out one of the two files"
            )
        if before is None or place.answered:
            self._places[identity] = place

    def _says_something(self, entry: Mapping[str, Any]) -> bool:
        """Whether a line is an answer: a success with a valid reply."""
        if _problem(entry) is not None:
            return False
        try:
            self._read(entry, Request("", "", ()))
        except ValueError:
            return False
        return True

    def _read(self, entry: Mapping[str, Any], request: Request) -> Answer:
        return answer_of(entry["response"]["body"], request, self._begins_thinking)

    def _answer(self, files: Sequence[BinaryIO], identity: str, request: Request) -> Answer:
        place = self._places.get(identity)
        if place is None:
            return Answer(error=ABSENT)
        files[place.file].seek(place.offset)
        entry = json.loads(files[place.file].readline())
        if problem := _problem(entry):
            return Answer(error=problem)
        try:
            answer = self._read(entry, request)
        except ValueError as error:
            return Answer(error=f"invalid reply in the batch output: {error}")
        answer.cost_usd = cost_of(answer, self.price)
        return answer


def _problem(entry: Mapping[str, Any]) -> str | None:
    """Why a line of batch output is not an answer, without secrets; None if it is one."""
    response = entry.get("response") or {}
    if not isinstance(response, dict):
        return f"the response is not an object: {without_secrets(str(response))[:300]}"
    status = response.get("status_code")
    body = response.get("body")
    error = entry.get("error") or (body.get("error") if isinstance(body, dict) else None)
    if error:
        said = error.get("message") or error.get("code") if isinstance(error, dict) else error
        reason = f"HTTP {status}: {said}" if status else str(said)
        return without_secrets(reason)[:300]
    if status != 200 or not isinstance(body, dict):
        return f"HTTP {status}" if status else "no response"
    return None
