"""Was it the judge: the change of a mean between two results, and of each verdict.

An output that is the same in both results is an anchor: the judged system did not change there, so
a change of the verdict is the judge's (`judgesense.statistics.attribution`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from judgesense.comparison.baseline_result import ChangedVerdict
from judgesense.comparison.paired import grouped, most_frequent
from judgesense.comparison.score_change_result import (
    Cause,
    GroupNoise,
    Noise,
    ScoreChange,
    Split,
    Unit,
    too_few,
)
from judgesense.comparison.verdict_changes import require_same_scale
from judgesense.comparison.verdicts import Verdicts, verdicts_of
from judgesense.errors import JudgeSenseError
from judgesense.importers.outputs import is_hash
from judgesense.log.answers import Answers
from judgesense.log.folder import Run, read_run
from judgesense.statistics.arrays import Bools, Floats
from judgesense.statistics.attribution import FEWEST_ANCHORS, Part, anchors_differ, attribute
from judgesense.statistics.intervals import wilson_cluster
from judgesense.tasks import UNDECIDED
from judgesense.text import join

SMALLEST_CHANGE = 0.1
"""The change that a gate should see, as a share of the range of values."""

_ERROR = 0.05
"""The chance that an interval misses, for all tasks together."""

_OUTCOMES = {"win": 1.0, "tie": 0.5, "draw": 0.5, "loss": 0.0, "lose": 0.0}
"""Labels of a comparison with a fixed other system."""

_CAUSES: Mapping[tuple[bool, bool], Literal["judge", "system", "both", "noise"]] = {
    (True, False): "judge",
    (False, True): "system",
    (True, True): "both",
    (False, False): "noise",
}
"""By whether the judge's and the system's part are other than 0."""

_TWO_SIDED, _POWER = 1.96, 0.84
"""Normal quantiles of a 95% interval and of a chance of 80%."""

Item = tuple[str, ...]
"""An item; with its system where both results have the same systems."""
Key = tuple[str, str]
"""A wording and an option order."""


@dataclass(frozen=True)
class _Side:
    """One judge on one task in one result."""

    run: Run
    answers: Answers

    @cached_property
    def verdicts(self) -> Verdicts:
        """All its answers."""
        return replace(verdicts_of(self.answers, self.run.folder), source=_source(self.run))

    @property
    def task(self) -> str:
        """The task's name; "" where it is only the name of the file."""
        columns = self.run.record.get("imported", {}).get("columns", {})
        return "" if str(columns.get("task", "")).startswith(":") else self.answers.task.name

    @property
    def outputs(self) -> str | None:
        """What a prompt's id stands for: ``prompt``, ``text`` or ``hash``; None if nothing."""
        if "imported" not in self.run.record:
            return "prompt"
        names = self.run.record.get("outputs")
        return None if not names else "hash" if all(map(is_hash, names)) else "text"


def _source(run: Run) -> str:
    """The file of an import, the folder of a run."""
    return str(run.record.get("imported", {}).get("source", run.folder))


def score_changes(
    old: Path, new: Path, *, anchors: Path | None = None, positive: str | None = None
) -> list[ScoreChange]:
    """The change of each task's mean between two folders of runs or imports, and whose it is.

    ``anchors`` is the folder with the later judge's verdicts on the earlier outputs, and
    ``positive`` the label that counts as 1, where the labels do not show it.

    Raises JudgeSenseError for results without a common task or item, on two scales, and for anchors
    of another judge.
    """
    runs = read_run(old), read_run(new)
    couples = list(_couples(*([_Side(run, each) for each in run.judged] for run in runs)))
    if not couples:
        tasks = [join(sorted({each.task.name for each in run.judged})) for run in runs]
        raise JudgeSenseError(
            f"{_source(runs[0])} and {_source(runs[1])} have no task in common, or several judges "
            "on it: they judged "
            f"{tasks[0]} and {tasks[1]}. Name the task with --columns task=COLUMN or the judge's "
            "verdicts with --verdict"
        )
    again: list[_Side] = []
    if anchors is not None:
        run = read_run(anchors)
        again = [_Side(run, each) for each in run.judged]
        if changed := judge_changes(new, anchors):
            raise JudgeSenseError(
                f"{_source(run)} is not of the later judge: {join(changed)}. Judge the old outputs "
                "with the judge of the new result"
            )
    is_same_judge = not judge_changes(old, new)
    changes = []
    for one, two in couples:
        fits = [side for side in again if len(again) == 1 or side.task == two.task]
        changes.append(
            _Pairing(one, two, fits[0] if fits else None, 1 - _ERROR / len(couples)).change(
                positive, is_same_judge
            )
        )
    return changes


