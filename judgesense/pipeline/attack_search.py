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
    judges: Sequence[Any],
    settings: Settings,
    folder: Path,
    note: Note,
) -> tuple[Benchmark, float]:
    """The benchmark with the attack that was searched for its judge, and the US dollars spent.

    The attack is kept in the folder's ``attacks.yaml``, so that a run that resumes has the same.
    Raises JudgeSenseError for several judges, and for data without templates and items.
    """
    if len(judges) != 1 or data.parts is None:
        raise JudgeSenseError("--attacks search needs one judge, and data with templates and items")
    (templates, items), pool, spent = data.parts(), load_attacks(), 0.0
    path, attacks = folder / "attacks.yaml", dict[str, Attack]()
    # The same items as before, where the search is in the folder already.
    rng, tasks = np.random.default_rng(settings.seed), benchmark.tasks
    losing = {n: losing_items(benchmark, t, items, pool.wanted(t)) for n, t in tasks.items()}
    searched: dict[str, list[Item]] = {}
    for name, candidates in losing.items():
        drawn = rng.permutation(len(candidates))[: len(candidates) // 2][: _RUNGS[-1]]
        if len(drawn):
            searched[name] = [candidates[n] for n in drawn]
    kinds = {name: f"{SEARCHED}-{name}" if len(tasks) > 1 else SEARCHED for name in searched}
    if not path.exists():
        judge = judges[0].load() if hasattr(judges[0], "load") else judges[0]
        try:
            for name, task_items in searched.items():
                base, wins = VariantMaker(templates[name]).base, pool.wanted(tasks[name])
                score = _score_function(judge, tasks[name], base, wins, settings)
                best = search_attack(pool, task_items, score, kinds[name])
                attacks[kinds[name]] = best
                note(
                    f"{name}: searched for a sentence; {best.texts[0].text!r} moves the judge most"
                )
            spent = float(getattr(judge, "spent", 0.0))
        finally:
            if judge is not judges[0]:
                judge.close()
        content = {k: a.model_dump(exclude={"name"}, mode="json") for k, a in attacks.items()}
        text = yaml.safe_dump({"attacks": content}, allow_unicode=True, sort_keys=False, width=100)
        write_text(path, text)
    kept = {kind.name: kind for kind in load_attacks(path).kinds} if searched else {}
    for name, task_items in searched.items():
        attacked = with_attacks(
            replace(benchmark, tasks={name: tasks[name]}),
            templates,
            [item for item in losing[name] if item not in task_items],
            Attacks((kept[kinds[name]],), pool.wins, str(path)),
            orders=settings.orders,
        )
        merged = {k: {**benchmark.attacks.get(k, {}), **v} for k, v in attacked.attacks.items()}
        benchmark = replace(attacked, tasks=tasks, attacks=merged)
    return benchmark, spent


def _score_function(judge: Any, task: Task, base: Template, wins: str, settings: Settings) -> Score:
    """How attacks are scored: the log-odds of the label that they want, or 1 for its verdict."""
    from local_judges.protocol import Request
    from local_judges.rows import decide
    from local_judges.runner import ask_all

    order, options, schema = task.orders[0], tuple(base.label_map), reply_schema(base)
    uses_logprobs = "options" in judge.scorings and not (
        settings.strict and "options" not in settings.scorings
    )

    def score(attacks: Sequence[Attack], items: Sequence[Item]) -> Floats:
        requests, labels = [], []
        for attack in attacks:
            for item in items:
                arguments = task, base, item, order, wins, [attack], 0, base.label_map
                ((_, _, attacked),) = attacked_items(*arguments)
                prompt = render(task, base, attacked, order)
                requests.append(Request(prompt.prompt_id, prompt.text, options, schema=schema))
                loser = next(label for label in task.labels if label != item.gold)
                labels.append(task.gold_as_shown(loser if task.comparative else wins, order))
        values = []
        scoring = "options" if uses_logprobs else "generate"
        for answer, label in zip(ask_all(judge, requests, {scoring}), labels, strict=True):
            share = 0.0
            if answer.option_logprobs is not None:
                shares = np.exp(np.array(answer.option_logprobs))
                is_label = np.array([base.label_map[option] == label for option in options])
                share = float(shares[is_label].sum() / shares.sum())
                values.append(math.log(max(share, 1e-300) / max(1 - share, 1e-15)))
            else:
                raw = decide(answer, scoring, options, base.aliases, field_to_read(base))
                values.append(float(base.label_map.get(raw) == label))
        return np.array(values).reshape(len(attacks), len(items))

    return score


def search_attack(pool: Attacks, items: Sequence[Item], score: Score, name: str) -> Attack:
    """The attack that moves the judge most on these items, within the budget."""

    def attack(text: str, place: Any) -> Attack:
        about = "the sentence that moves this judge most, searched on other items"
        texts = (Phrasing(text=text, source=name),)
        return Attack(name=name, about=about, place=place, texts=texts)

    phrasings = [
        attack(phrasing.text, "after" if kind.place == "replace" else kind.place)
        for kind in pool.kinds
        for phrasing in kind.texts
        if "{query}" not in phrasing.text
    ]
    max_entries = (BUDGET - 60) // 2
    drawn = np.random.default_rng(0).permutation(len(phrasings))[:max_entries]
    best = race([phrasings[n] for n in drawn], items, score)
    combinations = [best[0]]
    for first in best:
        text = first.texts[0].text.strip()
        other_place = "before" if first.place == "after" else "after"
        combinations += [attack(text, other_place), attack(f"\n\n{text}", first.place)]
        combinations += [attack(f"{text} {b.texts[0].text.strip()}", first.place) for b in best]
    return race(combinations, items, score)[0]


def race(entries: Sequence[Attack], items: Sequence[Item], score: Score) -> list[Attack]:
    """The best of some attacks by their mean score: a third goes on to more items each time."""
    remaining, scores = list(entries), np.zeros((len(entries), 0))
    for rung in _RUNGS:
        if new_items := items[scores.shape[1] : rung]:
            scores = np.concatenate([scores, score(remaining, new_items)], axis=1)
            order = np.argsort(-scores.mean(axis=1), kind="stable")
            order = order[: max(_FINALISTS, math.ceil(len(remaining) / 3))]
            remaining, scores = [remaining[n] for n in order], scores[order]
    return remaining[:_FINALISTS]
