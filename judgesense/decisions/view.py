"""The view of a decision log that every measurement starts from: :func:`view`.

It holds a `Stream` for each judge, task and scoring: the judge's decisions lined up with the pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.decisions.log import CONTRAST, INTERVENTION, OTHER_ITEM, REWORDING, VARIANT_CLASSES
from judgesense.decisions.rows import (
    Answers,
    Log,
    Pairs,
    TaskWords,
    answers,
    first_answers,
    joined,
    mapped_shares,
    option_shares,
    read_frames,
    repeated_answers,
    without_content_free,
)
from judgesense.statistics.agreement import Agreement, jss_of_codes
from judgesense.statistics.arrays import Bools, Codes, Floats, Words
from judgesense.tasks import ERROR
from judgesense.text import short_names

NOTHING = Agreement(
    jss=None, flip_rate=None, kappa=None, ci_low=None, ci_high=None, kappa_ci_low=None,
    kappa_ci_high=None, jss_low=0.0, jss_high=1.0, n_pairs=0, n_items=0, n_unclear=0,
    n_refused=0, n_error=0, degenerate="no pair was judged on both sides",
)  # fmt: skip
"""The agreement of no pairs at all."""


@dataclass(frozen=True)
class Stream:
    """The decisions of one judge on one task under one scoring.

    ``raw_a``, ``raw_b``, ``mapped_a`` and ``mapped_b`` are label codes at the pairs, -1 where the
    prompt was not judged. ``rows`` are the log's rows of the first repeat, one per prompt and item;
    ``decision`` is the mapped decision there. ``row_a`` and ``row_b`` are the log's rows behind
    each pair, None for baselines. ``reruns`` are (first, later) rows of the same prompt. All these
    are rows of equivalent variants; ``others`` are the first repeats of the other variants.
    ``content_free`` has, by template, the option log-probabilities of each answer to input without
    content; those rows are nowhere else.
    """

    log: Log
    pairs: Pairs
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
    others: Codes | None = None
    content_free: Mapping[str, list[dict[str, float]]] = field(default_factory=dict)

    @property
    def known(self) -> Bools:
        """The pairs with both prompts judged."""
        judged: Bools = (self.raw_a >= 0) & (self.raw_b >= 0)
        return judged

    @property
    def same_labels(self) -> bool:
        """Whether the label maps change nothing."""
        raw, mapped = self.sides("raw"), self.sides("mapped")
        return np.array_equal(raw[0], mapped[0]) and np.array_equal(raw[1], mapped[1])

    @cached_property
    def renamed(self) -> Bools:
        """The pairs whose wordings name the answers differently, such as 1 and 2 beside A and B.

        Their raw answers cannot be compared, so `sides` has the mapped ones instead.
        """
        pairs = self.pairs
        named = [frozenset(row[row >= 0].tolist()) for row in pairs.inverse]
        sets = list(dict.fromkeys(named))
        group = np.array([sets.index(one) for one in named], dtype=np.int64)
        if len(sets) < 2:
            return np.zeros(len(pairs), bool)
        differ: Bools = group[pairs.map_a] != group[pairs.map_b]
        return differ

    @cached_property
    def contrast(self) -> tuple[Codes, Codes] | None:
        """(base, contrast) rows of the log on the same item and order; None without any.

        A contrast variant asks another question, so a judge that reads it answers otherwise:
        compare ``log.raw`` of both. Those that show another item are in `item_contrast`. The base
        is the same ``template_id`` without a variant if it was asked, or else its equivalent
        variants, or else every equivalent wording of the item and order.
        """
        return self._contrasts[0]

    @property
    def item_contrast(self) -> tuple[Codes, Codes] | None:
        """(base, contrast) rows where the contrast shows another item, whose gold differs."""
        return self._contrasts[1]

    @cached_property
    def _contrasts(self) -> tuple[tuple[Codes, Codes] | None, tuple[Codes, Codes] | None]:
        found = self._beside(CONTRAST)
        if found is None:
            return None, None
        shows_other = np.array([name.endswith(OTHER_ITEM) for name in self.log.variants])
        other = shows_other[self.log.variant[found[1]]]
        split = [(found[0][mask], found[1][mask]) for mask in (~other, other)]
        own, swapped = (rows if len(rows[0]) else None for rows in split)
        return own, swapped

    @cached_property
    def intervention(self) -> tuple[Codes, Codes] | None:
        """(base, intervention) rows of the log, as in `contrast`."""
        return self._beside(INTERVENTION)

    def _beside(self, variant_class: str) -> tuple[Codes, Codes] | None:
        if self.others is None:
            return None
        log, code = self.log, VARIANT_CLASSES.index(variant_class)
        return self._with_base(self.others[log.variant_class[self.others] == code])

    @cached_property
    def variants(self) -> dict[str, tuple[Codes, Codes, Codes]]:
        """The rows of each variant of the log by name, and its (base, variant) rows beside a base.

        The base is that of `contrast`; rewordings are no variant here.
        """
        log = self.log
        rows = self.rows if self.others is None else np.concatenate([self.rows, self.others])
        found = {}
        for code, name in enumerate(log.variants):
            own = rows[log.variant[rows] == code]
            if name != REWORDING and len(own):
                nothing = own[:0]
                base, beside = self._with_base(own) or (nothing, nothing)
                found[name] = (own, base, beside)
        return found

    def _with_base(self, changed: Codes) -> tuple[Codes, Codes] | None:
        log = self.log
        place = log.item * len(log.orders) + log.order
        own = place * (int(log.base.max()) + 1) + log.base
        plain = np.array([name == REWORDING for name in log.variants])[log.variant[self.rows]]
        found: list[tuple[Codes, Codes]] = []
        for keys, bases in ((own, self.rows[plain]), (own, self.rows), (place, self.rows)):
            found.append(joined(keys, bases, changed))
            changed = changed[~np.isin(changed, found[-1][1])]
        one, two = (np.concatenate(side) for side in zip(*found, strict=True))
        return (one, two) if len(one) else None

    def sides(self, labels: str) -> tuple[Codes, Codes]:
        """Both decisions of every pair as codes, ``raw`` (but see `renamed`) or ``mapped``."""
        if labels != "raw":
            return self.mapped_a, self.mapped_b
        if not self.renamed.any():
            return self.raw_a, self.raw_b
        return (
            np.where(self.renamed, self.mapped_a, self.raw_a),
            np.where(self.renamed, self.mapped_b, self.raw_b),
        )

    def words(self, labels: str) -> tuple[Words, Words]:
        """Both decisions of every pair as words; ERROR where a prompt was not judged."""
        # The code -1 (not judged) takes the last entry.
        words = np.append(self.log.labels, ERROR)
        one, two = self.sides(labels)
        return words[one], words[two]

    @cached_property
    def templates(self) -> tuple[Words, Words]:
        """The templates of both sides of every pair."""
        names = np.array(self.log.templates, dtype=object)
        return names[self.pairs.template_a], names[self.pairs.template_b]

    @cached_property
    def places(self) -> list[tuple[str, str, str, str]]:
        """Item, both templates and option order of every pair."""
        items = np.array(self.pairs.items, dtype=object)[self.pairs.item]
        orders = np.array(self.log.orders, dtype=object)[self.pairs.order]
        return list(zip(items, *self.templates, orders, strict=True))

    @cached_property
    def inverted(self) -> frozenset[str]:
        """The templates with an answer that means another label than under most templates.

        Other names of the same labels (1 and 2 for A and B) are no inversion.
        """
        maps: dict[int, tuple[int, ...]] = {}
        pairs = self.pairs
        for templates, codes in ((pairs.template_a, pairs.map_a), (pairs.template_b, pairs.map_b)):
            for place in np.unique(templates, return_index=True)[1]:
                maps[int(templates[place])] = tuple(pairs.forward[codes[place]].tolist())
        if not maps:
            return frozenset()
        usual = Counter(maps[code] for code in sorted(maps)).most_common(1)[0][0]
        labels = set(np.flatnonzero(np.isin(self.log.labels, self.task.labels)).tolist())
        return frozenset(
            self.log.templates[code]
            for code, own in maps.items()
            if any(a != b and {a, b} <= labels for a, b in zip(own, usual, strict=True))
        )

    @cached_property
    def with_inverted(self) -> Bools:
        """The pairs with exactly one inverted wording."""
        one, two = (np.isin(side, list(self.inverted)) for side in self.templates)
        mixed: Bools = one != two
        return mixed

    def agreement(self, labels: str, keep: Bools | None = None) -> Agreement:
        """JSS and its companions on the judged pairs, or on those of them in the mask ``keep``."""
        used = self.known if keep is None else self.known & keep
        if not used.any():
            return NOTHING
        one, two = (side[used] for side in self.sides(labels))
        return agreement(self.log, one, two, self.pairs.cluster[used])

    def probabilities(self, labels: str, keep: Bools) -> tuple[Floats, Floats, Bools] | None:
        """Both sides' option probabilities at pairs of the mask ``keep``, shape (n, L) each.

        Columns are options for ``raw``, canonical labels for ``mapped``. The mask returned has the
        n pairs with probabilities on both sides. None without any.
        """
        if self._shares is None:
            return None
        first, second, columns = self._shares
        used = keep & ~np.isnan(first[:, 0]) & ~np.isnan(second[:, 0])
        if not used.any():
            return None
        first, second = first[used], second[used]
        pairs, n_labels, renamed = self.pairs, len(self.log.labels), self.renamed[used, None]
        if labels == "raw" and not renamed.any():
            return first, second, used
        own = [
            mapped_shares(shares, columns, maps[used], pairs, n_labels)
            for shares, maps in ((first, pairs.map_a), (second, pairs.map_b))
        ]
        if labels == "raw":
            wide = np.zeros((len(first), n_labels))
            raw = [wide.copy(), wide.copy()]
            raw[0][:, columns], raw[1][:, columns] = first, second
            own = [np.where(renamed, m, r) for m, r in zip(own, raw, strict=True)]
        return own[0], own[1], used

    @cached_property
    def _shares(self) -> tuple[Floats, Floats, Codes] | None:
        """Both sides' option probabilities at all pairs (NaN without any), and their labels."""
        if self.scoring != "options" or self.row_a is None or self.row_b is None:
            return None
        shares, columns = option_shares(self.log, self.rows)
        if not len(columns) or not len(self.pairs):
            return None
        place = np.full(len(self.log.raw) + 1, -1)
        place[self.rows] = np.arange(len(self.rows))
        shares = np.vstack([shares, np.full((1, len(columns)), np.nan)])
        return shares[place[self.row_a]], shares[place[self.row_b]], columns

    def answers(self, repeats: bool = False) -> Answers:
        """The judge's single answers: the first to every prompt, or all with ``repeats``.

        Contrast and intervention variants are left out.
        """
        log, rows = self.log, self.rows
        if repeats and len(rows):
            head = rows[0]
            same = (log.judge == log.judge[head]) & (log.task == log.task[head])
            rows = np.flatnonzero(same & (log.scoring == log.scoring[head]) & log.equivalent)
        return answers(log, rows)


