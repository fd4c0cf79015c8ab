"""The decision log and its pairs as integer arrays, so that a million rows measure in seconds.

Measurements start from :func:`judgesense.decisions.view.view`, which builds on these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.decisions.log import (
    CONTENT_FREE,
    EQUIVALENT,
    FORM_VARIANTS,
    INTERVENTION,
    OPTIONAL,
    REWORDING,
    SCORES_IN_FORM,
    VARIANT_CLASSES,
)
from judgesense.errors import JudgeSenseError
from judgesense.statistics.arrays import Bools, Codes, Floats, Words
from judgesense.tasks import NO_ORDER, UNCLEAR, UNDECIDED, is_scale, load_label_map


@dataclass(frozen=True)
class TaskWords:
    """A task's name and labels, in order if ``ordinal``.

    The first label of a comparative task is the first option shown.
    """

    name: str
    labels: tuple[str, ...]
    comparative: bool
    ordinal: bool = False


@dataclass(frozen=True)
class Log:
    """The decision log, column by column: codes of shape (n,) and the values that they index.

    ``raw``, ``decision`` and ``gold`` index ``labels`` (gold is -1 where unknown). Rows and sides
    of pairs with the same ``stimulus`` belong together. ``variant_class`` indexes
    `judgesense.decisions.VARIANT_CLASSES`. ``base`` is the template without its variant and indexes
    ``bases``; where a log has several variants of one template, each has a ``template`` of its own,
    named ``TEMPLATE+VARIANT``.
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
    undecided: Bools
    stimulus: Codes
    n_stimuli: int
    variant: Codes
    variants: list[str]
    variant_class: Codes
    base: Codes
    bases: list[str]

    @property
    def equivalent(self) -> Bools:
        """The rows whose verdict should not depend on the wording; only these form pairs."""
        same: Bools = self.variant_class == VARIANT_CLASSES.index(EQUIVALENT)
        return same


@dataclass(frozen=True)
class Pairs:
    """The pairs of one task: codes of shape (n,).

    ``item`` indexes ``items``; ``order`` and the templates index the log's lists.
    ``forward[m, raw]`` is the canonical label of a raw answer under label map m,
    ``inverse[m, label]`` the raw answer that means a label (-1 if none does). ``planned`` is True
    if the run meant to judge every pair, False for pairs formed from a log.
    """

    first: Codes
    second: Codes
    item: Codes
    items: list[str]
    cluster: Codes
    order: Codes
    template_a: Codes
    template_b: Codes
    map_a: Codes
    map_b: Codes
    forward: Codes
    inverse: Codes
    prompt_ids: tuple[pa.Array, pa.Array]
    planned: bool

    def __len__(self) -> int:
        return len(self.first)

    def only(self, keep: Bools) -> Pairs:
        """The pairs at which ``keep``, of shape (n,), is true."""
        names = ("first", "second", "item", "cluster", "order", "template_a", "template_b")
        columns = {name: getattr(self, name)[keep] for name in (*names, "map_a", "map_b")}
        first, second = (ids.filter(pa.array(keep)) for ids in self.prompt_ids)
        return replace(self, **columns, prompt_ids=(first, second))


@dataclass(frozen=True)
class Answers:
    """Single answers, as words: some rows of a log, shape (n,) each.

    ``raw`` is the answer, ``label`` the canonical decision, ``gold`` the label people gave ("" if
    unknown).
    """

    log: Log
    rows: Codes
    item: Words
    cluster: Codes
    template: Words
    order: Words
    repeat: Codes
    raw: Words
    label: Words
    gold: Words

    def column(self, name: str) -> pa.ChunkedArray:
        """Another column of the decision log at these rows."""
        return self.log.table[name].take(pa.array(self.rows))


def answers(log: Log, rows: Codes) -> Answers:
    """The answers at some rows of the log."""
    words = np.append(log.labels, "")
    return Answers(
        log=log,
        rows=rows,
        item=np.array(log.items, dtype=object)[log.item[rows]],
        cluster=log.cluster[rows],
        template=np.array(log.templates, dtype=object)[log.template[rows]],
        order=np.array(log.orders, dtype=object)[log.order[rows]],
        repeat=log.repeat[rows],
        raw=words[log.raw[rows]],
        label=words[log.decision[rows]],
        gold=words[log.gold[rows]],
    )


