"""One judge's decisions on one task, lined up with the pairs; and what two baselines would say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.decisions.frames import Codes, Log, Pairs, TaskWords, lookup
from judgesense.statistics.agreement import Agreement, jss_of_codes

ORACLE, ALWAYS_FIRST = "oracle", "always-first"
BASELINES = (ORACLE, ALWAYS_FIRST)
"""Cells with these judges are what a perfect judge, and one that never reads, would score."""

NOT_JUDGED = -1


@dataclass(frozen=True)
class Stream:
    """Decisions of one judge, task and scoring.

    ``raw_a``, ``raw_b``, ``mapped_a`` and ``mapped_b`` are label codes at the pairs, -1 where the
    prompt was not judged. ``rows`` are the log's rows of the first repeat, one a prompt and item,
    ``decision`` the mapped decision there. ``row_a`` and ``row_b`` are the log's rows behind each
    pair, None for baselines; ``reruns`` are (first, later) rows of the same prompt.
    """

    judge: str
    task: TaskWords
    scoring: str
    raw_a: Codes
    raw_b: Codes
    mapped_a: Codes
    mapped_b: Codes
    rows: Codes
    decision: Codes
    row_a: Codes | None = None
    row_b: Codes | None = None
    reruns: tuple[Codes, Codes] | None = None

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Pairs of which both prompts were judged."""
        judged: npt.NDArray[np.bool_] = (self.raw_a >= 0) & (self.raw_b >= 0)
        return judged

    @property
    def same_labels(self) -> bool:
        """Whether the label maps change nothing."""
        return np.array_equal(self.raw_a, self.mapped_a) and np.array_equal(
            self.raw_b, self.mapped_b
        )

    def sides(self, labels: str) -> tuple[Codes, Codes]:
        """Both sides' codes, raw or mapped."""
        return (self.raw_a, self.raw_b) if labels == "raw" else (self.mapped_a, self.mapped_b)


def streams(
    log: Log, tasks: Mapping[str, TaskWords], pairs: Mapping[str, Pairs]
) -> Iterator[Stream]:
    """Every judge, task and scoring of the log, then the baselines of each task."""
    key = (log.task * len(log.judges) + log.judge) * len(log.scorings) + log.scoring
    order = np.argsort(key, kind="stable")
    bounds = np.flatnonzero(np.diff(key[order])) + 1
    for rows in np.split(order, bounds):
        head = rows[0]
        task = tasks[log.tasks[log.task[head]]]
        yield _stream(log, task, pairs[task.name], rows)
    for task in tasks.values():
        yield from _baselines(log, task, pairs[task.name])


def _stream(log: Log, task: TaskWords, pairs: Pairs, rows: Codes) -> Stream:
    is_first = _is_first(log, rows)
    once = rows[is_first]
    row_of = np.full(log.n_stimuli + 1, NOT_JUDGED)
    seen = once[log.stimulus[once] >= 0][::-1]
    row_of[log.stimulus[seen]] = seen
    row_a, row_b = row_of[pairs.first], row_of[pairs.second]
    raw_a = np.where(row_a >= 0, log.raw[row_a], NOT_JUDGED)
    raw_b = np.where(row_b >= 0, log.raw[row_b], NOT_JUDGED)
    if pairs.planned:
        mapped_a = np.where(row_a >= 0, pairs.forward[pairs.map_a, raw_a], NOT_JUDGED)
        mapped_b = np.where(row_b >= 0, pairs.forward[pairs.map_b, raw_b], NOT_JUDGED)
    else:
        mapped_a = np.where(row_a >= 0, log.decision[row_a], NOT_JUDGED)
        mapped_b = np.where(row_b >= 0, log.decision[row_b], NOT_JUDGED)
    return Stream(
        judge=log.judges[log.judge[rows[0]]],
        task=task,
        scoring=log.scorings[log.scoring[rows[0]]],
        raw_a=raw_a,
        raw_b=raw_b,
        mapped_a=mapped_a,
        mapped_b=mapped_b,
        rows=once,
        decision=log.decision[once],
        row_a=row_a,
        row_b=row_b,
        reruns=_reruns(log, once, rows[~is_first]),
    )


def _key(log: Log, rows: Codes) -> Codes:
    """One number for each prompt and item."""
    key = (log.stimulus[rows] * len(log.items) + log.item[rows]) * len(log.templates)
    return (key + log.template[rows]) * len(log.orders) + log.order[rows]


def _is_first(log: Log, rows: Codes) -> npt.NDArray[np.bool_]:
    """Which rows are the first judgement of their prompt and item: not all need begin at one."""
    repeats = log.repeat[rows]
    if (repeats == repeats[0]).all():
        return np.ones(len(rows), bool)
    keys, place = np.unique(_key(log, rows), return_inverse=True)
    least = np.full(len(keys), repeats.max())
    np.minimum.at(least, place, repeats)
    first: npt.NDArray[np.bool_] = repeats == least[place]
    return first


