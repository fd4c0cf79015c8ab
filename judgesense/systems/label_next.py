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
from judgesense.files.disk import write_text
from judgesense.files.tables import read_table
from judgesense.run_folder.folder import PROMPTS_FILE
from judgesense.statistics.arrays import Codes, Floats, Words
from judgesense.statistics.result import ResultMapping, data_frame
from judgesense.systems.estimate import chosen_systems, estimate_units, labels_of_units
from judgesense.systems.human_labels import Labels, digest
from judgesense.systems.units import Units, strata_of, units_of
from judgesense.systems.verdict_files import as_id, read_verdicts
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
    items: str | Path | None = None,
    blind: bool = False,
    seed: int = 0,
    judge: str | None = None,
    task: str | None = None,
    scoring: str | None = None,
    positive: str | None = None,
    columns: Mapping[str, str] | None = None,
    encoding: str = "utf-8",
    **label_options: Any,
) -> LabelPlan:
    """Pick the outputs whose labels tell most, and export them.

    Outputs are grouped into strata by the judge's verdicts and doubts. Each stratum gets labels in
    proportion to its size and its doubt, and outputs are drawn at random within it.
    `judgesense.estimate` weighs the labels accordingly, so its figures stay unbiased.

    Args:
        verdicts: as in `judgesense.estimate`.
        n: how many outputs to pick; fewer if fewer are left.
        out: the CSV file for people, with a column ``label`` to fill in and a column ``rater``. It
            does not show verdicts.
        labels: the labels so far: a random sample, or picked by this function.
        systems: two systems to decide between; by default the two best so far.
        items: a file with the texts to show (``item_id`` and, if present, ``system_id`` join);
            by default other columns of ``verdicts``, or the prompts of its run.
        blind: replace item and system by an opaque id.
        seed: of the draws.
        judge: as in `judgesense.estimate`, like the arguments below.
        task: as there.
        scoring: as there.
        positive: as there.
        columns: as there.
        encoding: as there.
        label_options: ``label_columns``, ``mapping`` and ``raters``, as there.

    Raises:
        JudgeSenseError: bad input, nothing left to label, or a file that cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     said, out = Path(folder, "verdicts.csv"), Path(folder, "next.csv")
    ...     rows = [f"{n},{s},{n % 2}" for n in range(20) for s in "xy"]
    ...     _ = said.write_text("\\n".join(["item_id,system_id,verdict", *rows]))
    ...     plan = label_next(said, 8, out)
    >>> plan.n, plan.systems
    (8, ['x', 'y'])
    """
    target = Path(out)
    if target.suffix != ".csv":
        raise JudgeSenseError(f"{target}: unknown file type; use .csv")
    if n < 1:
        raise JudgeSenseError(f"--next {n}: pick at least one output")
    if seed < 0:
        raise JudgeSenseError(f"seed is {seed}: pass an integer of at least 0")
    table = read_verdicts(
        verdicts, judge=judge, task=task, scoring=scoring, columns=columns, encoding=encoding
    )
    units = units_of(table, positive)
    given = Labels(np.full(len(units), np.nan))
    if labels is not None:
        how = {"columns" if k == "label_columns" else k: v for k, v in label_options.items()}
        given = labels_of_units(labels, table, units, positive=positive, encoding=encoding, **how)
    codes = _to_decide(table, units, given, systems, positive)
    picked, stratum, weight, n_strata = pick(units, given.values, codes, n, seed)
    keys = [
        {"stratum": str(name), "weight": round(float(each), 6)}
        for name, each in zip(stratum, weight, strict=True)
    ]
    texts = _texts(table, units, picked, Path(items) if items else None, encoding)
    rows = [
        {**(_blind if blind else _named)(units, unit), **key, **text}
        for unit, key, text in zip(picked.tolist(), keys, texts, strict=True)
    ]
    try:
        write_text(target, _as_csv(rows, table.labels))
    except OSError as error:
        raise JudgeSenseError(f"cannot write {target}: {error.strerror or error}") from error
    return LabelPlan(
        n=len(picked),
        systems=[units.systems[code] for code in codes],
        strata=n_strata,
        file=str(target),
        rows=[
            {**_named(units, unit), **key} for unit, key in zip(picked.tolist(), keys, strict=True)
        ],
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
    told = units.predictions
    reach = (np.nanmax(told) - np.nanmin(told)) / 2 or 1.0
    known = ~np.isnan(units.means)
    spread = np.zeros(len(told))
    spread[known] = np.nanstd(told[known], axis=1) / reach
    by_margin = np.where(np.isnan(units.margin), 0.0, 1 - np.tanh(units.margin / 2))
    return np.where(known, np.clip(np.maximum(spread, by_margin), 0.0, 1.0), 1.0)


def _to_decide(
    table: VerdictTable,
    units: Units,
    given: Labels,
    systems: Sequence[str] | None,
    positive: str | None,
) -> list[int]:
    """The codes of the systems between which labels are to decide."""
    codes = chosen_systems(units, systems)
    if len(codes) <= (1 if units.comparative else 2):
        return codes
    if units.comparative:
        raise JudgeSenseError(
            f"{table.source} compares {len(codes)} pairs of systems; choose one with --systems A,B"
        )
    found = estimate_units(table, units, given, systems=systems, positive=positive)
    return [units.systems.index(row["system"]) for row in found.systems[:2]]


def _named(units: Units, unit: int) -> dict[str, Any]:
    system = units.systems[units.system[unit]]
    # In a comparison A and B are those of the file, whichever comes first in the alphabet.
    shown = "|".join(reversed(system.split("|"))) if units.flipped[unit] else system
    return {"item_id": str(units.items[unit]), "system_id": shown}


def _blind(units: Units, unit: int) -> dict[str, Any]:
    return {"unit": digest(str(units.items[unit]), units.systems[units.system[unit]])}


def _as_csv(rows: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> str:
    text = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, [*names, "scale", "label", "rater"], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({**row, "scale": " ".join(labels)})
    return text.getvalue()


def _texts(
    table: VerdictTable, units: Units, picked: Codes, items: Path | None, encoding: str
) -> list[dict[str, Any]]:
    """What people see of each output; nothing where no source has its text."""
    if items is not None:
        return _from_items(table, units, picked, items, encoding)
    if table.shown:
        return [dict(table.shown[row]) for row in units.rows[picked].tolist()]
    source = Path(table.source)
    folder = source if source.is_dir() else source.with_name(f"{source.name}.run")
    prompts: dict[str, str] = {}
    if (folder / PROMPTS_FILE).is_file():
        found = read_part(folder / PROMPTS_FILE).select(["item_id", "text"]).to_pydict()
        prompts = dict(zip(found["item_id"][::-1], found["text"][::-1], strict=True))
    return [{"prompt": prompts[name]} if name in prompts else {} for name in units.items[picked]]


_NOT_SHOWN = ("item_id", "system_id", "cluster_id", "gold", "label", "task", "source", "revision",
              "license", "verdict")  # fmt: skip


def _from_items(
    table: VerdictTable, units: Units, picked: Codes, items: Path, encoding: str
) -> list[dict[str, Any]]:
    found: dict[tuple[Any, Any], dict[str, Any]] = {}
    for record in read_table(items, encoding):
        item, system = (as_id(record.values.get(name)) for name in ("item_id", "system_id"))
        if not isinstance(item, str):
            raise JudgeSenseError(f"{record.place}: the column 'item_id' is missing or empty")
        found[item, system if isinstance(system, str) and system else None] = {
            name: value
            for name, value in record.values.items()
            if name not in _NOT_SHOWN and value is not None
        }
    named = table.column("system_id")
    texts = []
    for unit in picked.tolist():
        item = str(units.items[unit])
        text = found.get((item, named[units.rows[unit]]), found.get((item, None)))
        if text is None:
            raise JudgeSenseError(f"{items}: no row for item {item!r}, which is to be labelled")
        texts.append(text)
    return texts
