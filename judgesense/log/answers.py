"""A judge's answers on one task, which every check takes: `Answers`.

They are built once per judge, task and scoring, by :func:`judgesense.log.view.view`. What recipes
decide on is the same answers as an array (:mod:`judgesense.log.array`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from judgesense.log.pairs import Pairs, mapped_shares
from judgesense.log.rows import AnswerRows, Log, TaskWords, option_shares
from judgesense.log.schema import (
    ATTACK,
    CONTRAST,
    DAMAGE,
    HARMLESS,
    OTHER_ITEM,
    REWORDING,
    VARIANT_CLASSES,
)
from judgesense.statistics.agreement import Agreement, jss_of_codes
from judgesense.statistics.arrays import Bools, Codes, Floats, Words
from judgesense.tasks import ERROR, is_scale

NO_AGREEMENT = Agreement(
    jss=None,
    flip_rate=None,
    kappa=None,
    ci_low=None,
    ci_high=None,
    kappa_ci_low=None,
    kappa_ci_high=None,
    jss_low=0.0,
    jss_high=1.0,
    n_pairs=0,
    n_items=0,
    n_unclear=0,
    n_refused=0,
    n_error=0,
    degenerate="no pair has a decision on both sides",
)
"""The agreement of no pairs at all."""


@dataclass(frozen=True)
class Answers:
    """The answers of one judge on one task under one scoring.

    ``rows``, shape (m,), are the log's rows with the first answer to each prompt and item, of
    equivalent variants; ``decision`` is the mapped decision there. ``others`` are those of the
    other variants (contrasts, interventions, attacks, damage), ``reruns`` (first, later) rows of
    the same prompt. `cube` finds an answer by item, wording and option order.

    ``pairs`` are the p pairs of prompts that are compared: those that a run planned, or all within
    item and order. ``raw_a``, ``raw_b``, ``mapped_a`` and ``mapped_b``, shape (p,), are label codes
    of both sides, -1 where the prompt was not judged; ``row_a`` and ``row_b`` are the log's rows
    behind them, None for baselines.
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

    @cached_property
    def cube(self) -> Cube:
        """The answers by item, template (in the order of their names) and option order."""
        # The codes of templates follow their first rows in the log, not their names.
        rank = np.argsort(np.argsort(self.log.templates, kind="stable"), kind="stable")
        cube = cube_of(self.log, self.rows, rank[self.log.template[self.rows]])
        return replace(cube, wordings=np.argsort(rank)[cube.wordings])

    @cached_property
    def known(self) -> Bools:
        """The pairs with both prompts judged."""
        known: Bools = (self.raw_a >= 0) & (self.raw_b >= 0)
        return known

    @property
    def clusters(self) -> Codes:
        """The cluster of each pair, coded as those of the log's rows; not of a baseline."""
        assert self.row_a is not None
        clusters: Codes = self.log.cluster[self.row_a]
        return clusters

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
        has_answer = np.zeros(pairs.inverse.shape, bool)
        maps, labels = np.nonzero(pairs.inverse >= 0)
        has_answer[maps, pairs.inverse[maps, labels]] = True
        same_names = np.unique(has_answer, axis=0, return_inverse=True)[1].ravel()
        renamed: Bools = same_names[pairs.map_a] != same_names[pairs.map_b]
        return renamed

    @cached_property
    def contrast(self) -> tuple[Codes, Codes] | None:
        """(base, contrast) rows of the log on the same item and order; None without any.

        A contrast variant asks another question, so a judge that reads it answers otherwise:
        compare ``log.raw`` of both. Those that show another item are in `item_contrast`. The base
        is the same ``template_id`` without a variant if it was asked, or else its equivalent
        variants, or else every equivalent wording of the item and order.
        """
        return self._contrasts(other_item=False)

    @cached_property
    def item_contrast(self) -> tuple[Codes, Codes] | None:
        """(base, contrast) rows where the contrast shows another item, whose gold differs."""
        return self._contrasts(other_item=True)

    def _contrasts(self, *, other_item: bool) -> tuple[Codes, Codes] | None:
        if self.others is None:
            return None
        log, rows = self.log, self.others
        shows_other_item = np.array([name.endswith(OTHER_ITEM) for name in log.variants])
        is_contrast = log.variant_class[rows] == VARIANT_CLASSES.index(CONTRAST)
        is_contrast &= shows_other_item[log.variant[rows]] == other_item
        base, contrast = self._with_base(rows[is_contrast])
        return (base, contrast) if len(base) else None

    @cached_property
    def variants(self) -> dict[str, tuple[Codes, Codes, Codes]]:
        """The rows of each variant of the log by name, and its (base, variant) rows beside a base.

        The base is that of `contrast`; rewordings, attacks, damage and harmless edits are no
        variants here.
        """
        log = self.log
        rows = self.rows if self.others is None else np.concatenate([self.rows, self.others])
        other_classes = [VARIANT_CLASSES.index(name) for name in (ATTACK, DAMAGE, HARMLESS)]
        rows = rows[~np.isin(log.variant_class[rows], other_classes)]
        variants = {}
        for code, name in enumerate(log.variants):
            variant_rows = rows[log.variant[rows] == code]
            if name != REWORDING and len(variant_rows):
                variants[name] = (variant_rows, *self._with_base(variant_rows))
        return variants

    def _with_base(self, variant_rows: Codes) -> tuple[Codes, Codes]:
        """Each row with its base: the first kind of base that its item and order have."""
        log = self.log
        item_order = log.item * len(log.orders) + log.order
        base_key = item_order * len(log.bases) + log.base
        is_rewording = np.array([name == REWORDING for name in log.variants])
        plain = self.rows[is_rewording[log.variant[self.rows]]]
        kinds = ((base_key, plain), (base_key, self.rows), (item_order, self.rows))
        pairs: list[tuple[Codes, Codes]] = []
        for keys, bases in kinds:
            pairs.append(join_rows_by_key(keys, bases, variant_rows))
            # A row that has a base of one kind is not compared with the next kind.
            variant_rows = variant_rows[~np.isin(variant_rows, pairs[-1][1])]
        base, variant = (np.concatenate(side) for side in zip(*pairs, strict=True))
        return base, variant

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

    def decided(self, labels: str = "mapped") -> Bools:
        """The pairs with a decision on both sides."""
        one, two = self.sides(labels)
        decided: Bools = self.known & ~(self.log.undecided[one] | self.log.undecided[two])
        return decided

    @cached_property
    def templates(self) -> tuple[Words, Words]:
        """The templates of both sides of every pair."""
        names = np.array(self.log.templates, dtype=object)
        return names[self.pairs.template_a], names[self.pairs.template_b]

    def under(self, templates: Collection[str]) -> tuple[Bools, Bools]:
        """Which pairs have one of some templates on their first side, and which on their second."""
        is_named = np.isin(self.log.templates, list(templates))
        return is_named[self.pairs.template_a], is_named[self.pairs.template_b]

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
            for pair in np.unique(templates, return_index=True)[1]:
                maps[int(templates[pair])] = tuple(pairs.forward[codes[pair]].tolist())
        if not maps:
            return frozenset()
        usual = np.array(Counter(map(maps.__getitem__, sorted(maps))).most_common(1)[0][0])
        is_label = np.isin(self.log.labels, self.task.labels)
        return frozenset(
            self.log.templates[code]
            for code, meaning in maps.items()
            if ((np.array(meaning) != usual) & is_label & is_label[np.array(meaning)]).any()
        )

    @cached_property
    def with_inverted(self) -> Bools:
        """The pairs with exactly one inverted wording."""
        one, two = self.under(self.inverted)
        with_inverted: Bools = one != two
        return with_inverted

    def agreement(
        self,
        labels: str,
        keep: Bools | None = None,
        *,
        level: float = 0.95,
        kappa_interval: bool = False,
    ) -> Agreement:
        """JSS and its companions on the judged pairs, or on those of them in the mask ``keep``.

        ``level`` is the confidence level of the intervals, which hold for these wordings.
        """
        is_used = self.known if keep is None else self.known & keep
        one, two = (side[is_used] for side in self.sides(labels))
        return agreement(self.log, one, two, self.pairs.cluster[is_used], level, kappa_interval)

    def probabilities(self, labels: str, keep: Bools) -> tuple[Floats, Floats, Bools] | None:
        """Both sides' option probabilities at pairs of the mask ``keep``, shape (n, L) each.

        Columns are options for ``raw``, canonical labels for ``mapped``. The mask returned has the
        n pairs with probabilities on both sides. None without any.
        """
        if self._shares is None:
            return None
        first, second, columns = self._shares
        is_used = keep & ~np.isnan(first[:, 0]) & ~np.isnan(second[:, 0])
        if not is_used.any():
            return None
        first, second = first[is_used], second[is_used]
        pairs, n_labels, renamed = self.pairs, len(self.log.labels), self.renamed[is_used, None]
        if labels == "raw" and not renamed.any():
            return first, second, is_used
        mapped = [
            mapped_shares(shares, columns, maps[is_used], pairs, n_labels)
            for shares, maps in ((first, pairs.map_a), (second, pairs.map_b))
        ]
        if labels == "raw":
            raw_shares = np.zeros((2, len(first), n_labels))
            raw_shares[0][:, columns], raw_shares[1][:, columns] = first, second
            mapped = [np.where(renamed, m, r) for m, r in zip(mapped, raw_shares, strict=True)]
        return mapped[0], mapped[1], is_used

    @cached_property
    def _shares(self) -> tuple[Floats, Floats, Codes] | None:
        """Both sides' option probabilities at all pairs (NaN without any), and their labels."""
        if self.scoring != "options" or self.row_a is None or self.row_b is None:
            return None
        shares, columns = option_shares(self.log, self.rows)
        if not len(columns) or not len(self.pairs):
            return None
        share_row = np.full(len(self.log.raw) + 1, -1)
        share_row[self.rows] = np.arange(len(self.rows))
        shares = np.vstack([shares, np.full((1, len(columns)), np.nan)])
        return shares[share_row[self.row_a]], shares[share_row[self.row_b]], columns

    def as_rows(self, repeats: bool = False) -> AnswerRows:
        """The judge's single answers: the first to every prompt, or all with ``repeats``.

        Contrast and intervention variants are left out.
        """
        log, rows = self.log, self.rows
        if repeats and len(rows):
            first = rows[0]
            is_same = (log.judge == log.judge[first]) & (log.task == log.task[first])
            rows = np.flatnonzero(is_same & (log.scoring == log.scoring[first]) & log.equivalent)
        return AnswerRows.at(log, rows)


