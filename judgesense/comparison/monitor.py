"""Does a judge still give the verdicts that it gave? A look a week, as long as you like.

The history of a monitored judge is a JSONL file with one line for each look.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from judgesense.comparison.monitor_history import (
    SCHEMA_VERSION,
    Look,
    StreamLook,
    read_history,
    require_same_rules,
)
from judgesense.comparison.paired import grouped
from judgesense.comparison.verdict_changes import (
    EXIT_CODES,
    PromptChanges,
    VerdictChanges,
    notes_on,
    prompt_changes,
    read_tasks,
    require_rules,
    worst,
)
from judgesense.files.disk import sha256_of, writing
from judgesense.log.folder import digests_of, read_record
from judgesense.log.record import now
from judgesense.statistics.monitoring import watch
from judgesense.statistics.result import TextResult, data_frame
from judgesense.statistics.updates import NOISE_FACTOR
from judgesense.text import percent, plural_s, signed

Status = Literal["fine", "alarm", "cannot tell"]

TOLERANCE = 0.05
"""Excess over rewording, as a share of verdicts, that a look must rule out to be fine."""


@dataclass(frozen=True)
class LookFigures:
    """A look in the history: what moved, and log10 of the evidence so far."""

    look: int
    at: str
    run: str
    judge: str
    moved: float
    reworded: float | None
    log10_evidence: float


@dataclass(frozen=True)
class TaskMonitoring(VerdictChanges):
    """What is known of one task and scoring at the last look.

    ``alarm`` says that verdicts have moved more than rewording moves them since some look; the
    chance of a false one, at any look, is at most ``error``. ``alarm_look`` is the look of the
    alarm, counted from 1, ``since_look`` the one from which on the evidence is strongest and
    ``excess_low`` a lower bound of the excess since then. ``fine`` says that this look's excess
    lies below ``tolerance``; it is wrong in at most 5% of looks. ``ci_low`` and ``ci_high`` are
    this look's, each wrong in at most 5%. ``n_new`` are clusters of items that no earlier look had.
    """

    text: str
    tolerance: float
    error: float
    status: Status
    n_new: int
    alarm_look: int | None
    alarm_run: str | None
    since_look: int
    excess_low: float
    log10_limit: float
    looks: tuple[LookFigures, ...]


@dataclass(frozen=True, eq=False)
class Monitoring(TextResult):
    """A monitored judge after a look.

    ``status`` is the worst of the tasks': ``alarm``, then ``cannot tell``, then ``fine``.
    ``recorded`` is False if the history had this run already, or ``record`` was False.
    """

    status: Status
    tasks: tuple[TaskMonitoring, ...]
    notes: tuple[str, ...]
    n_looks: int
    history: str
    recorded: bool
    error: float

    @property
    def exit_code(self) -> int:
        """0 for ``fine``, 1 for ``alarm``, 3 for ``cannot tell``."""
        return EXIT_CODES[self.status]

    def to_pandas(self) -> Any:
        """All looks as a `pandas.DataFrame`, one row for each task and look."""
        return data_frame(
            [
                {"task": task.task, "scoring": task.scoring, **look.__dict__}
                for task in self.tasks
                for look in task.looks
            ]
        )

    def __str__(self) -> str:
        lines = [*(task.text for task in self.tasks), *(f"Note: {note}." for note in self.notes)]
        addition = "" if self.recorded else "; this run was not added"
        looks = f"{self.n_looks} look{plural_s(self.n_looks)}"
        lines.append(
            f"{self.history} has {looks}{addition}. The chance of a false alarm at any look is "
            f"at most {percent(self.error)}, unless the baseline's items were chosen by its "
            "verdicts, or its repeats share a seed that a look does not."
        )
        return "\n".join(lines)


def monitor(
    run: str | Path,
    *,
    against: str | Path,
    history: str | Path | None = None,
    judge: str | Sequence[str] | None = None,
    task: str | None = None,
    tolerance: float = TOLERANCE,
    error: float = 0.05,
    record: bool = True,
) -> Monitoring:
    """Look whether a judge still gives the verdicts of a baseline, as often as you like.

    The run's verdicts are compared with the baseline's on the same prompts. The excess is the share
    that moved minus the share that rewording moves in the baseline. A betting test
    (`judgesense.statistics.monitoring`) asks at each look whether the excess has been above 0 since
    that look or an earlier one. What changed beyond noise counts: where asking the baseline's
    prompts again (its repeats) changes more than rewording, that is subtracted; without repeats,
    twice what rewording changes, which is the most that noise alone can change. A false alarm at
    any look has a probability of at most ``error``.

    Args:
        run: folder of this look's run, or its file of verdicts.
        against: folder of the baseline, or its file. With one wording, what rewording moves is
            unmeasured, and the status is ``cannot tell``; the run needs only those that you use.
        history: the JSONL file of all looks; by default ``monitor.jsonl`` in the baseline's folder,
            or beside its file.
        judge: the judge, if a source has several; two names (run, baseline) if they differ.
        task: one task; None for all that both have.
        tolerance: a look is fine if its excess lies below this share of verdicts.
        error: the chance of a false alarm, at all looks and tasks together.
        record: whether to add the look to the history.

    Returns:
        The state after this look. A run that the history has already is not counted again.

    Raises:
        JudgeSenseError: sources that cannot be compared (as `migration`), or a history that is
            damaged, of a newer version, of another baseline or of other rules.

    >>> import tempfile
    >>> from judgesense.pipeline import run
    >>> def yes(messages):
    ...     return ["YES" for _ in messages]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("baseline", "week-1"):
    ...         _ = run(yes, tasks=["factuality"], limit=5, out=f"{folder}/{name}", note=str)
    ...     state = monitor(f"{folder}/week-1", against=f"{folder}/baseline")
    >>> state.tasks[0].moved
    0.0
    """
    one, two = require_rules(tolerance, error, judge)
    baseline, judged = read_tasks(against, two, reference=True), read_tasks(run, one, task)
    tests = len(baseline)
    if task is not None:
        baseline = [each for each in baseline if each.task in (task, "")] or baseline
    changes = prompt_changes(baseline, judged)
    base, run_path = Path(against), Path(run)
    path = base / "monitor.jsonl" if base.is_dir() else base.with_name(f"{base.stem}.monitor.jsonl")
    if history is not None:
        path = Path(history)
    digest = _digest(run_path)
    if run_path.is_file():
        # A steady judge may fill two files with the same verdicts.
        digest = f"{digest[:32]}-{run_path.stat().st_mtime_ns}-{run_path.name}"
    look = Look(
        schema=SCHEMA_VERSION,
        at=now(),
        run=run_path.resolve().name,
        digest=digest,
        baseline=_digest(base),
        tests=tests,
        error=error,
        streams=[_stream_look(each) for each in changes],
    )
    looks = read_history(path)
    require_same_rules(path, looks, look)
    is_known = any(each.digest == look.digest for each in looks)
    if not is_known:
        looks.append(look)
        if record:
            with writing(path.parent):
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("a", encoding="utf-8") as lines:
                    lines.write(look.model_dump_json(by_alias=True) + "\n")
    tasks = tuple(_state(stream, looks, tolerance) for stream in look.streams)
    return Monitoring(
        status=worst(each.status for each in tasks),
        tasks=tasks,
        notes=notes_on(changes, same_judge=False),
        n_looks=len(looks),
        history=str(path),
        recorded=record and not is_known,
        error=error,
    )


def _digest(source: Path) -> str:
    """What identifies the contents of a run's folder or a file of verdicts."""
    if not source.is_dir():
        return sha256_of(source)
    digests = (read_record(source) or {}).get("digests") or digests_of(source)
    return hashlib.sha256(repr(sorted(digests.items())).encode()).hexdigest()


