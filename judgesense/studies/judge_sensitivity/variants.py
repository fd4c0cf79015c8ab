"""The open question `variants`: what other formats, orders, questions and interventions do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from judgesense.studies.common.result import Table
from judgesense.studies.judge_sensitivity.log import Judged

_IDS = ("judge", "scoring", "task")
_FIGURES = (
    "variant", "variant_class", "jss", "ci_low", "ci_high", "follows", "follows_ci_low",
    "follows_ci_high", "ratio", "shift_rate", "shift_ci_low", "shift_ci_high", "score_shift",
    "unreadable", "n_items",
)  # fmt: skip


def variant_results(run: Judged) -> tuple[Table, Table]:
    """Every variant beside the base wording, and the variance budget of each judge and task.

    Both tables are empty for a run without variants.
    """
    return (
        Table.from_records(
            "variants", "Variants beside the base wording", list(_rows(run, "variants", _FIGURES)),
            "JSS: equivalent variants, and `all equivalent` with the rewordings. Follows: how "
            "often the raw answer changes under a contrast; ratio: that rate over the one of "
            "rewording. Shift: the verdicts that an intervention changes, never a JSS; score "
            "shift in levels. 95% intervals, clustered.",
            variant_class="class", follows_ci_low="low", follows_ci_high="high",
            shift_rate="shift", shift_ci_low="low", shift_ci_high="high",
        ),
        Table.from_records(
            "variance_budget", "Where the variance of a verdict comes from",
            list(_rows(run, "variance_budget",
                       ("source", "variance", "ci_low", "ci_high", "noise_share", "n_pairs"))),
            "Nominal labels: the chance that two verdicts differ; scales: squared levels. Noise is "
            "everything but the item.",
            noise_share="share of the noise",
        ),
    )  # fmt: skip


def _rows(run: Judged, listed: str, names: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The rows of a list of the report, in the cases' order and under their short names."""
    short = {case.stream.judge: case.judge for case in run.cases}
    order = [(case.stream.judge, case.scoring, case.task) for case in run.cases]
    rows = [row for row in run.report[listed] if row["judge"] in short]
    for row in sorted(rows, key=lambda row: order.index(tuple(row[name] for name in _IDS))):
        own = {name: row[name] for name in names}
        if listed == "variants":
            own["variant"] = row["variant"] or "all equivalent"
        yield {"judge": short[row["judge"]], "scoring": row["scoring"], "task": row["task"], **own}
