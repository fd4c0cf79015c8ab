"""``judgesense check RUBRIC --data FILE --judge J``: a rubric's data under several wordings."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from judgesense.checking.damage import number_of_damaged, with_damage
from judgesense.checking.fields import fields_with_labels, in_each_task
from judgesense.checking.options import RUNS, ResultOptions, RubricOptions
from judgesense.checking.result import CheckResult, result_of
from judgesense.checking.rows import read_rows
from judgesense.comparison.baseline import items_of_baseline
from judgesense.comparison.baseline_result import what_it_finds
from judgesense.errors import JudgeSenseError
from judgesense.files.data import Data, kept_text, materialise
from judgesense.files.disk import require_file, sha256_of
from judgesense.files.tables import SUFFIXES
from judgesense.importers.values import fold, says_nothing, spellings
from judgesense.importers.word_counts import WordCounts
from judgesense.log.invocation import invocation
from judgesense.log.schema import SCORINGS, read_log
from judgesense.pipeline import Settings, execute, folder_for, resolve_all
from judgesense.pipeline.data import DataReference, add_attacks, add_variants
from judgesense.statistics.copies import folded, linked
from judgesense.text import join

if TYPE_CHECKING:
    from judgesense.tasks import Item
    from judgesense_dataset.templates import TaskTemplates

PARAPHRASES = 4
"""The default number of proposed wordings."""


def check_rubric(
    rubric: Any,
    data: Data,
    judge: Any,
    options: RubricOptions,
    output: ResultOptions,
    judge_options: Mapping[str, Any],
) -> CheckResult:
    """Judge data under several wordings of a rubric, as :func:`judgesense.check` describes.

    Raises JudgeSenseError for bad input, before the data are judged.
    """
    baseline = None
    if output.baseline is not None:
        baseline = materialise(output.baseline, output.beside, "baseline")
        output.note(f"baseline {baseline}: {what_it_finds(items_of_baseline(baseline))}")
    path, file = _rubric_file(rubric, output.beside), materialise(data, output.beside, "data")
    if options.scoring not in SCORINGS:
        raise JudgeSenseError(
            f"unknown scoring {options.scoring!r}; choose one of {', '.join(SCORINGS)}"
        )
    if not 0 <= options.threshold <= 1:
        raise JudgeSenseError(f"the threshold must be between 0 and 1, got {options.threshold}")
    if output.inconclusive not in (None, "pass", "fail"):
        raise JudgeSenseError(f"inconclusive is {output.inconclusive!r}; choose pass or fail")
    number_of_damaged(options.damage)
    spec, options, settings = asked(judge, options, judge_options)
    read = read_tasks(path, file, options, output.note, output.beside)
    bases, items = read.tasks, read.items
    base = bases[0]
    place = Path(options.wordings or path.with_suffix(".wordings.yaml"))
    proposer = judge, judge_options
    if options.paraphraser not in (None, judge):
        # The judge's settings (endpoint, key) do not apply to another paraphraser.
        proposer = options.paraphraser, {}
    entry, spent = _wordings(base, place, options, proposer, output.note)
    templates = in_each_task(entry, bases)
    label_map = dict(base.templates[0].label_map)
    identity = {
        "rubric": sha256_of(path),
        "data": sha256_of(file),
        **({"human": list(options.human)} if options.human else {}),
        **({"columns": dict(read.roles)} if read.roles else {}),
        # Without a file there is the rubric's own wording alone.
        "wordings": sha256_of(place) if place.exists() else None,
        "answers": list(base.task.labels),
        "options": dict(base.task.options),
        **({"fields": [each.task.name for each in bases]} if len(bases) > 1 else {}),
        **({"map": label_map} if any(raw != label for raw, label in label_map.items()) else {}),
    }
    judged = reference_of(read, templates, identity, options, settings, output.note)
    facts: list[Any] = [identity, options.scoring, options.repeats, options.seed, options.limit]
    facts += [list(options.variants)] if options.variants else []
    facts += [judged.attacks] if judged.attacks else []
    facts += [{"damage": judged.damage}] if judged.damage else []
    folder = Path(output.out or folder_for(Path(output.runs), path.stem, [spec], facts))
    started = invocation(
        "check",
        RubricOptions,
        {
            "rubric": path,
            "data": file,
            "judge": judge,
            **asdict(options),
            "human": tuple(options.human),
            "inconclusive": output.inconclusive,
            "out": output.out,
            "runs": None if output.runs == RUNS else output.runs,
            "judge_options": judge_options,
        },
    )
    report = execute(
        [spec],
        judged,
        settings,
        folder,
        output.note,
        spent=spent,
        started=started,
        thresholds={"steady": options.threshold},
    )
    assessment = report.assessments[0]
    is_ranked = len(bases) == 1 and (options.answers is not None or base.task.ordinal)
    labels = {each.task.name: each.task.labels for each in bases}
    tables = result_of(report.contents, assessment, read_log(folder), entry, labels, is_ranked)
    tables.settings = {
        "rubric": str(path),
        "data": str(file),
        "judge": assessment.judge,
        "items": min(options.limit or len(items), len(items) // len(bases)),
        "wordings": len(entry.templates),
        "repeats": options.repeats,
        "scoring": options.scoring,
        "signature": " ".join(each.mapped.signature for each in report.assessments),
    }
    checked = CheckResult.of(report, folder, tables, output.inconclusive)
    tables.write(folder / "check")
    return checked if baseline is None else checked.against(baseline, output.margin, output.looks)


def asked(
    judge: Any, options: RubricOptions, judge_options: Mapping[str, Any]
) -> tuple[Any, RubricOptions, Settings]:
    """The judge, not loaded if it was named, and the options and settings that it is asked with."""
    (spec,) = resolve_all([judge], options.scoring, judge_options, own=True)
    if getattr(spec, "engine", None) == "systemone":
        options = replace(options, scoring="options")  # It writes no text.
    settings = (options.scoring, None, None, options.repeats, options.seed, options.limit)
    return spec, options, Settings.of(*settings)


def reference_of(
    read: RubricData,
    templates: Mapping[str, TaskTemplates],
    identity: Mapping[str, Any],
    options: RubricOptions,
    settings: Settings,
    note: Callable[[str], None],
) -> DataReference:
    """The prompts of a check, with attacks and damage; notes say how many these add."""
    from judgesense_dataset.pairing import build

    benchmark = build(templates, read.items, "full", seed=options.seed)
    reference = DataReference(
        identity, lambda: benchmark, lambda: (templates, read.items), own=True, groups=read.groups
    )
    judged = add_attacks(add_variants(reference, options.variants), options.attacks)
    if options.attacks is None:
        judged = with_quick_attacks(judged, settings, note)
    return with_damage(judged, settings, number_of_damaged(options.damage), note)


@dataclass(frozen=True)
class RubricData:
    """A rubric's tasks, each with one template, their items, and the items' other columns as
    `judgesense.log.folder.ITEM_SCHEMA`. ``roles`` are the columns of `judgesense.checking.rows`."""

    tasks: list[TaskTemplates]
    items: list[Item]
    groups: pa.Table
    roles: Mapping[str, str]


def read_tasks(
    rubric: Path,
    data: Path,
    options: RubricOptions,
    note: Callable[[str], None],
    beside: Path = RUNS,
) -> RubricData:
    """The tasks of a rubric and their items, after a note on how the data are read.

    Raises JudgeSenseError as :func:`read_items`, and for several fields whose options are scored.
    """
    fields = fields_with_labels(rubric, data, options.human)
    if len(fields) < 2 or options.answers or options.map or options.positive or options.options:
        return read_items(rubric, data, options, note, beside)
    if options.scoring != "generate":
        raise JudgeSenseError(
            f"{rubric} asks for {join([*fields])} in one reply, which --scoring generate reads; to "
            f"score the options of one, choose it with --human {fields[next(iter(fields))][0]}"
        )
    lines: list[str] = []
    found = [
        read_items(rubric, data, replace(options, human=labels), lines.append, beside)
        for labels in fields.values()
    ]
    note("\n".join(dict.fromkeys(line for each in lines for line in each.splitlines())))
    items = [item for each in found for item in each.items]
    return replace(found[0], tasks=[each.tasks[0] for each in found], items=items)


def read_items(
    rubric: Path,
    data: Path,
    options: RubricOptions,
    note: Callable[[str], None],
    beside: Path = RUNS,
) -> RubricData:
    """The rubric as a task with one template, and the items to judge.

    Where it asks for several verdicts, the column of labels says which one is the task. Raises
    JudgeSenseError where that is not known.
    """
    from judgesense_dataset.reply_labels import translated
    from judgesense_dataset.rubric import read_rubric, shown_in
    from judgesense_dataset.templates import items_of

    fields = fields_with_labels(rubric, data, options.human)
    if len(fields) > 1:
        listed = ", or ".join(f"--human {','.join(labels)}" for labels in fields.values())
        raise JudgeSenseError(
            f"{rubric} asks for {join([*fields])}, which people labelled apart: choose {listed}"
        )
    table = read_rows(data, shown_in(rubric), options, note, beside)
    golds = [
        None if gold is None or says_nothing(str(gold)) else translated(str(gold), options.map)
        for gold in (row.values.get("gold") for row in table.rows)
    ]
    known = spellings(options.answers or ()) or WordCounts.of(Counter(filter(None, golds))).spelled
    labels = [known.get(fold(gold), gold) if gold else None for gold in golds]
    given = Counter(label for label in labels if label)
    counts = [f"{join([f'{label} {n}' for label, n in given.most_common(12)])}"] if given else []
    note("\n".join([*table.lines, *(f"Labels: {each}." for each in counts)]))
    rows = [
        replace(row, values={**row.values, "gold": label})
        for row, label in zip(table.rows, labels, strict=True)
    ]
    base = read_rubric(
        rubric,
        data,
        options.answers,
        options.options,
        rows,
        options.map,
        options.positive,
        next(iter(fields), "") if options.human else "",
        columns=table.columns,
    )
    items = _with_copies(items_of(rows, str(data), base.task, base.fields))
    return RubricData([base], items, table.groups(item.item_id for item in items), table.roles)


def _with_copies(items: list[Item]) -> list[Item]:
    """The items, of which those with the same text are in one cluster."""
    texts = [folded(json.dumps(sorted(item.fields.items()))) for item in items]
    codes = linked([item.cluster_id for item in items], texts).tolist()
    names: dict[int, str] = {}
    return [
        replace(item, cluster_id=names.setdefault(code, item.cluster_id))
        for code, item in zip(codes, items, strict=True)
    ]


def _wordings(
    base: TaskTemplates,
    place: Path,
    options: RubricOptions,
    proposer: tuple[Any, Mapping[str, Any]],
    note: Callable[[str], None],
) -> tuple[TaskTemplates, float]:
    """The rubric's wordings, from the file at ``place`` or proposed, and what they cost.

    ``proposer`` is the model that proposes them, with its options.
    """
    from judgesense_dataset.rubric import propose_wordings, read_wordings

    if options.wordings is not None or place.exists():
        if options.paraphraser is not None or options.paraphrases is not None:
            note(
                f"using the wordings in {place}; no new ones are proposed. To propose new ones, "
                "remove the file or leave out --wordings"
            )
        return read_wordings(place, base), 0.0
    if options.paraphrases == 0:
        return base, 0.0
    with writer_of(*proposer, options.seed) as writer:
        before = getattr(writer, "spent", 0.0)
        entry = propose_wordings(base, writer, options.paraphrases or PARAPHRASES, place, note)
        return entry, getattr(writer, "spent", 0.0) - before


def with_quick_attacks(
    data: DataReference, settings: Settings, note: Callable[[str], None]
) -> DataReference:
    """The data with the quick attacks where they add at most a third more prompts; a note says
    how many, or why there are none. The benchmark is that of the reference from now on."""
    plain, tried = data.selected(settings), add_attacks(data, "quick")
    data = replace(data, benchmark=plain)
    try:
        benchmark = tried.with_attacks(plain, settings)
    except JudgeSenseError as error:
        note(f"attacks are not tried: {error}")
        return data
    n_prompts, n_with = (len(pc.unique(b.prompts["prompt_id"])) for b in (plain, benchmark))
    n_asked, more = n_prompts * settings.repeats, n_with - n_prompts
    if 3 * more > n_asked:
        note(f"attacks are not tried; --attacks quick would add {more} prompts to {n_asked}")
        return data
    note(
        f"three kinds of attack add {more} prompts to {n_asked}; leave them out with --attacks none"
    )
    return replace(tried, benchmark=benchmark)


@contextmanager
def writer_of(judge: Any, options: Mapping[str, Any], seed: int) -> Iterator[Any]:
    """The model that proposes wordings: a name for paraphrase() to load, or the judge with the
    user's options."""
    from local_judges.registry import load_writer

    # A few requests, which depend on each other: a batch may take a day.
    options = {name: value for name, value in options.items() if name != "batch"}
    if not (isinstance(judge, (str, Path)) and options):
        yield judge
        return
    settings = {**options, "temperature": 0.7, "seed": seed, "max_tokens": 512, "system_prompt": ""}
    writer = load_writer(judge, **settings)
    try:
        yield writer
    finally:
        writer.close()


def is_text(rubric: str) -> bool:
    """Whether a rubric is its text, not the name of its file."""
    return ("\n" in rubric or "{" in rubric) and not os.path.exists(rubric)


def _rubric_file(rubric: Any, folder: Path) -> Path:
    if not isinstance(rubric, (str, Path)):
        raise JudgeSenseError(
            f"the rubric has the type {type(rubric).__name__}; with data= and judge=, pass the "
            "rubric's file or its text. To check data alone, call check(verdicts)"
        )
    if isinstance(rubric, str) and is_text(rubric):
        return kept_text(rubric.strip() + "\n", folder, "rubric", ".txt")
    path = Path(rubric)
    if path.suffix.lower() in SUFFIXES:
        raise JudgeSenseError(
            f"{path} is a table, not a rubric; pass a rubric with {path} as data, or {path} alone "
            "if it has verdicts"
        )
    if not path.is_file():
        require_file(path)
    return path
