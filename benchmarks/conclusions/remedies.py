"""What remedies are said to gain, how calibration learns, and whether ask_person keeps its bound.

A judge of two passages sees which one is right with a signal of known strength (nats), prefers the
option shown first by ``bias`` nats, and every wording adds its own preference and noise. The truth
is what the same remedy, fitted to the same items, gains on new items.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from conclusions.frame import Cell, simulate
from judgesense.log.array import AnswerArray, Wording
from judgesense.log.rows import TaskWords
from judgesense.measure.card import Check
from judgesense.measure.remedies import Trial
from judgesense.measure.thresholds import DEFAULTS
from judgesense.recipes.fitting import (
    best_of,
    offsets_of,
    order_groups,
    panels,
    pool_of,
    recipe_named,
    verdicts_by_wording,
)
from judgesense.recipes.recipe import AS_ASKED
from judgesense.statistics.calibration import (
    ask_threshold,
    batch_offsets,
    calibrated,
    most_probable,
)

REMEDIES = ("both orders", "calibrated", "another wording", "calibrated, panel of 2")
NEW = 4_000
"""New items on which the truth of a run is measured."""


def cells(runs: int, quick: bool, jobs: int | None) -> Iterator[Cell]:
    """Gains, calibration from few items, and the bound of ask_person."""
    items = (50,) if quick else (25, 50, 150)
    biases = (2.0,) if quick else (0.0, 2.0)
    shares = (0.5,) if quick else (0.5, 0.7)
    gains = itertools.product(range(len(REMEDIES)), items, biases, (0.5,), (1, 3), (runs,))
    yield from simulate(gain_cell, gains, jobs)
    learned = itertools.product((50,), biases, shares, (2, 5), (runs,))
    yield from simulate(calibration_cell, learned, jobs)
    asked = itertools.product(
        (100, 300) if quick else (100, 300, 1000), (0.05, 0.1), (1, 4), (runs,)
    )
    yield from simulate(ask_cell, asked, jobs)


def drawn(
    rng: np.random.Generator,
    n: int,
    bias: float,
    share: float,
    per_cluster: int,
    effects: np.ndarray,
) -> AnswerArray:
    """A judge's answers to n items under several wordings and both orders."""
    wordings = len(effects)
    clusters = np.arange(n) // per_cluster
    truth = (rng.random(n) >= share).astype(np.int64)
    easy = rng.normal(0, 0.7, clusters.max() + 1)[clusters]
    signal = np.where(truth == 0, 1, -1) * (1.0 + easy) + rng.normal(0, 1.0, n)
    log_odds = np.empty((n, wordings, 2))
    for order, sign in enumerate((1, -1)):
        log_odds[:, :, order] = (
            sign * signal[:, None] + bias + effects + rng.normal(0, 0.6, (n, wordings))
        )
    told = np.stack([-np.logaddexp(0, -log_odds), -np.logaddexp(0, log_odds)], axis=-1)
    return AnswerArray(
        task=TaskWords("relevance", ("A", "B"), comparative=True),
        scoring="options",
        items=np.arange(n).astype(str).astype(object),
        clusters=clusters,
        gold=truth,
        wordings=tuple(Wording(f"w{k}", raw=("A", "B")) for k in range(wordings)),
        orders=("AB", "BA"),
        verdicts=most_probable(told.reshape(-1, 2)).reshape(n, wordings, 2),
        logprobs=told,
        has_probabilities=True,
    )


def right(array: AnswerArray, name: str, fitted: AnswerArray) -> float:
    """How often a recipe's verdicts on an array are right that was fitted to another one."""
    recipe = recipe_named(name, array)
    if recipe.calibrated:
        offsets = offsets_of(fitted)[:, None, :]
        array = replace(array, logprobs=calibrated(array.logprobs, offsets))
    shares = []
    for orders in order_groups(array, recipe):
        asked = replace(recipe, orders=orders)
        chosen = panels(array, asked)
        if recipe.best_wording:
            best = best_of(fitted, verdicts_by_wording(fitted, asked))
            chosen = [(pool_of(array)[best],)]
        for panel in chosen:
            verdicts = replace(asked, wordings=panel, best_wording=False).decide(array)
            shares.append((verdicts.codes == array.gold).mean())
    return float(np.mean(shares))


