"""``report.md``: the table, the advice, the method and the signatures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judgesense.report_file import identity
from judgesense.reporting.beside import side_tables
from judgesense.reporting.table import BASELINE_NOTE, COLUMNS, TEXT_COLUMNS, rows
from judgesense.text import sentence
from judgesense.trust.thresholds import STEADY_JSS

METHOD = (
    "JSS is the share of pairs of wordings, on the same item, that get the same verdict after "
    "rewording; *raw* compares the answers as given, *mapped* what they mean under each wording.",
    "Pairs with an answer that is unclear, refused or failed are left out and counted; `jss_low` "
    "and `jss_high` in `report.json` are the JSS if all of them had disagreed or agreed.",
    "Intervals are 95% intervals by Wilson's method on the effective sample size: items are the "
    "sample, not rows. They hold for these wordings, not for every possible wording.",
    f"The verdict is *reliable* if the interval of the mapped JSS lies above {STEADY_JSS}, "
    f"*unstable* if it lies below, *undecided* if it includes {STEADY_JSS} or is missing, and "
    "*degenerate* if all decisions are the same label.",
    "Accuracy (right) is agreement with the gold labels, prompt by prompt, among prompts with a "
    "decision. First pos. (takes the first option) is the share of verdicts for the option shown "
    "first, over both orders if both were judged.",
    BASELINE_NOTE,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~$!])")


def escape(text: object) -> str:
    """Text that Markdown (and the HTML within it) shows as it is, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def render_markdown(report: Mapping[str, Any], figures: Sequence[str] = ()) -> str:
    """The report as Markdown; ``figures`` are paths relative to the run's folder."""
    lines = ["# JudgeSense report", ""]
    for run in filter(None, report["runs"]):
        lines.append(f"- {', '.join(f'{name} {escape(value)}' for name, value in run_facts(run))}")
    left = [key in TEXT_COLUMNS for key in COLUMNS]
    lines += ["", *_table(list(COLUMNS.values()), left, _main_rows(report)), ""]
    lines += [f"![{_caption(name)}]({name})\n" for name in figures if "jss_by_task" in name]
    for side in side_tables(report):
        lines += [f"## {escape(side.heading)}", ""]
        left = [at < side.n_text for at in range(len(side.columns))]
        lines += _table(side.columns, left, (map(escape, row) for row in side.rows))
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
        lines += ["", "## Agreement of each pair of wordings", ""]
        lines += [f"![{_caption(name)}]({name})\n" for name in heatmaps]
    lines += ["", "## How this was measured", "", *(f"- {text}" for text in METHOD)]
    lines += ["", "## Signatures", "", "Quote a figure together with its signature.", ""]
    for cell in report["cells"]:
        where = f"{cell['judge']}, {cell['task']}, order {cell['order']}"
        lines.append(f"- {escape(where)}: `{cell['signature'].replace('`', '')}`")
    lines += ["", *(f"> {escape(note)}" for note in report["notes"])]
    return "\n".join(lines).rstrip() + "\n"


def run_facts(run: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What identifies a run, as names and values."""
    source = run.get("dataset")
    facts = {
        "run": run.get("run_id") or "-",
        "data": source.get("name") if isinstance(source, Mapping) else None,
        "data hash": run.get("data_hash"),
        "started": run.get("started"),
        "judgesense": (run.get("versions") or {}).get("judgesense"),
    }
    return [(name, str(value)) for name, value in facts.items() if value]


def _main_rows(report: Mapping[str, Any]) -> Iterator[list[str]]:
    for row in rows(report):
        judge, *others = map(escape, row.texts.values())
        yield [f"*{judge}*" if row.is_baseline else judge, *others]


def _table(columns: Sequence[str], left: Sequence[bool], body: Any) -> list[str]:
    marks = ["---" if each else "---:" for each in left]
    return [f"| {' | '.join(cells)} |" for cells in (columns, marks, *body)]


def _caption(name: str) -> str:
    stem = name.rsplit("/", 1)[-1].removesuffix(".png")
    return escape(stem.replace("_", " ").replace("-", " "))
