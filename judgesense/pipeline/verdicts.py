"""Verdicts on items: ``judgesense judge`` and ``judgesense.load_judge``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from judgesense.benchmark import Benchmark, table_of_prompts
from judgesense.errors import JudgeSenseError
from judgesense.files.data import RUNS, Data, kept_templates, materialise, rows_in
from judgesense.files.tables import Record
from judgesense.log.folder import PAIR_SCHEMA, RETRIES
from judgesense.log.schema import read_log
from judgesense.pipeline.data import DataReference
from judgesense.pipeline.events import emit_verdicts
from judgesense.pipeline.execution import execute
from judgesense.pipeline.item_verdicts import verdict_in, verdicts_of
from judgesense.pipeline.judges import folder_for, require_known, resolve_all
from judgesense.pipeline.settings import Note, Settings, to_stderr
from judgesense.pipeline.verdict_files import (
    FORMATS,
    ItemVerdict,
    changed_since,
    read_items,
    write_verdicts,
)
from judgesense.recipes.recipe import AS_ASKED, Recipe
from judgesense.tasks import Item
from judgesense.version import __version__
from judgesense_dataset.recognition import known_tasks
from judgesense_dataset.templates import TaskTemplates, items_of, load_items, load_templates
from local_judges.improved_judge import ImprovedJudge, read_improved
from local_judges.messages import Messages
from local_judges.protocol import Judge, Request
from local_judges.recipe_judge import RecipeJudge
from local_judges.registry import JudgeSpec
from local_judges.runner import ask_all


@dataclass(frozen=True)
class JudgingSummary:
    """The result of :func:`judge_items`: counts of verdicts, and of those for a person to check."""

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
    parent = RUNS if out is None else Path(out).parent
    if out is not None and Path(out).suffix not in FORMATS:
        raise JudgeSenseError(f"{out}: unknown file type; use {', '.join(FORMATS)}")
    if out is not None and Path(out).is_dir():
        raise JudgeSenseError(f"{out} is a folder; name a file")
    if templates is not None:
        templates = kept_templates(templates, parent)
    cluster, options = cluster_of(judge_options)
    spec = _resolve_judge(judge, task, wording, scoring, templates, options)
    improved: ImprovedJudge = spec.improved
    items_file = materialise(items, parent, "items")
    item_list, identity, rows = read_items(items_file, improved, columns or {})
    data = DataReference(
        {"items": identity, "stabilised": improved.digest},
        lambda: benchmark_of(improved, item_list),
    )
    target = Path(out or f"{folder_for(RUNS, items_file.stem, [spec], data.identity)}.csv")
    folder = target.with_name(f"{target.name}.run")
    settings = Settings.of(improved.scoring)
    note = note or to_stderr
    execute([spec], data, settings, folder, note, cluster, retries=retry_failed)
    verdicts = verdicts_of(read_log(folder), improved, item_list)
    # A rerun tells of no verdict twice.
    is_new = changed_since(target, verdicts)
    write_verdicts(verdicts, target, rows)
    emit_verdicts(
        (verdict, signature_of(improved, verdict.judge or ""), row)
        for verdict, row, is_news in zip(verdicts, rows, is_new, strict=True)
        if is_news
    )
    ask_person = [v.ask_person for v in verdicts if v.ask_person is not None]
    costs = [v.cost_usd for v in verdicts if v.cost_usd is not None]
    return JudgingSummary(
        target,
        folder,
        len(verdicts),
        sum(v.verdict in improved.recipe.labels for v in verdicts),
        sum(ask_person) if improved.threshold is not None else None,
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
            item_list = load_items(items, self.improved.entry.task, self.improved.fields)
        else:
            task, fields = self.improved.entry.task, self.improved.fields
            rows = enumerate(rows_in(items, "items"), 1)
            records = (Record(row, f"items, row {n}") for n, row in rows)
            item_list = items_of(records, "items", task, fields)
        improved, scoring = self.improved, self.improved.scoring
        options = tuple(improved.base.label_map)
        messages = map(Messages(improved).of_item, item_list)
        requests = [Request(message.prompt_id, message.text, options) for message in messages]
        prompts = {request.prompt_id: request for request in requests}
        replies = ask_all(self.judge, list(prompts.values()), {scoring})
        answers = dict(zip(prompts, replies, strict=True))
        name = self.judge.name
        return [
            verdict_in(improved, item, answers[request.prompt_id], options, scoring, name)
            for item, request in zip(item_list, requests, strict=True)
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
        spec = _resolve_judge(file, task, wording, scoring, None, judge_options)
        loaded = spec.load() if isinstance(spec, JudgeSpec) else spec
        return ItemJudge(spec.improved, loaded)
    improved = read_improved(file)
    judges = judge if isinstance(judge, (list, tuple)) else [judge]
    names = [str(source.get("name")) for source in improved.judges]
    if len(set(names)) == len(judges) == 1:
        judges = [*judges] * len(names)
    inner = resolve_all(judges, improved.scoring, judge_options)
    loaded = [spec.load() if isinstance(spec, JudgeSpec) else spec for spec in inner]
    return ItemJudge(improved, RecipeJudge(improved, *loaded, same_judge=False))


def _resolve_judge(
    judge: Any,
    task: str | None,
    wording: str | None,
    scoring: str | None,
    templates: str | Path | None,
    options: Mapping[str, Any],
) -> Any:
    """The judge with its recipe, not loaded if it was named: an object with ``improved``."""
    (spec,) = resolve_all([judge], scoring, options, own=templates is not None)
    if isinstance(spec, JudgeSpec) and spec.improved is not None:
        if task not in (None, spec.improved.entry.task.name):
            raise JudgeSenseError(
                f"{judge} judges the task {spec.improved.entry.task.name}, not {task}"
            )
        return spec
    if task is None:
        raise JudgeSenseError(
            "no task: give --task, or an improved judge's file as the judge (judgesense "
            "improve makes one)"
        )
    improved = _unimproved(task, wording, scoring or scoring_of(spec), templates)
    if isinstance(spec, JudgeSpec):
        return replace(spec, improved=improved)
    return RecipeJudge(improved, spec)


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


def _unimproved(
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
    template = by_id[wording] if wording else entry.templates[0]
    recipe = Recipe(
        AS_ASKED,
        (template.template_id,),
        entry.task.orders[:1],
        entry.task.labels,
        "most probable" if scoring == "options" else "vote",
    )
    return ImprovedJudge(({},), TaskTemplates(entry.task, (template,)), recipe)


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
