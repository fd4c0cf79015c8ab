"""What the study judges: the main run and one run for each open question that needs its own."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.pipeline import Settings
from judgesense.pipeline.data import data_reference
from judgesense.studies.common.result import judged, need_judges
from judgesense.studies.judge_sensitivity.log import Judged, read_judged
from judgesense.text import join

LOG_QUESTIONS = ("orders", "consensus", "variance", "sampled")
"""Answered from the main run, or from any log."""

RUN_QUESTIONS = ("tokens", "validators", "temperature", "scale", "language")
"""Need further judging."""

QUESTIONS = (*LOG_QUESTIONS, *RUN_QUESTIONS)

LONG_TOKENS, SHORT_TOKENS, DRAWS = 2048, 20, 3
QUICK_ITEMS, QUICK_LONG_TOKENS, QUICK_DRAWS = 2, 64, 2
SIZES: Mapping[str, int | None] = {"tokens": 4, "temperature": 8}
"""Items a task of the runs that generate much; the others take all that there are."""

LANGUAGE, LANGUAGE_SET, SCALE_SET = "German", "embedded-de", "embedded-scale"


@dataclass(frozen=True)
class Plan:
    """What was asked for, checked before anything is judged."""

    specs: tuple[Any, ...]
    validators: tuple[str, ...]
    dataset: str | None
    questions: tuple[str, ...]
    tasks: tuple[str, ...] | None
    scoring: str | None
    items: int | None
    long_tokens: int
    draws: int
    seed: int
    left_out: list[str] = field(default_factory=list)

    def settings(self, question: str = "main", **changes: Any) -> Settings:
        """A run's settings; ``items`` given by the user holds for every run."""
        limit = self.items if self.items is not None else SIZES.get(question)
        asked = {"scoring": self.scoring, "tasks": self.tasks, "limit": limit, "seed": self.seed}
        return Settings.of(**{**asked, **changes})


def check_questions(given: Sequence[str] | None, default: Sequence[str]) -> tuple[str, ...]:
    """The questions asked for, or the default. Raises JudgeSenseError for an unknown one."""
    wanted = tuple(default if given is None else given)
    if unknown := [name for name in wanted if name not in QUESTIONS]:
        raise JudgeSenseError(
            f"unknown question {unknown[0]!r}; the questions are {', '.join(QUESTIONS)}"
        )
    return wanted


def make_plan(
    judges: Sequence[Any],
    dataset: str | None,
    questions: Sequence[str] | None,
    tasks: Sequence[str] | None,
    scoring: str | None,
    items: int | None,
    validators: Sequence[str],
    long_tokens: int | None,
    draws: int | None,
    quick: bool,
    seed: int,
) -> Plan:
    """Check what was asked for and leave out what cannot be answered, unless it was named.

    Raises JudgeSenseError for an unknown judge or question, and for a named question that these
    judges or this dataset cannot answer.
    """
    from local_judges.registry import resolve

    need_judges(judges, 1, "the study")
    wanted = check_questions(questions, QUESTIONS)
    specs = [resolve(str(each)) if isinstance(each, (str, Path)) else each for each in judges]
    names = [str(each) for each in judges if isinstance(each, (str, Path))]
    for name in validators:
        resolve(name)
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
            raise JudgeSenseError(f"--questions {name}: {reason}")
        left_out.append(f"not asked: {name} ({reason})")
        wanted = tuple(each for each in wanted if each != name)
    return Plan(
        specs=tuple(specs),
        validators=tuple(dict.fromkeys([*names, *validators])),
        dataset=dataset,
        questions=wanted,
        tasks=None if tasks is None else tuple(tasks),
        scoring=scoring,
        items=QUICK_ITEMS if quick and items is None else items,
        long_tokens=long_tokens,
        draws=draws,
        seed=seed,
        left_out=left_out,
    )


def check_sizes(sizes: Mapping[str, float], names: Sequence[str]) -> None:
    """Raise JudgeSenseError for the size of a judge that is not among ``names``."""
    if unknown := [name for name in sizes if name not in names]:
        raise JudgeSenseError(
            f"--size {unknown[0]}: no judge here has that name; the judges are {', '.join(names)}"
        )


def _obstacle(
    question: str,
    specs: Sequence[Any],
    dataset: str | None,
    tasks: Sequence[str] | None,
    scoring: str | None,
) -> str | None:
    """Why a question cannot be asked here; None if it can."""
    from local_judges.registry import JudgeSpec

    embedded = dataset in (None, "embedded")
    if question == "consensus" and len(specs) < 2:
        return "needs at least 2 judges; give --judge again with another"
    if question in ("tokens", "temperature"):
        if not all(isinstance(spec, JudgeSpec) for spec in specs):
            return "needs judges given by name, so that they can be asked with other decoding"
        if scoring == "options":
            return "is about generated text; leave out --scoring options"
    if question == "temperature":
        warm = [
            f"{each.name} ({each.options['temperature']})"
            for each in specs
            if each.options.get("temperature")
        ]
        if warm:
            return (
                "sets text drawn at T = 1 beside the main run's, which must then be greedy; "
                f"{join(warm)} has a temperature of its own"
            )
    if question == "sampled" and scoring == "generate":
        return "needs option probabilities; leave out --scoring generate"
    if question in ("scale", "language") and not embedded:
        return "has wordings for the embedded benchmark alone; leave out --dataset"
    if question == "scale" and tasks is not None and set(tasks) == {"coherence"}:
        return "coherence is on a scale already; name a binary task"
    return None


def ask(
    question: str, plan: Plan, runs: Path, note: Callable[[str], None]
) -> Judged | list[dict[str, Any]]:
    """Have one question judged, or read what was judged before."""
    out = runs / question
    if question == "validators":
        from judgesense_dataset.validation import VERDICTS, validate

        # The dataset's bytes are part of what makes the main run the same run.
        validate(plan.dataset, plan.validators, out=out, write_back=False, note=note)
        lines = (out / VERDICTS).read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines]
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
    judged(specs, ref.load, ref.identity, settings, out, note)
    return read_judged(out)


def _with(spec: Any, **options: Any) -> Any:
    return dataclasses.replace(spec, options={**spec.options, **options})


def _other_budget(spec: Any, long_tokens: int) -> Any:
    """A judge with the long limit, or with the paper's 20 tokens if its own is long already."""
    own = spec.options.get("max_tokens") or SHORT_TOKENS
    return _with(spec, max_tokens=SHORT_TOKENS if own >= long_tokens else long_tokens)