def _reruns(log: Log, once: Codes, later: Codes) -> tuple[Codes, Codes] | None:
    """The first and each later judgement of the same prompt and item, as rows of the log."""
    if not len(later):
        return None
    ranked = once[np.argsort(_key(log, once), kind="stable")]
    place = np.searchsorted(_key(log, ranked), _key(log, later))
    known = log.stimulus[later] >= 0
    return ranked[place][known], later[known]


def _baselines(log: Log, task: TaskWords, pairs: Pairs) -> Iterator[Stream]:
    """What a judge that is always right, and one that always takes the first option, would score.

    Both answer through the inverse label maps, so that raw figures show what the wordings alone
    do to them.
    """
    rows = np.flatnonzero((log.task == log.tasks.index(task.name)) & (log.stimulus >= 0))
    _, index = np.unique(log.stimulus[rows] * len(log.items) + log.item[rows], return_index=True)
    rows = rows[np.sort(index)]
    meant = np.full(log.n_stimuli + 1, NOT_JUDGED)
    meant[log.stimulus[rows][::-1]] = log.gold[rows][::-1]
    if (log.gold[rows] >= 0).any() and len(pairs):
        yield _baseline(log, ORACLE, task, pairs, meant, rows, log.gold[rows])
    if task.comparative and len(pairs) and task.labels[0] in log.labels:
        first = int(np.flatnonzero(log.labels == task.labels[0])[0])
        meant = np.full(log.n_stimuli + 1, first)
        yield _baseline(log, ALWAYS_FIRST, task, pairs, meant, rows, np.full(len(rows), first))


def _baseline(
    log: Log,
    judge: str,
    task: TaskWords,
    pairs: Pairs,
    meant: Codes,
    rows: Codes,
    decision: Codes,
) -> Stream:
    mapped_a, mapped_b = meant[pairs.first], meant[pairs.second]
    raw_a = np.where(mapped_a >= 0, pairs.inverse[pairs.map_a, mapped_a], NOT_JUDGED)
    raw_b = np.where(mapped_b >= 0, pairs.inverse[pairs.map_b, mapped_b], NOT_JUDGED)
    return Stream(
        judge=judge,
        task=task,
        scoring="-",
        raw_a=raw_a,
        raw_b=raw_b,
        mapped_a=np.where(raw_a >= 0, mapped_a, NOT_JUDGED),
        mapped_b=np.where(raw_b >= 0, mapped_b, NOT_JUDGED),
        rows=rows[decision >= 0],
        decision=decision[decision >= 0],
    )


def option_shares(log: Log, rows: Codes) -> tuple[npt.NDArray[np.float64], Codes]:
    """Probabilities of the options at some rows of the log, each row's sum 1 (NaN without any).

    Returns shape (rows, L) and the L label codes of the columns.
    """
    lists = log.table["option_logprobs"].take(pa.array(rows))
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    values = pc.list_flatten(lists)
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    option = lookup(pc.struct_field(values, "option"), pa.array(log.labels.tolist()))
    logprob = np.nan_to_num(
        pc.fill_null(pc.struct_field(values, "logprob"), -np.inf).to_numpy(zero_copy_only=False),
        nan=-np.inf,
        neginf=-np.inf,
    )
    columns, column = np.unique(option, return_inverse=True)
    table = np.full((len(rows), len(columns)), -np.inf)
    table[np.repeat(np.arange(len(rows)), lengths), column] = logprob
    best = table.max(axis=1, initial=-np.inf, keepdims=True)
    shares = np.exp(table - np.where(np.isfinite(best), best, 0.0))
    total = shares.sum(axis=1, keepdims=True)
    return np.divide(shares, total, out=np.full_like(shares, np.nan), where=total > 0), columns


def mapped_shares(
    shares: npt.NDArray[np.float64], columns: Codes, maps: Codes, pairs: Pairs, n_labels: int
) -> npt.NDArray[np.float64]:
    """Option probabilities moved to the canonical labels, shape (n, n_labels)."""
    moved = np.zeros((len(shares), n_labels))
    for code in np.unique(maps):
        rows = np.flatnonzero(maps == code)
        part = np.zeros((len(rows), n_labels))
        np.add.at(part.T, pairs.forward[code, columns], shares[rows].T)
        moved[rows] = part
    return moved


def agreement(log: Log, first: Codes, second: Codes, clusters: Codes) -> Agreement:
    """JSS and what belongs to it of two streams of label codes, without kappa's interval."""
    return jss_of_codes(first, second, log.labels.tolist(), clusters, kappa_interval=False)


def distinct(codes: Codes) -> int:
    """How many different codes there are (codes are >= 0)."""
    return int(np.count_nonzero(np.bincount(codes))) if len(codes) else 0
