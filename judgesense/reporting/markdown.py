"""``report.md``: the table, the advice, the method and the signatures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from judgesense.report_file import identity
from judgesense.reporting.beside import side_tables
from judgesense.reporting.table import COLUMNS, TEXT_COLUMNS, rows
from judgesense.reporting.terminal import BASELINE_NOTE
from judgesense.text import sentence

METHOD = (
    "JSS is the share of pairs of wordings, on the same item, that got the same decision; *raw* "
    "compares what the judge answered, *mapped* what the answer means under each wording.",
    "Pairs with a side that is unclear, refused or failed are left out and counted; `report.json` "
    "has JSS if they all had disagreed or agreed (`jss_low`, `jss_high`).",
    "Intervals are 95%, Wilson's on the effective sample size: items are the sample, not rows. "
    "They hold for these wordings, not for all wordings one could think of.",
    "The verdict is *reliable* if the interval of the mapped JSS lies above 0.8, *unstable* if "
    "below, *undecided* if it straddles 0.8 or there is none, *degenerate* if there is one label "
    "throughout.",
    "Accuracy is agreement with the gold labels prompt by prompt, among those with a decision. "
    "First position: the share of verdicts for the option shown first, over both orders where both "
    "were judged.",
    BASELINE_NOTE[0].upper() + BASELINE_NOTE[1:],
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~$!])")


def escape(text: object) -> str:
    """Text that Markdown (and the HTML within it) shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def render_markdown(report: Mapping[str, Any], figures: Sequence[str] = ()) -> str:
    """The report as Markdown; ``figures`` are paths relative to the run's folder."""
    runs = [run for run in report["runs"] if run]
    lines = ["# JudgeSense report", ""]
    for run in runs:
        lines.append(f"- {_run_line(run)}")
    lines += ["", *_table(report), ""]
    lines += [f"![{_caption(name)}]({name})\n" for name in figures if "jss_by_task" in name]
    for side in side_tables(report):
        marks = ["---" if at < side.n_text else "---:" for at in range(len(side.columns))]
        lines += [f"## {escape(side.heading)}", "", f"| {' | '.join(side.columns)} |"]
        lines.append(f"| {' | '.join(marks)} |")
        lines += [f"| {' | '.join(map(escape, row))} |" for row in side.rows]
        lines += ["", *(f"{escape(note)}  " for note in side.notes), ""]
    lines += ["## Advice", ""]
    before = None
    for finding in report["findings"]:
        if identity(finding) != before:
            before = identity(finding)
            where = f"{escape(finding['judge'])} on {escape(finding['task'])}"
            lines += ["", f"**{where}** ({escape(finding['scoring'])} scoring)", ""]
        lines.append(f"- {escape(sentence(finding['text']))}")
    heatmaps = [name for name in figures if "jss_by_task" not in name]
    if heatmaps:
        lines += ["", "## Agreement of the wordings, two by two", ""]
        lines += [f"![{_caption(name)}]({name})\n" for name in heatmaps]
    lines += ["", "## How this was measured", "", *(f"- {text}" for text in METHOD)]
    lines += ["", "## Signatures", "", "Quote a figure with its signature.", ""]
    for cell in report["cells"]:
        where = f"{cell['judge']}, {cell['task']}, order {cell['order']}"
        lines.append(f"- {escape(where)}: `{cell['signature'].replace('`', '')}`")
    lines += ["", *(f"> {escape(note)}" for note in report["notes"])]
    return "\n".join(lines).rstrip() + "\n"


def _table(report: Mapping[str, Any]) -> list[str]:
    marks = ["---" if name in TEXT_COLUMNS else "---:" for name in COLUMNS]
    lines = [f"| {' | '.join(COLUMNS)} |", f"| {' | '.join(marks)} |"]
    for row in rows(report):
        texts = [escape(text) for text in row.texts]
        if row.is_baseline:
            texts[0] = f"*{texts[0]}*"
        lines.append(f"| {' | '.join(texts)} |")
    return lines


def _run_line(run: Mapping[str, Any]) -> str:
    parts = [f"run {escape(run.get('run_id', '-'))}"]
    source = run.get("dataset") or {}
    if isinstance(source, Mapping) and source.get("name"):
        parts.append(f"data {escape(source['name'])}")
    if run.get("data_hash"):
        parts.append(f"data hash {escape(run['data_hash'])}")
    if run.get("started"):
        parts.append(f"started {escape(run['started'])}")
    version = (run.get("versions") or {}).get("judgesense")
    if version:
        parts.append(f"judgesense {escape(version)}")
    return ", ".join(parts)


def _caption(name: str) -> str:
    stem = name.rsplit("/", 1)[-1].removesuffix(".png")
    return escape(stem.replace("_", " ").replace("-", " "))
