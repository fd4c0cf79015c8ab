"""Which answers the matchers score differently: counted by template, and examples of each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from judgesense.studies.answer_matching.measures import PAPERS_TEMPLATES, RIGHT, text_heuristic
from judgesense.studies.answer_matching.scoring import JUDGE, LIKELIHOOD, Answers
from judgesense.studies.common.result import Column, Record, Table

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


def differences(answers: Answers) -> dict[str, npt.NDArray[np.bool_]]:
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


def missed_table(found: Sequence[Answers]) -> Table:
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


def examples_table(found: Sequence[Answers], names: Mapping[str, str]) -> Table:
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