def agreement(log: Log, first: Codes, second: Codes, clusters: Codes) -> Agreement:
    """JSS and its companions for two arrays of label codes, without kappa's interval."""
    return jss_of_codes(first, second, log.labels.tolist(), clusters, kappa_interval=False)


def distinct(codes: Codes) -> int:
    """The number of distinct codes (codes are >= 0)."""
    return int(np.count_nonzero(np.bincount(codes))) if len(codes) else 0


ORACLE, ALWAYS_FIRST = "oracle", "always-first"
BASELINES = (ORACLE, ALWAYS_FIRST)
"""The judges of baseline cells: one that is always right, one that never reads."""

NOT_JUDGED = -1


@dataclass(frozen=True)
class View:
    """A decision log lined up with its pairs; see :func:`view`.

    ``streams`` are the judges', then the baselines'.
    """

    log: Log
    streams: tuple[Stream, ...]

    @property
    def names(self) -> dict[str, str]:
        """The short name of each judge (see :func:`judgesense.text.short_names`)."""
        return short_names(self.log.judges)

    @property
    def judged(self) -> list[Stream]:
        """The streams of the judges, without the baselines."""
        return [stream for stream in self.streams if stream.row_a is not None]


def view(
    log: pa.Table, pairs: pa.Table | None = None, record: Mapping[str, Any] | None = None
) -> View:
    """Line up a decision log with its pairs, one stream per judge, task and scoring.

    Args:
        log: a decision log with the columns of `judgesense.decisions.SCHEMA`, n rows.
        pairs: the run's planned pairs (``pairs.parquet``). None forms all pairs of equivalent
            templates within item and order, as for an import.
        record: the run's ``run.json``; its ``tasks`` give labels and which tasks are comparative.
            Without it, both are inferred from the log.

    Raises:
        JudgeSenseError: the log has no rows, a pair's label map is invalid, or a variant class is
            unknown.

    >>> import pyarrow as pa
    >>> from judgesense.decisions import SCHEMA
    >>> row = {"judge": "j", "task": "t", "scoring": "generate", "item_id": "i", "status": "ok"}
    >>> said = [{**row, "template_id": t, "decision": d} for t, d in [("1", "YES"), ("2", "NO")]]
    >>> (stream,) = view(pa.Table.from_pylist(said, schema=SCHEMA)).judged
    >>> stream.answers().label.tolist(), stream.agreement("mapped").flip_rate
    (['YES', 'NO'], 1.0)
    """
    log, told = without_content_free(log)
    frame, tasks, of_task = read_frames(log, pairs, record or {})
    streams = (
        replace(s, content_free=told.get((s.judge, s.task.name, s.scoring), {}))
        for s in _streams(frame, tasks, of_task)
    )
    return View(frame, tuple(streams))


