"""The rows of the table: judges in comparable groups, with their figures as they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hub_scripts.leaderboard.board import SIZES, Board, BoardEntry
from hub_scripts.leaderboard.ranking import Standing, reason, standings
from judgesense.reporting.tables import undecided_share
from judgesense.run_folder.report import CELL_KEYS, task_rank
from judgesense.text import short_names
from judgesense.trust.card import TRUST

ANY, NOT_STATED = "any", "not stated"
LABELS = ("mapped", "raw")

FIRST_ROWS = 60
"""Rows that are shown until all are asked for, over all groups; a group shows at least `LEAST`."""

LEAST = 10


@dataclass(frozen=True)
class Column:
    """A column: a first click on its heading sorts it up or down, or as text."""

    key: str
    title: str
    sorts: str
    shown: bool = True


COLUMNS = (
    Column("rank", "Rank", "up"),
    Column("judge", "Judge", "text"),
    Column("trust", "Usable", "text"),
    Column("jss", "Same verdict after rewording", "down"),
    Column("accuracy", "Accuracy, against a constant answer", "down"),
    Column("first", "First position (50% is even)", "down"),
    Column("unread", "No verdict", "up", shown=False),
    Column("noise", "Noise floor", "up", shown=False),
    Column("other", "{other} JSS", "down", shown=False),
    Column("kappa", "κ", "down", shown=False),
    Column("items", "Items / pairs", "down", shown=False),
)

ANSWERS = {
    "use": "Use",
    "care": "Use with care",
    "changed": "Use after a change",
    "unknown": "Not known yet",
    "avoid": "Avoid",
}
"""What the first line says of judges."""

_CHANGED = TRUST.index("care")
"""Where a judge that a change makes usable stands: before the others that are not usable."""

_ALONE = {"rank": None, "why": "no other judge on these pairs can be ranked"}
_UNKNOWN = dict.fromkeys(CELL_KEYS)


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


def answer(entries: Sequence[BoardEntry]) -> list[tuple[str, list[str]]]:
    """Which of the judges can be used: their names by what holds of them, the usable ones first."""
    best: dict[str, tuple[int, str, str]] = {}
    names = short_names({entry.judge for entry in entries})
    for entry in entries:
        if entry.trust is None:
            continue
        trust, change, name = str(entry.trust["trust"]), entry.change, names[entry.judge]
        place = (TRUST.index(trust), trust, name)
        if change is not None:
            place = (_CHANGED, "changed", f"{name} ({change['remedy']})")
        best[entry.judge] = min(place, best.get(entry.judge, place))
    found: dict[str, list[str]] = {}
    for _, word, name in sorted(best.values()):
        found.setdefault(word, []).append(name)
    return [(ANSWERS[word], names) for word, names in found.items()]


def groups(
    board: Board, task: str, labels: str, left: Sequence[BoardEntry], whole: bool = True
) -> list[dict[str, Any]]:
    """The groups that ``table.html`` shows, with those rows whose entries are ``left``.

    Ranks are those among all judges on the same pairs, whichever of them are shown. ``whole``
    shows every row instead of the first ones.
    """
    kept = set(map(id, left))
    found = []
    for group in _standings(board, task, labels):
        shown = [standing for standing in group if id(standing.entry) in kept]
        if any(not standing.entry.is_baseline for standing in shown):
            found.append((group, shown))
    room = max(LEAST, FIRST_ROWS // max(len(found), 1))
    return [_group(board, group, shown, labels, None if whole else room) for group, shown in found]


def apart(found: Sequence[Mapping[str, Any]]) -> bool:
    """Whether nobody in these groups has a rank because no two judges share pairs and scoring."""
    own = [group for group in found if not group["first"].is_published]
    rows = [row for group in own for row in group["rows"]]
    alone = {row["entry"].judge for row in rows if row["why"] == _ALONE["why"]}
    return len(alone) > 1 and all(row["rank"] is None for row in rows)


@lru_cache(maxsize=64)
def _standings(board: Board, task: str, labels: str) -> list[list[Standing]]:
    return standings((entry for entry in board.entries if entry.task == task), labels)


@lru_cache(maxsize=4)
def _elsewhere(board: Board) -> dict[tuple[str, str, str], list[tuple[str, str]]]:
    """Task and trust of every judge of a run and scoring, in the order of reports."""
    found: dict[tuple[str, str, str], list[tuple[str, str]]] = {}
    for entry in board.entries:
        if entry.trust is not None:
            own = found.setdefault((entry.run, entry.judge, entry.scoring), [])
            own.append((entry.task, str(entry.trust["trust"])))
    for tasks in found.values():
        tasks.sort(key=lambda each: task_rank(each[0]))
    return found


def _group(
    board: Board, group: Sequence[Standing], shown: Sequence[Standing], labels: str,
    room: int | None,
) -> dict[str, Any]:  # fmt: skip
    ranked = {standing.entry.judge for standing in group if standing.rank is not None}
    names = short_names({standing.entry.judge for standing in group})
    cells = [each.entry.cells[labels] for each in group if labels in each.entry.cells]
    sums = [c["n_pairs"] + _lost(c) for c in cells if not group[0].entry.is_published]
    judges = [standing for standing in shown if not standing.entry.is_baseline]
    baselines = [standing for standing in shown if standing.entry.is_baseline]
    return {
        "first": group[0].entry,
        "pairs": max(sums, default=0),
        "left_out": len(judges) - len(judges[:room]),
        "rows": [
            {
                **_row(board, standing, labels),
                # A first place among one judge says nothing.
                **(_ALONE if len(ranked) < 2 and standing.rank is not None else {}),
                "called": names[standing.entry.judge],
            }
            for standing in (*judges[:room], *baselines)
        ],
    }


def _lost(cell: Any) -> int:
    lost: int = cell["n_unclear"] + cell["n_refused"] + cell["n_error"]
    return lost


def _row(board: Board, standing: Standing, labels: str) -> dict[str, Any]:
    entry = standing.entry
    cell = entry.figure(labels)
    second = entry.figure("raw" if labels == "mapped" else "mapped")
    known: Mapping[str, Any] = cell or second or _UNKNOWN
    tone = "published" if entry.is_published else "unknown"
    tone = tone if entry.trust is None else str(entry.trust["trust"])
    tasks = _elsewhere(board).get((entry.run, entry.judge, entry.scoring), [])
    return {
        "entry": entry,
        "rank": standing.rank,
        "last": standing.last,
        "cell": cell,
        "known": known,
        "second": second["jss"] if second else None,
        "css": "baseline" if entry.is_baseline else tone,
        "undecided": None if entry.is_published or known is _UNKNOWN else undecided_share(known),
        "word": "baseline" if entry.is_baseline else tone,
        "reason": reason(entry) if entry.checks else None,
        "why": None if entry.is_baseline else standing.why,
        "one_label": bool(cell and cell["degenerate"]),
        "change": entry.change,
        "elsewhere": [each for each in tasks if each[0] != entry.task],
        **_right(entry, known),
    }


def _right(entry: BoardEntry, known: Mapping[str, Any]) -> dict[str, Any]:
    """How often a judge is right, and how much more often than a constant answer."""
    details = entry.checks["right"]["details"] if entry.checks else {}
    accuracy = details.get("accuracy")
    return {
        "accuracy": known["accuracy"] if accuracy is None else accuracy,
        "beats": details.get("beats_constant"),
        "constant": details.get("constant_accuracy"),
    }
