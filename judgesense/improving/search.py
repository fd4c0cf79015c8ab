"""The search: a race on one half of the items, and a promise measured on the other half.

The race chooses; the items of the promise choose nothing, so the accuracy that is promised is not
selected. Only answers are needed: :mod:`judgesense.improving.asking` gets them from judges, the
benchmarks from logs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError
from judgesense.improving.candidates import (
    Answers,
    Candidate,
    agreement,
    combinations_of,
    first_candidates,
    sure,
    turned,
)
from judgesense.statistics.arrays import Bools, Codes, Floats
from judgesense.statistics.calibration import longest_safe
from judgesense.statistics.comparison import paired_gain
from judgesense.statistics.intervals import Interval, wilson_cluster
from judgesense.statistics.racing import race
from judgesense.trust.rules import Decided

FEWEST, FEWEST_INDEPENDENT = 20, 10
"""Labelled items that a search needs, and clusters of them."""

RIVALS = 12
"""At most so many rows are measured for the table, beside the two that the promise needs."""

FOR_PROMISE = 0.35
"""The share of the budget that is kept for the promise, unless a single way needs more."""

MOST_PROMPTS = 6.0
"""Prompts per item of the promise that the race leaves unspent, at most."""

_STEPS = 40

Ask = Callable[[Sequence[int], Codes], None]


@dataclass(frozen=True)
class Found:
    """The outcome of a search.

    ``chosen`` is the candidate to write, with the items ``fit`` that its offsets are learned from.
    ``rows`` are those of the table, ``entered`` how many candidates took part, ``raced`` the items
    that the finalists were tried on, ``held_out`` those of the promise, both without attacked
    copies. ``ask_person`` is as in a judge's file, ``margins`` are those of the chosen candidate's
    judges with a person behind them.
    """

    chosen: Candidate
    fit: Codes
    rows: list[dict[str, Any]]
    entered: int
    raced: int
    held_out: Codes
    spent: float
    ask_person: dict[str, Any]
    margins: tuple[float, ...]


def halves(gold: Codes, clusters: Codes, seed: int) -> tuple[Codes, Codes]:
    """The items to search on and those of the promise, each in random order: whole clusters, with
    every label in both."""
    rng = np.random.default_rng(seed)
    names, first = np.unique(clusters, return_index=True)
    shuffled = rng.permutation(len(names))
    by_label = shuffled[np.argsort(gold[first][shuffled], kind="stable")]
    held = np.isin(clusters, names[by_label[1::2]])
    search, promise = np.flatnonzero(~held), np.flatnonzero(held)
    return rng.permutation(search), rng.permutation(promise)


def least_budget(answers: Answers, n_items: int) -> float:
    """The least budget: the judge as asked, and one other way, on every item."""
    singles = first_candidates(answers)[:8]
    prices = [answers.price(min(answers.columns(each))) for each in singles]
    return n_items * (prices[0] + min(prices))


def search(
    answers: Answers,
    budget: float,
    ask: Ask,
    *,
    seed: int = 0,
    max_error: float = 0.05,
    combine: bool = True,
    note: Callable[[str], None] = lambda _: None,
) -> Found:
    """Race the candidates on half of the items and measure the best ones on the other half.

    Args:
        answers: with the labels of every item; ``ask`` fills in the answers.
        budget: in the unit of the voices' prices, for all items together.
        ask: gets the answers to some columns on some items.
        seed: fixes the halves and the order of the items.
        max_error: the share of wrong verdicts that the threshold for a person allows.
        combine: whether panels, juries and cascades are tried.
        note: told the best so far.

    Raises:
        JudgeSenseError: too few items, labels all alike, a budget below one pass.
    """
    n = len(answers.gold)
    labelled = int((~answers.attacked).sum())
    independent = len(np.unique(answers.clusters))
    if labelled < FEWEST or independent < FEWEST_INDEPENDENT:
        raise JudgeSenseError(
            f"{labelled} labelled items ({independent} independent) are too few to search on one "
            f"half and promise on the other: label at least {FEWEST} ({FEWEST_INDEPENDENT} "
            "independent)"
        )
    if len(np.unique(answers.gold)) < 2:
        raise JudgeSenseError(
            f"every label is {answers.labels[answers.gold[0]]}: label items of other answers too, "
            "or a judge that always says the same looks perfect"
        )
    if budget < least_budget(answers, n):
        raise JudgeSenseError(
            f"the budget is below one pass: your wording and one other on {n} items need "
            f"{least_budget(answers, n):g}, and {budget:g} is left"
        )
    items, held = halves(answers.gold, answers.clusters, seed)
    pool = first_candidates(answers)
    base = pool[0]

    def price(candidates: Sequence[Candidate]) -> float:
        union = frozenset().union(*(answers.columns(each) for each in candidates))
        return sum(map(answers.price, union))

    dearest = max(voice.price for voice in answers.voices)
    most = budget / len(held)
    pool = [base, *(each for each in pool[1:] if price([base, each]) <= 0.5 * most + 1e-9)]
    # Panels and the like only where the race keeps most of the budget.
    needed = max(price([base, each]) for each in pool)
    cap = max(needed, min(FOR_PROMISE * most, MOST_PROMPTS * dearest))
    prices = [answers.price(n) for n in range(answers.asked[:, 0].size)]

    def asked(columns: Sequence[int], start: int, stop: int) -> None:
        ask(columns, items[start:stop])

    def score(numbers: Sequence[int], stop: int) -> Floats:
        seen = items[:stop]
        return np.stack([answers.right(pool[n], seen, seen) for n in numbers]).astype(float)

    def rank(numbers: Sequence[int], stop: int) -> Floats:
        rows = np.stack([answers.scores(pool[n], items[:stop]) for n in numbers])
        best = numbers[int(rows.mean(axis=1).argmax())]
        yours, right = score([0, best], stop).mean(axis=1)
        note(
            f"best so far on {stop} of {len(items)} items of the race: {pool[best].name}, right on "
            f"{right:.0%} (as asked {yours:.0%}); {len(numbers)} ways left"
        )
        return rows

    def grow(numbers: Sequence[int], stop: int) -> list[frozenset[int]]:
        if not combine:
            return []
        known = {each.name for each in pool}
        made = combinations_of(answers, [pool[n] for n in numbers], items[:stop], known)
        union = frozenset().union(*(answers.columns(pool[n]) for n in numbers))
        # The race takes those whose prompts are asked anyway; the promise must afford them.
        made = [
            each
            for each in made
            if price([base, each]) <= cap + 1e-9 and answers.columns(each) <= union
        ]
        pool.extend(made)
        return [answers.columns(each) for each in made]

    columns = [answers.columns(each) for each in pool]
    before = answers.asked.sum(axis=(1, 2, 3)) @ [voice.price for voice in answers.voices]
    result = race(
        columns, prices, len(items), budget - cap * len(held), asked, score, grow, rank,
        answers.clusters[items],
    )  # fmt: skip
    chosen, fit = pool[result.chosen], answers.plain(items[: result.items])
    ask(sorted(answers.columns(base) | answers.columns(chosen)), held)

    def left() -> float:
        used = answers.asked.sum(axis=(1, 2, 3)) @ [voice.price for voice in answers.voices]
        return float(budget - (used - before))

    def affordable(candidate: Candidate) -> bool:
        fresh = [n for n in answers.columns(candidate) if not _all_asked(answers, n, held)]
        cost = sum(map(answers.price, fresh)) * len(held)
        if cost > left() + 1e-9:
            return False
        if fresh:
            ask(sorted(fresh), held)
        return True

    table = [base, *([chosen] if chosen is not base else [])]
    probes = _probes(answers, chosen, [pool[n] for n in result.left])
    probes = {name: other for name, other in probes.items() if affordable(other)}
    for number in result.left:
        if pool[number] not in table and len(table) < RIVALS and affordable(pool[number]):
            table.append(pool[number])
    rows = [_row(answers, each, base, held, fit) for each in table]
    rows[table.index(chosen)] |= _steadiness(answers, chosen, probes, held, fit)
    for row, each in zip(rows, table, strict=True):
        row["written"] = each is chosen
        row["pareto"] = not any(
            other["usd_or_prompts"] <= row["usd_or_prompts"] and other["right"] >= row["right"]
            and (other["usd_or_prompts"], -other["right"]) != (row["usd_or_prompts"], -row["right"])
            for other in rows
        )  # fmt: skip
    stages = chosen.members if chosen.combine == "cascade" else (chosen,)
    held = answers.plain(held)
    person, margins = with_person(
        [answers.decided(each, fit, fit) for each in stages],
        [answers.decided(each, held, fit) for each in stages],
        answers.gold[fit], answers.gold[held], answers.clusters[held], chosen.margins, max_error,
    )  # fmt: skip
    return Found(
        chosen, fit, rows, result.entered, len(fit), held, budget - left(), person, margins
    )


def _all_asked(answers: Answers, column: int, items: Codes) -> bool:
    voice, wording, order = answers.column(column)
    return bool(answers.asked[voice, items, wording, order].all())


def _row(
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
        "steady": None, "steady_ci_low": None, "steady_ci_high": None,
        "fair": 1.0 if len(candidate.leaves[-1].orders) > 1 and not candidate.combine else None,
    }  # fmt: skip
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


def _probes(answers: Answers, chosen: Candidate, left: Sequence[Candidate]) -> dict[str, Candidate]:
    """What shows how steady and fair the chosen candidate is: the same with other wordings, and
    with the options in the other order."""
    found = {}
    if (other := turned(chosen, answers.task)) is not None:
        found["fair"] = other
    if not chosen.members:
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


def _steadiness(
    answers: Answers, chosen: Candidate, probes: dict[str, Candidate], held: Codes, fit: Codes
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    held = answers.plain(held)
    for name, other in probes.items():
        same = agreement(answers, chosen, other, held, fit)
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
    tops = np.stack([np.where(one.codes >= 0, level, -1.0)
                     for one, level in zip(told, levels, strict=True)]).max(axis=0)  # fmt: skip
    record: dict[str, Any] = {
        "max_error": max_error, "confidence": 0.95, "threshold": None, "answered": 0.0,
        "verdicts": len(gold), "needed": None,
    }  # fmt: skip
    if not (tops >= 0).any():
        return record, ()
    steps = np.unique(np.quantile(tops[tops >= 0], np.linspace(1, 0, _STEPS), method="lower"))[::-1]
    decided = np.zeros((len(steps), len(gold)), bool)
    wrong = decided.copy()
    tried = []
    for n, step in enumerate(steps):
        margins = [max(own, _least(one.margin, level, step))
                   for own, one, level in zip([*kept, 0.0], told, levels, strict=True)]  # fmt: skip
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
