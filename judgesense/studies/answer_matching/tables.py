"""Tables, findings and figures of answer-matching."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from judgesense.statistics.kappa import cohen_kappa
from judgesense.statistics.ranking import prompt_sensitivity
from judgesense.statistics.tables import Floats
from judgesense.statistics.templates import (
    Spread,
    rank_agreement_interval,
    template_means,
    template_spread,
)
from judgesense.studies.answer_matching.missed import (
    PAPERS_TEMPLATES,
    RIGHT,
    examples_table,
    missed_table,
    text_heuristic,
)
from judgesense.studies.answer_matching.scoring import HEURISTIC, JUDGE, Answers
from judgesense.studies.common.result import Picture, Result, Table, Value, published
from judgesense.text import join, number, percent

STUDY, TITLE = "answer-matching", "Prompt sensitivity, by what matches the answers"
ONE_LETTER = 0.9
"""From this share of its choices on one option a model is named as choosing nothing."""

USABLE = 0.9
"""A judge is called usable as a matcher from this balanced accuracy on answers known to be right
or wrong; what it must tell apart there is plain."""


@dataclass(frozen=True)
class Cell:
    """One model on one benchmark by one matcher; ``spread`` is None where a template has
    no verdict."""

    answers: Answers
    model: str
    matcher: str
    scores: Floats
    spread: Spread | None
    names: Mapping[str, str]

    @property
    def unknown(self) -> float:
        """Share of the answers without a verdict."""
        return float(np.isnan(self.scores).mean())

    @property
    def one_letter(self) -> float | None:
        """Share of the choices that fall on the commonest option; None for other matchers."""
        chosen = [
            letter
            for response, letter in zip(
                self.answers.responses, self.answers.chosen(self.matcher), strict=False
            )
            if letter is not None and self.names[response.model] == self.model
        ]
        counts = Counter(chosen)
        return counts.most_common(1)[0][1] / len(chosen) if chosen else None


def result_of(
    found: Sequence[Answers], names: Mapping[str, str], settings: Mapping[str, Any], seed: int
) -> Result:
    """The study's result; ``names`` are the models' short names."""
    cells = [
        Cell(answers, names[model], matcher, scores[at], _spread(scores[at], seed), names)
        for answers in found
        for matcher, scores in answers.scores.items()
        for at, model in enumerate(answers.models)
    ]
    tables = [
        _accuracy(cells), _ranking(found, seed), _matchers(found), missed_table(found),
        examples_table(found, names), _templates(cells),
    ]  # fmt: skip
    if more := [each for each in found if any(t.recombined for t in each.templates)]:
        tables.insert(2, _many(cells, more, seed))
    result = Result(STUDY, TITLE, dict(settings), tables)
    result.findings = list(_findings(result, cells, found))
    result.limits = list(_limits(found))
    result.pictures = list(_pictures(cells, found))
    return result


def _spread(scores: Floats, seed: int) -> Spread | None:
    return template_spread(scores, seed=seed) if len(scores) > 1 else None


def _accuracy(cells: Sequence[Cell]) -> Table:
    rows: list[Sequence[Value]] = []
    for cell in cells:
        s = cell.spread
        figures = (
            (None,) * 6 if s is None else (s.mean, s.std, s.by_chance, s.p, s.low, s.high)
        )  # fmt: skip
        rows.append(
            (cell.answers.benchmark, cell.model, cell.matcher, *figures,
             *cell.scores.shape, cell.unknown, cell.one_letter)
        )  # fmt: skip
    return Table(
        "accuracy",
        "Accuracy over templates",
        ("benchmark", "model", "matcher", "mean", "std", "std by chance", "p", "lowest", "highest",
         "templates", "items", "no verdict", "one letter"),
        rows,
        "Std: population standard deviation of the accuracy over templates. By chance: the std "
        "that the same scores have when each item's are dealt to the templates at random, and p "
        "the share of such deals that spread as much (permutation test). Answers without "
        "a verdict are left out of the means. One letter: the share of the choices that fall on "
        "the commonest option; a model that always takes the same one is right by chance. For "
        "NarrativeQA the score is word F1.",
    )  # fmt: skip


def _ranking(found: Sequence[Answers], seed: int) -> Table:
    rows: list[Sequence[Value]] = []
    stated = published(STUDY)
    for answers in found:
        for matcher, scores in answers.scores.items():
            rho, low, high, why = _agreement(scores, seed)
            key = _paper_key(answers, matcher)
            figure = stated.get(f"{answers.benchmark}/{key}/rho") if key else None
            rows.append(
                (answers.benchmark, matcher, rho, low, high, len(answers.models), why,
                 figure.value if figure else None, figure.place if figure else "")
            )  # fmt: skip
    return Table(
        "ranking",
        "Mean Spearman's ρ of the models' ranking over pairs of templates (the layout of Table 1)",
        ("benchmark", "matcher", "mean ρ", "low", "high", "models", "undefined", "paper", "place"),
        rows,
        "95% percentile intervals over items; with few items they are wide and need not be centred "
        "on ρ. Pairs of templates under one of which all models tie have no ρ and are left out. "
        "The paper's figures are of other models, larger and more of them: they stand beside ours, "
        "they are not compared. Where the paper names two "
        "sets of models, the one of its Table 1 outside parentheses is shown.",
    )


def _agreement(scores: Floats, seed: int) -> tuple[float | None, float | None, float | None, str]:
    models, templates, _ = scores.shape
    if models < 3:
        return None, None, None, f"a ranking needs 3 models or more, there are {models}"
    if templates < 2:
        return None, None, None, "one template only"
    means = template_means(scores)
    if means is None:
        return None, None, None, "a model has no verdict at all under a template"
    sensitivity = prompt_sensitivity(means)
    interval = rank_agreement_interval(scores, seed=seed)
    return sensitivity.mean_spearman, interval.low, interval.high, sensitivity.degenerate or ""


def _paper_key(answers: Answers, matcher: str) -> str | None:
    if matcher.startswith(JUDGE):
        return "judge"
    return "heuristic" if matcher == HEURISTIC.get(answers.kind) else None


def _many(cells: Sequence[Cell], found: Sequence[Answers], seed: int) -> Table:
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
                spreads = [_spread(cell.scores[part], seed) for cell in own]
                known = [spread for spread in spreads if spread is not None]
                rho, low, high, _ = _agreement(scores[:, part], seed)
                rows.append(
                    (answers.benchmark, matcher, name,
                     float(np.mean([s.mean for s in known])) if known else None,
                     float(np.mean([s.std for s in known])) if known else None, rho, low, high)
                )  # fmt: skip
    return Table(
        "many",
        "12 templates against more",
        ("benchmark", "matcher", "templates", "mean accuracy", "mean std", "mean ρ", "low",
         "high"),
        rows,
        "Means over the models. The paper says that on ARC-Challenge 12 templates give what over "
        "100 do, without figures (Limitations); it does not say how it made the 100.",
    )  # fmt: skip


def _matchers(found: Sequence[Answers]) -> Table:
    rows: list[Sequence[Value]] = []
    for answers in found:
        for matcher, verdicts in answers.probes.items():
            worth = _worth(verdicts)
            other = text_heuristic(answers) if matcher.startswith(JUDGE) else None
            agree, kappa = (None, None) if other is None else _agree(answers, matcher, other)
            rows.append(
                (answers.benchmark, _who(answers, matcher), *worth, len(verdicts),
                 other or "", agree, kappa)
            )  # fmt: skip
    return Table(
        "matchers",
        "What the matchers are worth",
        ("benchmark", "matcher", "right accepted", "wrong rejected", "balanced accuracy",
         "no verdict", "probes", "against", "agreement", "kappa"),
        rows,
        "Probes are answers made for the purpose: for multiple choice the right and a wrong option "
        "as a statement of the label and as the text, else the reference and another item's. A "
        "matcher that guesses has a balanced accuracy of 0.5. Agreement: the share of the models' "
        "answers on which the judge and the heuristic say the same, of those with a verdict.",
    )  # fmt: skip


def _worth(
    verdicts: Sequence[tuple[bool, float | None]],
) -> tuple[float | None, float | None, float | None, float]:
    """Right accepted, wrong rejected, their mean (no verdict is neither), and no verdict."""
    accepted = [said == 1 for right, said in verdicts if right]
    rejected = [said == 0 for right, said in verdicts if not right]
    unknown = sum(said is None for _, said in verdicts) / len(verdicts)
    if not accepted or not rejected:
        return None, None, None, unknown
    one, two = sum(accepted) / len(accepted), sum(rejected) / len(rejected)
    return one, two, (one + two) / 2, unknown


def _agree(answers: Answers, matcher: str, other: str) -> tuple[float | None, float | None]:
    judged, heuristic = (answers.scores[name].reshape(-1) for name in (matcher, other))
    known = ~np.isnan(judged)
    if not known.any():
        return None, None
    one, two = judged[known] >= RIGHT, heuristic[known] >= RIGHT
    said = [["right" if value else "wrong" for value in side.tolist()] for side in (one, two)]
    return float((one == two).mean()), cohen_kappa(said[0], said[1])


def _who(answers: Answers, matcher: str) -> str:
    if not matcher.startswith(JUDGE):
        return matcher
    return f"judge {answers.judge}{matcher.removeprefix(JUDGE)}"


def _templates(cells: Sequence[Cell]) -> Table:
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
        ("benchmark", "model", "matcher", "template", "accuracy", "items"),
        rows,
    )


def _findings(result: Result, cells: Sequence[Cell], found: Sequence[Answers]) -> Iterator[str]:
    for answers in found:
        mean_std = {
            matcher: np.mean([c.spread.std for c in own if c.spread])
            for matcher in answers.scores
            if (own := [c for c in cells if c.answers is answers and c.matcher == matcher])
            if any(c.spread for c in own)
        }
        if mean_std:
            texts = [f"{number(float(std))} by {name}" for name, std in mean_std.items()]
            yield (
                f"on {answers.benchmark} accuracy varies over {len(answers.templates)} templates "
                f"with a standard deviation of {join(texts)} (mean over models)"
            )
        beyond = [c for c in cells if c.answers is answers and c.spread and c.spread.p < 0.05]
        tested = [c for c in cells if c.answers is answers and c.spread]
        yield (
            f"on {answers.benchmark} for {len(beyond)} of {len(tested)} pairs of model and matcher "
            "the spread is more than templates that do not matter would give (p < 0.05)"
        )
    for cell in cells:
        share = cell.one_letter
        if share is not None and share >= ONE_LETTER:
            yield (
                f"on {cell.answers.benchmark}, by {cell.matcher} {cell.model} takes the same "
                f"option in {percent(share)} of its choices: its accuracy is the share of items "
                "that this option happens to answer, and its low spread is no robustness"
            )
    for row in result.table("matchers").rows:
        benchmark, who, _, _, balanced = row[:5]
        if str(who).startswith("judge ") and isinstance(balanced, float):
            verdict = (
                "its accuracies can be read"
                if balanced >= USABLE
                else "its accuracies are not accuracies, and its spread and ranking say nothing of "
                "the models"
            )
            yield (
                f"on {benchmark}, of answers known to be right or wrong, {who} has a balanced "
                f"accuracy of {number(balanced)}: {verdict}"
            )
    for answers in found:
        text = text_heuristic(answers)
        if text is None:
            continue
        unread = sum(reading is None for reading in answers.readings)
        total = len(answers.responses)
        yield (
            f"on {answers.benchmark} the text heuristic ({text}) could not read "
            f"{percent(unread / total)} of {total} answers"
        )


def _limits(found: Sequence[Answers]) -> Iterator[str]:
    for answers in found:
        if answers.left_out:
            yield (
                f"on {answers.benchmark} {answers.left_out} items are left out for every model: "
                "some model gave no answer to them (see the answers' error column)"
            )
        cut = sum(response.cut for response in answers.responses) / len(answers.responses)
        if cut > 0.05:
            yield (
                f"on {answers.benchmark} the token cap cut off {percent(cut)} of the answers; what "
                "would have come after it is not matched"
            )
    if any(len(answers.models) < 3 for answers in found):
        yield "rankings of models need three or more: give --responder again with others"
    if all(JUDGE not in answers.scores for answers in found):
        yield "no judge matched the answers: give --judge to compare the heuristics with one"
    yield (
        "every spread is conditional on these templates and items; the paper's models are larger, "
        "and nothing here contradicts or confirms its figures"
    )


def _pictures(cells: Sequence[Cell], found: Sequence[Answers]) -> Iterator[Picture]:
    from judgesense.studies.answer_matching import figures as pictures

    yield Picture(
        "accuracy",
        "Accuracy of each model by each matcher: mean over templates, and one standard deviation "
        "to either side",
        partial(pictures.accuracy, list(cells)),
    )
    for answers in found:
        own = [cell for cell in cells if cell.answers is answers]
        if all(cell.unknown == 1 for cell in own):
            continue
        yield Picture(
            f"templates-{answers.benchmark}",
            f"{answers.benchmark}: accuracy of the models under each template, by matcher",
            partial(pictures.by_template, own),
        )
    read = [answers for answers in found if text_heuristic(answers) is not None]
    if read:
        yield Picture(
            "missed",
            "Answers that the text heuristic could not read, by template; and those that the "
            "judge alone counts as right",
            partial(pictures.missed, read),
        )
