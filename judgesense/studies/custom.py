"""``judgesense study run FILE.yaml``: your own study, in ten lines.

The file names items, wordings, judges and measures. docs/studies/own.md explains the keys and has
an example.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.decisions.log import SCORINGS, read_log
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import sha256_of
from judgesense.files.documents import YamlNode, read_nodes
from judgesense.pipeline import Settings, to_stderr
from judgesense.reporting.plots import ForestRow
from judgesense.reporting.run_tables import (
    answers_by_case,
    cases,
    cost_table,
    flips_table,
    has_gold,
    jss_table,
    ranking_finding,
    systems_table,
    wordings_table,
)
from judgesense.run_folder.report import identity
from judgesense.statistics.comparison import holm
from judgesense.statistics.intervals import Interval, wilson_cluster
from judgesense.statistics.sensitivity import prompt_sensitivity
from judgesense.studies.common import drawing as pictures
from judgesense.studies.common.result import Picture, Result, Table, judged, need_judges
from judgesense.tasks import UNDECIDED
from judgesense.trust.thresholds import STEADY_JSS
from judgesense_dataset.items import load_items
from judgesense_dataset.pairing import DESIGNS, build, group_items
from judgesense_dataset.templates import TaskTemplates, load_templates, read_tasks

MEASURES = ("jss", "wordings", "systems", "flips", "accuracy", "cost")
RANKED_JUDGES = 3
"""With fewer judges, a rank correlation is always 1 or -1."""

_KEYS = {
    "title", "items", "templates", "tasks", "judges", "scoring", "orders", "repeats", "design",
    "pairs", "limit", "seed", "measures", "variants",
}  # fmt: skip
_JUDGE_KEYS = {"name", "engine", "system_prompt", "max_tokens", "temperature", "dtype", "base_url",
               "model", "revision"}  # fmt: skip


@dataclass(frozen=True)
class CustomPlan:
    """A study file that was read and checked; ``identity`` fixes what is judged."""

    title: str
    templates: Mapping[str, TaskTemplates]
    items: Path
    judges: tuple[Any, ...]
    settings: Settings
    design: str
    pairs: int | None
    measures: tuple[str, ...]
    identity: Mapping[str, Any]
    variants: tuple[str, ...] = ()


def load_plan(path: str | Path) -> CustomPlan:
    """Read a study file.

    Raises JudgeSenseError with file and line for an unknown or missing key, a value of the wrong
    type, an unknown measure, scoring, order or design, a template without its placeholder, or a
    measure that needs more judges.
    """
    path = Path(path)
    root = read_nodes(path)
    keys = root.mapping("a study file", _KEYS)
    for needed in ("items", "judges"):
        if needed not in keys:
            raise root.fail(f"missing key {needed!r}")
    if ("templates" in keys) == ("tasks" in keys):
        raise root.fail("give either 'templates' (a template file) or 'tasks' (inline)")
    seed = _whole(keys, "seed", 0, least=0)
    judges = [_judge(node, seed) for node in keys["judges"].sequence("judges")]
    if not judges:
        raise keys["judges"].fail("judges must not be empty")
    measures = tuple(_chosen(keys, "measures", MEASURES) or MEASURES)
    design = _one(keys, "design", DESIGNS) or "full"
    scoring = _one(keys, "scoring", (*SCORINGS, "both"))
    if "accuracy" in measures and "measures" in keys:
        need_judges(judges, RANKED_JUDGES, f"{keys['measures'].where}: the measure accuracy")
    items = _beside(path, keys["items"])
    if "tasks" in keys:
        templates = read_tasks(keys["tasks"])
        wordings = hashlib.sha256(repr(sorted(templates.items())).encode()).hexdigest()
    else:
        file = _beside(path, keys["templates"])
        templates, wordings = load_templates(file), sha256_of(file)
    pairs = _whole(keys, "pairs", None, least=1)
    return CustomPlan(
        title=keys["title"].text("title") if "title" in keys else path.stem,
        templates=templates,
        items=items,
        judges=tuple(judges),
        settings=Settings.of(
            scoring, None, _chosen(keys, "orders", ("AB", "BA")),
            _whole(keys, "repeats", 1, least=1), seed, _whole(keys, "limit", None, least=1),
        ),
        design=design,
        pairs=pairs,
        measures=measures,
        # Only what is judged: a new title or measure needs no new judging.
        identity={
            "templates": wordings, "items": sha256_of(items), "design": design, "pairs": pairs
        },
        variants=_variants(path, keys),
    )  # fmt: skip


def _judge(node: YamlNode, seed: int) -> Any:
    """A judge of the file: a name, or a mapping with its options."""
    from local_judges.registry import resolve

    if isinstance(node.value, str):
        return resolve(node.text("a judge"))
    given: dict[str, Any] = {
        key: each.text(key) for key, each in node.mapping("a judge", _JUDGE_KEYS).items()
    }
    if "name" not in given:
        raise node.fail("missing key 'name' of a judge")
    for key, kind in (("max_tokens", int), ("temperature", float)):
        if key in given:
            given[key] = _number(node, key, given[key], kind)
    if "temperature" in given:
        given["seed"] = seed
    return resolve(given.pop("name"), **given)


def _beside(path: Path, node: YamlNode) -> Path:
    """A file named in the study file, relative to that file."""
    found = path.parent / node.text("a file's name")
    if not found.is_file():
        raise node.fail(f"no file {found}")
    return found


def _variants(path: Path, keys: Mapping[str, YamlNode]) -> tuple[str, ...]:
    """The names under ``variants``; a file of variants is relative to the study file."""
    from judgesense_dataset.variants import chosen_variants, variant_files

    if "variants" not in keys:
        return ()
    nodes = keys["variants"].sequence("variants")
    named = [node.text("a variant") for node in nodes]
    files = variant_files(named)
    found = [str(_beside(path, n)) if t in files else t for n, t in zip(nodes, named, strict=True)]
    try:
        chosen_variants(found)
    except JudgeSenseError as error:
        raise keys["variants"].fail(str(error)) from error
    return tuple(found)


def _whole(keys: Mapping[str, YamlNode], key: str, default: Any, least: int) -> Any:
    if key not in keys:
        return default
    value = _number(keys[key], key, keys[key].text(key), int)
    if value < least:
        raise keys[key].fail(f"{key} must be at least {least}, got {value}")
    return value


def _number(node: YamlNode, key: str, text: str, kind: Callable[[str], Any]) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise node.fail(f"{key} must be a number, got {text!r}") from None


def _one(keys: Mapping[str, YamlNode], key: str, known: Sequence[str]) -> str | None:
    return _named(keys[key], key, known) if key in keys else None


def _chosen(keys: Mapping[str, YamlNode], key: str, known: Sequence[str]) -> list[str] | None:
    return [_named(n, key, known) for n in keys[key].sequence(key)] if key in keys else None


def _named(node: YamlNode, key: str, known: Sequence[str]) -> str:
    name = node.text(key)
    if name not in known:
        raise node.fail(f"unknown {key} {name!r}; choose from {', '.join(known)}")
    return name


def run_study(path: str | Path, out: str | Path, note: Callable[[str], None] = to_stderr) -> Result:
    """Run a study file; rerun with the same ``out`` to resume.

    Raises JudgeSenseError for bad input, before anything is judged.

    >>> run_study("examples/tone-study.yaml", "runs/tone")  # doctest: +SKIP
    """
    return run_plan(load_plan(path), Path(out), note)


def run_plan(plan: CustomPlan, out: Path, note: Callable[[str], None] = to_stderr) -> Result:
    """Run a plan; its judges may be functions (CallableJudge)."""
    rows = [
        item
        for entry in plan.templates.values()
        for item in load_items(plan.items, entry.task, entry.fields)
    ]
    group_items(plan.templates, rows)
    benchmark = build(plan.templates, rows, plan.design, plan.pairs, plan.settings.seed)
    report = judged(
        plan.judges, benchmark, plan.identity, plan.settings, out / "run", note,
        variants=plan.variants, parts=lambda: (plan.templates, rows),
    )  # fmt: skip
    log = read_log(out / "run")
    result = Result(
        "run",
        plan.title,
        {
            "judges": [each["name"] for each in report["runs"][0]["judges"]],
            # The items judged: `limit` and a design with fewer pairs leave out part of the file.
            "items": log.group_by(["task", "item_id"]).aggregate([]).num_rows,
            "wordings": sum(len(entry.templates) for entry in plan.templates.values()),
            "design": plan.design,
            "repeats": plan.settings.repeats,
            "seed": plan.settings.seed,
        },
    )
    _measure(plan, report, log, result)
    return result


def _measure(plan: CustomPlan, report: Mapping[str, Any], log: pa.Table, result: Result) -> None:
    if "jss" in plan.measures:
        result.tables.append(jss_table(report))
        found = cases(report)
        rows = [
            ForestRow(f"{cell['task']}, {cell['scoring']}", judge, cell["jss"], cell["ci_low"],
                      cell["ci_high"])
            for judge, _, cell in found
        ]  # fmt: skip
        result.pictures.append(
            Picture(
                "jss",
                "JSS (mapped) with 95% intervals",
                lambda: pictures.forest(rows, xlabel="JSS", threshold=STEADY_JSS),
            )
        )
        trust = {identity(card): card for card in report["trust"]}
        result.findings += [
            f"{judge} on {cell['task']} ({cell['scoring']} scoring): "
            f"{trust[identity(cell)]['text']}"
            for judge, _, cell in found
        ]
    if "wordings" in plan.measures:
        result.tables.append(wordings_table(report))
        names = {cell["judge"]: judge for judge, _, cell in cases(report)}
        result.findings += [
            f"wording for {names[each['judge']]} on {each['task']} ({each['scoring']} scoring): "
            f"{each['text']}"
            for each in report["recommendation"]
        ]
    if "accuracy" in plan.measures and len(plan.judges) >= RANKED_JUDGES:
        result.tables.append(_accuracy(log))
    if "systems" in plan.measures:
        labels = {name: entry.task.labels for name, entry in plan.templates.items()}
        systems, consequences = systems_table(log, labels)
        result.tables.append(systems)
        corrected = holm([each.p_value for each in consequences.values()])
        result.findings += [
            f"{judge} on {task}: {ranking_finding(each, p)}"
            for ((judge, task, _), each), p in zip(consequences.items(), corrected, strict=True)
            if each.winner_change_rate is not None
        ]
    if "flips" in plan.measures:
        result.tables.append(flips_table(report))
    if "cost" in plan.measures:
        result.tables.append(cost_table(report, log))
    result.tables = [table for table in result.tables if table.rows]


def _accuracy(log: pa.Table) -> Table:
    """Accuracy by judge over wordings, and whether the judges rank alike under each."""
    by_case: dict[tuple[str, str], dict[str, list[float]]] = {}
    overall: dict[tuple[str, str, str], tuple[float, Interval]] = {}
    for ids, said in answers_by_case(log).items():
        decided = ~np.isin(said.label, UNDECIDED)
        right = said.label == said.gold
        # The wordings in one order for all judges.
        hits = [right[decided & (said.template == name)] for name in sorted({*said.template})]
        if has_gold(said) and all(len(own) for own in hits):
            judge, task, scoring = ids
            by_case.setdefault((task, scoring), {})[judge] = [float(own.mean()) for own in hits]
            interval = wilson_cluster(right[decided].tolist(), said.cluster[decided].tolist())
            overall[ids] = float(right[decided].mean()), interval
    rows = []
    for (task, scoring), judges in by_case.items():
        found = prompt_sensitivity(list(judges.values()), models=list(judges))
        for judge in judges:
            mean, interval = overall[judge, task, scoring]
            rows.append({
                "task": task, "scoring": scoring, "judge": judge, "accuracy": mean,
                "ci_low": interval.low, "ci_high": interval.high, "std": found["std"][judge],
                "range": found["range"][judge], "mean_spearman": found["mean_spearman"],
            })  # fmt: skip
    return Table.from_records(
        "accuracy", "Accuracy over wordings", rows,
        "Accuracy: of the verdicts that could be read, with a 95% Wilson interval over clusters. "
        "Std: population standard deviation over wordings. Mean Spearman: of the judges' ranking "
        "between wordings, undefined with fewer than three judges.",
        mean_spearman="mean Spearman",
    )  # fmt: skip
