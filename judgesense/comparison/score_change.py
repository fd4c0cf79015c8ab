"""Was it the judge: the change of a mean between two results, and of each verdict.

An output that is the same in both results is an anchor: the judged system did not change there, so
a change of the verdict is the judge's (`judgesense.statistics.attribution`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from judgesense.comparison.baseline_result import ChangedVerdict
from judgesense.comparison.paired import most_frequent
from judgesense.comparison.score_change_result import (
    Cause,
    ScoreChange,
    Split,
    Unit,
    too_few,
)
from judgesense.comparison.score_noise import groups_of, noise_of
from judgesense.comparison.score_sides import Side, couples_of, judge_changes, source_of
from judgesense.comparison.verdict_changes import require_same_scale
from judgesense.comparison.verdicts import Verdicts
from judgesense.errors import JudgeSenseError
from judgesense.log.folder import read_run
from judgesense.statistics.arrays import Bools, Floats
from judgesense.statistics.attribution import Part, anchors_differ, attribute
from judgesense.tasks import UNDECIDED
from judgesense.text import join

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

Item = tuple[str, ...]
"""An item; with its system where both results have the same systems."""


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
    couples = list(couples_of(*([Side(run, each) for each in run.judged] for run in runs)))
    if not couples:
        judged = [
            f"{source_of(run)} judged {join(sorted({each.task.name for each in run.judged}))}"
            for run in runs
        ]
        raise JudgeSenseError(
            f"no task in common, or several judges on it: {join(judged)}. Name the task with "
            "--columns task=COLUMN or the judge's verdicts with --verdict"
        )
    again: list[Side] = []
    if anchors is not None:
        run = read_run(anchors)
        again = [Side(run, each) for each in run.judged]
        if changed := judge_changes(new, anchors):
            raise JudgeSenseError(
                f"{source_of(run)} is not of the later judge: {join(changed)}. Judge the old "
                "outputs with the judge of the new result"
            )
    is_same = not judge_changes(old, new, names=False)
    changes = []
    for one, two in couples:
        fits = [side for side in again if len(again) == 1 or side.task == two.task]
        pairing = _Pairing(one, two, fits[0] if fits else None, 1 - _ERROR / len(couples))
        is_same_judge = is_same and one.answers.judge == two.answers.judge
        changes.append(pairing.change(positive, is_same_judge))
    return changes


class _Pairing:
    """Two results of a task on the items that both have."""

    def __init__(self, old: Side, new: Side, again: Side | None, level: float) -> None:
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
        self.same = self._same(old, new, self.rows[0], self.rows[1])
        self.again: list[list[int]] = [[] for _ in self.items]
        self.third = None if again is None else again.verdicts
        if again is not None and self.third is not None:
            _require_same_scale(two, self.third)
            judged = self._rows(self.third, {*self.third.wording} & wordings)
            self.again = [judged.get(item, []) for item in self.items]
            same = self._same(old, again, self.rows[0], self.again)
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
        old: Side, new: Side, before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]
    ) -> Bools | None:
        """Whether each item's output is the same in both results; None where that is unknown.

        Runs on the same data have the same outputs, whatever the rubric. Of other runs, one prompt
        that is the same shows it, for other wordings may have changed. Of a file, all outputs of
        the item are the same.
        """
        if old.data is not None and old.data == new.data:
            return np.ones(len(before), dtype=np.bool_)
        one, two = old.verdicts, new.verdicts
        if (
            not old.outputs
            or old.outputs != new.outputs
            or one.prompt is None
            or two.prompt is None
        ):
            return None
        same = []
        for rows, others in zip(before, after, strict=True):
            left = {(one.order[row], one.prompt[row]) for row in rows}
            right = {(two.order[row], two.prompt[row]) for row in others}
            same.append(bool(left & right) if old.outputs == "prompt" else left == right)
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
        only_better = False
        if is_same_judge and moves is not None and moves[0] and self.same is not None:
            rise = (means[1] - means[0])[known & self.same]
            only_better = bool((rise >= 0).all() and (rise > 0).any())
        noise = None
        if is_same_judge and self.same is not None and unit is not None:
            at = np.flatnonzero(known & self.same)
            names = [self.items[place][0] for place in at]
            noise = noise_of(
                means[0][at],
                means[1][at],
                self._flipped(usual)[at],
                [one.cluster[self.rows[0][place][0]] for place in at],
                _span(values),
                groups_of(self.new.run.items, self.new.answers.task.name, names),
            )
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
            cause="cannot tell" if moves is None or only_better else _CAUSES[moves],
            only_better=only_better,
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
            what = "prompt" if self.old.outputs == "prompt" else "output"
            return None, too_few(n_clusters, int(is_anchor.sum()), int(known.sum()), what), None
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

    @staticmethod
    def _flipped(usual: Sequence[Sequence[str]]) -> Bools:
        """Whether each item's verdict changed."""
        return np.array([before != after for before, after in zip(*usual, strict=True)])

    def _is_mostly_noise(self, usual: Sequence[Sequence[str]]) -> bool:
        """Whether verdicts change on the same output at least half as often as on another one, so
        that a change on another output is as likely noise as not."""
        if self.same is None or self.same.all():
            return False
        flipped = self._flipped(usual)
        return bool(
            2 * flipped[self.same].sum() * (~self.same).sum()
            > flipped[~self.same].sum() * self.same.sum()
        )

    def _flips(
        self, usual: Sequence[Sequence[str]], means: Sequence[Floats] | None, is_judge_still: bool
    ) -> Iterator[ChangedVerdict]:
        """The items whose usual verdict changed."""
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
