"""The decision log as integer arrays: `Log`.

Everything that is measured is a function of some of these rows. Measurements start from
:func:`judgesense.log.view.view`, which lines the rows of a judge up with the pairs
(:mod:`judgesense.log.pairs`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.errors import JudgeSenseError
from judgesense.log.schema import (
    CONTENT_FREE,
    EQUIVALENT,
    FORM_VARIANTS,
    INTERVENTION,
    OPTIONAL,
    REWORDING,
    SCORES_IN_FORM,
    VARIANT_CLASSES,
)
from judgesense.statistics.arrays import Bools, Codes, Floats, Words
from judgesense.statistics.copies import linked, near_copies
from judgesense.tasks import NO_ORDER, UNCLEAR, UNDECIDED, is_scale, load_label_map

_FEWEST_BLOCKS = 5


@dataclass(frozen=True)
class TaskWords:
    """A task's name and labels, in order if ``ordinal``.

    The first label of a comparative task is the first option shown.
    """

    name: str
    labels: tuple[str, ...]
    comparative: bool
    ordinal: bool = False
    wins: str = ""
    """The label that an attack tries to win, where it is no option."""
    families: Mapping[str, str] = field(default_factory=dict)
    """The family of each template, where several wordings are edits of one text."""


@dataclass(frozen=True)
class Log:
    """Answers of any judges, column by column: codes of shape (n,) and the values that they index.

    ``raw``, ``decision`` and ``gold`` index ``labels`` (gold is -1 where unknown). Rows and sides
    of pairs with the same ``stimulus`` belong together. ``variant_class`` indexes
    `judgesense.log.schema.VARIANT_CLASSES`. ``base`` is the template without its variant and
    indexes ``bases``; where a log has several variants of one template, each has a ``template`` of
    its own, named ``TEMPLATE+VARIANT``. ``table`` is the decision log behind them; a recipe's
    answers (`judgesense.recipes.units.answers_from`) have null prompt ids there, and nothing else.
    """

    table: pa.Table
    judge: Codes
    judges: list[str]
    task: Codes
    tasks: list[str]
    scoring: Codes
    scorings: list[str]
    order: Codes
    orders: list[str]
    template: Codes
    templates: list[str]
    item: Codes
    items: list[str]
    cluster: Codes
    repeat: Codes
    raw: Codes
    decision: Codes
    gold: Codes
    labels: npt.NDArray[Any]
    stimulus: Codes
    n_stimuli: int
    variant: Codes
    variants: list[str]
    variant_class: Codes
    base: Codes
    bases: list[str]
    chances: Floats | None = None
    """The chance of each item to be picked for labelling: NaN if unknown, None if all are equal."""
    is_imported: bool = False
    """Whether it is a file of verdicts, in which a failed call is not asked again."""

    def chances_of(self, rows: Codes) -> Floats | None:
        """The chances of some labelled rows to be picked; None if one is unknown."""
        chances = None if self.chances is None else self.chances[self.item[rows]]
        return None if chances is None or np.isnan(chances).any() else chances

    @cached_property
    def undecided(self) -> Bools:
        """Which labels are not decisions, shape (labels,)."""
        undecided: Bools = np.isin(self.labels, UNDECIDED)
        return undecided

    @cached_property
    def equivalent(self) -> Bools:
        """The rows whose verdict should not depend on the wording; only these form pairs."""
        equivalent: Bools = self.variant_class == VARIANT_CLASSES.index(EQUIVALENT)
        return equivalent

    def codes_of(self, labels: tuple[str, ...]) -> Codes:
        """The place of each of the log's labels in ``labels``, -1 if it is not there.

        Shape (labels + 1,): the last entry, that of the code -1, is -1 as well.
        """
        places = np.full(len(self.labels) + 1, -1)
        for code, label in enumerate(labels):
            places[:-1][self.labels == label] = code
        return places


@dataclass(frozen=True)
class AnswerRows:
    """Single answers as words: some rows of a log, shape (n,) each.

    ``raw`` is the answer, ``label`` the canonical decision, ``gold`` the label people gave ("" if
    unknown).
    """

    log: Log
    log_rows: Codes
    item: Words
    cluster: Codes
    template: Words
    order: Words
    repeat: Codes
    raw: Words
    label: Words
    gold: Words

    @classmethod
    def at(cls, log: Log, rows: Codes) -> AnswerRows:
        """The answers at some rows of the log."""
        words = np.append(log.labels, "")
        return cls(
            log=log,
            log_rows=rows,
            item=np.array(log.items, dtype=object)[log.item[rows]],
            cluster=log.cluster[rows],
            template=np.array(log.templates, dtype=object)[log.template[rows]],
            order=np.array(log.orders, dtype=object)[log.order[rows]],
            repeat=log.repeat[rows],
            raw=words[log.raw[rows]],
            label=words[log.decision[rows]],
            gold=words[log.gold[rows]],
        )

    def column(self, name: str) -> pa.ChunkedArray:
        """Another column of the decision log at these rows."""
        return self.log.table[name].take(pa.array(self.log_rows))


def encode(column: pa.ChunkedArray, fill: str = "") -> tuple[Codes, list[str]]:
    """Codes and the distinct values in order of appearance; null becomes ``fill``."""
    encoded = flat(pc.fill_null(column, fill)).dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), (
        encoded.dictionary.to_pylist()
    )


def flat(column: Any) -> pa.Array:
    """A column in one piece."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def lookup(column: Any, values: Any) -> Codes:
    """The index of every entry in the values; -1 for null and for an entry not among them."""
    places = pc.index_in(flat(column), value_set=pa.array(values, pa.string()))
    codes: Codes = pc.fill_null(places, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def read_rows(
    log: pa.Table, pairs: pa.Table | None, run: Mapping[str, Any]
) -> tuple[Log, dict[str, TaskWords], pa.Array | None]:
    """The log, its tasks, and the prompt ids that its stimuli index (None without planned pairs).

    Without ``pairs``, what has the same item, order and template is one stimulus. Raises
    JudgeSenseError if the log is empty or has an unknown variant class.
    """
    for name in OPTIONAL:
        if name not in log.column_names:
            log = log.append_column(name, pa.nulls(log.num_rows, pa.string()))
    # Logs of 0.2 may hold answers to input without content, which are no verdicts.
    is_content_free = pc.fill_null(pc.equal(log["variant"], CONTENT_FREE), False)
    if pc.any(is_content_free).as_py():
        log = log.filter(pc.invert(is_content_free))
    if log.num_rows == 0:
        raise JudgeSenseError("the decision log has no rows; judge items or import a log first")
    raw = pc.coalesce(log["raw_decision"], log["decision"], pa.scalar(UNCLEAR))
    decision = pc.coalesce(log["decision"], log["raw_decision"], pa.scalar(UNCLEAR))
    vocabulary = _vocabulary(log, pairs, run, raw, decision)
    judge, judges = encode(log["judge"])
    task, tasks = encode(log["task"])
    scoring, scorings = encode(log["scoring"])
    order, orders = encode(log["order"], NO_ORDER)
    item, items = encode(log["item_id"])
    base, bases = encode(log["template_id"])
    variant, variants = encode(log["variant"], REWORDING)
    template, templates = with_variants(base, bases, variant, variants)
    is_form = np.isin(variants, [*FORM_VARIANTS, *(run.get("reply_forms") or ())])[variant]
    is_form &= (np.array(scorings) == "options")[scoring] & ~_scores_in_form(run, judges)[judge]
    codes = ((task * len(items) + item) * len(orders) + order) * len(templates) + template
    stimulus, n_stimuli, ids = _stimuli(log["prompt_id"], codes, pairs)
    chances = run.get("label_chances") or {}
    rows = Log(
        log,
        judge,
        judges,
        task,
        tasks,
        scoring,
        scorings,
        order,
        orders,
        template,
        templates,
        item,
        items,
        cluster=_clusters(log, item, items, run),
        repeat=pc.fill_null(log["repeat"], 0).to_numpy().astype(np.int64),
        raw=lookup(raw, vocabulary),
        decision=lookup(decision, vocabulary),
        gold=lookup(log["gold"], vocabulary),
        labels=np.array(vocabulary, dtype=object),
        stimulus=stimulus,
        n_stimuli=n_stimuli,
        variant=variant,
        variants=variants,
        variant_class=_variant_class(log["variant_class"], is_form),
        base=base,
        bases=bases,
        chances=np.array([chances.get(name, np.nan) for name in items]) if chances else None,
        is_imported="people" in (run.get("imported") or {}),
    )
    return rows, {name: _task(rows, code, run) for code, name in enumerate(tasks)}, ids


def _stimuli(
    prompt_ids: pa.ChunkedArray, codes: Codes, pairs: pa.Table | None
) -> tuple[Codes, int, pa.Array | None]:
    """The stimulus of each row, their number, and the prompt ids that they index.

    Without planned pairs, rows with the same ``codes`` (item, order and template) are one.
    """
    if pairs is None:
        distinct, stimulus = np.unique(codes, return_inverse=True)
        return stimulus, len(distinct), None
    sides = [*pairs["prompt_id_a"].chunks, *pairs["prompt_id_b"].chunks]
    ids = pc.unique(pa.chunked_array(sides))
    return lookup(prompt_ids, ids), len(ids), ids


def _vocabulary(
    log: pa.Table,
    pairs: pa.Table | None,
    run: Mapping[str, Any],
    raw: pa.ChunkedArray,
    decision: pa.ChunkedArray,
) -> list[str]:
    """Every answer and label that a row may have; those without a verdict go first."""
    options = pc.struct_field(flat(pc.list_flatten(log["option_logprobs"])), "option")
    words = dict.fromkeys(UNDECIDED)
    for column in (raw, decision, log["gold"], options):
        words.update(dict.fromkeys(pc.unique(column).drop_null().to_pylist()))
    if pairs is not None:
        for column in (pairs["label_map_a"], pairs["label_map_b"]):
            for label_map in map(load_label_map, pc.unique(column).to_pylist()):
                words.update(dict.fromkeys([*label_map, *label_map.values()]))
    # A label that no row has may still be the other one of a comparison in the order BA.
    for task in (run.get("tasks") or {}).values():
        words.update(dict.fromkeys(task["labels"]))
    return list(words)


def _scores_in_form(run: Mapping[str, Any], judges: list[str]) -> Bools:
    """Which of the judges score an option inside the form of a reply."""
    descriptions = (
        (judge["name"], judge.get("describe") or {}) for judge in run.get("judges") or ()
    )
    return np.isin(
        judges,
        [name for name, description in descriptions if description.get(SCORES_IN_FORM) is True],
    )


def _clusters(log: pa.Table, item: Codes, items: list[str], run: Mapping[str, Any]) -> Codes:
    """The cluster of each row. Items that are ``copies`` of another are in one with it, and so are
    those of a block in a row, where errors come in ``bursts``."""
    cluster = encode(pc.coalesce(log["cluster_id"], log["item_id"]))[0]
    if copies := run.get("copies"):
        code_of = {name: code for code, name in enumerate(items)}
        text_codes = np.array(
            [code_of.get(copies.get(name, name), code_of[name]) for name in items]
        )
        cluster = linked(cluster.tolist(), text_codes[item].tolist())
    if blocks := (run.get("bursts") or {}).get("blocks"):
        block = np.array([blocks.get(name, -1 - code) for code, name in enumerate(items)])[item]
        joined = linked(cluster.tolist(), block.tolist())
        # Copies all over the file would make one cluster of all blocks.
        is_one = len(np.unique(joined)) < _FEWEST_BLOCKS
        cluster = np.unique(block, return_inverse=True)[1] if is_one else joined
    return cluster


def with_variants(
    template: Codes, templates: list[str], variant: Codes, variants: list[str]
) -> tuple[Codes, list[str]]:
    """The templates, with a code per variant where a template has several."""
    pair = template * len(variants) + variant
    distinct, codes = np.unique(pair, return_inverse=True)
    if len(distinct) == len(templates):
        return template, list(templates)
    has_several = np.bincount(distinct // len(variants)) > 1
    names = []
    for code in distinct.tolist():
        base, kind = templates[code // len(variants)], variants[code % len(variants)]
        is_suffixed = has_several[code // len(variants)] and kind != REWORDING
        names.append(f"{base}+{kind}" if is_suffixed else base)
    return codes.astype(np.int64), names


def _variant_class(column: pa.ChunkedArray, is_form: Bools) -> Codes:
    """The class of each row; a reply ``is_form`` that is no rewording is an intervention."""
    codes = lookup(pc.fill_null(column, EQUIVALENT), VARIANT_CLASSES)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise JudgeSenseError(
            f"the decision log, row {row + 1}, variant_class: {column[row].as_py()!r} is not one "
            f"of {', '.join(VARIANT_CLASSES)}"
        )
    is_equivalent = codes == VARIANT_CLASSES.index(EQUIVALENT)
    return np.where(is_form & is_equivalent, VARIANT_CLASSES.index(INTERVENTION), codes)


def _task(log: Log, code: int, run: Mapping[str, Any]) -> TaskWords:
    """The task as in the run's record, or as its rows show it."""
    name = log.tasks[code]
    if record := (run.get("tasks") or {}).get(name):
        labels = tuple(record["labels"])
        ordinal = bool(record.get("ordinal", is_scale(labels)))
        comparative, families = bool(record.get("comparative")), _families(run, record)
        return TaskWords(name, labels, comparative, ordinal, record.get("wins") or "", families)
    rows = log.task == code
    codes = np.unique(np.concatenate([log.decision[rows], log.gold[rows]]))
    words = [str(log.labels[c]) for c in codes if c >= 0 and not log.undecided[c]]
    labels = tuple(sorted(words, key=int) if is_scale(words) else sorted(words))
    orders = {log.orders[c] for c in np.unique(log.order[rows])}
    return TaskWords(name, labels, bool(orders - {NO_ORDER}), is_scale(labels))


def _families(run: Mapping[str, Any], task: Mapping[str, Any]) -> Mapping[str, str]:
    """The families that a file names, or those of the wordings' texts; empty where each wording has
    one of its own."""
    families: Mapping[str, str] = run.get("families") or {}
    if not families and (texts := task.get("wordings") or {}):
        codes = near_copies([*texts.values()], len(texts)).tolist()
        families = {name: str(code) for name, code in zip(texts, codes, strict=True)}
    return families if len({*families.values()}) < len(families) else {}


def option_shares(log: Log, rows: Codes) -> tuple[Floats, Codes]:
    """Option probabilities at some rows of the log, normalised per row (NaN without any).

    Returns an array of shape (rows, L) and the L label codes of its columns.
    """
    lists = log.table["option_logprobs"].take(pa.array(rows))
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    values = flat(pc.list_flatten(lists))
    option = lookup(pc.struct_field(values, "option"), log.labels.tolist())
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
