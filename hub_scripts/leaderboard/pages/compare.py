"""Two judges beside each other: their figures, and a paired test where both logs are at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from hub_scripts.leaderboard import worker
from hub_scripts.leaderboard.board import Board, Entry
from hub_scripts.leaderboard.markup import figure, name, notice, short, verdict
from hub_scripts.leaderboard.pages.judge import choices, find
from hub_scripts.leaderboard.sources import Source
from judgesense.errors import JudgeSenseError
from judgesense.report_file import task_rank
from judgesense.reporting.html import h
from judgesense.text import p_value, percent, signed
from judgesense.trust.compare import winner

WHAT = {"jss": "JSS", "accuracy": "accuracy"}


def render(source: Source, one: str | None, two: str | None) -> str:
    """The comparison of two chosen judges as HTML."""
    board = source.board()
    first, second = find(board, one), find(board, two)
    if not first or not second:
        return notice("Choose two judges.")
    if one == two:
        return notice("These are the same judge of the same run. Choose another.")
    parts = [f'<div class="site"><h2>{name(first[0].judge)} and {name(second[0].judge)}</h2>']
    parts += _paired(source, board, first[0], second[0])
    parts += _beside(first, second)
    return "".join([*parts, "</div>"])


def _paired(source: Source, board: Board, one: Entry, two: Entry) -> Iterator[str]:
    bare = [entry.judge for entry in (one, two) if not _has_log(board, entry)]
    if bare:
        who = " and ".join(name(judge) for judge in bare)
        yield (
            f'<p class="notice">No paired test: the decisions of {who} are not at hand. Intervals '
            "that overlap do not show that two judges are alike, and these figures may be of other "
            "pairs.</p>"
        )
        return
    try:
        first, second = sorted((_stamped(source, one), _stamped(source, two)))
        result = _compared(*first, *second)
    except JudgeSenseError as error:
        yield f'<p class="notice">No paired test: {h(short(error, 600))}</p>'
        return
    own = [e for e in (_turned(e, one.judge, two.judge) for e in result["comparisons"]) if e]
    if not own:
        yield '<p class="notice">No paired test: they share no pair that both judged.</p>'
        return
    yield (
        f"<p>On the pairs that both judged: <b>{name(two.judge)}</b> minus "
        f"<b>{name(one.judge)}</b>, with 95% intervals clustered by item; p-values by permutation, "
        f"Holm-corrected over the {result['n_tests']} comparisons of the two runs.</p>"
    )
    yield from _differences(own, one.judge, two.judge)


def _has_log(board: Board, entry: Entry) -> bool:
    run = board.runs.get(entry.run)
    return run is not None and run.decisions


def _stamped(source: Source, entry: Entry) -> tuple[Path, int, str]:
    """A run's folder and when it last changed, so that a comparison is kept as long as it holds."""
    folder = source.run_dir(entry.run)
    parts = sorted((folder / "decisions").glob("part-*.parquet"))
    return folder, max((part.stat().st_mtime_ns for part in parts), default=0), entry.run


@lru_cache(maxsize=64)
def _compared(
    one: Path, _one_changed: int, one_key: str, two: Path, _two_changed: int, two_key: str
) -> dict[str, Any]:
    try:
        return worker.compare(one, two)
    except JudgeSenseError as error:
        said = str(error).replace(str(one), one_key).replace(str(two), two_key)
        raise JudgeSenseError(said) from error


def _turned(entry: Mapping[str, Any], one: str, two: str) -> dict[str, Any] | None:
    """A comparison of these two judges, from the first to the second; None if of others."""
    if (entry["judge_a"], entry["judge_b"]) == (one, two):
        return dict(entry)
    if (entry["judge_a"], entry["judge_b"]) != (two, one):
        return None
    turned = dict(entry)
    for key in ("judge", "scoring"):
        turned[f"{key}_a"], turned[f"{key}_b"] = entry[f"{key}_b"], entry[f"{key}_a"]
    turned["a"], turned["b"] = entry["b"], entry["a"]
    for key, other in (("difference", "difference"), ("ci_low", "ci_high"), ("ci_high", "ci_low")):
        turned[key] = None if entry[other] is None else -entry[other]
    return turned


def _differences(own: Sequence[Mapping[str, Any]], one: str, two: str) -> Iterator[str]:
    yield (
        '<div class="scroll" role="region" tabindex="0" aria-label="Differences, scrollable">'
        '<table class="differences"><thead><tr><th>task</th><th>figure</th>'
        f"<th>{name(one, 24)}</th><th>{name(two, 24)}</th><th>difference</th><th></th><th>p</th>"
        "<th>on</th><th>in words</th></tr></thead><tbody>"
    )
    for entry in sorted(
        own, key=lambda e: (task_rank(e["task"]), e["scoring_a"], e["measure"] != "jss")
    ):
        scoring = {entry["scoring_a"], entry["scoring_b"]}
        yield (
            f"<tr><td>{name(entry['task'])}<br><small class='soft'>"
            f"{h(short(' / '.join(sorted(scoring))))}</small></td>"
            f"<td>{WHAT[entry['measure']]}</td><td>{percent(entry['a'])}</td>"
            f"<td>{percent(entry['b'])}</td><td>{_delta(entry)}</td>"
            f'<td class="whole">{_signed(entry)}</td>'
            f'<td class="whole">{h(p_value(entry["p_holm"], ""))}</td>'
            f"<td>{entry['n']} of {entry['n_items']} items</td>"
            f"<td>{_words(entry, one, two)}</td></tr>"
        )
    yield "</tbody></table></div>"
    lost = sum(entry["n_undecided"] for entry in own)
    if lost:
        yield (
            '<p class="note">Pairs and prompts that a judge left undecided are left out: '
            f"{lost} in these comparisons together.</p>"
        )


