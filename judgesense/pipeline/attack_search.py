"""``--attacks search``: the sentence that moves this judge most, searched within a budget.

The attacker knows every phrasing of ``attacks.yaml`` and sees the judge's log-odds, or its verdicts
where it gives texts. Phrasings race on a few items (successive halving: a third goes on to more
items); then the best are moved, doubled and joined. What is quoted is measured on the other items,
beside the quick kinds.
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
from judgesense.tasks import Item, Task, Template, render
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

BUDGET = 300
"""Prompts of a search in each task, at most: a race costs under twice its entries."""

_RUNGS = (1, 2, 4, 8)
"""Items after which a race goes on with a third; in all at most half of those that could lose."""

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
        raise JudgeSenseError("--attacks search needs one judge, and data with templates and items")
    (templates, items), pool, spent = data.parts(), load_attacks(), 0.0
    place, found = folder / "attacks.yaml", dict[str, Attack]()
    # The same items as before, where the search is in the folder already.
    rng, tasks = np.random.default_rng(settings.seed), benchmark.tasks
    losing = {n: losing_items(benchmark, t, items, pool.wanted(t)) for n, t in tasks.items()}
    chosen = {
        n: rng.permutation(len(own))[: len(own) // 2][: _RUNGS[-1]] for n, own in losing.items()
    }
    searched = {name: [losing[name][n] for n in own] for name, own in chosen.items() if len(own)}
    kinds = {name: f"{SEARCHED}-{name}" if len(tasks) > 1 else SEARCHED for name in searched}
    if not place.exists():
        judge = given[0].load() if hasattr(given[0], "load") else given[0]
        try:
            for name, own in searched.items():
                base, wins = VariantMaker(templates[name]).base, pool.wanted(tasks[name])
                score = _score_of(judge, tasks[name], base, wins, settings)
                found[kinds[name]] = best = searched_attack(pool, own, score, kinds[name])
                note(
                    f"{name}: searched for a sentence; {best.texts[0].text!r} moves the judge most"
                )
            spent = float(getattr(judge, "spent", 0.0))
        finally:
            if judge is not given[0]:
                judge.close()
        plain = {n: each.model_dump(exclude={"name"}, mode="json") for n, each in found.items()}
        text = yaml.safe_dump({"attacks": plain}, allow_unicode=True, sort_keys=False, width=100)
        write_text(place, text)
    kept = {kind.name: kind for kind in load_attacks(place).kinds} if searched else {}
    for name, own in searched.items():
        others = [item for item in losing[name] if item not in own]
        more = with_attacks(
            replace(benchmark, tasks={name: tasks[name]}),
            templates,
            others,
            Attacks((kept[kinds[name]],), pool.wins, str(place)),
            orders=settings.orders,
        )
        both = {k: {**benchmark.attacks.get(k, {}), **v} for k, v in more.attacks.items()}
        benchmark = replace(more, tasks=tasks, attacks=both)
    return benchmark, spent


def _score_of(judge: Any, task: Task, base: Template, wins: str, settings: Settings) -> Score:
    """How attacks are scored: the log-odds of the label that they want, or 1 for its verdict."""
    from local_judges.protocol import Request
    from local_judges.rows import decide
    from local_judges.runner import ask_all

    order, options, schema = task.orders[0], tuple(base.label_map), reply_schema(base)
    odds = "options" in judge.scorings and not (
        settings.strict and "options" not in settings.scorings
    )

    def score(attacks: Sequence[Attack], items: Sequence[Item]) -> Floats:
        requests, wanted = [], []
        for attack in attacks:
            for item in items:
                like = task, base, item, order, wins, [attack], 0, base.label_map
                ((_, _, shown),) = attacked_items(*like)
                prompt = render(task, base, shown, order)
                requests.append(Request(prompt.prompt_id, prompt.text, options, schema=schema))
                loser = next(label for label in task.labels if label != item.gold)
                wanted.append(task.gold_as_shown(loser if task.comparative else wins, order))
        values = []
        scoring = "options" if odds else "generate"
        for answer, label in zip(ask_all(judge, requests, {scoring}), wanted, strict=True):
            share = 0.0
            if answer.option_logprobs is not None:
                shares = np.exp(np.array(answer.option_logprobs))
                for_it = np.array([base.label_map[option] == label for option in options])
                share = float(shares[for_it].sum() / shares.sum())
                values.append(math.log(max(share, 1e-300) / max(1 - share, 1e-15)))
            else:
                raw = decide(answer, scoring, options, base.aliases, field_to_read(base))
                values.append(float(base.label_map.get(raw) == label))
        return np.array(values).reshape(len(attacks), len(items))

    return score


def searched_attack(pool: Attacks, items: Sequence[Item], score: Score, name: str) -> Attack:
    """The attack that moves the judge most on these items, within the budget."""

    def attack(text: str, place: Any) -> Attack:
        about = "the sentence that moves this judge most, searched on other items"
        texts = (Phrasing(text=text, source=name),)
        return Attack(name=name, about=about, place=place, texts=texts)

    first = [
        attack(each.text, "after" if kind.place == "replace" else kind.place)
        for kind in pool.kinds
        for each in kind.texts
        if "{query}" not in each.text
    ]
    most = (BUDGET - 60) // 2
    first = [first[n] for n in np.random.default_rng(0).permutation(len(first))[:most]]
    best = race(first, items, score)
    composed = [best[0]]
    for one in best:
        text, other_place = one.texts[0].text.strip(), "before" if one.place == "after" else "after"
        composed += [attack(text, other_place), attack(f"\n\n{text}", one.place)]
        composed += [attack(f"{text} {each.texts[0].text.strip()}", one.place) for each in best]
    return race(composed, items, score)[0]


def race(entries: Sequence[Attack], items: Sequence[Item], score: Score) -> list[Attack]:
    """The best of some attacks by their mean score: a third goes on to more items each time."""
    alive, scores = list(entries), np.zeros((len(entries), 0))
    for rung in _RUNGS:
        if fresh := items[scores.shape[1] : rung]:
            scores = np.concatenate([scores, score(alive, fresh)], axis=1)
            order = np.argsort(-scores.mean(axis=1), kind="stable")
            order = order[: max(_FINALISTS, math.ceil(len(alive) / 3))]
            alive, scores = [alive[n] for n in order], scores[order]
    return alive[:_FINALISTS]
