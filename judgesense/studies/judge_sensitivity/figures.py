"""The paper's figures, and two more: pairs of templates, and wording against position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from judgesense.published import V1
from judgesense.reporting.plots import ForestRow
from judgesense.studies.common import drawing as pictures
from judgesense.studies.common.result import Picture, Table
from judgesense.studies.judge_sensitivity.beside import (
    FIRST,
    HERE,
    SECOND,
    published_figures,
    same_wordings,
    v2_figures,
)
from judgesense.studies.judge_sensitivity.log import Judged, JudgedCase
from judgesense.text import short_templates
from judgesense.trust.thresholds import STEADY_JSS

MOST_PAIRS = 15
"""A heatmap of more template pairs than this is unreadable."""

SIDES = ("template_a", "template_b")


def figures(judged: Judged, tables: Sequence[Table], beside: bool) -> Iterator[Picture]:
    """The figures of a run, without those that would be empty."""
    tasks = judged.tasks
    source = (
        f" Published judges: v2 (mapped decisions), and v1, which its authors withdrew, "
        f"{'on the same pairs' if same_wordings(judged) else 'with other wordings'}."
        if beside
        else ""
    )
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
    for task in tasks if "template_pairs" in named else ():
        own = [
            row
            for row in named["template_pairs"].rows
            if row["task"] == task and row["decisions"] == "mapped"
        ]
        if 1 < len(own) <= MOST_PAIRS:
            yield Picture(
                f"template_pairs_{task}",
                f"JSS per pair of wordings of {task}, mapped decisions.",
                partial(_pairs, named["template_pairs"], own),
            )
    if "orders" in named:
        yield Picture(
            "orders",
            "Flips when wording and option order both change: the part that rewording adds to a "
            "swap (wording) and the part that a swap adds to rewording (position), with 95% "
            "intervals.",
            partial(_orders, named["orders"]),
        )


def _leading(judged: Judged, task: str, beside: bool) -> list[ForestRow]:
    rows: list[ForestRow] = []
    for case in judged.cases:
        if case.task == task:
            cell = case.cells["raw"]
            ends = cell["jss"], cell["ci_low"], cell["ci_high"]
            rows.append(ForestRow(f"{case.scoring} scoring", case.judge, *ends))
    for figure in (*v2_figures(task), *published_figures(task)) if beside else ():
        ends = figure.jss, figure.ci_low, figure.ci_high
        group = FIRST if figure.version == V1 else SECOND
        rows.append(ForestRow(group, figure.judge, *ends))
    return rows


def _by_task(judged: Judged, tasks: Sequence[str], beside: bool) -> Any:
    # By row of the heatmap, then by task: JSS, and whether the cell is hatched.
    cells: dict[str, dict[str, tuple[float | None, bool]]] = {}
    by_row: dict[str, list[JudgedCase]] = {}
    for case in judged.cases:
        by_row.setdefault(f"{case.judge} · {case.scoring}", []).append(case)
    for name, cases in by_row.items():
        found = {case.task: case.cells["raw"] for case in cases}
        cells[name] = {
            task: (cell["jss"], cell["jss"] is None or bool(cell["degenerate"]))
            for task, cell in found.items()
        }
    for of_task in (v2_figures, published_figures) if beside else ():
        every = {(f.judge, task): f for task in tasks for f in of_task(task)}
        for leader in of_task("coherence"):
            cells[f"{leader.judge} ({leader.version})"] = {
                task: (figure.jss, figure.jss == 1.0 and figure.kappa is None)
                for task in tasks
                if (figure := every.get((leader.judge, task)))
            }
    values = [[own[task][0] if task in own else None for task in tasks] for own in cells.values()]
    hatched = [
        (row, column)
        for row, own in enumerate(cells.values())
        for column, task in enumerate(tasks)
        if task in own and own[task][1]
    ]
    return pictures.heatmap(values, list(cells), tasks, label="JSS (raw)", hatched=hatched)


def _polarity(table: Table) -> Any:
    names = [
        f"{row['judge']} · {row['scoring']}"
        if row["measured"] == HERE
        else f"{row['judge']} ({'v2' if row['measured'] == SECOND else 'v1'})"
        for row in table.rows
    ]
    values = {
        "raw": [row["jss_raw"] for row in table.rows],
        "corrected": [row["jss"] for row in table.rows],
    }
    return pictures.bars(values, names, xlabel="JSS", threshold=STEADY_JSS)


def _pairs(table: Table, rows: Sequence[Any]) -> Any:
    short = short_templates(sorted({row[side] for row in rows for side in SIDES}))
    heads = ["–".join(short[row[side]] for side in SIDES) for row in rows]
    judges = [column for column in table.columns if column.id.startswith("jss_")]
    values = [[row[column.id] for row in rows] for column in judges]
    return pictures.heatmap(
        values, [column.heading for column in judges], heads, label="JSS (mapped)"
    )


def _orders(table: Table) -> Any:
    rows: list[ForestRow] = sorted(
        (
            ForestRow(
                f"{row['task']}, {row['scoring']} scoring", f"{row['judge']}: {name}", row[name],
                row[f"{name}_ci_low"], row[f"{name}_ci_high"],
            )
            for row in table.rows
            for name in ("wording", "position")
        ),
        key=lambda row: row.group,
    )  # fmt: skip
    known = [value for row in rows for value in row[2:5] if value is not None]
    reach = min([-0.1, *known]) - 0.02, max([0.5, *known]) + 0.02
    return pictures.forest(rows, xlabel="share of verdicts that flip", xlim=reach)
