"""The leaderboard: every judge on a task, ranked as far as the intervals tell judges apart."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from hub_scripts.leaderboard.board import API, OPEN, SIZES, Board
from hub_scripts.leaderboard.pages.chart import chart
from hub_scripts.leaderboard.pages.export import as_csv, bibtex
from hub_scripts.leaderboard.pages.rows import (
    ANY,
    COLUMNS,
    LABELS,
    NOT_STATED,
    answer,
    apart,
    chosen,
    groups,
)
from hub_scripts.leaderboard.render import render, short
from hub_scripts.leaderboard.sources import RunSource
from hub_scripts.leaderboard.style import SCRIPT
from hub_scripts.names import DATASET, HUB_SITE, PAPER, REPOSITORY
from judgesense.published import ROWS, WITHDRAWN, WORDINGS

MOST_ANSWERED = 4
"""Judges that the first line names of each kind."""

MOST_TASKS = 60
"""Tasks to choose from."""

SCORINGS = (ANY, "generate", "options")
WEIGHTS = (ANY, OPEN, API)
SIZE_CHOICES = (ANY, *SIZES, NOT_STATED)

LINKS = {
    "Paper": PAPER,
    "Docs": f"{REPOSITORY}/tree/main/docs",
    "Dataset": f"{HUB_SITE}/datasets/{DATASET}",
    "Repository": REPOSITORY,
}

REMEMBER = """(...values) => {
  const names = ['task', 'labels', 'scoring', 'weights', 'parameters', 'find', 'published', 'rows'];
  const start = [null, 'mapped', 'any', 'any', 'any', '', false, false];
  const query = new URLSearchParams(location.search);
  const before = new URLSearchParams(location.search);
  names.forEach((name, at) => {
    const value = values[at] ?? '';
    if (value === start[at]) query.delete(name);
    else query.set(name, value === true ? (name === 'rows' ? 'all' : '1') : value);
  });
  window.judgesense.filter(query, query.get('find') !== before.get('find'));
}"""
"""Keeps the filters in the URL, so that a link shows what its sender saw, and Back goes back.

The script then asks for the table of that URL: a plain request, which costs the server a tenth of
an event of Gradio's.
"""

_MAKING = threading.Lock()


def hero(board: Board) -> str:
    """What the page is about, where its runs come from, and where to read more."""
    judges = {e.judge for e in board.entries if not (e.is_baseline or e.is_published)}
    return render(
        "hero",
        board=board,
        judges=len(judges),
        runs=len(board.runs),
        links=LINKS,
        day=last_day(board),
    )


def last_day(board: Board) -> str | None:
    """The date of the newest run; None if no run says."""
    return max((run.day for run in board.runs.values() if run.day), default=None)


def table(
    board: Board,
    task: str,
    labels: str = "mapped",
    scoring: str = ANY,
    weights: str = ANY,
    sizes: str = ANY,
    find: str | None = None,
    published: bool = True,
    whole: bool = False,
) -> str:
    """The table as HTML, with its first rows or ``whole``.

    Ranks are those among all judges on the same pairs, whichever of them the filters show.
    """
    # Users who ask for the same table at once wait for one rendering of it.
    with _MAKING:
        return _table(board, task, labels, scoring, weights, sizes, find, published, whole)


@lru_cache(maxsize=64)
def _table(
    board: Board,
    task: str,
    labels: str,
    scoring: str,
    weights: str,
    sizes: str,
    find: str | None,
    published: bool,
    whole: bool,
) -> str:
    left = chosen(board, task, scoring, weights, sizes, find, published)
    found = groups(board, task, labels, left, whole)
    judges = [entry for entry in left if not entry.is_baseline]
    return render(
        "table",
        chart=chart(judges),
        answer=answer(judges),
        named=MOST_ANSWERED,
        task=task,
        labels=labels,
        other="raw" if labels == "mapped" else "mapped",
        columns=COLUMNS,
        groups=found,
        apart=apart(found),
        left_out=sum(group["left_out"] for group in found),
        empty=not board.runs,
        unjudged=all(entry.is_published for entry in board.entries if entry.task == task),
        refused=board.refused,
        wordings=WORDINGS,
        rows=f"{ROWS}; {WITHDRAWN}",
        bibtex=bibtex(last_day(board)),
    )


def table_of(board: Board, query: Mapping[str, str]) -> str:
    """The table that a URL's query names, as HTML."""
    return table(board, *asked_for(board, query, _start(board)), query.get("rows") == "all")


def key_of(board: Board, query: Mapping[str, str]) -> tuple[Any, ...]:
    """What the table that a URL's query names depends on."""
    return board, *asked_for(board, query, _start(board)), query.get("rows") == "all"


