"""The leaderboard: every judge on a task, ranked where the intervals tell judges apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from hub_scripts.leaderboard.board import API, OPEN, SIZES, Board, Entry
from hub_scripts.leaderboard.markup import LONGEST_KEY, figure, link, name, short, size, verdict
from hub_scripts.leaderboard.ranking import Standing, standings
from hub_scripts.leaderboard.sources import Source
from judgesense.published import ROWS, WORDINGS
from judgesense.reporting.html import h
from judgesense.reporting.table import undecided_share
from judgesense.text import number, percent, sentence, short_names
from judgesense.trust.thresholds import STEADY_JSS

ANY = "any"
MOST_TASKS = 60
"""Tasks that can be chosen."""

LABELS = ("mapped", "raw")
SCORINGS = (ANY, "generate", "options")
WEIGHTS = (ANY, OPEN, API)
SIZE_CHOICES = (ANY, *SIZES, "not stated")

COLUMNS = (
    ("Rank", "up"),
    ("Judge", "text"),
    ("JSS and its 95% interval", "down"),
    ("Verdict", "text"),
    ("Accuracy", "down"),
    ("First position", "down"),
    ("Undecided", "up"),
    ("Noise floor", "up"),
    ("{other} JSS", "down"),
    ("κ", "down"),
    ("Items / pairs", "down"),
)
"""Title, and the direction that a first click sorts in (or text)."""

_SCALE = "".join(
    f'<i style="left:{100 * tick:.0f}%">{tick:g}</i>' for tick in (0, 0.5, STEADY_JSS, 1)
)

HELP = f"""\
<details><summary>How to read this table</summary><div>
<ul>
<li><b>JSS</b> is the share of pairs of wordings, on the same item, that got the same verdict: 1 if
the wording never matters. <b>Mapped</b> compares what answers mean, <b>raw</b> the answers as they
were given: under “Does this contain errors?” a NO says what a YES says elsewhere.</li>
<li><b>Rank</b> is one more than the number of judges whose whole interval lies above this judge’s
own, among those scored alike on the same pairs. Where intervals overlap, neither judge counts
against the other; “=” marks a shared rank. Nothing else enters: not accuracy, not price.</li>
<li><b>Not ranked</b> are degenerate figures (one label throughout), figures without an interval,
and judges that decided fewer than half of the pairs; the reason stands below the verdict.</li>
<li>A steady judge can be wrong: look at <b>accuracy</b> (agreement with gold, prompt by prompt) and
at <b>first position</b> (the share of verdicts for the option shown first; 50% is even).
<b>Noise floor</b> is how often the same prompt flips when it is only batched otherwise,
<b>undecided</b> the share of pairs with an answer that could not be read, a refusal or an
error.</li>
<li>The shaded zone of a bar lies above {STEADY_JSS}. <b>Reliable</b>: the whole interval lies in
it; <b>unstable</b>: the whole interval lies below it; <b>undecided</b>: it straddles
{STEADY_JSS}.</li>
</ul></div></details>
"""


def hero(board: Board) -> str:
    """What the page is about, and where its runs come from."""
    runs = len(board.runs)
    judges = len({entry.judge for entry in board.entries if not entry.is_baseline})
    notices = "".join(f'<p class="notice">{h(short(note, 400))}</p>' for note in board.notes)
    return (
        '<div class="site"><div class="hero"><h1>Does the judge mean it?</h1>'
        "<p>An LLM judge’s verdict should not depend on how the question is worded. The Judge "
        "Sensitivity Score is how often it does not.</p>"
        f'<p class="meta"><span>{judges} judges</span><span>{runs} '
        f"run{'' if runs == 1 else 's'}</span><span>from {name(board.where)}</span></p></div>"
        f"{notices}</div>"
    )


def chosen(
    board: Board,
    task: str,
    scoring: str = ANY,
    weights: str = ANY,
    sizes: str = ANY,
    find: str | None = None,
    published: bool = True,
) -> list[Entry]:
    """The entries that the filters leave; baselines stay with their pairs."""
    wanted = (find or "").strip().casefold()
    low, high = SIZES.get(sizes, (0.0, float("inf")))

    def fits(entry: Entry) -> bool:
        if entry.task != task or (entry.is_published and not published):
            return False
        if entry.is_baseline:
            return True
        if scoring != ANY and entry.scoring != scoring:
            return False
        if weights != ANY and entry.weights != weights:
            return False
        if sizes == "not stated" and entry.billions is not None:
            return False
        if sizes in SIZES and (entry.billions is None or not low < entry.billions <= high):
            return False
        return wanted in entry.judge.casefold()

    return [entry for entry in board.entries if fits(entry)]


@lru_cache(maxsize=64)
def render(
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

    Ranks are those among all judges on the same pairs, whatever the filters leave of them.
    """
    left = set(map(id, chosen(board, task, scoring, weights, sizes, find, published)))
    groups = []
    for group in standings((e for e in board.entries if e.task == task), labels):
        kept = [standing for standing in group if id(standing.entry) in left]
        if any(not standing.entry.is_baseline for standing in kept):
            groups.append((group, kept))
    other = "raw" if labels == "mapped" else "mapped"
    head = "".join(_head(title.format(other=sentence(other)), way) for title, way in COLUMNS)
    body = "".join(_group(group, kept, labels, other) for group, kept in groups) or (
        f'<tbody><tr class="empty"><td colspan="{len(COLUMNS)}">No judge fits these filters.</td>'
        "</tr></tbody>"
    )
    return (
        '<div class="site"><div class="scroll" role="region" tabindex="0" '
        f'aria-label="Judges on {h(short(task))}, scrollable">'
        f'<table class="board"><caption>Judges on {h(short(task))} by {h(labels)} JSS</caption>'
        f"<thead><tr>{head}</tr></thead>{body}</table></div>{HELP}{_left_out(board)}</div>"
    )


