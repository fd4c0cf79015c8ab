"""Did a change help: a judge before and after a change, item by item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypedDict, cast

import numpy as np

from judgesense.comparison.paired import PairedTable, grouped, most_frequent
from judgesense.comparison.verdicts import Verdicts, verdicts_of
from judgesense.errors import JudgeSenseError
from judgesense.log.answers import Answers
from judgesense.log.folder import read_run
from judgesense.measure.agreement import same_polarity, ties_of
from judgesense.measure.card import Gate
from judgesense.measure.thresholds import MARGIN
from judgesense.statistics.change import item_change, smallest_loss
from judgesense.statistics.result import ResultMapping, data_frame
from judgesense.tasks import ERROR, ORDERS, UNDECIDED
from judgesense.text import join, percent, s, sentence, signed

Figure = Literal["right", "steady", "fair", "readable"]
FIGURES: tuple[Figure, ...] = ("right", "steady", "fair", "readable")
"""What is compared, the figure that decides first."""

_WHAT = {
    "right": "matches the labels",
    "steady": "gives the same verdict after rewording",
    "fair": "makes the same choice in both orders",
    "readable": "gives a verdict",
}
_MOST_RELABELLED = 0.2
"""Share of items whose label may change between two results on the same items."""
_SHOWN = 3
"""Changed verdicts that a text lists."""

Place = tuple[str, str]
"""An item and an option order."""
ShareOfItem = dict[str, float]
"""Item -> the share of its prompts or pairs of which a figure is true."""


class Conclusion(TypedDict):
    """What changed in one figure of a judge on a task."""

    judge: str
    task: str
    figure: Figure
    conclusion: Literal["better", "worse", "no worse", "cannot tell"]
    before: float
    after: float
    difference: float
    ci_low: float
    ci_high: float
    level: float
    n_items: int
    n_changed: int
    text: str


class ChangedVerdict(TypedDict):
    """An item, in an option order, whose most frequent verdict is another one."""

    task: str
    item_id: str
    order: str
    before: str
    after: str
    gold: str | None
    kind: Literal["fixed", "broken", "changed"]


@dataclass(frozen=True, eq=False)
class BaselineComparison(ResultMapping):
    """A judge against an earlier result on the same items.

    ``conclusions`` has a `Conclusion` for each judge, task and figure that both results have, and
    ``moved`` a `ChangedVerdict` for each verdict that differs. ``margin`` is the loss that counts
    as no worse, and ``smallest_loss`` the loss of one figure that this many items show in 80% of
    comparisons.
    """

    conclusions: list[Conclusion]
    moved: list[ChangedVerdict]
    margin: float
    n_items: int
    smallest_loss: float | None
    notes: list[str]

    @property
    def gate(self) -> Gate:
        """FAIL if a figure is reliably worse; PASS if the first figure of each task is no worse.

        INCONCLUSIVE otherwise.
        """
        worse = [row for row in self.conclusions if row["conclusion"] == "worse"]
        if worse:
            return Gate("FAIL", worse[0]["figure"], ". ".join(map(_named, worse)))
        firsts = {(row["judge"], row["task"]): row for row in reversed(self.conclusions)}
        rows = [row for row in firsts.values() if row["conclusion"] == "cannot tell"]
        if not rows:
            rows = [*reversed(firsts.values())]
            return Gate("PASS", rows[0]["figure"], ". ".join(map(_named, rows)))
        why = ". ".join([*map(_named, rows), sentence(what_it_finds(self.n_items))])
        return Gate("INCONCLUSIVE", rows[0]["figure"], why)

    def to_dict(self) -> dict[str, Any]:
        """The fields by name, and the ``decision``."""
        return {**self, "decision": self.gate.decision}

    def to_pandas(self) -> Any:
        """The conclusions as a `pandas.DataFrame`, one row each."""
        return data_frame(self.conclusions)

    def sentences(self) -> list[str]:
        """The conclusions in sentences, and how many verdicts moved in which direction."""
        lines = [*map(_named, self.conclusions), *self.notes]
        if self.moved:
            kinds = Counter(row["kind"] for row in self.moved)
            counts = join([f"{n} {kind}" for kind, n in kinds.items()])
            lines.append(f"{len(self.moved)} verdict{s(len(self.moved))} changed ({counts})")
        return lines

    def __str__(self) -> str:
        lines = self.sentences()
        for row in self.moved[:_SHOWN]:
            order = f" ({row['order']})" if row["order"] in ORDERS else ""
            gold = f", label {row['gold']}" if row["gold"] else ""
            change = f"{row['before']} → {row['after']}{gold}"
            lines.append(f"  {row['kind']}: {row['item_id']}{order}: {change}")
        if more := len(self.moved) - _SHOWN:
            lines += [f"  … and {more} more"] if more > 0 else []
        return "\n".join(lines)


def _named(row: Conclusion) -> str:
    return f"{row['judge'].partition('@')[0]} on {row['task']}: {row['text']}"


def what_it_finds(n_items: int) -> str:
    """What a comparison with a baseline on this many items can find.

    >>> what_it_finds(100)
    'with 100 items, a loss of 10 points is found in 80% of comparisons'
    """
    loss = smallest_loss(n_items)
    if loss is None:
        return f"{n_items} item{s(n_items)} are too few to find any loss"
    return f"with {n_items} items, a loss of {100 * loss:.0f} points is found in 80% of comparisons"


def items_of_baseline(baseline: str | Path) -> int:
    """How many items an earlier run judged. Raises JudgeSenseError for a folder without a run."""
    return max(len({*each.as_rows().item}) for each in read_run(Path(baseline)).judged)


def against_baseline(
    run_dir: str | Path, baseline: str | Path, *, margin: float = MARGIN
) -> BaselineComparison:
    """Compare the judge of a run with that of an earlier run on the items that both judged.

    Wordings may differ: the change may be one of the rubric. An item's share of right verdicts is
    over its prompts, in the option orders that both runs have; an answer without a verdict is
    wrong. A failed request or an empty cell counts as such an answer in the newer run, and is left
    out of the earlier one. Where a few labels differ, both runs are compared with the newer ones.

    Args:
        run_dir: the folder of the newer run.
        baseline: the folder of the earlier one.
        margin: the loss that counts as no worse, in (0, 1).

    Raises:
        JudgeSenseError: a folder without decisions, no common item, judges that do not match, or
            other labels on more than a fifth of the items.
    """
    if not 0 < margin < 1:
        raise JudgeSenseError(f"the margin must be between 0 and 1, got {margin}")
    matched = _matched(read_run(Path(run_dir)).judged, read_run(Path(baseline)).judged)
    if not matched:
        raise JudgeSenseError(
            f"{baseline} and {run_dir} have no judge and task in common, or several that may match"
        )
    conclusions: list[Conclusion] = []
    moved: list[ChangedVerdict] = []
    notes: list[str] = []
    sizes: list[int] = []
    for one, two in matched:
        task = two.task.name
        before = verdicts_of(one, Path(baseline), repeats=False, as_shown=True)
        after = verdicts_of(two, Path(run_dir), repeats=False, as_shown=True)
        items = {*before.item} & {*after.item}
        if not items:
            raise JudgeSenseError(
                f"task {task}: {run_dir} and {baseline} have no item in common; give both the "
                "same item_id"
            )
        if left := len({*before.item, *after.item} - items):
            notes.append(f"{task}: {left} item{s(left)} that only one result has are left out.")
        old, new = _gold(before), _gold(after)
        gold = old | new
        # What is right or wrong shows on the labelled items alone.
        labelled = {item for item, _ in gold} & items
        sizes.append(len(labelled or items))
        relabelled = {
            place[0] for place, label in old.items() if gold[place] != label and place[0] in items
        }
        if len(relabelled) > _MOST_RELABELLED * len(items):
            raise JudgeSenseError(
                f"task {task}: {len(relabelled)} of {len(items)} items have another label in "
                f"{baseline}, so these are not the same items; name a column of ids that both "
                "results have with --columns item_id=COLUMN"
            )
        if relabelled:
            notes.append(
                f"{task}: {len(relabelled)} of {len(items)} items have another label in the "
                "baseline. Both results are compared with the new labels."
            )
        orders = {*before.order} & {*after.order}
        shares = (
            _shares(one, before, orders, gold, {ERROR}),
            _shares(two, after, orders, gold, set()),
        )
        clusters = dict(zip(after.item, after.cluster, strict=True))
        conclusions += _conclusions(two, shares, items, clusters, margin)
        usual = PairedTable.of(_usual(before, ERROR), _usual(after), "item", "order")
        moved += _changed(task, usual, gold)
    fewest = min(sizes)
    return BaselineComparison(conclusions, moved, margin, fewest, smallest_loss(fewest), notes)


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


def _conclusions(
    answers: Answers,
    shares: Sequence[Mapping[Figure, ShareOfItem]],
    items: set[str],
    clusters: Mapping[str, str],
    margin: float,
) -> Iterator[Conclusion]:
    """The entries of a judge and task, in the order of `FIGURES`."""
    columns: dict[Figure, tuple[list[float], list[float], list[str]]] = {}
    for figure in FIGURES:
        before, after = (side.get(figure, {}) for side in shares)
        if common := sorted(items & before.keys() & after.keys()):
            columns[figure] = (
                [before[item] for item in common],
                [after[item] for item in common],
                [clusters[item] for item in common],
            )
    # A figure that changed on no item cannot be called worse: the error is divided among the rest.
    figures = max(1, sum(one != two for one, two, _ in columns.values()))
    for figure, (one, two, shared) in columns.items():
        change = item_change(one, two, shared, figures=figures if one != two else 1)
        conclusion = change.conclusion(margin)
        what = {
            "no worse": f"is not worse by more than {100 * margin:g} points",
            "cannot tell": "may be better or worse",
        }.get(conclusion, f"is {conclusion}")
        points = [signed(100 * x, 1) for x in (change.difference, change.ci_low, change.ci_high)]
        text = (
            f"{figure!r} {what}. The judge {_WHAT[figure]} in {percent(change.after)} of cases, "
            f"compared with {percent(change.before)} before ({points[0]} points "
            f"[{points[1]}, {points[2]}], {change.n_items} item{s(change.n_items)}, of which "
            f"{change.n_changed} changed)"
        )
        what_changed = {"judge": answers.judge, "task": answers.task.name, "figure": figure}
        figures_of = {"conclusion": conclusion, **vars(change), "text": text}
        yield cast(Conclusion, what_changed | figures_of)


def _usual(verdicts: Verdicts, left_out: str = "") -> Verdicts:
    """The most frequent verdict on each item and order; verdicts ``left_out`` do not count."""
    places = zip(verdicts.item, verdicts.order, strict=True)
    usual = {
        place: most_frequent(of_place)
        for place, each in grouped(places, verdicts.verdict).items()
        if (of_place := [verdict for verdict in each if verdict != left_out])
    }
    rows = [(*place, verdict) for place, verdict in usual.items()]
    item, order, verdict = np.array(rows, dtype=object).reshape(-1, 3).T
    return replace(
        verdicts, item=item, order=order, verdict=verdict, repeat=np.zeros(len(rows), int)
    )


def _changed(task: str, usual: PairedTable, gold: Mapping[Place, str]) -> Iterator[ChangedVerdict]:
    """The items and orders of both results whose verdict is another one."""
    table = usual.where(usual.is_changed)
    for item, order, before, after in sorted(
        zip(table.column("item"), table.column("order"), table.old, table.new, strict=True)
    ):
        label = gold.get((item, order))
        yield {
            "task": task,
            "item_id": item,
            "order": order,
            "before": before,
            "after": after,
            "gold": label,
            "kind": "broken" if label == before else "fixed" if label == after else "changed",
        }
