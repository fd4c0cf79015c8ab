"""Panels of the judges of an existing log, against its gold labels; votes may be missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from judgesense.statistics.intervals import Interval, cluster_codes, mean_t_cluster
from judgesense.studies.common import figures as pictures
from judgesense.studies.common.result import Picture, Table, Value
from judgesense.studies.paraphrase_robustness.grid import Floats
from judgesense.studies.paraphrase_robustness.mitigations import METHODS, aggregate, exact, near
from judgesense.tasks import is_scale
from judgesense.text import number

LEAST_VOTES = 7
"""Items with so many votes show what a panel's size gives: the same items for every size."""


def codes_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """A set's labels as numbers: numeric ones as they are, others by their alphabetic place."""
    labels = {row["gold"] for row in rows} | {r["decision"] for r in rows if r["status"] == "ok"}
    if is_scale(labels):
        return {label: float(label) for label in labels}
    return {label: float(at) for at, label in enumerate(sorted(labels))}


def panels(
    rows: Sequence[dict[str, Any]], tolerance: float
) -> tuple[list[Table], list[str], list[Picture]]:
    """Panels of the judges under each template, set by set; nothing below three judges.

    ``rows`` are a log's, with the set under ``part``.
    """
    parts: dict[str, dict[tuple[str, str, str], dict[str, dict[str, Any]]]] = {}
    for row in rows:
        unit = row["item_id"], row["order"], row["template_id"]
        parts.setdefault(row["part"], {}).setdefault(unit, {})[row["judge"]] = row
    table: list[Sequence[Value]] = []
    sizes: list[Sequence[Value]] = []
    for part, units in sorted(parts.items()):
        codes = codes_of([row for given in units.values() for row in given.values()])
        scale = is_scale(codes)
        judges = sorted({judge for given in units.values() for judge in given})
        votes = np.array([[_vote(given.get(j), codes) for j in judges] for given in units.values()])
        first = [next(iter(given.values())) for given in units.values()]
        gold = np.array([codes[row["gold"]] for row in first])
        clusters = [row["cluster"] for row in first]
        kept = (~np.isnan(votes)).sum(axis=1) >= 3
        if not kept.any():
            continue
        own = list(_panel_rows(part, votes, gold, clusters, judges, kept, tolerance, scale))
        table += own
        sizes += _by_size(part, votes, gold, scale)
    if not table:
        return [], [], []
    made = [
        Table(
            "panels", "Panels of the judges against the gold labels",
            ("set", "strategy", "judges", "exact", "low", "high", f"within {tolerance:g}",
             "within 1", "answered", "n"),
            table, "On the items that at least three judges answered; a panel takes the votes that "
            "there are, a judge's own row the items that it answered (answered: their share). Of "
            "labels without a scale, a tie of k counts 1/k if the right one is among them. best "
            "judge: chosen on these items among those that answered at least half of them; there "
            "is none where no judge did. Intervals are t intervals over clusters. n counts item × "
            "order × template.",
        )
    ]  # fmt: skip
    drawn = []
    if sizes:
        made.append(
            Table(
                "sizes", "A panel's size",
                ("set", "judges", "majority", "median", "mean", "n"), sizes,
                f"Exact accuracy expected of so many judges drawn at random from those who "
                f"answered, over all draws, on the items with at least {LEAST_VOTES} votes; "
                "sets whose labels are numbers.",
            )
        )  # fmt: skip
        drawn.append(
            Picture(
                "panel_size", "Exact accuracy of a panel by the number of its judges.",
                lambda: pictures.slopes(
                    {
                        how if len({r[0] for r in sizes}) == 1 else f"{p}, {how}":
                        [float(r[column] or 0) for r in sizes if r[0] == p]
                        for p in dict.fromkeys(str(r[0]) for r in sizes)
                        for column, how in ((2, "majority"), (3, "median"), (4, "mean"))
                    },
                    [str(n) for n in dict.fromkeys(r[1] for r in sizes)],
                    ylabel="exact accuracy, by number of judges",
                ),
            )
        )  # fmt: skip
    return made, _said(table), drawn


def _said(table: Sequence[Sequence[Value]]) -> list[str]:
    """What the strategies reach, averaged over sets."""
    means: dict[str, list[float]] = {}
    for row in table:
        means.setdefault(str(row[1]).split(":")[0], []).append(float(row[3] or 0))
    sets = len(next(iter(means.values())))
    return [
        f"exact accuracy{f', mean of {sets} sets' if sets > 1 else ''}: "
        + ", ".join(
            f"{name} {number(float(np.mean(own)))}"
            # Sets whose labels are no numbers have no mean and no median; some no best judge.
            + (f" (of {len(own)})" if len(own) < sets else "")
            for name, own in means.items()
        )
    ]


