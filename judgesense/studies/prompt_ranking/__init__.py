"""Would you choose the best prompt again? Rankings of prompts over subsets of a benchmark.

Source: "On the Stability of Prompt Ranking in Large Language Model Evaluation", arXiv:2606.24381.
Every prompt is asked with every item once; seeds and sizes select subsets of those scores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgesense.reporting.study_result import Result
from judgesense.studies.common.question_sets import check_models, draw
from judgesense.studies.common.study import PROTOCOL, REANALYSIS
from judgesense.studies.prompt_ranking.grid import (
    FEW_SHOT,
    ITEMS,
    MAX_TOKENS,
    SHOTS,
    SIZES,
    PromptScores,
    RankingPlan,
    ask,
    measure,
    prompts_of,
    provenance,
    read_scores,
)
from judgesense.studies.prompt_ranking.spec import SPEC
from judgesense.text import short_names

__all__ = ["ITEMS", "MAX_TOKENS", "SIZES", "RankingPlan", "prompt_ranking", "rank_scores"]


def prompt_ranking(
    responders: Sequence[Any],
    out: str | Path,
    *,
    plan: RankingPlan | None = None,
    mirror: str | Path | None = None,
    note: Callable[[str], None] = print,
) -> Result:
    """Ask 20 prompts per task with every item, and measure how stable their ranking is.

    Rerun with the same ``out`` to resume or to measure again; ``mirror`` is a folder with the sets,
    instead of the Hub. Raises JudgeSenseError for bad input, before a model is loaded.
    """
    plan, out = plan or RankingPlan(), Path(out)
    check_models(responders)
    plan.check_sizes(plan.limit, "limit")
    wordings = {task: prompts_of(task) for task in plan.tasks}
    samples, examples = {}, {}
    for task in plan.tasks:
        name = task.removesuffix(FEW_SHOT)
        samples[task] = draw(name, plan.limit, plan.seed, mirror, out)
        # The first items of a larger draw are those of the smaller one.
        n = plan.limit + SHOTS if task != name else None
        examples[task] = n and draw(name, n, plan.seed, mirror, out / "few-shot").items[-SHOTS:]
    grids = [
        grid
        for task in plan.tasks
        for grid in ask(
            task,
            responders,
            samples[task].items,
            wordings[task],
            plan.scorings,
            plan.max_tokens,
            out,
            note,
            plan.seed,
            examples[task] or (),
        )
    ]
    settings = {
        **PROTOCOL,
        "responders": sorted({grid.model for grid in grids}),
        "prompts": [f"{len(texts)} of {task}" for task, texts in wordings.items()],
        "wordings": provenance(),
        "items": [f"{task}: {sample.words}" for task, sample in samples.items()],
        "max_tokens": plan.max_tokens,
    }
    names = short_names({grid.model for grid in grids})
    grids = [replace(grid, model=names[grid.model]) for grid in grids]
    texts = {name: text for sample in wordings.values() for name, text in sample.items()}
    return _result(grids, plan, settings, texts)


def rank_scores(path: str | Path, *, plan: RankingPlan | None = None) -> Result:
    """Measure the ranking of your prompts from a table (`grid.read_scores`); no model is asked.

    Raises JudgeSenseError for a damaged table, and for sizes that are not smaller than its number
    of items.
    """
    plan, path = plan or RankingPlan(), Path(path)
    grids = read_scores(path)
    for grid in grids:
        plan.check_sizes(len(grid.items), f"{path} ({grid.series})")
    settings = {
        **REANALYSIS,
        "scores": str(path),
        "items": [f"{grid.series}: {len(grid.items)}" for grid in grids],
    }
    return _result(grids, plan, settings, {})


def _result(
    grids: Sequence[PromptScores],
    plan: RankingPlan,
    settings: Mapping[str, Any],
    texts: Mapping[str, str],
) -> Result:
    z = [plan.z, *plan.more_z] if plan.more_z else plan.z
    plan_settings = {"subset sizes": [*plan.sizes], "seeds": plan.seeds, "z": z, "seed": plan.seed}
    return SPEC.result(measure(grids, plan, texts), {**settings, **plan_settings})
