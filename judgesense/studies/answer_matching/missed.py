"""Which answers the matchers see differently, counted by template and shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from judgesense.studies.answer_matching.scoring import EXTRACTION, JUDGE, LIKELIHOOD, Answers
from judgesense.studies.common.result import Table, Value

RIGHT = 0.5
"""A response counts as right from this score on (F1 gives parts)."""

PAPERS_TEMPLATES = 12
EXAMPLES, EXCERPT = 4, 110


def text_heuristic(answers: Answers) -> str | None:
    """The heuristic that a judge's verdicts are set against: the one that reads the text."""
    return next((name for name in (EXTRACTION, "f1", "math") if name in answers.scores), None)


def missed_table(found: Sequence[Answers]) -> Table:
    """Counts of unread answers and of disagreements, over all templates and by template."""
    rows: list[Sequence[Value]] = []
    for answers in found:
        for template in ("all templates", *(t.name for t in answers.templates)):
            places = [
                at
                for at, response in enumerate(answers.responses)
                if template in ("all templates", response.template.name)
            ]
            if template == "all templates" or len(answers.templates) <= PAPERS_TEMPLATES:
                rows.append((answers.benchmark, template, len(places), *_counts(answers, places)))
    return Table(
        "missed",
        "Which answers the matchers see differently, over all models",
        ("benchmark", "template", "answers", "cut off", "unread by the text heuristic",
         "right by text, wrong by likelihood", "right by likelihood, not by text",
         "right by the judge alone", "right by the text heuristic alone"),
        rows,
        "The text heuristic is the extraction of a stated choice, word F1 (from 0.5 on) or "
        "mathematical comparison. Whether the judge or the heuristic is right where they differ "
        "is not decided by counting: see what the judge is worth.",
    )  # fmt: skip


def _counts(answers: Answers, places: Sequence[int]) -> tuple[Value, ...]:
    text, chosen = text_heuristic(answers), np.array(places)

    def right(matcher: str | None) -> Any:
        if matcher is None or matcher not in answers.scores:
            return None
        return answers.scores[matcher].reshape(-1)[chosen]

    read, likely, judged = right(text), right(LIKELIHOOD), right(JUDGE)
    cut = sum(answers.responses[at].cut for at in places)
    unread = None if text is None else sum(answers.readings[at] is None for at in places)
    none: tuple[Value, ...] = (None, None)
    by_likelihood = none
    if read is not None and likely is not None:
        one, two = read >= RIGHT, likely >= RIGHT
        by_likelihood = (int((one & ~two).sum()), int((two & ~one).sum()))
    by_judge = none
    if read is not None and judged is not None:
        one, two = read >= RIGHT, judged >= RIGHT
        by_judge = (int((two & ~one).sum()), int((one & (judged < RIGHT)).sum()))
    return (cut, unread, *by_likelihood, *by_judge)


def examples_table(found: Sequence[Answers], names: Mapping[str, str]) -> Table:
    """A few answers of each kind of difference, from different templates and models."""
    rows: list[Sequence[Value]] = []
    for answers in found:
        text = text_heuristic(answers)
        for kind, test in _differences(answers, text):
            seen: set[tuple[str, str]] = set()
            for at, response in enumerate(answers.responses):
                where = (response.model, response.template.name)
                if len(seen) < EXAMPLES and where not in seen and test(at):
                    seen.add(where)
                    item = response.item
                    rows.append(
                        (answers.benchmark, kind, names[response.model], response.template.name,
                         _short(response.text or ""), _short(" or ".join(item.answers)),
                         answers.readings[at] or "nothing",
                         answers.reasons[at] if answers.reasons else "")
                    )  # fmt: skip
    return Table(
        "examples",
        "Answers that the matchers see differently",
        ("benchmark", "difference", "model", "template", "answer", "reference", "read as",
         "what the judge said"),
        rows,
        f"The first {EXAMPLES} of each kind, one a model and template.",
    )  # fmt: skip


def _differences(answers: Answers, text: str | None) -> Iterator[tuple[str, Any]]:
    if text is not None:
        yield "unread", lambda at: answers.readings[at] is None
    if text is not None and LIKELIHOOD in answers.scores:
        yield (
            "right by text, wrong by likelihood",
            lambda at: answers.at(text, at) >= RIGHT > answers.at(LIKELIHOOD, at),
        )
    if text is not None and JUDGE in answers.scores:
        yield (
            "right by the judge alone",
            lambda at: answers.at(JUDGE, at) >= RIGHT > answers.at(text, at),
        )
        yield (
            "right by the heuristic alone",
            lambda at: answers.at(text, at) >= RIGHT > answers.at(JUDGE, at),
        )


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= EXCERPT else f"{flat[:EXCERPT]} …"
