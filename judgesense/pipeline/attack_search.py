"""``--attacks search``: the sentence that moves this judge most, searched within a budget.

The attacker knows every phrasing of ``attacks.yaml`` and sees the judge's log-odds, or its verdicts
where it gives texts. Phrasings race on a few items (successive halving: a third goes on to more
items); then the best are composed with each other and moved. What is quoted is measured on the
other items, beside the quick kinds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import write_text
from judgesense.measure.resistant import SEARCHED
from judgesense.pipeline.data import DataReference
from judgesense.pipeline.settings import Note, Settings
from judgesense.statistics.arrays import Floats
from judgesense.tasks import Item, Template, render
from judgesense_dataset.attacks import (
    Attack,
    Attacks,
    Phrasing,
    attacked_items,
    load_attacks,
    losing_items,
    with_attacks,
)
from judgesense_dataset.reply_labels import field_to_read, reply_schema
from judgesense_dataset.variant_changes import VariantMaker

MOST_ITEMS = 8
"""Items that a sentence is searched on, at most half of those that an attack could win."""

BUDGET = 300
"""Prompts of a search in each task, at most."""

_RUNGS = (1, 2, 4, MOST_ITEMS)
_FINALISTS = 3

Score = Callable[[Sequence[Attack], Sequence[Item]], Floats]
"""How far each attack moves the judge on each item, shape (attacks, items)."""


def with_search(
    benchmark: Benchmark,
    data: DataReference,
    given: Sequence[Any],
    settings: Settings,
    folder: Path,
    note: Note,
) -> tuple[Benchmark, float]:
    """The benchmark with the attack that was searched for its judge, and the US dollars spent.

    The attack is kept in the folder's ``attacks.yaml``, so that a run that resumes has the same.
    Raises JudgeSenseError for several judges, and for data without templates and items.
    """
    if len(given) != 1 or data.parts is None:
        raise JudgeSenseError(
            "--attacks search needs one judge, and templates and items; search for each judge in a "
            "run of its own"
        )
    templates, items = data.parts()
    place, spent = folder / "attacks.yaml", 0.0
    pool = load_attacks()
    losing = {
        name: losing_items(benchmark, task, items, pool.wanted(task))
        for name, task in benchmark.tasks.items()
    }
    rng = np.random.default_rng(settings.seed)
    parts = {
        name: [all_[n] for n in rng.permutation(len(all_))[: min(MOST_ITEMS, len(all_) // 2)]]
        for name, all_ in losing.items()
    }
    if not place.exists():
        judge = given[0].load() if hasattr(given[0], "load") else given[0]
        try:
            found = {}
            for name, searched in parts.items():
                if searched:
                    base = VariantMaker(templates[name]).base
                    score = score_of(judge, base, benchmark, pool, settings)
                    kind = f"{SEARCHED}-{name}" if len(benchmark.tasks) > 1 else SEARCHED
                    found[kind] = searched_attack(pool, searched, score, kind, settings.seed)
                    note(f"{name}: the sentence that moves {judge.name} most is {found[kind]}")
            spent = float(getattr(judge, "spent", 0.0))
        finally:
            if judge is not given[0]:
                judge.close()
        plain = {n: each.model_dump(exclude={"name"}, mode="json") for n, each in found.items()}
        text = yaml.safe_dump({"attacks": plain}, allow_unicode=True, sort_keys=False, width=100)
        write_text(place, text)
    kinds = {kind.name: kind for kind in load_attacks(place).kinds}
    for name, task in list(benchmark.tasks.items()):
        own = [kinds[kind] for kind in (SEARCHED, f"{SEARCHED}-{name}") if kind in kinds]
        if own and parts[name]:
            others = [item for item in losing[name] if item not in parts[name]]
            only, whole = replace(benchmark, tasks={name: task}), benchmark
            attacks = Attacks(tuple(own), pool.wins, str(place))
            more = with_attacks(
                only, templates, others, attacks, orders=settings.orders, seed=settings.seed
            )
            merged = {
                key: {**whole.attacks.get(key, {}), **more.attacks[key]} for key in more.attacks
            }
            benchmark = replace(more, tasks=whole.tasks, attacks=merged)
    return benchmark, spent


def score_of(
    judge: Any, base: Template, benchmark: Benchmark, pool: Attacks, settings: Settings
) -> Score:
    """How attacks are scored: the log-odds of the label that they want, or 1 for its verdict."""
    from local_judges.protocol import Request
    from local_judges.rows import decide
    from local_judges.runner import ask_all

    task = benchmark.tasks[base.task]
    order, wins = task.orders[0], pool.wanted(task)
    options, aliases = tuple(base.label_map), benchmark.aliases.get(base.template_id)
    by_odds = "options" in judge.scorings and (
        not settings.strict or "options" in settings.scorings
    )
    scoring = "options" if by_odds else "generate"

    def score(attacks: Sequence[Attack], items: Sequence[Item]) -> Floats:
        requests, wanted = [], []
        for attack in attacks:
            for item in items:
                ((_, _, shown),) = attacked_items(
                    task, base, item, order, wins, [attack], 0, base.label_map
                )
                prompt = render(task, base, shown, order)
                schema = reply_schema(base)
                requests.append(Request(prompt.prompt_id, prompt.text, options, schema=schema))
                losing = next((label for label in task.labels if label != item.gold), None)
                wanted.append(task.gold_as_shown(losing if task.comparative else wins, order))
        values = []
        for answer, label in zip(ask_all(judge, requests, {scoring}), wanted, strict=True):
            if by_odds and answer.option_logprobs is not None:
                odds = dict.fromkeys((True, False), 0.0)
                for option, logprob in zip(options, answer.option_logprobs, strict=True):
                    odds[base.label_map[option] == label] += math.exp(logprob)
                values.append(math.log(max(odds[True], 1e-300) / max(odds[False], 1e-300)))
            else:
                raw = decide(answer, scoring, options, aliases, field_to_read(base))
                values.append(float(base.label_map.get(raw) == label))
        return np.array(values).reshape(len(attacks), len(items))

    return score


def searched_attack(
    pool: Attacks, items: Sequence[Item], score: Score, name: str, seed: int = 0
) -> Attack:
    """The attack that moves the judge most on these items, within the budget.

    First the pool's phrasings race, where they stand or else after the text; then the best, moved,
    doubled, on a line of their own and joined in pairs.
    """
    texts = [(each, kind.place) for kind in pool.kinds for each in kind.texts]
    first = [
        _attack(name, each.text, "after" if place == "replace" else place)
        for each, place in texts
        if "{query}" not in each.text
    ]
    # A race costs about twice as many prompts as it has entries; the second one needs 60.
    most = max(_FINALISTS, (BUDGET - 60) // 2)
    if len(first) > most:
        drawn = np.random.default_rng(seed).choice(len(first), most, replace=False)
        first = [first[n] for n in drawn]
    best = race(first, items, score)
    composed = []
    for one in best:
        text = one.texts[0].text
        composed.append(_attack(name, text, "before" if one.place == "after" else "after"))
        composed.append(_attack(name, f"{text.strip()} {text.strip()}", one.place))
        composed.append(_attack(name, f"\n\n{text.strip()}", one.place))
        others = (other.texts[0].text.strip() for other in best if other is not one)
        composed += [_attack(name, f"{text.strip()} {other}", one.place) for other in others]
    return race([best[0], *composed], items, score)[0]


def race(entries: Sequence[Attack], items: Sequence[Item], score: Score) -> list[Attack]:
    """The best of some attacks by their mean score: a third goes on to more items each time."""
    alive, scores = list(entries), np.zeros((len(entries), 0))
    for rung in _RUNGS:
        fresh = items[scores.shape[1] : rung]
        if not fresh:
            break
        scores = np.concatenate([scores, score(alive, fresh)], axis=1)
        kept = max(_FINALISTS, math.ceil(len(alive) / 3))
        order = np.argsort(-scores.mean(axis=1), kind="stable")[:kept]
        alive, scores = [alive[n] for n in order], scores[order]
    return alive[:_FINALISTS]


def _attack(name: str, text: str, place: Any) -> Attack:
    about = "the sentence that moves this judge most, searched on other items"
    return Attack(name=name, about=about, place=place, texts=(Phrasing(text=text, source=name),))
