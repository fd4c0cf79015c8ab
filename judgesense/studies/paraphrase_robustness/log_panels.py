"""Panels of the judges of an existing log against its gold labels; votes may be missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from judgesense.statistics.ranking import chosen
from judgesense.statistics.tables import Floats
from judgesense.studies.common.figures import slopes
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
            "judge's own row the items that it answered (answered: their share). For labels "
            "without a scale, a tie of k counts 1/k if the right one is among them. best judge: "
            "chosen on these items among the judges that answered at least half of them, if any. "
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

    def row(
        name: str, n_judges: int, right: Floats, close: Sequence[Floats], answered: float
    ) -> Record:
        """From shares of right and of close scores, shape (n,), NaN where not answered."""
        known = ~np.isnan(right)
        groups = [g for g, keep in zip(ballot.clusters, known, strict=True) if keep]
        ends = mean_interval(right[known], groups)
        shares = [float(each[known].mean()) if ballot.scale else None for each in close]
        return {
            "set": ballot.part, "strategy": name, "n_judges": n_judges,
            "accuracy": float(right[known].mean()), "ci_low": ends.low, "ci_high": ends.high,
            "near": shares[0], "within_1": shares[1], "answered": answered, "n": int(known.sum()),
        }  # fmt: skip

    def of_scores(name: str, n_judges: int, scores: Floats, answered: float = 1.0) -> Record:
        right = np.where(np.isnan(scores), np.nan, exact(scores, gold))
        close = [near(scores, gold, tau) for tau in (tolerance, 1)]
        return row(name, n_judges, right, close, answered)

    alone = np.where(given, exact(votes, gold), np.nan)
    close = [np.nanmean(np.where(given, near(votes, gold, tau), np.nan), axis=1)
             for tau in (tolerance, 1)]  # fmt: skip
    yield row("mean single judge", 1, np.nanmean(alone, axis=1), close, float(given.mean()))
    often = given.mean(axis=0) >= 0.5
    if often.any():
        shares = [float(np.nanmean(alone[:, j])) if often[j] else -1.0 for j in range(len(often))]
        best = int(chosen(shares))
        name = f"best judge: {ballot.judges[best]}"
        yield of_scores(name, 1, votes[:, best], float(given[:, best].mean()))
    for how in METHODS if ballot.scale else ("majority",):
        scores = aggregate(votes, how)
        if ballot.scale:
            yield of_scores(f"panel, {how}", len(ballot.judges), scores)
        else:
            right = plurality(votes, gold)
            yield row(f"panel, {how}", len(ballot.judges), right, (right, right), 1.0)
    levels, counts = np.unique(gold, return_counts=True)
    yield of_scores("constant label", 0, np.full(len(gold), levels[np.argmax(counts)]))


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
