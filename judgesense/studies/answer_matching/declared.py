"""The declaration of answer-matching: its tables, figures, findings and limits.

A cell is one model on one benchmark by one matcher, with scores of shape (templates, items).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from judgesense.reporting.result import Record
from judgesense.statistics.arrays import Floats
from judgesense.statistics.kappa import cohen_kappa
from judgesense.statistics.sensitivity import (
    Spread,
    prompt_sensitivity,
    rank_agreement_interval,
    template_means,
    template_spread,
)
from judgesense.studies.answer_matching.answers import (
    EXTRACTION,
    HEURISTIC,
    JUDGE,
    RIGHT,
    BenchmarkAnswers,
)
from judgesense.studies.common.figures import Points
from judgesense.studies.common.study import Figure, Study, Tables, published, table
from judgesense.text import join, number, percent, short_names

NAME = "answer-matching"

ONE_LETTER = 0.9
"""A model with at least this share of its choices on one option is named."""

USABLE = 0.9
"""A judge is usable as a matcher from this balanced accuracy on the probes, which are easy."""

_SPREAD = ("accuracy", "std", "std_by_chance", "p", "accuracy_low", "accuracy_high")


@dataclass(frozen=True)
class Cell:
    """One model on one benchmark by one matcher; ``at`` is its place among the models."""

    answers: BenchmarkAnswers
    at: int
    model: str
    matcher: str
    seed: int

    @property
    def scores(self) -> Floats:
        """Shape (templates, items); NaN without a verdict."""
        scores: Floats = self.answers.scores[self.matcher][self.at]
        return scores

    @property
    def spread(self) -> Spread | None:
        """How accuracy varies over templates; None where a template has no verdict."""
        return template_spread(self.scores, seed=self.seed)

    @property
    def one_letter(self) -> float | None:
        """Share of the choices that fall on the most frequent option; None for other matchers."""
        chosen = self.answers.chosen(self.matcher)
        if chosen is None:
            return None
        letters = Counter(letter for letter in chosen[self.at].ravel().tolist() if letter)
        return letters.most_common(1)[0][1] / letters.total() if letters else None


@dataclass(frozen=True)
class Matched:
    """The answers to every benchmark, matched, and the cells of all of them."""

    benchmarks: Sequence[BenchmarkAnswers]
    seed: int

    @cached_property
    def names(self) -> dict[str, str]:
        """The short name of each model."""
        return short_names({model for answers in self.benchmarks for model in answers.models})

    @cached_property
    def cells(self) -> list[Cell]:
        """A cell per benchmark, matcher and model."""
        return [
            Cell(answers, at, self.names[model], matcher, self.seed)
            for answers in self.benchmarks
            for matcher in answers.scores
            for at, model in enumerate(answers.models)
        ]


@table(
    "accuracy",
    "Accuracy over templates (the paper's Figure 2)",
    "std: population standard deviation of the accuracy over templates. std by chance: the std of "
    "the same scores when each item's scores are assigned to the templates at random; p: the share "
    "of such assignments that spread at least as much (permutation test). Answers without a "
    "verdict are left out of the means. one letter: the share of the choices that fall on the most "
    "frequent option; a model that always takes the same option is right by chance. likelihood: "
    "the most probable label (A-D or 1-4). For NarrativeQA the score is word F1.",
    accuracy="mean accuracy", accuracy_low="lowest", accuracy_high="highest",
)  # fmt: skip
def accuracy(source: Matched) -> Iterator[Record]:
    """Accuracy of each model by each matcher: its mean and its spread over templates."""
    for cell in source.cells:
        s = cell.spread
        known = (None,) * 6 if s is None else (s.mean, s.std, s.by_chance, s.p, s.low, s.high)
        templates, items = cell.scores.shape
        yield {
            "benchmark": cell.answers.benchmark, "model": cell.model, "matcher": cell.matcher,
            **dict(zip(_SPREAD, known, strict=True)), "n_templates": templates, "n_items": items,
            "no_verdict": float(np.isnan(cell.scores).mean()), "one_letter": cell.one_letter,
        }  # fmt: skip


def rank_agreement(scores: Floats, seed: int) -> dict[str, float | str | None]:
    """Mean Spearman's ρ of the models' ranking over pairs of templates, its 95% interval, and why
    it is undefined. ``scores`` has shape (models, templates, items)."""
    models, templates, _ = scores.shape
    found: dict[str, float | str | None] = dict.fromkeys(("mean_spearman", "ci_low", "ci_high"))
    if models < 3:
        return found | {"undefined": f"a ranking needs 3 models or more, got {models}"}
    means = template_means(scores) if templates > 1 else None
    if means is None:
        return found | {"undefined": "one template, or a model without a verdict under a template"}
    sensitivity, interval = prompt_sensitivity(means), rank_agreement_interval(scores, seed=seed)
    return {
        "mean_spearman": sensitivity.mean_spearman, "ci_low": interval.low,
        "ci_high": interval.high, "undefined": sensitivity.degenerate or "",
    }  # fmt: skip


@table(
    "ranking",
    "Mean Spearman's ρ of the models' ranking over pairs of templates (the layout of Table 1)",
    "95% percentile intervals over items; with few items they are wide and need not be centred on "
    "ρ. Pairs that include a template under which all models tie have no ρ and are left out. The "
    "paper's figures come from other, larger models: they are shown beside these, not compared "
    "with them. paper: over the models that its heuristic could score, so that its heuristic and "
    "its judge rank the same models; paper, 7 models: its judge over all seven.",
    mean_spearman="mean ρ", paper_mean_spearman="paper", paper_all_models="paper, 7 models",
)  # fmt: skip
def ranking(source: Matched) -> Iterator[Record]:
    """Whether templates rank the models alike, beside the paper's figures."""
    stated = published(NAME)
    for answers in source.benchmarks:
        for matcher, scores in answers.scores.items():
            key = f"{answers.benchmark}/{'judge' if matcher.startswith(JUDGE) else 'heuristic'}/rho"
            known = matcher.startswith(JUDGE) or matcher == HEURISTIC.get(answers.kind)
            every = stated.get(key) if known else None
            same = stated.get(f"{key}-4-models", every) if known else None
            found = rank_agreement(scores, source.seed)
            why = found.pop("undefined")
            yield {
                "benchmark": answers.benchmark, "matcher": matcher, **found,
                "n_models": len(answers.models), "undefined": why,
                "paper_mean_spearman": same.value if same else None,
                "place": same.place if same else "",
                "paper_all_models": every.value if every and every is not same else None,
            }  # fmt: skip


