"""Which outputs people should label next, so that a decision between systems gets surer fastest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from judgesense.decisions.log import read_part
from judgesense.errors import JudgeSenseError
from judgesense.files.tables import read_table
from judgesense.run_folder.folder import PROMPTS_FILE
from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.inputs import check_seed
from judgesense.statistics.label_planning import neyman, spreads_of
from judgesense.statistics.prediction_powered import least_error
from judgesense.statistics.result import ResultMapping, data_frame
from judgesense.systems.estimate import estimate_units, labels_of_units
from judgesense.systems.estimate_data import chosen_systems, step_of
from judgesense.systems.human_labels import Labels
from judgesense.systems.label_files import SUFFIXES, digest, write_for_people
from judgesense.systems.strata import strata_of
from judgesense.systems.units import Units, units_of
from judgesense.systems.verdict_schema import VerdictTable
from judgesense.systems.verdict_table import as_id, read_verdicts

FEWEST_FOR_FIT = 10
"""Labels of a system from which on the verdicts' weight is fitted; below, verdicts count fully."""


@dataclass(frozen=True, eq=False)
class LabelPlan(ResultMapping):
    """The outputs to label next.

    ``rows`` has ``item_id``, ``system_id``, ``stratum`` and ``weight`` of each: how many outputs a
    labelled output of the stratum represents once these labels are in. ``systems`` are those
    between which labels are to decide. ``error_now``, ``error_then`` and ``error_random`` are the
    labels' parts of the standard error now, with these labels, and with as many random ones, as
    the labels so far show; None with too few. ``strata`` counts the strata, ``files`` are those
    written.
    """

    labels: ClassVar = {
        "n": "outputs to label",
        "systems": "to decide between",
        "error_now": "labels' part of the standard error",
        "error_then": "with these labels",
        "error_random": "with as many random ones",
        "files": "written",
    }

    n: int
    systems: list[str]
    strata: int
    error_now: float | None
    error_then: float | None
    error_random: float | None
    files: list[str]
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
    """Pick the outputs whose labels shrink the decision's interval most, and export them.

    Outputs are grouped into strata by the judge's verdicts and doubts. Each stratum gets labels in
    proportion to its size and to how far labels and verdicts are apart in it so far (Neyman
    1934), and outputs are drawn at random within it. `judgesense.estimate` weighs the labels
    accordingly, so its figures stay unbiased. Without labels so far, strata get equal shares:
    label some tens, then pick again.

    Args:
        verdicts: as in `judgesense.estimate`.
        n: how many outputs to pick; fewer if fewer are left.
        out: the file for people: .csv, or .json for Label Studio.
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
    if target.suffix not in SUFFIXES:
        raise JudgeSenseError(f"{target}: unknown file type; use {' or '.join(SUFFIXES)}")
    if n < 1:
        raise JudgeSenseError(f"--next {n}: pick at least one output")
    try:
        check_seed(seed)
    except ValueError as error:
        raise JudgeSenseError(str(error)) from error
    table = read_verdicts(
        verdicts, judge=judge, task=task, scoring=scoring, columns=columns, encoding=encoding
    )
    units = units_of(table, positive)
    given = Labels(np.full(len(units), np.nan), False, 0, 0, None, 0, 0, 0)
    if labels is not None:
        how = {"columns" if k == "label_columns" else k: v for k, v in label_options.items()}
        given = labels_of_units(labels, table, units, positive=positive, encoding=encoding, **how)
    codes = _to_decide(table, units, given, systems, positive)
    picked = pick(units, given.values, codes, n, seed, step_of(table, units, given, positive))
    texts = _texts(table, units, picked.units, Path(items) if items else None, encoding)
    rows = [_row(units, picked, place, blind) for place in range(len(picked.units))]
    numbers = picked.units.tolist()
    verdict, probability = table.column("verdict"), table.column("probability")
    told = [
        (verdict[row] if verdict[row] in table.labels else None, probability[row])
        for row in units.rows[numbers].tolist()
    ]
    files = write_for_people(
        [{**row, **text} for row, text in zip(rows, texts, strict=True)],
        table.labels,
        target,
        judge=table.judge,
        verdicts=told,
    )
    return LabelPlan(
        n=len(rows),
        systems=[units.systems[code] for code in codes],
        strata=picked.strata,
        error_now=picked.error_now,
        error_then=picked.error_then,
        error_random=picked.error_random,
        files=[str(file) for file in files],
        rows=[_row(units, picked, place, False) for place in range(len(rows))],
    )


@dataclass(frozen=True)
class Picked:
    """Units to label: their numbers, strata and weights, and the errors of `LabelPlan`."""

    units: Codes
    stratum: list[str]
    weight: Floats
    strata: int
    error_now: float | None
    error_then: float | None
    error_random: float | None


def pick(
    units: Units,
    labels: Floats,
    systems: Sequence[int],
    n: int,
    seed: int = 0,
    step: float | None = None,
) -> Picked:
    """The n units of some systems to label next.

    Args:
        units: the judged outputs.
        labels: labels so far, shape (len(units),), NaN without one.
        systems: codes of the systems between which labels are to decide.
        n: how many.
        seed: of the draws within strata.
        step: how far a label is off when it is off, as in
            `judgesense.statistics.prediction_powered.powered_mean`.

    Raises:
        JudgeSenseError: every output of the systems has a label.
    """
    own = np.flatnonzero(np.isin(units.system, list(systems)))
    told = labels[own]
    given = ~np.isnan(told)
    if given.all():
        names = ", ".join(units.systems[code] for code in systems)
        raise JudgeSenseError(f"every output of {names} has a label already")
    distinct, strata = np.unique(strata_of(units)[own].astype(str), return_inverse=True)
    h = len(distinct)
    sizes = np.bincount(strata, minlength=h).astype(np.float64)
    taken = np.bincount(strata[given], minlength=h).astype(np.float64)
    system = units.system[own]
    total = np.bincount(system, minlength=len(units.systems)).astype(np.float64)
    # Each stratum lies in one system; its share is that of its system's mean.
    scale = np.array([total[system[strata == code][0]] for code in range(h)])
    spreads = _spreads(told, units.means[own], system, strata, h, step or 0.0)
    added = neyman(sizes, spreads / scale, taken, n)
    rng = np.random.default_rng(seed)
    chosen = np.concatenate(
        [
            rng.choice(np.flatnonzero((strata == code) & ~given), int(count), replace=False)
            for code, count in enumerate(added)
        ]
    ).astype(np.intp)
    # The order must not show the strata.
    chosen = rng.permutation(chosen)
    after = taken + added
    part = sizes / scale
    now = then = random = None
    if given.sum() >= FEWEST_FOR_FIT:
        now = _error(part, spreads, taken)
        then = _error(part, spreads, after)
        # As if the new labels were spread over the systems' outputs at random.
        left = sizes - taken
        random = _error(part, spreads, taken + int(added.sum()) * left / left.sum())
    return Picked(
        own[chosen],
        [str(distinct[code]) for code in strata[chosen]],
        (sizes / np.maximum(after, 1))[strata[chosen]],
        h,
        now,
        then,
        random,
    )


def _spreads(
    labels: Floats, means: Floats, system: Codes, strata: Codes, n_strata: int, step: float
) -> Floats:
    """How far labels are from what verdicts predict, by stratum; equal without labels."""
    predicted = np.where(np.isnan(means), np.nanmean(means), means)
    spreads = np.ones(n_strata)
    for code in np.unique(system):
        own = system == code
        y, f = labels[own], predicted[own]
        given = ~np.isnan(y)
        if given.sum() < 2:
            continue
        weight = 1.0
        if given.sum() >= FEWEST_FOR_FIT and f[given].std() > 0:
            weight = float(np.clip(np.polyfit(f[given], y[given], 1)[0], 0, None))
        inside, codes = np.unique(strata[own], return_inverse=True)
        own_spreads = spreads_of(y, weight * f, codes)
        # Agreement on few labels does not show that none is off.
        n = int(given.sum())
        least = math.sqrt(n) * least_error(step, n)
        shares = np.bincount(codes) / len(codes)
        if math.sqrt(float(shares @ own_spreads**2)) < least:
            own_spreads = np.maximum(own_spreads, least)
        spreads[inside] = own_spreads
    return spreads


def _error(part: Floats, spreads: Floats, labels: Floats) -> float | None:
    if (labels == 0).any():
        return None
    return math.sqrt(float((part**2 * spreads**2 / labels).sum()))


def _to_decide(
    table: VerdictTable,
    units: Units,
    given: Labels,
    systems: Sequence[str] | None,
    positive: str | None,
) -> list[int]:
    """The codes of the systems between which labels are to decide."""
    codes = chosen_systems(units, systems)
    most = 1 if units.comparative else 2
    if len(codes) <= most:
        return codes
    if units.comparative:
        raise JudgeSenseError(
            f"{table.source} compares {len(codes)} pairs of systems; choose one with --systems A,B"
        )
    found = estimate_units(table, units, given, systems=systems, positive=positive)
    return [units.systems.index(row["system"]) for row in found.systems[:2]]


def _row(units: Units, picked: Picked, place: int, blind: bool) -> dict[str, Any]:
    unit = int(picked.units[place])
    item, system = str(units.items[unit]), units.systems[units.system[unit]]
    if blind:
        key = {"unit": digest(item, system)}
    else:
        # In a comparison A and B are those of the file, whichever comes first in the alphabet.
        shown = "|".join(reversed(system.split("|"))) if units.flipped[unit] else system
        key = {"item_id": item, "system_id": shown}
    return {
        **key,
        "stratum": picked.stratum[place],
        "weight": round(float(picked.weight[place]), 6),
    }


def _texts(
    table: VerdictTable, units: Units, chosen: Codes, items: Path | None, encoding: str
) -> list[dict[str, Any]]:
    """What people see of each output; nothing where no source has its text."""
    rows = units.rows[chosen].tolist()
    if items is not None:
        return _from_items(table, units, chosen, items, encoding)
    if table.shown:
        return [dict(table.shown[row]) for row in rows]
    prompts = _prompts(Path(table.source))
    names = units.items[chosen]
    return [{"prompt": prompts[name]} if name in prompts else {} for name in names]


def _prompts(source: Path) -> dict[str, str]:
    """A prompt of each item of a run's folder, or of the run behind a file of ``judge``."""
    folder = source if source.is_dir() else source.with_name(f"{source.name}.run")
    if not (folder / PROMPTS_FILE).is_file():
        return {}
    found = read_part(folder / PROMPTS_FILE).select(["item_id", "text"]).to_pydict()
    return dict(zip(found["item_id"][::-1], found["text"][::-1], strict=True))


