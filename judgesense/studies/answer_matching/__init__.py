"""Is prompt sensitivity the models' or the matcher's? Benchmarks under 12 templates, matched twice.

Source: "Artifact or Flaw? Rethinking Prompt Sensitivity in Evaluating LLMs". Every model answers
every item under every template. Heuristics score the answers, and so does a judge that sees the
reference, if you name one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.reporting.study_result import Result
from judgesense.studies.answer_matching.answers import (
    CHOICE,
    FACTS,
    MATH,
    SET_OF,
    STORY,
    ask,
    grade,
    paper_templates,
)
from judgesense.studies.answer_matching.spec import SPEC, Matched
from judgesense.studies.common.question_sets import check_models, draw
from judgesense.studies.common.study import PROTOCOL

BENCHMARKS = ("arc-challenge", "openbookqa", "math", "simpleqa")
"""The default benchmarks: the sets that need no account."""

TEMPLATES = 12
MAX_TOKENS = {CHOICE: 64, STORY: 64, MATH: 512, FACTS: 128}
"""Tokens of an answer by template set; the paper states none."""


def answer_matching(
    responders: Sequence[Any],
    out: str | Path,
    *,
    grader: Any = None,
    benchmarks: Sequence[str] = BENCHMARKS,
    limit: int = 100,
    n_templates: int = TEMPLATES,
    max_tokens: int | None = None,
    grader_tokens: int = 256,
    mirror: str | Path | None = None,
    seed: int = 0,
    note: Callable[[str], None] = print,
) -> Result:
    """Ask benchmarks under many templates, and match the answers by heuristics and by a judge.

    Rankings need three ``responders`` or more. Without a ``grader``, only heuristics match.
    ``limit`` counts items per benchmark, ``n_templates`` the paper's templates per set;
    ``max_tokens`` is the template set's own by default. Rerun with the same ``out`` to resume or to
    measure again. Raises JudgeSenseError for bad input, before a model is loaded.
    """
    out = Path(out)
    if unknown := [name for name in benchmarks if name not in SET_OF]:
        raise JudgeSenseError(f"unknown benchmark {unknown[0]!r}; choose from {', '.join(SET_OF)}")
    if not 2 <= n_templates <= TEMPLATES:
        raise JudgeSenseError(f"n_templates must be from 2 to {TEMPLATES}")
    check_models(responders)
    if grader is not None:
        check_models([grader])
    elif unmatched := [name for name in benchmarks if SET_OF[name] == FACTS]:
        raise JudgeSenseError(
            f"{unmatched[0]} has no heuristic matcher: name a grader, or choose other benchmarks"
        )
    samples = {name: draw(name, limit, seed, mirror, out) for name in benchmarks}
    tokens = {name: max_tokens or MAX_TOKENS[SET_OF[name]] for name in benchmarks}
    results = []
    for name, sample in samples.items():
        templates = paper_templates(SET_OF[name])[:n_templates]
        answers = ask(name, sample.items, templates, responders, tokens[name], out, note, seed)
        if grader is not None:
            grade(answers, grader, grader_tokens, out, note, seed)
        results.append(answers)
    settings = {
        **PROTOCOL,
        "responders": sorted({model for answers in results for model in answers.models}),
        "grader": results[0].grader or "none",
        "benchmarks": [f"{name}: {sample.words}" for name, sample in samples.items()],
        "templates": n_templates,
        "max_tokens": [f"{n} for {name}" for name, n in tokens.items()],
        "grader_tokens": grader_tokens,
        "seed": seed,
    }
    return SPEC.result(Matched(results, seed), settings)
