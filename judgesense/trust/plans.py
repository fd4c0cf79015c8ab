"""What would settle a check that is open: how many items, or how many wordings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from judgesense.decisions.view import Stream, distinct, view
from judgesense.errors import JudgeSenseError
from judgesense.run_folder.folder import read_run
from judgesense.statistics.planning import (
    PROBABILITY,
    Needed,
    error_of,
    items_for_estimate,
    items_for_share,
    smallest_difference,
)
from judgesense.statistics.share_design import ShareDesign
from judgesense.text import interval, number, percent, signed
from judgesense.trust.card import Check
from judgesense.trust.checks import trust_card
from judgesense.trust.compare import compare
from judgesense.trust.sample_size import Plan
from judgesense.trust.thresholds import Thresholds
from judgesense.trust.wordings import Wordings

PLANNED = ("steady", "right", "fair")
"""The checks that `plan_run` plans for."""


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
    for stream in view(run.figures, run.pairs, run.record).judged:
        mislabelled = Wordings.of(stream).mislabelled
        card = trust_card(stream, thresholds=limits, mislabelled=mislabelled)
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
            plan = Plan.of(check.details) if "items_needed" in check.details else None
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
    """For every pair of judges of two runs: what shows their difference, and what these runs can.

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


def plan_assumed(
    *,
    jss: float | None = None,
    fair: float | None = None,
    kappa: float | None = None,
    difference: float | None = None,
    base: float = 0.85,
    correlation: float = 0.3,
    commonest: float = 0.5,
    threshold: float | None = None,
    wordings: int = 2,
    icc: float = 0.3,
    wording_sd: float = 0.0,
    items: int | None = None,
    confidence_level: float = 0.95,
) -> dict[str, Any]:
    """What settles a question, from assumed figures: one of ``jss`` to ``difference``.

    Args:
        jss: JSS, in [0, 1], over ``wordings`` wordings whose pairs have the intra-item correlation
            ``icc``. ``wording_sd`` is the standard deviation of JSS between wordings; above 0 the
            claim is about wordings like these.
        fair: share of items with the same choice in both orders.
        kappa: kappa of a two-label task with the gold labels, whose commonest label has the share
            ``commonest`` (Fleiss, Cohen & Everitt 1969, for a judge with the margins of gold).
        difference: judge B's share minus judge A's share ``base``; ``correlation`` is that of the
            two judges over items (0/1 right or steady).
        threshold: what must be excluded; by default that of the check, and 0 for a difference.
        items: items of a planned run: the smallest difference that it shows.
        confidence_level: of the two-sided interval.

    Returns:
        ``check``, ``estimate``, ``threshold``, ``items`` (None if no number suffices),
        ``n_items``, ``smallest_difference`` (None without ``items``) and ``text``.

    Raises:
        JudgeSenseError: a figure out of its range.

    >>> plan_assumed(jss=0.9, wordings=3)["items"]
    60
    """
    defaults = Thresholds()
    for figure, value, low, high in (
        ("threshold", threshold, -1.0, 1.0), ("icc", icc, 0.0, 1.0),
        ("wording_sd", wording_sd, 0.0, 0.5), ("jss", jss, 0.0, 1.0), ("fair", fair, 0.0, 1.0),
        ("wordings", wordings, 2, 1_000), ("items", items, 2, 10_000_000),
        ("confidence_level", confidence_level, 0.01, 0.9999),
    ):  # fmt: skip
        if value is not None and not low <= value <= high:
            raise JudgeSenseError(f"{figure} is {value}: pass a number from {low:g} to {high:g}")
    try:
        if jss is not None or fair is not None:
            share = jss if jss is not None else fair
            assert share is not None
            name = "steady" if jss is not None else "fair"
            limit = getattr(defaults, name) if threshold is None else threshold
            pairs = wordings * (wordings - 1) / 2 if jss is not None else 1.0
            design = ShareDesign(
                share, pairs, icc if pairs > 1 else 0.0, wordings=wordings,
                wording_variance=wording_sd**2 if jss is not None else 0.0,
            )  # fmt: skip
            needed = items_for_share(design, threshold=limit, confidence_level=confidence_level)
            spread = share * (1 - share) * (1 + (pairs - 1) * design.icc) / pairs
            name, estimate, variance = name, share, spread
        elif kappa is not None:
            name, estimate = "right", kappa
            limit = defaults.right if threshold is None else threshold
            variance = _kappa_variance(kappa, commonest)
            needed = _assumed(kappa, variance, limit, confidence_level)
        elif difference is not None:
            name, estimate, limit = "difference", difference, threshold or 0.0
            variance = _difference_variance(base, base + difference, correlation)
            needed = _assumed(difference, variance, limit, confidence_level)
        else:
            raise ValueError("pass one of jss, fair, kappa and difference")
        distance = None
        if items is not None:
            error = math.sqrt(variance / items)
            distance = smallest_difference(error, items, confidence_level=confidence_level)
    except ValueError as error:
        raise JudgeSenseError(str(error)) from error
    return {
        "check": name,
        "estimate": estimate,
        "threshold": limit,
        "items": needed.clusters,
        "n_items": items,
        "smallest_difference": distance,
        "text": _assumed_text(needed, items, distance),
    }


