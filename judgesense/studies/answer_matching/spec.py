"""The declaration of answer-matching: its tables, figures, findings and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from judgesense.reporting.study_result import Record
from judgesense.statistics.arrays import Floats
from judgesense.statistics.sensitivity import (
    prompt_sensitivity,
    rank_agreement_interval,
    template_means,
    template_spread,
)
from judgesense.studies.answer_matching.answers import HEURISTIC, JUDGE, RIGHT, BenchmarkAnswers
from judgesense.studies.common.figures import Points
from judgesense.studies.common.study import Figure, Study, Tables, published, table
from judgesense.text import join, number, percent, short_names

NAME = "answer-matching"

USABLE = 0.9
"""A judge is usable as a matcher from this balanced accuracy on the probes, which are easy."""


@dataclass(frozen=True)
class Matched:
    """The answers to every benchmark, matched."""

    benchmarks: Sequence[BenchmarkAnswers]
    seed: int

    @cached_property
    def names(self) -> dict[str, str]:
        """The short name of each model."""
        return short_names({model for answers in self.benchmarks for model in answers.models})


@table(
    "accuracy",
    "Accuracy over templates (the paper's Figure 2)",
    "std: population standard deviation of the accuracy over templates. std by chance: the std of "
    "the same scores when each item's scores are assigned to the templates at random. p: the "
    "share of such assignments that spread at least as much (permutation test). Means leave out "
    "answers without a verdict. likelihood: matches the most probable label (A-D or 1-4). For "
    "NarrativeQA, the score is word F1.",
    accuracy="mean accuracy",
    accuracy_low="lowest",
    accuracy_high="highest",
)
def accuracy(source: Matched) -> Iterator[Record]:
    """Accuracy of each model by each matcher: its mean and its spread over templates."""
    for answers in source.benchmarks:
        for matcher, by_model in answers.scores.items():
            for model, scores in zip(answers.models, by_model, strict=True):
                templates, items = scores.shape
                yield {
                    "benchmark": answers.benchmark,
                    "model": source.names[model],
                    "matcher": matcher,
                    **template_spread(scores, source.seed),
                    "n_templates": templates,
                    "n_items": items,
                    "no_verdict": float(np.isnan(scores).mean()),
                }


def rank_agreement(scores: Floats, seed: int) -> dict[str, float | str | None]:
    """Mean Spearman's ρ of the models' ranking over pairs of templates, its 95% interval, and why
    it is undefined. ``scores`` has shape (models, templates, items)."""
    unknown = dict.fromkeys(("mean_spearman", "ci_low", "ci_high"))
    if len(scores) < 3:
        return {**unknown, "undefined": f"a ranking needs 3 models or more, got {len(scores)}"}
    means = template_means(scores)
    if means is None:
        return {**unknown, "undefined": "a model has no verdict under a template"}
    sensitivity, interval = prompt_sensitivity(means), rank_agreement_interval(scores, seed=seed)
    return {
        "mean_spearman": sensitivity.mean_spearman,
        "ci_low": interval.low,
        "ci_high": interval.high,
        "undefined": sensitivity.degenerate or "",
    }


@table(
    "ranking",
    "Mean Spearman's ρ of the models' ranking over pairs of templates (the layout of Table 1)",
    "95% percentile intervals over items; with few items they are wide and need not be centred on "
    "ρ. Pairs that include a template under which all models tie have no ρ and are left out. The "
    "paper's figures come from other, larger models and are shown for orientation only. paper: "
    "over the models that the paper's heuristic could score, so that its heuristic and its judge "
    "rank the same models. paper, 7 models: the paper's judge over all seven models.",
    mean_spearman="mean ρ",
    paper_mean_spearman="paper",
    paper_all_models="paper, 7 models",
)
def ranking(source: Matched) -> Iterator[Record]:
    """Whether templates rank the models alike, with the paper's figures."""
    figures = published(NAME)
    for answers in source.benchmarks:
        for matcher, scores in answers.scores.items():
            by_judge = matcher.startswith(JUDGE)
            seven = four = None
            if by_judge or matcher == HEURISTIC.get(answers.kind):
                key = f"{answers.benchmark}/{'judge' if by_judge else 'heuristic'}/rho"
                seven = figures.get(key)
                four = figures.get(f"{key}-4-models", seven)
            rho = rank_agreement(scores, source.seed)
            reason = rho.pop("undefined")
            yield {
                "benchmark": answers.benchmark,
                "matcher": matcher,
                **rho,
                "n_models": len(answers.models),
                "undefined": reason,
                "paper_mean_spearman": four.value if four else None,
                "place": four.place if four else "",
                "paper_all_models": seven.value if seven and seven is not four else None,
            }


@table(
    "published",
    "Figures that the paper's text states, beside this study's",
    "Models and items differ, so the figures cannot be compared directly. ours: the lowest and "
    "the highest of this study's models; ρ is one figure over all models. std, lowest, highest, "
    "range: of a model's accuracy over templates.",
    model="paper's models",
    lowest="ours, lowest",
    highest="ours, highest",
)
def stated(source: Matched) -> Iterator[Record]:
    """What the paper states outside its tables, on the benchmarks that were asked."""
    for answers in source.benchmarks:
        matchers = {"judge": JUDGE, "heuristic": HEURISTIC.get(answers.kind, "")}
        for key, figure in published(NAME).items():
            benchmark, matcher, measure, *models = key.split("/")
            if benchmark == answers.benchmark and models:
                scores = answers.scores.get(matchers[matcher])
                means = None if scores is None else template_means(scores)
                values = [] if means is None else _STATED[measure](means)
                yield {
                    "benchmark": benchmark,
                    "matcher": matcher,
                    "measure": measure,
                    "model": models[0],
                    **figure.beside([value for value in values if value is not None]),
                }


