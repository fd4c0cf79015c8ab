"""A judge's own page: its figures, which wordings agree, position bias, flips, and how to cite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hub_scripts.leaderboard.board import Board, Entry
from hub_scripts.leaderboard.markup import (
    LONGEST_KEY,
    figure,
    name,
    notice,
    plain,
    short,
    size,
    verdict,
)
from hub_scripts.leaderboard.sources import Source, report_of
from judgesense.decisions.streams import BASELINES
from judgesense.errors import JudgeSenseError
from judgesense.report_file import LISTS, main_cells
from judgesense.reporting.html import advice, cards, flips, forest, h, heatmaps
from judgesense.text import interval, number, percent
from judgesense.trust.thresholds import EVEN_FIRST
from judgesense.version import __version__

MOST_TEMPLATES = 40
"""Wordings of a case beyond which the grid of their agreement is not drawn."""

MOST_CHOICES = 1000
LONGEST_TEXT = 4000

_NAMES = ("run_id", "judge", "task", "scoring", "order", "item_id", "gold", "template",
          "template_a", "template_b", "raw", "decision", "prompt_id")  # fmt: skip
_TEXTS = ("text", "answer", "signature", "degenerate")


def choices(board: Board) -> list[tuple[str, str]]:
    """What can be chosen: (shown, key) of every judge of every run, published ones last."""
    found: dict[tuple[str, str], None] = {}
    for entry in board.entries:
        if not entry.is_baseline:
            found.setdefault((entry.run, entry.judge))
    runs: dict[str, int] = {}
    for _, judge in found:
        runs[judge] = runs.get(judge, 0) + 1
    return [
        (
            short(judge) if runs[judge] == 1 else f"{short(judge)} · {short(run, 40)}",
            key_of(run, judge),
        )
        for run, judge in found
    ][:MOST_CHOICES]


def key_of(run: str, judge: str) -> str:
    """How a run's judge is named in a choice and in an address, however long its name."""
    return f"{run}|{short(judge, LONGEST_KEY)}"


def find(board: Board, key: str | None) -> list[Entry]:
    """The entries of a chosen judge; empty if there is none of that key."""
    return [e for e in board.entries if not e.is_baseline and key_of(e.run, e.judge) == key]


def render(board: Board, key: str | None) -> str:
    """The page of a judge as HTML."""
    entries = find(board, key)
    if not entries:
        return notice("There is no such judge here. Choose one above.")
    first = entries[0]
    if first.is_published:
        return _page(first, _published(entries), _cite_published(entries))
    try:
        report = own_report(report_of(board.runs[first.run]), first.judge)
    except JudgeSenseError as error:
        return notice(str(error))
    return _page(first, _sections(report), _cite(report, first))


def _page(entry: Entry, body: Iterator[str], cite: Iterator[str]) -> str:
    chips = [text for text in (entry.weights, size(entry.billions)) if text]
    about = "".join(f'<span class="chip">{h(text)}</span>' for text in chips)
    where = "published figures" if entry.is_published else f"run {name(entry.run)}"
    called, _, fingerprint = entry.judge.partition("@")
    known = f"<span>fingerprint {name(fingerprint)}</span>" if fingerprint else ""
    return (
        f'<div class="site"><div class="hero"><h1>{name(called or entry.judge)}</h1>'
        f'<div class="meta">{known}<span>{where}</span><span>{name(entry.data)}</span></div>'
        f"{about}</div>{''.join(body)}{''.join(cite)}</div>"
    )


def own_report(report: Mapping[str, Any], judge: str) -> dict[str, Any]:
    """One judge's part of a report and its baselines, with every name and text made harmless."""
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
    for key in _NAMES:
        if isinstance(made.get(key), str):
            made[key] = short(made[key])
    for key in _TEXTS:
        if isinstance(made.get(key), str):
            made[key] = plain(made[key])[:LONGEST_TEXT]
    for side in ("a", "b"):
        if isinstance(made.get(side), Mapping):
            made[side] = _harmless(made[side])
    return made


def _sections(report: dict[str, Any]) -> Iterator[str]:
    yield cards(report)
    yield "<h2>JSS by task</h2>"
    yield '<p class="note">◆ marks baselines: a perfect judge, and one that never reads.</p>'
    yield '<figure class="panel" style="margin:0" tabindex="0" aria-label="JSS by task">'
    yield f"{forest(report)}</figure>"
    drawn, large = _drawable(report)
    yield heatmaps(drawn)
    if large:
        yield f'<p class="note">Too many wordings to draw: {h(", ".join(large))}.</p>'
    yield from _positions(report)
    yield advice(report)
    yield flips(report)


