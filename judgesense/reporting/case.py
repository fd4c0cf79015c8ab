"""A trust card, and what a report has beside it on the same judge, task and scoring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judgesense.run_folder.report import Key, identity, main_cells
from judgesense.text import brackets, percent
from judgesense.trust.card import TRUST
from judgesense.trust.rules import AS_ASKED

Data = dict[str, Any]
Entry = Mapping[str, Any]

_SETTLE = {
    "readable": "readable share not settled yet",
    "steady": "steadiness not settled yet",
    "responsive": "may ignore what is asked",
    "right": "better than chance not settled",
    "fair": "effect of order not settled",
}
_MISSING = {
    "readable": "no answer to read",
    "steady": "fewer than two wordings compared",
    "responsive": "no contrast wording was asked",
    "right": "no gold labels to compare",
    "fair": "asked in one order only",
}


class ReportCase:
    """One card, and what a report has on the same judge, task and scoring."""

    def __init__(self, report: Mapping[str, Any], card: Entry) -> None:
        self.card = card
        self.key: Key = identity(card)
        _, self.judge, self.task, self.scoring = self.key
        self.name = self.judge
        self.checks: Mapping[str, Entry] = card["checks"]
        self.remedies = self._own(report["remedies"])
        self.wordings = self._own(report["wordings"])
        self.named = next(iter(self._own(report["recommendation"])), None)
        self.cell = main_cells(report).get(self.key, {}).get("mapped", {})
        wanted = card.get("remedy")
        self.remedy = next(
            (row for row in self.remedies if row["remedy"] == wanted != AS_ASKED), None
        )

    @property
    def maybe(self) -> list[str]:
        """The changes of which it is not known whether they make it usable, the cheapest first."""
        return [
            row["remedy"]
            for row in self.remedies
            if row["trust"] == "unknown" and row["remedy"] != AS_ASKED
        ]

    def _own(self, entries: Sequence[Entry]) -> list[Entry]:
        return [entry for entry in entries if identity(entry) == self.key]

    @property
    def trust(self) -> str:
        """``use``, ``care``, ``avoid`` or ``unknown``."""
        return str(self.card["trust"])

    @property
    def usable(self) -> str | None:
        """``use`` or ``care`` if it can be used, with its remedy if it has one."""
        if self.trust in ("use", "care"):
            return self.trust
        return str(self.remedy["trust"]) if self.remedy else None

    @property
    def rank(self) -> tuple[float, ...]:
        """Sort key: what can be used first, then the better check `right`."""
        word = TRUST.index(self.usable or self.trust)
        readable, right = (self.checks[name]["estimate"] for name in ("readable", "right"))
        return word, TRUST.index(self.trust), -(right or 0.0), -(readable or 0.0)

    def row(self) -> Data:
        """The row of the table."""
        right, checks = self.checks["right"], self.checks
        known = right["details"]
        first = self.cell.get("first_position_rate")
        return {
            "key": self.key,
            "judge": self.name,
            "task": self.task,
            "scoring": self.scoring,
            "trust": self.trust,
            "text": self.card["text"],
            "why": self.reason(),
            "remedy": self.remedy["remedy"] if self.remedy else None,
            "after": self.remedy["trust"] if self.remedy else None,
            "bars": [
                _bar("same verdict after rewording", checks["steady"], "steady"),
                _bar(
                    "right",
                    {
                        **right,
                        "estimate": known.get("accuracy"),
                        "ci_low": known.get("accuracy_ci_low"),
                        "ci_high": known.get("accuracy_ci_high"),
                        "threshold": known.get("constant_accuracy"),
                    },
                    "right",
                    f"; a constant answer {percent(known.get('constant_accuracy'))}",
                ),
                _bar(
                    "same choice in both orders",
                    checks["fair"],
                    "fair",
                    "" if first is None else f"; takes the first {percent(first)}",
                ),
            ],
            "readable": percent(checks["readable"]["estimate"]),
            "n_items": checks["readable"]["n_items"],
        }

    def chip(self) -> Data:
        """Its place in the matrix."""
        change = f"{self.remedy['trust']} with {self.remedy['remedy']}" if self.remedy else None
        return {"trust": self.trust, "text": self.card["text"], "remedy": change}

    def reason(self) -> str:
        """The worst reason in about six words."""
        return next(reasons(self.card), "passes every check that applies")


def reasons(card: Entry) -> Iterator[str]:
    """Why a trust card does not say `use`, worst first, each in about six words."""
    for name in card["because"]:
        check = card["checks"][name]
        share = percent(check["estimate"])
        if check["state"] == "open":
            yield _SETTLE[name]
        elif check["state"] == "unmeasured":
            yield _MISSING[name]
        elif name == "readable":
            yield f"{share} of answers can be read"
        elif name == "steady":
            yield f"rewording changes {percent(1 - check['estimate'])} of verdicts"
        elif name == "fair":
            yield f"same choice in both orders: {share}"
        else:
            yield {
                "right": "hardly more right than by chance",
                "responsive": "ignores what the question asks",
            }[name]


def _bar(name: str, check: Entry, key: str, more: str = "") -> Data:
    """A figure from 0 to 1 with its interval, in percent of the bar, and its reference line."""
    value = check["estimate"]
    if value is None:
        said = "does not apply" if not check["applies"] else "not measured"
        return {"name": name, "value": None, "said": said, "why": _MISSING[key], "tone": ""}
    low, high = check["ci_low"], check["ci_high"]
    needs = "" if key == "right" else f"; needs {percent(check['threshold'])}"
    return {
        "name": name,
        "value": 100 * value,
        "low": 100 * (value if low is None else low),
        "width": 100 * ((value if high is None else high) - (value if low is None else low)),
        "line": None if check["threshold"] is None else 100 * check["threshold"],
        "said": percent(value),
        "interval": brackets(low, high, percent),
        "why": f"{check['n_items']} items{needs}{more}",
        "tone": check["state"],
    }