def join_rows_by_key(keys: Codes, left: Codes, right: Codes) -> tuple[Codes, Codes]:
    """All pairs of a row on the left and one on the right with the same key."""
    sorted_left = left[np.argsort(keys[left], kind="stable")]
    start = np.searchsorted(keys[sorted_left], keys[right], "left")
    count = np.searchsorted(keys[sorted_left], keys[right], "right") - start
    offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return sorted_left[np.repeat(start, count) + offset], np.repeat(right, count)


def agreement(
    log: Log,
    first: Codes,
    second: Codes,
    clusters: Codes,
    level: float = 0.95,
    kappa_interval: bool = False,
) -> Agreement:
    """JSS and its companions for two arrays of label codes."""
    if not len(first):
        return NO_AGREEMENT
    return jss_of_codes(
        first,
        second,
        log.labels.tolist(),
        clusters,
        confidence_level=level,
        kappa_interval=kappa_interval,
    )


def distinct(codes: Codes) -> int:
    """The number of distinct codes (codes are >= 0)."""
    return int(np.count_nonzero(np.bincount(codes))) if len(codes) else 0


@dataclass(frozen=True)
class Cube:
    """Where each answer is: items (n) x wordings (T) x option orders (O).

    ``items``, ``wordings`` and ``orders`` are codes; ``places``, shape (n, T, O), are indices of
    the rows that the cube is made of, -1 where there is no answer.
    """

    items: Codes
    wordings: Codes
    orders: Codes
    places: Codes


