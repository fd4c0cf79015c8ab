"""Scores of a response log by model and template, and the rows on which two matchers differ."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev
from typing import Any

ModelScores = dict[str, Any]
"""One model's scores over its templates: the entries of ``scores`` in ``match.json``."""


def score_models(
    models: Sequence[str], templates: Sequence[str], scores: Sequence[float | None]
) -> list[ModelScores]:
    """Scores of n responses, grouped; models and templates in order of first appearance.

    ``by_template`` has the mean ``score`` of the ``n_scored`` of ``n`` responses with a score (None
    is no verdict); ``mean`` and ``std`` (population) cover the templates with a score. They are
    None without any. Source: "Artifact or Flaw?", section 2.3 (performance variation).

    >>> score_models(["m", "m", "m"], ["t1", "t1", "t2"], [1.0, 0.0, 1.0])[0]["mean"]
    0.75
    """
    cells: dict[str, dict[str, list[float | None]]] = {}
    for model, template, score in zip(models, templates, scores, strict=True):
        cells.setdefault(model, {}).setdefault(template, []).append(score)
    table = []
    for model, by_template in cells.items():
        row = {}
        for template, values in by_template.items():
            known = [value for value in values if value is not None]
            score = fmean(known) if known else None
            row[template] = {"score": score, "n_scored": len(known), "n": len(values)}
        means = [cell["score"] for cell in row.values() if cell["score"] is not None]
        mean, std = (fmean(means), pstdev(means)) if means else (None, None)
        table.append({"model": model, "by_template": row, "mean": mean, "std": std})
    return table


def mean_rank_correlation(models: Sequence[ModelScores]) -> float | None:
    """Mean Spearman's rho of the models' ranking over all pairs of templates, or None.

    None with under 3 models or 2 templates, and if a model lacks a template. Source: "Artifact or
    Flaw?", section 2.3 (ranking consistency).

    >>> models = score_models(["a", "b", "c"] * 2, ["t1"] * 3 + ["t2"] * 3, [0, 1, 2, 0, 1, 2])
    >>> mean_rank_correlation(models)
    1.0
    """
    from judgesense.statistics.sensitivity import prompt_sensitivity

    templates = list(models[0]["by_template"])
    cells = [each["by_template"] for each in models]
    scores = [[own[name]["score"] if name in own else None for name in templates] for own in cells]
    if len(models) < 3 or len(templates) < 2 or any(None in row for row in scores):
        return None
    return prompt_sensitivity(scores).mean_spearman


def disagreement(
    heuristic: Sequence[float], judged: Sequence[float | None]
) -> dict[str, list[int]]:
    """The rows on which two matchers agree or differ; 0.5 or more is right.

    ``missed_by_heuristic`` and ``only_heuristic`` are the rows that only the judge, or only the
    heuristic, counts as right; ``no_verdict`` the rows without a verdict of the judge.

    >>> disagreement([1.0, 0.0], [1.0, 1.0])["missed_by_heuristic"]
    [1]
    """
    kinds = {
        (True, True): "both_right",
        (False, False): "both_wrong",
        (False, True): "missed_by_heuristic",
        (True, False): "only_heuristic",
    }
    rows: dict[str, list[int]] = {kind: [] for kind in (*kinds.values(), "no_verdict")}
    for row, (score, verdict) in enumerate(zip(heuristic, judged, strict=True)):
        kind = "no_verdict" if verdict is None else kinds[score >= 0.5, verdict >= 0.5]
        rows[kind].append(row)
    return rows
