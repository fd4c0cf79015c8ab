"""Verdicts on items: ``judgesense judge`` and ``judgesense.load_judge``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from judgesense.benchmark import Benchmark, table_of_prompts
from judgesense.errors import JudgeSenseError
from judgesense.files.data import RUNS, Data, kept_templates, materialise, rows_in
from judgesense.files.tables import Record
from judgesense.log.folder import PAIR_SCHEMA, RETRIES
from judgesense.log.schema import read_log
from judgesense.pipeline.data import DataReference
from judgesense.pipeline.events import emit_verdicts
from judgesense.pipeline.execution import execute
from judgesense.pipeline.judges import folder_for, require_known, resolve_all
from judgesense.pipeline.settings import Note, Settings, to_stderr
from judgesense.pipeline.verdict_files import (
    FORMATS,
    ItemVerdict,
    changed_since,
    read_items,
    write_verdicts,
)
from judgesense.recipes.recipe import AS_ASKED, TIE, Recipe
from judgesense.tasks import Item, is_scale
from judgesense.version import __version__
from judgesense_dataset.recognition import known_tasks
from judgesense_dataset.templates import TaskTemplates, items_of, load_items, load_templates
from local_judges.improved_judge import ImprovedJudge, read_improved
from local_judges.messages import Messages
from local_judges.protocol import Answer, Judge, Request
from local_judges.recipe_judge import RecipeJudge
from local_judges.registry import JudgeSpec
from local_judges.rows import decide
from local_judges.runner import ask_all
from local_judges.votes import margin_of_votes


@dataclass(frozen=True)
class JudgingSummary:
    """What :func:`judge_items` wrote: how many verdicts, and how many a person should look at."""

    out: Path
    run_folder: Path
    items: int
    decided: int
    ask_person: int | None
    cost_usd: float | None

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, paths as text."""
        return {**asdict(self), "out": str(self.out), "run_folder": str(self.run_folder)}


def judge_items(
    items: Data,
    judge: Any,
    out: str | Path | None = None,
    *,
    task: str | None = None,
    wording: str | None = None,
    scoring: str | None = None,
    templates: str | Path | Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
    retry_failed: int = RETRIES,
    note: Note | None = None,
    **judge_options: Any,
) -> JudgingSummary:
    """Judge items and write a row per item, in the items' order, with the columns of their file.

    Interrupt it at any time; call it again with the same arguments to resume. The decision log is
    kept in the folder ``OUT.run``, which ``judgesense report`` reads.

    Args:
        items: JSONL, CSV or Parquet, a list of dicts, a DataFrame or a ``datasets.Dataset``, with
            the columns that the wordings show (``item_id`` and
            ``gold`` may be left out).
        judge: an improved judge's file, or any other judge with ``task``.
        out: the file to write: .parquet, .jsonl or .csv; by default a CSV file in ``runs``, named
            by a hash of what is asked.
        task: for any other judge, a task with templates of JudgeSense's own.
        wording: for any other judge, the template to ask (the task's first).
        scoring: ``generate`` (the default) or ``options``, for any other judge.
        templates: your own template file, or its content as a dict, for a judge that is not
            improved.
        columns: your names of the columns: ``{"query": "question"}``.
        retry_failed: how often later calls ask the prompts again that have no answer.
        note: called with progress notes; they go to stderr by default.
        judge_options: options of the engine.

    Raises:
        JudgeSenseError: bad input, before a model is loaded where possible.

    >>> import tempfile
    >>> from local_judges.callable_judge import CallableJudge
    >>> judge = CallableJudge(lambda messages: ["A"] * len(messages), name="first")
    >>> row = '{"query": "sun", "passage_a": "a star", "passage_b": "moon"}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     items, out = Path(folder, "items.jsonl"), Path(folder, "verdicts.csv")
    ...     _ = items.write_text(row)
    ...     told = judge_items(
    ...         items, judge, out, task="relevance", scoring="generate", note=str
    ...     )
    ...     print(out.read_text().splitlines()[1])
    relevance-1,A,,1.0,,,,,relevance-1,,first@callable,relevance,relevance-1,AB,0,,,sun,a star,moon
    """
    from local_judges.ray_runner import cluster_of

    require_known(judge_items, judge_options)
    beside = RUNS if out is None else Path(out).parent
    if out is not None and Path(out).suffix not in FORMATS:
        raise JudgeSenseError(f"{out}: unknown file type; use {', '.join(FORMATS)}")
    if out is not None and Path(out).is_dir():
        raise JudgeSenseError(f"{out} is a folder; name a file")
    if templates is not None:
        templates = kept_templates(templates, beside)
    cluster, options = cluster_of(judge_options)
    spec = _resolved(judge, task, wording, scoring, templates, options)
    improved: ImprovedJudge = spec.improved
    file = materialise(items, beside, "items")
    read, identity, rows = read_items(file, improved, columns or {})
    data = DataReference(
        {"items": identity, "stabilised": improved.digest}, lambda: benchmark_of(improved, read)
    )
    target = Path(out or f"{folder_for(RUNS, file.stem, [spec], data.identity)}.csv")
    folder = target.with_name(f"{target.name}.run")
    settings = Settings.of(improved.scoring)
    note = note or to_stderr
    execute([spec], data, settings, folder, note, cluster, retries=retry_failed)
    found = verdicts_of(read_log(folder), improved, read)
    # A rerun tells of no verdict twice.
    news = changed_since(target, found)
    write_verdicts(found, target, rows)
    emit_verdicts(
        (verdict, signature_of(improved, verdict.judge or ""), row)
        for verdict, row, is_new in zip(found, rows, news, strict=True)
        if is_new
    )
    asked = [v.ask_person for v in found if v.ask_person is not None]
    costs = [v.cost_usd for v in found if v.cost_usd is not None]
    return JudgingSummary(
        target,
        folder,
        len(found),
        sum(v.verdict in improved.recipe.labels for v in found),
        sum(asked) if improved.threshold is not None else None,
        sum(costs) if costs else None,
    )


