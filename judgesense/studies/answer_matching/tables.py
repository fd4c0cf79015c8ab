"""The tables of answer-matching."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from judgesense.studies.answer_matching.measures import (
    PAPERS_TEMPLATES,
    Cell,
    matcher_agreement,
    probe_accuracy,
    rank_agreement,
    text_heuristic,
)
from judgesense.studies.answer_matching.scoring import HEURISTIC, JUDGE, Answers
from judgesense.studies.common.result import Column, Table, Value, published

STUDY = "answer-matching"
_RHO = (Column("mean_spearman", "mean ρ"), "ci_low", "ci_high")


def accuracy_table(cells: Sequence[Cell]) -> Table:
    """Accuracy of each model by each matcher: its mean and its spread over templates."""
    rows = []
    for cell in cells:
        s = cell.spread
        spread = (None,) * 6 if s is None else (s.mean, s.std, s.by_chance, s.p, s.low, s.high)
        rows.append(
            (cell.answers.benchmark, cell.model, cell.matcher, *spread, *cell.scores.shape,
             cell.no_verdict, cell.one_letter)
        )  # fmt: skip
    return Table(
        "accuracy",
        "Accuracy over templates",
        ("benchmark", "model", "matcher", Column("accuracy", "mean accuracy"), "std",
         "std_by_chance", "p", Column("accuracy_low", "lowest"), Column("accuracy_high", "highest"),
         Column("n_templates", "templates"), Column("n_items", "items"), "no_verdict",
         "one_letter"),
        rows,
        "std: population standard deviation of the accuracy over templates. std by chance: the std "
        "of the same scores when each item's scores are assigned to the templates at random; p: "
        "the share of such assignments that spread at least as much (permutation test). Answers "
        "without a verdict are left out of the means. one letter: the share of the choices that "
        "fall on the most frequent option; a model that always takes the same option is right by "
        "chance. For NarrativeQA the score is word F1.",
    )  # fmt: skip


def ranking_table(found: Sequence[Answers], seed: int) -> Table:
    """Whether templates rank the models alike, beside the paper's figures."""
    rows = []
    stated = published(STUDY)
    for answers in found:
        for matcher, scores in answers.scores.items():
            rho, low, high, why = rank_agreement(scores, seed)
            key = "judge" if matcher.startswith(JUDGE) else "heuristic"
            known = key == "judge" or matcher == HEURISTIC.get(answers.kind)
            figure = stated.get(f"{answers.benchmark}/{key}/rho") if known else None
            rows.append(
                (answers.benchmark, matcher, rho, low, high, len(answers.models), why,
                 figure.value if figure else None, figure.place if figure else "")
            )  # fmt: skip
    return Table(
        "ranking",
        "Mean Spearman's ρ of the models' ranking over pairs of templates (the layout of Table 1)",
        ("benchmark", "matcher", *_RHO, Column("n_models", "models"), "undefined",
         Column("paper_mean_spearman", "paper"), "place"),
        rows,
        "95% percentile intervals over items; with few items they are wide and need not be centred "
        "on ρ. Pairs that include a template under which all models tie have no ρ and are left "
        "out. The paper's figures come from other, larger models: they are shown beside these, not "
        "compared with them. Where the paper names two sets of models, the figure of its Table 1 "
        "outside parentheses is shown.",
    )  # fmt: skip


def many_table(cells: Sequence[Cell], found: Sequence[Answers], seed: int) -> Table:
    """The paper's templates, which come first, against those recombined from them."""
    rows: list[Sequence[Value]] = []
    for answers in found:
        n = len(answers.templates)
        for matcher, scores in answers.scores.items():
            own = [c for c in cells if c.answers is answers and c.matcher == matcher]
            for name, part in (
                (f"the paper's {PAPERS_TEMPLATES}", slice(0, PAPERS_TEMPLATES)),
                (f"{n - PAPERS_TEMPLATES} recombined", slice(PAPERS_TEMPLATES, n)),
                (f"all {n}", slice(0, n)),
            ):
                spreads = [s for cell in own if (s := cell.spread_of(part)) is not None]
                rho, low, high, _ = rank_agreement(scores[:, part], seed)
                rows.append(
                    (answers.benchmark, matcher, name,
                     float(np.mean([s.mean for s in spreads])) if spreads else None,
                     float(np.mean([s.std for s in spreads])) if spreads else None, rho, low, high)
                )  # fmt: skip
    return Table(
        "many",
        "12 templates against more",
        ("benchmark", "matcher", "templates", Column("accuracy", "mean accuracy"),
         Column("std", "mean std"), *_RHO),
        rows,
        "Means over the models. The paper says that on ARC-Challenge 12 templates give what over "
        "100 do, without figures (Limitations); it does not say how it made the 100.",
    )  # fmt: skip


def matchers_table(found: Sequence[Answers]) -> Table:
    """How accurate the matchers are on answers that are known to be right or wrong."""
    rows: list[Sequence[Value]] = []
    for answers in found:
        for matcher, verdicts in answers.probes.items():
            by_judge = matcher.startswith(JUDGE)
            who = f"judge {answers.grader}{matcher.removeprefix(JUDGE)}" if by_judge else matcher
            other = text_heuristic(answers) if by_judge else None
            agree, kappa = (
                (None, None) if other is None else matcher_agreement(answers, matcher, other)
            )
            rows.append(
                (answers.benchmark, who, *probe_accuracy(verdicts), len(verdicts), other or "",
                 agree, kappa)
            )  # fmt: skip
    return Table(
        "matchers",
        "How accurate the matchers are",
        ("benchmark", "matcher", "right_accepted", "wrong_rejected", "balanced_accuracy",
         "no_verdict", Column("n_probes", "probes"), "against", "agreement", "kappa"),
        rows,
        "Probes are answers written for this test: for multiple choice the right and a wrong "
        "option, each as a statement of its label and as its text; otherwise the reference and "
        "another item's. A matcher that guesses has a balanced accuracy of 0.5. agreement: the "
        "share of the models' answers with a verdict on which the judge and the heuristic agree.",
    )  # fmt: skip


def templates_table(cells: Sequence[Cell]) -> Table:
    """Accuracy of each model by each matcher under every template."""
    rows: list[Sequence[Value]] = []
    for cell in cells:
        for template, scores in zip(cell.answers.templates, cell.scores, strict=True):
            known = scores[~np.isnan(scores)]
            mean = float(known.mean()) if len(known) else None
            rows.append(
                (cell.answers.benchmark, cell.model, cell.matcher, template.name, mean, len(known))
            )
    return Table(
        "templates",
        "Accuracy under every template",
        ("benchmark", "model", "matcher", "template", "accuracy", Column("n_items", "items")),
        rows,
    )
