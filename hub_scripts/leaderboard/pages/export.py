"""The table as CSV, and how to cite the leaderboard as BibTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from hub_scripts.leaderboard.board import Board, BoardEntry
from hub_scripts.leaderboard.pages.rows import groups
from hub_scripts.leaderboard.render import plain
from hub_scripts.names import HUB_SITE, LEADERBOARD, PAPER

HEADER = (
    "task", "data", "pairs", "scoring", "labels", "rank", "rank_last", "judge", "run", "model",
    "weights", "parameters_billions", "trust", "why_no_rank", "jss", "ci_low", "ci_high",
    "accuracy", "constant_accuracy", "beats_constant", "first_position_rate",
    "position_consistency", "no_verdict", "noise_floor", "kappa", "n_items", "n_pairs", "signature",
)  # fmt: skip
_JSS = ("jss", "ci_low", "ci_high")
_FIGURES = ("first_position_rate", "position_consistency")
_COUNTS = ("noise_floor", "kappa", "n_items", "n_pairs")


def as_csv(board: Board, task: str, labels: str, left: Sequence[BoardEntry]) -> str:
    """The table with every column and row that the filters leave; undefined cells are empty.

    A text that a spreadsheet would run as a formula gets an apostrophe in front.
    """
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(HEADER)
    for group in groups(board, task, labels, left):
        for row in group["rows"]:
            entry, known = row["entry"], row["known"]
            cell = row["cell"] or dict.fromkeys(_JSS)
            last = None if row["rank"] is None else row["last"]
            writer.writerow(
                map(
                    _inert,
                    (
                        task, entry.data, entry.pairs, entry.scoring, labels, row["rank"], last,
                        entry.judge, entry.run, entry.model, entry.weights, entry.billions,
                        row["word"], row["why"], *(cell[key] for key in _JSS), row["accuracy"],
                        row["constant"], row["beats"], *(known[key] for key in _FIGURES),
                        row["undecided"], *(known[key] for key in _COUNTS), known["signature"],
                    ),
                )
            )  # fmt: skip
    return made.getvalue()


def _inert(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula.

    >>> _inert("=1+1"), _inert(-0.5), _inert(None)
    ("'=1+1", -0.5, '')
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    text = plain(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) else text


def bibtex(day: str | None) -> str:
    """Entries for the leaderboard as of a day (YYYY-MM-DD), and for the paper behind it.

    >>> bibtex("2026-11-22").splitlines()[3]
    '  year  = {2026},'
    """
    year = f"  year  = {{{day[:4]}}},\n" if day else ""
    note = f"  note  = {{Runs up to {day}}},\n" if day else ""
    return (
        "@misc{judgesense-leaderboard,\n"
        "  title = {JudgeSense leaderboard},\n"
        "  author = {{The JudgeSense authors}},\n"
        f"{year}{note}"
        f"  url   = {{{HUB_SITE}/spaces/{LEADERBOARD}}}\n}}\n"
        "@misc{judgesense-paper,\n"
        "  title = {JudgeSense: A Benchmark for Prompt Sensitivity in LLM-as-a-Judge Systems},\n"
        f"  eprint = {{{PAPER.rsplit('/', 1)[1]}}},\n  archivePrefix = {{arXiv}},\n"
        f"  url   = {{{PAPER}}}\n}}\n"
    )
