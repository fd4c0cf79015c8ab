"""Prompts to a log: each distinct prompt asked once, in parts, resumable at any moment.

The runner drives a :class:`~local_judges.protocol.Judge` and knows nothing of its engine. Parts
are fixed before anything is judged; a part file exists whole or not at all; a part that cannot be
read or does not hold what was planned is set aside under another name and judged again.
"""

from __future__ import annotations

import hashlib
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.benchmark import Benchmark
from judgesense.decisions import PARTS, conform
from judgesense.errors import JudgeSenseError
from judgesense.storage import PartFolder, cannot_write
from local_judges.distributed.ranks import Ranks
from local_judges.plan import Part, Requests, plan_parts
from local_judges.progress import Progress
from local_judges.protocol import Answer, Budgeted, Judge, Request
from local_judges.rows import part_table


class Interrupted(JudgeSenseError):
    """The run was stopped by Ctrl-C or by its budget, after its current part was written."""


@dataclass
class Outcome:
    """What a judge's run did: counts of distinct prompts, over all repeats."""

    judge: str
    planned: int = 0
    judged: int = 0
    kept: int = 0
    failed: list[str] = field(default_factory=list)
    counters: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def counts(self) -> dict[str, int]:
        """The counts for ``run.json``: prompts planned, judged in this start, and tokens."""
        return {"prompts": self.planned, "judged": self.judged, **self.counters}


def run_judge(
    judge: Judge,
    benchmark: Benchmark,
    out: Path | PartFolder,
    scorings: Sequence[str],
    *,
    judge_index: int = 0,
    repeats: int = 1,
    seed: int = 0,
    ranks: Ranks = Ranks(),  # noqa: B008  (frozen)
    begin: Callable[[], None] = lambda: None,
    note: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Judge what of the benchmark is not judged yet, and write the decision log's parts.

    ``out`` is the run's folder, or where its parts lie. Of several processes (``ranks``) each
    judges its share of the parts; all are given the outcome of the whole. ``begin`` is called once
    the plan stands, before anything is asked; ``note`` hears what a person should know (a part
    set aside). Raises Interrupted after Ctrl-C once the parts begun are written; JudgeSenseError
    if a scoring is not offered or the folder cannot be written.
    """
    asked = frozenset(scorings)
    if unknown := asked - judge.scorings:
        raise JudgeSenseError(
            f"judge {judge.name} does not offer {', '.join(sorted(unknown))} scoring; "
            f"it offers {', '.join(sorted(judge.scorings))}"
        )
    requests = Requests(benchmark.prompts)
    parts = plan_parts(judge, requests, asked, judge_index=judge_index, repeats=repeats, seed=seed)
    log = decision_log(
        PartFolder(out / PARTS) if isinstance(out, Path) else out,
        judge.name,
        requests,
        benchmark.prompts,
        scorings,
    )
    if others := set(ranks.gather(judge.name)) - {judge.name}:
        raise JudgeSenseError(
            f"the processes run different judges, {judge.name} and {others.pop()}: their machines "
            "must have the same weights and the same kind of device"
        )
    names = [part.name for part in parts]
    if len(set(ranks.gather(digest_of(parts)))) > 1:
        raise JudgeSenseError(
            "the processes plan different batches: their machines must have the same kind of device"
        )
    begin()
    if ranks.first:
        leave_planned(log.parts, names, judge_index, note)
    mine = parts[ranks.rank :: ranks.size]
    shares = ranks.gather(ask_parts(judge, requests, mine, asked, log, note))
    whole = together(shares)
    whole.seconds = max(share.seconds for share in shares)
    return whole


def digest_of(parts: Sequence[Part]) -> str:
    """A hash of which prompts each part holds, in their order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.name.encode())
        for batch in part.batches:
            digest.update(np.asarray(batch, dtype=np.int64).tobytes())
    return digest.hexdigest()


