"""A run: every judge judges the data, and the report is written."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.files.data import RUNS, Data, kept_templates, materialise
from judgesense.files.disk import writing
from judgesense.log.folder import ITEMS_FILE, RETRIES, folder_lock, read_record, save_run
from judgesense.log.invocation import invocation
from judgesense.log.run_folder import RunFolder
from judgesense.measure.thresholds import Thresholds
from judgesense.pipeline.data import DataReference, data_reference
from judgesense.pipeline.judges import folder_for, identity_of, prepare, require_known
from judgesense.pipeline.judging import Judging
from judgesense.pipeline.requirements import require_effort, require_fitting
from judgesense.pipeline.settings import Note, Settings, to_stderr

if TYPE_CHECKING:
    from judgesense.reporting.report import Report
    from local_judges.ranks import Ranks
    from local_judges.ray_runner import RayCluster


LOCAL = ("transformers", "vllm")
"""The engines whose prompts cost nothing."""


def run(
    judge: Any,
    *,
    dataset: str | Path | None = None,
    templates: str | Path | Mapping[str, Any] | None = None,
    items: Data | None = None,
    out: str | Path | None = None,
    tasks: Sequence[str] | None = None,
    scoring: str | None = None,
    orders: Sequence[str] | None = None,
    variants: Sequence[str] | None = None,
    attacks: str | None = None,
    repeats: int = 1,
    seed: int = 0,
    limit: int | None = None,
    retry_failed: int = RETRIES,
    note: Note | None = None,
    **judge_options: Any,
) -> Report:
    """Judge a benchmark and report on it: ``judgesense run`` in Python.

    Interrupt a run at any time; call it again with the same arguments to resume. A finished run
    is only measured again, after its failed prompts were asked again.

    Args:
        judge: a name, Hub id, model folder or GGUF file; a function from a list of user messages
            to one text (or mapping option -> log-probability) each; a loaded judge; or a list of
            these.
        dataset: Hub id or folder of a JudgeSense dataset; None for the embedded benchmark.
        templates: your own template file (YAML), or its content as a dict, with ``items``.
        items: your own items: a file (JSONL, CSV or Parquet), a list of dicts, a pandas or polars
            DataFrame or a ``datasets.Dataset``.
        out: the run's folder; by default one in ``runs``, named by a hash of what is asked. It is
            the report's ``out``.
        tasks: the tasks to judge; all by default.
        scoring: ``generate``, ``options`` or ``both``; by default text for your own items, and
            both where the judge offers both for a benchmark. A function returns texts unless you
            ask for ``options``.
        orders: option orders of comparative tasks, of ``AB`` and ``BA``; those of the data by
            default.
        variants: other ways to ask the base wording: ``["all"]``, or groups (``rewording``,
            ``format``, ``order``, ``structure``, ``contrast``, ``intervention``), names of variants
            and YAML files; the rewordings alone by default. Runs with variants ask the base twice.
        attacks: texts that try to win a verdict, added to what should lose: ``quick``, ``all``,
            ``search`` (also for the sentence that moves this judge most) or a YAML file; none by
            default.
        repeats: how often each prompt is asked, in other batches each time, to measure the noise.
        seed: fixes every random draw, answers at a temperature above 0 included.
        limit: at most this many items per task.
        retry_failed: how often later calls ask the prompts again that have no answer.
        note: called with progress notes; they go to stderr by default.
        judge_options: options of the engine (``dtype``, ``max_tokens``, ...; see
            :mod:`local_judges.options`). A list of ``max_tokens`` makes one judge of each.

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
    arguments = {name: v for name, v in locals().items() if name not in ("note", "retry_failed")}
    require_known(run, judge_options)
    settings = Settings.of(scoring, tasks, orders, repeats, seed, limit, own=items is not None)
    parent = RUNS if out is None else Path(out).parent
    if items is not None:
        arguments["items"] = items = materialise(items, parent, "items")
    if templates is not None:
        arguments["templates"] = templates = kept_templates(templates, parent)
    data = data_reference(dataset, templates, items, variants, attacks)
    judges, cluster = prepare(judge, settings, judge_options, own=data.own)
    if out is None:
        name = Path(items).stem if items is not None else Path(dataset or "embedded").name
        arguments["out"] = out = folder_for(RUNS, name, judges, data.identity, settings.identity)
    started = invocation("run", run, arguments)
    note = note or to_stderr
    return execute(
        judges, data, settings, out, note, cluster, started=started, retries=retry_failed
    )


