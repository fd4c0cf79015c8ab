"""A stream's answers by item, wording and option order: what remedies are fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.log.rows import option_shares
from judgesense.log.schema import REWORDING, VARIANT_CLASSES
from judgesense.log.stream import Stream, crossed, has_foreign_gold
from judgesense.statistics.arrays import Codes, Floats
from judgesense.statistics.calibration import UNDECIDED
from judgesense.tasks import ERROR

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
    ``raw`` has for each wording the raw answer of each label.
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
    mean_cost: float | None = None

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
        )


def grid_of(stream: Stream, without: frozenset[str] = frozenset()) -> Grid:
    """The grid of a judge's stream, with its equivalent and contrast wordings.

    ``without`` are templates to leave out, such as those whose label map is wrong.
    """
    log, labels, rows = stream.log, stream.task.labels, stream.rows
    if stream.contrast is not None:
        rows = np.concatenate([rows, np.unique(stream.contrast[1])])
    rows = rows[~np.isin(log.templates, list(without))[log.template[rows]]]
    keys = log.base[rows] * len(log.variants) + log.variant[rows]
    keys = keys * len(VARIANT_CLASSES) + log.variant_class[rows]
    _, first, wording = np.unique(keys, return_index=True, return_inverse=True)
    named = []
    for row in rows[first].tolist():
        variant = log.variants[log.variant[row]]
        named.append(
            Wording(
                log.bases[log.base[row]],
                None if variant == REWORDING else variant,
                VARIANT_CLASSES[log.variant_class[row]],
            )
        )
    ranked = sorted(range(len(named)), key=lambda n: named[n].name)
    wording = np.argsort(ranked)[wording]
    items, order_codes, place = crossed(log, rows, wording)
    _, of_item, item = np.unique(log.item[rows], return_index=True, return_inverse=True)
    by_name = sorted(range(len(order_codes)), key=lambda n: log.orders[order_codes[n]])
    orders = tuple(log.orders[order_codes[n]] for n in by_name)
    place = place[:, :, by_name]
    known = place >= 0
    code_of = log.codes_of(labels)
    # A failed request is no verdict: the prompt can be asked again.
    failed = log.labels[log.decision[rows]] == ERROR
    verdict = np.append(np.where(failed, NOT_ASKED, code_of[log.decision[rows]]), NOT_ASKED)
    verdicts = verdict[place]
    at = [rows[wording == n] for n in range(len(named))]
    meaning = [_meaning(stream, each) for each in at]
    shares = _label_logprobs(stream, rows, wording, meaning, code_of, len(labels))
    logprobs = np.full((*place.shape, len(labels)), np.nan)
    if shares is not None:
        logprobs[known] = shares[place[known]]
    else:
        logprobs[verdicts >= 0] = -np.inf
        decided = np.nonzero(verdicts >= 0)
        logprobs[(*decided, verdicts[decided])] = 0.0
    gold = np.full(len(rows), -1) if has_foreign_gold(stream) else code_of[log.gold[rows]]
    swapped = np.array([order == "BA" for order in log.orders])[log.order[rows]]
    return Grid(
        judge=stream.judge,
        task=stream.task.name,
        scoring=stream.scoring,
        labels=labels,
        comparative=stream.task.comparative and set(orders) <= {"AB", "BA"},
        items=np.array(log.items, dtype=object)[items],
        clusters=log.cluster[rows][of_item],
        gold=_gold(gold, swapped, item, len(items)),
        wordings=tuple(named[n] for n in ranked),
        orders=orders,
        verdicts=verdicts,
        logprobs=logprobs,
        raw=tuple(
            _raw_of(stream, each, m, labels, code_of) for each, m in zip(at, meaning, strict=True)
        ),
        has_probabilities=shares is not None,
        mean_cost=pc.mean(log.table["cost_usd"].take(pa.array(rows))).as_py(),
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
    known = np.flatnonzero(np.isin(log.labels, stream.task.labels))
    # Of two answers, one that never came means what the other does not.
    if len(known) == 2 and forward[known[0]] == forward[known[1]]:
        seen = set(log.raw[decided].tolist())
        one, two = known.tolist()
        for came, other in ((one, two), (two, one)):
            if came in seen and other not in seen and forward[came] in known:
                forward[other] = one if forward[came] == two else two
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
        code = int(code_of[label])
        # A label keeps its own name unless the map says otherwise.
        if code >= 0 and (code not in found or raw == label):
            found[code] = str(words[raw])
    return tuple(found.get(code, label) for code, label in enumerate(labels))


def _label_logprobs(
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
        of_wording = np.flatnonzero(wording == number)
        target = np.where(columns >= 0, code_of[forward[columns]], UNDECIDED)
        for column in np.flatnonzero(target >= 0):
            moved[of_wording, target[column]] += np.nan_to_num(shares[of_wording, column])
    found = log_of_shares(moved)
    found[np.isnan(shares[:, 0]) | (moved.sum(axis=1) <= 0)] = np.nan
    return found


def label_shares(stream: Stream, rows: Codes) -> Floats | None:
    """Probabilities of the task's labels, as shown, at some rows of the log, shape (n, L).

    NaN in rows without any; None if the stream has none.
    """
    log, labels = stream.log, stream.task.labels
    templates, wording = np.unique(log.template[rows], return_inverse=True)
    meaning = [_meaning(stream, rows[wording == n]) for n in range(len(templates))]
    logprobs = _label_logprobs(stream, rows, wording, meaning, log.codes_of(labels), len(labels))
    if logprobs is None:
        return None
    shares = np.exp(logprobs)
    found: Floats = shares / shares.sum(axis=1, keepdims=True)
    return found


def label_logprobs(
    label_map: Mapping[str, str],
    labels: tuple[str, ...],
    options: Mapping[str, float] | None = None,
    verdict: str | None = None,
) -> Floats:
    """An answer as log-probabilities of the labels as shown, shape (L,), NaN where nothing was
    read: from those of its options, or 0 for the label of its verdict and -inf for the others."""
    found = np.full(len(labels), np.nan)
    if options:
        shares, best = np.zeros(len(labels)), max(options.values())
        for option, logprob in options.items():
            shares[labels.index(label_map[option])] += np.exp(logprob - best)
        found = log_of_shares(shares[None])[0]
    elif (label := label_map.get(verdict or "")) is not None:
        found[:] = -np.inf
        found[labels.index(label)] = 0.0
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


def _gold(gold: Codes, swapped: npt.NDArray[np.bool_], item: Codes, n: int) -> Codes:
    """Each item's label in its own order, from the labels of its answers as shown."""
    turned = np.array([1, 0, UNDECIDED])[gold[swapped]] if (gold[swapped] < 2).all() else None
    labels = gold.copy()
    labels[swapped] = gold[swapped] if turned is None else turned
    found = np.full(n, UNDECIDED)
    known = np.flatnonzero(labels >= 0)[::-1]
    found[item[known]] = labels[known]
    return found
