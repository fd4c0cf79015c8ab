"""What the leaderboard shows: one entry a judge, task, scoring and set of pairs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judgesense.decisions.streams import BASELINES
from judgesense.published import WORDINGS, figures
from judgesense.report_file import CELL_KEYS, main_cells

OPEN, API = "open", "api"
PUBLISHED = "published"
"""The pairs of the published figures, whose hash nobody states."""

SIZES = {
    "up to 1B": (0.0, 1.0),
    "1B to 10B": (1.0, 10.0),
    "10B to 100B": (10.0, 100.0),
    "over 100B": (100.0, float("inf")),
}
"""Parameters in billions: more than the first, up to the second."""

_SIZE = re.compile(r"(?<![a-z0-9.])(\d{1,4}(?:\.\d{1,2})?)(m|b)(?![a-z0-9])")
_DATA = re.compile(r"\|data:([0-9a-f]{8})\|")
_LOCAL_ENGINES = ("transformers", "vllm", "ray")

_PUBLISHED_JUDGES: dict[str, str | None] = {
    "llama-3.1-70b-instruct": OPEN,
    "qwen-2.5-72b-instruct": OPEN,
    "deepseek-r1": OPEN,
    "mistral-7b": None,
    "qwen-3.6-flash": None,
    "deepseek-v4-flash": None,
}
"""Weights of the published judges: open, or not known (a floating alias); the others are API."""


@dataclass(frozen=True)
class Entry:
    """One row of the table before it is ranked.

    ``cells`` are the ``raw`` and the ``mapped`` cell (published figures may lack one); ``pairs`` is
    the data hash of the signature, so that entries with the same one judged the same pairs.
    ``weights`` is open, api or None, ``billions`` the number of parameters as the name states it.
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

    @property
    def is_baseline(self) -> bool:
        """What a perfect judge, or one that always takes the first option, would score."""
        return self.judge in BASELINES

    @property
    def is_published(self) -> bool:
        """A figure that a paper published, not one of a run."""
        return self.pairs == PUBLISHED


@dataclass(frozen=True)
class Run:
    """A run that can be shown: ``key`` is its folder's name, ``path`` its report.json.

    ``decisions`` says whether the decision log lies with it (or can be fetched).
    """

    key: str
    path: Path
    decisions: bool


@dataclass(frozen=True, eq=False)
class Board:
    """Everything at one moment. ``refused`` are runs that are left out, with the reason.

    Two boards of one ``stamp`` show the same; a board is equal to itself alone.
    """

    where: str
    stamp: str
    entries: tuple[Entry, ...]
    runs: Mapping[str, Run] = field(default_factory=dict)
    refused: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def tasks(self) -> list[str]:
        """Tasks that have an entry, coherence first: it is where judges differ."""
        names = {entry.task for entry in self.entries}
        return sorted(names, key=lambda name: (name != "coherence", name))


def entries_of(report: Mapping[str, Any], run: str) -> Iterator[Entry]:
    """The entries of one run's report (checked by `shape`); ``run`` is its key."""
    record: Mapping[str, Any] = report["runs"][0] if report["runs"] else {}
    data = _data_name(record)
    engines = _engines(record)
    for (_, judge, task, scoring), cells in main_cells(report).items():
        found = _DATA.search(cells["mapped"]["signature"])
        yield Entry(
            run=run,
            judge=judge,
            task=task,
            scoring=scoring,
            pairs=found[1] if found else run,
            data=data,
            cells=cells,
            weights=engines.get(judge),
            billions=billions(judge),
        )


def _data_name(record: Mapping[str, Any]) -> str:
    source = record.get("dataset")
    if not isinstance(source, Mapping) or not isinstance(source.get("name"), str):
        return "pairs of its own"
    version = source.get("version")
    name: str = source["name"]
    return f"{name} {version}" if isinstance(version, str) else name


def _engines(record: Mapping[str, Any]) -> dict[str, str | None]:
    """open or api by judge, from the engine that the run's record states."""
    judges = record.get("judges")
    found: dict[str, str | None] = {}
    for judge in judges if isinstance(judges, list) else []:
        about = judge.get("describe") if isinstance(judge, Mapping) else None
        if isinstance(about, Mapping) and isinstance(judge.get("name"), str):
            engine = about.get("engine")
            found[judge["name"]] = (
                OPEN if engine in _LOCAL_ENGINES else API if engine == "api" else None
            )
    return found


def billions(judge: str) -> float | None:
    """Parameters in billions where the judge's name states them (``...-70b-...``, ``135m``)."""
    found = _SIZE.search(judge.split("@")[0][:300].lower())
    if not found:
        return None
    return float(found[1]) / (1000 if found[2] == "m" else 1)


def published_entries() -> Iterator[Entry]:
    """The published figures, as cells without what nobody published.

    Only factuality has an inverted wording: on the other tasks raw and mapped are one figure.
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
            degenerate="one label throughout: the source's kappa is undefined"
            if constant
            else None,
            verdict=PUBLISHED,
            signature=f"{figure.source} ({WORDINGS})",
        )
        found.setdefault(key, {})[figure.labels] = cell
        notes.setdefault(key, figure.notes)
    for (judge, task), cells in found.items():
        if task != "factuality":
            cells["mapped"] = cells["raw"]
        yield Entry(
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