def execute(
    judges: Sequence[Any],
    data: DataReference,
    settings: Settings,
    out: str | Path,
    note: Note,
    cluster: RayCluster | None = None,
    spent: float = 0.0,
    started: Mapping[str, Any] | None = None,
    thresholds: Mapping[str, float] | None = None,
    tries: bool = True,
    retries: int = RETRIES,
) -> Report:
    """Judge what is not judged yet, then measure; a finished run is only measured.

    Prompts that failed are asked again, at most ``retries`` times after the run was finished.

    ``started`` is the command that asks for it (:func:`judgesense.log.invocation.invocation`).
    ``thresholds`` are kept in ``run.json`` for this report and every later one. ``spent`` US
    dollars and the spending of all judges of the run count together against each judge's
    ``max_cost``. Several processes may share a run (see :mod:`local_judges.ranks`); each returns
    the report. ``tries`` sends three prompts first (:mod:`judgesense.pipeline.first_prompts`),
    except to a benchmark's local model.

    Raises JudgeSenseError for a judge given twice, a folder that holds another run, and a judge
    whose first replies cannot be read.
    """
    seeded = [
        judge.seeded(settings.seed) if hasattr(judge, "seeded") else judge for judge in judges
    ]
    terms = {
        "judges": _identities(seeded),
        "data": dict(data.identity),
        "settings": settings.identity,
    }
    if "://" in str(out):
        raise JudgeSenseError(f"--out must be a folder on this machine, not a URL, got {out}")
    folder = Path(out)
    with ExitStack() as stack:
        ranks: Ranks | None = None
        if os.environ.get("WORLD_SIZE", "1") not in ("", "1"):
            from local_judges.ranks import join_ranks

            ranks = stack.enter_context(join_ranks())
        if cluster is not None and ranks is not None:
            raise JudgeSenseError("--engine ray starts its own processes; start a single process")
        is_first = ranks is None or ranks.rank == 0
        if is_first:
            stack.enter_context(folder_lock(folder))
        run = RunFolder(folder, terms, writes=is_first)
        is_finished = run.is_finished() and not run.may_retry(retries)
        # No process writes before all have read the state of the run.
        is_finished = is_finished if ranks is None else all(ranks.gather(is_finished))
        if not is_finished:
            run.repair(note)
            run.reopen()
            if cluster is not None:
                stack.enter_context(cluster.connected())
            benchmark = data.selected(settings)
            if data.attacks == "search":
                if cluster is not None or ranks is not None:
                    raise JudgeSenseError(
                        "--attacks search runs in one process; search first, then "
                        "give the attacks.yaml that it wrote to --attacks"
                    )
                from judgesense.pipeline.attack_search import with_search

                benchmark, cost = with_search(benchmark, data, seeded, settings, folder, note)
                spent += cost
            _describe(run, benchmark, settings)
            if is_first and data.groups is not None and len(data.groups):
                with writing(folder):
                    pq.write_table(data.groups, folder / ITEMS_FILE, compression="zstd")
            run.record["invocation"] = started
            run.record["hardware"]["processes"] = 1 if ranks is None else ranks.size
            judging = Judging(run, benchmark, settings, note, ranks, cluster, retries)
            _judge_all(judging, seeded, data, spent, tries)
            if is_first:
                run.finish()
        report = _write_report(folder, thresholds) if is_first else None
        report = report if ranks is None else ranks.gather(report)[0]
        assert report is not None
        return report


def _identities(judges: Sequence[Any]) -> list[dict[str, Any]]:
    """The identity of each judge. Raises JudgeSenseError for a judge given twice."""
    identities: list[dict[str, Any]] = []
    for judge in judges:
        identity = identity_of(judge)
        if identity in identities:
            raise JudgeSenseError(
                f"the judge {identity['judge']!r} is given twice, so the log cannot tell the two "
                "apart. Give it once, or name each function: CallableJudge(function, name=...)"
            )
        identities.append(identity)
    return identities