def _delta(entry: Mapping[str, Any]) -> str:
    """The difference and its interval drawn from -1 to 1."""
    if entry["difference"] is None:
        return "–"
    parts = ['<i class="zero"></i>']
    if entry["ci_low"] is not None:
        low, high = (50 + 50 * entry[key] for key in ("ci_low", "ci_high"))
        parts.append(f'<i class="span" style="left:{low:.1f}%;width:{high - low:.1f}%"></i>')
    parts.append(f'<i class="dot" style="left:{50 + 50 * entry["difference"]:.1f}%"></i>')
    tone = "undecided" if winner(entry) is None else "reliable"
    drawn = f"<span>{''.join(parts)}</span>"
    return f'<span class="bar signed {tone}" aria-hidden="true">{drawn}</span>'


def _signed(entry: Mapping[str, Any]) -> str:
    if entry["difference"] is None:
        return signed(None)
    low, high = (signed(entry[key]) for key in ("ci_low", "ci_high"))
    return f"<b>{signed(entry['difference'])}</b> <small class='soft'>[{low}, {high}]</small>"


def _words(entry: Mapping[str, Any], one: str, two: str) -> str:
    ahead = winner(entry)
    if ahead is None:
        return '<span class="soft">no clear difference</span>'
    what = "is steadier" if entry["measure"] == "jss" else "is more often right"
    return f"<b>{name(two if ahead == 'b' else one, 32)}</b> {what}"


def _beside(first: Sequence[Entry], second: Sequence[Entry]) -> Iterator[str]:
    """Both judges' own figures, case by case."""
    cases: dict[tuple[str, str], list[Entry]] = {}
    for entry in (*first, *second):
        cases.setdefault((entry.task, entry.scoring), []).append(entry)
    yield "<h2>Each by itself</h2>"
    yield (
        '<div class="scroll" role="region" tabindex="0" aria-label="Figures, scrollable">'
        '<table class="differences"><thead><tr><th>task</th><th>judge</th><th>mapped JSS</th>'
        "<th>accuracy</th><th>first position</th><th>verdict</th><th>pairs</th></tr></thead><tbody>"
    )
    for (task, scoring), entries in sorted(cases.items(), key=lambda case: task_rank(case[0][0])):
        for entry in entries:
            cell = entry.cells.get("mapped")
            if cell is None:
                continue
            word = str(cell["verdict"])
            yield (
                f"<tr><td>{name(task)}<br><small class='soft'>{name(scoring)}</small></td>"
                f"<td>{name(entry.judge, 32)}</td><td>{figure(cell, word)}</td>"
                f"<td>{percent(cell['accuracy'])}</td><td>{percent(cell['first_position_rate'])}"
                f"</td><td>{verdict(word, cell['degenerate'])}</td><td>{name(entry.data)}</td></tr>"
            )
    yield "</tbody></table></div>"


def page(gr: Any, demo: Any, source: Source) -> None:
    """Put the page together: ``gr`` is Gradio, ``demo`` its Blocks."""
    gr.HTML(
        '<div class="site"><div class="hero"><h1>Compare two judges</h1><p>On the same pairs, a '
        "paired test tells judges apart that intervals side by side cannot.</p></div></div>",
        js_on_load=None,
        apply_default_css=False,
    )
    listed = choices(source.board())
    start = [*(key for _, key in listed[:2]), None, None]
    with gr.Row():
        one = gr.Dropdown(listed, value=start[0], label="First judge", min_width=220)
        two = gr.Dropdown(listed, value=start[1], label="Second judge", min_width=220)
    button = gr.Button("Compare", variant="primary", elem_classes="go")
    shown = gr.HTML("", js_on_load=None, apply_default_css=False, elem_id="comparison")

    def opened(request: gr.Request) -> tuple[Any, Any]:
        now = choices(source.board())
        keys = [key for _, key in now]
        asked = [request.query_params.get(side) for side in "ab"]
        a, b = (
            key if key in keys else keys[at] if len(keys) > at else None
            for at, key in enumerate(asked)
        )
        return gr.Dropdown(choices=now, value=a), gr.Dropdown(choices=now, value=b)

    def compared(first: str | None, second: str | None) -> str:
        return render(source, first, second)

    opened.__annotations__["request"] = gr.Request
    demo.load(
        opened, None, [one, two], queue=False, show_progress="hidden", api_visibility="private"
    )
    button.click(compared, [one, two], shown, api_name="compare", concurrency_limit=2)
