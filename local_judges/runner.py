"""Run a judge over prompts: ask each distinct prompt once and write the log part by part.

The runner drives a :class:`~local_judges.protocol.Judge` and knows nothing about its engine. The
parts are planned before the first prompt is asked, and `local_judges.parts` asks and writes them,
so that a run can be interrupted at any time and resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.log.schema import PARTS
from local_judges.journal import Journal
from local_judges.outcome import JudgeOutcome, merge_outcomes
from local_judges.parts import Note, answers_alone, ask_parts, set_aside_unplanned, watching
from local_judges.plan import Requests, plan_parts
from local_judges.protocol import Answer, Budgeted, Judge, Request, Watch
from local_judges.rows import decision_log

if TYPE_CHECKING:
    from local_judges.ranks import Ranks


def run_judge(
    judge: Judge,
    benchmark: Benchmark,
    out: Path,
    scorings: Sequence[str],
    *,
    judge_index: int = 0,
    repeats: int = 1,
    seed: int = 0,
    ranks: Ranks | None = None,
    begin: Callable[[], None] = lambda: None,
    note: Note = lambda _: None,
    known: Mapping[str, Answer] = MappingProxyType({}),
    retries: bool = True,
) -> JudgeOutcome:
    """Judge the prompts of a benchmark that are not judged yet, and write the decision log.

    Args:
        judge: the judge.
        benchmark: the prompts.
        out: the run's folder.
        scorings: ``generate``, ``options`` or both.
        judge_index: the position of the judge among the judges of the run.
        repeats: how often each prompt is asked.
        seed: shuffles the batches of the later repeats.
        ranks: the processes that share the run, if several do; each judges its share of the parts.
        begin: called once the parts are planned, before the first prompt is asked.
        note: receives messages for the user, such as a part that was set aside.
        known: answers by prompt id, to prompts that need not be asked the first time.
        retries: ask again the prompts that failed in an earlier start.

    Returns:
        The counts of the whole run, in every process.

    Raises:
        local_judges.parts.Interrupted: after Ctrl-C, once the parts in progress are written.
        JudgeSenseError: if the judge lacks a scoring or the folder cannot be written.

    >>> import tempfile
    >>> from judgesense_dataset.embedded import load_embedded
    >>> from local_judges.callable_judge import CallableJudge
    >>> judge = CallableJudge(lambda messages: ["A"] * len(messages), name="always-a")
    >>> benchmark = load_embedded().select(["relevance"], limit=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     outcome = run_judge(judge, benchmark, Path(folder), ["generate"])
    >>> outcome.judged, outcome.failed
    (16, [])
    """
    scoring_set = frozenset(scorings)
    require_scorings(judge.name, judge.scorings, scoring_set)
    requests = Requests(benchmark.asked)
    parts = plan_parts(
        judge, requests, scoring_set, judge_index=judge_index, repeats=repeats, seed=seed
    )
    folder = out / PARTS
    log = decision_log(
        folder,
        judge.name,
        requests,
        benchmark.prompts,
        scorings,
        benchmark.aliases,
        benchmark.fields,
    )
    if ranks is not None:
        ranks.require_same(judge.name, parts)
    begin()
    if ranks is None or ranks.rank == 0:
        set_aside_unplanned(folder, parts, judge_index, note)
    share = parts if ranks is None else parts[ranks.rank :: ranks.size]
    if ranks is None and answers_alone(judge):
        # Journals of another plan; with several processes they may be in use.
        leftover = Journal(folder, judge.name, scoring_set).unplanned_answers(
            part.name for part in parts
        )
        known = {**leftover, **known}
    outcome = ask_parts(judge, requests, share, scoring_set, log, note, known, retries)
    if ranks is None:
        return outcome
    shares = ranks.gather(outcome)
    outcome = merge_outcomes(shares)
    outcome.seconds = max(share.seconds for share in shares)
    return outcome


def require_scorings(judge: str, offered: Collection[str], wanted: Collection[str]) -> None:
    """Raise JudgeSenseError if the judge of that name lacks one of the scorings."""
    if missing := sorted(set(wanted) - set(offered)):
        raise JudgeSenseError(
            f"judge {judge} does not support {', '.join(missing)} scoring; it supports "
            f"{', '.join(sorted(offered))}"
        )


def ask_all(
    judge: Judge,
    requests: Sequence[Request],
    scorings: Collection[str],
    is_admitted: bool = False,
    known: Mapping[str, Answer] = MappingProxyType({}),
    watch: Watch | None = None,
) -> list[Answer]:
    """Ask all requests at once, without a log; returns the answers in the order of the requests.

    With ``is_admitted`` the judge's budget has already been asked. ``known`` are answers by prompt
    id that need not be asked for, and ``watch`` is told of the others as they come.

    Raises JudgeSenseError, before anything is asked, if the requests could exceed the judge's
    budget.

    >>> from local_judges.callable_judge import CallableJudge
    >>> judge = CallableJudge(lambda messages: [message.upper() for message in messages])
    >>> ask_all(judge, [Request("1", "yes", ("YES", "NO"))], ["generate"])[0].text
    'YES'
    """
    if not is_admitted and isinstance(judge, Budgeted) and (reason := judge.admit(requests)):
        raise JudgeSenseError(f"judge {judge.name}: {reason}")
    scoring_set = frozenset(scorings)
    known_answers = enumerate(known.get(request.prompt_id) for request in requests)
    answers = {index: answer for index, answer in known_answers if answer is not None}
    open_indices = [index for index in range(len(requests)) if index not in answers]
    open_requests = [requests[index] for index in open_indices]
    plan = judge.plan(open_requests, scoring_set) if open_requests else []
    batches = ((number, [open_requests[i] for i in batch]) for number, batch in enumerate(plan))
    with watching(judge, watch):
        for number, batch in judge.judge(batches, scoring_set):
            answers.update(zip((open_indices[i] for i in plan[number]), batch, strict=True))
    return [answers[index] for index in range(len(requests))]
