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

_HASHED_AT_ONCE = 1 << 18
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
    """What `hash_of` has computed."""

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
        both = pa.chunked_array(self.prompt_ids).dictionary_encode().unify_dictionaries()
        ids = both.combine_chunks()
        texts = pa.concat_arrays([ids.dictionary, pa.array([""])])
        rank = pc.rank(texts, tiebreaker="dense").to_numpy().astype(np.int64)
        one, two = np.split(rank[pc.fill_null(ids.indices, len(ids.dictionary)).to_numpy()], 2)
        order: Codes = np.argsort(one * (len(rank) + 1) + two, kind="stable")
        return order

    def _hash(self, rows: Codes) -> str:
        digest = hashlib.sha256()
        for start in range(0, len(rows), _HASHED_AT_ONCE):
            part = pa.array(rows[start : start + _HASHED_AT_ONCE])
            one, two = (
                pc.fill_null(side.take(part).cast(pa.string()), "") for side in self.prompt_ids
            )
            ended = pc.binary_join_element_wise(two, "\n", "")
            lines = pc.binary_join_element_wise(one, ended, " ")
            _, offsets, data = lines.buffers()
            ends = np.frombuffer(offsets, np.int32)[[lines.offset, lines.offset + len(lines)]]
            digest.update(memoryview(data)[ends[0] : ends[1]] if data else b"")
        return digest.hexdigest()[:8]


def planned_pairs(log: Log, table: pa.Table, ids: pa.Array, task: str) -> Pairs:
    """The planned pairs of a task; those of an item that was never logged are not judged.

    ``ids`` are the prompt ids that the log's stimuli index.
    """
    table = table.filter(pc.equal(table["task"], task))
    texts = list(
        dict.fromkeys([*table["label_map_a"].to_pylist(), *table["label_map_b"].to_pylist()])
    )
    forward = np.tile(np.arange(len(log.labels)), (max(len(texts), 1), 1))
    inverse = np.full_like(forward, -1)
    place = {word: code for code, word in enumerate(log.labels.tolist())}
    for number, text in enumerate(texts):
        for raw, label in load_label_map(text).items():
            forward[number, place[raw]] = place[label]
            if inverse[number, place[label]] < 0:
                inverse[number, place[label]] = place[raw]
    item, items = encode(table["item_id"])
    for names, column in (
        (log.templates, "template_a"),
        (log.templates, "template_b"),
        (log.orders, "order"),
    ):
        names += [name for name in pc.unique(table[column]).to_pylist() if name not in names]
    return Pairs(
        first=lookup(table["prompt_id_a"], ids),
        second=lookup(table["prompt_id_b"], ids),
        item=item,
        items=items,
        cluster=encode(table["cluster_id"])[0],
        order=lookup(table["order"], log.orders),
        template_a=lookup(table["template_a"], log.templates),
        template_b=lookup(table["template_b"], log.templates),
        map_a=lookup(table["label_map_a"], texts),
        map_b=lookup(table["label_map_b"], texts),
        forward=forward,
        inverse=inverse,
        prompt_ids=(flat(table["prompt_id_a"]), flat(table["prompt_id_b"])),
        planned=True,
    )


def drawn_order(n: int) -> Codes:
    """A random place for each of many wordings."""
    return np.random.default_rng(0).permutation(n)


def steps_of(n: int) -> int:
    """How far apart in that order two wordings may be to be compared."""
    return max(1, MOST_COMPARED * (MOST_COMPARED - 1) // 2 // n)


def pairs_of(log: Log, task: int) -> Pairs:
    """All pairs of equivalent templates within item and order; label maps inferred.

    Of more than MOST_COMPARED templates, the pairs are a sample in which each template is about
    equally often: those next to each other in a random order.
    """
    rows = np.flatnonzero((log.task == task) & log.equivalent)
    rows = rows[np.unique(log.stimulus[rows], return_index=True)[1]]
    group = log.item[rows] * len(log.orders) + log.order[rows]
    most = int(np.unique(group, return_counts=True)[1].max(initial=0))
    place: Codes = np.arange(len(log.templates))
    steps = max(most - 1, 0)
    if most > MOST_COMPARED:
        place, steps = drawn_order(len(log.templates)), steps_of(most)
    rows = rows[np.lexsort((place[log.template[rows]], log.order[rows], log.item[rows]))]
    group = log.item[rows] * len(log.orders) + log.order[rows]
    first, second = [rows[:0]], [rows[:0]]
    for step in range(1, steps + 1):
        same = np.flatnonzero(group[:-step] == group[step:])
        first.append(rows[same])
        second.append(rows[same + step])
    one, two = np.concatenate(first), np.concatenate(second)
    n_templates, n_labels = len(log.templates), len(log.labels)
    forward = np.tile(np.arange(n_labels), (n_templates, 1))
    inverse = np.full_like(forward, -1)
    decided = np.flatnonzero((log.task == task) & ~log.undecided[log.decision])[::-1]
    forward[log.template[decided], log.raw[decided]] = log.decision[decided]
    inverse[log.template[decided], log.decision[decided]] = log.raw[decided]
    ids = flat(log.table["prompt_id"]).dictionary_encode()
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
        prompt_ids=(ids.take(pa.array(one)), ids.take(pa.array(two))),
        planned=False,
    )


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