def judge_changes(old: Path, new: Path) -> list[str]:
    """What two results show to have changed about the judge: its model, prompt, rubric, scale."""
    sides = [_identity(folder) for folder in (old, new)]
    return [
        f"{name} was {sides[0].get(name, 'not stated')} and is {sides[1].get(name, 'not stated')}"
        for name in dict.fromkeys([*sides[0], *sides[1]])
        if sides[0].get(name) != sides[1].get(name)
    ]


def _identity(folder: Path) -> dict[str, str]:
    """What a result says of its judge, by name."""
    record = read_run(folder).record
    if "imported" in record:
        facts = {name: str(value) for name, value in record.get("identity", {}).items()}
        verdicts = record["imported"].get("columns", {}).get("raw_decision")
        return facts | ({"the column of verdicts": verdicts} if verdicts else {})
    facts = {}
    for entry in record.get("judges", ()):
        facts.setdefault("judge", "")
        facts["judge"] = join([*filter(None, [facts["judge"]]), entry["name"]])
    for name in ("rubric", "settings"):
        if value := record.get("asked", {}).get(name):
            facts[name] = json.dumps(value, sort_keys=True, default=str)[:200]
    return facts


def _couples(old: Sequence[_Side], new: Sequence[_Side]) -> Iterator[tuple[_Side, _Side]]:
    """Each task's judge before and after: the one of the same name, or the only one."""
    tasks = [{side.task for side in sides} for sides in (old, new)]
    # A file without a column of tasks has one, whatever its name.
    is_one = len(tasks[0]) == len(tasks[1]) == 1 and "" in tasks[0] | tasks[1]
    for task in dict.fromkeys(side.task for side in new):
        before = [side for side in old if is_one or side.task == task]
        after = [side for side in new if side.task == task]
        scorings = {s.answers.scoring for s in before} & {s.answers.scoring for s in after}
        if scorings:
            before, after = (
                [side for side in sides if side.answers.scoring == max(scorings)]
                for sides in (before, after)
            )
        if len(before) == len(after) == 1:
            yield before[0], after[0]
            continue
        names = [
            {side.answers.judge.partition("@")[0]: side for side in sides}
            for sides in (before, after)
        ]
        for name in names[0]:
            if name in names[1]:
                yield names[0][name], names[1][name]