def leave_planned(
    parts: PartFolder, planned: Collection[str], judge_index: int, note: Callable[[str], None]
) -> None:
    """Set aside a judge's parts that the plan does not have.

    Another device or batch size plans other parts; left where they are, those of an earlier start
    would stand in the log a second time.
    """
    foreign = set(parts.names()) - set(planned)
    for name in sorted(foreign):
        if name.startswith(f"part-{judge_index:02d}-"):
            aside = parts.set_aside(name)
            note(f"{name} is not of this run's plan; set aside as {aside}")


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """The sum of the outcomes of one judge."""
    whole = Outcome(outcomes[0].judge)
    for outcome in outcomes:
        whole.planned += outcome.planned
        whole.judged += outcome.judged
        whole.kept += outcome.kept
        whole.failed += outcome.failed
        whole.counters.update(outcome.counters)
        whole.seconds += outcome.seconds
    return whole


@dataclass(frozen=True)
class PartLog:
    """A log in parts: where they lie, what makes one of answers, and what one must hold.

    ``conform`` (table, where) gives a part the log's columns or raises JudgeSenseError; ``copies``
    rows stand for each row that a request answers for, one after the other.
    """

    parts: PartFolder
    copies: int
    conform: Callable[[pa.Table, str], pa.Table]
    table_of: Callable[[Part, dict[int, Answer]], pa.Table]


def decision_log(
    parts: PartFolder, judge: str, requests: Requests, prompts: pa.Table, scorings: Sequence[str]
) -> PartLog:
    """The decision log of a judge on these prompts."""
    return PartLog(
        parts,
        len(scorings),
        conform,
        lambda part, answers: part_table(part, answers, requests, prompts, judge, scorings),
    )


def ask_parts(
    judge: Judge,
    requests: Requests,
    parts: Sequence[Part],
    scorings: frozenset[str],
    log: PartLog,
    note: Callable[[str], None],
) -> Outcome:
    """Ask what of the planned parts is not in the log yet, and write its parts.

    Raises Interrupted after Ctrl-C or at the end of a budget, once the parts begun are written;
    JudgeSenseError if the folder cannot be written.
    """
    outcome = Outcome(judge.name, planned=sum(len(b) for part in parts for b in part.batches))
    todo = []
    for part in parts:
        rows = _stored(log, part, requests, note)
        if rows is None:
            todo.append(part)
        else:
            outcome.kept += sum(map(len, part.batches))
            outcome.failed += _failures(rows)
            if isinstance(judge, Budgeted):
                judge.spent += _spent(rows)
    if isinstance(judge, Budgeted):
        _say_what_it_can_cost(judge, todo, requests, note)
    started = time.perf_counter()
    with Progress(judge.name, outcome.planned, done=outcome.kept) as progress, _ctrl_c() as stop:
        halt = _Halt(stop, judge)
        for part, answers in _answered(judge, todo, requests, scorings, halt, progress):
            table = log.table_of(part, answers)
            try:
                log.parts.write(table, part.name)
            except OSError as error:
                raise cannot_write(f"{log.parts}/{part.name}", error) from error
            outcome.judged += len(answers)
            outcome.failed += _failures(table)
            for answer in answers.values():
                outcome.counters["input_tokens"] += answer.input_tokens or 0
                outcome.counters["output_tokens"] += answer.output_tokens or 0
    outcome.seconds = time.perf_counter() - started
    if (halt.reason or stop.is_set()) and outcome.judged + outcome.kept < outcome.planned:
        raise Interrupted(
            f"stopped at {outcome.judged + outcome.kept} of {outcome.planned} prompts"
            f"{f': {halt.reason}' if halt.reason else ''}; give the same command again to go on "
            "from there"
        )
    return outcome


class _Halt:
    """Why no further part is begun: Ctrl-C, or a judge whose budget is spent."""

    def __init__(self, stop: threading.Event, judge: Judge) -> None:
        self._stop, self._judge = stop, judge
        self.reason: str | None = None

    def before(self, part: Part, requests: Requests) -> bool:
        """Whether to stop before this part."""
        if not self._stop.is_set() and isinstance(self._judge, Budgeted):
            self.reason = self._judge.admit(requests.take(list(part.requests)))
        return self._stop.is_set() or self.reason is not None


