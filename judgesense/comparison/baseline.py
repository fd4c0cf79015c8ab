"""Did a change help: a judge before and after a change, item by item."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from judgesense.comparison.baseline_result import (
    FIGURES,
    BaselineComparison,
    ChangedVerdict,
    Conclusion,
    Figure,
    changed_verdict,
)
from judgesense.comparison.paired import grouped, most_frequent
from judgesense.comparison.verdicts import Verdicts, verdicts_of
from judgesense.errors import JudgeSenseError
from judgesense.log.answers import Answers
from judgesense.log.folder import read_run
from judgesense.measure.agreement import same_polarity, ties_of
from judgesense.measure.thresholds import MARGIN
from judgesense.statistics.change import Change, item_change
from judgesense.tasks import ERROR, ORDERS, UNDECIDED
from judgesense.text import percent, plural_s, signed

_WHAT = {
    "right": "matches the labels",
    "steady": "gives the same verdict after rewording",
    "fair": "makes the same choice in both orders",
    "readable": "gives a verdict",
}
_MOST_RELABELLED = 0.2
"""Share of items whose label may change between two results on the same items."""
Place = tuple[str, str]
"""An item and an option order."""
ShareOfItem = dict[str, float]
"""Item -> the share of its prompts, or pairs, that count for a figure."""


class Column(NamedTuple):
    """A figure's shares before and after, by item, with the items' clusters.

    ``chances`` are those with which the items were picked to be labelled; None for all items.
    """

    before: list[float]
    after: list[float]
    clusters: list[str]
    chances: list[float] | None


Columns = dict[Figure, Column]


def items_of_baseline(baseline: str | Path) -> int:
    """How many items an earlier run judged; of a run with labels, how many of them have one.

    Raises JudgeSenseError for a folder without a run.
    """
    counts = []
    for each in read_run(Path(baseline)).judged:
        rows = each.as_rows()
        labelled = {item for item, gold in zip(rows.item, rows.gold, strict=True) if gold}
        counts.append(len(labelled or {*rows.item}))
    return max(counts)


def against_baseline(
    run_dir: str | Path, baseline: str | Path, *, margin: float = MARGIN, looks: int = 1
) -> BaselineComparison:
    """Compare the judge of a run with that of an earlier run on the items that both judged.

    Wordings may differ: the change may be one of the rubric. An item's share of right verdicts is
    over its prompts, in the option orders that both runs have; an answer without a verdict is
    wrong. A failed request or an empty cell counts as such an answer in the newer run, and is left
    out of the earlier one. So does a row that a newer file of verdicts lacks. Where a few labels
    differ, both runs are compared with the newer ones, and again with the earlier ones, which must
    show the same. The error is divided among all figures of
    all tasks that changed, and among the ``looks``.

    Args:
        run_dir: the folder of the newer run.
        baseline: the folder of the earlier one.
        margin: the loss that counts as no worse, in (0, 1).
        looks: how many comparisons share the error of one, such as 30 for a daily gate that is
            wrong once in at most 3% of months. State it before the first one.

    Raises:
        JudgeSenseError: a folder without decisions, no common item, judges that do not match, or
            other labels on more than a fifth of the items.
    """
    if not 0 < margin < 1:
        raise JudgeSenseError(f"the margin must be between 0 and 1, got {margin}")
    if looks < 1:
        raise JudgeSenseError(f"looks must be 1 or more, got {looks}")
    newer, earlier = read_run(Path(run_dir)), read_run(Path(baseline))
    matched = _matched(newer.judged, earlier.judged)
    if not matched:
        raise JudgeSenseError(
            f"{baseline} and {run_dir} have no judge and task in common, or several that may match"
        )
    tasks = [
        _compared(one, two, Path(baseline), Path(run_dir), is_import="imported" in newer.record)
        for one, two in matched
    ]
    # A figure that changed on no item cannot be called worse: the error is divided among the rest.
    changed = sum(c.before != c.after for task in tasks for c in task.columns.values())
    conclusions = [
        row for task in tasks for row in _conclusions(task, max(1, changed) * looks, margin)
    ]
    firsts = {(row["judge"], row["task"]): row["smallest_loss"] for row in reversed(conclusions)}
    losses = [*firsts.values()]
    found = [loss for loss in losses if loss is not None]
    return BaselineComparison(
        conclusions=conclusions,
        moved=[row for task in tasks for row in task.moved],
        margin=margin,
        n_items=min(task.n_items for task in tasks),
        smallest_loss=max(found) if found and len(found) == len(losses) else None,
        notes=[note for task in tasks for note in task.notes],
        looks=looks,
        bursts=any(run.record.get("bursts") for run in (newer, earlier)),
    )


class _Compared(NamedTuple):
    """A judge on a task in both results: its answers, what changed, and what a person should know.

    ``n_items`` are those with a label, where there are labels. ``with_old`` are the columns with
    the baseline's labels, where some differ.
    """

    answers: Answers
    columns: Columns
    with_old: Columns
    moved: list[ChangedVerdict]
    n_items: int
    notes: list[str]


def _compared(
    one: Answers, two: Answers, baseline: Path, run_dir: Path, *, is_import: bool
) -> _Compared:
    task, notes = two.task.name, list[str]()
    before = verdicts_of(one, baseline, repeats=False, as_shown=True)
    after = verdicts_of(two, run_dir, repeats=False, as_shown=True)
    if is_import and {*before.item} & {*after.item}:
        after, n_missing = _with_missing(before, after)
        if n_missing:
            notes.append(
                f"{task}: {n_missing} verdict{plural_s(n_missing)} of the baseline "
                f"{'has' if n_missing == 1 else 'have'} no row in the newer result and count "
                "as wrong; remove these items from the baseline if you no longer judge them."
            )
    items = {*before.item} & {*after.item}
    if not items:
        raise JudgeSenseError(
            f"task {task}: {run_dir} and {baseline} have no item in common; give both the same "
            "item_id"
        )
    if left := len({*before.item, *after.item} - items):
        notes.append(f"{task}: {left} item{plural_s(left)} that only one result has are left out.")
    old, new = _gold(before), _gold(after)
    gold = old | new
    relabelled = {
        place[0] for place, label in old.items() if gold[place] != label and place[0] in items
    }
    of = f"{len(relabelled)} of {len(items)} items have another label in"
    if len(relabelled) > _MOST_RELABELLED * len(items):
        raise JudgeSenseError(
            f"task {task}: {of} {baseline}, so these are not the same items; name a column of ids "
            "that both results have with --columns item_id=COLUMN"
        )
    usual = _usual(before, ERROR), _usual(after)
    if relabelled:
        places = [place for place, label in old.items() if gold[place] != label]
        towards = [sum(side.get(p) == gold[p] for p in places) for side in usual]
        notes.append(
            f"{task}: {of} the baseline: {towards[1]} now have the newer verdict, {towards[0]} the "
            "baseline's. A conclusion holds with both labels."
        )
    orders = {*before.order} & {*after.order}
    # Bursts of errors that one result shows may be in the other as well.
    sides = [dict(zip(side.item, side.cluster, strict=True)) for side in (after, before)]
    clusters = min(sides, key=lambda side: len({side[item] for item in items}))
    chances = _chances(two) or _chances(one)
    columns, with_old = (
        _columns(
            (
                _shares(one, before, orders, labels, {ERROR}),
                _shares(two, after, orders, labels, set()),
            ),
            items,
            clusters,
            chances,
        )
        for labels in (gold, new | old)
    )
    moved = [*_changed(task, *usual, gold)]
    # What is right or wrong shows on the labelled items alone.
    labelled = {item for item, _ in gold} & items
    with_old = with_old if relabelled else {}
    return _Compared(two, columns, with_old, moved, len(labelled or items), notes)


def _with_missing(before: Verdicts, after: Verdicts) -> tuple[Verdicts, int]:
    """The newer verdicts with an empty one for each row that only the earlier result has.

    A judge that crashes leaves out its hardest items. Rows are the earlier ones in the newer
    result's orders, under its wordings, or any wording of an item that is missing altogether.
    """
    places = {*zip(after.item, after.order, after.wording, strict=True)}
    items, orders, wordings = {*after.item}, {*after.order}, {*after.wording}
    missing: dict[tuple[str, str, str], int] = {}
    for row, place in enumerate(zip(before.item, before.order, before.wording, strict=True)):
        item, order, wording = place
        if before.verdict[row] == ERROR or order not in orders or place in places:
            continue
        if wording in wordings or (item not in items and not wordings & {*before.wording}):
            missing.setdefault(place, row)
    if not missing:
        return after, 0
    rows = np.array([*missing.values()])
    empty = np.full(len(rows), ERROR, object)

    def joined(name: str) -> Any:
        return np.concatenate([getattr(after, name), getattr(before, name)[rows]])

    names = ("item", "system", "wording", "order", "repeat", "cluster", "gold")
    columns = {name: joined(name) for name in names}
    verdict = np.concatenate([after.verdict, empty])
    return replace(after, verdict=verdict, **columns), len(rows)


def _matched(new: list[Answers], old: list[Answers]) -> list[tuple[Answers, Answers]]:
    """Each judge before and after: the same name, or the only judge of a task, or the only one."""
    keys: list[Callable[[Answers], tuple[str, ...]]] = [
        lambda answers: (answers.task.name, answers.scoring, answers.judge.partition("@")[0]),
        lambda answers: (answers.task.name, answers.scoring),
        # A task may have the name of its file.
        lambda answers: (answers.scoring, answers.judge.partition("@")[0]),
        lambda _: (),
    ]
    for key in keys:
        before, after = (grouped(map(key, side), side) for side in (old, new))
        matched = [
            (before[name][0], side[0])
            for name, side in after.items()
            if len(side) == len(before.get(name, ())) == 1
        ]
        if matched:
            return matched
    return []


def _gold(verdicts: Verdicts) -> dict[Place, str]:
    """The gold label of each item and order that has one."""
    rows = zip(verdicts.item, verdicts.order, verdicts.gold, strict=True)
    return {(item, order): label for item, order, label in rows if label}


def _shares(
    answers: Answers,
    verdicts: Verdicts,
    orders: set[str],
    gold: Mapping[Place, str],
    left_out: set[str],
) -> dict[Figure, ShareOfItem]:
    """Each figure's share of an item's prompts or pairs, in the orders that both results have.

    ``left_out`` are decisions that count for nothing."""
    rows: dict[Figure, list[tuple[str, bool]]] = {figure: [] for figure in FIGURES}
    choices: dict[Place, dict[str, str]] = {}
    for item, order, wording, verdict in zip(
        verdicts.item, verdicts.order, verdicts.wording, verdicts.verdict, strict=True
    ):
        if order not in orders or verdict in left_out:
            continue
        rows["readable"].append((item, verdict not in UNDECIDED))
        if (item, order) in gold:
            rows["right"].append((item, verdict == gold[item, order]))
        choices.setdefault((item, wording), {})[order] = verdict
    if answers.task.comparative and {*ORDERS} <= orders:
        options = {*answers.task.labels[:2]}
        ties = ties_of(answers.task.labels)
        for (item, _), choice in choices.items():
            if {*ORDERS} <= choice.keys():
                # The same choice has another name in each order; a tie has the same.
                one, two = (choice[order] for order in ORDERS)
                same = {one, two} == options or {one, two} <= ties
                rows["fair"].append((item, same))
    agree = answers.decided() & (answers.mapped_a == answers.mapped_b)
    for place in np.flatnonzero(same_polarity(answers) & answers.known):
        item, _, _, order = answers.places[place]
        if order in orders:
            rows["steady"].append((item, bool(agree[place])))
    return {
        figure: {
            item: sum(hits) / len(hits)
            for item, hits in grouped(*zip(*of_figure, strict=True)).items()
        }
        for figure, of_figure in rows.items()
        if of_figure
    }


def _chances(answers: Answers) -> dict[str, float]:
    """The chances with which items were picked to be labelled; empty where none is known."""
    log = answers.log
    if log.chances is None:
        return {}
    known = zip(log.items, log.chances.tolist(), strict=True)
    return {item: chance for item, chance in known if chance > 0}


def _columns(
    shares: Sequence[Mapping[Figure, ShareOfItem]],
    items: set[str],
    clusters: Mapping[str, str],
    chances: Mapping[str, float],
) -> Columns:
    """Each figure's shares before and after, and the clusters, of the items that have both."""
    columns: Columns = {}
    for figure in FIGURES:
        before, after = (side.get(figure, {}) for side in shares)
        if common := sorted(items & before.keys() & after.keys()):
            is_picked = figure == "right" and chances.keys() >= {*common}
            columns[figure] = Column(
                [before[item] for item in common],
                [after[item] for item in common],
                [clusters[item] for item in common],
                [chances[item] for item in common] if is_picked else None,
            )
    return columns