def _vote(row: Mapping[str, Any] | None, codes: Mapping[str, float]) -> float:
    return codes[row["decision"]] if row is not None and row["status"] == "ok" else float("nan")


def _panel_rows(
    part: str,
    votes: Floats,
    gold: Floats,
    clusters: Sequence[str],
    judges: Sequence[str],
    kept: Any,
    tolerance: float,
    scale: bool,
) -> Iterator[Sequence[Value]]:
    votes, gold = votes[kept], gold[kept]
    groups = [cluster for cluster, keep in zip(clusters, kept, strict=True) if keep]
    given = ~np.isnan(votes)

    def row(
        name: str, size: int, scores: Floats, answered: float, right: Floats | None = None
    ) -> Sequence[Value]:
        right = exact(scores, gold) if right is None else right
        there = ~np.isnan(scores)
        ends = _interval(right[there], [g for g, t in zip(groups, there, strict=True) if t])
        close: list[float | None] = [
            float(near(scores, gold, tau)[there].mean()) if scale else None
            for tau in (tolerance, 1)
        ]
        return (part, name, size, float(right[there].mean()), ends.low, ends.high, *close,
                answered, int(there.sum()))  # fmt: skip

    alone = np.where(given, exact(votes, gold), np.nan)
    shares = [float(np.nanmean(alone[:, j])) if given[:, j].any() else 0.0
              for j in range(len(judges))]  # fmt: skip
    mean = np.nanmean(alone, axis=1)
    ends = _interval(mean, groups)
    close: list[float | None] = [
        float(np.nanmean(np.where(given, near(votes, gold, tau), np.nan), axis=1).mean())
        if scale
        else None
        for tau in (tolerance, 1)
    ]
    yield (part, "mean single judge", 1, float(mean.mean()), ends.low, ends.high, *close,
           float(given.mean()), len(gold))  # fmt: skip
    often = given.mean(axis=0) >= 0.5
    if often.any():
        best = int(np.argmax(np.where(often, shares, -1.0)))
        yield row(f"best judge: {judges[best]}", 1, votes[:, best], float(given[:, best].mean()))
    for how in METHODS if scale else ("majority",):
        scores = aggregate(votes, how)
        right = None if scale else plurality(votes, gold)
        yield row(f"panel, {how}", len(judges), scores, 1.0, right)
    levels, counts = np.unique(gold, return_counts=True)
    yield row("constant label", 0, np.full(len(gold), levels[np.argmax(counts)]), 1.0)


def plurality(votes: Floats, gold: Floats) -> Floats:
    """How right the commonest label is, of labels that are names: codes without a distance.

    ``votes`` (n, judges) may be NaN, but not all of a row; ``gold`` (n,). A row has 1 / k where
    the gold label is one of the k commonest, else 0, shape (n,): what breaking ties at random
    would give.
    """
    counts = (votes[..., None] == np.unique(votes[~np.isnan(votes)])).sum(axis=1)
    ahead = counts.max(axis=1)
    tied = (counts == ahead[:, None]).sum(axis=1)
    right: Floats = ((votes == gold[:, None]).sum(axis=1) == ahead) / tied
    return right


def _interval(values: Floats, clusters: Sequence[str]) -> Interval:
    codes, n = cluster_codes(list(clusters), len(values))
    ends = mean_t_cluster(values, codes) if n > 1 else Interval(None, None)
    if ends.low is None or ends.high is None:
        return ends
    return Interval(max(0.0, ends.low), min(1.0, ends.high))


def _by_size(part: str, votes: Floats, gold: Floats, scale: bool) -> list[Sequence[Value]]:
    """Expected accuracy by panel size, over every choice of judges among those who answered."""
    kept = (~np.isnan(votes)).sum(axis=1) >= LEAST_VOTES
    if not scale or not kept.any():
        return []
    rows: list[Sequence[Value]] = []
    for size in range(1, LEAST_VOTES + 1):
        shares = []
        for line, truth in zip(votes[kept], gold[kept], strict=True):
            own = line[~np.isnan(line)]
            drawn = np.array(list(combinations(own, size)))
            truths = np.full(len(drawn), truth)
            shares.append([exact(aggregate(drawn, how), truths).mean() for how in METHODS])
        majority, mean, median = np.mean(shares, axis=0)
        rows.append((part, size, float(majority), float(median), float(mean), int(kept.sum())))
    return rows
