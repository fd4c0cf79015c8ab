"""The table of every output format: one row per judge, task and scoring, trust first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from judgesense.decisions.streams import BASELINES
from judgesense.run_folder.report import identity, main_cells, task_rank
from judgesense.text import interval, number, percent, sentence, short_names
from judgesense.trust.card import CHECKS, QUESTIONS

COLUMNS = {
    "trust": "trust",
    "judge": "judge",
    "task": "task",
    "scoring": "scoring",
    "jss": "JSS",
    "interval": "95% interval",
    "kappa": "κ",
    "right": "right",
    "fair": "fair",
    "readable": "readable",
    "sample": "items",
}
"""Column -> heading."""

TEXT_COLUMNS = ("trust", "judge", "task", "scoring")

LEGEND = (
    "JSS: same verdict after rewording. Right: matches the gold labels; κ: the same beyond chance. "
    "Fair: same choice in both orders. Readable: answers with a verdict."
)
BASELINE_NOTE = (
    "Baselines: oracle is always right, always-first always takes the first option. Their scores "
    "come from the wordings and the data."
)

BASELINE = "baseline"
_STATES = {"pass": "✓", "fail": "✗", "open": "?", "unmeasured": "–"}


@dataclass(frozen=True)
class Row:
    """One row: the text of each column, the mapped cell behind it, and the judge's trust card.

    ``card`` is None for a baseline. ``figure`` holds the JSS that is shown and its interval.
    """

    texts: Mapping[str, str]
    cell: Mapping[str, Any]
    card: Mapping[str, Any] | None

    @property
    def is_baseline(self) -> bool:
        """Whether it is no judge, but the score of a perfect or a blind one."""
        return self.card is None

    @property
    def figure(self) -> Mapping[str, Any]:
        """``jss``, ``ci_low`` and ``ci_high``: the card's check `steady`, or a baseline's cell."""
        return self.cell if self.card is None else _steady(self.card)

    @property
    def tone(self) -> str:
        """The value of ``trust`` that gives the row its colour, or ``baseline``."""
        return BASELINE if self.card is None else str(self.card["trust"])

    @property
    def checks(self) -> list[tuple[str, str, str, str]]:
        """Each check that applies: its mark, name, figure, and what it asks."""
        if self.card is None:
            return []
        return [
            (_STATES[check["state"]], name, _figure(name, check), QUESTIONS[name])
            for name, check in ((name, self.card["checks"][name]) for name in CHECKS)
            if check["applies"]
        ]


def rows(report: Mapping[str, Any]) -> list[Row]:
    """Rows by task (coherence first), judges before baselines."""

    def place(key: tuple[str, str, str, str]) -> tuple[Any, ...]:
        run_id, judge, task, scoring = key
        return task_rank(task), judge in BASELINES, judge != "oracle", judge, scoring, run_id

    found = main_cells(report)
    cards = {identity(entry): entry for entry in report["trust"]}
    names = short_names({key[1] for key in found})
    result = []
    for key in sorted(found, key=place):
        cell, card = found[key]["mapped"], cards.get(key)
        texts = _texts(cell, card, names[key[1]])
        result.append(Row(dict(zip(COLUMNS, texts, strict=True)), cell, card))
    return result


def _texts(cell: Mapping[str, Any], card: Mapping[str, Any] | None, judge: str) -> tuple[str, ...]:
    who = (judge, cell["task"], cell["scoring"])
    if card is None:
        return (
            BASELINE,
            *who,
            number(cell["jss"]),
            interval(cell, 2),
            number(None),
            percent(cell["accuracy"]),
            percent(cell["position_consistency"]),
            percent(None),
            str(cell["n_items"]),
        )
    figure, checks = _steady(card), card["checks"]
    return (
        str(card["trust"]),
        *who,
        number(figure["jss"]),
        interval(figure, 2),
        number(checks["right"]["estimate"], 2),
        percent(checks["right"]["details"].get("accuracy")),
        percent(checks["fair"]["estimate"]),
        percent(checks["readable"]["estimate"]),
        str(checks["readable"]["n_items"]),
    )


def _steady(card: Mapping[str, Any]) -> dict[str, Any]:
    check = card["checks"]["steady"]
    return {"jss": check["estimate"], "ci_low": check["ci_low"], "ci_high": check["ci_high"]}


def _figure(name: str, check: Mapping[str, Any]) -> str:
    if check["estimate"] is None:
        return "not measured"
    if name == "responsive":
        return f"{number(check['estimate'], 1)}×"
    if name in ("steady", "right"):
        return ("JSS " if name == "steady" else "κ ") + number(check["estimate"], 2)
    return percent(check["estimate"])


def advice_by_case(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The findings of each judge, task and scoring: key, names, ``tone`` and ``texts``."""
    names = short_names({f["judge"] for f in report["findings"]} | set(BASELINES))
    found = []
    for key, group in groupby(report["findings"], key=identity):
        findings = list(group)
        found.append(
            {
                "key": key,
                "judge": names[key[1]],
                "task": key[2],
                "scoring": key[3],
                "tone": findings[0]["kind"],
                "texts": [sentence(finding["text"]) for finding in findings],
            }
        )
    return found


def undecided_share(cell: Mapping[str, Any]) -> float | None:
    """The share of judged pairs in which a prompt has no decision."""
    lost: int = cell["n_unclear"] + cell["n_refused"] + cell["n_error"]
    judged: int = cell["n_pairs"] + lost
    return lost / judged if judged else None
