"""What would settle a check that is open: how many items, or how many wordings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judgesense.decisions.streams import Stream, distinct, view
from judgesense.run_folder import read_run
from judgesense.statistics.settling import (
    Needed,
    error_of,
    items_for_estimate,
    smallest_difference,
)
from judgesense.text import number
from judgesense.trust.card import Check
from judgesense.trust.checks import same_polarity, trust_card
from judgesense.trust.compare import compare
from judgesense.trust.settle import Plan, steady_plan
from judgesense.trust.thresholds import Thresholds

PLANNED = ("steady", "right", "fair")
"""The checks that `plan_run` plans for."""


def plan_steady(stream: Stream, *, threshold: float, confidence_level: float = 0.95) -> Plan | None:
    """`steady_plan` of a stream's decided pairs over equivalent wordings of one polarity."""
    log, pairs = stream.log, stream.pairs
    used = same_polarity(stream) & stream.known
    used &= ~(log.undecided[stream.mapped_a] | log.undecided[stream.mapped_b])
    return steady_plan(
        stream.mapped_a[used] == stream.mapped_b[used],
        pairs.cluster[used],
        pairs.item[used],
        pairs.template_a[used],
        pairs.template_b[used],
        threshold=threshold,
        confidence_level=confidence_level,
    )


def plan_run(
    run_dir: str | Path, *, thresholds: Mapping[str, object] | None = None
) -> list[dict[str, Any]]:
    """For every judge and task of a run: what settles each check, and what the run could show.

    Args:
        run_dir: a run's folder.
        thresholds: of the checks, by name; those left out are the run's, or the defaults.

    Returns:
        One entry per judge, task, scoring and check of `PLANNED` that has an interval: ``judge``,
        ``task``, ``scoring``, ``check``, ``state``, ``estimate``, ``ci_low``, ``ci_high``,
        ``threshold``, ``n_items``, ``items``, ``items_low``, ``items_high``, ``wordings`` (numbers
        that settle it with 80% probability; None if it is settled, or if none does),
        ``smallest_difference`` (the distance from the threshold that a run like this settles with
        80% probability) and ``text``.

    Raises:
        JudgeSenseError: no decisions in the folder, or an unknown threshold.
    """
    run = read_run(Path(run_dir))
    limits = Thresholds().but(run.record.get("thresholds")).but(thresholds)
    found = []
    for stream in view(run.log, run.pairs, run.record).judged:
        card = trust_card(stream, thresholds=limits)
        for name in PLANNED:
            check = card.checks[name]
            if check.estimate is None or check.ci_low is None or check.ci_high is None:
                continue
            about = {"judge": stream.judge, "task": stream.task.name, "scoring": stream.scoring}
            found.append({**about, "check": name, **_check_plan(stream, name, check)})
    return found


def _check_plan(stream: Stream, name: str, check: Check) -> dict[str, Any]:
    assert check.estimate is not None
    assert check.ci_low is not None
    assert check.ci_high is not None
    k = distinct(stream.log.cluster[stream.rows])
    error = error_of(check.ci_low, check.ci_high, k)
    plan: Plan | None = None
    if check.state == "open":
        if name == "steady":
            plan = plan_steady(stream, threshold=check.threshold)
        elif error > 0:
            needed = items_for_estimate(check.estimate, error, k, threshold=check.threshold)
            plan = Plan(needed.scaled(check.n_items / k, least=check.n_items + 1))
    distance = smallest_difference(error, k)
    settled = {"pass": "settled: above the threshold", "fail": "settled: below the threshold"}
    text = plan.text(check.n_items) if plan else settled.get(check.state, "cannot be planned")
    text += f"; {check.n_items:,} items settle a distance of {number(distance)} from the threshold"
    items = plan.items if plan else Needed(None, None, None)
    return {
        "state": check.state,
        **{key: getattr(check, key) for key in ("estimate", "ci_low", "ci_high", "threshold")},
        "n_items": check.n_items,
        "items": items.clusters,
        "items_low": items.low,
        "items_high": items.high,
        "wordings": plan.wordings if plan else None,
        "smallest_difference": distance,
        "text": text,
    }


def plan_difference(a: str | Path, b: str | Path) -> list[dict[str, Any]]:
    """For every couple of judges of two runs: what shows their difference, and what these runs can.

    Args:
        a: folder of the first run.
        b: folder of the second run, or the first again.

    Returns:
        The entries of `judgesense.compare` that have an interval, with the keys ``items``,
        ``items_low``, ``items_high`` and ``text`` of `plan_run`. The plan is for the uncorrected
        interval of one difference.

    Raises:
        JudgeSenseError: as `judgesense.compare`.
    """
    found = []
    for entry in compare(a, b)["comparisons"]:
        if entry["smallest_difference"] is None:
            continue
        k, n_items = entry["n_clusters"], entry["n_items"]
        error = error_of(entry["ci_low"], entry["ci_high"], k)
        shown = entry["ci_low"] > 0 or entry["ci_high"] < 0
        items = Needed(None, None, None)
        text = "the interval excludes 0"
        if not shown:
            items = items_for_estimate(entry["difference"], error, k)
            items = items.scaled(n_items / k, least=n_items + 1)
            text = Plan(items).text(n_items)
        text += f"; {n_items:,} items show a difference of {number(entry['smallest_difference'])}"
        found.append({
            **entry, "items": items.clusters, "items_low": items.low, "items_high": items.high,
            "text": text,
        })  # fmt: skip
    return found
