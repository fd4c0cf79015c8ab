"""Send prompts in batches, wait for them over days and collect the answers; each is paid once.

A batch is recorded in the run's folder before and after the call that sends it. So another process
knows which batches hold which prompts, and before it sends anything it asks the provider about a
batch whose call was cut off.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from uuid import uuid4

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import cannot_write, write_text
from judgesense.files.documents import fit_record, read_json
from judgesense.text import join, printable
from local_judges.api.batch_apis import BatchApi, BatchState, ProviderError, Result, chunks, flat
from local_judges.api.endpoint import Endpoint
from local_judges.api.refusals import accepted_body, refused_in
from local_judges.api.replies import diagnose
from local_judges.protocol import Answer, Request, RunContext

FIRST_WAIT_S, MOST_WAIT_S = 1.0, 60.0
"""The pause between two looks at the provider grows from the first to the second."""

MOST_FAILURES = 60
"""Looks in a row that fail, about an hour's, before the run stops."""


@dataclass
class SentBatch:
    """A batch: ``prompts`` are the custom ids whose answers it owes or has given. ``batch`` is the
    provider's id, "" until the call that sends it returns; ``is_guess`` says that it was found in
    the provider's list by its size alone."""

    label: str
    sent_at: float
    prompts: list[str]
    batch: str = ""
    is_guess: bool = False


@dataclass
class Record:
    """The file of a judge's batches: ``refused`` are the parameters that the model refuses."""

    batches: list[SentBatch] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def custom_id(judge: str, request: Request, logprobs: bool) -> str:
    """The name of a prompt at the provider, its own for each judge, prompt and repeat."""
    identity = json.dumps([judge, logprobs, astuple(request)])
    return hashlib.sha256(identity.encode()).hexdigest()[:40]