def _case(cell: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return cell["run_id"], cell["judge"], cell["task"], cell["scoring"]


def _drawable(report: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The report without the grids that no page could show, and those grids' tasks."""
    templates: dict[tuple[str, ...], set[str]] = {}
    for row in report["template_pairs"]:
        templates.setdefault(_case(row), set()).update((row["template_a"], row["template_b"]))
    large = {case for case, found in templates.items() if len(found) > MOST_TEMPLATES}
    kept = [row for row in report["template_pairs"] if _case(row) not in large]
    return {**report, "template_pairs": kept}, sorted(f"{case[2]} ({case[3]})" for case in large)


def _positions(report: Mapping[str, Any]) -> Iterator[str]:
    """First position and position consistency of the tasks that compare two options."""
    shown = [
        both["mapped"]
        for case, both in sorted(main_cells(report).items())
        if case[1] not in BASELINES and both["mapped"]["first_position_rate"] is not None
    ]
    if not shown:
        return
    yield "<h2>Position bias</h2>"
    yield (
        '<p class="note">How often it takes the option shown first (even is 50%), and how often it '
        "chooses the same one when the two are swapped.</p><div class='places panel'>"
    )
    for cell in shown:
        where = f"{h(cell['task'])}, {h(cell['scoring'])}"
        share = cell["first_position_rate"]
        off = " off" if not EVEN_FIRST[0] <= share <= EVEN_FIRST[1] else ""
        yield (
            f'<div class="place"><span>{where}</span><span class="meter{off}" aria-hidden="true">'
            f'<i style="width:{100 * share:.1f}%"></i></span><span><b>{percent(share)}</b> first'
        )
        if cell["position_consistency"] is not None:
            yield f"<br><small>{percent(cell['position_consistency'])} consistent</small>"
        yield "</span></div>"
    yield "</div>"


def _cite(report: Mapping[str, Any], entry: Entry) -> Iterator[str]:
    yield "<h2>Cite this</h2>"
    yield (
        '<p class="note">A figure is quotable with its signature: it fixes the pairs, the scoring '
        "and the interval.</p>"
    )
    lines = []
    for (_, judge, task, scoring), both in sorted(main_cells(report).items()):
        cell = both["mapped"]
        if judge in BASELINES or cell["jss"] is None:
            continue
        lines.append(
            f"{judge}, {task}, {scoring} scoring: mapped JSS {number(cell['jss'])} "
            f"{interval(cell)}, accuracy {percent(cell['accuracy'])}.\n    {cell['signature']}"
        )
    text = "\n".join(lines) + f"\nMeasured with JudgeSense {__version__}, run {short(entry.run)}."
    yield _quotation(text)


def _published(entries: list[Entry]) -> Iterator[str]:
    yield (
        '<p class="notice">These figures were published, not measured here: other wordings, and '
        "intervals that take repeated rows as independent. There are no decisions behind them, so "
        "no wordings, position bias or flips can be shown.</p>"
    )
    yield '<div class="scroll panel"><table class="figures"><thead><tr><th class="text">task</th>'
    yield '<th class="text">labels</th><th class="text">JSS</th><th>κ</th><th>rows</th>'
    yield '<th class="text">notes</th></tr></thead><tbody>'
    for entry in entries:
        for labels, cell in entry.cells.items():
            if labels == "mapped" and cell is entry.cells.get("raw"):
                continue
            notes = "; ".join(entry.notes)
            tone = "degenerate" if cell["degenerate"] else "published"
            mark = f" {verdict('degenerate', cell['degenerate'])}" if cell["degenerate"] else ""
            yield (
                f'<tr><td class="text">{h(entry.task)}</td><td class="text">{h(labels)}</td>'
                f'<td class="text">{figure(cell, tone)}{mark}</td>'
                f"<td>{number(cell['kappa'], 2)}</td>"
                f'<td>{cell["n_pairs"]}</td><td class="text" style="white-space:normal;'
                f'min-width:18rem">{h(notes)}</td></tr>'
            )
    yield "</tbody></table></div>"


def _cite_published(entries: list[Entry]) -> Iterator[str]:
    yield "<h2>Cite this</h2>"
    source = entries[0].cells[next(iter(entries[0].cells))]["signature"]
    yield _quotation(
        "Cite the source, not this page: “JudgeSense: A Benchmark for Prompt Sensitivity in "
        f"LLM-as-a-Judge Systems” (arXiv 2604.23478), {source}."
    )


def _quotation(text: str) -> str:
    return f'<pre class="cite" tabindex="0" aria-label="Citation">{h(text)}</pre>'


REMEMBER = """(key) => {
  const at = key.indexOf('|');
  const query = new URLSearchParams({judge: key.slice(at + 1), run: key.slice(0, at)});
  history.replaceState(null, '', location.pathname + '?' + query);
  return key;
}"""
"""Keep the address that of the judge shown, so that it can be passed on."""


def page(gr: Any, demo: Any, source: Source) -> None:
    """Put the page together: ``gr`` is Gradio, ``demo`` its Blocks."""
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
        return gr.Dropdown(choices=listed, value=key if known else None), render(board, key)

    def again(key: str | None) -> str:
        return render(source.board(), key)

    # gr.Request is found by its annotation, which is a string here.
    opened.__annotations__["request"] = gr.Request
    demo.load(opened, None, [chosen, shown], api_visibility="private", **reading)
    chosen.input(again, chosen, shown, js=REMEMBER, api_name="judge", **reading)
