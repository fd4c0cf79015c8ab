"""The JudgeSense paper's protocol and its open questions.

Source: "JudgeSense: A Benchmark for Prompt Sensitivity in LLM-as-a-Judge Systems",
arXiv:2604.23478. The main run judges a benchmark and gives the paper's tables. Each question that
needs other prompts or other decoding is a run of its own under ``OUT/runs/<question>``. From an
existing decision log (``log``), you get every table that needs no further judging.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.reporting.result import Result
from judgesense.studies.judge_sensitivity.declared import DECLARED
from judgesense.studies.judge_sensitivity.grid import (
    LOG_QUESTIONS,
    QUESTIONS,
    RUN_QUESTIONS,
    ask,
    check_questions,
    make_plan,
)
from judgesense.studies.judge_sensitivity.questions import TABLES
from judgesense.studies.judge_sensitivity.runs import read_judged
from judgesense.studies.judge_sensitivity.tables import Sensitivity

__all__ = ["QUESTIONS", "judge_sensitivity"]


def judge_sensitivity(
    judges: Sequence[Any] = (),
    *,
    out: str | Path,
    log: str | Path | None = None,
    dataset: str | None = None,
    questions: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    scoring: str | None = None,
    limit: int | None = None,
    long_tokens: int | None = None,
    draws: int | None = None,
    quick: bool = False,
    seed: int = 0,
    note: Callable[[str], None] = print,
) -> Result:
    """Run the JudgeSense protocol (tables 1-3, figures 1-3) and its open questions.

    Args:
        judges: names, Hub ids, folders or GGUF files.
        out: the study's folder; rerun with the same folder to resume.
        log: the folder of a run or import to measure instead of judging.
        dataset: an embedded set, a dataset folder or a Hub id; None for the embedded benchmark.
        questions: names from `QUESTIONS`; None for all that can be answered.
        tasks: tasks of the dataset; None for all.
        scoring: ``generate``, ``options`` or None for all that each judge offers. ``tokens`` and
            ``temperature`` always generate.
        limit: items per task in every run; None for all (`SIZES` for runs that generate much).
        long_tokens: the token limit of the long answers.
        draws: the number of draws per prompt at T = 1.
        quick: two items per task, short long answers.
        seed: fixes every random draw.
        note: called with progress messages.

    Returns:
        The result, not yet written (`Result.write`).

    Raises:
        JudgeSenseError: for bad input, before any judging where possible.

    >>> judge_sensitivity(["smollm2-135m"], out="runs/sens", quick=True)  # doctest: +SKIP
    """
    if log is None:
        plan = make_plan(
            judges, dataset, questions, tasks, scoring, limit, long_tokens, draws, quick, seed
        )
        asked = ("main", *(name for name in plan.questions if name in RUN_QUESTIONS))
        runs = {name: ask(name, plan, Path(out) / "runs", note) for name in asked}
        study = Sensitivity(runs.pop("main"), runs, plan.questions, plan)
    else:
        if any([judges, dataset, limit, tasks, scoring]):
            raise JudgeSenseError(
                "--log measures an existing log; leave out --judge, --dataset, --tasks, --limit "
                "and --scoring, or leave out --log"
            )
        wanted = check_questions(questions, LOG_QUESTIONS)
        if unanswerable := [name for name in wanted if name not in LOG_QUESTIONS]:
            raise JudgeSenseError(
                f"--only {unanswerable[0]} needs further judging, which --log does not do; "
                f"with --log, choose from {', '.join(LOG_QUESTIONS)}"
            )
        study = Sensitivity(read_judged(Path(log)), {}, wanted, log=Path(log))
    answers = [TABLES[name] for name in study.questions]
    return replace(DECLARED, tables=[*DECLARED.tables, *answers]).result(study, _settings(study))


def _settings(study: Sensitivity) -> dict[str, Any]:
    record, plan = study.main.record, study.plan
    hardware = record.get("hardware") or {}
    names = [entry["name"] for entry in record.get("judges", []) if isinstance(entry, dict)]
    known = {
        "judges": names or study.main.judges,
        "log": study.log and str(study.log),
        "data": (record.get("dataset") or {}).get("name") or record.get("run_id"),
        "data hash": record.get("data_hash"),
        "questions": list(study.questions),
        "items per task": plan and plan.limit,
        "seed": plan and plan.seed,
        "machine": hardware and f"{hardware.get('cpus')} CPUs, {hardware.get('machine')}",
    }
    return {name: value for name, value in known.items() if value not in (None, "", {})}
