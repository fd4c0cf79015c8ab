"""The leaderboard: every judge on a task, ranked as far as the intervals tell judges apart."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from hub_scripts.leaderboard.board import API, OPEN, SIZES, Board, BoardEntry
from hub_scripts.leaderboard.ranking import Standing, standings
from hub_scripts.leaderboard.render import render, short
from hub_scripts.leaderboard.sources import RunSource
from hub_scripts.leaderboard.style import SORT
from judgesense.published import ROWS, WITHDRAWN, WORDINGS
from judgesense.report_file import CELL_KEYS
from judgesense.reporting.table import undecided_share
from judgesense.text import short_names

ANY, NOT_STATED = "any", "not stated"
MOST_TASKS = 60
"""Tasks to choose from."""

LABELS = ("mapped", "raw")
SCORINGS = (ANY, "generate", "options")
WEIGHTS = (ANY, OPEN, API)
SIZE_CHOICES = (ANY, *SIZES, NOT_STATED)

COLUMNS = (
    ("Rank", "up"),
    ("Judge", "text"),
    ("JSS and its 95% interval", "down"),
    ("Trust", "text"),
    ("Accuracy", "down"),
    ("First position", "down"),
    ("No verdict", "up"),
    ("Noise floor", "up"),
    ("{other} JSS", "down"),
    ("κ", "down"),
    ("Items / pairs", "down"),
)
"""The title of each column, and the direction in which a first click sorts it (or text)."""

_UNKNOWN = dict.fromkeys(CELL_KEYS)


def hero(board: Board) -> str:
    """What the page is about, and where its runs come from."""
    judges = {entry.judge for entry in board.entries if not entry.is_baseline}
    return render("hero", board=board, judges=len(judges), runs=len(board.runs))


def chosen(
    board: Board,
    task: str,
    scoring: str = ANY,
    weights: str = ANY,
    sizes: str = ANY,
    find: str | None = None,
    published: bool = True,
) -> list[BoardEntry]:
    """The entries that match the filters; baselines stay with their pairs."""
    wanted = (find or "").strip().casefold()
    low, high = SIZES.get(sizes, (0.0, float("inf")))

    def fits(entry: BoardEntry) -> bool:
        if entry.task != task or (entry.is_published and not published):
            return False
        if entry.is_baseline:
            return True
        if sizes == NOT_STATED and entry.billions is not None:
            return False
        if sizes in SIZES and (entry.billions is None or not low < entry.billions <= high):
            return False
        return (
            scoring in (ANY, entry.scoring)
            and weights in (ANY, entry.weights)
            and wanted in entry.judge.casefold()
        )

    return [entry for entry in board.entries if fits(entry)]


@lru_cache(maxsize=64)
def table(
    board: Board,
    task: str,
    labels: str = "mapped",
    scoring: str = ANY,
    weights: str = ANY,
    sizes: str = ANY,
    find: str | None = None,
    published: bool = True,
) -> str:
    """The table as HTML.

    Ranks are those among all judges on the same pairs, whichever of them the filters show.
    """
    left = set(map(id, chosen(board, task, scoring, weights, sizes, find, published)))
    other = "raw" if labels == "mapped" else "mapped"
    groups = []
    for group in standings((e for e in board.entries if e.task == task), labels):
        shown = [standing for standing in group if id(standing.entry) in left]
        if any(not standing.entry.is_baseline for standing in shown):
            groups.append(_group(group, shown, labels, other))
    return render(
        "table",
        task=task,
        labels=labels,
        other=other,
        columns=COLUMNS,
        groups=groups,
        refused=board.refused,
        wordings=WORDINGS,
        rows=f"{ROWS}; {WITHDRAWN}",
    )


def _group(
    group: Sequence[Standing], shown: Sequence[Standing], labels: str, other: str
) -> dict[str, Any]:
    ranks = [standing.rank for standing in group]
    names = short_names({standing.entry.judge for standing in group})
    cells = [each.entry.cells[labels] for each in group if labels in each.entry.cells]
    sums = [c["n_pairs"] + _lost(c) for c in cells if not group[0].entry.is_published]
    return {
        "first": group[0].entry,
        "pairs": max(sums, default=0),
        "rows": [
            {
                **_row(standing, labels, other),
                "called": names[standing.entry.judge],
                "tied": ranks.count(standing.rank) > 1,
            }
            for standing in shown
        ],
    }


def _lost(cell: Any) -> int:
    lost: int = cell["n_unclear"] + cell["n_refused"] + cell["n_error"]
    return lost


def _row(standing: Standing, labels: str, other: str) -> dict[str, Any]:
    entry = standing.entry
    cell, second = entry.cells.get(labels), entry.cells.get(other)
    known = cell or second
    tone = "published" if entry.is_published else "unknown"
    tone = tone if entry.trust is None else str(entry.trust["trust"])
    word = "baseline" if entry.is_baseline else tone
    why = None if entry.is_baseline else standing.why
    return {
        "entry": entry,
        "rank": standing.rank,
        "cell": cell,
        "known": known or _UNKNOWN,
        "second": second["jss"] if second else None,
        "css": "baseline" if entry.is_baseline else tone,
        "undecided": undecided_share(known) if known and not entry.is_published else None,
        "word": word,
        "why": why,
    }


def page(gr: Any, demo: Any, source: RunSource) -> None:
    """Build the page: ``gr`` is Gradio, ``demo`` its Blocks."""
    board = source.board()
    tasks = board.tasks
    first = tasks[0]
    top = gr.HTML(hero(board), js_on_load=None, apply_default_css=False)
    with gr.Row(elem_classes="filters"):
        task = gr.Radio(_choices(tasks), value=first, label="Task", scale=5, min_width=300)
        labels = gr.Radio(list(LABELS), value="mapped", label="Labels", scale=2, min_width=150)
        scoring = gr.Radio(list(SCORINGS), value=ANY, label="Scoring", scale=3, min_width=180)
    with (
        gr.Accordion("More filters", open=False, elem_classes="more"),
        gr.Row(elem_classes="filters"),
    ):
        weights = gr.Radio(list(WEIGHTS), value=ANY, label="Weights", scale=2, min_width=180)
        sizes = gr.Dropdown(list(SIZE_CHOICES), value=ANY, label="Parameters", min_width=130)
        find = gr.Textbox(
            "",
            label="Find a judge",
            placeholder="part of its name",
            max_length=200,
            min_width=150,
        )
        published = gr.Checkbox(True, label="Published figures", min_width=150)
    shown = gr.HTML(table(board, first), js_on_load=SORT, apply_default_css=False, elem_id="table")

    def filtered(*filters: Any) -> str:
        return table(source.board(), *filters)

    built = board.stamp
    filters = [task, labels, scoring, weights, sizes, find, published]

    def opened(asked: str, *others: Any) -> tuple[Any, Any, Any]:
        now = source.board()
        if now.stamp == built:
            return gr.skip(), gr.skip(), gr.skip()
        start = asked if asked in now.tasks else now.tasks[0]
        return (
            hero(now),
            gr.Radio(choices=_choices(now.tasks), value=start),
            table(now, start, *others),
        )

    reading = {"queue": False, "show_progress": "hidden"}
    gr.on(
        [each.change for each in filters],
        filtered,
        filters,
        shown,
        api_name="table",
        trigger_mode="always_last",
        **reading,
    )
    demo.load(opened, filters, [top, task, shown], api_visibility="private", **reading)


def _choices(tasks: Sequence[str]) -> list[tuple[str, str]]:
    return [(short(task, 40), task) for task in tasks[:MOST_TASKS]]