def encode(column: pa.ChunkedArray, fill: str = "") -> tuple[Codes, list[str]]:
    """Codes and the distinct values in order of appearance; null becomes ``fill``."""
    encoded = flat(pc.fill_null(column, fill)).dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), (
        encoded.dictionary.to_pylist()
    )


def flat(column: Any) -> pa.Array:
    """A column in one piece."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def lookup(column: Any, values: pa.Array) -> Codes:
    """The index of every entry in the values; -1 for null and for an entry not among them."""
    found = pc.fill_null(pc.index_in(flat(column), value_set=values), -1)
    codes: Codes = found.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def read_frames(
    log: pa.Table, pairs: pa.Table | None, run: Mapping[str, Any]
) -> tuple[Log, dict[str, TaskWords], dict[str, Pairs]]:
    """The log, its tasks and each task's pairs.

    With ``pairs`` None, all pairs of equivalent templates within item and order are formed. Raises
    JudgeSenseError if the log is empty or has an unknown variant class.
    """
    for name in OPTIONAL:
        if name not in log.column_names:
            log = log.append_column(name, pa.nulls(log.num_rows, pa.string()))
    if log.num_rows == 0:
        raise JudgeSenseError("the decision log has no rows; judge or import something first")
    raw = pc.coalesce(log["raw_decision"], log["decision"], pa.scalar(UNCLEAR))
    decision = pc.coalesce(log["decision"], log["raw_decision"], pa.scalar(UNCLEAR))
    options = pc.struct_field(flat(pc.list_flatten(log["option_logprobs"])), "option")
    maps = [] if pairs is None else _maps(pairs)
    words = dict.fromkeys(UNDECIDED)
    for column in (raw, decision, log["gold"], options):
        words.update(dict.fromkeys(v for v in pc.unique(column).to_pylist() if v is not None))
    for label_map in maps:
        words.update(dict.fromkeys([*label_map, *label_map.values()]))
    vocabulary = pa.array(list(words), pa.string())

    coded = {name: encode(log[name]) for name in ("judge", "task", "scoring", "template_id")}
    coded["order"] = encode(log["order"], NO_ORDER)
    coded["item_id"] = encode(log["item_id"])
    cluster, _ = encode(pc.coalesce(log["cluster_id"], log["item_id"]))
    variant, variants = encode(log["variant"], REWORDING)
    form = np.isin(variants, [*FORM_VARIANTS, *(run.get("reply_forms") or ())])[variant]
    by_options = (np.array(coded["scoring"][1]) == "options")[coded["scoring"][0]]
    inside = np.isin(coded["judge"][1], _scoring_in_form(run))[coded["judge"][0]]
    base, bases = coded["template_id"]
    coded["template_id"] = _wordings(base, list(bases), variant, variants)
    task, item, order, template = (coded[n][0] for n in ("task", "item_id", "order", "template_id"))
    stimulus: Codes
    if pairs is None:
        key = task
        for codes, values in (coded["item_id"], coded["order"], coded["template_id"]):
            key = key * len(values) + codes
        distinct, stimulus = np.unique(key, return_inverse=True)
        n_stimuli = len(distinct)
    else:
        ids = pc.unique(
            pa.chunked_array([*pairs["prompt_id_a"].chunks, *pairs["prompt_id_b"].chunks])
        )
        stimulus, n_stimuli = lookup(log["prompt_id"], flat(ids)), len(ids)
    frame = Log(
        table=log,
        judge=coded["judge"][0],
        judges=coded["judge"][1],
        task=task,
        tasks=coded["task"][1],
        scoring=coded["scoring"][0],
        scorings=coded["scoring"][1],
        order=order,
        orders=coded["order"][1],
        template=template,
        templates=coded["template_id"][1],
        item=item,
        items=coded["item_id"][1],
        cluster=cluster,
        repeat=pc.fill_null(log["repeat"], 0).to_numpy().astype(np.int64),
        raw=lookup(raw, vocabulary),
        decision=lookup(decision, vocabulary),
        gold=lookup(log["gold"], vocabulary),
        labels=np.array(list(words), dtype=object),
        undecided=np.isin(np.arange(len(words)), range(len(UNDECIDED))),
        stimulus=stimulus,
        n_stimuli=n_stimuli,
        variant=variant,
        variants=variants,
        variant_class=_variant_class(log["variant_class"], form & by_options & ~inside),
        base=base,
        bases=bases,
    )
    tasks = {name: _task(frame, code, run) for code, name in enumerate(frame.tasks)}
    if pairs is None:
        return frame, tasks, {n: _all_pairs(frame, c) for c, n in enumerate(frame.tasks)}
    return frame, tasks, {name: _given_pairs(frame, pairs, ids, name) for name in frame.tasks}


def _wordings(
    template: Codes, templates: list[str], variant: Codes, variants: list[str]
) -> tuple[Codes, list[str]]:
    """The templates, with a code per variant where a template has several."""
    both = template * len(variants) + variant
    distinct, codes = np.unique(both, return_inverse=True)
    if len(distinct) == len(templates):
        return template, templates
    several = np.bincount(distinct // len(variants)) > 1
    names = []
    for code in distinct.tolist():
        own, kind = templates[code // len(variants)], variants[code % len(variants)]
        suffixed = several[code // len(variants)] and kind != REWORDING
        names.append(f"{own}+{kind}" if suffixed else own)
    return codes.astype(np.int64), names


def _variant_class(column: pa.ChunkedArray, form: Bools) -> Codes:
    codes = lookup(pc.fill_null(column, EQUIVALENT), pa.array(VARIANT_CLASSES))
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise JudgeSenseError(
            f"the decision log, row {row + 1}, variant_class: {column[row].as_py()!r} is not one "
            f"of {', '.join(VARIANT_CLASSES)}"
        )
    same = codes == VARIANT_CLASSES.index(EQUIVALENT)
    return np.where(form & same, VARIANT_CLASSES.index(INTERVENTION), codes)


def _scoring_in_form(run: Mapping[str, Any]) -> list[str]:
    """The judges of a run that score an option inside the form of a reply."""
    return [
        judge["name"]
        for judge in run.get("judges") or ()
        if (judge.get("describe") or {}).get(SCORES_IN_FORM) is True
    ]


def _maps(pairs: pa.Table) -> list[Mapping[str, str]]:
    texts = [
        *pc.unique(pairs["label_map_a"]).to_pylist(),
        *pc.unique(pairs["label_map_b"]).to_pylist(),
    ]
    return [load_label_map(text) for text in dict.fromkeys(texts)]


def _task(log: Log, code: int, run: Mapping[str, Any]) -> TaskWords:
    """The task as in the run's record, or as its rows show it."""
    name = log.tasks[code]
    known = (run.get("tasks") or {}).get(name)
    if known:
        labels = tuple(known["labels"])
        ordinal = known.get("ordinal", is_scale(labels))
        return TaskWords(name, labels, bool(known.get("comparative")), bool(ordinal))
    rows = log.task == code
    used = np.unique(np.concatenate([log.decision[rows], log.gold[rows]]))
    found = [str(log.labels[c]) for c in used if c >= 0 and not log.undecided[c]]
    ordered = sorted(found, key=int) if is_scale(found) else sorted(found)
    shown = {log.orders[c] for c in np.unique(log.order[rows])}
    return TaskWords(name, tuple(ordered), bool(shown - {NO_ORDER}), is_scale(ordered))