def _change(column: Column, parts: int) -> Change:
    """The change of a figure; ``parts`` share the error."""
    before, after, clusters, chances = column
    figures = parts if before != after else 1
    return item_change(before, after, clusters, figures=figures, chances=chances)


def _conclusions(task: _Compared, parts: int, margin: float) -> Iterator[Conclusion]:
    """The entries of a judge and task, in the order of `FIGURES`; ``parts`` share the error."""
    answers = task.answers
    for figure, column in task.columns.items():
        change = _change(column, parts)
        conclusion = change.conclusion(margin)
        with_old = conclusion
        if figure in task.with_old:
            with_old = _change(task.with_old[figure], parts).conclusion(margin)
        # People who look at one result's errors again correct labels in its favour.
        by_labels, conclusion = conclusion, conclusion if with_old == conclusion else "cannot tell"
        what = {
            "no worse": f"is not worse by more than {100 * margin:g} points",
            "cannot tell": "may be better or worse",
        }.get(conclusion, f"is {conclusion}")
        low, high = (signed(100 * end, 1) for end in (change.ci_low, change.ci_high))
        text = (
            f"{figure!r} {what}. The judge {_WHAT[figure]} in {percent(change.after)} of cases, "
            f"compared with {percent(change.before)} before "
            f"({signed(100 * change.difference, 1)} points [{low}, {high}], {change.n_items} "
            f"item{plural_s(change.n_items)}, of which {change.n_changed} changed)"
        )
        if by_labels != with_old:
            text += f". With the new labels it is {by_labels}, with the baseline's {with_old}"
        pairs = zip(column.before, column.after, strict=True)
        if conclusion == "better" and all(x <= y for x, y in pairs):
            condition = "if only what was wrong before was asked again, this shows nothing"
            text += f". None got worse: {condition}"
        what_changed = {"judge": answers.judge, "task": answers.task.name, "figure": figure}
        figures_of = {"conclusion": conclusion, **vars(change), "text": text}
        yield cast(Conclusion, what_changed | figures_of)


def _usual(verdicts: Verdicts, left_out: str = "") -> dict[Place, str]:
    """The most frequent verdict on each item and order; verdicts ``left_out`` do not count."""
    places = zip(verdicts.item, verdicts.order, strict=True)
    counted = {
        place: [verdict for verdict in of_place if verdict != left_out]
        for place, of_place in grouped(places, verdicts.verdict).items()
    }
    return {place: most_frequent(of_place) for place, of_place in counted.items() if of_place}


def _changed(
    task: str, before: Mapping[Place, str], after: Mapping[Place, str], gold: Mapping[Place, str]
) -> Iterator[ChangedVerdict]:
    """The items and orders of both results whose verdict changed."""
    for place in sorted(before.keys() & after.keys()):
        if before[place] != after[place]:
            yield changed_verdict(task, *place, before[place], after[place], gold.get(place))
