"""Every metric in one call: the same input, options and result as its module for `evaluate`.

    judgesense.jss(["YES", "NO"], ["YES", "YES"])["jss"]

The folders in `metrics/` (`metric_path`) wrap these functions for `evaluate.load`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.matching import match_answers
from judgesense.statistics import agreement, bias, ranking, robustness
from judgesense.statistics.labels import check_labels
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
) -> dict[str, Any]:
    """Judge Sensitivity Score of two streams of decisions, as `statistics.agreement.jss`.

    Args:
        predictions: decision under the pair's second prompt, one string a pair.
        references: decision under its first prompt, one string a pair.
        item_ids: what each pair is about; pairs of one item are one cluster.
        undecided: labels that are no decision: left out, counted and bounded.
        confidence_level: of the intervals.
        interval: "wilson" or "bootstrap".
        n_resamples: of the bootstraps.
        seed: of the bootstraps.

    Returns:
        The fields of `statistics.agreement.Agreement`, and `signature`; `degenerate` also says
        why there is no interval.

    Raises:
        ValueError: input that cannot be scored; names the argument and the row.
    """
    result = agreement.jss(
        references,
        predictions,
        item_ids,
        undecided=undecided,
        confidence_level=confidence_level,
        interval=interval,
        n_resamples=n_resamples,
        seed=seed,
    ).to_dict()
    if result["n_items"] == 1:
        reasons = (result["degenerate"], "one item: no interval")
        result["degenerate"] = "; ".join(reason for reason in reasons if reason)
    ci = f"{interval}-cluster" + ("" if confidence_level == 0.95 else f"-{confidence_level}")
    result["signature"] = signature(
        "JSS",
        n=result["n_pairs"],
        items=result["n_items"],
        undecided="excluded",
        templates="fixed",
        ci=ci,
        seed=seed if interval == "bootstrap" else None,
        v=__version__,
    )
    return result


def paraphrase_robustness(
    predictions: Any,
    references: Any,
    item_ids: Any = None,
    *,
    tolerance: float = 0.5,
    round_references: bool = False,
    confidence_level: float = 0.95,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> dict[str, Any]:
    """Accuracy and its stability over paraphrases: `statistics.robustness.paraphrase_robustness`.

    Args:
        predictions: k scores an item, one under each paraphrase.
        references: the human score of each item.
        item_ids: one id a row, where rows share an item.
        tolerance: largest distance that `accuracy_tolerance` counts as right.
        round_references: round human scores to whole ones first, halves up.
        confidence_level: of the intervals.
        n_resamples: of the bootstrap.
        seed: of the bootstrap.

    Returns:
        The fields of `statistics.robustness.Robustness`.

    Raises:
        ValueError: input that cannot be scored; names the argument and the row.
    """
    return dataclasses.asdict(
        robustness.paraphrase_robustness(
            predictions,
            references,
            item_ids=item_ids,
            tolerance=tolerance,
            round_references=round_references,
            confidence_level=confidence_level,
            n_resamples=n_resamples,
            seed=seed,
        )
    )


def prompt_sensitivity(predictions: Any, models: Sequence[str] | None = None) -> dict[str, Any]:
    """Spread of accuracies over prompts: `statistics.ranking.prompt_sensitivity`.

    Args:
        predictions: one row a model, its accuracy under each prompt.
        models: the models' names; `std` and `range` are then dicts by name.

    Returns:
        The fields of `statistics.ranking.PromptSensitivity`.

    Raises:
        ValueError: input that cannot be scored, or names that do not fit the rows.
    """
    result = dataclasses.asdict(ranking.prompt_sensitivity(predictions))
    if models is not None:
        names = check_labels(models, "models")
        if not len(names) == len(models) == result["n_models"]:
            raise JudgeSenseError(
                f"models is {models}: pass {result['n_models']} different names, one for each row "
                "of predictions"
            )
        for key in ("std", "range"):
            result[key] = dict(zip(map(str, models), result[key], strict=True))
    return result


def ranking_stability(predictions: Any, *, k: int = 3, z: float = 1.0) -> dict[str, Any]:
    """Stability of a ranking of prompts over conditions: `statistics.ranking.ranking_stability`.

    Args:
        predictions: one row a condition, the score of each of M prompts.
        k: size of the top-k sets.
        z: weight of the standard error in the lower confidence bound.

    Returns:
        The fields of `statistics.ranking.RankingStability`.

    Raises:
        ValueError: input that cannot be ranked; names the argument and the row.
    """
    return dataclasses.asdict(ranking.ranking_stability(predictions, k=k, z=z))


def position_bias(
    predictions: Any,
    references: Any,
    item_ids: Any = None,
    *,
    labels: str = "position",
    options: Sequence[str] = bias.OPTIONS,
    ties: Collection[str] = bias.TIES,
    undecided: Collection[str] = agreement.UNDECIDED,
    confidence_level: float = 0.95,
) -> dict[str, Any]:
    """Position bias from decisions in both option orders: `statistics.bias.position_bias`.

    Args:
        predictions: decisions with the options swapped (BA), one string a pair.
        references: decisions in the first order (AB), one string a pair.
        item_ids: one id a pair, where pairs share an item.
        labels: "position" (options[0] is the one shown first) or "item" (the same item in both).
        options: the two labels.
        ties: labels that prefer neither.
        undecided: labels that are no decision.
        confidence_level: of the intervals.

    Returns:
        The fields of `statistics.bias.PositionBias`.

    Raises:
        ValueError: input that cannot be scored; names the argument and the row.
    """
    return dataclasses.asdict(
        bias.position_bias(
            predictions,
            references,
            labels=labels,
            item_ids=item_ids,
            options=options,
            ties=ties,
            undecided=undecided,
            confidence_level=confidence_level,
        )
    )


def answer_match(
    predictions: Sequence[str],
    references: Sequence[str | Sequence[str]],
    method: str = "choice",
    **options: Any,
) -> dict[str, Any]:
    """Whether responses give the reference answers: `matching.match_answers`.

    Args:
        predictions: one response a row.
        references: the answer, or a list of accepted answers, a row.
        method: "choice", "f1", "math" or "exact".
        **options: of the method.

    Returns:
        `score` and `per_example`, in [0, 1]; `method`; `n_unread` responses in which the method
        found no answer (they score 0), and `problems` that hid it, by row.

    Raises:
        ValueError: input that cannot be scored, an unknown method or option.
    """
    result = match_answers(predictions, references, method, **options)
    return {
        "score": result.score,
        "per_example": result.per_example,
        "method": result.method,
        "n_unread": result.n_unread,
        "problems": result.problems,
    }


METRICS: dict[str, Callable[..., dict[str, Any]]] = {
    "jss": jss,
    "paraphrase_robustness": paraphrase_robustness,
    "prompt_sensitivity": prompt_sensitivity,
    "ranking_stability": ranking_stability,
    "position_bias": position_bias,
    "answer_match": answer_match,
}
"""The metrics by name."""


def metric_path(name: str) -> str:
    """The folder of a metric for `evaluate.load`, absolute: in a wheel and in a checkout.

    Raises:
        JudgeSenseError: there is no such metric; lists those there are.
    """
    here = Path(__file__).resolve().parent
    home = here / "_metrics" if (here / "_metrics").is_dir() else here.parent / "metrics"
    if name not in METRICS:
        raise JudgeSenseError(f"there is no metric {name!r}; there are {', '.join(METRICS)}")
    folder = home / name
    if not (folder / f"{name}.py").is_file():
        raise JudgeSenseError(f"{folder} is missing: install judgesense again")
    return str(folder)
