"""A stream's answers as one array: items x wordings x option orders x labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.decisions import REWORDING, VARIANT_CLASSES
from judgesense.decisions.rows import option_shares
from judgesense.decisions.view import Stream
from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.calibration import UNDECIDED
from judgesense.tasks import ERROR
from judgesense.trust.checks import has_foreign_gold

NOT_ASKED = -2
"""The code of a prompt that the log does not have."""

_UNSEEN = np.log(1e-6)
"""The log-probability of an option that an endpoint did not show, unless a shown one is lower."""


@dataclass(frozen=True)
class Wording:
    """A wording of a grid: its template, and its variant if it has one."""

    template: str
    variant: str | None
    variant_class: str

    @property
    def name(self) -> str:
        """The template, with the variant if there is one."""
        return f"{self.template}+{self.variant}" if self.variant else self.template


@dataclass(frozen=True)
class Grid:
    """The first answers of a judge on a task, by item (n), wording (T), order (O) and label (L).

    ``verdicts`` are codes of the task's labels as shown, -1 where undecided and -2 where not asked,
    shape (n, T, O). ``logprobs`` are log-probabilities of the labels as shown, shape (n, T, O, L),
    NaN without any; for text, 0 for the verdict and -inf for the others. ``gold`` is each item's
    label in its own order, -1 if unknown. ``mean_cost`` is US dollars per prompt, None if unknown.
    ``raw`` has for each wording the raw answer of each label. ``repeats`` are the verdicts of all
    answers to the same prompt, shape (n, T, O, R), None if each was asked once. ``content_free``
    has, by wording, the labels' log-probabilities on input without content, shape (m, L).
    """

    judge: str
    task: str
    scoring: str
    labels: tuple[str, ...]
    comparative: bool
    items: npt.NDArray[Any]
    clusters: Codes
    gold: Codes
    wordings: tuple[Wording, ...]
    orders: tuple[str, ...]
    verdicts: Codes
    logprobs: Floats
    raw: tuple[tuple[str, ...], ...]
    has_probabilities: bool
    repeats: Codes | None = None
    mean_cost: float | None = None
    content_free: Mapping[str, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def both_orders(self) -> bool:
        """Whether some wording was asked in both option orders."""
        asked = (self.verdicts != NOT_ASKED).any(axis=0)
        return len(self.orders) == 2 and bool(asked.all(axis=1).any())

    def of(self, variant_class: str) -> list[int]:
        """The wordings of a variant class."""
        return [n for n, w in enumerate(self.wordings) if w.variant_class == variant_class]

    def take(self, items: Codes) -> Grid:
        """The grid of some of the items."""
        return replace(
            self,
            items=self.items[items],
            clusters=self.clusters[items],
            gold=self.gold[items],
            verdicts=self.verdicts[items],
            logprobs=self.logprobs[items],
            repeats=None if self.repeats is None else self.repeats[items],
        )


def grid_of(stream: Stream, without: frozenset[str] = frozenset()) -> Grid:
    """The grid of a judge's stream, with its equivalent and contrast wordings.

    ``without`` are templates to leave out, such as those whose label map is wrong.
    """
    log = stream.log
    rows = stream.rows
    if stream.contrast is not None:
        rows = np.concatenate([rows, np.unique(stream.contrast[1])])
    names = np.array(log.templates, dtype=object)[log.template[rows]]
    rows = rows[~np.isin(names, list(without))]
    items, item = np.unique(log.item[rows], return_inverse=True)
    _, first = np.unique(item, return_index=True)
    keys = log.base[rows] * len(log.variants) + log.variant[rows]
    keys = keys * len(VARIANT_CLASSES) + log.variant_class[rows]
    found, at, wording = np.unique(keys, return_index=True, return_inverse=True)
    named = [_wording(stream, row) for row in rows[at].tolist()]
    ranked = sorted(range(len(named)), key=lambda n: named[n].name)
    wordings = tuple(named[n] for n in ranked)
    wording = np.argsort(ranked)[wording]
    orders = tuple(log.orders[code] for code in np.unique(log.order[rows]))
    orders = tuple(sorted(orders))
    order = np.array([orders.index(o) if o in orders else 0 for o in log.orders])[log.order[rows]]
    labels = stream.task.labels
    code_of = np.full(len(log.labels) + 1, UNDECIDED)
    for code, label in enumerate(labels):
        code_of[np.flatnonzero(log.labels == label)] = code
    shape = (len(items), len(found), len(orders))
    verdicts = np.full(shape, NOT_ASKED)
    # A failed request is no verdict: the prompt can be asked again.
    failed = log.labels[log.decision[rows]] == ERROR
    verdicts[item, wording, order] = np.where(failed, NOT_ASKED, code_of[log.decision[rows]])
    gold = np.full(len(rows), -1) if has_foreign_gold(stream) else log.gold[rows]
    meaning = [_meaning(stream, rows[wording == n]) for n in range(len(found))]
    told = _told(stream, rows, wording, meaning, code_of, len(labels))
    logprobs = np.full((*shape, len(labels)), np.nan)
    if told is not None:
        logprobs[item, wording, order] = told
    else:
        known = verdicts >= 0
        logprobs[known] = -np.inf
        logprobs[(*np.nonzero(known), verdicts[known])] = 0.0
    return Grid(
        judge=stream.judge,
        task=stream.task.name,
        scoring=stream.scoring,
        labels=labels,
        comparative=stream.task.comparative and set(orders) <= {"AB", "BA"},
        items=np.array(log.items, dtype=object)[items],
        clusters=log.cluster[rows][first],
        gold=_gold(code_of[gold], item, order, orders, len(items)),
        wordings=wordings,
        orders=orders,
        verdicts=verdicts,
        logprobs=logprobs,
        raw=tuple(
            _raw_of(stream, rows[wording == n], m, labels, code_of) for n, m in enumerate(meaning)
        ),
        has_probabilities=told is not None,
        repeats=_repeats(stream, rows, (item, wording, order), verdicts, code_of),
        mean_cost=pc.mean(log.table["cost_usd"].take(pa.array(rows))).as_py(),
        content_free={
            wording.name: _content_free(stream, wording.name, forward, code_of, len(labels))
            for wording, forward in zip(wordings, meaning, strict=True)
            if wording.name in stream.content_free
        },
    )


def _content_free(
    stream: Stream, wording: str, meaning: Codes, code_of: Codes, n_labels: int
) -> Floats:
    """The labels' log-probabilities on each input without content, shape (m, n_labels)."""
    code = {word: int(meaning[at]) for at, word in enumerate(stream.log.labels.tolist())}
    told = stream.content_free[wording]
    shares = np.zeros((len(told), n_labels))
    for row, answer in enumerate(told):
        for option, logprob in answer.items():
            label = int(code_of[code[option]]) if option in code else UNDECIDED
            if label >= 0:
                shares[row, label] += np.exp(logprob)
    with np.errstate(invalid="ignore"):
        found = log_of_shares(shares / shares.sum(axis=1, keepdims=True))
    return found