def gain_cell(
    which: int, n: int, bias: float, share: float, per_cluster: int, runs: int
) -> Iterator[Cell]:
    """The bias of a cross-fitted gain, and the coverage of its interval."""
    name = REMEDIES[which]
    rng = np.random.default_rng([which, n, int(10 * bias), int(10 * share), per_cluster])
    errors, covered, widths = [], 0, []
    for _ in range(runs):
        effects = rng.normal(0, 0.5, 4)
        array = drawn(rng, n, bias, share, per_cluster, effects)
        new = drawn(rng, NEW, bias, share, per_cluster, effects)
        not_tried = Check.unmeasured(0.0, "attacks were not tried")
        found = Trial(array, DEFAULTS, not_tried).figures(recipe_named(name, array))
        truth = right(new, name, array) - right(new, AS_ASKED, array)
        low, high = found.gain_ci_low, found.gain_ci_high
        errors.append(found.gain - truth)
        covered += low <= truth <= high
        widths.append(high - low)
    place = {"remedy": name, "items": n, "bias": bias, "items a cluster": per_cluster}
    error = float(np.std(errors)) / np.sqrt(runs)
    yield Cell(
        "cross-fitted gain, bias",
        place,
        abs(float(np.mean(errors))),
        at_most=0.005,
        more={"simulation error": error},
    )
    yield Cell(
        "interval of a gain, coverage",
        place,
        covered / runs,
        at_least=0.93,
        more={"width": float(np.mean(widths))},
    )


def calibration_cell(n: int, bias: float, share: float, n_labels: int, runs: int) -> Iterator[Cell]:
    """Accuracy on new items: offsets from n items against those from a hundred thousand."""
    rng = np.random.default_rng([n, int(10 * bias), int(10 * share), n_labels])
    lost = []
    weights = np.full(n_labels, (1 - share) / (n_labels - 1))
    weights[0] = share

    def answers(size: int, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        truth = rng.choice(n_labels, size, p=weights)
        told = rng.normal(0, 1.0, (size, n_labels)) + prior
        told[np.arange(size), truth] += 2.0
        return told, truth

    for _ in range(max(1, runs // 10)):
        prior = rng.normal(0, 0.3 + bias / 2, n_labels)
        oracle = batch_offsets(answers(100_000, prior)[0])
        told, truth = answers(20_000, prior)
        best = (most_probable(calibrated(told, oracle)) == truth).mean()
        for _ in range(10):
            own = batch_offsets(answers(n, prior)[0])
            lost.append(best - (most_probable(calibrated(told, own)) == truth).mean())
    place = {"items": n, "prior": bias, "first label": share, "labels": n_labels}
    yield Cell(
        "calibration, loss against oracle offsets", place, float(np.mean(lost)), at_most=0.01
    )


def ask_cell(n: int, max_error: float, per_cluster: int, runs: int) -> Iterator[Cell]:
    """How often the verdicts that are given are wrong more often than allowed."""
    rng = np.random.default_rng([n, int(100 * max_error), per_cluster])
    broken, answered = 0, []
    effects = np.zeros(1)
    new = drawn(rng, 40_000, 2.0, 0.5, 1, effects)
    recipe = recipe_named("both orders", new)
    told = recipe.decide(new)
    wrong = told.codes != new.gold
    for _ in range(runs):
        array = drawn(rng, n, 2.0, 0.5, per_cluster, effects)
        own = recipe.decide(array)
        found = ask_threshold(
            own.margin, own.codes != array.gold, array.clusters, max_error=max_error
        )
        answered.append(found.answered)
        if found.threshold is not None:
            given = told.margin >= found.threshold
            broken += bool(wrong[given].mean() > max_error)
    place = {"items": n, "max_error": max_error, "items a cluster": per_cluster}
    yield Cell(
        "ask_person, more wrong than allowed",
        place,
        broken / runs,
        at_most=0.05,
        more={"answered": float(np.mean(answered))},
    )
