"""A judge's answers as an array, item x wording x order x label: what recipes decide on.

`array_of` makes it from the answers in a log; :mod:`judgesense.recipes.units` turns the verdicts of
a recipe into answers again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.log.answers import Answers, cube_of, has_foreign_gold
from judgesense.log.rows import TaskWords, option_shares
from judgesense.log.schema import CONTRAST, EQUIVALENT, REWORDING, VARIANT_CLASSES
from judgesense.statistics.arrays import Bools, Codes, Floats, Words
from judgesense.statistics.calibration import NO_VERDICT
from judgesense.tasks import ERROR

NOT_ASKED = -2
"""The code of a prompt that the log does not have."""

_UNSEEN_LOGPROB = np.log(1e-6)
"""The log-probability of an option that an endpoint did not show, unless a shown one is lower."""

_SWAPPED = "BA"


@dataclass(frozen=True)
class Wording:
    """A wording of an array: its template, its variant if it has one, and that variant's class.

    ``raw`` has the answer that stands for each label.
    """

    template: str
    variant: str | None = None
    variant_class: str = EQUIVALENT
    raw: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The template, with the variant if there is one."""
        return f"{self.template}+{self.variant}" if self.variant else self.template

    def as_contrast(self) -> Wording:
        """The wording as another question than that of the equivalent wordings."""
        return replace(self, variant=self.variant or CONTRAST, variant_class=CONTRAST)

    def inverts(self, labels: tuple[str, ...]) -> bool:
        """Whether the names of two labels are exchanged under this wording."""
        return any(
            raw != label and raw in labels for raw, label in zip(self.raw, labels, strict=False)
        )


@dataclass(frozen=True)
class AnswerArray:
    """The first answers of a judge on a task, by item (n), wording (T), order (O) and label (L).

    ``verdicts`` are codes of the task's labels as shown, -1 where undecided and -2 where not asked,
    shape (n, T, O). ``logprobs`` are log-probabilities of the labels as shown, shape (n, T, O, L),
    NaN without any; for text, 0 for the verdict and -inf for the others. ``gold``, shape (n,), is
    each item's label in its own order, -1 if unknown. ``mean_cost`` is US dollars per prompt, None
    if unknown.
    """

    task: TaskWords
    scoring: str
    items: Words
    clusters: Codes
    gold: Codes
    wordings: tuple[Wording, ...]
    orders: tuple[str, ...]
    verdicts: Codes
    logprobs: Floats
    has_probabilities: bool
    mean_cost: float | None = None

    @classmethod
    def empty(
        cls,
        task: TaskWords,
        scoring: str,
        gold: Codes,
        clusters: Codes,
        wordings: Sequence[str],
        orders: Sequence[str],
    ) -> AnswerArray:
        """An array of prompts that nobody was asked yet, to be filled in place."""
        shape = (len(gold), len(wordings), len(orders))
        return cls(
            task=task,
            scoring=scoring,
            items=np.arange(len(gold)).astype(str).astype(object),
            clusters=clusters,
            gold=gold,
            wordings=tuple(map(Wording, wordings)),
            orders=tuple(orders),
            verdicts=np.full(shape, NOT_ASKED),
            logprobs=np.full((*shape, len(task.labels)), np.nan),
            has_probabilities=scoring == "options",
        )

    def __len__(self) -> int:
        return len(self.items)

    @property
    def asked(self) -> Bools:
        """Which prompts were asked, shape (n, T, O)."""
        asked: Bools = self.verdicts != NOT_ASKED
        return asked

    @property
    def labels(self) -> tuple[str, ...]:
        """The task's labels."""
        return self.task.labels

    @property
    def both_orders(self) -> bool:
        """Whether some wording was asked in both option orders."""
        is_asked = np.any(self.asked, axis=0)
        return len(self.orders) == 2 and bool(np.all(is_asked, axis=1).any())

    def of(self, variant_class: str) -> list[int]:
        """The wordings of a variant class."""
        return [n for n, w in enumerate(self.wordings) if w.variant_class == variant_class]

    def place(self, wording: str) -> int:
        """The place of a wording, by its name."""
        return self._places[wording]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {wording.name: n for n, wording in enumerate(self.wordings)}

    def take(self, items: Codes) -> AnswerArray:
        """The array of some of the items."""
        return self.under([wording.name for wording in self.wordings], self.orders, items)

    def under(
        self, wordings: Sequence[str], orders: Sequence[str], items: Codes | slice = slice(None)
    ) -> AnswerArray:
        """The array of some wordings, by name, and orders; of some of the items, or of all."""
        columns = [self.place(name) for name in wordings]
        places = [self.orders.index(order) for order in orders]
        return replace(
            self,
            items=self.items[items],
            clusters=self.clusters[items],
            gold=self.gold[items],
            wordings=tuple(self.wordings[n] for n in columns),
            orders=tuple(orders),
            verdicts=self.verdicts[items][:, columns][:, :, places],
            logprobs=self.logprobs[items][:, columns][:, :, places],
        )


