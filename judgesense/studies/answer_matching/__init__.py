"""Is prompt sensitivity the models' or the matcher's? Benchmarks under 12 templates, matched twice.

Source: "Artifact or Flaw? Rethinking Prompt Sensitivity in Evaluating LLMs". Every model answers
every item under every template; the answers are scored by heuristics and, if one is given, by a
judge that is shown the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.studies.answer_matching.scoring import (
    Answers,
    ask,
    check_grader,
    judge_answers,
    probe_heuristics,
)
from judgesense.studies.answer_matching.templates import (
    CHOICE,
    FACTS,
    MATH,
    SET_OF,
    STORY,
    AnswerTemplate,
    own_templates,
    paper_templates,
    recombined,
)
from judgesense.studies.common.question_sets import Drawn, check_models, draw
from judgesense.studies.common.result import Result
from judgesense.text import short_names

Note = Callable[[str], None]

BENCHMARKS = ("arc-challenge", "openbookqa", "math", "simpleqa")
"""Asked by default: the sets that need no account; the others are named with --benchmark."""

ITEMS, QUICK_ITEMS, QUICK_TOKENS = 100, 2, 12
MAX_TOKENS = {CHOICE: 64, STORY: 64, MATH: 512, FACTS: 128}
"""Tokens of an answer by template set; the paper states none."""

JUDGE_TOKENS, QUICK_JUDGE_TOKENS = 256, 16


@dataclass(frozen=True)
class Plan:
    """What is asked: ``items`` a benchmark, ``templates`` a set (12 are the paper's; more are
    recombined from these, for multiple choice alone), and the token caps of answers (None: by
    template set) and verdicts."""

    benchmarks: tuple[str, ...] = BENCHMARKS
    items: int = ITEMS
    templates: int = 12
    max_tokens: int | None = None
    judge_tokens: int = JUDGE_TOKENS
    seed: int = 0

    def __post_init__(self) -> None:
        if unknown := [name for name in self.benchmarks if name not in SET_OF]:
            raise JudgeSenseError(f"unknown benchmark {unknown[0]!r}; known: {', '.join(SET_OF)}")
        if self.templates < 2:
            raise JudgeSenseError(f"--templates must be at least 2, got {self.templates}")
        if self.judge_tokens < 1 or (self.max_tokens is not None and self.max_tokens < 1):
            raise JudgeSenseError("--max-tokens and --judge-tokens must be at least 1")


def answer_matching(
    responders: Sequence[Any],
    out: str | Path,
    *,
    judge: Any = None,
    plan: Plan | None = None,
    templates: str | Path | None = None,
    grader: str | Path | None = None,
    mirror: str | Path | None = None,
    note: Note = print,
) -> Result:
    """Ask benchmarks under many templates, match the answers by heuristics and by a judge.

    Args:
        responders: names, Hub ids, folders, GGUF files or functions; rankings need three or more.
        out: the study's folder; given again, it goes on, and a finished one is measured anew.
        judge: the judge that matches; without one, heuristics alone do.
        plan: benchmarks, items, templates and token caps.
        templates: a YAML file with templates of one's own, in the format of the study's.
        grader: a file with the prompt that grades SimpleQA's answers, in place of the study's.
        mirror: a folder with the sets, in place of the Hub.
        note: hears how it goes on.

    Raises:
        JudgeSenseError: for bad input, before a model is loaded.
    """
    from judgesense.studies.answer_matching.tables import result_of

    plan, out = plan or Plan(), Path(out)
    if not responders:
        raise JudgeSenseError("no responder given; name the models with --responder")
    check_models(responders)
    if judge is not None:
        check_models([judge])
    elif unmatched := [name for name in plan.benchmarks if SET_OF[name] == FACTS]:
        raise JudgeSenseError(
            f"{unmatched[0]} has no heuristic matcher: give --judge, or other --benchmark names"
        )
    grading = check_grader(None if grader is None else Path(grader))
    own = None if templates is None else Path(templates)
    sets = {name: _templates(SET_OF[name], plan, own) for name in plan.benchmarks}
    drawn = {name: draw(name, plan.items, plan.seed, mirror, out) for name in plan.benchmarks}

    found = []
    for name in plan.benchmarks:
        tokens = plan.max_tokens or MAX_TOKENS[SET_OF[name]]
        answers = ask(name, drawn[name].items, sets[name], responders, tokens, out, note, plan.seed)
        probe_heuristics(answers)
        if judge is not None:
            judge_answers(answers, judge, grading, plan.judge_tokens, out, note, plan.seed)
        found.append(answers)
    return result_of(found, _names(found), _settings(plan, drawn, sets, found, own), plan.seed)


def _templates(kind: str, plan: Plan, own: Path | None) -> tuple[AnswerTemplate, ...]:
    if own is not None:
        return own_templates(own, kind)
    paper = paper_templates(kind)
    if plan.templates > len(paper) and kind == CHOICE:
        return (*paper, *recombined(plan.templates - len(paper), plan.seed))
    return paper[: plan.templates]


def _names(found: Sequence[Answers]) -> dict[str, str]:
    return short_names({model for answers in found for model in answers.models})


def _settings(
    plan: Plan,
    drawn: dict[str, Drawn],
    sets: dict[str, tuple[AnswerTemplate, ...]],
    found: Sequence[Answers],
    own: Path | None,
) -> dict[str, Any]:
    judges = {answers.judge for answers in found if answers.judge is not None}
    models = sorted({model for answers in found for model in answers.models})
    place = "" if own is None else f" of {own}"
    return {
        "responders": models,
        "judge": sorted(judges) or "none",
        "benchmarks": [f"{name}: {found.words}" for name, found in drawn.items()],
        "templates": [f"{len(each)}{place} for {name}" for name, each in sets.items()],
        "max_tokens": [
            f"{plan.max_tokens or MAX_TOKENS[SET_OF[name]]} for {name}" for name in sets
        ],
        "judge_tokens": plan.judge_tokens,
        "seed": plan.seed,
    }