def cube_of(log: Log, rows: Codes, wording: Codes) -> Cube:
    """The cube of some rows of a log; ``wording``, shape (m,), has a code for each."""
    items, item = np.unique(log.item[rows], return_inverse=True)
    wordings, column = np.unique(wording, return_inverse=True)
    orders, order = np.unique(log.order[rows], return_inverse=True)
    places = np.full((len(items), len(wordings), len(orders)), -1)
    places[item, column, order] = np.arange(len(rows))
    return Cube(items, wordings, orders, places)


def has_foreign_gold(answers: Answers) -> bool:
    """Whether a log has gold labels, but those of another vocabulary than its verdicts."""
    gold = answers.log.gold[answers.rows]
    has_gold = gold >= 0
    if not has_gold.any():
        return False
    return vocabularies(answers, gold[has_gold], answers.decision[has_gold])[2]


def vocabularies(
    answers: Answers, gold: Codes, decision: Codes
) -> tuple[list[str], list[str], bool]:
    """The gold labels, the verdicts, and whether these are two vocabularies."""
    log = answers.log
    verdict_codes = np.unique(decision)
    labels = log.labels[np.unique(gold)].tolist()
    verdicts = log.labels[verdict_codes[~log.undecided[verdict_codes]]].tolist()
    is_disjoint = len(verdicts) > 1 and not set(labels) & set(verdicts)
    is_disjoint = is_disjoint and not is_scale([*labels, *verdicts])
    return labels, verdicts, is_disjoint or not set(labels) & set(answers.task.labels)