def first_screen(board: Board, query: Mapping[str, str], pages: Sequence[tuple[str, str]]) -> str:
    """The heading and the table of a URL as HTML, which work before Gradio's scripts are there."""
    task = asked_for(board, query, _start(board))[0]
    return render(
        "first",
        pages=pages,
        hero=Markup(hero(board)),
        tasks=board.tasks[:MOST_TASKS],
        task=task,
        table=Markup(table_of(board, query)),
        script=Markup(SCRIPT),
    )


def csv_of(board: Board, query: Mapping[str, str]) -> str:
    """The table that a URL's query names as CSV, with all its rows."""
    task, labels, scoring, weights, sizes, find, published = asked_for(board, query, _start(board))
    left = chosen(board, task, scoring, weights, sizes, find, published)
    return as_csv(board, task, labels, left)


def _start(board: Board) -> tuple[Any, ...]:
    return board.first_task, "mapped", ANY, ANY, ANY, "", False


def page(gr: Any, demo: Any, source: RunSource) -> None:
    """Build the page: ``gr`` is Gradio, ``demo`` its Blocks."""
    board = source.board()
    tasks = board.tasks
    first = board.first_task
    plain = {"js_on_load": None, "apply_default_css": False}
    gr.HTML("", elem_id="hero-place", **plain)
    with gr.Row(elem_classes="filters"):
        find = gr.Textbox(
            "",
            label="Find a judge",
            placeholder="part of its name",
            max_length=200,
            min_width=140,
            scale=2,
        )
        task = gr.Radio(_choices(tasks), value=first, label="Task", scale=5, min_width=300)
        weights = gr.Radio(list(WEIGHTS), value=ANY, label="Model weights", scale=2, min_width=170)
        sizes = gr.Dropdown(list(SIZE_CHOICES), value=ANY, label="Parameters", min_width=130)
    with (
        gr.Accordion("Advanced", open=False, elem_classes="more"),
        gr.Row(elem_classes="filters"),
    ):
        labels = gr.Radio(list(LABELS), value="mapped", label="Labels", min_width=150)
        scoring = gr.Radio(list(SCORINGS), value=ANY, label="Scoring", min_width=180)
        published = gr.Checkbox(False, label="Published figures too", min_width=150)
        whole = gr.Checkbox(False, label="All rows at once", min_width=150)
    gr.HTML("", elem_id="table-place", **plain)

    built = board.stamp
    filters = [task, labels, scoring, weights, sizes, find, published, whole]

    def opened(request: gr.Request, *now_set: Any) -> tuple[Any, ...]:
        """The filters that the URL names, and the tasks of this moment."""
        now = source.board()
        query = request.query_params
        asked = (*asked_for(now, query, now_set[:7]), query.get("rows") == "all" or now_set[7])
        changed = [
            gr.skip() if new == old else new for new, old in zip(asked, now_set, strict=True)
        ]
        if now.stamp != built or asked[0] != now_set[0]:
            changed[0] = gr.Radio(choices=_choices(now.tasks), value=asked[0])
        return tuple(changed)

    def read(
        task: str,
        labels: str = "mapped",
        scoring: str = ANY,
        weights: str = ANY,
        parameters: str = ANY,
        find: str = "",
        published: bool = True,
    ) -> str:
        """The table of a task as HTML: its first rows."""
        now = source.board()
        try:
            known = (task in now.tasks and labels in LABELS and scoring in SCORINGS
                     and weights in WEIGHTS and parameters in SIZE_CHOICES
                     and isinstance(find, str) and len(find) <= 200)  # fmt: skip
        except TypeError:
            known = False
        if not known:
            raise gr.Error("unknown task or filter")
        return table(now, task, labels, scoring, weights, parameters, find, bool(published))

    read.__annotations__ = {
        **dict.fromkeys(("task", "labels", "scoring", "weights", "parameters", "find"), str),
        "published": bool,
        "return": str,
    }
    # Gradio finds gr.Request by its annotation, which is a string here.
    opened.__annotations__["request"] = gr.Request
    reading = {"queue": False, "show_progress": "hidden"}
    gr.api(read, api_name="table", queue=False)
    gr.on(
        [each.input for each in filters if each is not find],
        None,
        filters,
        js=REMEMBER,
        api_visibility="private",
    )
    # A pasted text is a change only, and so is one from the URL: wait for the other filters then.
    typed = find.change(None, js="() => new Promise((done) => setTimeout(done, 150))")
    typed.then(None, filters, js=REMEMBER, api_visibility="private")
    demo.load(opened, filters, filters, api_visibility="private", **reading)


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
        found[0] = board.first_task
    published = {"1": True, "0": False}.get(query.get("published", ""), now[6])
    return (*found, query.get("find", now[5])[:200], published)


def _choices(tasks: Sequence[str]) -> list[tuple[str, str]]:
    return [(short(task, 40), task) for task in tasks[:MOST_TASKS]]