def array_of(answers: Answers, without: Iterable[str] = ()) -> AnswerArray:
    """The array of a judge's answers under its equivalent and contrast wordings.

    ``without`` are templates to leave out, such as those whose label map is wrong.
    """
    log, labels, rows = answers.log, answers.task.labels, answers.rows
    if answers.contrast is not None:
        rows = np.concatenate([rows, np.unique(answers.contrast[1])])
    rows = rows[~np.isin(log.templates, list(without))[log.template[rows]]]
    wording_keys = log.template[rows] * len(VARIANT_CLASSES) + log.variant_class[rows]
    _, first_rows, wording = np.unique(wording_keys, return_index=True, return_inverse=True)
    code_of = log.codes_of(labels)
    rows_of = [rows[wording == n] for n in range(len(first_rows))]
    meanings = [_meanings(answers, of_wording) for of_wording in rows_of]
    wordings = [
        Wording(
            log.bases[log.base[row]],
            None if (variant := log.variants[log.variant[row]]) == REWORDING else variant,
            VARIANT_CLASSES[log.variant_class[row]],
            _raw_names(answers, rows_of[n], meanings[n], code_of),
        )
        for n, row in enumerate(rows[first_rows].tolist())
    ]
    cube = cube_of(log, rows, wording)
    by_name = sorted(range(len(wordings)), key=lambda n: wordings[n].name)
    by_order = sorted(range(len(cube.orders)), key=lambda n: log.orders[cube.orders[n]])
    orders = tuple(log.orders[cube.orders[n]] for n in by_order)
    places = cube.places[:, by_name][:, :, by_order]
    # A failed request is no verdict: the prompt can be asked again.
    is_failed = log.labels[log.decision[rows]] == ERROR
    code_of_row = np.append(np.where(is_failed, NOT_ASKED, code_of[log.decision[rows]]), NOT_ASKED)
    verdicts = code_of_row[places]
    row_logprobs = _label_logprobs(answers, rows, wording, meanings, code_of)
    logprobs = np.full((*places.shape, len(labels)), np.nan)
    if row_logprobs is not None:
        logprobs[places >= 0] = row_logprobs[places[places >= 0]]
    else:
        decided = np.nonzero(verdicts >= 0)
        logprobs[decided] = -np.inf
        logprobs[(*decided, verdicts[decided])] = 0.0
    gold = np.full(len(rows), -1) if has_foreign_gold(answers) else code_of[log.gold[rows]]
    is_swapped = np.array([order == _SWAPPED for order in log.orders])[log.order[rows]]
    _, first_rows, item = np.unique(log.item[rows], return_index=True, return_inverse=True)
    comparative = answers.task.comparative and set(orders) <= {"AB", _SWAPPED}
    return AnswerArray(
        task=replace(answers.task, comparative=comparative),
        scoring=answers.scoring,
        items=np.array(log.items, dtype=object)[cube.items],
        clusters=log.cluster[rows][first_rows],
        gold=_gold_in_item_order(gold, is_swapped, item, len(cube.items)),
        wordings=tuple(wordings[n] for n in by_name),
        orders=orders,
        verdicts=verdicts,
        logprobs=logprobs,
        has_probabilities=row_logprobs is not None,
        mean_cost=pc.mean(log.table["cost_usd"].take(pa.array(rows))).as_py(),
    )


def _planned_map(answers: Answers, rows: Codes) -> int | None:
    """The label map of a wording in the run's pairs, if it is in any."""
    pairs = answers.pairs
    template = answers.log.template[rows[0]]
    for side, maps in ((pairs.template_a, pairs.map_a), (pairs.template_b, pairs.map_b)):
        place = np.flatnonzero(side == template)
        if len(place) and pairs.planned:
            return int(maps[place[0]])
    return None


def _meanings(answers: Answers, rows: Codes) -> Codes:
    """What each raw answer means under a wording: label codes of the log, shape (labels,)."""
    log = answers.log
    if (map_code := _planned_map(answers, rows)) is not None:
        meanings: Codes = answers.pairs.forward[map_code]
        return meanings
    forward = np.arange(len(log.labels))
    decided = rows[~log.undecided[log.decision[rows]]]
    forward[log.raw[decided]] = log.decision[decided]
    label_codes = np.flatnonzero(np.isin(log.labels, answers.task.labels))
    # Of two answers, one that never came means what the other does not.
    if len(label_codes) == 2 and forward[label_codes[0]] == forward[label_codes[1]]:
        raw = set(log.raw[decided].tolist())
        first, second = label_codes.tolist()
        for seen, other in ((first, second), (second, first)):
            if seen in raw and other not in raw and forward[seen] in label_codes:
                forward[other] = first if forward[seen] == second else second
    return forward


