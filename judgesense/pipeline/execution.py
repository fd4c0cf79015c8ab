"""A run: what is asked for, judged with one judge after another, and reported."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError
from judgesense.files.data import RUNS, Data, kept_templates, materialise
from judgesense.log.folder import RETRIES, RunFolder, folder_lock, read_record, save_run
from judgesense.log.invocation import invocation
from judgesense.log.schema import PARTS, SCORINGS
from judgesense.measure.thresholds import Thresholds
from judgesense.pipeline.data import DataReference, data_reference
from judgesense.pipeline.first_prompts import first_answers
from judgesense.pipeline.requirements import answerable, name_of, require_effort, require_fitting
from judgesense.pipeline.settings import Note, Settings, to_stderr
from judgesense.recipes.recipe import AS_ASKED
from judgesense.text import did_you_mean

if TYPE_CHECKING:
    from judgesense.reporting.report import Report
    from local_judges.protocol import Answer
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
    given = {name: v for name, v in locals().items() if name not in ("note", "retry_failed")}
    require_known(run, judge_options)
    settings = Settings.of(scoring, tasks, orders, repeats, seed, limit, own=items is not None)
    beside = RUNS if out is None else Path(out).parent
    if items is not None:
        given["items"] = items = materialise(items, beside, "items")
    if templates is not None:
        given["templates"] = templates = kept_templates(templates, beside)
    data = data_reference(dataset, templates, items, variants, attacks)
    judges, cluster = prepare(judge, settings, judge_options, own=data.own)
    if out is None:
        name = Path(items).stem if items is not None else Path(dataset or "embedded").name
        given["out"] = out = folder_for(RUNS, name, judges, data.identity, settings.identity)
    started = invocation("run", run, given)
    note = note or to_stderr
    return execute(
        judges, data, settings, out, note, cluster, started=started, retries=retry_failed
    )


def folder_for(runs: Path, name: str, judges: Sequence[Any], *facts: Any) -> Path:
    """The folder in ``runs`` for the results of these ``judges`` and ``facts`` (JSON values)."""
    sources = [source for judge in judges if (source := getattr(judge, "function_source", None))]
    asked = [*facts, [identity_of(judge) for judge in judges], *sources]
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()
    return runs / f"{name}-{digest[:8]}"


def prepare(
    judge: Any, settings: Settings, options: Mapping[str, Any], *, own: bool = False
) -> tuple[list[Any], RayCluster | None]:
    """The judges of :func:`run` as :func:`execute` takes them, and the Ray cluster to run on.

    ``options`` are the ``judge_options``; ``own`` is as in `resolve_all`. Raises JudgeSenseError
    for an unknown judge or option.
    """
    cluster: RayCluster | None = None
    options = dict(options)
    if options.get("engine") == "ray" or any(k.startswith(("ray_", "actor_")) for k in options):
        from local_judges.ray_runner import cluster_of

        cluster, options = cluster_of(options)
    if "seed" in options:
        raise JudgeSenseError(f"--set seed={options['seed']}: use --seed instead")
    if options.get("temperature") is not None:
        options["seed"] = settings.seed
    scoring = settings.scorings[0] if len(settings.scorings) == 1 else None
    judges = judge if isinstance(judge, (list, tuple)) else [judge]
    return resolve_all(judges, scoring, options, own=own), cluster


def resolve_all(
    judges: Sequence[Any], scoring: str | None, options: Mapping[str, Any], *, own: bool = False
) -> list[Any]:
    """The judges as :func:`execute` takes them: names resolved, functions wrapped, none loaded.

    ``own`` prompts are the user's, not a benchmark's: a named judge gets them as they are.

    Raises JudgeSenseError without a judge, and for an unknown judge or option.
    """
    from local_judges.callable_judge import CallableJudge
    from local_judges.protocol import Judge

    if not judges:
        raise JudgeSenseError("no judge; name at least one")
    resolved: list[Any] = []
    for given in judges:
        # What `load_judge` returns takes items; a run asks the judge of prompts behind it.
        judge = getattr(given, "prompt_judge", given)
        if isinstance(judge, (str, Path)):
            from local_judges.registry import resolve_each

            named = resolve_each(str(judge), **options)
            resolved += [spec.for_own_prompts() for spec in named] if own else named
        elif options and (judge is not given or isinstance(judge, Judge)):
            raise JudgeSenseError(f"{min(options)}: set this option when you load the judge")
        elif callable(judge) and not isinstance(judge, Judge):
            if others := options.keys() - {"name", "batch_size"}:
                raise JudgeSenseError(f"{min(others)} is for named judges, not for a function")
            resolved.append(CallableJudge(judge, scoring=scoring or "generate", **options))
        else:
            resolved.append(judge)
    return resolved


def require_known(function: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise JudgeSenseError for a keyword that is no argument of a function and no judge's option.

    >>> require_known(run, {"repeat": 3})
    Traceback (most recent call last):
    judgesense.errors.JudgeSenseError: run has no argument 'repeat'; did you mean 'repeats'?
    """
    if not options:
        return
    from local_judges.options import ENGINES, RayOptions

    known = {"engine", "model", "name", "batch_size", "actor_engine", *RayOptions.model_fields}
    known |= {name for kind in ENGINES.values() for name in kind.model_fields}
    if unknown := [name for name in options if name not in known]:
        every = [*signature(function).parameters, *known]
        hint = did_you_mean(unknown[0], every)
        raise JudgeSenseError(f"{function.__name__} has no argument {unknown[0]!r}{hint}")


