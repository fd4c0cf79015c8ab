"""Every metric as one function: the same input, options and figures as its module for `evaluate`.

The folders in `metrics/` (`metric_path`) wrap these functions for `evaluate.load`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.matching import match_answers
from judgesense.statistics import agreement
from judgesense.statistics.agreement import Agreement
from judgesense.statistics.bias import position_bias
from judgesense.statistics.ranking import prompt_sensitivity, ranking_stability
from judgesense.statistics.result import ResultMapping
from judgesense.statistics.robustness import paraphrase_robustness
from judgesense.statistics.signature import signature
from judgesense.version import __version__


def jss(
    predictions: Any,
    references: Any,
    item_ids: Any = None,
    *,
    undecided: Collection[str] = agreement.UNDECIDED,
    confidence_level: float = 0.95,
    interval: str = "wilson",
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Agreement:
    """Judge Sensitivity Score: the share of pairs with the same decision under both prompts.

    JSS = mean of [a_i == b_i] (JudgeSense, section 3.1, formula 1). The intervals treat items, not
    pairs, as the sample.

    Args:
        predictions: decision under each pair's second prompt, shape (n,), strings.
        references: decision under each pair's first prompt, shape (n,), strings.
        item_ids: the item of each pair; pairs of one item form one cluster. None makes every pair
            an item of its own.
        undecided: labels without a decision; such pairs are left out, counted and bounded.
        confidence_level: of the intervals.
        interval: "wilson" or "bootstrap".
        n_resamples: number of bootstrap resamples.
        seed: seed of the bootstraps.

    Returns:
        The agreement with its signature; `degenerate` also says why an interval is missing.

    Raises:
        ValueError: input that cannot be scored; names the argument and the row.

    >>> result = jss(["YES", "NO", "NO"], ["YES", "YES", "NO"], ["q1", "q2", "q3"])
    >>> round(result.jss, 3)
    0.667
    >>> result["n_pairs"]
    3
    """
    result = agreement.jss(
        predictions,
        references,
        item_ids,
        undecided=undecided,
        confidence_level=confidence_level,
        interval=interval,
        n_resamples=n_resamples,
        seed=seed,
    )
    reasons = [result.degenerate, "one item: no interval" if result.n_items == 1 else None]
    ci = f"{interval}-cluster" + ("" if confidence_level == 0.95 else f"-{confidence_level}")
    return dataclasses.replace(
        result,
        degenerate="; ".join(reason for reason in reasons if reason) or None,
        signature=signature(
            "JSS",
            n=result.n_pairs,
            items=result.n_items,
            undecided="excluded",
            templates="fixed",
            ci=ci,
            seed=seed if interval == "bootstrap" else None,
            v=__version__,
        ),
    )


METRICS: dict[str, Callable[..., ResultMapping]] = {
    "jss": jss,
    "paraphrase_robustness": paraphrase_robustness,
    "prompt_sensitivity": prompt_sensitivity,
    "ranking_stability": ranking_stability,
    "position_bias": position_bias,
    "answer_match": match_answers,
}
"""The metrics by name."""


def metric_path(name: str) -> str:
    """The absolute path of a metric's folder, for `evaluate.load`; works in a wheel and a checkout.

    Raises:
        JudgeSenseError: an unknown metric.

    >>> Path(metric_path("jss")).name
    'jss'
    """
    here = Path(__file__).resolve().parent
    home = here / "_metrics" if (here / "_metrics").is_dir() else here.parent / "metrics"
    if name not in METRICS:
        raise JudgeSenseError(f"unknown metric {name!r}; choose one of {', '.join(METRICS)}")
    folder = home / name
    if not (folder / f"{name}.py").is_file():
        raise JudgeSenseError(f"{folder} is missing: reinstall judgesense")
    return str(folder)
