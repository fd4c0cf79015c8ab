"""Did a change help: a judge before and after a change, item by item."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from judgesense.comparison.pairing import grouped, most_frequent
from judgesense.errors import JudgeSenseError
from judgesense.log.folder import read_run
from judgesense.log.rows import Answers
from judgesense.log.stream import Stream
from judgesense.measure.card import Gate
from judgesense.measure.rewording import same_polarity
from judgesense.measure.thresholds import MARGIN
from judgesense.statistics.change import item_change, smallest_loss
from judgesense.statistics.result import ResultMapping, data_frame
from judgesense.tasks import ERROR, ORDERS, UNDECIDED
from judgesense.text import join, percent, s, sentence, signed

FIGURES = ("right", "steady", "fair", "readable")
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
"""Moved verdicts that a text lists."""

Gold = Mapping[tuple[str, str], str]
"""Item and option order -> label."""


@dataclass(frozen=True, eq=False)
class BaselineComparison(ResultMapping):
    """A judge against an earlier result on the same items.

    ``conclusions`` has an entry per judge, task and figure (``right``, ``steady``, ``fair``,
    ``readable``) that both results have: ``judge``, ``task``, ``figure``, ``conclusion``
    (``better``, ``worse``, ``no worse`` or ``cannot tell``), ``before``, ``after``, ``difference``,
    ``ci_low``, ``ci_high``, ``level``, ``n_items``, ``n_changed`` and ``text``.

    ``moved`` lists the verdicts that differ: ``task``, ``item_id``, ``order``, ``before``,
    ``after``, ``gold`` and ``kind`` (``fixed``, ``broken`` or ``changed``). ``margin`` is the loss
    that counts as no worse, and ``smallest_loss`` the loss of one figure that this many items show
    in 80% of comparisons.
    """

    conclusions: list[dict[str, Any]]
    moved: list[dict[str, Any]]
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
            moved = f"{row['before']} → {row['after']}{gold}"
            lines.append(f"  {row['kind']}: {row['item_id']}{order}: {moved}")
        if more := len(self.moved) - _SHOWN:
            lines += [f"  … and {more} more"] if more > 0 else []
        return "\n".join(lines)


def _named(row: Mapping[str, Any]) -> str:
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
    return max(len({*each.answers().item}) for each in read_run(Path(baseline)).judged)


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
    both = _matched(read_run(Path(run_dir)).judged, read_run(Path(baseline)).judged)
    if not both:
        raise JudgeSenseError(
            f"{baseline} and {run_dir} have no judge and task in common, or several that may match"
        )
    conclusions: list[dict[str, Any]] = []
    moved: list[dict[str, Any]] = []
    notes: list[str] = []
    sizes: list[int] = []
    for one, two in both:
        task, before, after = two.task.name, one.answers(), two.answers()
        items, every = {*before.item} & {*after.item}, {*before.item, *after.item}
        if not items:
            raise JudgeSenseError(
                f"task {task}: {run_dir} and {baseline} have no item in common; give both the "
                "same item_id"
            )
        if left := len(every) - len(items):
            notes.append(f"{task}: {left} item{s(left)} that only one result has are left out.")
        sizes.append(len(items))
        # The label of each item and order; that of the newer result counts.
        old, new = (
            {at: label for at, label in zip(_places(side), side.gold, strict=True) if label}
            for side in (before, after)
        )
        gold = old | new
        other = len({at[0] for at, label in old.items() if gold[at] != label and at[0] in items})
        if other > _MOST_RELABELLED * len(items):
            raise JudgeSenseError(
                f"task {task}: {other} of {len(items)} items have another label in {baseline}, so "
                "these are not the same items; name a column of ids that both results have with "
                "--columns item_id=COLUMN"
            )
        if other:
            notes.append(
                f"{task}: {other} of {len(items)} items have another label in the baseline. Both "
                "results are compared with the new labels."
            )
        orders = {*before.order} & {*after.order}
        shares = [
            _shares(one, before, orders, gold, {ERROR}),
            _shares(two, after, orders, gold, set()),
        ]
        clusters = dict(zip(after.item, after.cluster.tolist(), strict=True))
        conclusions += _conclusions(two, shares, items, clusters, margin)
        moved += _moved(task, before, after, gold)
    fewest = min(sizes)
    return BaselineComparison(conclusions, moved, margin, fewest, smallest_loss(fewest), notes)


def _places(answers: Answers) -> Iterator[tuple[str, str]]:
    """Item and option order of each answer."""
    return zip(answers.item, answers.order, strict=True)


def _matched(new: list[Stream], old: list[Stream]) -> list[tuple[Stream, Stream]]:
    """Each judge before and after: the same name, or the only judge of a task, or the only one."""
    keys: list[Callable[[Stream], tuple[str, ...]]] = [
        lambda each: (each.task.name, each.scoring, each.judge.partition("@")[0]),
        lambda each: (each.task.name, each.scoring),
        # A task may have the name of its file.
        lambda each: (each.scoring, each.judge.partition("@")[0]),
        lambda _: (),
    ]
    for key in keys:
        before, after = (grouped(map(key, streams), streams) for streams in (old, new))
        both = [
            (before[name][0], each[0])
            for name, each in after.items()
            if len(each) == len(before.get(name, ())) == 1
        ]
        if both:
            return both
    return []


def _shares(
    stream: Stream, answers: Answers, orders: set[str], gold: Gold, left_out: set[str]
) -> dict[str, dict[str, float]]:
    """Each figure's share of an item's prompts or pairs, in the orders that both results have.

    ``left_out`` are decisions that count for nothing."""
    found: dict[str, list[tuple[str, bool]]] = {figure: [] for figure in FIGURES}
    choices: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for at, wording, verdict in zip(_places(answers), answers.template, answers.label, strict=True):
        item, order = at
        if order not in orders or verdict in left_out:
            continue
        found["readable"].append((item, verdict not in UNDECIDED))
        if at in gold:
            found["right"].append((item, verdict == gold[at]))
        choices[item, wording][order] = verdict
    if stream.task.comparative and set(ORDERS) <= orders:
        for (item, _), of_order in choices.items():
            if set(ORDERS) <= of_order.keys():
                chosen = set(of_order.values())
                # The same choice has another name in each order.
                same = len(chosen) == len(ORDERS) and chosen <= set(stream.task.labels[:2])
                found["fair"].append((item, same))
    agree = stream.decided() & (stream.mapped_a == stream.mapped_b)
    for place in np.flatnonzero(same_polarity(stream) & stream.known):
        item, _, _, order = stream.places[place]
        if order in orders:
            found["steady"].append((item, bool(agree[place])))
    return {
        figure: {
            item: sum(each) / len(each) for item, each in grouped(*zip(*rows, strict=True)).items()
        }
        for figure, rows in found.items()
        if rows
    }


def _conclusions(
    stream: Stream,
    shares: Sequence[Mapping[str, Mapping[str, float]]],
    items: set[str],
    clusters: Mapping[str, int],
    margin: float,
) -> Iterator[dict[str, Any]]:
    """The entries of a judge and task, in the order of `FIGURES`."""
    columns: dict[str, list[tuple[Any, ...]]] = {}
    for figure in FIGURES:
        before, after = (each.get(figure, {}) for each in shares)
        if common := sorted(items & before.keys() & after.keys()):
            rows = ((before[item], after[item], clusters[item]) for item in common)
            columns[figure] = list(zip(*rows, strict=True))
    # A figure that moved on no item cannot be called worse: the error is divided among the others.
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
        yield {
            "judge": stream.judge,
            "task": stream.task.name,
            "figure": figure,
            "conclusion": conclusion,
            **asdict(change),
            "text": text,
        }


def _moved(task: str, before: Answers, after: Answers, gold: Gold) -> Iterator[dict[str, Any]]:
    """The items and orders of both whose most frequent verdict is another one."""
    usual = []
    for side, left_out in ((before, ERROR), (after, None)):
        votes = grouped(_places(side), side.label)
        kept = {at: [v for v in given if v != left_out] for at, given in votes.items()}
        usual.append({at: most_frequent(given) for at, given in kept.items() if given})
    for at in sorted(usual[0].keys() & usual[1].keys()):
        first, second = (each[at] for each in usual)
        label = gold.get(at)
        if first != second:
            kind = {first: "broken", second: "fixed"}.get(label or "", "changed")
            yield {
                "task": task,
                "item_id": at[0],
                "order": at[1],
                "before": first,
                "after": second,
                "gold": label,
                "kind": kind,
            }