class _Pairing:
    """Two results of a task on the items that both have."""

    def __init__(self, old: _Side, new: _Side, again: _Side | None, level: float) -> None:
        self.old, self.new, self.level = old, new, level
        one, two = old.verdicts, new.verdicts
        _require_same_scale(one, two)
        systems = [{*side.system} for side in (one, two)]
        self.with_system = systems[0] == systems[1] and len(systems[0]) > 1
        wordings = {*one.wording} & {*two.wording}
        keyed = [self._rows(side, wordings) for side in (one, two)]
        self.items = [item for item in keyed[0] if item in keyed[1]]
        if not self.items:
            raise JudgeSenseError(
                f"{one.source} and {two.source} have no item in common; give both the same item_id"
            )
        self.rows = [[side[item] for item in self.items] for side in keyed]
        for item, before, after in zip(self.items, *self.rows, strict=True):
            for rows, side in ((before, one), (after, two)):
                if not self.with_system and len({side.system[r] for r in rows}) > 1:
                    raise JudgeSenseError(
                        f"{side.source}: item {item[0]!r} has outputs of several systems, and the "
                        "two results name different systems; compare one system at a time"
                    )
        self.same = self._same(one, two, self.rows[0], self.rows[1], (old.outputs, new.outputs))
        self.again: list[list[int]] = [[] for _ in self.items]
        self.third = None if again is None else again.verdicts
        if again is not None and self.third is not None:
            _require_same_scale(two, self.third)
            judged = self._rows(self.third, {*self.third.wording} & wordings)
            self.again = [judged.get(item, []) for item in self.items]
            kinds = old.outputs, again.outputs
            same = self._same(one, self.third, self.rows[0], self.again, kinds)
            if same is not None:
                # An anchor is the old output; the file may have others.
                pairs = zip(self.again, same, strict=True)
                self.again = [rows if is_same else [] for rows, is_same in pairs]
            if not any(self.again):
                raise JudgeSenseError(
                    f"{self.third.source} has none of the outputs of {one.source}; judge these "
                    "again"
                )

    def _rows(self, side: Verdicts, wordings: set[str]) -> dict[Item, list[int]]:
        """The rows of each item, under the wordings that both results have, if there are any."""
        found: dict[Item, list[int]] = {}
        for row, item in enumerate(side.item):
            if not wordings or side.wording[row] in wordings:
                key = (item, side.system[row]) if self.with_system else (item,)
                found.setdefault(key, []).append(row)
        return found

    @staticmethod
    def _same(
        one: Verdicts,
        two: Verdicts,
        before: Sequence[Sequence[int]],
        after: Sequence[Sequence[int]],
        kinds: tuple[str | None, str | None],
    ) -> Bools | None:
        """Whether each item's output is the same in both results; None where that is unknown.

        Of a run, one prompt that is the same shows it, for other wordings may have changed. Of a
        file, all outputs of the item are the same.
        """
        if None in kinds or kinds[0] != kinds[1] or one.prompt is None or two.prompt is None:
            return None
        same = []
        for rows, others in zip(before, after, strict=True):
            left = {(one.order[row], one.prompt[row]) for row in rows}
            right = {(two.order[row], two.prompt[row]) for row in others}
            same.append(bool(left & right) if kinds[0] == "prompt" else left == right)
        return np.array(same)

    def change(self, positive: str | None, is_same_judge: bool) -> ScoreChange:
        """The change of the mean and of each verdict."""
        one, two = self.old.verdicts, self.new.verdicts
        values, unit, good, reason = _values(one, two, self.third, positive)
        means = [_means(side, rows) for side, rows in zip(values, self.rows, strict=False)]
        usual = [_usual(v, rows) for v, rows in zip((one, two), self.rows, strict=True)]
        if reason is not None:
            means = [np.array([float(v not in UNDECIDED) or np.nan for v in u]) for u in usual]
        known = ~np.isnan(means[0]) & ~np.isnan(means[1])
        split, p = None, None
        if reason is None:
            split, reason, p = self._split(means, values, known)
        moves = None
        if split is not None:
            judge = Part(split.judge, split.judge_ci_low, split.judge_ci_high)
            system = Part(split.system, split.system_ci_low, split.system_ci_high)
            moves = not judge.is_zero_inside, not system.is_zero_inside
        is_judge_still = is_same_judge and moves is not None and not moves[0]
        is_judge_still &= not self._is_mostly_noise(usual)
        flips = tuple(self._flips(usual, means if unit else None, is_judge_still))
        noise = None
        if is_same_judge and self.same is not None and unit is not None:
            noise = self._noise(means, usual, known & self.same, _span(values))
        shown = unit is not None and bool(known.any())
        return ScoreChange(
            task=self.new.answers.task.name,
            judge_old=one.judge,
            judge_new=two.judge,
            unit=unit or "score",
            positive=good,
            old=float(means[0][known].mean()) if shown else None,
            new=float(means[1][known].mean()) if shown else None,
            n_items=int(known.sum()),
            n_failed=int((~known).sum()),
            n_same=None if self.same is None else int(self.same.sum()),
            cause="cannot tell" if moves is None else _CAUSES[moves],
            split=split,
            split_reason=reason,
            flips=flips,
            noise=noise,
            anchors_differ=p,
        )

    def _split(
        self, means: Sequence[Floats], values: Sequence[Floats], known: Bools
    ) -> tuple[Split | None, str | None, float | None]:
        """The split, or why there is none; and whether anchors differ from the other items."""
        again = np.full(len(self.items), np.nan)
        if self.same is not None:
            again[self.same] = means[1][self.same]
        if len(values) > 2:
            judged = _means(values[2], self.again)
            again = np.where(np.isnan(again), judged, again)
        is_anchor = ~np.isnan(again) & known
        if self.same is None and not is_anchor.any():
            return None, self._no_outputs, None
        if not known.any():
            return None, "no item has a verdict in both results", None
        clusters = np.array([self.old.verdicts.cluster[rows[0]] for rows in self.rows[0]])[known]
        levels = np.unique(np.concatenate([side[~np.isnan(side)] for side in values]))
        step = float(np.diff(levels).min()) if len(levels) > 1 else 1.0
        old, new = means[0][known], means[1][known]
        found = attribute(old, new, again[known], clusters, self.level, step)
        if found is None:
            n_clusters = len({*clusters[is_anchor[known]]})
            return None, too_few(n_clusters, int(is_anchor.sum())), None
        split = Split(
            change=found.change.estimate,
            judge=found.judge.estimate,
            judge_ci_low=found.judge.ci_low,
            judge_ci_high=found.judge.ci_high,
            system=found.system.estimate,
            system_ci_low=found.system.ci_low,
            system_ci_high=found.system.ci_high,
            n_anchors=found.n_anchors,
            n_items=found.n_items,
        )
        return split, None, anchors_differ(old, is_anchor[known], clusters)

    @property
    def _no_outputs(self) -> str:
        """Why nothing says which outputs are the same."""
        kinds = self.old.outputs, self.new.outputs
        for side, kind in zip((self.old, self.new), kinds, strict=True):
            if kind is None:
                source = side.verdicts.source
                if "outputs" not in side.run.record:
                    return f"{source} was imported without its outputs; name the file itself"
                return f"{source} has no column of outputs; name it with --columns output=COLUMN"
        return "outputs cannot be compared: one result has their texts and the other has not"

    def _is_mostly_noise(self, usual: Sequence[Sequence[str]]) -> bool:
        """Whether verdicts change on the same output at least half as often as on another one, so
        that a change on another output is as likely noise as not."""
        if self.same is None or self.same.all():
            return False
        flipped = np.array([before != after for before, after in zip(*usual, strict=True)])
        return bool(
            2 * flipped[self.same].sum() * (~self.same).sum()
            > flipped[~self.same].sum() * self.same.sum()
        )

    def _flips(
        self, usual: Sequence[Sequence[str]], means: Sequence[Floats] | None, is_judge_still: bool
    ) -> Iterator[ChangedVerdict]:
        """The items whose usual verdict is another one."""
        gold = [self.new.verdicts.gold[rows[0]] for rows in self.rows[1]]
        for at, (item, before, after) in enumerate(zip(self.items, *usual, strict=True)):
            if before == after:
                continue
            rise = 0.0 if means is None else float(means[1][at] - means[0][at])
            kind = "broken" if rise < 0 else "fixed" if rise > 0 else "changed"
            if gold[at] in (before, after):
                kind = "broken" if gold[at] == before else "fixed"
            yield {
                "task": self.new.answers.task.name,
                "item_id": "/".join(item),
                "order": "-",
                "before": before,
                "after": after,
                "gold": gold[at] or None,
                "kind": kind,  # type: ignore[typeddict-item]
                "cause": self._cause(at, before, after, is_judge_still),
            }

    def _cause(self, at: int, before: str, after: str, is_judge_still: bool) -> Cause:
        if before in UNDECIDED or after in UNDECIDED:
            return "failed call"
        if self.same is not None and self.same[at]:
            return "judge"
        if self.third is not None and self.again[at]:
            again = most_frequent(self.third.verdict[self.again[at]])
            return "system" if again == before else "judge" if again == after else "cannot tell"
        return "system" if is_judge_still and self.same is not None else "cannot tell"

    def _noise(
        self, means: Sequence[Floats], usual: Sequence[Sequence[str]], at: Bools, span: float
    ) -> Noise | None:
        """What asking one judge again changes on the items ``at``, whose output is the same."""
        n, places = int(at.sum()), np.flatnonzero(at)
        if n < FEWEST_ANCHORS:
            return None
        flipped = np.array([before != after for before, after in zip(*usual, strict=True)])[at]
        clusters = [self.old.verdicts.cluster[self.rows[0][place][0]] for place in places]
        ends = wilson_cluster(flipped, clusters)
        gaps = (means[1] - means[0])[at]
        # Between two runs of one judge the mean change is noise; around 0 it is what is known best.
        spread, change = float(np.sqrt((gaps**2).mean())), SMALLEST_CHANGE * span
        needed = ((_TWO_SIDED + _POWER) * spread / change) ** 2 if change else 0.0
        by, names = self._groups(places)
        groups = []
        for name, rows in grouped(names, places.tolist()).items() if by else ():
            moves = _TWO_SIDED * spread / math.sqrt(len(rows))
            groups.append(
                GroupNoise(
                    name=name,
                    n_items=len(rows),
                    old=float(means[0][rows].mean()),
                    new=float(means[1][rows].mean()),
                    n_flipped=int(flipped[np.isin(places, rows)].sum()),
                    moves_by=moves,
                    decides=needed <= len(rows),
                    repeats_needed=max(1, math.ceil(needed / len(rows))),
                )
            )
        return Noise(
            n_items=n,
            n_flipped=int(flipped.sum()),
            flipped=float(flipped.mean()),
            ci_low=ends.low,
            ci_high=ends.high,
            moves_by=_TWO_SIDED * spread / math.sqrt(n),
            change=change,
            items_needed=max(2, math.ceil(needed)),
            repeats_needed=max(1, math.ceil(needed / n)),
            by=by,
            groups=tuple(groups),
        )

    def _groups(self, places: Any) -> tuple[str | None, list[str]]:
        """The first column of the file by which items form groups, and the group of each item."""
        table = self.new.run.items
        if table is None:
            return None, []
        of_column: dict[str, dict[str, str]] = {}
        for row in table.to_pylist():
            if row.get("task") in (None, self.new.answers.task.name):
                of_column.setdefault(row["column"], {})[row["item_id"]] = row["text"]
        names = [self.items[place][0] for place in places]
        for column, texts in of_column.items():
            groups = [texts.get(name) for name in names]
            if None not in groups and 1 < len({*groups}) <= len(names) / 2:
                return column, [str(group) for group in groups]
        return None, []


