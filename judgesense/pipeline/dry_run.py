"""What a run would do, without loading a model."""

from __future__ import annotations

from collections.abc import Iterator

from judgesense.pipeline.execution import RunRequest


def describe(request: RunRequest) -> Iterator[str]:
    """Lines of items, pairs and prompts per task, and per judge its prompts and highest cost.

    Raises JudgeSenseError for data that cannot be read.
    """
    import pyarrow.compute as pc

    from local_judges.api.judge import most_cost
    from local_judges.plan import Requests

    benchmark, settings = request.benchmark(), request.settings
    for name in benchmark.tasks:
        prompts = benchmark.prompts.filter(pc.equal(benchmark.prompts["task"], name))
        pairs = benchmark.pairs.filter(pc.equal(benchmark.pairs["task"], name))
        yield (
            f"{name}: {len(pc.unique(prompts['item_id']))} items, {pairs.num_rows} pairs, "
            f"{len(pc.unique(prompts['prompt_id']))} distinct prompts"
        )
    requests = Requests(benchmark.prompts)
    tokens = pc.sum(pc.utf8_length(benchmark.prompts["text"])).as_py() // 4
    times = f" {settings.repeats} times" if settings.repeats > 1 else ""
    for spec in request.judges:
        yield (
            f"{spec.name} ({spec.engine}) would judge {len(requests)} distinct prompts{times}, "
            f"about {tokens:,} input tokens, scored by {' and '.join(settings.scorings)}"
        )
        if spec.engine == "api":
            cost = most_cost(requests, spec.options)
            yield (
                "  cost unknown: --set price=INPUT,OUTPUT gives the upper bound"
                if cost is None
                else f"  at most ${settings.repeats * cost:.2f}, if every answer has full length"
            )
