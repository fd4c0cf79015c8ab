"""Which parts of a run fit a judge: its task and scoring, and prompts that need what it lacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.pipeline.data import DataReference
from judgesense.pipeline.settings import Settings


def require_fitting(spec: Any, benchmark: Benchmark, settings: Settings) -> None:
    """Raise JudgeSenseError if an improved judge is to judge another task than its own, or with
    another scoring."""
    improved = getattr(spec, "improved", None)
    if improved is None:
        return
    task = improved.entry.task
    if others := [name for name in benchmark.tasks if name != task.name]:
        raise JudgeSenseError(
            f"{improved.where} judges the task {task.name}, not {', '.join(others)}; add --tasks "
            f"{task.name}"
        )
    labels = benchmark.tasks[task.name].labels
    if set(labels) != set(task.labels):
        raise JudgeSenseError(
            f"{improved.where} judges {task.name} with the labels {', '.join(task.labels)}, but "
            f"the data has the labels {', '.join(labels)}"
        )
    if settings.strict and "options" in settings.scorings and improved.scoring == "generate":
        raise JudgeSenseError(f"{improved.where} counts votes; leave out --scoring")


def require_effort(spec: Any, benchmark: Benchmark, data: DataReference) -> None:
    """Raise JudgeSenseError for a variant of a reasoning effort that the judge does not take, if it
    was asked for by name."""
    efforts: dict[str, str] = {}
    if data.variants:
        columns = benchmark.prompts.select(["variant", "effort"]).to_pydict()
        efforts = dict(zip(columns["variant"], columns["effort"], strict=True))
        for name in set(answerable(spec, benchmark).prompts["variant"].to_pylist()):
            efforts.pop(name)
    for name in data.variants:
        if name in efforts:
            raise JudgeSenseError(
                f"the {name!r} variant sets a reasoning effort, which {name_of(spec)} does not "
                "take; leave it out, or add style: {reasoning_effort: true} to the judge's file if "
                "its endpoint takes one"
            )


def answerable(judge: Any, benchmark: Benchmark) -> Benchmark:
    """The benchmark without the prompts that the judge, or the spec of one, cannot be asked: those
    with a reasoning effort, unless it takes one."""
    prompts = benchmark.prompts
    if "effort" not in prompts.column_names or getattr(judge, "takes_effort", False):
        return benchmark
    import pyarrow.compute as pc

    return replace(benchmark, prompts=prompts.filter(pc.is_null(prompts["effort"])))


def name_of(judge: Any) -> str:
    """The name of a judge, of the spec of one, or of a function."""
    name = getattr(judge, "name", None) or getattr(judge, "__name__", type(judge).__name__)
    return str(name)
