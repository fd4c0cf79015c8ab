"""The cells that are pooled: one judge on one task, from a run's decisions or a table of cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from judgesense.errors import JudgeSenseError
from judgesense.files.documents import Shape, Text, validate
from judgesense.files.tables import read_table
from judgesense.measure.thresholds import NO_DIFFERENCE
from judgesense.published import V2_CELLS
from judgesense.studies.judge_sensitivity.runs import read_judged
from judgesense.tasks import REFUSED

PUBLISHED = "v2"
"""What ``--pool`` calls the published cells of the paper's second version."""

UNKNOWN = "unknown"

LEAST_ACCURACY = {"factuality": 0.75, "coherence": 0.40, "relevance": 0.70, "preference": 0.65}


class PoolRules(Shape, extra="forbid"):
    """The rules by which cells are pooled and means count; each can be set.

    The defaults are v2's. A task on which even the most accurate judge stays under
    ``least_accuracy`` does not discriminate between judges: it is pooled, and named. ``vendors``
    maps judges to vendors where a table or a log does not say.
    """

    floor: float = Field(NO_DIFFERENCE, ge=0, lt=1)
    least_items: int = Field(100, ge=0)
    largest_loss: float = Field(0.5, ge=0, le=1)
    least_repeat: float = Field(0.9, ge=0, le=1)
    fdr: float = Field(0.1, gt=0, lt=1)
    alpha: float = Field(0.05, gt=0, lt=1)
    least_accuracy: dict[str, Annotated[float, Field(ge=0, le=1)]] = LEAST_ACCURACY
    vendors: dict[str, Text] = Field(default_factory=dict)

    def excluded(self, cell: Cell) -> str | None:
        """Which rule leaves a cell out; None if it is pooled."""
        if cell.n_items is not None and cell.n_items < self.least_items:
            return f"support: {cell.n_items} < {self.least_items}"
        if (cell.item_loss_fraction or 0) > self.largest_loss:
            return f"item loss above {self.largest_loss:g}"
        if cell.jss_repeat is not None and cell.jss_repeat < self.least_repeat:
            return f"ceiling: {cell.jss_repeat:.3f} < {self.least_repeat:g}"
        return "no ΔJSS" if cell.delta_jss is None else None


Share = Annotated[float, Field(ge=-1, le=1)] | None


class Cell(Shape):
    """One judge on one task, on a scale of -1 to 1. A table has these columns; blank is undefined.

    ``n_items`` are the clusters behind ``delta_jss``, ``scale`` the task's labels. ``place`` is the
    file and row, or the folder.
    """

    judge: Text
    task: Text
    vendor: str | None = None
    scale: str | None = None
    scoring: str | None = None
    jss: Share = None
    jss_repeat: Share = None
    delta_jss: Share = None
    delta_ci_low: Share = None
    delta_ci_high: Share = None
    n_items: int | None = None
    item_loss_fraction: Share = None
    refusal_discordance: Share = None
    accuracy: Share = None
    place: str = ""

    @property
    def group(self) -> tuple[str, str | None, str | None]:
        """Task, scale and scoring: only cells that share them are pooled."""
        return self.task, self.scale, self.scoring


Agreement = dict[tuple[Any, ...], dict[str, dict[Any, bool]]]
"""For each group, the verdict of each judge's decided pairs (runs only)."""


def read_sources(sources: Sequence[str], rules: PoolRules) -> tuple[list[Cell], Agreement]:
    """The cells of tables and run folders; ``v2`` are the published ones.

    Raises JudgeSenseError for a file that is neither, a row that is no cell (a figure in percent,
    say), an unknown judge among ``vendors``, and a judge with two cells in a group.
    """
    cells, agreement = list[Cell](), Agreement()
    for source in sources:
        path = V2_CELLS if source == PUBLISHED else Path(source)
        cells += _of_run(path, agreement) if path.is_dir() else _of_table(path)
    judges = {cell.judge for cell in cells}
    if unknown := sorted(rules.vendors.keys() - judges):
        raise JudgeSenseError(
            f"--set vendors: unknown judge {unknown[0]!r}; choose from {', '.join(sorted(judges))}"
        )
    cell_of: dict[tuple[Any, ...], Cell] = {}
    for at, cell in enumerate(cells):
        key = (*cell.group, cell.judge)
        if key in cell_of:
            raise JudgeSenseError(
                f"{cell.place}: {cell.judge} on {cell.task} is already in {cell_of[key].place}; "
                "remove one of the two, because a judge counts once per task"
            )
        vendor = rules.vendors.get(cell.judge, cell.vendor)
        known_vendor = None if (vendor or UNKNOWN).strip().lower() == UNKNOWN else vendor
        cell_of[key] = cells[at] = cell.model_copy(update={"vendor": known_vendor})
    return cells, agreement


def _of_table(path: Path) -> Iterator[Cell]:
    for record in read_table(path):
        row = {key: value for key, value in record.values.items() if value not in ("", None)}
        if "n_clusters_delta" in row:
            # v2's clusters behind ΔJSS; its n_items are those of the JSS.
            row["n_items"] = row["n_clusters_delta"]
        cell = validate(Cell, {**row, "place": record.place}, record.place, "a cell")
        if cell.delta_jss is None and "delta_missing_reason" not in row:
            if cell.jss is None or cell.jss_repeat is None:
                raise JudgeSenseError(
                    f"{record.place}: the row needs delta_jss, or both jss and jss_repeat (the JSS "
                    "of the same prompts asked again)"
                )
            cell = cell.model_copy(update={"delta_jss": cell.jss - cell.jss_repeat})
        yield cell


def _of_run(folder: Path, agreement: Agreement) -> Iterator[Cell]:
    for case in read_judged(folder).cases:
        answers, mapped = case.answers, case.mapped
        refused = answers.log.labels == REFUSED
        is_known = answers.known
        apart = refused[answers.mapped_a[is_known]] != refused[answers.mapped_b[is_known]]
        figures = {
            key: getattr(mapped, key)
            for key in ("jss", "jss_repeat", "delta_jss", "delta_ci_low", "delta_ci_high")
        }
        cell = Cell(
            judge=case.judge,
            task=case.task,
            scale="|".join(answers.task.labels),
            scoring=case.scoring,
            n_items=mapped.n_clusters,
            place=str(folder),
            accuracy=mapped.accuracy,
            refusal_discordance=float(np.mean(apart)) if len(apart) else None,
            **figures,
        )
        at = np.flatnonzero(answers.decided())
        is_same = answers.mapped_a == answers.mapped_b
        if len(at):
            agreement.setdefault(cell.group, {})[case.judge] = {
                answers.places[pair]: bool(is_same[pair]) for pair in at.tolist()
            }
        yield cell