def _given_pairs(log: Log, pairs: pa.Table, ids: Any, task: str) -> Pairs:
    own = pairs.filter(pc.equal(pairs["task"], task))
    texts = dict.fromkeys([*own["label_map_a"].to_pylist(), *own["label_map_b"].to_pylist()])
    forward = np.tile(np.arange(len(log.labels)), (max(len(texts), 1), 1))
    inverse = np.full_like(forward, -1)
    place = {word: code for code, word in enumerate(log.labels.tolist())}
    for number, text in enumerate(texts):
        for raw, label in load_label_map(text).items():
            forward[number, place[raw]] = place[label]
            if inverse[number, place[label]] < 0:
                inverse[number, place[label]] = place[raw]
    map_texts = pa.array(list(texts), pa.string())
    cluster, _ = encode(own["cluster_id"])
    # Pairs of an item that was never logged count as not judged.
    item, items = encode(own["item_id"])
    for name in ("template_a", "template_b", "order"):
        _extend(log.templates if name != "order" else log.orders, own[name])
    templates, orders = pa.array(log.templates), pa.array(log.orders)
    return Pairs(
        first=lookup(own["prompt_id_a"], flat(ids)),
        second=lookup(own["prompt_id_b"], flat(ids)),
        item=item,
        items=items,
        cluster=cluster,
        order=lookup(own["order"], orders),
        template_a=lookup(own["template_a"], templates),
        template_b=lookup(own["template_b"], templates),
        map_a=lookup(own["label_map_a"], map_texts),
        map_b=lookup(own["label_map_b"], map_texts),
        forward=forward,
        inverse=inverse,
        prompt_ids=(flat(own["prompt_id_a"]), flat(own["prompt_id_b"])),
        planned=True,
    )


