"""A judge's page: its figures, which wordings agree, position bias, flips, and how to cite it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from hub_scripts.leaderboard.board import Board, BoardEntry
from hub_scripts.leaderboard.render import LONGEST_KEY, notice, plain, render, short
from hub_scripts.leaderboard.reports import report_of
from hub_scripts.leaderboard.sources import RunSource
from judgesense.decisions.view import BASELINES
from judgesense.errors import JudgeSenseError
from judgesense.reporting.html import advice, cards, flips, forest, heatmaps
from judgesense.run_folder.report import LISTS, identity, main_cells
from judgesense.text import interval, number, percent
from judgesense.trust.card import CHECKS
from judgesense.trust.thresholds import EVEN_FIRST
from judgesense.version import __version__

MOST_TEMPLATES = 40
"""Largest number of wordings whose agreement is drawn."""

MOST_CHOICES = 1000
LONGEST_TEXT = 4000

_NAMES = ("run_id", "judge", "task", "scoring", "order", "item_id", "gold", "template",
          "template_a", "template_b", "raw", "decision", "prompt_id")  # fmt: skip
_TEXTS = ("text", "answer", "signature", "degenerate")


def choices(board: Board) -> list[tuple[str, str]]:
    """The judges to choose from, as (shown, key): those of runs, then published ones."""
    found = dict.fromkeys((e.run, e.judge) for e in board.entries if not e.is_baseline)
    runs = Counter(judge for _, judge in found)
    return [
        (
            short(judge) if runs[judge] == 1 else f"{short(judge)} · {short(run, 40)}",
            key_of(run, judge),
        )
        for run, judge in list(found)[:MOST_CHOICES]
    ]


def key_of(run: str, judge: str) -> str:
    """The key of a run's judge in a choice and in a URL, of limited length."""
    return f"{run}|{short(judge, LONGEST_KEY)}"


def find(board: Board, key: str | None) -> list[BoardEntry]:
    """The entries of a chosen judge; empty if no judge has that key."""
    return [e for e in board.entries if not e.is_baseline and key_of(e.run, e.judge) == key]


def judge_page(board: Board, key: str | None) -> str:
    """The page of a judge as HTML."""
    entries = find(board, key)
    if not entries:
        return notice("This judge is not on the leaderboard. Choose one above.")
    first = entries[0]
    if first.is_published:
        source = next(iter(first.cells.values()))["signature"]
        citation = (
            "Cite the source, not this page: “JudgeSense: A Benchmark for Prompt Sensitivity in "
            f"LLM-as-a-Judge Systems” (arXiv 2604.23478), {source}."
        )
        return render("judge", entry=first, entries=entries, citation=citation)
    try:
        report = own_report(report_of(board.runs[first.run]), first.judge)
    except JudgeSenseError as error:
        return notice(str(error))
    return render("judge", entry=first, citation=_citation(report, first), **_sections(report))


def own_report(report: Mapping[str, Any], judge: str) -> dict[str, Any]:
    """One judge's part of a report and its baselines, with names and texts made harmless."""
    tasks = {cell["task"] for cell in report["cells"] if cell["judge"] == judge}
    own: dict[str, Any] = {"schema": report["schema"]}
    for key in LISTS:
        own[key] = [
            _harmless(entry)
            for entry in report[key]
            if isinstance(entry, Mapping)
            and (
                entry.get("judge") == judge
                or (entry.get("judge") in BASELINES and entry.get("task") in tasks)
            )
        ]
    own["runs"], own["notes"] = [], []
    return own


def _harmless(entry: Mapping[str, Any]) -> dict[str, Any]:
    made = dict(entry)
    for key, value in entry.items():
        if isinstance(value, str) and key in _NAMES:
            made[key] = short(value)
        elif isinstance(value, str) and key in _TEXTS:
            made[key] = plain(value)[:LONGEST_TEXT]
        elif isinstance(value, Mapping) and key in ("a", "b", "checks", *CHECKS):
            made[key] = _harmless(value)
    return made


def _sections(report: dict[str, Any]) -> dict[str, Any]:
    drawn, large = _drawable(report)
    # The parts of the report's page are escaped already.
    return {
        "cards": Markup(cards(report)),
        "forest": Markup(forest(report)),
        "heatmaps": Markup(heatmaps(drawn)),
        "large": large,
        "positions": [
            both["mapped"]
            for case, both in sorted(main_cells(report).items())
            if case[1] not in BASELINES and both["mapped"]["first_position_rate"] is not None
        ],
        "even": EVEN_FIRST,
        "advice": Markup(advice(report)),
        "flips": Markup(flips(report)),
    }


def _drawable(report: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The report without the grids that are too large to draw, and the tasks of those."""
    templates: dict[tuple[str, ...], set[str]] = {}
    for row in report["template_pairs"]:
        templates.setdefault(identity(row), set()).update((row["template_a"], row["template_b"]))
    large = {case for case, found in templates.items() if len(found) > MOST_TEMPLATES}
    kept = [row for row in report["template_pairs"] if identity(row) not in large]
    return {**report, "template_pairs": kept}, sorted(f"{case[2]} ({case[3]})" for case in large)


def _citation(report: Mapping[str, Any], entry: BoardEntry) -> str:
    lines = []
    for (_, judge, task, scoring), both in sorted(main_cells(report).items()):
        cell = both["mapped"]
        if judge in BASELINES or cell["jss"] is None:
            continue
        lines.append(
            f"{judge}, {task}, {scoring} scoring: mapped JSS {number(cell['jss'])} "
            f"{interval(cell)}, accuracy {percent(cell['accuracy'])}.\n    {cell['signature']}"
        )
    lines.append(f"Measured with JudgeSense {__version__}, run {short(entry.run)}.")
    return "\n".join(lines)


REMEMBER = """(key) => {
  const at = key.indexOf('|');
  const query = new URLSearchParams({judge: key.slice(at + 1), run: key.slice(0, at)});
  history.replaceState(null, '', location.pathname + '?' + query);
  return key;
}"""
"""Keeps the URL in step with the judge that is shown, so that it can be shared."""


def page(gr: Any, demo: Any, source: RunSource) -> None:
    """Build the page: ``gr`` is Gradio, ``demo`` its Blocks."""
    chosen = gr.Dropdown(
        choices(source.board()), value=None, label="Judge", filterable=True, elem_id="judge"
    )
    shown = gr.HTML("", js_on_load=None, apply_default_css=False, elem_id="about")
    reading = {"queue": False, "show_progress": "hidden"}

    def opened(request: gr.Request) -> tuple[Any, str]:
        board = source.board()
        listed = choices(board)
        asked = request.query_params
        key = key_of(asked.get("run", ""), asked.get("judge", ""))
        if not asked.get("judge"):
            key = listed[0][1] if listed else ""
        known = any(key == value for _, value in listed)
        return gr.Dropdown(choices=listed, value=key if known else None), judge_page(board, key)

    def changed(key: str | None) -> str:
        return judge_page(source.board(), key)

    # Gradio finds gr.Request by its annotation, which is a string here.
    opened.__annotations__["request"] = gr.Request
    demo.load(opened, None, [chosen, shown], api_visibility="private", **reading)
    chosen.input(changed, chosen, shown, js=REMEMBER, api_name="judge", **reading)