@table(
    "matchers",
    "How accurate the matchers are",
    "Probes are answers written for this test: for multiple choice the right and a wrong option, "
    "each as a statement of its label and as its text; otherwise the reference and another item's. "
    "A matcher that guesses has a balanced accuracy of 0.5. agreement: the share of the models' "
    "answers with a verdict on which the judge and the heuristic agree.",
)
def matchers(source: Matched) -> Iterator[Record]:
    """How accurate the matchers are on answers that are known to be right or wrong."""
    for answers in source.benchmarks:
        truth = np.array([bool(probe.right) for probe in answers.probes])
        for matcher, verdicts in answers.probe_scores.items():
            if not len(verdicts):
                continue
            by_judge = matcher.startswith(JUDGE)
            other = text_heuristic(answers) if by_judge else None
            agreement, kappa = _agreement(answers, matcher, other)
            one, two = (
                float(right.mean()) if len(right) and not truth.all() else None
                for right in (verdicts[truth] >= RIGHT, verdicts[~truth] < RIGHT)
            )
            who = f"judge {answers.grader}{matcher.removeprefix(JUDGE)}" if by_judge else matcher
            yield {
                "benchmark": answers.benchmark, "matcher": who, "right_accepted": one,
                "wrong_rejected": two,
                "balanced_accuracy": None if one is None or two is None else (one + two) / 2,
                "no_verdict": float(np.isnan(verdicts).mean()), "n_probes": len(verdicts),
                "against": other or "", "agreement": agreement, "kappa": kappa,
            }  # fmt: skip


def _agreement(
    answers: BenchmarkAnswers, matcher: str, other: str | None
) -> tuple[float | None, float | None]:
    """Agreement and Cohen's κ of two matchers on the answers that the first has a verdict on."""
    if other is None:
        return None, None
    judged, heuristic = (answers.scores[name].reshape(-1) for name in (matcher, other))
    known = ~np.isnan(judged)
    if not known.any():
        return None, None
    one, two = (
        np.where(scores[known] >= RIGHT, "right", "wrong") for scores in (judged, heuristic)
    )
    return float((one == two).mean()), cohen_kappa(one.tolist(), two.tolist())


