"""The paper's figures, and two more: pairs of templates, and wording against position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from judgesense.studies.common import figures as pictures
from judgesense.studies.common.result import Picture, Table
from judgesense.studies.judge_sensitivity.log import Case, Judged, task_place
from judgesense.studies.judge_sensitivity.tables import published_figures
from judgesense.text import short_templates
from judgesense.trust.thresholds import STEADY_JSS

ForestRow = tuple[str, str, float | None, float | None, float | None]

MOST_PAIRS = 15
"""Heatmaps of more template pairs than this cannot be read."""

ELSEWHERE = "published, other wordings"


def figures(judged: Judged, tables: Sequence[Table], beside: bool) -> Iterator[Picture]:
    """The pictures of a run; those without anything to show are left out."""
    tasks = sorted({case.task for case in judged.cases}, key=task_place)
    source = " Published judges were measured with other wordings." if beside else ""
    rows = _leading(judged, tasks[0], beside)
    yield Picture(
        "fig_1",
        f"Figure 1: {tasks[0]} JSS by judge, raw, with 95% intervals.{source}",
        partial(pictures.forest, rows, xlabel=f"{tasks[0]} JSS (raw)", threshold=STEADY_JSS),
    )
    yield Picture(
        "fig_2",
        "Figure 2: raw JSS by judge and task. Hatched: every verdict was one label, or JSS is "
        f"undefined.{source}",
        partial(_by_task, judged, tasks, beside),
    )
    named = {table.name: table for table in tables}
    if "table_3" in named:
        yield Picture(
            "fig_3",
            f"Figure 3: effect of the inverted wording on JSS, raw and corrected.{source}",
            partial(_polarity, named["table_3"]),
        )
    if "template_pairs" in named:
        for task in tasks:
            own = [r for r in named["template_pairs"].rows if r[0] == task and r[3] == "mapped"]
            if 1 < len(own) <= MOST_PAIRS:
                yield Picture(
                    f"template_pairs_{task}",
                    f"JSS of every pair of wordings of {task}, mapped decisions.",
                    partial(_pairs, named["template_pairs"], task),
                )
    if "orders" in named:
        yield Picture(
            "orders",
            "Flips when wording and option order both change: what rewording adds to a swap "
            "(wording) and what a swap adds to rewording (position), with 95% intervals.",
            partial(_orders, named["orders"]),
        )


def _leading(judged: Judged, task: str, beside: bool) -> list[ForestRow]:
    rows: list[ForestRow] = []
    for case in judged.cases:
        if case.task == task:
            cell = case.cells["raw"]
            ends = cell["jss"], cell["ci_low"], cell["ci_high"]
            rows.append((f"{case.scoring} scoring", case.judge, *ends))
    for figure in published_figures(task) if beside else ():
        rows.append((ELSEWHERE, figure.judge, figure.jss, figure.ci_low, figure.ci_high))
    return rows


def _by_task(judged: Judged, tasks: Sequence[str], beside: bool) -> Any:
    names: list[str] = []
    values: list[list[float | None]] = []
    hatched: list[tuple[int, int]] = []
    by_row: dict[tuple[str, str], dict[str, Case]] = {}
    for case in judged.cases:
        by_row.setdefault((case.judge, case.scoring), {})[case.task] = case
    for (judge, scoring), own in by_row.items():
        cells = [own[task].cells["raw"] if task in own else None for task in tasks]
        hatched += [
            (len(names), column)
            for column, cell in enumerate(cells)
            if cell and (cell["jss"] is None or cell["degenerate"])
        ]
        names.append(f"{judge} · {scoring}")
        values.append([cell["jss"] if cell else None for cell in cells])
    leaders = published_figures("coherence") if beside else []
    every = {task: {f.judge: f for f in published_figures(task)} for task in tasks}
    for leader in leaders:
        row = [every[task].get(leader.judge) for task in tasks]
        hatched += [
            (len(names), column)
            for column, figure in enumerate(row)
            if figure and figure.jss == 1.0 and figure.kappa is None
        ]
        names.append(f"{leader.judge} (published)")
        values.append([figure.jss if figure else None for figure in row])
    return pictures.heatmap(values, names, tasks, label="JSS (raw)", hatched=hatched)


def _polarity(table: Table) -> Any:
    at = {column: place for place, column in enumerate(table.columns)}
    names = [
        f"{row[0]} · {row[2]}" if row[at["measured"]] == "here" else f"{row[0]} (published)"
        for row in table.rows
    ]
    values = {
        name: [_number(row[at[f"{name} JSS"]]) for row in table.rows]
        for name in ("raw", "corrected")
    }
    return pictures.bars(values, names, xlabel="JSS", threshold=STEADY_JSS)


def _pairs(table: Table, task: str) -> Any:
    rows = [row for row in table.rows if row[0] == task and row[3] == "mapped"]
    templates = sorted({str(name) for row in rows for name in row[1:3]})
    short = short_templates(templates)
    heads = [f"{short[str(row[1])]}–{short[str(row[2])]}" for row in rows]
    judges = table.columns[4:-1]
    values = [[_number(row[4 + place]) for row in rows] for place in range(len(judges))]
    return pictures.heatmap(values, judges, heads, label="JSS (mapped)")


def _orders(table: Table) -> Any:
    at = {column: place for place, column in enumerate(table.columns)}
    rows: list[ForestRow] = []
    for row in table.rows:
        group = f"{row[2]}, {row[1]} scoring"
        for name, low, high in (("wording", "low", "high"), ("position", "low ", "high ")):
            value, start, end = (_number(row[at[column]]) for column in (name, low, high))
            rows.append((group, f"{row[0]}: {name}", value, start, end))
    rows.sort(key=lambda row: row[0])
    known = [value for row in rows for value in row[2:] if value is not None]
    reach = min([-0.1, *known]) - 0.02, max([0.5, *known]) + 0.02
    return pictures.forest(rows, xlabel="share of verdicts that flip", xlim=reach)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None