class Batches:
    """The batches of one judge in a run's folder.

    ``cost`` is the highest possible cost of requests, None without a price.
    """

    def __init__(
        self,
        api: BatchApi,
        endpoint: Endpoint,
        judge: str,
        context: RunContext,
        cost: Callable[[Sequence[Request]], float | None],
    ) -> None:
        self._api, self._endpoint, self._context, self._cost = api, endpoint, context, cost
        name = hashlib.sha256(judge.encode()).hexdigest()[:8]
        self._file = context.folder / f".batches-{name}.json"
        self._record = Record()
        if self._file.exists():
            what = "a record of batches"
            self._record = fit_record(Record, read_json(self._file), str(self._file), what)
        self._unanswered: dict[str, Request] = {}
        self._lost_ids, self._retried_ids = set[str](), set[str]()
        self._noted_status: dict[str, str] = {}
        self._failures = 0

    def answers(
        self, requests: Mapping[str, Request], logprobs: bool
    ) -> Iterator[tuple[str, Answer]]:
        """The answers by custom id, in the order in which batches end.

        Raises JudgeSenseError, once what can be collected is, if a batch expired or was cancelled
        half done, after Ctrl-C, and if the provider refuses a batch.
        """
        self._unanswered, wait_s = dict(requests), FIRST_WAIT_S
        self._find_unconfirmed()
        while True:
            owed_ids = {prompt for sent in self._record.batches for prompt in sent.prompts}
            sent_ids = owed_ids | self._lost_ids
            new_ids = [prompt for prompt in self._unanswered if prompt not in sent_ids]
            if new_ids:
                self._send(new_ids, logprobs)
            if not self._pending:
                break
            yield from self._poll(logprobs)
            if self._pending:
                self._context.stop.wait(wait_s)
                wait_s = min(1.5 * wait_s, MOST_WAIT_S)
        if self._lost_ids:
            raise JudgeSenseError(
                f"{len(self._lost_ids)} of {len(requests)} prompts were not asked, because their "
                "batch expired, was cancelled or lost them; the other answers are kept. Rerun the "
                "same command to send these prompts in a new batch"
            )

    @property
    def _pending(self) -> list[SentBatch]:
        """The batches that owe answers."""
        return [sent for sent in self._record.batches if self._unanswered.keys() & sent.prompts]

    def _write(self) -> None:
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_text(self._file, json.dumps(asdict(self._record), indent=1) + "\n")
        except OSError as error:
            raise cannot_write(self._file, error) from error

    def _find_unconfirmed(self) -> None:
        """Find the batches whose sending was cut off: they may have arrived."""
        for sent in [sent for sent in self._record.batches if not sent.batch]:
            try:
                batch_ids = self._api.find(sent.label, len(sent.prompts), sent.sent_at)
            except Exception as error:  # noqa: BLE001 - diagnose raises what it does not know
                raise self._stop_error(
                    error, "whether an earlier batch arrived is not known"
                ) from None
            known_ids = {other.batch for other in self._record.batches}
            self._record.batches.remove(sent)
            self._record.batches += [
                SentBatch(sent.label, sent.sent_at, list(sent.prompts), batch, is_guess=True)
                for batch in batch_ids
                if batch not in known_ids
            ]
            self._write()

    def _send(self, new_ids: Sequence[str], logprobs: bool) -> None:
        refused = self._endpoint.refused = self._endpoint.refused | {*self._record.refused}
        self._record.refused = sorted(refused)
        requests = {prompt: self._unanswered[prompt] for prompt in new_ids}
        bodies = {
            prompt: flat(accepted_body(self._endpoint.body([request], logprobs), refused))
            for prompt, request in requests.items()
        }
        cost = self._cost(list(requests.values()))
        price = "" if cost is None else f" for at most ${cost:.2f}"
        self._context.note(
            f"{len(new_ids)} prompts go to {self._endpoint} in a batch{price}, half the price of "
            "direct requests; the answers may take a day"
        )
        self._retried_ids.clear()
        for chunk in chunks(bodies, self._api):
            sent = SentBatch(uuid4().hex, time.time(), list(chunk))
            self._record.batches.append(sent)
            self._write()
            try:
                sent.batch = self._api.send(chunk, sent.label)
            except Exception as error:  # noqa: BLE001 - diagnose raises what it does not know
                stop = self._stop_error(error, "the batch was not confirmed")
                if isinstance(error, ProviderError) and error.status_code < 500:
                    self._record.batches.remove(sent)  # It did not arrive.
                    self._write()
                raise stop from None
            self._write()
            self._note(
                sent, f"{len(chunk)} prompts; interrupt the command if you like, and rerun it later"
            )

    def _poll(self, logprobs: bool) -> Iterator[tuple[str, Answer]]:
        """Look once at each batch, and read those that have ended."""
        for sent in self._pending:
            self._require_no_interrupt()
            try:
                state = self._api.state(sent.batch)
                if self._noted_status.get(sent.batch) != state.status:
                    self._noted_status[sent.batch] = state.status
                    self._note(sent, f"{state.status}, {state.done} of {state.total} prompts done")
                if state.has_ended:
                    yield from self._collect(sent, state, logprobs)
                self._failures = 0
            except JudgeSenseError:
                raise
            except Exception as error:  # noqa: BLE001 - diagnose raises what it does not know
                self._failures += 1
                kind, reason = self._reason(error)
                if kind not in ("busy", "unreachable") or self._failures > MOST_FAILURES:
                    raise self._stop_error(error, f"batch {sent.batch} cannot be read") from None
                if self._failures == 1:
                    self._note(sent, f"{reason}; JudgeSense keeps trying")

    def _collect(
        self, sent: SentBatch, state: BatchState, logprobs: bool
    ) -> Iterator[tuple[str, Answer]]:
        """The answers of a batch that has ended. What it did not answer it no longer owes."""
        if state.failure:
            self._record.batches.remove(sent)
            self._write()
            raise JudgeSenseError(
                f"batch {sent.batch} failed before a prompt was asked: "
                f"{printable(self._endpoint.hide(state.failure))}. Change what it names and rerun "
                "the command, or leave --batch out to ask the prompts directly"
            )
        owed_ids, failed_ids = self._unanswered.keys() & sent.prompts, set[str]()
        try:
            for result in self._api.results(sent.batch, state):
                request = self._unanswered.get(result.custom_id)
                if request is None or result.custom_id not in owed_ids:
                    continue
                if (answer := self._answer(result, request, logprobs)) is not None:
                    if answer.error is not None:
                        failed_ids.add(result.custom_id)
                    del self._unanswered[result.custom_id]
                    yield result.custom_id, answer
            missing_ids = self._unanswered.keys() & owed_ids
            if not sent.is_guess:
                self._lost_ids |= missing_ids - self._retried_ids
            failed_ids |= missing_ids
        finally:
            # Also if the connection broke: a rerun asks again what failed.
            sent.prompts = [prompt for prompt in sent.prompts if prompt not in failed_ids]
            self._write()

    def _answer(self, result: Result, request: Request, logprobs: bool) -> Answer | None:
        """A line as an answer; None for a prompt that was not asked."""
        if result.reply is not None:
            try:
                (answer,) = self._endpoint.answers(result.reply, [request])
            except ValueError as error:
                return Answer(error=self._endpoint.hide(str(error)))
            self._endpoint.note_model(result.reply)
            return answer
        if result.error is None:
            return None
        kind, reason = self._reason(result.error)
        if kind == "refused":
            return Answer(text="", refused=True)
        parameters = refused_in(reason, self._endpoint.body([request], logprobs))
        if kind == "bad request" and parameters - {*self._record.refused}:
            # A parameter that the model refuses: the prompt is asked again without it.
            self._endpoint.refused |= parameters
            self._retried_ids.add(result.custom_id)
            return None
        return Answer(error=reason)

    def _reason(self, error: Exception) -> tuple[str, str]:
        if isinstance(error, (LookupError, TypeError, AttributeError)):
            return "malformed", f"the reply is not what the protocol says ({error!r:.200})"
        return diagnose(error, self._endpoint.hide)[:2]

    def _stop_error(self, error: Exception, what: str) -> JudgeSenseError:
        return JudgeSenseError(
            f"{what}: {self._reason(error)[1]}. Rerun the same command to go on. What was sent is "
            f"in {self._file}; without that file, its prompts are sent and paid again"
        )

    def _note(self, sent: SentBatch, what: str) -> None:
        self._context.note(printable(f"batch {sent.batch}: {what}"))

    def _require_no_interrupt(self) -> None:
        """Raise JudgeSenseError after Ctrl-C."""
        if self._context.stop.is_set():
            prompts = {prompt for sent in self._pending for prompt in sent.prompts}
            owed_ids = prompts & self._unanswered.keys()
            names = join([printable(sent.batch) for sent in self._pending])
            raise JudgeSenseError(
                f"stopped: {len(owed_ids)} prompts of {self._endpoint} stay in batch {names}; "
                "rerun the same command to collect the answers, which are not paid twice"
            )