def _head(title: str, way: str) -> str:
    drawn = title.startswith("JSS")
    scale = f'<span class="scale" aria-hidden="true">{_SCALE}</span>' if drawn else ""
    css = "left" if way == "text" or drawn else ""
    return (
        f'<th scope="col" class="{css}" data-first="{way}" aria-sort="none">'
        f'<button type="button">{h(title)}</button>{scale}</th>'
    )


def _group(group: Sequence[Standing], kept: Sequence[Standing], labels: str, other: str) -> str:
    ranks = [standing.rank for standing in group if standing.rank is not None]
    names = short_names({standing.entry.judge for standing in group})
    rows = "".join(
        _row(standing, ranks, names[standing.entry.judge], labels, other) for standing in kept
    )
    return (
        f'<tbody><tr class="group"><th colspan="{len(COLUMNS)}" scope="rowgroup">'
        f"{_title(group[0].entry, group, labels)}</th></tr>{rows}</tbody>"
    )


def _title(first: Entry, group: Sequence[Standing], labels: str) -> str:
    if first.is_published:
        alike = (
            " Only factuality has an inverted wording, so raw and mapped are one figure here."
            if first.task != "factuality" and labels == "mapped"
            else ""
        )
        return (
            f"<b>Published figures, {h(WORDINGS)}</b><span>From the first paper’s files, not of "
            f"runs here: {h(ROWS)}. Their ranks say more than that data can.{h(alike)}</span>"
        )
    pairs = max(
        (
            c["n_pairs"] + c["n_unclear"] + c["n_refused"] + c["n_error"]
            for c in _cells(group, labels)
        ),
        default=0,
    )
    return (
        f"<b>{name(first.data)} · {name(first.scoring)} scoring</b>"
        f"<span>{pairs} pairs, data {h(first.pairs[:12])}</span>"
    )


def _cells(group: Sequence[Standing], labels: str) -> list[Mapping[str, Any]]:
    return [standing.entry.cells[labels] for standing in group if labels in standing.entry.cells]


def _row(standing: Standing, ranks: Sequence[int], called: str, labels: str, other: str) -> str:
    entry = standing.entry
    cell = entry.cells.get(labels)
    second = entry.cells.get(other)
    known: Mapping[str, Any] = cell or second or {}
    tone = "published" if entry.is_published else str(known.get("verdict", ""))
    css = "baseline" if entry.is_baseline else tone
    undecided = None if entry.is_published or not known else undecided_share(known)
    columns = [
        _rank(standing, ranks),
        f'<th scope="row" class="who" data-v="{h(short(entry.judge))}" data-kind="text">'
        f"{_who(entry, called)}</th>",
        _cell(figure(cell, css), cell["jss"] if cell else None, "left"),
        _verdict(standing, tone),
        _number(known.get("accuracy"), percent),
        _number(known.get("first_position_rate"), percent),
        _number(undecided, percent),
        _number(known.get("noise_floor"), percent),
        _number(second["jss"] if second else None, number),
        _number(known.get("kappa") if cell else None, _two),
        _items(entry, known),
    ]
    row = "" if entry.is_baseline else " data-row"
    return f'<tr class="{h(css)}"{row}>{"".join(columns)}</tr>'


