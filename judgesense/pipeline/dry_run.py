"""What a run would do, without loading a model."""

from __future__ import annotations

from collections.abc import Iterator

from judgesense.pipeline.execution import RunRequest
from judgesense.pipeline.fitting import answerable
from judgesense.text import duration


def describe(request: RunRequest) -> Iterator[str]:
    """Lines of items, pairs and prompts per task, and per judge its prompts, its highest cost and,
    if it judged on this machine before, how long it takes.

    Raises JudgeSenseError for data that cannot be read.
    """
    import pyarrow.compute as pc

    from local_judges.api.judge import most_cost
    from local_judges.pace import stored
    from local_judges.plan import Requests
    from local_judges.registry import seeded

    benchmark, settings = request.benchmark(), request.settings
    for name in benchmark.tasks:
        prompts = benchmark.prompts.filter(pc.equal(benchmark.prompts["task"], name))
        pairs = benchmark.pairs.filter(pc.equal(benchmark.pairs["task"], name))
        yield (
            f"{name}: {len(pc.unique(prompts['item_id']))} items, {pairs.num_rows} pairs, "
            f"{len(pc.unique(prompts['prompt_id']))} distinct prompts"
        )
    for spec in request.judges:
        requests = Requests(answerable(spec, benchmark).prompts)
        twice = requests.take(requests.again) if settings.repeats == 1 else []
        asked = [*requests, *twice]
        characters = settings.repeats * sum(len(each.message) for each in asked)
        times = f" {settings.repeats} times" if settings.repeats > 1 else ""
        times = f", {len(twice)} of them twice" if twice else times
        yield (
            f"{spec.name} ({spec.engine}) would judge {len(requests)} distinct prompts{times}: "
            f"about {characters // 4:,} input tokens, scored by {' and '.join(settings.scorings)}"
        )
        identity = seeded(spec, settings.seed).identity()
        if pace := stored(identity, settings.scorings):
            yield f"  about {duration(characters / pace)}, at its pace on this machine"
        if spec.engine == "api":
            cost = most_cost(asked, spec.options)
            yield (
                "  cost unknown: --set price=INPUT,OUTPUT gives the upper bound"
                if cost is None
                else f"  at most ${settings.repeats * cost:.2f}, if every answer has full length"
            )