def _wording(stream: Stream, row: int) -> Wording:
    log = stream.log
    variant = log.variants[log.variant[row]]
    return Wording(
        log.bases[log.base[row]],
        None if variant == REWORDING else variant,
        VARIANT_CLASSES[log.variant_class[row]],
    )


def _planned(stream: Stream, rows: Codes) -> int | None:
    """The label map of a wording in the run's pairs, if it is in any."""
    pairs = stream.pairs
    template = stream.log.template[rows[0]]
    for side, maps in ((pairs.template_a, pairs.map_a), (pairs.template_b, pairs.map_b)):
        place = np.flatnonzero(side == template)
        if len(place) and pairs.planned:
            return int(maps[place[0]])
    return None


def _meaning(stream: Stream, rows: Codes) -> Codes:
    """What each raw answer means under a wording: label codes of the log, shape (labels,)."""
    log = stream.log
    if (planned := _planned(stream, rows)) is not None:
        given: Codes = stream.pairs.forward[planned]
        return given
    forward = np.arange(len(log.labels))
    decided = rows[~log.undecided[log.decision[rows]]]
    forward[log.raw[decided]] = log.decision[decided]
    known = [
        int(np.flatnonzero(log.labels == label)[0])
        for label in stream.task.labels
        if label in log.labels
    ]
    # Of two answers, one that never came means what the other does not.
    if len(known) == 2 and forward[known[0]] == forward[known[1]]:
        seen = set(log.raw[decided].tolist())
        one, two = known
        for own, other in ((one, two), (two, one)):
            if own in seen and other not in seen and forward[own] in known:
                forward[other] = one if forward[own] == two else two
    return forward


