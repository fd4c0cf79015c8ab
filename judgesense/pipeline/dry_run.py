"""What a run would do, without loading a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from judgesense.pipeline.execution import RunRequest
from judgesense.pipeline.fitting import answerable
from judgesense.text import duration


def dry_run(request: RunRequest) -> dict[str, Any]:
    """Items, pairs and distinct prompts per task; per judge its prompts, highest cost and time.

    ``asked_twice`` is the number of prompts that are asked again, ``input_tokens`` an estimate from
    the prompts' length. ``max_cost_usd`` is None for a judge that costs nothing or has no price,
    ``seconds`` for one that has not judged on this machine before.

    Raises JudgeSenseError for data that cannot be read.
    """
    import pyarrow.compute as pc

    from local_judges.api.judge import most_cost
    from local_judges.pace import MARGIN, stored
    from local_judges.plan import Requests
    from local_judges.registry import seeded

    benchmark, settings = request.benchmark(), request.settings
    found: dict[str, Any] = {"tasks": {}, "judges": []}
    for name in benchmark.tasks:
        prompts = benchmark.prompts.filter(pc.equal(benchmark.prompts["task"], name))
        pairs = benchmark.pairs.filter(pc.equal(benchmark.pairs["task"], name))
        found["tasks"][name] = {
            "items": len(pc.unique(prompts["item_id"])),
            "pairs": pairs.num_rows,
            "prompts": len(pc.unique(prompts["prompt_id"])),
        }
    for spec in request.judges:
        requests = Requests(answerable(spec, benchmark).prompts)
        twice = requests.take(requests.again) if settings.repeats == 1 else []
        asked = [*requests, *twice]
        characters = settings.repeats * sum(len(each.message) for each in asked)
        pace = stored(seeded(spec, settings.seed).identity(), settings.scorings)
        cost = most_cost(asked, spec.options) if spec.engine == "api" else None
        found["judges"].append(
            {
                "name": spec.name,
                "engine": spec.engine,
                "prompts": len(requests),
                "repeats": settings.repeats,
                "asked_twice": len(twice),
                "input_tokens": characters // 4,
                "scorings": list(settings.scorings),
                "seconds": MARGIN * characters / pace if pace else None,
                "max_cost_usd": None if cost is None else settings.repeats * cost,
            }
        )
    return found


def describe(request: RunRequest) -> Iterator[str]:
    """`dry_run` in lines."""
    found = dry_run(request)
    for name, counts in found["tasks"].items():
        yield (
            f"{name}: {counts['items']} items, {counts['pairs']} pairs, "
            f"{counts['prompts']} distinct prompts"
        )
    for judge in found["judges"]:
        times = f" {judge['repeats']} times" if judge["repeats"] > 1 else ""
        times = f", {judge['asked_twice']} of them twice" if judge["asked_twice"] else times
        yield (
            f"{judge['name']} ({judge['engine']}) would judge {judge['prompts']} distinct prompts"
            f"{times}: about {judge['input_tokens']:,} input tokens, scored by "
            f"{' and '.join(judge['scorings'])}"
        )
        if judge["seconds"] is not None:
            yield f"  at most about {duration(judge['seconds'])}, at its pace on this machine"
        if judge["engine"] == "api":
            cost = judge["max_cost_usd"]
            yield (
                "  cost unknown: --set price=INPUT,OUTPUT gives the upper bound"
                if cost is None
                else f"  at most ${cost:.2f}, if every answer has full length"
            )