_NOT_SHOWN = ("item_id", "system_id", "cluster_id", "gold", "label", "task", "source", "revision",
              "license", "verdict")  # fmt: skip


def _from_items(
    table: VerdictTable, units: Units, chosen: Codes, items: Path, encoding: str
) -> list[dict[str, Any]]:
    found: dict[tuple[str, str | None], dict[str, Any]] = {}
    for record in read_table(items, encoding):
        if record.values.get("item_id") is None:
            raise JudgeSenseError(f"{record.place}: the column 'item_id' is missing or empty")
        system = record.values.get("system_id")
        text = {k: v for k, v in record.values.items() if k not in _NOT_SHOWN and v is not None}
        item, shown = as_id(record.values["item_id"]), as_id(system) or None
        for name, value in (("item_id", item), ("system_id", shown)):
            if not isinstance(value, str | None):
                raise JudgeSenseError(
                    f"{record.place}, {name}: must be text or a number, got {value!r}"
                )
        found[item, shown] = text
    named = table.column("system_id")
    told = []
    for unit in chosen.tolist():
        item = str(units.items[unit])
        own = found.get((item, named[units.rows[unit]]), found.get((item, None)))
        if own is None:
            raise JudgeSenseError(f"{items}: no row for item {item!r}, which is to be labelled")
        told.append(own)
    return told