class ItemJudge:
    """A loaded judge of items: call it with items, close it (or use ``with``) when done.

    Items have the fields that the wording shows, and optionally ``item_id``: a list of dicts, a
    DataFrame, a ``datasets.Dataset`` or the path of a file.
    """

    def __init__(self, improved: ImprovedJudge, judge: Judge) -> None:
        self.improved, self.judge = improved, judge

    @property
    def prompt_judge(self) -> Judge:
        """The judge of prompts behind it, for `judgesense.run` and `judgesense.check`."""
        return self.judge

    def __call__(self, items: Data) -> list[ItemVerdict]:
        """The verdicts on the items, in their order.

        Raises JudgeSenseError naming the row and the field for an item that lacks one.
        """
        if isinstance(items, (str, Path)):
            read = load_items(items, self.improved.entry.task, self.improved.fields)
        else:
            task, fields = self.improved.entry.task, self.improved.fields
            rows = enumerate(rows_in(items, "items"), 1)
            given = (Record(row, f"items, row {n}") for n, row in rows)
            read = items_of(given, "items", task, fields)
        improved, kind = self.improved, self.improved.scoring
        options = tuple(improved.base.label_map)
        messages = map(Messages(improved).of_item, read)
        requests = [Request(each.prompt_id, each.text, options) for each in messages]
        distinct = {request.prompt_id: request for request in requests}
        answers = dict(
            zip(distinct, ask_all(self.judge, list(distinct.values()), {kind}), strict=True)
        )
        return [
            verdict_in(improved, item, answers[request.prompt_id], options, kind, self.judge.name)
            for item, request in zip(read, requests, strict=True)
        ]

    def close(self) -> None:
        """Free the judge."""
        self.judge.close()

    def __enter__(self) -> ItemJudge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def load_judge(
    file: str | Path,
    *,
    judge: Any = None,
    task: str | None = None,
    wording: str | None = None,
    scoring: str | None = None,
    **judge_options: Any,
) -> ItemJudge:
    """Load an improved judge, or any judge with a task, as a function from items to verdicts.

    Args:
        file: an improved judge's file; or a judge's name, Hub id or path, with ``task``.
        judge: the judge to ask in place of the file's: a function or a loaded judge, or a list of
            them for a cascade or jury of several. It need not be the one that was measured.
        task: for any other judge, a task with templates of JudgeSense's own.
        wording: for any other judge, the template to ask (the task's first).
        scoring: ``generate`` (the default) or ``options``, for any other judge.
        judge_options: options of the engine.

    Raises:
        JudgeSenseError: a file that is not consistent, or a judge that is not there.

    >>> def first(messages):
    ...     return [{"A": -0.1, "B": -2.4} for _ in messages]
    >>> from local_judges.callable_judge import CallableJudge
    >>> own = load_judge(CallableJudge(first, scoring="options"), task="relevance")
    >>> own([{"query": "sun", "passage_a": "a star", "passage_b": "a moon"}])[0].verdict
    'A'
    """
    if judge is None:
        found = _resolved(file, task, wording, scoring, None, judge_options)
        loaded = found.load() if isinstance(found, JudgeSpec) else found
        return ItemJudge(found.improved, loaded)
    improved = read_improved(file)
    judges = judge if isinstance(judge, (list, tuple)) else [judge]
    names = [str(each.get("name")) for each in improved.judges]
    if len(set(names)) == len(judges) == 1:
        judges = [*judges] * len(names)
    inner = resolve_all(judges, improved.scoring, judge_options)
    loaded = [each.load() if isinstance(each, JudgeSpec) else each for each in inner]
    return ItemJudge(improved, RecipeJudge(improved, *loaded, same_judge=False))