def _stream_look(changes: PromptChanges) -> StreamLook:
    """This look's figures of a task."""
    table, names = changes.table, changes.table.column("cluster")
    moved = grouped(names, table.is_changed)
    # Without a second wording nothing is evidence: what changed is compared with itself.
    reworded = moved
    if len(changes.pair_row):
        reworded = grouped(names[changes.pair_row], changes.pair_differs)
    return StreamLook(
        **vars(changes.figures(changes.beyond_rewording(0.05))),
        judge=table.after.judge,
        clusters={
            cluster: (float(np.mean(rows)), float(np.mean(reworded[cluster])))
            for cluster, rows in moved.items()
        },
        one_label=changes.is_one_label,
        asked_again={
            cluster: float(np.mean(differs))
            for cluster, differs in grouped(*changes.repeats).items()
        },
    )


def _beyond_noise(stream: StreamLook) -> list[float]:
    """How much more a look changed than rewording or noise, by cluster.

    The mean is at most 0 both where the update is one more rewording and where it is noise alone.
    """
    beyond = []
    for cluster, (moved, reworded) in stream.clusters.items():
        again = stream.asked_again.get(cluster)
        other = NOISE_FACTOR * reworded if again is None else max(reworded, again)
        beyond.append(moved - other)
    return beyond


