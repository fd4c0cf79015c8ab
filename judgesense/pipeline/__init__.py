"""The plain study: judge a benchmark, measure, report. What ``judgesense run`` does."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesense.benchmark import Benchmark
from judgesense.decisions import SCORINGS
from judgesense.errors import JudgeSenseError
from judgesense.pipeline.data import DataReference, data_reference
from judgesense.report_file import saved_report
from judgesense.run_folder import PROMPTS_FILE, RunFolder
from judgesense.storage import opened

if TYPE_CHECKING:
    from judgesense.reporting.report import Report
    from local_judges.distributed.ranks import Ranks
    from local_judges.distributed.ray_cluster import RayCluster

Note = Callable[[str], None]


@dataclass(frozen=True)
class Settings:
    """What is asked of a run, apart from its judges and data: everything that fixes the log."""

    scorings: tuple[str, ...] = SCORINGS
    tasks: tuple[str, ...] | None = None
    orders: tuple[str, ...] | None = None
    repeats: int = 1
    seed: int = 0
    limit: int | None = None
    strict: bool = True
    """Whether a judge must offer every scoring; else it is scored by those that it offers."""

    @classmethod
    def of(
        cls,
        scoring: str | None = None,
        tasks: Sequence[str] | None = None,
        orders: Sequence[str] | None = None,
        repeats: int = 1,
        seed: int = 0,
        limit: int | None = None,
    ) -> Settings:
        """The settings as people give them: ``scoring`` is generate, options, both, or None for
        whatever of the two each judge offers."""
        return cls(
            scorings=SCORINGS if scoring in (None, "both") else (scoring,),
            strict=scoring is not None,
            tasks=tuple(tasks) if tasks is not None else None,
            orders=tuple(orders) if orders is not None else None,
            repeats=repeats,
            seed=seed,
            limit=limit,
        )

    def __post_init__(self) -> None:
        if unknown := [scoring for scoring in self.scorings if scoring not in SCORINGS]:
            raise JudgeSenseError(
                f"unknown scoring {unknown[0]!r}; known: {', '.join(SCORINGS)} (or both)"
            )
        if not self.scorings:
            raise JudgeSenseError("no scoring asked for; give generate, options or both")
        if unknown := [order for order in self.orders or () if order not in ("AB", "BA")]:
            raise JudgeSenseError(f"unknown order {unknown[0]!r}; known: AB, BA")
        for name, value in (("repeats", self.repeats), ("limit", self.limit)):
            if value is not None and value < 1:
                raise JudgeSenseError(f"{name} must be at least 1, got {value}")


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
    repeats: int = 1,
    seed: int = 0,
    limit: int | None = None,
    note: Note | None = None,
    **judge_options: Any,
) -> Report:
    """Judge a benchmark and report on it: ``judgesense run`` in Python.

    Args:
        judge: a registered name, Hub id, model folder or GGUF file; a function that is given a
            list of user messages and returns a text (or a mapping option -> log-probability) for
            each; a judge already loaded; or a list of these.
        dataset: a Hub id or folder of a JudgeSense dataset; None for the embedded benchmark.
        templates: a template file of one's own (YAML), with ``items``.
        items: the items of one's own (JSONL, CSV or Parquet).
        out: the run's folder, or a URL of a storage that fsspec knows (``s3://BUCKET/NAME``);
            given again, the run goes on where it stopped.
        tasks: the tasks to judge; all by default.
        scoring: ``generate``, ``options`` or ``both``; by default both where the judge offers
            both. A function returns texts unless ``options`` is asked for.
        orders: option orders of comparative tasks, of ``AB`` and ``BA``; both where the data
            have both.
        repeats: how often each prompt is asked, the later times in other batches: the noise floor.
        seed: fixes whatever is drawn at random, answers at a temperature above 0 included.
        limit: the first so many items a task.
        note: hears what a person should know on the way; by default it goes to stderr.
        judge_options: the judge's own (``system_prompt``, ``dtype``, ``max_tokens``, ...; several
            ``max_tokens`` make one judge of each); with ``engine="ray"`` also ``actor_engine`` and
            those of :class:`~local_judges.distributed.ray_cluster.RayCluster`, as ``ray_actors``
            and so on.

    Returns:
        The report.

    Raises:
        JudgeSenseError: for bad input, before a model is loaded where it can be known.

    >>> import tempfile
    >>> def judge(messages):
    ...     return ["YES" for _ in messages]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = run(judge, tasks=["factuality"], limit=4, out=f"{folder}/run", note=str)
    >>> {cell["judge"]: cell["jss"] for cell in report.cells if cell["labels"] == "raw"}
    {'judge@callable': 1.0, 'oracle': 0.6}
    """
    from judgesense.reporting.report import Report
    from local_judges.distributed.ray_cluster import cluster_of

    judges = list(judge) if isinstance(judge, (list, tuple)) else [judge]
    cluster, options = cluster_of(judge_options)
    if options.get("temperature") is not None:
        options["seed"] = seed
    specs = resolve_all(judges, scoring, options)
    settings = Settings.of(scoring, tasks, orders, repeats, seed, limit)
    data = data_reference(dataset, templates, items)
    return Report.of(execute(specs, data, settings, out, note or to_stderr, cluster))


def resolve_all(
    judges: Sequence[Any], scoring: str | None, options: Mapping[str, Any]
) -> list[Any]:
    """The judges as :func:`execute` takes them: names resolved, functions wrapped, none loaded."""
    from local_judges.callable_judge import CallableJudge
    from local_judges.registry import resolve_each

    if not judges:
        raise JudgeSenseError("no judge given; name at least one")
    found: list[Any] = []
    for each in judges:
        if isinstance(each, (str, Path)):
            found += resolve_each(str(each), **options)
        elif _is_function(each):
            found.append(CallableJudge(each, scoring=scoring or "generate", **options))
        else:
            found.append(each)
    return found


def identity_of(judge: Any) -> dict[str, Any]:
    """What a run's record says was asked for: a resolved name's settings, or a judge's name."""
    from local_judges.registry import JudgeSpec

    return judge.identity() if isinstance(judge, JudgeSpec) else {"judge": _name_of(judge)}


