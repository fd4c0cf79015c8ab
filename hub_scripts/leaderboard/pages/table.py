"""The leaderboard: every judge on a task, ranked as far as the intervals tell judges apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    ("Trust", "text"),
    ("JSS and its 95% interval", "down"),
    ("Accuracy", "down"),
    ("First position", "down"),
    ("No verdict", "up"),
    ("Noise floor", "up"),
    ("{other} JSS", "down"),
    ("κ", "down"),
    ("Items / pairs", "down"),
)
"""The title of each column, and the direction in which a first click sorts it (or text)."""

REMEMBER = """(...values) => {
  const names = ['task', 'labels', 'scoring', 'weights', 'parameters', 'find', 'published'];
  const start = [null, 'mapped', 'any', 'any', 'any', '', false];
  const query = new URLSearchParams();
  names.forEach((name, at) => {
    const value = values[at] ?? '';
    if (value !== start[at]) query.set(name, value === true ? '1' : value);
  });
  history.replaceState(history.state, '', location.pathname + '?' + query);
  return values;
}"""
"""Keeps the filters in the URL, so that a link shows what its sender saw."""

_UNKNOWN = dict.fromkeys(CELL_KEYS)


def hero(board: Board) -> str:
    """What the page is about, and where its runs come from."""
    judges = {e.judge for e in board.entries if not (e.is_baseline or e.is_published)}
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
        chart=points(row["entry"] for group in groups for row in group["rows"]),
        task=task,
        labels=labels,
        other=other,
        columns=COLUMNS,
        groups=groups,
        refused=board.refused,
        wordings=WORDINGS,
        rows=f"{ROWS}; {WITHDRAWN}",
    )


def points(entries: Iterable[BoardEntry]) -> list[dict[str, Any]]:
    """Judges on the chart: x is right less a constant answer, y the same verdict after rewording.

    Judges without gold labels or JSS have no place on it.
    """
    found: list[dict[str, Any]] = []
    for entry in entries:
        if not entry.checks:
            continue
        steady, fair, right = (entry.checks[name] for name in ("steady", "fair", "right"))
        x, y = right["details"].get("beats_constant"), steady["estimate"]
        if x is None or y is None:
            continue
        ends = [right["details"].get(f"beats_constant_{end}") for end in ("ci_low", "ci_high")]
        found.append(
            {
                "entry": entry,
                "x": _across(x),
                "x_low": None if ends[0] is None else _across(ends[0]),
                "x_high": None if ends[1] is None else _across(ends[1]),
                "y": _down(y),
                "y_low": None if steady["ci_low"] is None else _down(steady["ci_low"]),
                "y_high": None if steady["ci_high"] is None else _down(steady["ci_high"]),
                "hollow": fair["state"] == "fail",
                "tone": (entry.trust or {})["trust"],
            }
        )
    found.sort(key=lambda point: point["y"])
    for at, point in enumerate(found):
        # A name moves down until it is clear of those above it.
        near = [each for each in found[:at] if abs(each["x"] - point["x"]) < NAME_WIDTH]
        lowest = max((each["name_y"] for each in near), default=0.0)
        point["name_y"] = max(point["y"] + 4, lowest + 13)
    return found


NAME_WIDTH = 150
"""Width of a name on the chart, in its units."""


def _across(points: float) -> float:
    """Where a difference from a constant answer (-0.5 to 0.5) lies on the chart."""
    return 470 + 800 * min(max(points, -0.5), 0.5)


def _down(jss: float) -> float:
    """Where a JSS lies on the chart, from 0.2 at the foot."""
    return 20 + 200 * (1 - max(jss, 0.2))


def _group(
    group: Sequence[Standing], shown: Sequence[Standing], labels: str, other: str
) -> dict[str, Any]:
    ranks = [standing.rank for standing in group]
    ranked = {standing.entry.judge for standing in group if standing.rank is not None}
    names = short_names({standing.entry.judge for standing in group})
    cells = [each.entry.cells[labels] for each in group if labels in each.entry.cells]
    sums = [c["n_pairs"] + _lost(c) for c in cells if not group[0].entry.is_published]
    return {
        "first": group[0].entry,
        "pairs": max(sums, default=0),
        "rows": [
            {
                **_row(standing, labels, other),
                # A first place among one judge says nothing.
                **({"rank": None} if len(ranked) < 2 else {}),
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
    cell, second = entry.figure(labels), entry.figure(other)
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
        published = gr.Checkbox(False, label="Published figures too", min_width=150)
    start = table(board, first, published=False)
    shown = gr.HTML(start, js_on_load=SORT, apply_default_css=False, elem_id="table")

    def filtered(*filters: Any) -> str:
        return table(source.board(), *filters)

    built = board.stamp
    filters = [task, labels, scoring, weights, sizes, find, published]

    def opened(request: gr.Request, *now_set: Any) -> tuple[Any, ...]:
        """The board of this moment, with the filters that the URL names."""
        now = source.board()
        asked = asked_for(now, request.query_params, now_set)
        if now.stamp == built and asked == now_set:
            return tuple(gr.skip() for _ in range(2 + len(filters)))
        changed = [
            gr.skip() if new == old else new for new, old in zip(asked, now_set, strict=True)
        ]
        changed[0] = gr.Radio(choices=_choices(now.tasks), value=asked[0])
        return hero(now), table(now, *asked), *changed

    # Gradio finds gr.Request by its annotation, which is a string here.
    opened.__annotations__["request"] = gr.Request
    reading = {"queue": False, "show_progress": "hidden"}
    gr.on(
        [each.input for each in filters if each is not find],
        filtered,
        filters,
        shown,
        api_name="table",
        trigger_mode="always_last",
        js=REMEMBER,
        **reading,
    )
    # A pasted text is a change only, and so is one from the URL: wait for the other filters then.
    typed = find.change(None, js="() => new Promise((done) => setTimeout(done, 150))")
    typed.then(filtered, filters, shown, js=REMEMBER, api_visibility="private", **reading)
    demo.load(opened, filters, [top, shown, *filters], api_visibility="private", **reading)


def asked_for(board: Board, query: Mapping[str, str], now: Sequence[Any]) -> tuple[Any, ...]:
    """The filters that a URL's query names; those that it lacks, or has wrong, are ``now``'s."""
    allowed = {
        "task": tuple(board.tasks[:MOST_TASKS]),
        "labels": LABELS,
        "scoring": SCORINGS,
        "weights": WEIGHTS,
        "parameters": SIZE_CHOICES,
    }
    found = [
        query[name] if query.get(name) in values else old
        for (name, values), old in zip(allowed.items(), now, strict=False)
    ]
    if found[0] not in allowed["task"]:
        found[0] = board.tasks[0]
    published = {"1": True, "0": False}.get(query.get("published", ""), now[6])
    return (*found, query.get("find", now[5])[:200], published)


def _choices(tasks: Sequence[str]) -> list[tuple[str, str]]:
    return [(short(task, 40), task) for task in tasks[:MOST_TASKS]]
