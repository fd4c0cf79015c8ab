"""The decision log and its pairs as integer arrays, so that a million rows measure in seconds.

Measurements start from :func:`judgesense.decisions.streams.view`, which builds on these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.decisions.log import (
    EQUIVALENT,
    FORM_VARIANTS,
    INTERVENTION,
    OPTIONAL,
    REWORDING,
    SCORES_IN_FORM,
    VARIANT_CLASSES,
)
from judgesense.errors import JudgeSenseError
from judgesense.statistics.arrays import Bools, Codes, Words
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