def execute(
    specs: Sequence[Any],
    data: DataReference,
    settings: Settings,
    out: str | Path,
    note: Note,
    cluster: RayCluster | None = None,
    spent: float = 0.0,
) -> dict[str, Any]:
    """Judge what is not judged yet, then measure; a finished run returns its report at once.

    ``spent`` US dollars, and what the judges of the run spend one after the other, count together
    against each judge's ``max_cost``.

    Several processes may do so together (see :mod:`local_judges.distributed.ranks`); each returns
    the report.
    """
    from judgesense.reporting.build import write_report
    from local_judges.distributed.ranks import joined
    from local_judges.registry import seeded

    specs = [seeded(spec, settings.seed) for spec in specs]
    asked = {
        "judges": [identity_of(spec) for spec in specs],
        "data": dict(data.identity),
        "settings": json.loads(json.dumps(asdict(settings))),
    }
    if twice := [each for each in asked["judges"] if asked["judges"].count(each) > 1]:
        raise JudgeSenseError(
            f"the judge {twice[0]['judge']!r} is given twice: the log would not tell them apart. "
            "Give each function a name of its own (CallableJudge(function, name=...))"
        )
    with joined() as ranks, opened(out) as place:
        if cluster is not None and ranks.size > 1:
            raise JudgeSenseError("--engine ray spreads the work itself; start one process")
        folder = place.folder
        run = RunFolder(place, asked, writes=ranks.first)
        # Nobody writes before all have seen how far the run is.
        if all(ranks.gather(run.is_finished())):
            report = saved_report(folder)
            if report is None and ranks.first:
                place.fetch_parts()
                report = write_report(folder)
                place.save()
        else:
            work = _Work(settings, run, note, ranks, cluster, spent)
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


def _judge_all(work: _Work, specs: Sequence[Any], data: DataReference) -> None:
    """Describe the run and judge with one judge after the other."""
    settings, run = work.settings, work.run
    benchmark = data.load().select(settings.tasks, settings.orders, settings.limit)
    run.describe(
        run_id=f"{run.place.folder.resolve().name}-{benchmark.data_hash}",
        dataset=dict(benchmark.source),
        data_hash=benchmark.data_hash,
        tasks={
            name: {
                "labels": list(task.labels),
                "ordinal": task.ordinal,
                "comparative": task.comparative,
            }
            for name, task in benchmark.tasks.items()
        },
        scorings=list(settings.scorings),
        orders=sorted(set(benchmark.prompts["order"].to_pylist())),
        repeats=settings.repeats,
        seed=settings.seed,
    )
    run.record["hardware"]["processes"] = work.ranks.size
    run.write_data(benchmark.pairs, benchmark.prompts)
    for index, spec in enumerate(specs):
        _judge_one(work, spec, index, benchmark)


def _judge_one(work: _Work, spec: Any, index: int, benchmark: Benchmark) -> None:
    """Load one judge, judge what it has not judged yet, and record it."""
    from local_judges.distributed.ray_runner import RayJudge
    from local_judges.protocol import Budgeted
    from local_judges.registry import JudgeSpec
    from local_judges.runner import run_judge

    settings, run = work.settings, work.run
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
        scorings = _scorings_for(judge, settings, work.note)
        asked: dict[str, Any] = {
            "judge_index": index,
            "repeats": settings.repeats,
            "seed": settings.seed,
            "begin": run.begin,
        }
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
                **asked,
            )
        if isinstance(judge, Budgeted):
            work.spent = judge.spent - before
    finally:
        judge.close()
    run.leave(outcome.seconds, outcome.counts, outcome.failed)


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


def _name_of(judge: Any) -> str:
    name = getattr(judge, "name", None) or getattr(judge, "__name__", type(judge).__name__)
    return str(name)


def to_stderr(message: str) -> None:
    """Where notes go unless somebody else hears them."""
    print(message, file=sys.stderr)