def text_heuristic(answers: BenchmarkAnswers) -> str | None:
    """The heuristic that reads the text: the one that the judge's verdicts are compared with."""
    return next((name for name in (EXTRACTION, "f1", "math") if name in answers.scores), None)


@table("templates", "Accuracy under every template")
def templates(source: Matched) -> Iterator[Record]:
    """Accuracy of each model by each matcher under every template."""
    for cell in source.cells:
        for template, scores in zip(cell.answers.templates, cell.scores, strict=True):
            known = scores[~np.isnan(scores)]
            yield {
                "benchmark": cell.answers.benchmark, "model": cell.model, "matcher": cell.matcher,
                "template": template.name, "accuracy": float(known.mean()) if len(known) else None,
                "n_items": len(known),
            }  # fmt: skip


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
                f"on {answers.benchmark} accuracy varies over {len(answers.templates)} templates "
                f"with a standard deviation of {join(texts)} (mean over models); {beyond} of "
                f"{len(rows)} pairs of model and matcher spread more than templates that do not "
                "matter would (p < 0.05)"
            )
        unread = sum(reading is None for reading in answers.readings)
        if unread:
            yield (
                f"on {answers.benchmark} the text heuristic ({text_heuristic(answers)}) could not "
                f"read {percent(unread / len(answers.responses))} of {len(answers.responses)} "
                "answers, which count as wrong"
            )
    for row in tables["accuracy"].rows:
        if (row["one_letter"] or 0.0) >= ONE_LETTER:
            yield (
                f"on {row['benchmark']}, by {row['matcher']} {row['model']} takes the same option "
                f"in {percent(row['one_letter'])} of its choices: its accuracy is the share of "
                "items whose answer is that option, and its low spread is not robustness"
            )
    for row in tables["matchers"].rows if "matchers" in tables else ():
        balanced = row["balanced_accuracy"]
        if row["matcher"].startswith("judge ") and balanced is not None:
            yield (
                f"on {row['benchmark']}, {row['matcher']} has a balanced accuracy of "
                f"{number(balanced)} on answers known to be right or wrong: "
            ) + (
                "its accuracies are usable"
                if balanced >= USABLE
                else "do not use its accuracies; its spread and ranking say nothing about the "
                "models"
            )


def limits(source: Matched, tables: Tables) -> Iterator[str]:
    """What the figures do not show, and what to add."""
    for answers in source.benchmarks:
        if answers.left_out:
            yield (
                f"on {answers.benchmark} {answers.left_out} items are left out for every model, "
                "because some model gave no answer to them (see the error column of its answers)"
            )
    cut = sum(response.cut for answers in source.benchmarks for response in answers.responses)
    if cut:
        yield f"{cut} answers that the token cap cut off are matched up to the cut"
    if any(len(answers.models) < 3 for answers in source.benchmarks):
        yield "rankings need three models or more: add responders"
    if all(JUDGE not in answers.scores for answers in source.benchmarks):
        yield "no judge matched the answers: add a grader to compare the heuristics with it"
    yield (
        "every spread is conditional on these templates and items; the paper's models are larger, "
        "so these figures neither confirm nor contradict its figures"
    )


def _off(sign: int) -> Callable[[Mapping[str, Any]], float | None]:
    """The mean accuracy plus so many standard deviations; None without a spread."""
    return lambda row: None if row["std"] is None else row["accuracy"] + sign * row["std"]


STUDY = Study(
    NAME,
    "Prompt sensitivity, by what matches the answers",
    tables=[accuracy, ranking, matchers, templates],
    figures=[
        Figure(
            "accuracy",
            "Accuracy of each model by each matcher: mean over templates, plus and minus one "
            "standard deviation (the paper's Figure 2).",
            "accuracy",
            Points(
                group="benchmark", name=lambda row: f"{row['model']}, {row['matcher']}",
                values={"": ("accuracy", _off(-1), _off(1))},
                xlabel="accuracy, mean ± std over templates",
            ),
        ),
    ],
    findings=[findings],
    limits=[limits],
)  # fmt: skip
