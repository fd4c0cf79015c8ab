"""Does a judge still give the verdicts that it gave? A look a week, as long as you like."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.run_folder.record import now
from judgesense.statistics.intervals import wilson_cluster
from judgesense.statistics.monitoring import POWER, TARGET, MonitorPlan, plan_monitor, watch
from judgesense.statistics.result import ResultMapping, data_frame, html_table
from judgesense.systems.migration import reworded_excess
from judgesense.systems.monitor_history import (
    SCHEMA_VERSION,
    Look,
    SameItems,
    StreamLook,
    locked,
    read_history,
    require_same_rules,
    write_history,
)
from judgesense.systems.shared_prompts import (
    SharedPrompts,
    grouped,
    notes_on,
    read_tasks,
    shared_prompts,
)
from judgesense.text import brackets, percent, s, signed

Status = Literal["fine", "alarm", "cannot tell"]

TOLERANCE = 0.05
"""Excess over rewording, as a share of verdicts, that a look must rule out to be fine."""

_WORST: tuple[Status, ...] = ("alarm", "cannot tell", "fine")


@dataclass(frozen=True)
class LookFigures:
    """A look in the history: what moved, and log10 of the evidence so far."""

    look: int
    at: str
    run: str
    judge: str
    moved: float
    reworded: float
    log10_evidence: float


@dataclass(frozen=True)
class TaskMonitoring:
    """What is known of one task and scoring at the last look.

    ``alarm`` says that verdicts have moved more than rewording moves them since some look; the
    chance of a false one, at any look, is at most ``error``. ``alarm_look`` is the look of the
    alarm, counted from 1, ``since_look`` the one from which on the evidence is strongest and
    ``excess_low`` a lower bound of the excess since then. ``fine`` says that this look's excess
    lies below ``tolerance``; it is wrong in at most 5% of looks. ``ci_low`` and ``ci_high`` are
    this look's, each wrong in at most 5%. ``n_new`` are clusters of items that no earlier look had.
    ``plan`` says how likely looks like this one find an update; None after an alarm, and if items
    that come again, or one label, add no evidence.
    """

    task: str
    scoring: str
    status: Status
    text: str
    error: float
    tolerance: float
    allow: float | None
    moved: float
    reworded: float
    excess: float
    ci_low: float | None
    ci_high: float | None
    n_prompts: int
    n_items: int
    n_new: int
    alarm_look: int | None
    alarm_run: str | None
    since_look: int
    excess_low: float
    log10_limit: float
    plan: MonitorPlan | None
    looks: tuple[LookFigures, ...]


@dataclass(frozen=True, eq=False)
class Monitoring(ResultMapping):
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
        return {"fine": 0, "alarm": 1, "cannot tell": 3}[self.status]

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
        known = "" if self.recorded else " (this run adds none)"
        lines.append(
            f"{self.n_looks} look{s(self.n_looks)} in {self.history}{known}. The "
            f"chance of a false alarm at any of them is at most {percent(self.error)}."
        )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return html_table((), [(line,) for line in str(self).splitlines()])


def monitor(
    run: str | Path,
    *,
    against: str | Path,
    history: str | Path | None = None,
    judge: str | tuple[str, str] | None = None,
    task: str | None = None,
    tolerance: float = TOLERANCE,
    error: float = 0.05,
    allow: float | None = None,
    same_items: SameItems = "once",
    record: bool = True,
) -> Monitoring:
    """Look whether a judge still gives the verdicts of a baseline, as often as you like.

    The run's verdicts are compared with the baseline's on the same prompts. The excess is the share
    that moved minus the share that rewording moves in the baseline. A betting test
    (`judgesense.statistics.monitoring`) asks at each look whether the excess has been above 0 since
    that look or an earlier one. A false alarm at any look has a probability of at most ``error``.

    Args:
        run: folder of this look's run, or its file of verdicts.
        against: folder of the baseline, or its file; it needs at least two wordings, the run only
            those that you use.
        history: the JSONL file of all looks; by default ``monitor.jsonl`` in the baseline's folder,
            or beside its file.
        judge: the judge, if a source has several; two names (run, baseline) if they differ.
        task: one task; None for all that both have.
        tolerance: a look is fine if its excess lies below this share of verdicts.
        error: the chance of a false alarm, at all looks and tasks together.
        allow: the share of verdicts that may move, in place of rewording; for a baseline with one
            wording.
        same_items: ``once``, an item counts once for each look that a change may date from, and
            the alarm is about items like these; ``each``, it counts at every look, and the alarm is
            about these items only.
        record: whether to add the look to the history.

    Returns:
        The state after this look. A run that the history has already is not counted again.

    Raises:
        JudgeSenseError: sources that cannot be compared (as `migration`), a baseline with one
            wording and no ``allow``, or a history that is damaged, of a newer version, of another
            baseline or of other rules.

    >>> import tempfile
    >>> from judgesense.pipeline import run
    >>> def yes(messages):
    ...     return ["YES" for _ in messages]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("baseline", "week-1"):
    ...         _ = run(yes, tasks=["factuality"], limit=5, out=f"{folder}/{name}", note=str)
    ...     found = monitor(f"{folder}/week-1", against=f"{folder}/baseline")
    >>> found.tasks[0].moved
    0.0
    """
    _check(tolerance, error, allow, same_items)
    names = (judge, judge) if judge is None or isinstance(judge, str) else judge
    baseline = read_tasks(against, names[1], reference=True)
    tests = len(baseline)
    judged = read_tasks(run, names[0], task)
    if task is not None:
        baseline = [each for each in baseline if each.table.task in (task, "")] or baseline
    shared = shared_prompts(baseline, judged)
    base = Path(against)
    path = base.with_name(f"{base.stem}.monitor.jsonl")
    if history is not None:
        path = Path(history)
    elif base.is_dir():
        path = base / "monitor.jsonl"
    look = Look(
        schema=SCHEMA_VERSION,
        at=now(),
        run=Path(run).resolve().name,
        digest=_digest(Path(run), judged[0].digest),
        baseline=baseline[0].digest,
        tests=tests,
        error=error,
        allow=allow,
        same_items=same_items,
        streams=[_stream_look(each, allow) for each in shared],
    )
    with locked(path) if record else nullcontext():
        looks = read_history(path)
        require_same_rules(path, looks, look)
        known = any(each.digest == look.digest for each in looks)
        looks += [] if known else [look]
        if record and not known:
            write_history(path, looks)
    tasks = tuple(
        _state(stream, looks, tolerance, _wordings(each, allow))
        for stream, each in zip(look.streams, shared, strict=True)
    )
    statuses = {each.status for each in tasks}
    return Monitoring(
        status=next(status for status in _WORST if status in statuses),
        tasks=tasks,
        notes=notes_on(shared, same_judge=False),
        n_looks=len(looks),
        history=str(path),
        recorded=record and not known,
        error=error,
    )


def _check(tolerance: float, error: float, allow: float | None, same_items: str) -> None:
    for name, value in (("tolerance", tolerance), ("allow", allow)):
        if value is not None and not 0 <= value < 1:
            raise JudgeSenseError(f"{name} is {value!r}; pass a number from 0 to 1")
    if not 0 < error <= 0.5:
        raise JudgeSenseError(f"error is {error!r}; pass a number above 0, such as 0.05")
    if same_items not in ("once", "each"):
        raise JudgeSenseError(f"same_items is {same_items!r}; pass 'once' or 'each'")


def _digest(run: Path, digest: str) -> str:
    """What identifies a look's run. A steady judge may fill two files with the same verdicts."""
    if run.is_dir():
        return digest
    return f"{digest[:32]}-{run.stat().st_mtime_ns}-{run.name}"