def _raw_of(
    stream: Stream, rows: Codes, meaning: Codes, labels: tuple[str, ...], code_of: Codes
) -> tuple[str, ...]:
    """The raw answer that stands for each label under a wording."""
    words = stream.log.labels
    found: dict[int, str] = {}
    if (planned := _planned(stream, rows)) is not None:
        for label, raw in enumerate(stream.pairs.inverse[planned].tolist()):
            if raw >= 0 and code_of[label] >= 0:
                found[int(code_of[label])] = str(words[raw])
    for raw, label in enumerate(meaning.tolist() if not found else ()):
        code = int(code_of[label]) if label >= 0 else UNDECIDED
        # A label keeps its own name unless the map says otherwise.
        if code >= 0 and (code not in found or raw == label):
            found[code] = str(words[raw])
    return tuple(found.get(code, label) for code, label in enumerate(labels))


def _told(
    stream: Stream,
    rows: Codes,
    wording: Codes,
    meaning: list[Codes],
    code_of: Codes,
    n_labels: int,
) -> Floats | None:
    """Log-probabilities of the canonical labels at the rows; None if the log has none."""
    if stream.scoring != "options":
        return None
    shares, columns = option_shares(stream.log, rows)
    if not len(columns) or np.isnan(shares).all():
        return None
    moved = np.zeros((len(rows), n_labels))
    for number, forward in enumerate(meaning):
        own = np.flatnonzero(wording == number)
        target = np.where(columns >= 0, code_of[forward[columns]], UNDECIDED)
        for column in np.flatnonzero(target >= 0):
            moved[own, target[column]] += np.nan_to_num(shares[own, column])
    told = log_of_shares(moved)
    told[np.isnan(shares[:, 0]) | (moved.sum(axis=1) <= 0)] = np.nan
    return told


def label_shares(stream: Stream, rows: Codes) -> Floats | None:
    """Probabilities of the task's labels, as shown, at some rows of the log, shape (n, L).

    NaN in rows without any; None if the stream has none.
    """
    log, labels = stream.log, stream.task.labels
    templates, wording = np.unique(log.template[rows], return_inverse=True)
    code_of = np.full(len(log.labels) + 1, UNDECIDED)
    for code, label in enumerate(labels):
        code_of[np.flatnonzero(log.labels == label)] = code
    meaning = [_meaning(stream, rows[wording == n]) for n in range(len(templates))]
    told = _told(stream, rows, wording, meaning, code_of, len(labels))
    if told is None:
        return None
    shares = np.exp(told)
    found: Floats = shares / shares.sum(axis=1, keepdims=True)
    return found


def log_of_shares(shares: Floats) -> Floats:
    """The logs of probabilities of labels, shape (n, L); an unseen label (0) is a millionth, or as
    improbable as the least probable one that was seen.

    >>> log_of_shares(np.array([[0.5, 0.0]])).round(1).tolist()
    [[-0.7, -13.8]]
    """
    with np.errstate(divide="ignore"):
        logs = np.log(shares)
    seen = np.where(shares > 0, logs, np.inf).min(axis=1, keepdims=True)
    found: Floats = np.where(shares > 0, logs, np.minimum(seen, _UNSEEN))
    return found


def _gold(gold: Codes, item: Codes, order: Codes, orders: tuple[str, ...], n: int) -> Codes:
    own = gold.copy()
    if "BA" in orders:
        swapped = order == orders.index("BA")
        own[swapped] = (
            np.array([1, 0])[gold[swapped]] if (gold[swapped] < 2).all() else gold[swapped]
        )
        own[swapped & (gold < 0)] = UNDECIDED
    found = np.full(n, UNDECIDED)
    known = np.flatnonzero(own >= 0)[::-1]
    found[item[known]] = own[known]
    return found


def _repeats(
    stream: Stream,
    rows: Codes,
    place: tuple[Codes, Codes, Codes],
    verdicts: Codes,
    code_of: Codes,
) -> Codes | None:
    """The verdicts of the first and the later answers to each prompt."""
    if stream.reruns is None:
        return None
    first, later = stream.reruns
    position = np.full(len(stream.log.raw), -1)
    position[rows] = np.arange(len(rows))
    first, later = first[position[first] >= 0], later[position[first] >= 0]
    if not len(first):
        return None
    by_prompt = np.argsort(first, kind="stable")
    first, later = first[by_prompt], later[by_prompt]
    starts = np.flatnonzero(np.r_[True, first[1:] != first[:-1]])
    sizes = np.diff(np.append(starts, len(first)))
    number = np.arange(len(first)) - np.repeat(starts, sizes) + 1
    found = np.full((*verdicts.shape, int(number.max()) + 1), NOT_ASKED)
    found[..., 0] = verdicts
    at = position[first]
    found[place[0][at], place[1][at], place[2][at], number] = code_of[stream.log.decision[later]]
    return found
