"""Which outputs people should label next: the doubtful ones more often, all with known chances."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from judgesense.decisions.log import read_part
from judgesense.errors import JudgeSenseError
from judgesense.files.disk import write_text, writing
from judgesense.run_folder.folder import ITEMS_FILE, PROMPTS_FILE
from judgesense.statistics.arrays import Codes, Floats, Words
from judgesense.statistics.result import ResultMapping, data_frame
from judgesense.systems.estimate import chosen_systems
from judgesense.systems.human_labels import Labels, read_labels
from judgesense.systems.units import Units, strata_of, units_of
from judgesense.systems.verdict_files import read_verdicts
from judgesense.systems.verdict_table import VerdictTable

_SURE = 0.25
"""What an output counts at least, beside 1 for a doubtful one: sure verdicts are wrong too."""

_LEAST = 2
"""Labels that each stratum should have in the end, so that its spread shows."""


@dataclass(frozen=True, eq=False)
class LabelPlan(ResultMapping):
    """The outputs to label next.

    ``rows`` has ``item_id``, ``system_id``, ``stratum`` and ``weight`` of each: how many outputs a
    labelled output of the stratum represents once these labels are in. ``systems`` are those
    between which labels are to decide, ``strata`` counts the strata, ``file`` is the one written.
    """

    labels: ClassVar = {
        "n": "outputs to label",
        "systems": "to decide between",
        "strata": "strata",
        "file": "written",
    }

    n: int
    systems: list[str]
    strata: int
    file: str
    rows: list[dict[str, Any]]

    def to_pandas(self) -> Any:
        """The outputs as a `pandas.DataFrame`, one row each."""
        return data_frame(self.rows)


def label_next(
    verdicts: str | Path,
    n: int,
    out: str | Path,
    labels: str | Path | Sequence[str | Path] | None = None,
    *,
    systems: Sequence[str] | None = None,
    seed: int = 0,
    judge: str | None = None,
    task: str | None = None,
    scoring: str | None = None,
    positive: str | None = None,
    columns: Mapping[str, str] | None = None,
    label_columns: Mapping[str, str] | None = None,
    mapping: Mapping[str, str] | None = None,
    raters: str = "majority",
) -> LabelPlan:
    """Pick the outputs whose labels tell most, and write them to a CSV file for people.

    Outputs are grouped into strata by the judge's verdicts and doubts. Each stratum gets labels in
    proportion to its size and its doubt, and outputs are drawn at random within it.
    `judgesense.estimate` weighs the labels accordingly, so its figures stay unbiased.

    Args:
        verdicts: as in `judgesense.estimate`.
        n: how many outputs to pick; fewer if fewer are left.
        out: the CSV file, with columns ``label`` and ``rater`` to fill in. It shows other columns
            of ``verdicts``, or the prompts of its run, and no verdicts.
        labels: the labels so far: a random sample, or picked by this function.
        systems: the systems to decide between, such as two; all by default.
        seed: of the draws.
        judge: as in `judgesense.estimate`, like the arguments below.
        task: as there.
        scoring: as there.
        positive: as there.
        columns: as there.
        label_columns: as there.
        mapping: as there.
        raters: as there.

    Raises:
        JudgeSenseError: bad input, nothing left to label, or a file that cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     judged, out = Path(folder, "verdicts.csv"), Path(folder, "next.csv")
    ...     rows = [f"{n},{s},{n % 2}" for n in range(20) for s in "xy"]
    ...     _ = judged.write_text("\\n".join(["item_id,system_id,verdict", *rows]))
    ...     plan = label_next(judged, 8, out)
    >>> plan.n, plan.systems
    (8, ['x', 'y'])
    """
    target = Path(out)
    if target.suffix != ".csv":
        raise JudgeSenseError(f"{target}: unknown file type; use .csv")
    if n < 1 or seed < 0:
        raise JudgeSenseError(f"n is {n} and seed {seed}; n is at least 1 and seed at least 0")
    table = read_verdicts(verdicts, judge=judge, task=task, scoring=scoring, columns=columns)
    units = units_of(table, positive)
    given = Labels(np.full(len(units), np.nan))
    if labels is not None:
        given = read_labels(
            labels, table, units,
            positive=positive, columns=label_columns, mapping=mapping, raters=raters,
        )  # fmt: skip
    codes = chosen_systems(units, systems)
    picked, stratum, weight, n_strata = pick(units, given.values, codes, n, seed)
    rows = []
    for unit, name, outputs in zip(picked.tolist(), stratum, weight.tolist(), strict=True):
        system = units.systems[units.system[unit]]
        if units.flipped[unit]:
            # A and B are those of the file, whichever comes first in the alphabet.
            system = "|".join(reversed(system.split("|")))
        rows.append(
            {"item_id": str(units.items[unit]), "system_id": system, "stratum": str(name),
             "weight": round(outputs, 6)}
        )  # fmt: skip
    texts = texts_of(table, units, picked)
    columns_written = dict.fromkeys(
        [*rows[0], *(name for text in texts for name in text), "scale", "label", "rater"]
    )
    sheet = io.StringIO()
    writer = csv.DictWriter(sheet, list(columns_written), lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {**row, **text, "scale": " ".join(table.labels)}
        for row, text in zip(rows, texts, strict=True)
    )
    with writing(target):
        write_text(target, sheet.getvalue())
    return LabelPlan(
        len(rows), [units.systems[code] for code in codes], n_strata, str(target), rows
    )


def pick(
    units: Units, labels: Floats, systems: Sequence[int], n: int, seed: int = 0
) -> tuple[Codes, Words, Floats, int]:
    """The n units of some systems to label next.

    Args:
        units: the judged outputs.
        labels: labels so far, shape (len(units),), NaN without one.
        systems: codes of the systems between which labels are to decide.
        n: how many.
        seed: of the draws within strata.

    Returns:
        The picked units; the stratum of each, its weight (units of its stratum per label, once
        these labels are in), and the number of strata.

    Raises:
        JudgeSenseError: every output of the systems has a label.
    """
    own = np.flatnonzero(np.isin(units.system, list(systems)))
    given = ~np.isnan(labels[own])
    if given.all():
        every = ", ".join(units.systems[code] for code in systems)
        raise JudgeSenseError(f"every output of {every} has a label already")
    names, strata = np.unique(strata_of(units)[own].astype(str), return_inverse=True)
    h = len(names)
    sizes, taken = np.bincount(strata, minlength=h), np.bincount(strata[given], minlength=h)
    # A small system's mean needs as many labels as a large one's.
    share = 1 / np.bincount(units.system[own])[units.system[own]]
    wanted = np.bincount(strata, share * np.maximum(_SURE, doubts(units)[own]), minlength=h)
    total = taken.copy()
    for _ in range(min(n, int((~given).sum()))):
        room = total < sizes
        short = np.where(total < _LEAST, np.inf, wanted / (total + 1))
        total[np.argmax(np.where(room, short, -1.0))] += 1
    rng = np.random.default_rng(seed)
    picked = np.concatenate(
        [
            rng.choice(np.flatnonzero((strata == code) & ~given), int(more), replace=False)
            for code, more in enumerate(total - taken)
        ]
    ).astype(np.intp)
    picked = rng.permutation(picked)  # The order must not show the strata.
    at = strata[picked]
    return own[picked], names[at], (sizes / np.maximum(total, 1))[at], h


def doubts(units: Units) -> Floats:
    """How doubtful the judge is of each output, shape (n,), from 0 to 1.

    The larger of two signs: how far wordings differ (1: half of them at either end of the scale),
    and the probability of another label, doubled, by the margin. 1 without a verdict.
    """
    verdicts = units.predictions
    known = ~np.isnan(units.means)
    reach = np.ptp(verdicts[~np.isnan(verdicts)]) / 2 if known.any() else 1.0
    spread = np.zeros(len(verdicts))
    spread[known] = np.nanstd(verdicts[known], axis=1) / (reach or 1.0)
    by_margin = np.where(np.isnan(units.margin), 0.0, 1 - units.margin)
    return np.where(known, np.clip(np.maximum(spread, by_margin), 0.0, 1.0), 1.0)


def texts_of(table: VerdictTable, units: Units, picked: Codes) -> list[Mapping[str, Any]]:
    """What people see of each picked output; nothing where no source has its text."""
    if any(table.shown):
        return [table.shown[row] for row in units.rows[picked].tolist()]
    source = Path(table.source)
    folder = source if source.is_dir() else source.with_name(f"{source.name}.run")
    texts: dict[str, dict[str, str]] = {}
    if (folder / ITEMS_FILE).is_file():
        columns = read_part(folder / ITEMS_FILE).to_pydict()
        for item, name, text in zip(*columns.values(), strict=True):
            texts.setdefault(item, {})[name] = text
    elif (folder / PROMPTS_FILE).is_file():
        columns = read_part(folder / PROMPTS_FILE).select(["item_id", "text"]).to_pydict()
        for item, text in zip(*columns.values(), strict=True):
            texts.setdefault(item, {"prompt": text})
    return [texts.get(item, {}) for item in units.items[picked]]
