"""The runs of the study: the main run, and one per open question that needs further judging."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.pipeline import Settings
from judgesense.pipeline.data import data_reference
from judgesense.studies.common.study import judged, need_judges
from judgesense.studies.judge_sensitivity.runs import Judged, read_judged
from judgesense.text import join

LOG_QUESTIONS = ("orders", "consensus", "variance", "sampled")
"""Questions answered from the main run or from any log."""

RUN_QUESTIONS = ("tokens", "temperature", "scale", "language")
"""Questions that need further judging."""

QUESTIONS = (*LOG_QUESTIONS, *RUN_QUESTIONS)

LONG_TOKENS, SHORT_TOKENS, DRAWS = 2048, 20, 3
QUICK_ITEMS, QUICK_LONG_TOKENS, QUICK_DRAWS = 2, 64, 2
SIZES: Mapping[str, int | None] = {"tokens": 4, "temperature": 8}
"""Items per task of the runs that generate much; the others take all items."""

LANGUAGE, LANGUAGE_SET, SCALE_SET = "German", "embedded-de", "embedded-scale"


@dataclass(frozen=True)
class SensitivityPlan:
    """A checked request; nothing has been judged yet."""

    specs: tuple[Any, ...]
    dataset: str | None
    questions: tuple[str, ...]
    tasks: tuple[str, ...] | None
    scoring: str | None
    limit: int | None
    long_tokens: int
    draws: int
    seed: int
    left_out: list[str] = field(default_factory=list)

    def settings(self, question: str = "main", **changes: Any) -> Settings:
        """A run's settings; a limit set by the user holds for every run."""
        limit = self.limit if self.limit is not None else SIZES.get(question)
        asked = {"scoring": self.scoring, "tasks": self.tasks, "limit": limit, "seed": self.seed}
        return Settings.of(**{**asked, **changes})


def check_questions(given: Sequence[str] | None, default: Sequence[str]) -> tuple[str, ...]:
    """The requested questions, or the default. Raises JudgeSenseError for an unknown name."""
    wanted = tuple(default if given is None else given)
    if unknown := [name for name in wanted if name not in QUESTIONS]:
        raise JudgeSenseError(
            f"unknown question {unknown[0]!r}; choose from {', '.join(QUESTIONS)}"
        )
    return wanted


def make_plan(
    judges: Sequence[Any],
    dataset: str | None,
    questions: Sequence[str] | None,
    tasks: Sequence[str] | None,
    scoring: str | None,
    limit: int | None,
    long_tokens: int | None,
    draws: int | None,
    quick: bool,
    seed: int,
) -> SensitivityPlan:
    """Check a request, and drop the questions that cannot be answered.

    Raises JudgeSenseError for an unknown judge or question, and for a question that was named but
    cannot be answered with these judges or this dataset.
    """
    from local_judges.registry import resolve

    need_judges(judges, 1, "the study")
    wanted = check_questions(questions, QUESTIONS)
    specs = [resolve(str(each)) if isinstance(each, (str, Path)) else each for each in judges]
    long_tokens = long_tokens or (QUICK_LONG_TOKENS if quick else LONG_TOKENS)
    draws = draws or (QUICK_DRAWS if quick else DRAWS)
    for what, value, least in (("--long-tokens", long_tokens, 21), ("--draws", draws, 2)):
        if value < least:
            raise JudgeSenseError(f"{what} must be at least {least}, got {value}")
    left_out = []
    for name in list(wanted):
        reason = _obstacle(name, specs, dataset, tasks, scoring)
        if reason is None:
            continue
        if questions is not None:
            raise JudgeSenseError(f"--only {name}: {reason}")
        left_out.append(f"not asked: {name} ({reason})")
        wanted = tuple(each for each in wanted if each != name)
    return SensitivityPlan(
        specs=tuple(specs),
        dataset=dataset,
        questions=wanted,
        tasks=None if tasks is None else tuple(tasks),
        scoring=scoring,
        limit=QUICK_ITEMS if quick and limit is None else limit,
        long_tokens=long_tokens,
        draws=draws,
        seed=seed,
        left_out=left_out,
    )


def _obstacle(
    question: str,
    specs: Sequence[Any],
    dataset: str | None,
    tasks: Sequence[str] | None,
    scoring: str | None,
) -> str | None:
    """Why a question cannot be answered here; None if it can."""
    from local_judges.registry import JudgeSpec

    embedded = dataset in (None, "embedded")
    if question == "consensus" and len(specs) < 2:
        return "needs at least 2 judges; repeat --judge to add one"
    if question in ("tokens", "temperature", "scale", "language") and any(
        getattr(spec, "stabilised", None) for spec in specs
    ):
        return "changes the decoding, the labels or the language, which a stabilised judge fixes"
    if question in ("tokens", "temperature"):
        if not all(isinstance(spec, JudgeSpec) for spec in specs):
            return "needs judges given by name, so that their decoding can be changed"
        if scoring == "options":
            return "measures generated text; leave out --scoring options"
    if question == "temperature":
        warm = [
            f"{each.name} ({each.options['temperature']})"
            for each in specs
            if each.options.get("temperature")
        ]
        if warm:
            return (
                "compares text drawn at T = 1 with the main run's, which must be greedy; remove "
                f"the temperature of {join(warm)}"
            )
    if question == "sampled" and scoring == "generate":
        return "needs option probabilities; leave out --scoring generate"
    if question in ("scale", "language") and not embedded:
        return "has wordings for the embedded benchmark only; leave out --dataset"
    if question == "scale" and tasks is not None and set(tasks) == {"coherence"}:
        return "coherence already uses a scale; name a binary task"
    return None


def ask(question: str, plan: SensitivityPlan, runs: Path, note: Callable[[str], None]) -> Judged:
    """Judge one question's run (``main``: the paper's), or read it if it is finished."""
    specs, dataset, settings = list(plan.specs), plan.dataset, plan.settings(question)
    if question == "tokens":
        specs = [_other_budget(spec, plan.long_tokens) for spec in specs]
        settings = plan.settings(question, scoring="generate", orders=("AB",))
    elif question == "temperature":
        specs = [_with(spec, temperature=1.0, seed=plan.seed) for spec in specs]
        settings = plan.settings(question, scoring="generate", orders=("AB",), repeats=plan.draws)
    elif question == "scale":
        dataset = SCALE_SET
        if plan.tasks is not None:
            settings = plan.settings(tasks=[name for name in plan.tasks if name != "coherence"])
    elif question == "language":
        dataset = LANGUAGE_SET
    ref = data_reference(dataset, None, None)
    judged(specs, ref.load, ref.identity, settings, runs / question, note)
    return read_judged(runs / question)


def _with(spec: Any, **options: Any) -> Any:
    return dataclasses.replace(spec, options={**spec.options, **options})


def _other_budget(spec: Any, long_tokens: int) -> Any:
    """A judge with the long limit, or with the paper's 20 tokens if its own limit is as long."""
    own = spec.options.get("max_tokens") or SHORT_TOKENS
    return _with(spec, max_tokens=SHORT_TOKENS if own >= long_tokens else long_tokens)