def _stream_look(shared: SharedPrompts, allow: float | None) -> StreamLook:
    """This look's figures of a task."""
    moved = float(shared.moved.mean())
    low = high = None
    if allow is None:
        found = reworded_excess(shared, 0.05)
        if found is None or found.other is None or found.excess is None:
            raise JudgeSenseError(
                f"{shared.task}: the baseline {shared.before.table.source} has one wording, so "
                "rewording is not measured; judge it under at least two wordings, or set --allow "
                "to the share of verdicts that may move"
            )
        share, excess, low, high = found.other, found.excess, found.low, found.high
    else:
        ends = wilson_cluster(shared.moved, shared.clusters.tolist(), 0.9)
        share, excess = allow, moved - allow
        low = None if ends.low is None else ends.low - allow
        high = None if ends.high is None else ends.high - allow
    by_cluster = grouped(shared.clusters, shared.moved)
    reworded = grouped(shared.clusters[shared.pair_row], shared.pair_differs)
    return StreamLook(
        task=shared.task,
        scoring=shared.scoring,
        judge=shared.after.table.judge,
        clusters={
            cluster: (
                float(np.mean(rows)),
                float(np.mean(reworded[cluster])) if allow is None else allow,
            )
            for cluster, rows in by_cluster.items()
        },
        n_prompts=len(shared.moved),
        n_items=len(set(shared.items)),
        moved=moved,
        reworded=share,
        excess=excess,
        ci_low=low,
        ci_high=high,
        one_label=shared.one_label,
    )


def _wordings(shared: SharedPrompts, allow: float | None) -> float:
    """Wordings of an item in the baseline; infinite where an allowed share replaces them."""
    return float("inf") if allow is not None else 1 + len(shared.pair_row) / len(shared.moved)