def _streams(
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
    is_first = first_answers(log, rows)
    first, later = rows[is_first], rows[~is_first]
    once, others = first[log.equivalent[first]], first[~log.equivalent[first]]
    row_of = np.full(log.n_stimuli + 1, NOT_JUDGED)
    seen = once[log.stimulus[once] >= 0][::-1]
    row_of[log.stimulus[seen]] = seen
    # A prompt that is equivalent with another scoring only has pairs, but none of this stream's.
    apart = np.setdiff1d(log.stimulus[others], [-1, *log.stimulus[seen]])
    if len(apart):
        pairs = pairs.only(~(np.isin(pairs.first, apart) | np.isin(pairs.second, apart)))
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
        log=log,
        pairs=pairs,
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
        reruns=repeated_answers(log, once, later[log.equivalent[later]]),
        others=others if len(others) else None,
    )


def _baselines(log: Log, task: TaskWords, pairs: Pairs) -> Iterator[Stream]:
    """A judge that is always right, and one that always takes the first option.

    Both answer through the inverse label maps, so raw figures show the effect of the wordings
    alone.
    """
    of_task = (log.task == log.tasks.index(task.name)) & log.equivalent
    rows = np.flatnonzero(of_task & (log.stimulus >= 0))
    _, index = np.unique(log.stimulus[rows] * len(log.items) + log.item[rows], return_index=True)
    rows = rows[np.sort(index)]
    meant = np.full(log.n_stimuli + 1, NOT_JUDGED)
    meant[log.stimulus[rows][::-1]] = log.gold[rows][::-1]
    if (log.gold[rows] >= 0).any() and len(pairs):
        yield _baseline(log, ORACLE, task, pairs, meant, rows, log.gold[rows])
    if task.comparative and len(pairs) and task.labels and task.labels[0] in log.labels:
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
        log=log,
        pairs=pairs,
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