def _resolved(
    judge: Any,
    task: str | None,
    wording: str | None,
    scoring: str | None,
    templates: str | Path | None,
    options: Mapping[str, Any],
) -> Any:
    """The judge with its recipe, not loaded if it was named: an object with ``improved``."""
    (found,) = resolve_all([judge], scoring, options, own=templates is not None)
    if isinstance(found, JudgeSpec) and found.improved is not None:
        if task not in (None, found.improved.entry.task.name):
            raise JudgeSenseError(
                f"{judge} judges the task {found.improved.entry.task.name}, not {task}"
            )
        return found
    if task is None:
        raise JudgeSenseError(
            "no task: give --task, or an improved judge's file as the judge (judgesense "
            "improve makes one)"
        )
    improved = _as_asked(task, wording, scoring or scoring_of(found), templates)
    if isinstance(found, JudgeSpec):
        return replace(found, improved=improved)
    return RecipeJudge(improved, found)


def signature_of(improved: ImprovedJudge, judge: str) -> str:
    """What fixes the verdicts of a judge by a recipe, in one line."""
    recipe = improved.recipe
    return (
        f"judge:{judge}|task:{improved.entry.task.name}|rule:{recipe.name}"
        f"|wordings:{','.join(recipe.wordings)}|orders:{','.join(recipe.orders)}"
        f"|scoring:{improved.scoring}|digest:{improved.digest}|v:{__version__}"
    )


def scoring_of(judge: Any) -> str:
    """How a judge, or the spec of one, is asked by default: for text, unless it writes none."""
    offered = getattr(judge, "scorings", None) or (
        {"options"} if getattr(judge, "engine", None) == "systemone" else {"generate"}
    )
    return "generate" if "generate" in offered else "options"


def _as_asked(
    task: str, wording: str | None, scoring: str, templates: str | Path | None
) -> ImprovedJudge:
    """One wording of a task, asked once: the recipe of a judge that is not improved."""
    tasks = known_tasks() if templates is None else load_templates(templates)
    if task not in tasks:
        raise JudgeSenseError(f"unknown task {task!r}; choose from {', '.join(tasks)}")
    entry = tasks[task]
    by_id = {template.template_id: template for template in entry.templates}
    if wording is not None and wording not in by_id:
        raise JudgeSenseError(
            f"task {task} has no template {wording!r}; choose from {', '.join(by_id)}"
        )
    chosen = by_id[wording] if wording else entry.templates[0]
    recipe = Recipe(
        AS_ASKED,
        (chosen.template_id,),
        entry.task.orders[:1],
        entry.task.labels,
        "most probable" if scoring == "options" else "vote",
    )
    return ImprovedJudge(({},), TaskTemplates(entry.task, (chosen,)), recipe)


