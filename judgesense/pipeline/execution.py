"""A run: what is asked for, judged with one judge after another, and reported."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.pipeline.data import DataReference, data_reference
from judgesense.pipeline.fitting import answerable, name_of, require_effort, require_fitting
from judgesense.pipeline.settings import Note, Settings, to_stderr
from judgesense.run_folder.folder import PROMPTS_FILE, RunFolder, claimed, read_record
from judgesense.run_folder.report import saved_report
from judgesense.run_folder.storage import opened

if TYPE_CHECKING:
    from judgesense.reporting.report import Report
    from local_judges.distributed.ranks import Ranks
    from local_judges.distributed.ray_cluster import RayCluster
    from local_judges.pace import Pace


@dataclass(frozen=True)
class RunRequest:
    """A run as asked for: judges resolved but not loaded, data named but not read."""

    judges: tuple[Any, ...]
    data: DataReference
    settings: Settings
    cluster: RayCluster | None = None

    def benchmark(self) -> Benchmark:
        """The prompts and pairs to judge. Raises JudgeSenseError for data that cannot be read."""
        return self.data.selected(self.settings)


def prepare(
    judge: Any, data: DataReference, settings: Settings, options: Mapping[str, Any]
) -> RunRequest:
    """Check what :func:`run` is asked for; ``options`` are its ``judge_options``.

    Raises JudgeSenseError for an unknown judge or option.
    """
    from local_judges.distributed.ray_cluster import cluster_of

    judges = list(judge) if isinstance(judge, (list, tuple)) else [judge]
    cluster, own = cluster_of(options)
    if own.get("temperature") is not None:
        own["seed"] = settings.seed
    scoring = settings.scorings[0] if len(settings.scorings) == 1 else None
    return RunRequest(tuple(resolve_all(judges, scoring, own)), data, settings, cluster)


def run(
    judge: Any,
    *,
    dataset: str | Path | None = None,
    templates: str | Path | None = None,
    items: str | Path | None = None,
    out: str | Path,
    tasks: Sequence[str] | None = None,
    scoring: str | None = None,
    orders: Sequence[str] | None = None,
    variants: Sequence[str] | None = None,
    repeats: int = 1,
    seed: int = 0,
    limit: int | None = None,
    content_free: bool = False,
    note: Note | None = None,
    **judge_options: Any,
) -> Report:
    """Judge a benchmark and report on it: ``judgesense run`` in Python.

    Interrupt a run at any time; call it again with the same arguments to resume. A finished run
    returns its report at once.

    Args:
        judge: a name, Hub id, model folder or GGUF file; a function from a list of user messages
            to one text (or mapping option -> log-probability) each; a loaded judge; or a list of
            these.
        dataset: Hub id or folder of a JudgeSense dataset; None for the embedded benchmark.
        templates: your own template file (YAML), with ``items``.
        items: your own items (JSONL, CSV or Parquet).
        out: the run's folder, or a URL that fsspec knows (``s3://BUCKET/NAME``).
        tasks: the tasks to judge; all by default.
        scoring: ``generate``, ``options`` or ``both``; by default both where the judge offers
            both. A function returns texts unless you ask for ``options``.
        orders: option orders of comparative tasks, of ``AB`` and ``BA``; those of the data by
            default.
        variants: other ways to ask the base wording: ``["all"]``, or groups (``rewording``,
            ``format``, ``order``, ``structure``, ``contrast``, ``intervention``), names of variants
            and YAML files; the rewordings alone by default. Runs with variants ask the base twice.
        repeats: how often each prompt is asked, in other batches each time: the noise floor.
        seed: fixes every random draw, answers at a temperature above 0 included.
        limit: at most this many items per task.
        content_free: ask each wording about input without content ("N/A") as well, for contextual
            calibration; it reads option probabilities.
        note: called with progress notes; they go to stderr by default.
        judge_options: options of the engine (``dtype``, ``max_tokens``, ...; see
            :mod:`local_judges.options`). A list of ``max_tokens`` makes one judge of each.

    Returns:
        The report.

    Raises:
        JudgeSenseError: for bad input, before a model is loaded where possible.

    >>> import tempfile
    >>> def judge(messages):
    ...     return ["YES" for _ in messages]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = run(judge, tasks=["factuality"], limit=4, out=f"{folder}/run", note=str)
    >>> {cell["judge"]: cell["jss"] for cell in report.cells if cell["labels"] == "raw"}
    {'judge@callable': 1.0, 'oracle': 0.6}
    """
    from judgesense.reporting.report import Report

    settings = Settings.of(scoring, tasks, orders, repeats, seed, limit, content_free)
    data = data_reference(dataset, templates, items, variants)
    asked = prepare(judge, data, settings, judge_options)
    return Report.of(
        execute(asked.judges, asked.data, asked.settings, out, note or to_stderr, asked.cluster),
        out,
    )


def resolve_all(
    judges: Sequence[Any], scoring: str | None, options: Mapping[str, Any]
) -> list[Any]:
    """The judges as :func:`execute` takes them: names resolved, functions wrapped, none loaded.

    Raises JudgeSenseError without a judge, and for an unknown judge or option.
    """
    from local_judges.callable_judge import CallableJudge
    from local_judges.registry import resolve_each

    if not judges:
        raise JudgeSenseError("no judge; name at least one")
    found: list[Any] = []
    for given in judges:
        # What `load_judge` returns takes items; a run asks the judge of prompts behind it.
        each = getattr(given, "prompt_judge", given)
        if isinstance(each, (str, Path)):
            found += resolve_each(str(each), **options)
        elif _is_function(each):
            found.append(CallableJudge(each, scoring=scoring or "generate", **options))
        else:
            found.append(each)
    return found


def identity_of(judge: Any) -> dict[str, Any]:
    """A judge as a run's record has it: a resolved name's settings, or a loaded judge's name."""
    from local_judges.registry import JudgeSpec

    return judge.identity() if isinstance(judge, JudgeSpec) else {"judge": name_of(judge)}


