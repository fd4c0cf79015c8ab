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

from judgesense.comparison.baseline_result import ChangedVerdict, changed_verdict
from judgesense.comparison.paired import most_frequent
from judgesense.comparison.score_change_result import (
    Cause,
    Noise,
    ScoreChange,
    Split,
    Unit,
    too_few,
)
from judgesense.comparison.score_noise import groups_of, noise_of
from judgesense.comparison.score_sides import Side, couples_of, judge_changes, source_of
from judgesense.comparison.selection import Chosen, anchors_unlike, chosen_by_value
from judgesense.comparison.verdict_changes import require_same_scale
from judgesense.comparison.verdicts import Verdicts
from judgesense.errors import JudgeSenseError
from judgesense.log.folder import read_run
from judgesense.measure.thresholds import SIGNIFICANT
from judgesense.statistics.arrays import Bools, Floats, Words
from judgesense.statistics.attribution import Attribution, anchors_differ, attribute
from judgesense.tasks import UNDECIDED
from judgesense.text import join

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
        level = 1 - SIGNIFICANT / len(couples)
        pairing = _Pairing(one, two, fits[0] if fits else None, level, positive)
        changes.append(pairing.change(is_same and one.answers.judge == two.answers.judge))
    return changes


class _Pairing:
    """Two results of a task on the items that both have."""

    def __init__(
        self, old: Side, new: Side, again: Side | None, level: float, positive: str | None
    ) -> None:
        self.old, self.new, self.level = old, new, level
        self.task = new.answers.task.name
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
        self.absent = [rows for item, rows in keyed[0].items() if item not in keyed[1]]
        self._require_one_system()
        self.same = self._same(new, self.rows[1])
        self.third = None if again is None else again.verdicts
        self.again: list[list[int]] = [[] for _ in self.items]
        if again is not None and self.third is not None:
            _require_same_scale(two, self.third)
            judged = self._rows(self.third, {*self.third.wording} & wordings)
            rows = [judged.get(item, []) for item in self.items]
            # An anchor is the old output; the file may have others.
            same = self._same(again, rows)
            is_old = [True] * len(rows) if same is None else same
            self.again = [of_item if old else [] for of_item, old in zip(rows, is_old, strict=True)]
            if not any(self.again):
                raise JudgeSenseError(
                    f"{self.third.source} has none of the outputs of {one.source}; judge these "
                    "again"
                )
        sides = [one, two] if self.third is None else [one, two, self.third]
        self.values, self.unit, self.positive, self.reason = _values(sides, positive)
        self.usual = [
            [most_frequent(side.verdict[of_item]) for of_item in rows]
            for side, rows in zip((one, two), self.rows, strict=True)
        ]
        self.flipped: Bools = np.array([old != new for old, new in zip(*self.usual, strict=True)])
        self.means = [
            _means(side, rows) for side, rows in zip(self.values, self.rows, strict=False)
        ]
        if self.reason is not None:
            # Whether there is a verdict, which needs no order.
            self.means = [
                np.array([np.nan if v in UNDECIDED else 1.0 for v in side]) for side in self.usual
            ]
        self.known: Bools = ~np.isnan(self.means[0]) & ~np.isnan(self.means[1])

    def _rows(self, side: Verdicts, wordings: set[str]) -> dict[Item, list[int]]:
        """The rows of each item, under the wordings that both results have, if there are any."""
        found: dict[Item, list[int]] = {}
        for row, item in enumerate(side.item):
            if not wordings or side.wording[row] in wordings:
                key = (item, side.system[row]) if self.with_system else (item,)
                found.setdefault(key, []).append(row)
        return found

    def _require_one_system(self) -> None:
        """Raise JudgeSenseError for outputs of several systems that only one result names."""
        for side, rows in zip((self.old.verdicts, self.new.verdicts), self.rows, strict=True):
            for item, of_item in zip(self.items, rows, strict=True):
                if not self.with_system and len({*side.system[of_item]}) > 1:
                    raise JudgeSenseError(
                        f"{side.source}: item {item[0]!r} has outputs of several systems, and the "
                        "two results name different systems; compare one system at a time"
                    )

    def _same(self, new: Side, after: Sequence[Sequence[int]]) -> Bools | None:
        """Whether each item's output is that of the old result; None where that is unknown.

        Runs on the same data have the same outputs, whatever the rubric. Of other runs, one prompt
        that is the same shows it, for other wordings may have changed. Of a file, all outputs of
        the item are the same.
        """
        old, one, two = self.old, self.old.verdicts, new.verdicts
        if old.data is not None and old.data == new.data:
            return np.ones(len(after), dtype=np.bool_)
        if not old.outputs or old.outputs != new.outputs:
            return None
        if one.prompt is None or two.prompt is None:
            return None
        same = []
        for rows, others in zip(self.rows[0], after, strict=True):
            left = {(one.order[row], one.prompt[row]) for row in rows}
            right = {(two.order[row], two.prompt[row]) for row in others}
            same.append(bool(left & right) if old.outputs == "prompt" else left == right)
        return np.array(same)

    def change(self, is_same_judge: bool) -> ScoreChange:
        """The change of the mean and of each verdict."""
        found, reason, p = self._split()
        moves = None
        if found is not None:
            moves = not found.judge.is_zero_inside, not found.system.is_zero_inside
        is_judge_still = is_same_judge and moves is not None and not moves[0]
        only_better, noise = False, None
        if is_same_judge and self.same is not None:
            rise = (self.means[1] - self.means[0])[self.known & self.same]
            is_better = bool((rise >= 0).all() and (rise > 0).any())
            only_better = moves is not None and moves[0] and is_better
            noise = None if self.unit is None else self._noise(self.same)
        shown = self.unit is not None and bool(self.known.any())
        old, new = (float(side[self.known].mean()) if shown else None for side in self.means)
        chosen = None
        if is_same_judge and moves is not None and moves[0]:
            chosen = self._chosen()
        is_open = moves is None or only_better or chosen is not None
        return ScoreChange(
            task=self.task,
            judge_old=self.old.verdicts.judge,
            judge_new=self.new.verdicts.judge,
            unit=self.unit or "score",
            positive=self.positive,
            old=old,
            new=new,
            n_items=int(self.known.sum()),
            n_failed=int((~self.known).sum()),
            n_same=None if self.same is None else int(self.same.sum()),
            cause="cannot tell" if moves is None or is_open else _CAUSES[moves],
            only_better=only_better,
            chosen=chosen,
            is_same_judge=is_same_judge,
            split=None if found is None else Split.of(found),
            split_reason=reason,
            flips=tuple(self._flips(is_judge_still and not self._is_mostly_noise)),
            noise=noise,
            anchors_differ=p,
        )

    def _chosen(self) -> Chosen | None:
        """Whether the items with the same output were asked again by their old value."""
        known = self.known if self.same is None else self.known & self.same
        absent = _means(self.values[0], [*self.absent])
        lost = self.means[0][np.isnan(self.means[1])]
        absent = np.concatenate([absent, lost])
        old, new = (side[known] for side in self.means[:2])
        return chosen_by_value(old, new, absent[~np.isnan(absent)])

    def _unlike(self, is_anchor: Bools) -> str | None:
        """How anchors differ from the other items, as far as the old file says."""
        items, names = self.old.run.items, [item[0] for item in self.items]
        columns: dict[str, dict[str, str]] = {}
        for row in [] if items is None or self.with_system else items.to_pylist():
            columns.setdefault(row["column"], {})[row["item_id"]] = row["text"]
        texts = {
            column: [held[name] for name in names]
            for column, held in columns.items()
            if held.keys() >= {*names}
        }
        if self.with_system:
            texts["system_id"] = [item[1] for item in self.items]
        return anchors_unlike(texts, self.old.run.record.get("outputs") or (), is_anchor)

    def _noise(self, same: Bools) -> Noise | None:
        """The judge's noise on the items whose output is the same."""
        at = np.flatnonzero(self.known & same)
        names = [self.items[place][0] for place in at]
        given = np.concatenate([side[~np.isnan(side)] for side in self.values])
        return noise_of(
            self.means[0][at],
            self.means[1][at],
            self.flipped[at],
            self._clusters[at].tolist(),
            float(np.ptp(given)) if len(given) else 0.0,
            groups_of(self.new.run.items, self.task, names),
        )

    @property
    def _clusters(self) -> Words:
        """The cluster of each item."""
        return self.old.verdicts.cluster[[rows[0] for rows in self.rows[0]]]

    def _split(self) -> tuple[Attribution | None, str | None, float | None]:
        """The split, or why there is none; and whether anchors differ from the other items."""
        if self.reason is not None:
            return None, self.reason, None
        known, again = self.known, np.full(len(self.items), np.nan)
        if self.same is not None:
            again[self.same] = self.means[1][self.same]
        if self.third is not None:
            judged = _means(self.values[2], self.again)
            again = np.where(np.isnan(again), judged, again)
        is_anchor = ~np.isnan(again) & known
        if self.same is None and not is_anchor.any():
            return None, self._no_outputs, None
        if not known.any():
            return None, "no item has a verdict in both results", None
        clusters = self._clusters[known]
        levels = np.unique(np.concatenate([side[~np.isnan(side)] for side in self.values]))
        step = float(np.diff(levels).min()) if len(levels) > 1 else 1.0
        old, new = self.means[0][known], self.means[1][known]
        found = attribute(old, new, again[known], clusters, self.level, step)
        if found is None:
            n_clusters = len({*clusters[is_anchor[known]]})
            what = "prompt" if self.old.outputs == "prompt" else "output"
            return None, too_few(n_clusters, int(is_anchor.sum()), int(known.sum()), what), None
        if (unlike := self._unlike(is_anchor)) is not None:
            reason = (
                f"the {is_anchor.sum()} of {len(known)} items whose old output both judged differ "
                f"from the others in {unlike}, and what the judge did on them need not be so on "
                "the others; judge some of the others' old outputs again with the new judge, and "
                "name the result with --anchors"
            )
            return None, reason, None
        return found, None, anchors_differ(old, is_anchor[known], clusters)

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

    @property
    def _is_mostly_noise(self) -> bool:
        """Whether verdicts change on the same output at least half as often as on another one, so
        that a change on another output is as likely noise as not."""
        if self.same is None or self.same.all():
            return False
        of_same, of_others = self.flipped[self.same], self.flipped[~self.same]
        return bool(2 * of_same.sum() * len(of_others) > of_others.sum() * len(of_same))

    def _flips(self, is_judge_still: bool) -> Iterator[ChangedVerdict]:
        """The items whose usual verdict changed."""
        for at in np.flatnonzero(self.flipped).tolist():
            before, after = (side[at] for side in self.usual)
            rise = 0.0 if self.unit is None else float(self.means[1][at] - self.means[0][at])
            gold = self.new.verdicts.gold[self.rows[1][at][0]] or None
            name = "/".join(self.items[at])
            flip = changed_verdict(self.task, name, "-", before, after, gold, rise)
            yield {**flip, "cause": self._cause(at, before, after, is_judge_still)}

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
    sides: Sequence[Verdicts], positive: str | None
) -> tuple[list[Floats], Unit | None, str | None, str | None]:
    """The verdicts as numbers, their unit, the label that counts as 1, and why there are none."""
    folded = {label.lower() for side in sides for label in side.labels}
    if positive is None and folded <= _OUTCOMES.keys() and len(folded) > 1:
        outcomes = [[_OUTCOMES.get(v.lower(), np.nan) for v in side.verdict] for side in sides]
        return [np.array(side) for side in outcomes], "win rate", None, None
    try:
        good = next(side.good(positive) for side in sides)
        values = [side.values(positive) for side in sides]
    except JudgeSenseError:
        reason = (
            f"nothing says which of {', '.join(sides[0].labels)} is better; name the good one with "
            "--positive LABEL"
        )
        return [np.full(len(side), np.nan) for side in sides], None, None, reason
    if sides[0].is_comparison:
        return values, "win rate", None, None
    return values, "score" if good is None else "passed", good, None


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
