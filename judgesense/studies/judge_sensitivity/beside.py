"""The published figures beside a run's: those of the second version, then those of the first."""

from __future__ import annotations

from collections.abc import Iterator

from judgesense import published
from judgesense.published import PublishedFigure
from judgesense.studies.judge_sensitivity.log import Judged

HERE, SECOND, FIRST = "here", "published v2", "published v1 (withdrawn)"
"""Where a row was measured."""

PAPER = "judge-sensitivity"

V1_ROWS = (
    "They count each pair once in each of three runs, and their intervals treat these rows as "
    "independent."
)


def published_figures(task: str, labels: str = "raw") -> list[PublishedFigure]:
    """The nine judges' figures on a task, the highest JSS first."""
    nine = published.paper_judges()
    found = [f for f in published.figures() if (f.task, f.labels) == (task, labels)]
    return sorted((f for f in found if f.judge in nine), key=lambda f: -f.jss)


def v2_figures(task: str) -> list[PublishedFigure]:
    """The figures of the second version on a task, the highest JSS first."""
    return sorted((f for f in published.v2_figures() if f.task == task), key=lambda f: -f.jss)


def same_wordings(judged: Judged) -> bool:
    """Whether a run judged the wordings of the published (v1) pairs."""
    used = {name for case in judged.cases for side in case.stream.templates for name in side}
    return bool(used) and all(map(published.is_published_wording, used))


def beside_note(judged: Judged, v2: bool = True) -> str:
    """What to know of the published rows; ``v2`` if the table has some of the second version."""
    version_2 = (
        f"`{SECOND}` rows: three judges, about 245 items per task, {published.WORDINGS}, mapped "
        "decisions. "
        if v2
        else ""
    )
    how = (
        "measured on the same pairs"
        if same_wordings(judged)
        else f"{published.WORDINGS}: compare their size, not their values"
    )
    return (
        f"{version_2}`{FIRST}` rows: the authors withdrew this version in August 2026 and advise "
        f"against using it; {how}. {V1_ROWS}"
    )


def published_ids(figure: PublishedFigure) -> dict[str, str]:
    """The first columns of a published row: judge, measured, scoring and task."""
    measured = FIRST if figure.version == published.V1 else SECOND
    return {
        "judge": figure.judge, "measured": measured, "scoring": "generate", "task": figure.task,
    }  # fmt: skip


def by_judge(judged: Judged) -> Iterator[PublishedFigure]:
    """The published figures on a run's tasks: v2's, then v1's, the most coherent judge first."""
    for leader in v2_figures("coherence"):
        own = (f for task in judged.tasks for f in v2_figures(task))
        yield from (figure for figure in own if figure.judge == leader.judge)
    by_task = {task: {f.judge: f for f in published_figures(task)} for task in judged.tasks}
    for leader in published_figures("coherence"):
        yield from (own[leader.judge] for own in by_task.values() if leader.judge in own)
