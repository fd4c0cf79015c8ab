"""Two judges side by side: their figures, and a paired test if both decision logs are available."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from hub_scripts.leaderboard import worker
from hub_scripts.leaderboard.board import Board, BoardEntry
from hub_scripts.leaderboard.pages.judge import choices, find
from hub_scripts.leaderboard.render import notice, render, short
from hub_scripts.leaderboard.sources import RunSource
from judgesense.decisions.log import part_files
from judgesense.errors import JudgeSenseError
from judgesense.run_folder.report import task_rank
from judgesense.text import join
from judgesense.trust.compare import WORDS, winner

FIGURES = {"jss": "JSS", "accuracy": "accuracy"}
"""The heading of each measure."""


def comparison(source: RunSource, one: str | None, two: str | None) -> str:
    """The comparison of two chosen judges as HTML."""
    board = source.board()
    first, second = find(board, one), find(board, two)
    if not first or not second:
        return notice("Choose two judges.")
    if one == two:
        return notice("These are the same judge of the same run. Choose another.")
    try:
        tested = _tested(source, board, first[0], second[0])
    except JudgeSenseError as error:
        tested = {"untested": str(error)}
    entries = sorted((*first, *second), key=lambda each: (task_rank(each.task), each.scoring))
    return render(
        "compare",
        one=first[0].judge,
        two=second[0].judge,
        figures=[(each, each.cells["mapped"]) for each in entries if "mapped" in each.cells],
        **{"untested": None, **tested},
    )


def _tested(source: RunSource, board: Board, one: BoardEntry, two: BoardEntry) -> dict[str, Any]:
    """The paired differences. Raises JudgeSenseError with the reason if there is no test."""
    bare = [entry.judge for entry in (one, two) if not _has_log(board, entry)]
    if bare:
        raise JudgeSenseError(
            f"the decisions of {join([short(judge) for judge in bare])} are not available. "
            "Intervals that overlap do not show that two judges are alike, and these figures may "
            "come from different pairs."
        )
    first, second = sorted((_stamped(source, one), _stamped(source, two)))
    result = _compared(*first, *second)
    turned = (_turned(entry, one.judge, two.judge) for entry in result["comparisons"])
    own = [_described(entry) for entry in turned if entry is not None]
    if not own:
        raise JudgeSenseError("the two judges have no pair in common.")
    return {
        "n_tests": result["n_tests"],
        "lost": sum(entry["n_undecided"] for entry in own),
        "differences": sorted(
            own, key=lambda e: (task_rank(e["task"]), e["scoring_a"], e["measure"] != "jss")
        ),
    }


def _has_log(board: Board, entry: BoardEntry) -> bool:
    run = board.runs.get(entry.run)
    return run is not None and run.decisions


def _stamped(source: RunSource, entry: BoardEntry) -> tuple[Path, int, str]:
    """A run's folder and the time of its last change, so that comparisons can be cached."""
    folder = source.run_dir(entry.run)
    changed = max((part.stat().st_mtime_ns for part in part_files(folder)), default=0)
    return folder, changed, entry.run


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


def _described(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A comparison with its words; ``ahead`` is the judge that is clearly ahead, or None."""
    side = winner(entry)
    return {
        **entry,
        "figure": FIGURES[entry["measure"]],
        "words": WORDS[entry["measure"]][2],
        "ahead": None if side is None else entry[f"judge_{side}"],
        "scoring": " / ".join(sorted({entry["scoring_a"], entry["scoring_b"]})),
    }


REMEMBER = """(a, b) => {
  const query = new URLSearchParams({a: a ?? '', b: b ?? ''});
  history.replaceState(history.state, '', location.pathname + '?' + query);
  return [a, b];
}"""
"""Keeps the two judges in the URL, so that the comparison can be shared."""


def page(gr: Any, demo: Any, source: RunSource) -> None:
    """Build the page: ``gr`` is Gradio, ``demo`` its Blocks."""
    gr.HTML(render("about_compare"), js_on_load=None, apply_default_css=False)
    listed = choices(source.board())
    start = [*(key for _, key in listed[:2]), None, None]
    with gr.Row():
        one = gr.Dropdown(listed, value=start[0], label="First judge", min_width=220)
        two = gr.Dropdown(listed, value=start[1], label="Second judge", min_width=220)
    button = gr.Button("Compare", variant="primary", elem_classes="go")
    shown = gr.HTML("", js_on_load=None, apply_default_css=False, elem_id="comparison")

    def opened(request: gr.Request) -> tuple[Any, Any, str]:
        now = choices(source.board())
        keys = [key for _, key in now]
        asked = [request.query_params.get(side) for side in "ab"]
        a, b = (
            key if key in keys else keys[at] if len(keys) > at else None
            for at, key in enumerate(asked)
        )
        # A link to two judges shows their comparison at once.
        result = comparison(source, a, b) if all(key in keys for key in asked) else ""
        return gr.Dropdown(choices=now, value=a), gr.Dropdown(choices=now, value=b), result

    def compared(first: str | None, second: str | None) -> str:
        return comparison(source, first, second)

    opened.__annotations__["request"] = gr.Request
    demo.load(opened, None, [one, two, shown], api_visibility="private", concurrency_limit=2)
    button.click(compared, [one, two], shown, js=REMEMBER, api_name="compare", concurrency_limit=2)