def _state(
    now_: StreamLook, looks: Sequence[Look], tolerance: float, wordings: float
) -> TaskMonitoring:
    """Replay the history of one task and scoring."""
    history = [
        (number, look, stream)
        for number, look in enumerate(looks, 1)
        for stream in look.streams
        if (stream.task, stream.scoring) == (now_.task, now_.scoring)
    ]
    rules = looks[-1]
    error = rules.error / rules.tests
    excesses = [[a - b for a, b in stream.clusters.values()] for _, _, stream in history]
    ids = [list(stream.clusters) for _, _, stream in history]
    found = watch(excesses, None if rules.same_items == "each" else ids, error=error)
    last = history[-1][2]
    earlier = {cluster for _, _, stream in history[:-1] for cluster in stream.clusters}
    alarm = None if found.alarm is None else history[found.alarm]
    status: Status = "cannot tell"
    if alarm is not None:
        status = "alarm"
    elif last.ci_high is not None and last.ci_high < tolerance and not last.one_label:
        status = "fine"
    ln10 = float(np.log(10))
    n_new = len(last.clusters.keys() - earlier)
    plan = None
    if alarm is None and not last.one_label and (n_new or rules.same_items == "each"):
        clusters = len(last.clusters)
        plan = plan_monitor(clusters, min(last.reworded, 1 - TARGET), wordings, error=error).scaled(
            last.n_items / clusters
        )
    state = TaskMonitoring(
        task=last.task,
        scoring=last.scoring,
        status=status,
        text="",
        error=error,
        tolerance=float(tolerance),
        allow=rules.allow,
        moved=last.moved,
        reworded=last.reworded,
        excess=last.excess,
        ci_low=last.ci_low,
        ci_high=last.ci_high,
        n_prompts=last.n_prompts,
        n_items=last.n_items,
        n_new=n_new,
        alarm_look=None if alarm is None else alarm[0],
        alarm_run=None if alarm is None else alarm[1].run,
        since_look=history[found.since][0],
        excess_low=found.low,
        log10_limit=found.log_limit / ln10,
        plan=plan,
        looks=tuple(
            LookFigures(
                n, look.at, look.run, stream.judge, stream.moved, stream.reworded,
                float(log) / ln10,
            )
            for (n, look, stream), log in zip(history, found.log_evidence, strict=True)
        ),
    )  # fmt: skip
    return replace(state, text=_text(state, rules, last.one_label))


def _text(state: TaskMonitoring, rules: Look, one_label: bool) -> str:
    """The status of a task in one or two sentences, with its figures."""
    other = "allowed" if rules.allow is not None else "rewording"
    figures = (
        f"this look moved {percent(state.moved)} of {state.n_prompts} verdicts on "
        f"{state.n_items} items, {other} {percent(state.reworded)}; difference "
        f"{signed(state.excess)} {brackets(state.ci_low, state.ci_high, signed)}"
    )
    beyond = "is allowed" if rules.allow is not None else "rewording moves them"
    if state.status == "alarm":
        lower = ""
        if state.excess_low > 0:
            lower = f", by at least {signed(state.excess_low)}"
        return (
            f"{state.task}: alarm since look {state.alarm_look} ({state.alarm_run}): verdicts have "
            f"moved more than {beyond} from look {state.since_look} on{lower} ({figures})."
        )
    planned = "" if state.plan is None else f" {_plan_text(state.plan, rules.allow is not None)}"
    if state.status == "fine":
        return f"{state.task}: fine, below {signed(state.tolerance, 2)} ({figures}).{planned}"
    text = (
        f"{state.task}: cannot tell whether verdicts have moved by {signed(state.tolerance, 2)} "
        f"({figures}); no alarm so far."
    )
    if one_label:
        return (
            f"{text} All verdicts are one label, and a judge that does not read would move as "
            "little: add items with another label."
        )
    text += " Add items to the next look."
    if rules.same_items == "once" and len(state.looks) > 1 and not state.n_new:
        text += (
            " All its items were in earlier looks: draw each look's items from a larger baseline, "
            "so that evidence adds up."
        )
    return text + planned


def _plan_text(plan: MonitorPlan, allowed: bool) -> str:
    """How likely looks like this one find an update, and what would make it likely enough."""
    than = "is allowed" if allowed else "rewording does"
    text = (
        f"An update that moves {percent(plan.beyond)} of verdicts more than {than} would raise the "
        f"alarm within {plan.looks} such looks, each at other items, with a probability of "
        f"{percent(plan.chance)}"
    )
    needed = [] if plan.items_needed is None else [f"{plan.items_needed} items a look"]
    if plan.wordings_needed is not None:
        needed.append(f"{plan.wordings_needed} wordings in the baseline")
    return text + (f"; {' or '.join(needed)} would make it {percent(POWER)}." if needed else ".")