def _judge_all(
    judging: Judging, judges: Sequence[Any], data: DataReference, spent: float, tries: bool
) -> None:
    """Judge with one judge after the other, once all are known to fit the benchmark."""
    for judge in judges:
        require_fitting(judge, judging.benchmark, judging.settings)
        require_effort(judge, judging.benchmark, data)
    for index, judge in enumerate(judges):
        sends_first = tries and (data.own or getattr(judge, "engine", "") not in LOCAL)
        spent = judging.judge(judge, index, spent, sends_first)


def _write_report(folder: Path, thresholds: Mapping[str, float] | None) -> Report:
    """Write the report of a run; ``thresholds`` are kept in its record first."""
    from judgesense.reporting.report import write_report

    record = read_record(folder) or {}
    before = Thresholds().updated(record.get("thresholds"))
    if thresholds is not None and before != Thresholds().updated(thresholds):
        save_run(folder, {**record, "thresholds": dict(thresholds)})
    return write_report(folder)


def _describe(run: RunFolder, benchmark: Benchmark, settings: Settings) -> None:
    """Record what the run is about.

    Raises JudgeSenseError if it was begun with other aliases.
    """
    aliases = json.loads(json.dumps({k: dict(v) for k, v in benchmark.aliases.items()}))
    if "data_hash" in run.record and run.record.get("aliases", {}) != aliases:
        raise JudgeSenseError(
            f"the answers in {run.folder} were read with other aliases, and the log cannot tell "
            "the two readings apart. Use another --out, or the same aliases"
        )
    forms = benchmark.reply_forms
    damage = {key: benchmark.damage[key] for key in ("kinds", "why") if key in benchmark.damage}
    run.describe(
        run_id=f"{run.folder.resolve().name}-{benchmark.data_hash}",
        dataset=dict(benchmark.source),
        data_hash=benchmark.data_hash,
        **({"aliases": aliases} if aliases else {}),
        **({"reply_forms": forms} if forms else {}),
        **({"attacks": benchmark.attacks["texts"]} if benchmark.attacks else {}),
        **({"damage": damage} if benchmark.damage else {}),
        tasks={
            name: {
                "labels": list(task.labels),
                "ordinal": task.ordinal,
                "comparative": task.comparative,
                "options": dict(task.options),
                "wordings": dict(benchmark.wordings.get(name, {})),
                "layouts": dict(benchmark.layouts.get(name, {})),
                **({"wins": wins} if (wins := _wins(benchmark, name)) is not None else {}),
            }
            for name, task in benchmark.tasks.items()
        },
        scorings=list(settings.scorings),
        orders=sorted(set(benchmark.prompts["order"].to_pylist())),
        repeats=settings.repeats,
        seed=settings.seed,
    )


def _wins(benchmark: Benchmark, task: str) -> str | None:
    """The label that an attack tries to win, or that a good output has."""
    wins: str | None = benchmark.attacks.get("wins", {}).get(task)
    return benchmark.damage.get("wins") if wins is None else wins


def failed_prompts(out: str | Path) -> list[str]:
    """The prompts of a run that have no answer: judge, prompt and reason, one line each.

    Raises JudgeSenseError for a damaged record.
    """
    judges = _judge_records(out)
    return [f"{judge['name']} {line}" for judge in judges for line in judge.get("failed") or ()]


def how_to_retry(out: str | Path, retries: int = RETRIES) -> str:
    """How to ask `failed_prompts` again: with the same command, a number of times."""
    failed = [judge for judge in _judge_records(out) if judge.get("failed")]
    times = max((judge.get("retried", 0) for judge in failed), default=0)
    if times < retries:
        return "rerun the same command to ask them again"
    return (
        f"they failed again {times} times; to ask once more, add --retry-failed {times + 1} to the "
        "same command"
    )


def _judge_records(out: str | Path) -> list[dict[str, Any]]:
    return list((read_record(Path(out)) or {}).get("judges") or ())