def _extend(names: list[str], column: Any) -> None:
    names += [name for name in pc.unique(column).to_pylist() if name not in names]


def _all_pairs(log: Log, code: int) -> Pairs:
    """All pairs of equivalent templates within item and order; label maps inferred."""
    rows = np.flatnonzero((log.task == code) & log.equivalent)
    _, index = np.unique(log.stimulus[rows], return_index=True)
    rows = rows[index]
    rows = rows[np.lexsort((log.template[rows], log.order[rows], log.item[rows]))]
    group = log.item[rows] * len(log.orders) + log.order[rows]
    sizes = np.unique(group, return_counts=True)[1]
    first, second = [], []
    for step in range(1, int(sizes.max(initial=0))):
        same = np.flatnonzero(group[:-step] == group[step:])
        first.append(rows[same])
        second.append(rows[same + step])
    one, two = (np.concatenate(x) if x else np.zeros(0, np.int64) for x in (first, second))
    n_templates, n_labels = len(log.templates), len(log.labels)
    forward = np.tile(np.arange(n_labels), (n_templates, 1))
    inverse = np.full_like(forward, -1)
    decided = np.flatnonzero((log.task == code) & ~log.undecided[log.decision])[::-1]
    forward[log.template[decided], log.raw[decided]] = log.decision[decided]
    inverse[log.template[decided], log.decision[decided]] = log.raw[decided]
    ids = log.table["prompt_id"]
    return Pairs(
        first=log.stimulus[one],
        second=log.stimulus[two],
        item=log.item[one],
        items=log.items,
        cluster=log.cluster[one],
        order=log.order[one],
        template_a=log.template[one],
        template_b=log.template[two],
        map_a=log.template[one],
        map_b=log.template[two],
        forward=forward,
        inverse=np.where(inverse < 0, np.arange(n_labels), inverse),
        prompt_ids=(flat(ids.take(pa.array(one))), flat(ids.take(pa.array(two)))),
        planned=False,
    )


def prompt_key(log: Log, rows: Codes) -> Codes:
    """One number for each prompt and item."""
    key = (log.stimulus[rows] * len(log.items) + log.item[rows]) * len(log.templates)
    key = (key + log.template[rows]) * len(log.orders) + log.order[rows]
    return key * len(log.variants) + log.variant[rows]


def joined(keys: Codes, left: Codes, right: Codes) -> tuple[Codes, Codes]:
    """All pairs of a row on the left and one on the right with the same key."""
    ranked = left[np.argsort(keys[left], kind="stable")]
    start = np.searchsorted(keys[ranked], keys[right], "left")
    count = np.searchsorted(keys[ranked], keys[right], "right") - start
    offset = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return ranked[np.repeat(start, count) + offset], np.repeat(right, count)


