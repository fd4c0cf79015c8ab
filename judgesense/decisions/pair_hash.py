"""The hash that names the pairs of a figure, for a million pairs at once.

It equals `judgesense.tasks.signature_hash` of the same pairs.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.decisions.frames import flat
from judgesense.statistics.arrays import Codes

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