def execute(
    specs: Sequence[Any],
    data: DataReference,
    settings: Settings,
    out: str | Path,
    note: Note,
    cluster: RayCluster | None = None,
    spent: float = 0.0,
    quicker: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Judge what is not judged yet, then measure; a finished run returns its report at once.

    ``spent`` US dollars and the spending of all judges of the run count together against each
    judge's ``max_cost``. ``quicker`` are the command's flags that make a long run shorter; by
    default those of ``judgesense run``. Several processes may share a run (see
    :mod:`local_judges.distributed.ranks`); each returns the report.

    Raises JudgeSenseError for a judge given twice and a folder that holds another run.
    """
    from judgesense.reporting.report import write_report
    from local_judges.distributed.ranks import joined
    from local_judges.registry import seeded

    specs = [seeded(spec, settings.seed) for spec in specs]
    asked: dict[str, Any] = {
        "judges": [identity_of(spec) for spec in specs],
        "data": dict(data.identity),
        "settings": settings.identity,
    }
    if twice := [each for each in asked["judges"] if asked["judges"].count(each) > 1]:
        raise JudgeSenseError(
            f"the judge {twice[0]['judge']!r} is given twice, and the log could not tell the two "
            "apart. Name each function: CallableJudge(function, name=...)"
        )
    with (
        joined() as ranks,
        opened(out) as place,
        claimed(place) if ranks.first else nullcontext(),
    ):
        if cluster is not None and ranks.size > 1:
            raise JudgeSenseError("--engine ray starts its own processes; start only one")
        folder = place.folder
        run = RunFolder(place, asked, writes=ranks.first)
        # No process writes before all have read the state of the run.
        if all(ranks.gather(run.is_finished())):
            report = saved_report(folder)
            if report is None and ranks.first:
                place.fetch_parts()
                report = write_report(folder)
                place.save()
        else:
            run.repair(note)
            work = _Work(settings, run, note, ranks, cluster, spent, quicker)
            with cluster.connected() if cluster else nullcontext():
                _judge_all(work, specs, data)
            report = None
            if ranks.first:
                run.finish()
                report = write_report(folder)
                place.save()
        reported: dict[str, Any] = ranks.gather(report)[0]
        return reported


@dataclass
class _Work:
    """The state of a run in progress; ``spent`` is in US dollars."""

    settings: Settings
    run: RunFolder
    note: Note
    ranks: Ranks
    cluster: RayCluster | None
    spent: float
    quicker: Sequence[str] | None


def _judge_all(work: _Work, specs: Sequence[Any], data: DataReference) -> None:
    """Describe the run and judge with one judge after another."""
    settings, run = work.settings, work.run
    benchmark = data.selected(settings)
    aliases = json.loads(json.dumps({k: dict(v) for k, v in benchmark.aliases.items()}))
    if "data_hash" in run.record and run.record.get("aliases", {}) != aliases:
        raise JudgeSenseError(
            f"{run.place.folder} was read with other aliases in the templates, and decisions read "
            "with both cannot be told apart. Use another --out, or the same aliases"
        )
    run.describe(
        run_id=f"{run.place.folder.resolve().name}-{benchmark.data_hash}",
        dataset=dict(benchmark.source),
        data_hash=benchmark.data_hash,
        **({"aliases": aliases} if aliases else {}),
        **({"reply_forms": forms} if (forms := benchmark.reply_forms) else {}),
        tasks={
            name: {
                "labels": list(task.labels),
                "ordinal": task.ordinal,
                "comparative": task.comparative,
                "options": dict(task.options),
                "wordings": dict(benchmark.wordings.get(name, {})),
                "layouts": dict(benchmark.layouts.get(name, {})),
            }
            for name, task in benchmark.tasks.items()
        },
        scorings=list(settings.scorings),
        orders=sorted(set(benchmark.prompts["order"].to_pylist())),
        repeats=settings.repeats,
        seed=settings.seed,
    )
    run.record["hardware"]["processes"] = work.ranks.size
    for spec in specs:
        require_fitting(spec, benchmark, settings)
        require_effort(spec, benchmark, data)
    run.write_data(benchmark.pairs, benchmark.prompts)
    for index, spec in enumerate(specs):
        _judge_one(work, spec, index, benchmark)


def _judge_one(work: _Work, spec: Any, index: int, benchmark: Benchmark) -> None:
    """Load one judge, judge what it has not judged yet, and record it."""
    from local_judges.api.judge import UNREACHED
    from local_judges.distributed.ray_runner import RayJudge
    from local_judges.protocol import Budgeted
    from local_judges.registry import JudgeSpec
    from local_judges.runner import run_judge

    settings, run, whole = work.settings, work.run, benchmark.prompts.num_rows
    benchmark = answerable(spec, benchmark)
    if left_out := whole - benchmark.prompts.num_rows:
        work.note(
            f"{name_of(spec)} takes no such effort or thinking: {left_out} prompts are left out"
        )
    judge = (
        RayJudge(work.cluster, spec, run.place.parts, beside=PROMPTS_FILE, note=work.note)
        if work.cluster is not None
        else spec.load()
        if isinstance(spec, JudgeSpec)
        else spec
    )
    try:
        facts: dict[str, Any] = {"describe": dict(judge.describe())}
        if price := spec.options.get("price") if isinstance(spec, JudgeSpec) else _price_of(spec):
            facts["price"] = {"input": price[0], "output": price[1]}
        run.enter(judge.name, **facts)
        stabilised = getattr(spec, "stabilised", None)
        scorings = (
            (stabilised.scoring,)
            if stabilised is not None and not settings.strict
            else _scorings_for(judge, settings, work.note)
        )
        if settings.content_free and "options" not in scorings:
            raise JudgeSenseError(
                f"--content-free reads option probabilities, and judge {judge.name} offers "
                f"{' and '.join(scorings)} scoring only: leave it out"
            )
        if "options" in scorings and (reading := facts["describe"].get("options")):
            run.require_same_reading(reading, UNREACHED)
            work.note(f"{judge.name} reads option probabilities from {reading}")
        asked: dict[str, Any] = {
            "judge_index": index,
            "repeats": settings.repeats,
            "seed": settings.seed,
            "begin": run.begin,
        }
        if stabilised is not None and len(stabilised.rule.wordings) > 1 and len(benchmark.pairs):
            work.note(
                f"{judge.name} asks its own {len(stabilised.rule.wordings)} wordings whatever the "
                "wording of the run, so it is steady by construction"
            )
        if isinstance(judge, Budgeted):
            before, judge.spent = judge.spent, judge.spent + work.spent
        if isinstance(judge, RayJudge):
            outcome = judge.run(benchmark, scorings, **asked)
        else:
            outcome = run_judge(
                judge,
                benchmark,
                run.place.parts,
                scorings,
                ranks=work.ranks,
                note=work.note,
                pace=_pace_of(spec, scorings, work),
                **asked,
            )
        if isinstance(judge, Budgeted):
            work.spent = judge.spent - before
    finally:
        judge.close()
    run.leave(outcome.seconds, outcome.counts, outcome.failed)


def _pace_of(spec: Any, scorings: Sequence[str], work: _Work) -> Pace:
    from local_judges.pace import WAYS, Pace
    from local_judges.registry import JudgeSpec

    named = isinstance(spec, JudgeSpec)
    return Pace(
        spec.identity() if named else None,
        scorings,
        work.note,
        # An API's answers cost money, and vLLM is only fast with many prompts at once.
        sample=named and spec.engine == "transformers",
        repeats=work.settings.repeats,
        ways=WAYS if work.quicker is None else work.quicker,
    )


def _scorings_for(judge: Any, settings: Settings, note: Note) -> tuple[str, ...]:
    offered = tuple(scoring for scoring in settings.scorings if scoring in judge.scorings)
    if settings.strict or offered == settings.scorings or not offered:
        return settings.scorings
    note(f"{judge.name} offers {' and '.join(offered)} scoring only")
    return offered


def _is_function(judge: Any) -> bool:
    from local_judges.protocol import Judge

    return callable(judge) and not isinstance(judge, Judge)


def _price_of(judge: Any) -> tuple[float, float] | None:
    """A loaded judge's price, in US dollars per million (input, output) tokens."""
    price: tuple[float, float] | None = getattr(judge, "price", None)
    return price


def failed_prompts(out: str | Path) -> list[str]:
    """The prompts of a run that have no answer: judge, prompt and reason, one line each.

    Raises JudgeSenseError for a damaged record.
    """
    with opened(out, to_write=False) as place:
        record = read_record(place.folder) or {}
    return [
        f"{judge['name']} {line}"
        for judge in record.get("judges", [])
        for line in judge.get("failed", [])
    ]
