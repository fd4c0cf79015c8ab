"""Read the verdicts on items from a judge's answers to their messages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pyarrow as pa

from judgesense.pipeline.verdict_files import ItemVerdict
from judgesense.recipes.recipe import TIE
from judgesense.tasks import Item, is_scale
from local_judges.improved_judge import ImprovedJudge
from local_judges.protocol import Answer
from local_judges.rows import decide
from local_judges.votes import margin_of_votes

_LEAST_SHARE = 1e-304
"""In place of a probability of 0, whose logarithm would be infinite."""


def verdicts_of(log: pa.Table, improved: ImprovedJudge, items: Sequence[Item]) -> list[ItemVerdict]:
    """The verdicts in a log of :func:`benchmark_of`, in the items' order."""
    verdicts: dict[str, ItemVerdict] = {}
    by_id = {item.item_id: item for item in items}
    for row in log.to_pylist():
        logprobs = {entry["option"]: entry["logprob"] for entry in row["option_logprobs"] or ()}
        answer = Answer(
            text=row["raw_text"],
            option_logprobs=tuple(logprobs.values()) or None,
            cost_usd=row["cost_usd"],
            error=row["error"],
            refused=row["status"] == "refused",
            certificate=row["certificate"],
        )
        options = tuple(logprobs or improved.base.label_map)
        item = by_id[row["item_id"]]
        scoring, judge = row["scoring"], row["judge"]
        verdicts[item.item_id] = verdict_in(improved, item, answer, options, scoring, judge)
    return [verdicts[item.item_id] for item in items]


def verdict_in(
    improved: ImprovedJudge,
    item: Item,
    answer: Answer,
    options: tuple[str, ...],
    scoring: str,
    judge: str,
) -> ItemVerdict:
    """The verdict on an item in the answer to its message, which allows ``options``."""
    template, recipe = improved.base, improved.recipe
    raw = decide(answer, scoring, options, template.aliases)
    verdict = template.label_map.get(raw, raw)
    probability = margin = nats = score = None
    if recipe.read == "vote" and verdict in recipe.labels:
        margin = nats = margin_of_votes(answer.text or "", template)
    elif answer.option_logprobs is not None and verdict in recipe.labels:
        shares: dict[str, float] = dict.fromkeys(recipe.labels, 0.0)
        for option, value in zip(options, answer.option_logprobs, strict=True):
            shares[template.label_map[option]] += math.exp(value)
        total = sum(shares.values())
        first, second = sorted(shares.values(), reverse=True)[:2]
        margin = (first - second) / total
        nats = math.log(first) - math.log(max(second, _LEAST_SHARE))
        score = _expected_score(improved, shares)
        if recipe.read != "expected score":
            probability = shares[verdict] / total
    ask = None if improved.threshold is None else nats is None or nats < improved.threshold
    # Of two labels that are equally probable, the verdict is the first: that is no choice.
    if verdict not in recipe.labels or (nats is not None and nats <= TIE):
        ask = True
    # Several judges have wordings and orders of their own.
    wordings, orders = ((), ()) if recipe.members else (recipe.wordings, recipe.orders)
    return ItemVerdict(
        item_id=item.item_id,
        verdict=verdict,
        probability=probability,
        margin=margin,
        score=score,
        ask_person=ask,
        cost_usd=answer.cost_usd,
        error=answer.error,
        cluster_id=item.cluster_id,
        system_id=item.system_id or None,
        judge=judge,
        task=item.task,
        wording=wordings[0] if len(wordings) == 1 else None,
        order=orders[0] if len(orders) == 1 else None,
        gold=item.gold,
        certificate=answer.certificate,
        reasoning=answer.reason,
    )


def _expected_score(improved: ImprovedJudge, shares: Mapping[str, float]) -> float | None:
    """The expected score from the shares of the labels; None where they are no scale."""
    labels = improved.recipe.labels
    if improved.recipe.read == "expected score":
        # The recipe made these shares of a score alone (exp(-(label - score)^2), normalised), so
        # two of them give it back.
        one, two = (math.log(max(shares[label], _LEAST_SHARE)) for label in labels[:2])
        low, high = (float(label) for label in labels[:2])
        return (one - two + low**2 - high**2) / (2 * (low - high))
    if not (improved.entry.task.ordinal and is_scale(labels)):
        return None
    return sum(float(label) * share for label, share in shares.items()) / sum(shares.values())
