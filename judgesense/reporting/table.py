"""The table of every output format: one row per judge, task and scoring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from judgesense.decisions.streams import BASELINES
from judgesense.report_file import identity, main_cells, task_rank
from judgesense.reporting.style import TONES
from judgesense.text import interval, number, percent, sentence, short_names

COLUMNS = {
    "judge": "judge",
    "task": "task",
    "scoring": "scoring",
    "raw": "raw JSS",
    "mapped": "mapped JSS",
    "interval": "95% interval",
    "kappa": "κ",
    "accuracy": "accuracy",
    "first": "first pos.",
    "undecided": "undecided",
    "sample": "items/pairs",
    "verdict": "verdict",
}
"""Column -> heading."""

TEXT_COLUMNS = ("judge", "task", "scoring", "verdict")

LEGEND = (
    "JSS: same verdict after rewording, by what the answer means (mapped) or as given (raw). "
    "Accuracy: right, by the gold labels. First pos.: takes the first option. Undecided: pairs "
    "without a readable verdict."
)
BASELINE_NOTE = (
    "Baselines: oracle is always right, always-first always takes the first option. Their scores "
    "come from the wordings and the data."
)


RAW_APART = 0.005
"""A raw JSS nearer than this to the mapped one is not drawn beside it."""


@dataclass(frozen=True)
class Row:
    """One row: the text of each column, the mapped cell behind it, and the raw JSS."""

    texts: Mapping[str, str]
    cell: Mapping[str, Any]
    raw: float | None

    @property
    def is_baseline(self) -> bool:
        """Whether it is no judge, but the score of a perfect or a blind one."""
        return self.cell["judge"] in BASELINES

    @property
    def hollow(self) -> float | None:
        """The raw JSS if it is worth drawing beside the mapped one."""
        mapped = self.cell["jss"]
        near = self.raw is None or mapped is None or abs(self.raw - mapped) <= RAW_APART
        return None if near else self.raw

    @property
    def tone(self) -> str:
        """The verdict that gives the row its colour, or ``baseline``."""
        return "baseline" if self.is_baseline else str(self.cell["verdict"])


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
        texts = _texts(raw, mapped, items, names[key[1]])
        result.append(Row(dict(zip(COLUMNS, texts, strict=True)), mapped, raw["jss"]))
    return result


def _texts(
    raw: Mapping[str, Any], mapped: Mapping[str, Any], items: int | None, judge: str
) -> tuple[str, ...]:
    verdict = "baseline" if mapped["judge"] in BASELINES else str(mapped["verdict"])
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
        verdict if items is None or verdict == "baseline" else f"{verdict} (≈{items} items)",
    )


def advice_by_case(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The findings of each judge, task and scoring: its names, a ``tone`` and the ``texts``."""
    names = short_names({f["judge"] for f in report["findings"]} | set(BASELINES))
    cells = main_cells(report)
    found = []
    for key, group in groupby(report["findings"], key=identity):
        findings = list(group)
        degenerate = key in cells and cells[key]["mapped"]["verdict"] == "degenerate"
        found.append(
            {
                "judge": names[key[1]],
                "task": key[2],
                "scoring": key[3],
                "tone": "degenerate" if degenerate else TONES[findings[0]["kind"]],
                "texts": [sentence(finding["text"]) for finding in findings],
            }
        )
    return found


def undecided_share(cell: Mapping[str, Any]) -> float | None:
    """The share of judged pairs in which a prompt has no decision."""
    lost: int = cell["n_unclear"] + cell["n_refused"] + cell["n_error"]
    judged: int = cell["n_pairs"] + lost
    return lost / judged if judged else None
