"""The table that terminal, Markdown and LaTeX share: one row a judge, task and scoring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judgesense.decisions.streams import BASELINES
from judgesense.report_file import identity, main_cells, task_rank
from judgesense.text import interval, number, percent, short_names

COLUMNS = (
    "judge", "task", "scoring", "raw JSS", "mapped JSS", "95% interval", "κ", "accuracy",
    "first pos.", "undecided", "items/pairs", "verdict",
)  # fmt: skip

TEXT_COLUMNS = ("judge", "task", "scoring", "verdict")


@dataclass(frozen=True)
class Row:
    """One row: its cells as text in the order of `COLUMNS`, and the mapped cell behind it."""

    texts: tuple[str, ...]
    cell: Mapping[str, Any]

    @property
    def is_baseline(self) -> bool:
        """Whether it is no judge but what one would score that is perfect or never reads."""
        return self.cell["judge"] in BASELINES


def rows(report: Mapping[str, Any]) -> list[Row]:
    """Rows by task (coherence first), judges before baselines."""
    settle = {
        (identity(entry), entry["order"], entry["labels"]): entry["items"]
        for entry in report["to_settle"]
    }

    def place(key: tuple[str, str, str, str]) -> tuple[Any, ...]:
        run_id, judge, task, scoring = key
        return task_rank(task), judge in BASELINES, judge != "oracle", judge, scoring, run_id

    found = main_cells(report)
    names = short_names({key[1] for key in found})
    result = []
    for key in sorted(found, key=place):
        raw, mapped = found[key]["raw"], found[key]["mapped"]
        items = settle.get((key, mapped["order"], "mapped"))
        result.append(Row(_texts(raw, mapped, items, names[key[1]]), mapped))
    return result


def _texts(
    raw: Mapping[str, Any], mapped: Mapping[str, Any], items: int | None, judge: str
) -> tuple[str, ...]:
    return (
        judge,
        mapped["task"],
        mapped["scoring"],
        number(raw["jss"]),
        number(mapped["jss"]),
        interval(mapped, 2),
        number(mapped["kappa"], 2),
        percent(mapped["accuracy"]),
        percent(mapped["first_position_rate"]),
        percent(undecided_share(mapped)),
        f"{mapped['n_items']}/{mapped['n_pairs']}",
        _verdict(mapped, items),
    )


def _verdict(cell: Mapping[str, Any], items: int | None) -> str:
    if cell["judge"] in BASELINES:
        return "baseline"
    return f"{cell['verdict']} (≈{items} items)" if items is not None else str(cell["verdict"])


def undecided_share(cell: Mapping[str, Any]) -> float | None:
    """The share of judged pairs with a side that is no decision."""
    lost: int = cell["n_unclear"] + cell["n_refused"] + cell["n_error"]
    judged: int = cell["n_pairs"] + lost
    return lost / judged if judged else None
