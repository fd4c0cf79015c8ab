"""What a run would do, without loading a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from judgesense.measure.planning import assumed
from judgesense.pipeline.data import DataReference
from judgesense.pipeline.requirements import answerable
from judgesense.pipeline.settings import Settings
from local_judges.options import REMOTE


def dry_run(judges: Sequence[Any], data: DataReference, settings: Settings) -> dict[str, Any]:
    """Items, pairs, distinct prompts and what they can settle per task; prompts and cost per judge.

    ``asked_twice`` is the number of prompts that are asked again where the others are asked once,
    ``requests`` the number in all, ``input_tokens`` an estimate from the prompts' length.
    ``max_cost_usd`` is None for a judge that costs nothing or has no price.

    Raises JudgeSenseError for data that cannot be read.
    """
    import pyarrow.compute as pc

    from local_judges.api.judge import most_cost
    from local_judges.plan import Requests

    benchmark = data.selected(settings)
    plan: dict[str, Any] = {"tasks": {}, "judges": []}
    for name in benchmark.tasks:
        prompts = benchmark.prompts.filter(pc.equal(benchmark.prompts["task"], name))
        pairs = benchmark.pairs.filter(pc.equal(benchmark.pairs["task"], name))
        items, wordings, orders = (
            len(pc.unique(prompts[column])) for column in ("item_id", "template_id", "order")
        )
        n_labelled = len(pc.unique(prompts.filter(pc.is_valid(prompts["gold"]))["item_id"]))
        plan["tasks"][name] = {
            "items": items,
            "pairs": pairs.num_rows,
            "prompts": len(pc.unique(prompts["prompt_id"])),
            "settles": assumed(items, wordings, orders, n_labelled),
        }
    for spec in judges:
        requests = Requests(answerable(spec, benchmark).asked)
        # Attacks and damage are asked once, however often the others are.
        repeated = requests.again if settings.repeats == 1 else requests.repeated
        repeats = [*requests.take(repeated)] * max(1, settings.repeats - 1)
        all_requests = [*requests, *repeats]
        characters = sum(len(request.message) for request in all_requests)
        cost = most_cost(all_requests, spec.options) if spec.engine in REMOTE else None
        plan["judges"].append(
            {
                "name": spec.name,
                "engine": spec.engine,
                "prompts": len(requests),
                "repeats": settings.repeats,
                "asked_twice": len(repeats) if settings.repeats == 1 else 0,
                "requests": len(all_requests),
                "input_tokens": characters // 4,
                "scorings": list(settings.scorings),
                "max_cost_usd": cost,
            }
        )
    return plan


def describe(plan: dict[str, Any]) -> Iterator[str]:
    """`dry_run` in lines."""
    for name, counts in plan["tasks"].items():
        yield (
            f"{name}: {counts['items']} items, {counts['pairs']} pairs, "
            f"{counts['prompts']} distinct prompts"
        )
        yield f"  {counts['settles']}"
    for judge in plan["judges"]:
        times = f" in {judge['requests']} requests" if judge["repeats"] > 1 else ""
        times = f", {judge['asked_twice']} of them twice" if judge["asked_twice"] else times
        yield (
            f"{judge['name']} ({judge['engine']}) would judge {judge['prompts']} distinct prompts"
            f"{times}: about {judge['input_tokens']:,} input tokens, scoring: "
            f"{' and '.join(judge['scorings'])}"
        )
        if judge["engine"] in REMOTE:
            cost = judge["max_cost_usd"]
            yield (
                "  cost unknown: --set price=INPUT,OUTPUT gives the upper bound"
                if cost is None
                else f"  at most ${cost:.2f}, if every answer has full length"
            )
