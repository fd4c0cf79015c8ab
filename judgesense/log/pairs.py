"""The pairs of prompts that are compared, as an index into the rows of a log: `Pairs`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.log.rows import Log, encode, flat, lookup
from judgesense.statistics.arrays import Bools, Codes, Floats
from judgesense.tasks import load_label_map

_HASH_CHUNK = 1 << 18
"""The most pairs hashed at once, so that their text fits 32-bit offsets."""


MOST_COMPARED = 100
"""Wordings of an item that are all compared with each other; of more, as many pairs are drawn."""


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
    hashes: dict[bytes, str] = field(default_factory=dict, repr=False)
    """The hashes that `hash_of` has computed."""

    def __len__(self) -> int:
        return len(self.first)

    def only(self, keep: Bools) -> Pairs:
        """The pairs at which ``keep``, of shape (n,), is true."""
        names = ("first", "second", "item", "cluster", "order", "template_a", "template_b")
        columns = {name: getattr(self, name)[keep] for name in (*names, "map_a", "map_b")}
        first, second = (ids.filter(pa.array(keep)) for ids in self.prompt_ids)
        return replace(self, **columns, prompt_ids=(first, second), hashes={})

    def hash_of(self, used: Bools) -> str:
        """The hash that names some pairs: `judgesense.tasks.signature_hash` of their prompt ids."""
        key = hashlib.sha256(np.packbits(used).tobytes()).digest()
        if key not in self.hashes:
            self.hashes[key] = self._hash(self._by_prompt_ids[used[self._by_prompt_ids]])
        return self.hashes[key]

    @cached_property
    def _by_prompt_ids(self) -> Codes:
        """The pairs in the order of their first and second prompt ids."""
        # Sorting each distinct id once is several times faster than sorting all pairs by text.
        sides = pa.chunked_array(self.prompt_ids).dictionary_encode().unify_dictionaries()
        ids = sides.combine_chunks()
        texts = pa.concat_arrays([ids.dictionary, pa.array([""])])
        rank = pc.rank(texts, tiebreaker="dense").to_numpy().astype(np.int64)
        codes = pc.fill_null(ids.indices, len(ids.dictionary)).to_numpy()
        first_rank, second_rank = np.split(rank[codes], 2)
        order: Codes = np.argsort(first_rank * (len(rank) + 1) + second_rank, kind="stable")
        return order

    def _hash(self, rows: Codes) -> str:
        digest = hashlib.sha256()
        for start in range(0, len(rows), _HASH_CHUNK):
            chunk = pa.array(rows[start : start + _HASH_CHUNK])
            first, second = (
                pc.fill_null(side.take(chunk).cast(pa.string()), "") for side in self.prompt_ids
            )
            second_and_end = pc.binary_join_element_wise(second, "\n", "")
            lines = pc.binary_join_element_wise(first, second_and_end, " ")
            _, offsets, data = lines.buffers()
            bounds = np.frombuffer(offsets, np.int32)[[lines.offset, lines.offset + len(lines)]]
            digest.update(memoryview(data)[bounds[0] : bounds[1]] if data else b"")
        return digest.hexdigest()[:8]


def planned_pairs(log: Log, table: pa.Table, ids: pa.Array, task: str) -> Pairs:
    """The planned pairs of a task; those of an item that was never logged are not judged.

    ``ids`` are the prompt ids that the log's stimuli index.
    """
    table = table.filter(pc.equal(table["task"], task))
    maps_of_sides = [*table["label_map_a"].to_pylist(), *table["label_map_b"].to_pylist()]
    label_maps = list(dict.fromkeys(maps_of_sides))
    forward = np.tile(np.arange(len(log.labels)), (max(len(label_maps), 1), 1))
    inverse = np.full_like(forward, -1)
    code_of = {word: code for code, word in enumerate(log.labels.tolist())}
    for map_code, label_map in enumerate(label_maps):
        for raw, label in load_label_map(label_map).items():
            forward[map_code, code_of[raw]] = code_of[label]
            if inverse[map_code, code_of[label]] < 0:
                inverse[map_code, code_of[label]] = code_of[raw]
    item, items = encode(table["item_id"])
    for known_names, column in (
        (log.templates, "template_a"),
        (log.templates, "template_b"),
        (log.orders, "order"),
    ):
        # In place: these lists are the log's own.
        names = pc.unique(table[column]).to_pylist()
        known_names += [name for name in names if name not in known_names]
    return Pairs(
        first=lookup(table["prompt_id_a"], ids),
        second=lookup(table["prompt_id_b"], ids),
        item=item,
        items=items,
        cluster=encode(table["cluster_id"])[0],
        order=lookup(table["order"], log.orders),
        template_a=lookup(table["template_a"], log.templates),
        template_b=lookup(table["template_b"], log.templates),
        map_a=lookup(table["label_map_a"], label_maps),
        map_b=lookup(table["label_map_b"], label_maps),
        forward=forward,
        inverse=inverse,
        prompt_ids=(flat(table["prompt_id_a"]), flat(table["prompt_id_b"])),
        planned=True,
    )


def random_order(n: int) -> Codes:
    """A random place for each of many wordings."""
    return np.random.default_rng(0).permutation(n)


def steps_of(n: int) -> int:
    """The largest distance in that order of two wordings that are compared."""
    return max(1, MOST_COMPARED * (MOST_COMPARED - 1) // 2 // n)


def pairs_of(log: Log, task: int) -> Pairs:
    """All pairs of equivalent templates within item and order; label maps inferred.

    Of more than MOST_COMPARED templates, the pairs are a sample in which each template is about
    equally often: those next to each other in a random order.
    """
    rows = np.flatnonzero((log.task == task) & log.equivalent)
    rows = rows[np.unique(log.stimulus[rows], return_index=True)[1]]
    group = log.item[rows] * len(log.orders) + log.order[rows]
    max_wordings = int(np.unique(group, return_counts=True)[1].max(initial=0))
    position: Codes = np.arange(len(log.templates))
    max_step = max(max_wordings - 1, 0)
    if max_wordings > MOST_COMPARED:
        position, max_step = random_order(len(log.templates)), steps_of(max_wordings)
    rows = rows[np.lexsort((position[log.template[rows]], log.order[rows], log.item[rows]))]
    group = log.item[rows] * len(log.orders) + log.order[rows]
    first, second = [rows[:0]], [rows[:0]]
    for step in range(1, max_step + 1):
        matches = np.flatnonzero(group[:-step] == group[step:])
        first.append(rows[matches])
        second.append(rows[matches + step])
    first_rows, second_rows = np.concatenate(first), np.concatenate(second)
    n_templates, n_labels = len(log.templates), len(log.labels)
    forward = np.tile(np.arange(n_labels), (n_templates, 1))
    inverse = np.full_like(forward, -1)
    decided = np.flatnonzero((log.task == task) & ~log.undecided[log.decision])[::-1]
    forward[log.template[decided], log.raw[decided]] = log.decision[decided]
    inverse[log.template[decided], log.decision[decided]] = log.raw[decided]
    ids = flat(log.table["prompt_id"]).dictionary_encode()
    return Pairs(
        first=log.stimulus[first_rows],
        second=log.stimulus[second_rows],
        item=log.item[first_rows],
        items=log.items,
        cluster=log.cluster[first_rows],
        order=log.order[first_rows],
        template_a=log.template[first_rows],
        template_b=log.template[second_rows],
        map_a=log.template[first_rows],
        map_b=log.template[second_rows],
        forward=forward,
        inverse=np.where(inverse < 0, np.arange(n_labels), inverse),
        prompt_ids=(ids.take(pa.array(first_rows)), ids.take(pa.array(second_rows))),
        planned=False,
    )


def mapped_shares(
    shares: Floats, columns: Codes, maps: Codes, pairs: Pairs, n_labels: int
) -> Floats:
    """Option probabilities moved to the canonical labels, shape (n, n_labels)."""
    mapped = np.zeros((len(shares), n_labels))
    for code in np.unique(maps):
        rows = np.flatnonzero(maps == code)
        label_shares = np.zeros((len(rows), n_labels))
        np.add.at(label_shares.T, pairs.forward[code, columns], shares[rows].T)
        mapped[rows] = label_shares
    return mapped
