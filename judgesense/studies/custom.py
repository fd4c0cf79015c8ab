"""``judgesense study run FILE.yaml``: your own study, in ten lines.

The file names items, wordings, judges and measures. docs/studies/own.md explains the keys and has
an example.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from os.path import isfile
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pydantic import Field

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of
from judgesense.files.documents import Shape, read_nodes, validate_node
from judgesense.log.schema import read_log
from judgesense.measure.assessment import ReportContents
from judgesense.measure.cost import costs
from judgesense.measure.rankings import rankings
from judgesense.measure.thresholds import STEADY_JSS
from judgesense.pipeline import Settings, to_stderr
from judgesense.reporting.run_tables import (
    cases,
    cost_table,
    flips_table,
    jss_table,
    ranking_finding,
    systems_table,
    wordings_table,
)
from judgesense.reporting.study_result import Picture, Result
from judgesense.statistics.comparison import holm
from judgesense.studies.common.figures import Points
from judgesense.studies.common.study import judged
from judgesense_dataset.pairing import build, group_items
from judgesense_dataset.templates import TaskTemplates, load_items, load_templates, read_tasks

Measure = Literal["jss", "wordings", "systems", "flips", "cost"]


class _Judge(Shape, extra="forbid"):
    """A judge with its options."""

    name: str = Field(min_length=1)
    engine: str | None = None
    system_prompt: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    dtype: str | None = None
    base_url: str | None = None
    model: str | None = None
    revision: str | None = None


class _StudyFile(Shape, extra="forbid"):
    """The keys of a study file."""

    items: str = Field(min_length=1)
    judges: list[str | _Judge] = Field(min_length=1)
    title: str | None = None
    templates: str | None = None
    tasks: dict[str, Any] | None = None
    scoring: Literal["generate", "options", "both"] | None = None
    orders: list[Literal["AB", "BA"]] | None = None
    repeats: int = Field(1, ge=1)
    design: Literal["full", "balanced"] = "full"
    pairs: int | None = Field(None, ge=1)
    limit: int | None = Field(None, ge=1)
    seed: int = Field(0, ge=0)
    measures: tuple[Measure, ...] = ("jss", "wordings", "systems", "flips", "cost")
    variants: tuple[str, ...] = ()


def run_study(
    path: str | Path,
    out: str | Path,
    note: Callable[[str], None] = to_stderr,
    judges: Sequence[Any] | None = None,
    allow_host: Sequence[str] = (),
) -> Result:
    """Run a study file; rerun with the same ``out`` to resume.

    ``judges`` replaces those of the file; they may be functions (CallableJudge). ``allow_host`` are
    hosts that the file may name as endpoints. Raises
    JudgeSenseError, before anything is judged, with the file and the line or key for an unknown or
    missing key, a value of the wrong type, a file that is not there, an unknown judge or variant,
    and a template without its placeholder.

    >>> run_study("examples/tone-study.yaml", "runs/tone")  # doctest: +SKIP
    """
    path, out = Path(path), Path(out)
    root = read_nodes(path)
    keys = validate_node(_StudyFile, root, "a study file")
    if (keys.templates is None) == (keys.tasks is None):
        raise root.fail("give either 'templates' (a template file) or 'tasks' (inline)")
    if keys.templates is None:
        templates = read_tasks(root.value["tasks"])
        wordings = hashlib.sha256(repr(sorted(templates.items())).encode()).hexdigest()
    else:
        file = _find_file(path, keys.templates, "templates")
        templates, wordings = load_templates(file), sha256_of(file)
    items = _find_file(path, keys.items, "items")
    all_judges = judges or [_judge(path, judge, keys.seed, allow_host) for judge in keys.judges]
    settings = Settings.of(keys.scoring, None, keys.orders, keys.repeats, keys.seed, keys.limit)
    variants = _variants(path, keys.variants)
    rows = [
        item for entry in templates.values() for item in load_items(items, entry.task, entry.fields)
    ]
    group_items(templates, rows)
    # Only what is judged: a new title or measure needs no new judging.
    identity = {
        "templates": wordings,
        "items": sha256_of(items),
        "design": keys.design,
        "pairs": keys.pairs,
    }
    report = judged(
        all_judges,
        build(templates, rows, keys.design, keys.pairs, keys.seed),
        identity,
        settings,
        out / "run",
        note,
        variants=variants,
        parts=lambda: (templates, rows),
    )
    return _result(path, keys, templates, read_log(out / "run"), report)


def _result(
    path: Path,
    keys: _StudyFile,
    templates: Mapping[str, TaskTemplates],
    log: pa.Table,
    report: ReportContents,
) -> Result:
    """The tables, findings and picture of the measures that the file names."""
    labels = {name: entry.task.labels for name, entry in templates.items()}
    ranked = rankings(log, labels)
    p_values = holm([ranking.p_value for ranking in ranked.values()])
    tables = {
        "jss": jss_table(report),
        "wordings": wordings_table(report),
        "systems": systems_table(ranked),
        "flips": flips_table(report),
        "cost": cost_table(costs(log, report.runs)),
    }
    judges_and_tasks = [
        (f"{judge} on {entry.task} ({entry.scoring} scoring)", entry)
        for judge, entry in cases(report)
    ]
    findings = {
        "jss": [f"{judge}: {entry.card.text}" for judge, entry in judges_and_tasks],
        "wordings": [
            f"wording for {judge}: {entry.recommendation.text}" for judge, entry in judges_and_tasks
        ],
        "systems": [
            f"{judge} on {task}: {ranking_finding(ranking, p)}"
            for ((judge, task, _), ranking), p in zip(ranked.items(), p_values, strict=True)
            if ranking.winner_change_rate is not None
        ],
    }
    measures = [name for name in tables if name in keys.measures]
    points = Points(
        group=lambda row: f"{row['task']}, {row['scoring']}",
        name="judge",
        values={"": ("jss", "ci_low", "ci_high")},
        xlabel="JSS",
        threshold=STEADY_JSS,
    )
    picture = Picture(
        "jss", "JSS (mapped) with 95% intervals", lambda: points.draw(tables["jss"].rows)
    )
    return Result(
        "run",
        keys.title or path.stem,
        {
            "judges": [judge["name"] for judge in report.runs[0]["judges"]],
            # The items judged: `limit` and a design with fewer pairs leave out part of the file.
            "items": log.group_by(["task", "item_id"]).aggregate([]).num_rows,
            "wordings": sum(len(entry.templates) for entry in templates.values()),
            "design": keys.design,
            "repeats": keys.repeats,
            "seed": keys.seed,
        },
        [tables[name] for name in measures if tables[name].rows],
        [text for name in measures for text in findings.get(name, ())],
        pictures=[picture] if "jss" in measures else [],
    )


def _judge(path: Path, judge: str | _Judge, seed: int, allow_host: Sequence[str]) -> Any:
    from local_judges.consent import require_consent
    from local_judges.registry import resolve

    if isinstance(judge, str):
        return resolve(judge)
    options = judge.model_dump(exclude={"name"}, exclude_none=True)
    if "temperature" in options:
        options["seed"] = seed
    spec = resolve(judge.name, **options)
    if judge.base_url is not None:
        require_consent(path, spec.engine, spec.options, allow_host)
    return spec


def _find_file(path: Path, name: str, key: str) -> Path:
    """A file named in the study file, relative to that file."""
    file = path.parent / name
    if not isfile(file):  # False for a name that no system takes, too
        raise JudgeSenseError(f"{path}, {key}: no file {file}")
    return file


def _variants(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """The names under ``variants``; a file of variants is relative to the study file."""
    from judgesense_dataset.variants import chosen_variants, variant_files

    files = variant_files(names)
    paths = [str(_find_file(path, name, "variants")) if name in files else name for name in names]
    if paths:
        try:
            chosen_variants(paths)
        except JudgeSenseError as error:
            raise JudgeSenseError(f"{path}, variants: {error}") from error
    return tuple(paths)
