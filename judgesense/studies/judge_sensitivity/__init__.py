"""The JudgeSense paper's protocol and its open questions.

The main run judges a benchmark and gives the paper's tables. Each question that needs other
prompts or other decoding is a run of its own under ``OUT/runs/<question>``. From an existing
decision log (``log``), you get every table that needs no further judging.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense import published
from judgesense.errors import JudgeSenseError
from judgesense.pipeline.data import data_reference
from judgesense.studies.common.result import Result, Table, judged
from judgesense.studies.judge_sensitivity import open_logs, open_runs, tables
from judgesense.studies.judge_sensitivity.beside import PAPER, beside_note, same_wordings
from judgesense.studies.judge_sensitivity.figures import figures
from judgesense.studies.judge_sensitivity.findings import claims, findings, size_note
from judgesense.studies.judge_sensitivity.grid import (
    LANGUAGE,
    LOG_QUESTIONS,
    QUESTIONS,
    RUN_QUESTIONS,
    VARIANTS,
    SensitivityPlan,
    ask,
    check_questions,
    check_sizes,
    make_plan,
)
from judgesense.studies.judge_sensitivity.log import TASKS, Judged, read_judged
from judgesense.studies.judge_sensitivity.open_findings import open_findings
from judgesense.studies.judge_sensitivity.variants import variant_results

__all__ = ["QUESTIONS", "judge_sensitivity"]

TITLE = "How much judges depend on the wording: JudgeSense"

NO_TABLE = {
    "orders": "it needs a task with two options in both orders",
    "consensus": "it needs two judges on the same task and scoring",
    "sampled": "it needs a judge scored by its option probabilities",
    VARIANTS: "it needs a log with variants",
}
NO_MATCH = "its run shares no case with the main run"


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
    validators: Sequence[str] = (),
    long_tokens: int | None = None,
    draws: int | None = None,
    sizes: Mapping[str, float] | None = None,
    quick: bool = False,
    seed: int = 0,
    variants: Sequence[str] | None = None,
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
        validators: further judges that say whether two wordings are equivalent.
        long_tokens: the token limit of the long answers.
        draws: the number of draws per prompt at T = 1.
        sizes: judge -> number of parameters, if its name does not state it.
        quick: two items per task, short long answers.
        seed: fixes every random draw.
        variants: other ways to ask the base wording, as in :func:`judgesense.run`; they are a run
            of their own, so the paper's tables stay as they are.
        note: called with progress messages.

    Returns:
        The result, not yet written (`Result.write`).

    Raises:
        JudgeSenseError: for bad input, before any judging where possible.

    >>> judge_sensitivity(["smollm2-135m"], out="runs/sens", quick=True)  # doctest: +SKIP
    """
    from local_judges.registry import JudgeSpec

    if log is not None:
        if any([judges, validators, dataset, limit, tasks, scoring, variants]):
            raise JudgeSenseError(
                "--log measures an existing log; leave out --judge, --validator, --dataset, "
                "--tasks, --limit, --scoring and --variants, or leave out --log"
            )
        answerable = (*LOG_QUESTIONS, VARIANTS)
        named = check_questions(questions, ())
        if unanswerable := [name for name in named if name not in answerable]:
            raise JudgeSenseError(
                f"--only {unanswerable[0]} needs further judging, which --log does not do; "
                f"with --log, choose from {', '.join(answerable)}"
            )
        main = read_judged(Path(log))
        default = answerable if main.report["variants"] else LOG_QUESTIONS
        wanted = check_questions(questions, default)
        return _result(main, {VARIANTS: main}, wanted, sizes or {}, [], log=Path(log))
    plan = make_plan(
        judges, dataset, questions, tasks, scoring, limit, validators, long_tokens, draws, quick,
        seed, variants or (),
    )  # fmt: skip
    if all(isinstance(spec, JudgeSpec) for spec in plan.specs):
        # The log may add a fingerprint to tell judges of one name apart.
        asked = {name.split("@")[0]: size for name, size in (sizes or {}).items()}
        check_sizes(asked, [spec.name.split("@")[0] for spec in plan.specs])
    runs = Path(out) / "runs"
    ref = data_reference(plan.dataset, None, None)
    judged(plan.specs, ref.load, ref.identity, plan.settings(), runs / "main", note)
    others = {name: ask(name, plan, runs, note) for name in plan.questions if name in RUN_QUESTIONS}
    main = read_judged(runs / "main")
    return _result(main, others, plan.questions, sizes or {}, plan.left_out, plan=plan)


