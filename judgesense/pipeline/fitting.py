"""Which parts of a run fit a judge: its task and scoring, and prompts that need what it lacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.pipeline.data import DataReference
from judgesense.pipeline.settings import Settings


def require_fitting(spec: Any, benchmark: Benchmark, settings: Settings) -> None:
    """Raise JudgeSenseError if a stabilised judge is to judge another task than its own, or with
    another scoring."""
    stabilised = getattr(spec, "stabilised", None)
    if stabilised is None:
        return
    own = stabilised.entry.task
    if others := [name for name in benchmark.tasks if name != own.name]:
        raise JudgeSenseError(
            f"{stabilised.where} judges the task {own.name}, not {', '.join(others)}: add --tasks "
            f"{own.name}"
        )
    labels = benchmark.tasks[own.name].labels
    if set(labels) != set(own.labels):
        raise JudgeSenseError(
            f"{stabilised.where} judges {own.name} with the labels {', '.join(own.labels)}, and "
            f"the data has {', '.join(labels)}"
        )
    if settings.strict and "options" in settings.scorings and stabilised.scoring == "generate":
        raise JudgeSenseError(f"{stabilised.where} counts votes: it has no options scoring")


def require_effort(spec: Any, benchmark: Benchmark, data: DataReference) -> None:
    """Raise JudgeSenseError for a variant of a reasoning effort that the judge does not take, if
    it was asked for by name."""
    left_out = set(benchmark.prompts["variant"].to_pylist() if data.variants else ())
    if left_out:
        left_out -= set(answerable(spec, benchmark).prompts["variant"].to_pylist())
    if named := [name for name in data.variants if name in left_out]:
        raise JudgeSenseError(
            f"the variant {named[0]!r} sets a reasoning effort, which {name_of(spec)} does not "
            "take: leave it out, or add style: {reasoning_effort: true} to the judge's file if its "
            "endpoint takes one"
        )


def answerable(judge: Any, benchmark: Benchmark) -> Benchmark:
    """The benchmark without the prompts that the judge, or the spec of one, cannot be asked."""
    from local_judges.plan import without_effort

    if getattr(judge, "takes_effort", False):
        return benchmark
    return replace(benchmark, prompts=without_effort(benchmark.prompts))


def name_of(judge: Any) -> str:
    """The name of a judge, of the spec of one, or of a function."""
    name = getattr(judge, "name", None) or getattr(judge, "__name__", type(judge).__name__)
    return str(name)