_STATED: Mapping[str, Callable[[Floats], list[float | None]]] = {
    "rho": lambda means: [prompt_sensitivity(means).mean_spearman],
    "std": lambda means: means.std(axis=1).tolist(),
    "lowest": lambda means: means.min(axis=1).tolist(),
    "highest": lambda means: means.max(axis=1).tolist(),
    "range": lambda means: np.ptp(means, axis=1).tolist(),
}


@table(
    "matchers",
    "How accurate the matchers are",
    "Probes are answers written for this test. Multiple choice: the right and a wrong option, "
    "each as a statement of its label and as its text. Otherwise: the item's reference and "
    "another's. A matcher that guesses has a balanced accuracy of 0.5.",
)
def matchers(source: Matched) -> Iterator[Record]:
    """How accurate the matchers are on answers that are known to be right or wrong."""
    for answers in source.benchmarks:
        truth = np.array([bool(probe.right) for probe in answers.probes])
        for matcher, verdicts in answers.probe_scores.items():
            if not len(verdicts):  # likelihood scores no probe
                continue
            hits = rejections = balanced = None
            if not np.isnan(verdicts).all():  # a matcher that gave no verdict has no accuracy
                hits = float((verdicts[truth] >= RIGHT).mean())
                if not truth.all():
                    rejections = float((verdicts[~truth] < RIGHT).mean())
                    balanced = (hits + rejections) / 2
            by_judge = matcher.startswith(JUDGE)
            name = f"judge {answers.grader}{matcher.removeprefix(JUDGE)}" if by_judge else matcher
            yield {
                "benchmark": answers.benchmark,
                "matcher": name,
                "right_accepted": hits,
                "wrong_rejected": rejections,
                "balanced_accuracy": balanced,
                "no_verdict": float(np.isnan(verdicts).mean()),
                "n_probes": len(verdicts),
            }


def findings(source: Matched, tables: Tables) -> Iterator[str]:
    """What the tables show."""
    for answers in source.benchmarks:
        rows = [r for r in tables["accuracy"].rows if r["benchmark"] == answers.benchmark]
        by_matcher: dict[str, list[float]] = {}
        for row in rows:
            if row["std"] is not None:
                by_matcher.setdefault(row["matcher"], []).append(row["std"])
        if by_matcher:
            texts = [f"{number(float(np.mean(s)))} by {name}" for name, s in by_matcher.items()]
            beyond = sum(row["p"] is not None and row["p"] < 0.05 for row in rows)
            yield (
                f"on {answers.benchmark}, the standard deviation of accuracy over "
                f"{len(answers.templates)} templates is {join(texts)} (mean over models). For "
                f"{beyond} of {len(rows)} pairs of a model and a matcher, accuracy varies more "
                "than chance explains (p < 0.05)"
            )
        if unread := sum(reading is None for reading in answers.readings):
            yield (
                f"on {answers.benchmark}, the heuristic that reads the text could not read "
                f"{percent(unread / len(answers.responses))} of {len(answers.responses)} answers, "
                "which count as wrong"
            )
    for row in tables["matchers"].rows:
        balanced = row["balanced_accuracy"]
        if row["matcher"].startswith("judge ") and row["no_verdict"] == 1:
            yield (
                f"on {row['benchmark']}, {row['matcher']} gave no verdict on answers known to be "
                "right or wrong: ignore its accuracies"
            )
        if row["matcher"].startswith("judge ") and balanced is not None:
            advice = "its accuracies are usable" if balanced >= USABLE else "ignore its accuracies"
            yield (
                f"on {row['benchmark']}, {row['matcher']} has a balanced accuracy of "
                f"{number(balanced)} on answers known to be right or wrong: {advice}"
            )


def limits(source: Matched, tables: Tables) -> Iterator[str]:
    """What the figures do not show, and what to add."""
    for answers in source.benchmarks:
        if answers.left_out:
            yield (
                f"on {answers.benchmark}, {answers.left_out} items are left out for every model, "
                "because some model gave no answer to them (see the error column of its answers)"
            )
    cut = sum(response.cut for answers in source.benchmarks for response in answers.responses)
    if cut:
        yield f"the token cap cut off {cut} answers, which are matched as far as they go"
    if any(JUDGE not in answers.scores for answers in source.benchmarks):
        yield "no judge matched the answers: add --grader to compare one with the heuristics"
    yield (
        "every spread is conditional on these templates and items; the paper's models are larger, "
        "so these figures neither confirm nor contradict its figures"
    )


def _off(sign: int) -> Callable[[Mapping[str, Any]], float | None]:
    """The mean accuracy plus ``sign`` standard deviations; None without a spread."""
    return lambda row: None if row["std"] is None else row["accuracy"] + sign * row["std"]


SPEC = Study(
    NAME,
    "Prompt sensitivity, by what matches the answers",
    tables=[accuracy, ranking, matchers, stated],
    figures=[
        Figure(
            "accuracy",
            "Accuracy of each model by each matcher: mean over templates, plus and minus one "
            "standard deviation (the paper's Figure 2).",
            "accuracy",
            Points(
                group="benchmark",
                name=lambda row: f"{row['model']}, {row['matcher']}",
                values={"": ("accuracy", _off(-1), _off(1))},
                xlabel="accuracy, mean ± std over templates",
            ),
        ),
    ],
    findings=[findings],
    limits=[limits],
)