def _answered(
    judge: Judge,
    parts: Sequence[Part],
    requests: Requests,
    scorings: frozenset[str],
    halt: _Halt,
    progress: Progress,
) -> Iterator[tuple[Part, dict[int, Answer]]]:
    """Feed the parts' batches to the judge; yield each part when all its batches are back.

    Batches may come back in any order, so a few parts can be open at once; after Ctrl-C those
    that have begun are finished and no other is begun.
    """
    batches: list[tuple[int, Sequence[int]]] = [
        (number, batch) for number, part in enumerate(parts) for batch in part.batches
    ]
    waiting = {number: len(part.batches) for number, part in enumerate(parts)}
    gathered: dict[int, dict[int, Answer]] = {}
    begun: set[int] = set()

    def feed() -> Iterator[tuple[int, list[Request]]]:
        for index, (number, batch) in enumerate(batches):
            if number not in begun:
                if halt.before(parts[number], requests):
                    return
                begun.add(number)
            yield index, requests.take(batch, parts[number].repeat)

    for index, answers in judge.judge(feed(), scorings):
        number, batch = batches[index]
        if len(answers) != len(batch):
            raise RuntimeError(
                f"judge {judge.name} gave {len(answers)} answers to a batch of {len(batch)}"
            )
        gathered.setdefault(number, {}).update(zip(batch, answers, strict=True))
        progress.advance(len(batch))
        waiting[number] -= 1
        if waiting[number] == 0:
            yield parts[number], gathered.pop(number)


def _stored(
    log: PartLog, part: Part, requests: Requests, note: Callable[[str], None]
) -> pa.Table | None:
    """The part as it lies on disk, or None; one that is damaged or foreign is set aside."""
    try:
        table = log.parts.read(part.name)
        if table is None:
            return None
        table = log.conform(table, part.name)
        if np.array_equal(
            table["prompt_id"].to_numpy(), np.repeat(requests.prompt_ids(part), log.copies)
        ):
            return table
        reason = "it does not hold the prompts that this run plans for it"
    except ConnectionError as error:
        raise JudgeSenseError(f"cannot read {log.parts}/{part.name}: {error}") from error
    except (pa.ArrowInvalid, OSError, JudgeSenseError) as error:
        reason = str(error)
    aside = log.parts.set_aside(part.name)
    note(f"{part.name} is damaged ({reason}); set aside as {aside}, judging its prompts again")
    return None


def _say_what_it_can_cost(
    judge: Budgeted, parts: Sequence[Part], requests: Requests, note: Callable[[str], None]
) -> None:
    cost = 0.0
    for part in parts:
        estimate = judge.estimate(requests.take(list(part.requests)))
        if estimate is None:
            return
        cost += estimate
    if parts:
        note(f"at most ${cost:.2f} for {sum(sum(map(len, p.batches)) for p in parts)} prompts")


def _spent(table: pa.Table) -> float:
    """What a part's answers cost: each once, however many rows share it."""
    costs = zip(table["prompt_id"].to_pylist(), table["cost_usd"].to_pylist(), strict=True)
    return sum(cost for cost in dict(costs).values() if cost is not None)


def _failures(table: pa.Table) -> list[str]:
    """One line for each prompt of a part that has no answer: its id and why."""
    failed = table.filter(pc.is_valid(table["error"]))
    reasons = zip(failed["prompt_id"].to_pylist(), failed["error"].to_pylist(), strict=True)
    return [f"{identity}: {reason}" for identity, reason in dict(reasons).items()]


@contextmanager
def _ctrl_c() -> Iterator[threading.Event]:
    """An event set by the first Ctrl-C; a second one interrupts at once.

    Only the main thread may set handlers; elsewhere Ctrl-C is the caller's affair.
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
