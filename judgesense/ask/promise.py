"""What is promised: figures of candidates on the items that chose nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from judgesense.ask.candidates import Answers, Candidate
from judgesense.recipes.rules import Decided, sure
from judgesense.statistics.arrays import Bools, Codes, Floats
from judgesense.statistics.calibration import UNDECIDED, longest_safe
from judgesense.statistics.comparison import paired_gain
from judgesense.statistics.intervals import Interval, wilson_cluster

_STEPS = 40
"""Levels of confidence that are tested for a person."""


def row_of(
    answers: Answers, candidate: Candidate, base: Candidate, held: Codes, fit: Codes
) -> dict[str, Any]:
    """A row of the table: figures on the items of the promise, and on their attacked copies."""
    plain = answers.plain(held)
    codes = answers.decided(candidate, plain, fit).codes
    prompts, price = answers.cost(candidate, plain, fit)
    row: dict[str, Any] = {
        "way": candidate.name,
        "prompts_per_item": round(prompts, 3),
        "usd_or_prompts": round(price, 6),
        "decided": float((codes >= 0).mean()),
        "n_items": len(plain),
        "steady": None,
        "steady_ci_low": None,
        "steady_ci_high": None,
        "fair": 1.0 if len(candidate.leaves[-1].orders) > 1 and not candidate.combine else None,
    }
    copies = held[answers.attacked[held]]
    for name, gained, items in (("right", "gain", plain), ("resistant", "resistant_gain", copies)):
        row |= dict.fromkeys(f"{key}{end}" for key in (name, gained) for end in _ENDS)
        if not len(items):
            continue
        right, clusters = answers.right(candidate, items, fit), answers.clusters[items]
        row |= _figure(name, float(right.mean()), wilson_cluster(right, clusters))
        if candidate is not base:
            gain = paired_gain(answers.right(base, items, fit), right, clusters)
            row |= _figure(gained, gain.gain, Interval(gain.ci_low, gain.ci_high))
    return row


_ENDS = ("", "_ci_low", "_ci_high")


def _figure(name: str, value: float, ends: Interval) -> dict[str, Any]:
    return {name: value, f"{name}_ci_low": ends.low, f"{name}_ci_high": ends.high}


def probes_of(
    answers: Answers, chosen: Candidate, left: Sequence[Candidate]
) -> dict[str, Candidate]:
    """What shows how steady and fair the chosen candidate is: the same with other wordings, and
    with the options in the other order."""
    found = {}
    if not chosen.members:
        turned = tuple(each for each in answers.task.orders if each not in chosen.orders)
        if turned:
            found["fair"] = replace(chosen, orders=turned)
        kinds = [wording.kind for wording in answers.wordings]
        own = kinds[chosen.wordings[0]]
        order = [w for each in left for w in each.wordings]
        order += [w for w, kind in enumerate(kinds) if kind == own]
        apart = {"alone", "reasoning"}
        others = [
            w
            for w in dict.fromkeys(order)
            if w not in chosen.wordings and (kinds[w] == own or not apart & {own, kinds[w]})
        ]
        if len(others) >= len(chosen.wordings):
            found["steady"] = replace(chosen, wordings=tuple(others[: len(chosen.wordings)]))
    return found


def steadiness(
    answers: Answers, chosen: Candidate, probes: dict[str, Candidate], held: Codes, fit: Codes
) -> dict[str, Any]:
    """How often each probe gives the verdict of the chosen candidate: figures of its row."""
    found: dict[str, Any] = {}
    held = answers.plain(held)
    for name, other in probes.items():
        one, two = (answers.decided(each, held, fit).codes for each in (chosen, other))
        same = (one == two) & (one != UNDECIDED)
        found |= _figure(name, float(same.mean()), wilson_cluster(same, answers.clusters[held]))
    return found


def with_person(
    seen: Sequence[Decided],
    told: Sequence[Decided],
    gold_seen: Codes,
    gold: Codes,
    clusters: Codes,
    kept: Sequence[float],
    max_error: float,
) -> tuple[dict[str, Any], tuple[float, ...]]:
    """The margins below which a person decides, so that at most ``max_error`` of the other verdicts
    are wrong with 95% confidence; none where no margins can promise it.

    Margins of different judges become comparable by how often they are right on the items of the
    search; one level of that confidence sets all of them. Levels are tested on the items of the
    promise, from the most cautious on.

    Args:
        seen, told: the verdicts of a cascade's judges in turn (or of one) on the items of the
            search, and on those of the promise, with ``gold_seen`` and ``gold``.
        clusters: of the items of the promise.
        kept: the margins of all but the last judge, which are only raised.

    Returns:
        ``ask_person`` as in a judge's file, and the margins of all but the last judge.
    """
    maps = [_confidence(one.margin, one.codes, one.codes == gold_seen) for one in seen]
    levels = [own(one.margin) for own, one in zip(maps, told, strict=True)]
    tops = np.stack(
        [np.where(one.codes >= 0, level, -1.0) for one, level in zip(told, levels, strict=True)]
    ).max(axis=0)
    record: dict[str, Any] = {
        "max_error": max_error,
        "confidence": 0.95,
        "threshold": None,
        "answered": 0.0,
        "verdicts": len(gold),
        "needed": None,
    }
    if not (tops >= 0).any():
        return record, ()
    steps = np.unique(np.quantile(tops[tops >= 0], np.linspace(1, 0, _STEPS), method="lower"))[::-1]
    decided = np.zeros((len(steps), len(gold)), bool)
    wrong = decided.copy()
    tried = []
    for n, step in enumerate(steps):
        margins = [
            max(own, _least(one.margin, level, step))
            for own, one, level in zip([*kept, 0.0], told, levels, strict=True)
        ]
        tried.append(tuple(margins))
        for margin, one in zip(margins, told, strict=True):
            fresh = ~decided[n] & sure(one, margin) & (one.margin > 1e-9)
            decided[n] |= fresh
            wrong[n] |= fresh & (one.codes != gold)
    safe = longest_safe(decided, wrong, clusters, max_error=max_error)
    if safe.step is None:
        return {**record, "needed": safe.needed}, ()
    done = decided[safe.step]
    record |= {
        "threshold": float(np.round(tried[safe.step][-1], 6)),
        "answered": float(done.mean()),
        "error": float(wrong[safe.step].sum() / done.sum()),
        "error_bound": safe.bound,
    }
    return record, tried[safe.step][:-1]


def _confidence(margin: Floats, codes: Codes, right: Bools) -> Callable[[Floats], Floats]:
    """From a margin to how often verdicts with such a margin are right: isotonic, and rising a
    little where that is flat."""
    from scipy.optimize import isotonic_regression

    known = np.sort(margin[codes >= 0])
    if not len(known):
        return lambda values: np.zeros(len(values))
    order = np.argsort(margin[codes >= 0], kind="stable")
    shares = isotonic_regression(right[codes >= 0][order].astype(float)).x

    def confidence(values: Floats) -> Floats:
        rank = np.searchsorted(known, values, side="right") / len(known)
        level: Floats = np.interp(values, known, shares) + 1e-3 * rank + 1e-6 * np.tanh(values)
        return level

    return confidence


def _least(margin: Floats, level: Floats, step: float) -> float:
    """The least margin whose confidence reaches a step; above all margins if none does."""
    reached = margin[level >= step]
    least = reached.min() if len(reached) else margin.max() + 1.0
    # Rounded down, so that the margin tested is answered; a file holds six digits.
    return float(np.floor(least * 1e6) / 1e6)