def _raw_names(answers: Answers, rows: Codes, meanings: Codes, code_of: Codes) -> tuple[str, ...]:
    """The raw answer that stands for each label under a wording."""
    words = answers.log.labels
    names: dict[int, str] = {}
    if (map_code := _planned_map(answers, rows)) is not None:
        for label, raw in enumerate(answers.pairs.inverse[map_code].tolist()):
            if raw >= 0 and code_of[label] >= 0:
                names[int(code_of[label])] = str(words[raw])
    for raw, label in enumerate(meanings.tolist() if not names else ()):
        code = int(code_of[label])
        # A label keeps its own name unless the map says otherwise.
        if code >= 0 and (code not in names or raw == label):
            names[code] = str(words[raw])
    return tuple(names.get(code, label) for code, label in enumerate(answers.task.labels))


def _label_logprobs(
    answers: Answers, rows: Codes, wording: Codes, meanings: list[Codes], code_of: Codes
) -> Floats | None:
    """Log-probabilities of the canonical labels at the rows; None if the log has none."""
    if answers.scoring != "options":
        return None
    shares, columns = option_shares(answers.log, rows)
    if not len(columns) or np.isnan(shares).all():
        return None
    totals = np.zeros((len(rows), len(answers.task.labels)))
    for number, forward in enumerate(meanings):
        wording_rows = np.flatnonzero(wording == number)
        label_of_column = np.where(columns >= 0, code_of[forward[columns]], NO_VERDICT)
        for column in np.flatnonzero(label_of_column >= 0):
            added = np.nan_to_num(shares[wording_rows, column])
            totals[wording_rows, label_of_column[column]] += added
    logprobs = log_of_shares(totals)
    logprobs[np.isnan(shares[:, 0]) | (totals.sum(axis=1) <= 0)] = np.nan
    return logprobs


def label_shares(answers: Answers, rows: Codes) -> Floats | None:
    """Probabilities of the task's labels, as shown, at some rows of the log, shape (n, L).

    NaN in rows without any; None if the log has none.
    """
    log, labels = answers.log, answers.task.labels
    templates, wording = np.unique(log.template[rows], return_inverse=True)
    meanings = [_meanings(answers, rows[wording == n]) for n in range(len(templates))]
    logprobs = _label_logprobs(answers, rows, wording, meanings, log.codes_of(labels))
    if logprobs is None:
        return None
    shares = np.exp(logprobs)
    normalised: Floats = shares / shares.sum(axis=1, keepdims=True)
    return normalised


def label_logprobs(
    label_map: Mapping[str, str],
    labels: tuple[str, ...],
    options: Mapping[str, float] | None = None,
    verdict: str | None = None,
) -> Floats:
    """An answer as log-probabilities of the labels as shown, shape (L,), NaN where nothing was
    read: from those of its options, or 0 for the label of its verdict and -inf for the others."""
    logprobs = np.full(len(labels), np.nan)
    if options:
        shares, best = np.zeros(len(labels)), max(options.values())
        for option, logprob in options.items():
            shares[labels.index(label_map[option])] += np.exp(logprob - best)
        logprobs = log_of_shares(shares[None])[0]
    elif (label := label_map.get(verdict or "")) is not None:
        logprobs[:] = -np.inf
        logprobs[labels.index(label)] = 0.0
    return logprobs


def log_of_shares(shares: Floats) -> Floats:
    """The logs of probabilities of labels, shape (n, L); an unseen label (0) is a millionth, or as
    improbable as the least probable one that was seen.

    >>> log_of_shares(np.array([[0.5, 0.0]])).round(1).tolist()
    [[-0.7, -13.8]]
    """
    with np.errstate(divide="ignore"):
        logs = np.log(shares)
    smallest = np.where(shares > 0, logs, np.inf).min(axis=1, keepdims=True)
    logprobs: Floats = np.where(shares > 0, logs, np.minimum(smallest, _UNSEEN_LOGPROB))
    return logprobs


def _gold_in_item_order(gold: Codes, is_swapped: Bools, item: Codes, n: int) -> Codes:
    """Each item's label in its own order, from the labels of its answers as shown."""
    labels = gold.copy()
    # A third label, a tie, is the same in both orders.
    first, second = is_swapped & (gold == 0), is_swapped & (gold == 1)
    labels[first], labels[second] = 1, 0
    gold_of_item = np.full(n, NO_VERDICT)
    labelled = np.flatnonzero(labels >= 0)[::-1]
    gold_of_item[item[labelled]] = labels[labelled]
    return gold_of_item