def first_answers(log: Log, rows: Codes) -> Bools:
    """Which rows are the first answer to their prompt and item; its repeat need not be 0."""
    repeats = log.repeat[rows]
    if (repeats == repeats[0]).all():
        return np.ones(len(rows), bool)
    keys, place = np.unique(prompt_key(log, rows), return_inverse=True)
    least = np.full(len(keys), repeats.max())
    np.minimum.at(least, place, repeats)
    first: Bools = repeats == least[place]
    return first


def repeated_answers(log: Log, once: Codes, later: Codes) -> tuple[Codes, Codes] | None:
    """The first and each later answer to the same prompt and item, as rows of the log."""
    if not len(later):
        return None
    ranked = once[np.argsort(prompt_key(log, once), kind="stable")]
    place = np.searchsorted(prompt_key(log, ranked), prompt_key(log, later))
    known = log.stimulus[later] >= 0
    return ranked[place][known], later[known]


ContentFree = dict[tuple[str, str, str], dict[str, list[dict[str, float]]]]
"""By judge, task and scoring, then by template: each answer's log-probabilities of the options."""


def option_shares(log: Log, rows: Codes) -> tuple[Floats, Codes]:
    """Option probabilities at some rows of the log, normalised per row (NaN without any).

    Returns an array of shape (rows, L) and the L label codes of its columns.
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
    shares: Floats, columns: Codes, maps: Codes, pairs: Pairs, n_labels: int
) -> Floats:
    """Option probabilities moved to the canonical labels, shape (n, n_labels)."""
    moved = np.zeros((len(shares), n_labels))
    for code in np.unique(maps):
        rows = np.flatnonzero(maps == code)
        part = np.zeros((len(rows), n_labels))
        np.add.at(part.T, pairs.forward[code, columns], shares[rows].T)
        moved[rows] = part
    return moved


def without_content_free(log: pa.Table) -> tuple[pa.Table, ContentFree]:
    """The log without its answers to input without content, and those by judge, task, scoring."""
    found: ContentFree = {}
    if "variant" not in log.column_names:
        return log, found
    free = pc.fill_null(pc.equal(log["variant"], CONTENT_FREE), False)
    if not pc.any(free).as_py():
        return log, found
    for row in log.filter(free).to_pylist():
        if row["option_logprobs"] and not row["repeat"]:
            own = found.setdefault((row["judge"], row["task"], row["scoring"]), {})
            own.setdefault(row["template_id"], []).append(
                {each["option"]: each["logprob"] for each in row["option_logprobs"]}
            )
    return log.filter(pc.invert(free)), found


_HASHED_AT_ONCE = 1 << 18
"""Pairs; few enough for 32-bit offsets of their text."""


def sorted_pairs(first: Any, second: Any) -> Codes:
    """The pairs' rows in the order of their first and second prompt ids."""
    # Sorting each distinct id once is several times faster than sorting the pairs by their text.
    encoded = pa.chunked_array(
        [pc.fill_null(flat(side), "") for side in (first, second)]
    ).dictionary_encode()
    ids = encoded.unify_dictionaries().combine_chunks()
    rank = np.empty(len(ids.dictionary), dtype=np.int64)
    rank[pc.sort_indices(ids.dictionary).to_numpy()] = np.arange(len(rank))
    one, two = np.split(rank[ids.indices.to_numpy()], 2)
    order: Codes = np.argsort(one * max(1, len(rank)) + two, kind="stable")
    return order


def hash_of_sorted(first: Any, second: Any, rows: Codes) -> str:
    """The hash of the pairs at some rows, which are in the order of `sorted_pairs`."""
    digest = hashlib.sha256()
    for start in range(0, len(rows), _HASHED_AT_ONCE):
        own = pa.array(rows[start : start + _HASHED_AT_ONCE])
        one, two = (pc.fill_null(flat(side).take(own), "") for side in (first, second))
        lines = pc.binary_join_element_wise(one, pc.binary_join_element_wise(two, "\n", ""), " ")
        _, offsets, data = lines.buffers()
        ends = np.frombuffer(offsets, np.int32)[[lines.offset, lines.offset + len(lines)]]
        digest.update(memoryview(data)[ends[0] : ends[1]] if data else b"")
    return digest.hexdigest()[:8]