def _result(
    main: Judged,
    others: Mapping[str, Any],
    questions: Sequence[str],
    sizes: Mapping[str, float],
    left_out: Sequence[str],
    plan: SensitivityPlan | None = None,
    log: Path | None = None,
) -> Result:
    check_sizes(sizes, main.judges)
    # A log is compared with published figures only if it is of the published pairs.
    asked = plan is not None or same_wordings(main)
    beside = asked and any(case.task in TASKS for case in main.cases)
    found = [*_tables(main, sizes, beside, plan), *_open_tables(main, others, questions)]
    found = [table for table in found if table.rows]
    named = {table.name: table for table in found}
    unanswered = [name for name in questions if name not in named]
    said = [*findings(main, sizes), *open_findings(named)]
    if (reason := size_note(main, sizes)) is not None:
        said.append(reason)
    return Result(
        study=PAPER,
        title=TITLE,
        settings=_settings(main, questions, plan, log),
        tables=found,
        findings=said,
        limits=[
            *_limits(main, beside, log),
            *left_out,
            *(f"{name} is not answered: {NO_TABLE.get(name, NO_MATCH)}" for name in unanswered),
        ],
        pictures=list(figures(main, found, beside)),
    )


def _tables(
    main: Judged, sizes: Mapping[str, float], beside: bool, plan: SensitivityPlan | None
) -> Iterator[Table]:
    yield tables.main_results(main, beside)
    yield tables.pairwise_results(main, beside)
    yield tables.polarity_results(main, beside)
    if beside:
        yield claims(main, sizes)
    yield tables.template_pair_results(main)
    if beside and any(case.task == "factuality" for case in main.cases):
        yield tables.published_template_pairs(main)
    yield from tables.flip_results(main, beside)
    if same_wordings(main):
        left_out = published.excluded_pairs()
        valid = {pair: pair not in left_out for ids in main.pair_ids.values() for pair in ids}
        yield tables.exclusion_results(main, valid, beside)
    elif plan is not None:
        yield tables.exclusion_results(main, _valid(plan.dataset), beside)
    yield tables.failure_results(main, beside)


def _valid(dataset: str | None) -> dict[str, bool | None]:
    from judgesense_dataset.load import load_pairs

    rows = load_pairs(dataset).select(["pair_id", "valid"])
    return dict(zip(rows["pair_id"].to_pylist(), rows["valid"].to_pylist(), strict=True))


def _open_tables(
    main: Judged, others: Mapping[str, Any], questions: Sequence[str]
) -> Iterator[Table]:
    for name in questions:
        if name in _FROM_LOG:
            yield _FROM_LOG[name](main)
        elif name in _FROM_RUN:
            yield _FROM_RUN[name](main, others[name])
        elif name == VARIANTS:
            yield from variant_results(others[name])
        elif name == "consensus":
            yield from open_logs.consensus_results(main)
        elif name == "language":
            yield open_runs.language_results(main, others[name], LANGUAGE)
        else:
            yield from open_runs.validator_results(main, others[name])


_FROM_LOG: Mapping[str, Callable[[Judged], Table]] = {
    "orders": open_logs.order_results,
    "variance": open_logs.variance_results,
    "sampled": open_logs.sampled_results,
}
_FROM_RUN: Mapping[str, Callable[[Judged, Any], Table]] = {
    "tokens": open_runs.token_results,
    "temperature": open_runs.temperature_results,
    "scale": open_runs.scale_results,
}


def _settings(
    main: Judged, questions: Sequence[str], plan: SensitivityPlan | None, log: Path | None
) -> dict[str, Any]:
    record = main.record
    hardware = record.get("hardware") or {}
    names = [entry["name"] for entry in record.get("judges", []) if isinstance(entry, dict)]
    known = {
        "judges": names or main.judges,
        "log": log and str(log),
        "data": (record.get("dataset") or {}).get("name") or record.get("run_id"),
        "data hash": record.get("data_hash"),
        "questions": list(questions),
        "items per task": plan and plan.limit,
        "seed": plan and plan.seed,
        "machine": hardware and f"{hardware.get('cpus')} CPUs, {hardware.get('machine')}",
    }
    return {name: value for name, value in known.items() if value not in (None, "", {})}


def _limits(main: Judged, beside: bool, log: Path | None) -> Iterator[str]:
    items = {case.task: case.cells["raw"]["n_items"] for case in main.cases}
    yield (
        "intervals treat the items as a sample and the wordings as fixed; they do not cover other "
        "wordings"
    )
    if small := [f"{task} ({n})" for task, n in items.items() if n < 30]:
        yield f"few decided items: {', '.join(small)}"
    if beside:
        yield beside_note(main)
    if log is not None and not same_wordings(main):
        yield (
            "the wordings are the templates of the log; if these are prompting strategies "
            "(reasoning first, rating each option alone) and not paraphrases, JSS is agreement "
            "between strategies, not sensitivity to wording alone"
        )