def benchmark_of(improved: ImprovedJudge, items: Sequence[Item]) -> Benchmark:
    """One message per item, which the improved judge asks in its own wordings and orders."""
    task, messages = improved.entry.task, Messages(improved)
    prompts = [messages.of_item(item) for item in items]
    return Benchmark(
        {task.name: task},
        table_of_prompts(prompts),
        PAIR_SCHEMA.empty_table(),
        {"name": "items", "items": str(len(items))},
    )


def verdicts_of(log: pa.Table, improved: ImprovedJudge, items: Sequence[Item]) -> list[ItemVerdict]:
    """The verdicts in a log of :func:`benchmark_of`, in the items' order."""
    found: dict[str, ItemVerdict] = {}
    by_id = {item.item_id: item for item in items}
    for row in log.to_pylist():
        logprobs = {each["option"]: each["logprob"] for each in row["option_logprobs"] or ()}
        answer = Answer(
            text=row["raw_text"],
            option_logprobs=tuple(logprobs.values()) or None,
            cost_usd=row["cost_usd"],
            error=row["error"],
            refused=row["status"] == "refused",
            certificate=row["certificate"],
        )
        options = tuple(logprobs or improved.base.label_map)
        item = by_id[row["item_id"]]
        reading = answer, options, row["scoring"], row["judge"]
        found[item.item_id] = verdict_in(improved, item, *reading)
    return [found[item.item_id] for item in items]


def verdict_in(
    improved: ImprovedJudge,
    item: Item,
    answer: Answer,
    options: tuple[str, ...],
    scoring: str,
    judge: str,
) -> ItemVerdict:
    """The verdict on an item in the answer to its message, which allows ``options``."""
    template, recipe = improved.base, improved.recipe
    alone, raw = not recipe.members, decide(answer, scoring, options, template.aliases)
    verdict = template.label_map.get(raw, raw)
    probability = margin = nats = score = None
    if recipe.read == "vote" and verdict in recipe.labels:
        margin = nats = margin_of_votes(answer.text or "", template)
    elif answer.option_logprobs is not None and verdict in recipe.labels:
        shares: dict[str, float] = dict.fromkeys(recipe.labels, 0.0)
        for option, value in zip(options, answer.option_logprobs, strict=True):
            shares[template.label_map[option]] += math.exp(value)
        total = sum(shares.values())
        first, second = sorted(shares.values(), reverse=True)[:2]
        margin = (first - second) / total
        nats = math.log(first) - math.log(max(second, 1e-304))
        if recipe.read == "expected score":
            one, two = (math.log(max(shares[label], 1e-304)) for label in recipe.labels[:2])
            low, high = (float(label) for label in recipe.labels[:2])
            score = (one - two + low**2 - high**2) / (2 * (low - high))
        else:
            probability = shares[verdict] / total
            if improved.entry.task.ordinal and is_scale(recipe.labels):
                score = sum(float(label) * share for label, share in shares.items()) / total
    ask = None if improved.threshold is None else nats is None or nats < improved.threshold
    # Of two labels that are equally probable, the verdict is the first: that is no choice.
    if verdict not in recipe.labels or (nats is not None and nats <= TIE):
        ask = True
    return ItemVerdict(
        item_id=item.item_id,
        verdict=verdict,
        probability=probability,
        margin=margin,
        score=score,
        ask_person=ask,
        cost_usd=answer.cost_usd,
        error=answer.error,
        cluster_id=item.cluster_id,
        system_id=item.system_id or None,
        judge=judge,
        task=item.task,
        wording=recipe.wordings[0] if alone and len(recipe.wordings) == 1 else None,
        order=recipe.orders[0] if alone and len(recipe.orders) == 1 else None,
        gold=item.gold,
        certificate=answer.certificate,
        reasoning=answer.reason,
    )
