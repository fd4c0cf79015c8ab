"""What the leaderboard shows: one entry per judge, task, scoring and set of pairs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgesense.decisions.view import BASELINES
from judgesense.published import WORDINGS, figures
from judgesense.run_folder.report import CELL_KEYS, identity, main_cells, task_rank
from judgesense.trust.remedies import PASSING
from judgesense.trust.rules import AS_ASKED
from local_judges.local.packaged_models import NAMED

OPEN, API = "open", "api"
PUBLISHED = "published"
"""The pairs of the published figures, whose hash is unknown."""

SIZES = {
    "up to 1B": (0.0, 1.0),
    "1B to 10B": (1.0, 10.0),
    "10B to 100B": (10.0, 100.0),
    "over 100B": (100.0, float("inf")),
}
"""Parameters in billions: more than the first, up to the second."""

_SIZE = re.compile(r"(?<![a-z0-9.])(\d{1,4}(?:\.\d{1,2})?)(m|b)(?![a-z0-9])")
_DATA = re.compile(r"\|data:([0-9a-f]{8})\|")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_LOCAL_ENGINES = ("transformers", "vllm", "ray")

_PUBLISHED_JUDGES: dict[str, str | None] = {
    "llama-3.1-70b-instruct": OPEN,
    "qwen-2.5-72b-instruct": OPEN,
    "deepseek-r1": OPEN,
    "mistral-7b": None,
    "qwen-3.6-flash": None,
    "deepseek-v4-flash": None,
}
"""Weights of the published judges: open, or unknown (a floating alias); the others are APIs."""


@dataclass(frozen=True)
class BoardEntry:
    """One row of the table before it is ranked.

    ``cells`` are the ``raw`` and the ``mapped`` cell; published figures may lack one. ``pairs`` is
    the data hash of the signature: entries with the same hash judged the same pairs. ``weights`` is
    open, api or None, and ``billions`` the number of parameters that the name states.
    ``trust`` is the judge's trust card; None for baselines and published figures. ``model`` is the
    name of its model on the Hub, if the run's record has one. ``change`` is the row of the report's
    remedies that makes the judge usable, for a judge that is not usable as asked.
    """

    run: str
    judge: str
    task: str
    scoring: str
    pairs: str
    data: str
    cells: Mapping[str, Mapping[str, Any]]
    weights: str | None = None
    billions: float | None = None
    notes: tuple[str, ...] = ()
    trust: Mapping[str, Any] | None = None
    model: str | None = None
    change: Mapping[str, Any] | None = None

    @property
    def checks(self) -> Mapping[str, Mapping[str, Any]]:
        """The checks of its trust card by name; empty without a card."""
        found: Mapping[str, Mapping[str, Any]] = (self.trust or {}).get("checks", {})
        return found

    def figure(self, labels: str) -> Mapping[str, Any] | None:
        """The cell of a kind of label; its mapped JSS and interval are those of the trust card."""
        cell = self.cells.get(labels)
        steady = self.checks.get("steady")
        if cell is None or labels != "mapped" or steady is None or steady["estimate"] is None:
            return cell
        own = {"jss": steady["estimate"], **{key: steady[key] for key in ("ci_low", "ci_high")}}
        return {**cell, **own}

    @property
    def is_baseline(self) -> bool:
        """Whether this is the score of a perfect judge, or of one that always answers first."""
        return self.judge in BASELINES

    @property
    def is_published(self) -> bool:
        """Whether a paper published this figure; no run measured it."""
        return self.pairs == PUBLISHED


@dataclass(frozen=True)
class BoardRun:
    """A run to show: ``key`` is the name of its folder, ``path`` its report.json.

    ``decisions`` says whether its decision log is available or can be downloaded. ``day`` is the
    date on which the run started, if its record has one.
    """

    key: str
    path: Path
    decisions: bool
    day: str | None = None


@dataclass(frozen=True, eq=False)
class Board:
    """All entries at one moment. ``refused`` are the runs that are left out, with the reason.

    Two boards with the same ``stamp`` show the same. A board equals only itself.
    """

    where: str
    stamp: str
    entries: tuple[BoardEntry, ...]
    runs: Mapping[str, BoardRun] = field(default_factory=dict)
    refused: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def tasks(self) -> list[str]:
        """The tasks with an entry, in the order of reports."""
        return sorted({entry.task for entry in self.entries}, key=task_rank)

    @property
    def first_task(self) -> str:
        """The task to show first: the one that most judges here have judged."""
        judged = {(e.task, e.judge) for e in self.entries if not (e.is_published or e.is_baseline)}
        counts = Counter(task for task, _ in judged)
        return max(self.tasks, key=lambda task: counts[task])


def entries_of(report: Mapping[str, Any], run: str) -> Iterator[BoardEntry]:
    """The entries of one run's report, which `report_shape` has checked; ``run`` is its key."""
    record: Mapping[str, Any] = report["runs"][0] if report["runs"] else {}
    data = _data_name(record)
    engines, models = _engines(record), _models(record)
    cards = {identity(entry): entry for entry in report["trust"]}
    changes = {
        case: row
        for row in report["remedies"]
        if (case := identity(row)) in cards
        and row["remedy"] == cards[case].get("remedy") != AS_ASKED
        and row.get("trust") in PASSING
    }
    for case, cells in main_cells(report).items():
        _, judge, task, scoring = case
        found = _DATA.search(cells["mapped"]["signature"])
        yield BoardEntry(
            run=run,
            judge=judge,
            task=task,
            scoring=scoring,
            pairs=found[1] if found else run,
            data=data,
            cells=cells,
            weights=engines.get(judge),
            billions=billions(judge),
            trust=cards.get(case),
            model=models.get(judge),
            change=changes.get(case),
        )


