"""Panels of the judges of an existing log against its gold labels; votes may be missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.ranks import chosen
from judgesense.statistics.selection import crossfit_weights
from judgesense.studies.common.drawing import slopes
from judgesense.studies.common.result import Picture, Table
from judgesense.studies.paraphrase_robustness.log_votes import JudgeVote, codes_of
from judgesense.studies.paraphrase_robustness.measures import Record
from judgesense.studies.paraphrase_robustness.mitigations import (
    METHODS,
    aggregate,
    exact,
    mean_interval,
    near,
)
from judgesense.studies.paraphrase_robustness.tables import table
from judgesense.tasks import is_scale
from judgesense.text import number

LEAST_VOTES = 7
"""Panel sizes are compared on the items with at least this many votes."""


@dataclass(frozen=True)
class _Ballot:
    """The votes on one set: ``votes`` (n, judges) are codes, NaN where missing; ``gold`` (n,)."""

    part: str
    judges: tuple[str, ...]
    votes: Floats
    gold: Floats
    clusters: tuple[str, ...]
    scale: bool

    def having(self, least: int) -> _Ballot | None:
        """The rows with at least ``least`` votes; None without any."""
        kept = (~np.isnan(self.votes)).sum(axis=1) >= least
        if not kept.any():
            return None
        clusters = tuple(c for c, keep in zip(self.clusters, kept, strict=True) if keep)
        return _Ballot(
            self.part, self.judges, self.votes[kept], self.gold[kept], clusters, self.scale
        )


def panels(
    votes: Sequence[JudgeVote], tolerance: float
) -> tuple[list[Table], list[str], list[Picture]]:
    """Tables, findings and figures of panels under each template, set by set.

    All are empty without an item that three judges answered.
    """
    rows: list[Record] = []
    sizes: list[Record] = []
    for ballot in _ballots(votes):
        if (kept := ballot.having(3)) is not None:
            rows += _strategies(kept, tolerance)
        if ballot.scale and (kept := ballot.having(LEAST_VOTES)) is not None:
            sizes += _sizes(kept)
    if not rows:
        return [], [], []
    made = [
        table(
            "panels",
            "Panels of the judges against the gold labels",
            rows,
            "On the items that at least three judges answered. A panel uses the votes it has, a "
            "judge's own row the items that it answered (answered: their share). mean single "
            "judge: the mean of the judges' accuracies, each on the items that it answered. gain: "
            "over the mean single judge, each judge compared on the items that it answered. For "
            "labels without a scale, a tie of k counts 1/k if the right one is among them. best "
            "judge: among the judges that answered at least half of the items, if any; each item "
            "is scored by the judge that other items choose (with ten clusters or more). "
            f"within τ: at most {tolerance:g} from the gold label. Intervals are t intervals over "
            "clusters. n counts item × order × template.",
        )
    ]
    if not sizes:
        return made, [_finding(rows)], []
    made.append(
        table(
            "sizes",
            "Accuracy by the size of a panel",
            sizes,
            "Expected exact accuracy of this many judges drawn at random from those who answered, "
            f"over all draws, on the items with at least {LEAST_VOTES} votes; sets whose labels "
            "are numbers.",
        )
    )
    parts = list(dict.fromkeys(row["set"] for row in sizes))
    lines = {
        how if len(parts) == 1 else f"{part}, {how}": [
            float(row[how]) for row in sizes if row["set"] == part
        ]
        for part in parts
        for how in METHODS
    }
    picture = Picture(
        "panel_size",
        "Exact accuracy of a panel by the number of its judges.",
        lambda: slopes(
            lines,
            [str(n) for n in range(1, LEAST_VOTES + 1)],
            ylabel="exact accuracy, by number of judges",
        ),
    )
    return made, [_finding(rows)], [picture]


def _ballots(votes: Sequence[JudgeVote]) -> Iterator[_Ballot]:
    parts: dict[str, dict[tuple[str, str, str], dict[str, JudgeVote]]] = {}
    for vote in votes:
        unit = vote.item, vote.order, vote.template
        parts.setdefault(vote.part, {}).setdefault(unit, {})[vote.judge] = vote
    for part, units in sorted(parts.items()):
        codes = codes_of(vote for given in units.values() for vote in given.values())
        judges = sorted({judge for given in units.values() for judge in given})
        first = [next(iter(given.values())) for given in units.values()]

        def code(vote: JudgeVote | None, codes: dict[str, float] = codes) -> float:
            return np.nan if vote is None or vote.label is None else codes[vote.label]

        yield _Ballot(
            part,
            tuple(judges),
            np.array([[code(given.get(judge)) for judge in judges] for given in units.values()]),
            np.array([codes[vote.gold] for vote in first]),
            tuple(str(vote.cluster) for vote in first),
            is_scale(codes),
        )


def _finding(rows: Sequence[Record]) -> str:
    """Exact accuracy of every strategy, averaged over sets."""
    means: dict[str, list[float]] = {}
    for row in rows:
        means.setdefault(row["strategy"].split(":")[0], []).append(row["accuracy"])
    sets = len(next(iter(means.values())))
    return f"exact accuracy{f', mean of {sets} sets' if sets > 1 else ''}: " + ", ".join(
        f"{name} {number(float(np.mean(own)))}"
        # Sets whose labels are not numbers have no mean and no median; some have no best judge.
        + (f" (of {len(own)})" if len(own) < sets else "")
        for name, own in means.items()
    )


def _strategies(ballot: _Ballot, tolerance: float) -> Iterator[Record]:
    votes, gold = ballot.votes, ballot.gold
    given = ~np.isnan(votes)
    alone = np.where(given, exact(votes, gold), np.nan)

    def row(
        name: str, n_judges: int, right: Floats, close: Sequence[Floats], answered: float
    ) -> Record:
        """From shares of right and of close scores, shape (n,), NaN where not answered."""
        known = ~np.isnan(right)
        groups = [g for g, keep in zip(ballot.clusters, known, strict=True) if keep]
        ends = mean_interval(right[known], groups)
        shares = [float(each[known].mean()) if ballot.scale else None for each in close]
        more = over_single(right, alone)[known]
        gain_ends = mean_interval(more, groups, -1.0)
        return {
            "set": ballot.part, "strategy": name, "n_judges": n_judges,
            "accuracy": float(right[known].mean()), "ci_low": ends.low, "ci_high": ends.high,
            "gain": float(more.mean()), "gain_low": gain_ends.low, "gain_high": gain_ends.high,
            "near": shares[0], "within_1": shares[1], "answered": answered, "n": int(known.sum()),
        }  # fmt: skip

    def of_scores(name: str, n_judges: int, scores: Floats, answered: float = 1.0) -> Record:
        right = np.where(np.isnan(scores), np.nan, exact(scores, gold))
        close = [near(scores, gold, tau) for tau in (tolerance, 1)]
        return row(name, n_judges, right, close, answered)

    close = [np.where(given, near(votes, gold, tau), np.nan) for tau in (tolerance, 1)]
    single = row("mean single judge", 1, by_judge(alone), list(map(by_judge, close)),
                 float(given.mean()))  # fmt: skip
    yield single | dict.fromkeys(("gain", "gain_low", "gain_high"))
    often = np.flatnonzero(given.mean(axis=0) >= 0.5)
    if len(often):
        yield _best_judge(ballot, often, alone, close, row)
    for how in METHODS if ballot.scale else ("majority",):
        scores = aggregate(votes, how)
        if ballot.scale:
            yield of_scores(f"panel, {how}", len(ballot.judges), scores)
        else:
            right = plurality(votes, gold)
            yield row(f"panel, {how}", len(ballot.judges), right, (right, right), 1.0)
    levels, counts = np.unique(gold, return_counts=True)
    yield of_scores("constant label", 0, np.full(len(gold), levels[np.argmax(counts)]))


def _best_judge(
    ballot: _Ballot,
    often: Codes,
    alone: Floats,
    close: Sequence[Floats],
    row: Callable[[str, int, Floats, Sequence[Floats], float], Record],
) -> Record:
    """The row of the most accurate of some judges; each item scored by those that others choose."""

    def choose(rows: Codes) -> int:
        seen = ~np.isnan(alone[rows][:, often])
        sums = np.where(seen, alone[rows][:, often], 0.0).sum(axis=0)
        return int(chosen(sums / np.maximum(seen.sum(axis=0), 1)))

    best = often[choose(np.arange(len(alone)))]
    weights = crossfit_weights(ballot.clusters, len(often), choose)
    if weights is None:
        weights = np.tile((often == best).astype(float), (len(alone), 1))
    weights = np.where(np.isnan(alone[:, often]), 0.0, weights)
    total = weights.sum(axis=1)

    def weighted(values: Floats) -> Floats:
        sums = (weights * np.nan_to_num(values[:, often])).sum(axis=1)
        found: Floats = np.where(total > 0, sums / np.where(total > 0, total, 1), np.nan)
        return found

    answered = float((~np.isnan(alone[:, best])).mean())
    name = f"best judge: {ballot.judges[best]}"
    return row(name, 1, weighted(alone), list(map(weighted, close)), answered)


def by_judge(values: Floats) -> Floats:
    """Numbers per item whose mean is the mean of the judges' means, each over its own items.

    Args:
        values: shape (n, judges), NaN where a judge gave no answer.

    Returns:
        Shape (n,). An item's number is the mean of the judges' means, plus what its answers add to
        them, so that intervals over clusters hold for judges with unequal numbers of answers.

    >>> float(by_judge(np.array([[1.0, 0.0], [1.0, np.nan], [0.0, np.nan]])).mean().round(6))
    0.333333
    """
    given = ~np.isnan(values)
    values = values[:, given.any(axis=0)]
    given = given[:, given.any(axis=0)]
    means = np.nanmean(values, axis=0)
    parts = np.where(given, values - means, 0.0) * (len(values) / given.sum(axis=0))
    found: Floats = means.mean() + parts.mean(axis=1)
    return found


def over_single(right: Floats, alone: Floats) -> Floats:
    """Numbers per item whose mean is a strategy's gain over the mean single judge.

    ``right`` (n,) and ``alone`` (n, judges) are shares of right scores, NaN where not answered.
    Every judge is compared on the items that it and the strategy answered, and counts alike.

    >>> alone = np.array([[1.0, 0.0], [1.0, np.nan], [0.0, np.nan]])
    >>> float(over_single(np.array([1.0, 1.0, 0.0]), alone).mean().round(6))
    0.5
    """
    known = ~np.isnan(right)
    gains = np.full(len(right), np.nan)
    gains[known] = by_judge(right[known, None] - alone[known])
    return gains


def plurality(votes: Floats, gold: Floats) -> Floats:
    """The share of right answers of the most frequent label, where codes stand for names.

    Args:
        votes: codes, shape (n, judges); NaN is a missing vote, but not all of a row.
        gold: codes, shape (n,).

    Returns:
        Shape (n,): 1 / k if the gold label is one of the k most frequent, else 0, as breaking ties
        at random would give.

    >>> plurality(np.array([[0.0, 0.0, 2.0], [0.0, 2.0, np.nan]]), np.array([0.0, 2.0])).tolist()
    [1.0, 0.5]
    """
    counts = (votes[..., None] == np.unique(votes[~np.isnan(votes)])).sum(axis=1)
    ahead = counts.max(axis=1)
    tied = (counts == ahead[:, None]).sum(axis=1)
    right: Floats = ((votes == gold[:, None]).sum(axis=1) == ahead) / tied
    return right


def _sizes(ballot: _Ballot) -> Iterator[Record]:
    """Expected accuracy by panel size, over every choice of judges among those who answered."""
    for size in range(1, LEAST_VOTES + 1):
        shares = []
        for line, truth in zip(ballot.votes, ballot.gold, strict=True):
            drawn = np.array(list(combinations(line[~np.isnan(line)], size)))
            truths = np.full(len(drawn), truth)
            shares.append([exact(aggregate(drawn, how), truths).mean() for how in METHODS])
        accuracies = dict(zip(METHODS, np.mean(shares, axis=0).tolist(), strict=True))
        yield {"set": ballot.part, "n_judges": size, **accuracies, "n": len(ballot.votes)}
