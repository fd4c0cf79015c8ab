"""Ask the planned parts of a judge's run, and write each to the log once it is complete.

A part file is complete or absent; one that is damaged or holds other prompts is renamed and judged
again. An interrupted part is in its journal (`local_judges.journal`).
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import cannot_write
from judgesense.files.tables import UNREADABLE, read_parquet
from judgesense.log.run_folder import set_aside
from judgesense.log.schema import write_part
from local_judges.journal import Journal, JournalWatch
from local_judges.outcome import JudgeOutcome
from local_judges.plan import Part, Requests
from local_judges.progress import progress
from local_judges.protocol import (
    Answer,
    Budgeted,
    InRun,
    Judge,
    Request,
    RunContext,
    Watch,
    Watched,
)
from local_judges.rows import PartLog

Note = Callable[[str], None]


class Interrupted(JudgeSenseError):
    """Ctrl-C or the budget stopped the run, after its current part was written."""

    def __init__(self, done: int, planned: int, reason: str | None = None) -> None:
        why = f": {reason}" if reason else ""
        super().__init__(
            f"stopped at {done} of {planned} prompts{why}; rerun the same command to resume"
        )


def set_aside_unplanned(folder: Path, parts: Sequence[Part], judge_index: int, note: Note) -> None:
    """Rename the parts of a judge that the plan does not contain.

    Another device or batch size leads to other parts; the parts of an earlier start would then
    repeat rows of the log.
    """
    planned = {part.name for part in parts}
    for path in sorted(folder.glob(f"part-{judge_index:02d}-*.parquet")):
        if path.name not in planned:
            note(f"{path.name} is not in this run's plan; renamed to {set_aside(path)}")


@dataclass
class _Task:
    """The prompts of a part that are asked: all, or those that failed before."""

    part: Part
    stored: pa.Table | None
    """The part as it was written, if some of its prompts failed."""
    answers: dict[int, Answer]
    """The answers so far, by request."""

    @property
    def unanswered(self) -> list[int]:
        """The requests without an answer."""
        return [request for request in self.part.requests if request not in self.answers]


def ask_parts(
    judge: Judge,
    requests: Requests,
    parts: Sequence[Part],
    scorings: frozenset[str],
    log: PartLog,
    note: Note,
    known: Mapping[str, Answer] = MappingProxyType({}),
    retries: bool = True,
) -> JudgeOutcome:
    """Ask the planned parts that are not in the log yet, and write them.

    ``known`` are answers by prompt id, which are used where an answer depends on its prompt alone.
    With ``retries``, the prompts of a written part that failed are asked once more.

    Raises Interrupted after Ctrl-C or when the budget is spent, once the parts in progress are
    written; JudgeSenseError if the folder cannot be written.
    """
    outcome = JudgeOutcome(judge.name, planned=sum(len(b) for part in parts for b in part.batches))
    budgeted = judge if isinstance(judge, Budgeted) else None
    journal = Journal(log.folder, judge.name, scorings)
    tasks = []
    for part in parts:
        task = _task_of(judge, part, requests, log, note, retries, outcome)
        _recall(judge, task, journal, requests, outcome)
        if task.part.batches:
            tasks.append(task)
        else:
            journal.drop(part.name)
    if outcome.retried:
        note(f"{judge.name}: {outcome.retried} prompts failed before and are asked again")
    if known and answers_alone(judge):
        _take_known(tasks, known, requests, journal)
    started = time.perf_counter()
    reason: str | None = None
    bar = progress(judge.name, outcome.planned, outcome.kept, budgeted)
    with (
        bar as advance,
        _stop_on_interrupt() as stop,
        _in_run(judge, RunContext(log.folder, note, stop)),
        journal.open(),
    ):
        if budgeted is not None:
            _note_cost(budgeted, tasks, requests, note)

        def stops_before(task: _Task) -> bool:
            nonlocal reason
            if budgeted is not None and not stop.is_set():
                reason = budgeted.admit(requests.take(task.unanswered, task.part.repeat))
            return stop.is_set() or reason is not None

        for task in _answer(judge, tasks, requests, scorings, journal, stops_before, advance):
            table = log.table_of(task.part, task.answers)
            if task.stored is not None:
                table = _splice(task.stored, table)
            try:
                write_part(table, log.folder, task.part.name)
            except OSError as error:
                raise cannot_write(log.folder / task.part.name, error) from error
            journal.drop(task.part.name)
            outcome.rows[task.part.name] = table.num_rows
            outcome.judged += len(task.answers)
            outcome.failed += _failure_lines(table)
            for answer in task.answers.values():
                outcome.counters["input_tokens"] += answer.input_tokens or 0
                outcome.counters["output_tokens"] += answer.output_tokens or 0
    outcome.seconds = time.perf_counter() - started
    done = outcome.judged + outcome.kept
    if (reason or stop.is_set()) and done < outcome.planned:
        raise Interrupted(done, outcome.planned, reason)
    return outcome


def _task_of(
    judge: Judge,
    part: Part,
    requests: Requests,
    log: PartLog,
    note: Note,
    retries: bool,
    outcome: JudgeOutcome,
) -> _Task:
    """The prompts of a part to ask; counts those of a stored part, and adds up their cost."""
    stored = _read_stored(log, part, requests, note)
    if stored is None:
        return _Task(part, None, {})
    task = _Task(_failed_part(judge, part, stored, requests, log, retries), stored, {})
    n_retried, failures = len(task.unanswered), _failure_lines(stored)
    outcome.kept += sum(map(len, part.batches)) - n_retried
    outcome.rows[part.name] = stored.num_rows
    if n_retried:
        outcome.retried += len(failures)
    else:
        outcome.failed += failures
    # An answer that several rows share costs once.
    prompts, costs = stored["prompt_id"].to_pylist(), stored["cost_usd"].to_pylist()
    cost_of = dict(zip(prompts, costs, strict=True))
    _spend(judge, [cost for cost in cost_of.values() if cost is not None])
    return task


def _take_known(
    tasks: Sequence[_Task], known: Mapping[str, Answer], requests: Requests, journal: Journal
) -> None:
    """Give the tasks of the first repeat the answers that are known already."""
    ids = [request.prompt_id for request in requests]
    for task in tasks:
        answers = {n: known[ids[n]] for n in task.unanswered if ids[n] in known}
        if answers and task.part.repeat == 0:
            task.answers |= answers
            journal.keep(task.part.name, [(ids[n], answer) for n, answer in answers.items()])


def _spend(judge: Judge, costs: Iterable[float]) -> None:
    if isinstance(judge, Budgeted):
        judge.spent += sum(costs)


def _recall(
    judge: Judge, task: _Task, journal: Journal, requests: Requests, outcome: JudgeOutcome
) -> None:
    """Give a task the answers that earlier starts kept, and count what they cost."""
    contents = journal.read(task.part.name)
    outcome.lost_usd += contents.lost_usd
    for batch in task.part.batches if contents.answers else ():
        pairs = zip(batch, requests.take(batch), strict=True)
        answers = {n: contents.answers.get(request.prompt_id) for n, request in pairs}
        if answers_alone(judge) or None not in answers.values():
            task.answers |= {n: answer for n, answer in answers.items() if answer is not None}
    costs = (answer.cost_usd or 0.0 for answer in task.answers.values())
    _spend(judge, [contents.lost_usd, *costs])


def answers_alone(judge: Judge) -> bool:
    """Whether an answer depends on its prompt, not on the prompts in the same batch."""
    return bool(getattr(judge, "answers_alone", False))


def _failed_part(
    judge: Judge, part: Part, rows: pa.Table, requests: Requests, log: PartLog, retries: bool
) -> Part:
    """The part with the prompts alone that are asked again: with ``retries`` those that failed, in
    whole batches where answers depend on the batch."""
    requests_of_rows = np.repeat(requests.rows_of(part)[1], log.copies)
    has_error = pc.is_valid(rows["error"]).to_numpy()
    failed = set(requests_of_rows[has_error].tolist()) if retries else set()
    batches, start = list[Sequence[int]](), 0
    for batch in part.batches if failed else ():
        failed_requests = [request for n, request in enumerate(batch, start) if n in failed]
        start += len(batch)
        if failed_requests:
            batches.append(failed_requests if answers_alone(judge) else batch)
    return Part(part.name, part.repeat, tuple(batches))


def _splice(stored: pa.Table, fresh: pa.Table) -> pa.Table:
    """A stored part with fresh rows in the place of those of the prompts that were asked again."""
    prompts = set(fresh["prompt_id"].to_pylist())
    replaced = np.array([prompt in prompts for prompt in stored["prompt_id"].to_pylist()])
    order = np.arange(stored.num_rows)
    order[replaced] = stored.num_rows + np.arange(fresh.num_rows)
    return pa.concat_tables([stored, fresh]).take(pa.array(order))


def _answer(
    judge: Judge,
    tasks: Sequence[_Task],
    requests: Requests,
    scorings: frozenset[str],
    journal: Journal,
    stops_before: Callable[[_Task], bool],
    advance: Callable[[int], None],
) -> Iterator[_Task]:
    """Feed the batches of the tasks to the judge; yield each task once it is complete.

    Batches may return in any order, so several parts can be open at once. When the run stops, the
    open parts are completed and no other part is started.
    """
    batches, n_waiting = list[tuple[int, Sequence[int]]](), []
    for number, task in enumerate(tasks):
        unanswered = [[n for n in batch if n not in task.answers] for batch in task.part.batches]
        n_waiting.append(sum(map(bool, unanswered)))
        batches += [(number, batch) for batch in unanswered if batch]
        advance(len(task.answers))
        if not n_waiting[-1]:
            yield task
    started: set[int] = set()

    def feed() -> Iterator[tuple[int, list[Request]]]:
        for index, (number, batch) in enumerate(batches):
            if number not in started:
                if stops_before(tasks[number]):
                    return
                started.add(number)
            yield index, requests.take(batch, tasks[number].part.repeat)

    watch = JournalWatch(journal, lambda index: tasks[batches[index][0]].part.name)
    with watching(judge, watch) as watched:
        for index, answers in judge.judge(feed(), scorings):
            number, batch = batches[index]
            task = tasks[number]
            if not watched:
                ids = (request.prompt_id for request in requests.take(batch))
                journal.keep(task.part.name, zip(ids, answers, strict=True))
            task.answers.update(zip(batch, answers, strict=True))
            advance(len(batch))
            n_waiting[number] -= 1
            if n_waiting[number] == 0:
                yield task
                task.answers = {}


@contextmanager
def _in_run(judge: Judge, context: RunContext) -> Iterator[None]:
    """Give a judge the run around it."""
    if not isinstance(judge, InRun):
        yield
        return
    judge.run_context = context
    try:
        yield
    finally:
        judge.run_context = None


@contextmanager
def watching(judge: Judge, watch: Watch | None) -> Iterator[bool]:
    """Have a judge report its requests to ``watch``; yields whether it does."""
    if not isinstance(judge, Watched):
        yield False
        return
    judge.watch = watch
    try:
        yield True
    finally:
        judge.watch = None


def _read_stored(log: PartLog, part: Part, requests: Requests, note: Note) -> pa.Table | None:
    """The part as stored, or None. One that is damaged or holds other prompts is renamed."""
    path = log.folder / part.name
    if not path.exists():
        return None
    try:
        table = log.conform(read_parquet(path), part.name)
        planned = np.repeat(requests.prompt_ids(part), log.copies)
        if np.array_equal(table["prompt_id"].to_numpy(), planned):
            return table
        reason = "it holds other prompts than this run planned"
    except UNREADABLE as error:
        reason = str(error)
    new_name = set_aside(path)
    note(f"{part.name} is damaged ({reason}); renamed to {new_name}; its prompts are judged again")
    return None


def _note_cost(judge: Budgeted, tasks: Sequence[_Task], requests: Requests, note: Note) -> None:
    cost, prompts = 0.0, 0
    for task in tasks:
        unanswered = requests.take(task.unanswered)
        if (estimate := judge.estimate(unanswered)) is None:
            return
        cost, prompts = cost + estimate, prompts + len(unanswered)
    if cost:
        note(f"at most ${cost:.2f} for {prompts} prompts")


def _failure_lines(table: pa.Table) -> list[str]:
    """One line for each prompt of a part without an answer: its id and the reason."""
    failed = table.filter(pc.is_valid(table["error"]))
    reasons = zip(failed["prompt_id"].to_pylist(), failed["error"].to_pylist(), strict=True)
    return [f"{prompt}: {reason}" for prompt, reason in dict(reasons).items()]


@contextmanager
def _stop_on_interrupt() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets; the second one interrupts at once.

    Only the main thread may install handlers; in other threads the caller handles Ctrl-C.
    """
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, previous)
