"""Is prompt sensitivity the models' or the matcher's? Benchmarks under 12 templates, matched twice.

Source: "Artifact or Flaw? Rethinking Prompt Sensitivity in Evaluating LLMs". Every model answers
every item under every template. Heuristics score the answers, and so does a judge that sees the
reference, if you name one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.reporting.result import Result
from judgesense.studies.answer_matching.answers import ask, grade
from judgesense.studies.answer_matching.declared import STUDY, Matched
from judgesense.studies.answer_matching.templates import (
    CHOICE,
    FACTS,
    MATH,
    SET_OF,
    STORY,
    paper_templates,
)
from judgesense.studies.common.question_sets import check_models, draw

BENCHMARKS = ("arc-challenge", "openbookqa", "math", "simpleqa")
"""The default benchmarks: the sets that need no account."""

PAPERS_TEMPLATES = 12
MAX_TOKENS = {CHOICE: 64, STORY: 64, MATH: 512, FACTS: 128}
"""Tokens of an answer by template set; the paper states none."""


@dataclass(frozen=True)
class MatchingPlan:
    """What to ask.

    Args:
        benchmarks: names of question sets.
        limit: items per benchmark.
        n_templates: how many of the paper's 12 templates per set.
        max_tokens: the most tokens of an answer; None for the template set's own.
        grader_tokens: the most tokens of a verdict.
        seed: fixes the items and the resampling.

    Raises:
        JudgeSenseError: an unknown benchmark, or a number out of range.
    """

    benchmarks: tuple[str, ...] = BENCHMARKS
    limit: int = 100
    n_templates: int = PAPERS_TEMPLATES
    max_tokens: int | None = None
    grader_tokens: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        if unknown := [name for name in self.benchmarks if name not in SET_OF]:
            raise JudgeSenseError(
                f"unknown benchmark {unknown[0]!r}; choose from {', '.join(SET_OF)}"
            )
        if not 2 <= self.n_templates <= PAPERS_TEMPLATES:
            raise JudgeSenseError(f"n_templates must be from 2 to {PAPERS_TEMPLATES}")

    def tokens(self, benchmark: str) -> int:
        """The most tokens of an answer to a benchmark."""
        return self.max_tokens or MAX_TOKENS[SET_OF[benchmark]]


def answer_matching(
    responders: Sequence[Any],
    out: str | Path,
    *,
    grader: Any = None,
    plan: MatchingPlan | None = None,
    mirror: str | Path | None = None,
    note: Callable[[str], None] = print,
) -> Result:
    """Ask benchmarks under many templates, and match the answers by heuristics and by a judge.

    Args:
        responders: names, Hub ids, folders, GGUF files or functions; rankings need three or more.
        out: the study's folder; rerun with the same folder to resume or to measure again.
        grader: the judge that grades answers; without one, only heuristics match.
        plan: benchmarks, items, templates and token caps.
        mirror: a folder with the sets, instead of the Hub.
        note: receives progress messages.

    Returns:
        The result; call its ``write`` to store it.

    Raises:
        JudgeSenseError: for bad input, before a model is loaded.
    """
    plan, out = plan or MatchingPlan(), Path(out)
    check_models(responders)
    if grader is not None:
        check_models([grader])
    elif unmatched := [name for name in plan.benchmarks if SET_OF[name] == FACTS]:
        raise JudgeSenseError(
            f"{unmatched[0]} has no heuristic matcher: name a grader, or choose other benchmarks"
        )
    drawn = {name: draw(name, plan.limit, plan.seed, mirror, out) for name in plan.benchmarks}
    matched = []
    for name, sample in drawn.items():
        templates = paper_templates(SET_OF[name])[: plan.n_templates]
        answers = ask(
            name, sample.items, templates, responders, plan.tokens(name), out, note, plan.seed
        )
        if grader is not None:
            grade(answers, grader, plan.grader_tokens, out, note, plan.seed)
        matched.append(answers)
    settings = {
        "responders": sorted({model for answers in matched for model in answers.models}),
        "grader": matched[0].grader or "none",
        "benchmarks": [f"{name}: {sample.words}" for name, sample in drawn.items()],
        "templates": plan.n_templates,
        "max_tokens": [f"{plan.tokens(name)} for {name}" for name in drawn],
        "grader_tokens": plan.grader_tokens,
        "seed": plan.seed,
    }
    return STUDY.result(Matched(matched, plan.seed), settings)