def _rank(standing: Standing, ranks: Sequence[int]) -> str:
    if standing.rank is None:
        return '<td class="rank" data-v=""><small aria-label="not ranked">–</small></td>'
    tied = "<small>=</small>" if ranks.count(standing.rank) > 1 else ""
    return f'<td class="rank" data-v="{standing.rank}">{standing.rank}{tied}</td>'


def _who(entry: Entry, called: str) -> str:
    """The judge's name as a link; ``called`` is it without its fingerprint, where that is clear."""
    if entry.is_baseline:
        return name(called)
    chips = [text for text in (entry.weights, size(entry.billions)) if text]
    below = "".join(f'<span class="chip">{h(text)}</span>' for text in chips)
    shown = link("judge", name(called), judge=short(entry.judge, LONGEST_KEY), run=entry.run)
    return f"{shown}<small>{below}</small>" if below else shown


def _cell(text: str, value: float | None, css: str = "") -> str:
    stated = "" if value is None else f"{value:.6g}"
    kind = f' class="{css}"' if css else ""
    return f'<td{kind} data-v="{stated}">{text}</td>'


def _number(value: float | None, written: Any) -> str:
    return _cell(h(written(value)), value)


def _two(value: float | None) -> str:
    return number(value, 2)


def _items(entry: Entry, cell: Mapping[str, Any]) -> str:
    if entry.is_published and cell:
        return _cell(f"– / {cell['n_pairs']}", cell["n_pairs"])
    if not cell:
        return _cell("–", None)
    return _cell(f"{cell['n_items']} / {cell['n_pairs']}", cell["n_items"])


def _verdict(standing: Standing, tone: str) -> str:
    entry = standing.entry
    word = "baseline" if entry.is_baseline else tone or "undecided"
    why = ""
    if standing.why is not None and not entry.is_baseline:
        reason = standing.why.removeprefix("degenerate: ") if word == "degenerate" else standing.why
        why = f"<small>{h(short(reason, 160))}</small>"
    return f'<td class="verdicts" data-v="{h(word)}" data-kind="text">{verdict(word)}{why}</td>'


def _left_out(board: Board) -> str:
    if not board.refused:
        return ""
    lines = "".join(_refused(board.refused))
    number_of = len(board.refused)
    noun = "run is" if number_of == 1 else "runs are"
    return (
        f"<details><summary>{number_of} {noun} left out</summary><div><ul>{lines}</ul></div>"
        "</details>"
    )


def _refused(refused: Sequence[tuple[str, str]]) -> Iterator[str]:
    for key, why in refused[:100]:
        yield f"<li><b>{name(key)}</b>: {h(short(why, 300))}</li>"


def page(gr: Any, demo: Any, source: Source) -> None:
    """Put the page together: ``gr`` is Gradio, ``demo`` its Blocks."""
    from hub_scripts.leaderboard.style import SORT

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
    table = gr.HTML(
        render(board, first),
        js_on_load=SORT,
        apply_default_css=False,
        elem_id="table",
    )

    def again(*filters: Any) -> str:
        return render(source.board(), *filters)

    built = board.stamp
    filters = [task, labels, scoring, weights, sizes, find, published]

    def opened(asked: str, *others: Any) -> tuple[Any, Any, Any]:
        now = source.board()
        if now.stamp == built:
            return gr.skip(), gr.skip(), gr.skip()
        start = asked if asked in now.tasks else now.tasks[0]
        return hero(now), gr.Radio(choices=_choices(now.tasks), value=start), again(start, *others)

    reading = {"queue": False, "show_progress": "hidden"}
    gr.on(
        [each.change for each in filters],
        again,
        filters,
        table,
        api_name="table",
        trigger_mode="always_last",
        **reading,
    )
    demo.load(opened, filters, [top, task, table], api_visibility="private", **reading)


def _choices(tasks: Sequence[str]) -> list[tuple[str, str]]:
    return [(short(task, 40), task) for task in tasks[:MOST_TASKS]]