def day_of(report: Mapping[str, Any]) -> str | None:
    """The date on which a run started; None if its record does not say."""
    started = report["runs"][0].get("started") if report["runs"] else None
    found = _DAY.match(started) if isinstance(started, str) else None
    return found[0] if found else None


def _data_name(record: Mapping[str, Any]) -> str:
    source = record.get("dataset")
    if not isinstance(source, Mapping) or not isinstance(source.get("name"), str):
        return "imported log" if "imported" in record else "own pairs"
    version = source.get("version")
    name: str = source["name"]
    return f"{name} {version}" if isinstance(version, str) else name


def _engines(record: Mapping[str, Any]) -> dict[str, str | None]:
    """open or api per judge, by the engine in the run's record."""
    found: dict[str, str | None] = {}
    for name, about in _described(record):
        engine = about.get("engine")
        found[name] = OPEN if engine in _LOCAL_ENGINES else API if engine == "api" else None
    return found


def _models(record: Mapping[str, Any]) -> dict[str, str]:
    """The Hub name of each judge's model: where it came from, or where its package's came from."""
    found = {}
    for name, about in _described(record):
        origin = str(about.get("origin", ""))
        hub_id = origin.removeprefix("Hub ") if origin.startswith("Hub ") else ""
        packaged = NAMED.get(name.partition("@")[0])
        if packaged and (origin.startswith("package ") or about.get("weights") == packaged.sha256):
            hub_id = packaged.hub_id
        if _HUB_ID.fullmatch(hub_id):
            found[name] = hub_id
    return found


def _described(record: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The judges of a run's record that describe themselves."""
    judges = record.get("judges")
    for judge in judges if isinstance(judges, list) else []:
        about = judge.get("describe") if isinstance(judge, Mapping) else None
        if isinstance(about, Mapping) and isinstance(judge.get("name"), str):
            yield judge["name"], about


def billions(judge: str) -> float | None:
    """Parameters in billions if the judge's name states them.

    >>> billions("llama-3.1-70b-instruct"), billions("smollm2-135m@7a4f"), billions("gpt-4o")
    (70.0, 0.135, None)
    """
    found = _SIZE.search(judge.split("@")[0][:300].lower())
    if not found:
        return None
    return float(found[1]) / (1000 if found[2] == "m" else 1)


def published_entries() -> Iterator[BoardEntry]:
    """The published figures as cells; figures that were not published are None.

    Only factuality has an inverted wording, so raw and mapped are the same on the other tasks.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    notes: dict[tuple[str, str], tuple[str, ...]] = {}
    for figure in figures():
        key = (figure.judge, figure.task)
        cell: dict[str, Any] = dict.fromkeys(CELL_KEYS)
        constant = figure.jss == 1 and figure.kappa is None and figure.labels == "raw"
        cell.update(
            run_id=PUBLISHED,
            judge=figure.judge,
            task=figure.task,
            scoring="generate",
            order="-",
            labels=figure.labels,
            jss=figure.jss,
            flip_rate=figure.flip_rate,
            kappa=figure.kappa,
            ci_low=figure.ci_low,
            ci_high=figure.ci_high,
            n_pairs=figure.n_pairs,
            degenerate="one label throughout: kappa is undefined" if constant else None,
            signature=f"{figure.source} ({WORDINGS})",
        )
        found.setdefault(key, {})[figure.labels] = cell
        notes.setdefault(key, figure.notes)
    for (judge, task), cells in found.items():
        if task != "factuality":
            cells["mapped"] = cells["raw"]
        yield BoardEntry(
            run=PUBLISHED,
            judge=judge,
            task=task,
            scoring="generate",
            pairs=PUBLISHED,
            data="published figures",
            cells=cells,
            weights=_PUBLISHED_JUDGES.get(judge, API),
            billions=billions(judge),
            notes=notes[judge, task],
        )
