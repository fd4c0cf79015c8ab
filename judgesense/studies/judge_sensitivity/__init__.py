"""The JudgeSense paper's protocol, with the questions that it left open.

The main run judges a benchmark; its tables are the paper's. Each question that needs other
prompts or other decoding is a run of its own under ``OUT/runs/<question>``. An existing decision
log (``log``) gets every table that needs no further judging.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judgesense.errors import JudgeSenseError
from judgesense.pipeline.data import data_reference
from judgesense.studies.common.result import Result, Table, judged
from judgesense.studies.judge_sensitivity import open_logs, open_runs, tables
from judgesense.studies.judge_sensitivity.figures import figures
from judgesense.studies.judge_sensitivity.findings import STUDY, claims, findings, size_note
from judgesense.studies.judge_sensitivity.grid import (
    LANGUAGE,
    LOG_QUESTIONS,
    QUESTIONS,
    RUN_QUESTIONS,
    Plan,
    ask,
    check_questions,
    check_sizes,
    make_plan,
)
from judgesense.studies.judge_sensitivity.log import TASKS, Judged, read_judged, require_log
from judgesense.studies.judge_sensitivity.open_findings import open_findings

__all__ = ["QUESTIONS", "judge_sensitivity"]

TITLE = "How much judges depend on the wording: JudgeSense"

NO_TABLE = {
    "orders": "no task with two options was asked in both orders",
    "consensus": "no two judges were asked the same task and scoring",
    "sampled": "no judge was scored by its option probabilities",
}
NO_MATCH = "its run has nothing that the main run asked too"


def judge_sensitivity(
    judges: Sequence[Any] = (),
    *,
    out: str | Path,
    log: str | Path | None = None,
    dataset: str | None = None,
    questions: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    scoring: str | None = None,
    items: int | None = None,
    validators: Sequence[str] = (),
    long_tokens: int | None = None,
    draws: int | None = None,
    sizes: Mapping[str, float] | None = None,
    quick: bool = False,
    seed: int = 0,
    note: Callable[[str], None] = print,
) -> Result:
    """Tables 1 to 3 and figures 1 to 3 of JudgeSense for these judges, and its open questions.

    Args:
        judges: names, Hub ids, folders or GGUF files.
        out: the study's folder; given again, judging goes on where it stopped.
        log: the folder of a run or import to measure instead of judging.
        dataset: an embedded set, a dataset folder or a Hub id; None for the embedded benchmark.
        questions: of `QUESTIONS`; None for all that can be answered.
        tasks: of the dataset; None for all.
        scoring: ``generate``, ``options`` or None for whatever each judge offers. ``tokens`` and
            ``temperature`` always generate.
        items: items a task in every run; None for all (`SIZES` for what generates much).
        validators: further judges that are asked whether two wordings are equivalent.
        long_tokens: the long answers' limit.
        draws: how often each prompt is drawn at T = 1.
        sizes: judge -> number of parameters, where its name does not state it. A name that is no
            judge's is an error.
        quick: two items a task, short long answers.
        seed: fixes what is drawn at random.
        note: hears what a person should know on the way.

    Returns:
        The result; nothing of it is written yet (`Result.write`).

    Raises:
        JudgeSenseError: for bad input, before anything is judged where it can be known.
    """
    from local_judges.registry import JudgeSpec

    if log is not None:
        folder, given = Path(log), [judges, validators, dataset, items, tasks, scoring]
        if any(each for each in given):
            raise JudgeSenseError(
                "--log measures what was judged already: leave out --judge, --validator, "
                "--dataset, --tasks, --items and --scoring, or leave out --log"
            )
        wanted = check_questions(questions, LOG_QUESTIONS)
        if strange := [name for name in wanted if name in RUN_QUESTIONS]:
            raise JudgeSenseError(
                f"--questions {strange[0]} needs further judging, and --log asks no judge; from a "
                f"log there are {', '.join(LOG_QUESTIONS)}"
            )
        require_log(folder)
        return _result(read_judged(folder), {}, wanted, sizes or {}, [], log=folder)
    plan = make_plan(
        judges, dataset, questions, tasks, scoring, items, validators, long_tokens, draws, quick,
        seed,
    )  # fmt: skip
    if all(isinstance(spec, JudgeSpec) for spec in plan.specs):
        # The log may add a fingerprint, to tell judges of one name apart.
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
    plan: Plan | None = None,
    log: Path | None = None,
) -> Result:
    check_sizes(sizes, main.judges)
    beside = plan is not None and any(case.task in TASKS for case in main.cases)
    found = [table for table in _tables(main, sizes, beside, plan) if table is not None]
    found += _open_tables(main, others, questions)
    named = {table.name: table for table in found}
    unanswered = [name for name in questions if name not in named or not named[name].rows]
    said = [*findings(main, sizes), *open_findings(named)]
    if (reason := size_note(main, sizes)) is not None:
        said.append(reason)
    return Result(
        study=STUDY,
        title=TITLE,
        settings=_settings(main, questions, plan, log),
        tables=found,
        findings=said,
        limits=[
            *_limits(main, beside, log),
            *left_out,
            *(f"no answer to {name}: {NO_TABLE.get(name, NO_MATCH)}" for name in unanswered),
        ],
        pictures=list(figures(main, found, beside)),
    )


def _tables(
    main: Judged, sizes: Mapping[str, float], beside: bool, plan: Plan | None
) -> Iterator[Table | None]:
    yield tables.main_results(main, beside)
    yield tables.pairwise_results(main, beside)
    yield tables.polarity_results(main, beside)
    if beside:
        yield claims(main, sizes)
    if any(len(case.pairs) for case in main.cases):
        yield tables.template_pair_results(main)
    if beside and any(case.task == "factuality" for case in main.cases):
        yield tables.published_template_pairs()
    yield from tables.flip_results(main, beside)
    if plan is not None:
        yield tables.exclusion_results(main, _valid(plan.dataset), beside)
    yield tables.failure_results(main, beside)


def _valid(dataset: str | None) -> dict[str, bool | None]:
    from judgesense_dataset.load import load_pairs

    rows = load_pairs(dataset).select(["pair_id", "valid"])
    return dict(zip(rows["pair_id"].to_pylist(), rows["valid"].to_pylist(), strict=True))


def _open_tables(main: Judged, others: Mapping[str, Any], questions: Sequence[str]) -> list[Table]:
    single = {
        "orders": open_logs.order_results,
        "variance": open_logs.variance_results,
        "sampled": open_logs.sampled_results,
    }
    beside_main = {
        "tokens": open_runs.token_results,
        "temperature": open_runs.temperature_results,
        "scale": open_runs.scale_results,
    }
    found: list[Table | None] = []
    for name in questions:
        if name in single:
            found.append(single[name](main))
        elif name == "consensus":
            found += open_logs.consensus_results(main) or ()
        elif name == "language":
            found.append(open_runs.language_results(main, others[name], LANGUAGE))
        elif name == "validators":
            found += open_runs.validator_results(main, others[name])
        else:
            found.append(beside_main[name](main, others[name]))
    return [table for table in found if table is not None]


def _settings(
    main: Judged, questions: Sequence[str], plan: Plan | None, log: Path | None
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
        "items a task": plan and plan.items,
        "seed": plan and plan.seed,
        "machine": hardware and f"{hardware.get('cpus')} CPUs, {hardware.get('machine')}",
    }
    return {name: value for name, value in known.items() if value not in (None, "", {})}


def _limits(main: Judged, beside: bool, log: Path | None) -> Iterator[str]:
    items = {case.task: case.cells["raw"]["n_items"] for case in main.cases}
    yield (
        "intervals take the items as the sample and the wordings as given: they say nothing of "
        "wordings that were not asked"
    )
    if small := [f"{task} ({n})" for task, n in items.items() if n < 30]:
        yield f"few items decided: {', '.join(small)}"
    if beside:
        yield tables.MIXED
    if log is not None:
        yield (
            "the wordings are what the log calls templates: where these are prompting strategies "
            "(reasoning first, rating each option alone) and not paraphrases, JSS is agreement "
            "between strategies, not sensitivity to wording alone"
        )
