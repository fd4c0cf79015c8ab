"""What the scores of answer-matching say: spread over templates, rankings, and the matchers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from judgesense.statistics.arrays import Floats
from judgesense.statistics.kappa import cohen_kappa
from judgesense.statistics.sensitivity import (
    Spread,
    prompt_sensitivity,
    rank_agreement_interval,
    template_means,
    template_spread,
)
from judgesense.studies.answer_matching.scoring import EXTRACTION, RIGHT, BenchmarkAnswers

PAPERS_TEMPLATES = 12


@dataclass(frozen=True)
class Cell:
    """One model on one benchmark by one matcher; ``scores`` has shape (templates, items)."""

    answers: BenchmarkAnswers
    model: str
    matcher: str
    scores: Floats
    seed: int
    names: Mapping[str, str]

    @cached_property
    def spread(self) -> Spread | None:
        """How accuracy varies over templates; None where a template has no verdict."""
        return self.spread_of(slice(None))

    def spread_of(self, templates: slice) -> Spread | None:
        """The spread over some of the templates; None also for a single template."""
        scores = self.scores[templates]
        return template_spread(scores, seed=self.seed) if len(scores) > 1 else None

    @property
    def no_verdict(self) -> float:
        """Share of the answers without a verdict."""
        return float(np.isnan(self.scores).mean())

    @property
    def one_letter(self) -> float | None:
        """Share of the choices that fall on the most frequent option; None for other matchers."""
        chosen = [
            letter
            for response, letter in zip(
                self.answers.responses, self.answers.chosen(self.matcher), strict=False
            )
            if letter is not None and self.names[response.model] == self.model
        ]
        return Counter(chosen).most_common(1)[0][1] / len(chosen) if chosen else None


def cells_of(found: Sequence[BenchmarkAnswers], names: Mapping[str, str], seed: int) -> list[Cell]:
    """A cell per benchmark, matcher and model; ``names`` maps models to their short names."""
    return [
        Cell(answers, names[model], matcher, scores[at], seed, names)
        for answers in found
        for matcher, scores in answers.scores.items()
        for at, model in enumerate(answers.models)
    ]


def text_heuristic(answers: BenchmarkAnswers) -> str | None:
    """The heuristic that reads the text: the one that the judge's verdicts are compared with."""
    return next((name for name in (EXTRACTION, "f1", "math") if name in answers.scores), None)


def rank_agreement(
    scores: Floats, seed: int
) -> tuple[float | None, float | None, float | None, str]:
    """Mean Spearman's ρ of the models' ranking over pairs of templates, its 95% interval, and why
    it is undefined. ``scores`` has shape (models, templates, items)."""
    models, templates, _ = scores.shape
    if models < 3:
        return None, None, None, f"a ranking needs 3 models or more, got {models}"
    if templates < 2:
        return None, None, None, "one template only"
    means = template_means(scores)
    if means is None:
        return None, None, None, "a model has no verdict at all under a template"
    sensitivity = prompt_sensitivity(means)
    interval = rank_agreement_interval(scores, seed=seed)
    return sensitivity.mean_spearman, interval.low, interval.high, sensitivity.degenerate or ""


def probe_accuracy(
    verdicts: Sequence[tuple[bool, float | None]],
) -> tuple[float | None, float | None, float | None, float]:
    """Right probes accepted, wrong ones rejected, the mean of both (balanced accuracy), and the
    share without a verdict, which is neither accepted nor rejected."""
    accepted = [said == 1 for right, said in verdicts if right]
    rejected = [said == 0 for right, said in verdicts if not right]
    no_verdict = sum(said is None for _, said in verdicts) / len(verdicts)
    if not accepted or not rejected:
        return None, None, None, no_verdict
    one, two = sum(accepted) / len(accepted), sum(rejected) / len(rejected)
    return one, two, (one + two) / 2, no_verdict


def matcher_agreement(
    answers: BenchmarkAnswers, matcher: str, other: str
) -> tuple[float | None, float | None]:
    """Agreement and Cohen's κ of two matchers on the answers that the first has a verdict on."""
    judged, heuristic = (answers.scores[name].reshape(-1) for name in (matcher, other))
    known = ~np.isnan(judged)
    if not known.any():
        return None, None
    one, two = judged[known] >= RIGHT, heuristic[known] >= RIGHT
    said = [["right" if value else "wrong" for value in side.tolist()] for side in (one, two)]
    return float((one == two).mean()), cohen_kappa(said[0], said[1])