def _assumed(estimate: float, variance: float, threshold: float, level: float) -> Needed:
    # The error of two items, from which that of any number follows.
    return items_for_estimate(
        estimate, math.sqrt(variance / 2), 2, threshold=threshold, confidence_level=level,
        assumed=True,
    )  # fmt: skip


def _kappa_variance(kappa: float, commonest: float) -> float:
    """Variance of kappa times the number of items, for two labels and equal margins."""
    if not 0.5 <= commonest < 1:
        raise ValueError(f"commonest is {commonest!r}: pass a share from 0.5 to below 1")
    chance = commonest**2 + (1 - commonest) ** 2
    p11, p00 = (share**2 + kappa * (chance_gap := commonest * (1 - commonest))
                for share in (commonest, 1 - commonest))  # fmt: skip
    off = chance_gap * (1 - kappa)
    if min(p11, p00, off) < 0:
        raise ValueError(f"kappa is {kappa!r}: impossible with a commonest label of {commonest}")
    agree = p11 + p00
    gap = 1 - chance
    own = p11 * (gap - 2 * commonest * (1 - agree)) ** 2
    own += p00 * (gap - 2 * (1 - commonest) * (1 - agree)) ** 2
    cross = (1 - agree) ** 2 * 2 * off
    return max(0.0, own + cross - (agree * chance - 2 * chance + agree) ** 2) / gap**4


def _difference_variance(first: float, second: float, correlation: float) -> float:
    for name, share in (("base", first), ("base plus difference", second)):
        if not 0 < share < 1:
            raise ValueError(f"{name} is {share:g}: pass a share between 0 and 1")
    if not -1 <= correlation < 1:
        raise ValueError(f"correlation is {correlation!r}: pass a number from -1 to below 1")
    one, two = first * (1 - first), second * (1 - second)
    return one + two - 2 * correlation * math.sqrt(one * two)


def _assumed_text(needed: Needed, items: int | None, distance: float | None) -> str:
    told = "no number of items settles it: the figure is at the threshold, or wordings differ"
    if needed.clusters is not None:
        told = f"{needed.clusters} items settle it with {percent(PROBABILITY)} probability"
    if distance is not None:
        told += f"; {items} items show a difference of {number(distance)}"
    return told


def plan_text(entry: Mapping[str, Any]) -> str:
    """An entry of `plan_run`, `plan_difference` or `plan_assumed` in a line.

    >>> print(plan_text(plan_assumed(difference=0.05)))
    difference 0.050 (threshold 0): 483 items settle it with 80% probability
    """
    if "check" not in entry:
        who = f"{entry['judge_a']} and {entry['judge_b']} on {entry['task']}, {entry['measure']}"
        return f"{who} {signed(entry['difference'])} {interval(entry)}: {entry['text']}"
    who = f"{entry['judge']} on {entry['task']} ({entry['scoring']}), " if "judge" in entry else ""
    ends = f" {interval(entry)}" if "ci_low" in entry else ""
    figure = f"{number(entry['estimate'])}{ends} (threshold {entry['threshold']:g})"
    return f"{who}{entry['check']} {figure}: {entry['text']}"