def _state(current: StreamLook, looks: Sequence[Look], tolerance: float) -> TaskMonitoring:
    """Replay the history of one task and scoring."""
    name = current.task, current.scoring
    numbers, runs, streams = zip(
        *(
            (number, look, stream)
            for number, look in enumerate(looks, 1)
            for stream in look.streams
            if (stream.task, stream.scoring) == name
        ),
        strict=True,
    )
    error = looks[-1].error / looks[-1].tests
    # The test needs numbers within [-1, 1].
    has_repeats = all(stream.asked_again.keys() >= stream.clusters.keys() for stream in streams)
    scale = 1.0 if has_repeats else NOISE_FACTOR
    excesses = [np.array(_beyond_noise(stream)) / scale for stream in streams]
    test = watch(excesses, [list(stream.clusters) for stream in streams], error=error)
    last = streams[-1]
    earlier = {cluster for stream in streams[:-1] for cluster in stream.clusters}
    status: Status = "cannot tell"
    if test.alarm is not None:
        status = "alarm"
    elif last.ci_high is not None and last.ci_high < tolerance and not last.one_label:
        status = "fine"
    evidence = (test.log_evidence / math.log(10)).tolist()
    state = TaskMonitoring(
        **last.model_dump(exclude={"judge", "clusters", "one_label", "asked_again"}),
        status=status,
        text="",
        error=error,
        tolerance=float(tolerance),
        n_new=len(last.clusters.keys() - earlier),
        alarm_look=None if test.alarm is None else numbers[test.alarm],
        alarm_run=None if test.alarm is None else runs[test.alarm].run,
        since_look=numbers[test.since],
        excess_low=scale * test.low,
        log10_limit=test.log_limit / math.log(10),
        looks=tuple(
            LookFigures(n, look.at, look.run, stream.judge, stream.moved, stream.reworded, log)
            for n, look, stream, log in zip(numbers, runs, streams, evidence, strict=True)
        ),
    )
    return replace(state, text=_text(state, last.one_label, has_repeats))


def _text(state: TaskMonitoring, one_label: bool, has_repeats: bool) -> str:
    """The status of a task in one or two sentences, with its figures."""
    share = f"less than {percent(state.tolerance)} of verdicts changed beyond rewording"
    advice = ""
    if state.status == "alarm":
        lower = f", by at least {signed(state.excess_low)}" if state.excess_low > 0 else ""
        status = (
            f"alarm since look {state.alarm_look} ({state.alarm_run}). From look "
            f"{state.since_look} on, more verdicts changed than rewording or noise changes{lower}"
        )
    elif state.status == "fine":
        status = f"fine: {share}"
    else:
        status = f"no alarm so far, but it is unclear whether {share}"
        advice = f" {_advice(state, one_label, has_repeats)}"
    return f"{state.task}: {status}. Now {state.moved_text}. {state.rewording_text}{advice}"


def _advice(state: TaskMonitoring, one_label: bool, has_repeats: bool) -> str:
    """What would show whether the judge still gives its verdicts."""
    if state.reworded is None:
        return "Judge the baseline under a second wording to measure what rewording changes."
    if one_label:
        return (
            "All verdicts are one label, and a judge that ignores the items would change as few. "
            "Add items with another label."
        )
    advice = "Add items to the next look."
    if not has_repeats:
        advice += " Judge the baseline with --repeats 2 to measure noise."
    if len(state.looks) > 1 and not state.n_new:
        advice += (
            " Earlier looks had all of these items. Draw each look's items from a larger baseline, "
            "so that the evidence adds up."
        )
    return advice