def identity_of(judge: Any) -> dict[str, Any]:
    """A judge as a run's record has it: a resolved name's settings, or a loaded judge's name."""
    if hasattr(judge, "identity"):
        identity: dict[str, Any] = judge.identity()
        return identity
    return {"judge": name_of(judge)}


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

    ``started`` is the command that asks for it
    (:func:`judgesense.log.invocation.invocation`). ``thresholds`` are kept in ``run.json`` for this
    report and every later one. ``spent`` US dollars and the spending of
    all judges of the run count together against each judge's ``max_cost``. Several processes may
    share a run (see :mod:`local_judges.ranks`); each returns the report. ``tries`` sends three
    prompts first (:mod:`judgesense.pipeline.first_prompts`), except to a benchmark's local model.

    Raises JudgeSenseError for a judge given twice, a folder that holds another run, and a judge
    whose first replies cannot be read.
    """
    seeded, identities = [], list[dict[str, Any]]()
    for judge in judges:
        seeded.append(judge.seeded(settings.seed) if hasattr(judge, "seeded") else judge)
        identity = identity_of(seeded[-1])
        if identity in identities:
            raise JudgeSenseError(
                f"the judge {identity['judge']!r} is given twice, so the log cannot tell the two "
                "apart. Give it once, or name each function: CallableJudge(function, name=...)"
            )
        identities.append(identity)
    terms: dict[str, Any] = {
        "judges": identities,
        "data": dict(data.identity),
        "settings": settings.identity,
    }
    with ExitStack() as stack:
        ranks: Ranks | None = None
        if os.environ.get("WORLD_SIZE", "1") not in ("", "1"):
            from local_judges.ranks import joined

            ranks = stack.enter_context(joined())
        if cluster is not None and ranks is not None:
            raise JudgeSenseError("--engine ray starts its own processes; start a single process")
        first = ranks is None or ranks.rank == 0
        if "://" in str(out):
            raise JudgeSenseError(f"--out must be a folder on this machine, not a URL, got {out}")
        folder = Path(out)
        if first:
            stack.enter_context(folder_lock(folder))
        run = RunFolder(folder, terms, writes=first)
        finished = run.is_finished() and not run.may_retry(retries)
        # No process writes before all have read the state of the run.
        finished = finished if ranks is None else all(ranks.gather(finished))
        if not finished:
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
            run.record["invocation"] = started
            run.record["hardware"]["processes"] = 1 if ranks is None else ranks.size
            for judge in seeded:
                require_fitting(judge, benchmark, settings)
                require_effort(judge, benchmark, data)
            for index, judge in enumerate(seeded):
                tried = tries and (data.own or getattr(judge, "engine", "") not in LOCAL)
                spent = _judge(
                    run,
                    judge,
                    index,
                    benchmark,
                    settings,
                    note,
                    spent,
                    ranks,
                    cluster,
                    tried,
                    retries,
                )
            if first:
                run.finish()
        report = None
        if first:
            from judgesense.reporting.report import write_report

            if thresholds is not None:
                _keep_thresholds(folder, thresholds)
            report = write_report(folder)
        if ranks is not None:
            report = ranks.gather(report)[0]
        assert report is not None
        return report


def _keep_thresholds(folder: Path, thresholds: Mapping[str, float]) -> None:
    record = read_record(folder) or {}
    if Thresholds().updated(record.get("thresholds")) != Thresholds().updated(thresholds):
        save_run(folder, {**record, "thresholds": dict(thresholds)})


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
    run.describe(
        run_id=f"{run.folder.resolve().name}-{benchmark.data_hash}",
        dataset=dict(benchmark.source),
        data_hash=benchmark.data_hash,
        **({"aliases": aliases} if aliases else {}),
        **({"reply_forms": forms} if forms else {}),
        **({"attacks": benchmark.attacks["texts"]} if benchmark.attacks else {}),
        **({"damage": _damage_record(benchmark)} if benchmark.damage else {}),
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
    of_attacks: str | None = benchmark.attacks.get("wins", {}).get(task)
    return benchmark.damage.get("wins") if of_attacks is None else of_attacks


def _damage_record(benchmark: Benchmark) -> dict[str, Any]:
    return {name: benchmark.damage[name] for name in ("kinds", "why") if name in benchmark.damage}


def _judge(
    run: RunFolder,
    given: Any,
    index: int,
    benchmark: Benchmark,
    settings: Settings,
    note: Note,
    spent: float,
    ranks: Ranks | None,
    cluster: RayCluster | None,
    tries: bool,
    retries: int,
) -> float:
    """Load one judge, judge what it has not judged yet, and record it.

    Returns the US dollars that the run has spent; ``spent`` are those before this judge.
    """
    from local_judges.messages import Messages
    from local_judges.protocol import Budgeted
    from local_judges.runner import run_judge

    whole, benchmark = benchmark, answerable(given, benchmark)
    if left_out := whole.prompts.num_rows - benchmark.prompts.num_rows:
        note(f"{left_out} prompts are left out: {name_of(given)} takes no reasoning effort")
    judge: Any
    if cluster is not None:
        from local_judges.ray_runner import RayJudge

        if index == 0:  # By this file an actor sees that it shares the folder.
            run.write_data(whole.pairs, whole.prompts)
        judge = RayJudge(cluster, given, run.folder, note=note)
    else:
        judge = given.load() if hasattr(given, "load") else given
    try:
        facts: dict[str, Any] = {"describe": dict(judge.describe())}
        if price := getattr(judge, "price", None):
            facts["price"] = {"input": price[0], "output": price[1]}
        entry = run.enter(judge.name, **facts)
        improved = getattr(given, "improved", None)
        scorings = settings.scorings
        if not settings.strict and improved is not None:
            scorings = (improved.scoring,)
        elif not settings.strict:
            offered = tuple(scoring for scoring in scorings if scoring in judge.scorings)
            # A judge that writes no text is asked for what it offers.
            offered = offered or tuple(s for s in SCORINGS if s in judge.scorings)
            if offered != scorings:
                note(f"{judge.name} offers only {' and '.join(offered)} scoring")
            scorings = offered
        if "options" in scorings and (reading := facts["describe"].get("options")):
            note(f"{judge.name} reads option probabilities from {reading}")
        if improved is not None and Messages(improved).asks_own and len(benchmark.pairs):
            n = len(improved.recipe.wordings)
            note(
                f"{judge.name} always asks its own {f'{n} wordings' if n > 1 else 'wording'}, "
                "whatever the run's wording, so it is steady by construction"
            )
        elif improved is not None and improved.recipe.name != AS_ASKED:
            note(
                f"{judge.name} applies its way of asking ({improved.recipe.name}) to each wording"
                " of the run"
            )
        plan: dict[str, Any] = {
            "judge_index": index,
            "repeats": settings.repeats,
            "seed": settings.seed,
        }
        earlier = 0.0
        if isinstance(judge, Budgeted):
            earlier, judge.spent = judge.spent, judge.spent + spent
        known: Mapping[str, Answer] = {}
        # A part, or the journal of one that is open.
        begun = any((run.folder / PARTS).glob(f"*part-{index:02d}-*"))
        if tries and not begun and cluster is None and ranks is None:
            known = first_answers(judge, benchmark, scorings, run.folder)
        if index == 0 and cluster is None:
            run.write_data(whole.pairs, whole.prompts)
        if cluster is not None:
            outcome = judge.run(benchmark, scorings, begin=run.begin, **plan)
        else:
            outcome = run_judge(
                judge,
                benchmark,
                run.folder,
                scorings,
                ranks=ranks,
                begin=run.begin,
                note=note,
                known=known,
                retries=run.retries_of(judge.name) < retries,
                **plan,
            )
        if isinstance(judge, Budgeted):
            spent = judge.spent - earlier
    finally:
        judge.close()
    served = getattr(getattr(judge, "endpoint", None), "served", None)
    if served:
        entry["served"] = {
            name: entry.get("served", {}).get(name, 0) + n for name, n in served.items()
        }
        if len(served) > 1:
            note(f"{judge.name} was answered by several models: {', '.join(served)}")
    run.leave(
        outcome.seconds,
        outcome.counts,
        outcome.failed,
        rows=outcome.rows,
        retried=outcome.retried > 0,
    )
    return spent


def failed_prompts(out: str | Path) -> list[str]:
    """The prompts of a run that have no answer: judge, prompt and reason, one line each.

    Raises JudgeSenseError for a damaged record.
    """
    return [f"{each['name']} {line}" for each in _entries(out) for line in each.get("failed") or ()]


def how_to_retry(out: str | Path, retries: int = RETRIES) -> str:
    """What to do about `failed_prompts`: the same command asks them again, a number of times."""
    again = max((each.get("retried", 0) for each in _entries(out) if each.get("failed")), default=0)
    if again < retries:
        return "rerun the same command to ask them again"
    return (
        f"they failed again {again} times; to ask once more, add --retry-failed {again + 1} to the "
        "same command"
    )


def _entries(out: str | Path) -> list[dict[str, Any]]:
    return list((read_record(Path(out)) or {}).get("judges") or ())