def _values(
    one: Verdicts, two: Verdicts, third: Verdicts | None, positive: str | None
) -> tuple[list[Floats], Unit | None, str | None, str | None]:
    """The verdicts as numbers, their unit, the label that counts as 1, and why there are none."""
    sides = [side for side in (one, two, third) if side is not None]
    folded = {label.lower() for side in sides for label in side.labels}
    if positive is None and folded <= _OUTCOMES.keys() and len(folded) > 1:
        return (
            [np.array([_OUTCOMES.get(v.lower(), np.nan) for v in s.verdict]) for s in sides],
            "win rate",
            None,
            None,
        )
    try:
        goods = [side.good(positive) for side in sides]
        values = [side.values(positive) for side in sides]
    except JudgeSenseError:
        reason = (
            f"nothing says which of {', '.join(one.labels)} is better; name the good one with "
            "--positive LABEL"
        )
        return [np.full(len(side), np.nan) for side in sides], None, None, reason
    if one.is_comparison:
        return values, "win rate", None, None
    return values, "score" if goods[0] is None else "passed", goods[0], None


def _require_same_scale(one: Verdicts, two: Verdicts) -> None:
    """Raise JudgeSenseError for two scales; a file has the labels that it happens to have."""
    as_given = (replace(side, is_stated=not side.answers.log.is_imported) for side in (one, two))
    require_same_scale(*as_given)


def _means(values: Floats, rows: Sequence[Sequence[int]]) -> Floats:
    """The mean value of each item, NaN without any."""
    means = np.full(len(rows), np.nan)
    for at, of_item in enumerate(rows):
        known = values[list(of_item)] if of_item else np.array([np.nan])
        if not np.isnan(known).all():
            means[at] = np.nanmean(known)
    return means


def _usual(side: Verdicts, rows: Sequence[Sequence[int]]) -> list[str]:
    """The most frequent verdict of each item."""
    return [most_frequent(side.verdict[list(of_item)]) for of_item in rows]


def _span(values: Sequence[Floats]) -> float:
    """The range of the values that were given."""
    given = np.concatenate([side[~np.isnan(side)] for side in values])
    return float(np.ptp(given)) if len(given) else 0.0
