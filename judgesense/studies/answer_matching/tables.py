"""The tables of answer-matching."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from judgesense.statistics.arrays import Bools
from judgesense.studies.answer_matching.measures import (
    PAPERS_TEMPLATES,
    Cell,
    matcher_agreement,
    probe_accuracy,
    rank_agreement,
    text_heuristic,
)
from judgesense.studies.answer_matching.scoring import (
    HEURISTIC,
    JUDGE,
    LIKELIHOOD,
    RIGHT,
    BenchmarkAnswers,
)
from judgesense.studies.common.result import Column, Record, Table, Value, published

STUDY = "answer-matching"
EXAMPLES, EXCERPT = 4, 110

KINDS = {
    "unread": "unread by the text heuristic",
    "text_not_likelihood": "right by text, wrong by likelihood",
    "likelihood_not_text": "right by likelihood, not by text",
    "judge_only": "right by the judge only",
    "heuristic_only": "right by the text heuristic only",
}
"""The differences that are counted, by column id."""

SHOWN = ("unread", "text_not_likelihood", "judge_only", "heuristic_only")

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
        "chance. likelihood: the most probable label (A-D or 1-4). For NarrativeQA the score is "
        "word F1.",
    )  # fmt: skip


def ranking_table(found: Sequence[BenchmarkAnswers], seed: int) -> Table:
    """Whether templates rank the models alike, beside the paper's figures."""
    rows = []
    stated = published(STUDY)
    for answers in found:
        for matcher, scores in answers.scores.items():
            rho, low, high, why = rank_agreement(scores, seed)
            key = "judge" if matcher.startswith(JUDGE) else "heuristic"
            known = key == "judge" or matcher == HEURISTIC.get(answers.kind)
            every = stated.get(f"{answers.benchmark}/{key}/rho") if known else None
            same = stated.get(f"{answers.benchmark}/{key}/rho-4-models", every) if known else None
            rows.append(
                (answers.benchmark, matcher, rho, low, high, len(answers.models), why,
                 same.value if same else None, same.place if same else "",
                 every.value if every and every is not same else None)
            )  # fmt: skip
    return Table(
        "ranking",
        "Mean Spearman's ρ of the models' ranking over pairs of templates (the layout of Table 1)",
        ("benchmark", "matcher", *_RHO, Column("n_models", "models"), "undefined",
         Column("paper_mean_spearman", "paper"), "place",
         Column("paper_all_models", "paper, 7 models")),
        rows,
        "95% percentile intervals over items; with few items they are wide and need not be centred "
        "on ρ. Pairs that include a template under which all models tie have no ρ and are left "
        "out. The paper's figures come from other, larger models: they are shown beside these, not "
        "compared with them. paper: over the models that its heuristic could score, so that its "
        "heuristic and its judge rank the same models; paper, 7 models: its judge over all seven, "
        "where that differs.",
    )  # fmt: skip


def many_table(cells: Sequence[Cell], found: Sequence[BenchmarkAnswers], seed: int) -> Table:
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


def matchers_table(found: Sequence[BenchmarkAnswers]) -> Table:
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


def differences(answers: BenchmarkAnswers) -> dict[str, Bools]:
    """Which answers show each of `KINDS`, in the order of ``answers.responses``; kinds whose
    matchers did not run are left out."""
    name = text_heuristic(answers)
    if name is None:
        return {}
    text = answers.scores[name].reshape(-1)
    found = {"unread": np.array([reading is None for reading in answers.readings])}
    if LIKELIHOOD in answers.scores:
        likely = answers.scores[LIKELIHOOD].reshape(-1) >= RIGHT
        found["text_not_likelihood"] = (text >= RIGHT) & ~likely
        found["likelihood_not_text"] = likely & ~(text >= RIGHT)
    if JUDGE in answers.scores:
        judged = answers.scores[JUDGE].reshape(-1)
        found["judge_only"] = (judged >= RIGHT) & ~(text >= RIGHT)
        found["heuristic_only"] = (text >= RIGHT) & (judged < RIGHT)
    return found


def missed_table(found: Sequence[BenchmarkAnswers]) -> Table:
    """Counts of unread answers and of disagreements, over all templates and by template."""
    rows: list[Record] = []
    for answers in found:
        kinds = differences(answers)
        cut = np.array([response.cut for response in answers.responses])
        used = np.array([response.template.name for response in answers.responses])
        names = [template.name for template in answers.templates]
        for template in ("all templates", *(names if len(names) <= PAPERS_TEMPLATES else ())):
            inside = np.isin(used, names if template == "all templates" else [template])
            counts = {
                kind: int(kinds[kind][inside].sum()) if kind in kinds else None for kind in KINDS
            }
            rows.append(
                {"benchmark": answers.benchmark, "template": template,
                 "n_answers": int(inside.sum()), "cut_off": int(cut[inside].sum()), **counts}
            )  # fmt: skip
    return Table(
        "missed",
        "Answers that the matchers score differently, over all models",
        ("benchmark", "template", Column("n_answers", "answers"), "cut_off",
         *(Column(kind, heading) for kind, heading in KINDS.items())),
        rows,
        "The text heuristic is the extraction of a stated choice, word F1 (from 0.5 on) or "
        "mathematical comparison. The counts do not decide who is right where the judge and the "
        "heuristic differ: see the table of the matchers' accuracy.",
    )  # fmt: skip


def examples_table(found: Sequence[BenchmarkAnswers], names: Mapping[str, str]) -> Table:
    """A few answers of each kind of difference, from different templates and models."""
    rows: list[Record] = []
    for answers in found:
        kinds = differences(answers)
        for kind in (kind for kind in SHOWN if kind in kinds):
            seen: set[tuple[str, str]] = set()
            for at in np.flatnonzero(kinds[kind]).tolist():
                response = answers.responses[at]
                where = (response.model, response.template.name)
                if len(seen) == EXAMPLES or where in seen:
                    continue
                seen.add(where)
                rows.append(
                    {"benchmark": answers.benchmark, "difference": KINDS[kind],
                     "model": names[response.model], "template": response.template.name,
                     "answer": _short(response.text or ""),
                     "reference": _short(" or ".join(response.item.answers)),
                     "read_as": answers.readings[at] or "nothing",
                     "reason": answers.reasons[at] if answers.reasons else ""}
                )  # fmt: skip
    return Table(
        "examples",
        "Examples of answers that the matchers score differently",
        ("benchmark", "difference", "model", "template", "answer", "reference", "read_as",
         Column("reason", "what the judge said")),
        rows,
        f"The first {EXAMPLES} of each kind, at most one per model and template.",
    )  # fmt: skip


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= EXCERPT else f"{flat[:EXCERPT]} …"
