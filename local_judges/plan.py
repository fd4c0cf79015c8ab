"""The plan of a run: which prompts are asked, in which batches, and in which part files.

Everything here is a pure function of the benchmark and the settings, so that a resumed run has
the same batches and writes the same parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.errors import JudgeSenseError
from judgesense.tasks import load_label_map
from local_judges.protocol import Judge, Request

Indices = npt.NDArray[np.int64]


@lru_cache(maxsize=4096)
def options_of(label_map: str) -> tuple[str, ...]:
    """The raw answers that a prompt allows, in the order of its label map; "" allows any text."""
    return tuple(load_label_map(label_map)) if label_map else ()


@dataclass(frozen=True, slots=True)
class Part:
    """One file of the decision log: whole batches of one repeat."""

    name: str
    repeat: int
    batches: tuple[Sequence[int], ...]

    @property
    def requests(self) -> Iterator[int]:
        """The indices of the requests, in the order of the part's rows."""
        for batch in self.batches:
            yield from batch


class Requests(Sequence[Request]):
    """The distinct prompts of a benchmark, in order of first appearance.

    A view of a table with at least the columns ``prompt_id, text, label_map``, so that a million
    prompts need not be a million objects. The columns ``system``, ``effort``, ``reply_form``,
    ``schema`` and ``sample`` (how often a message was asked before) are read if the table has them.
    ``again`` are the requests that are asked twice in a run that asks each once: those with a true
    ``again`` in the table, if it has that column. ``repeated`` are those asked again in a run that
    asks each several times: all but those with a null there.
    """

    def __init__(self, prompts: pa.Table) -> None:
        # Two rows may share a message under different label maps; the message is asked once.
        encoded = prompts["prompt_id"].combine_chunks().dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        self._by_request = np.argsort(codes, kind="stable").astype(np.int64)
        self._starts = np.searchsorted(codes[self._by_request], np.arange(codes.max() + 2))
        self._first = self._by_request[self._starts[:-1]]
        optional = ("system", "effort", "reply_form", "schema")
        self._optional = [name for name in optional if name in prompts.column_names]
        sample = ["sample"] if "sample" in prompts.column_names else []
        self._table = prompts.select(["prompt_id", "text", "label_map", *self._optional, *sample])
        self.again: Indices = np.zeros(0, np.int64)
        if "again" in prompts.column_names:
            is_asked_again = pc.fill_null(prompts["again"], False).to_numpy().astype(bool)
            self.again = np.unique(codes[is_asked_again]).astype(np.int64)
            codes = codes[pc.is_valid(prompts["again"]).to_numpy()]
        self.repeated: Indices = np.unique(codes).astype(np.int64)

    def __len__(self) -> int:
        return len(self._first)

    def __getitem__(self, index: int) -> Request:  # type: ignore[override]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self.take([index])[0]

    def __iter__(self) -> Iterator[Request]:
        for start in range(0, len(self), 4096):
            yield from self.take(range(start, min(start + 4096, len(self))))

    def take(self, indices: Sequence[int] | Indices, repeat: int = 0) -> list[Request]:
        """The requests at these indices, read from the table at once."""
        table = take_rows(self._table, self._first[np.asarray(indices, dtype=np.int64)])
        return [
            Request(
                prompt,
                text,
                options_of(label_map),
                # A sample of a message that was asked before counts as asked so often.
                repeat + sum(values[len(self._optional) :]),
                **{name: value or "" for name, value in zip(self._optional, values, strict=False)},
            )
            for prompt, text, label_map, *values in zip(
                *(c.to_pylist() for c in table), strict=True
            )
        ]

    def require_same_options(self) -> None:
        """Raise JudgeSenseError if rows that share a message allow different options, whose
        log-probabilities are requested only once. The order of the options may differ."""
        maps = self._table["label_map"].combine_chunks().dictionary_encode()
        codes = maps.indices.to_numpy(zero_copy_only=False)
        first = np.repeat(self._first, np.diff(self._starts))
        options = [options_of(text) for text in maps.dictionary.to_pylist()]
        for row in np.flatnonzero(codes[first] != codes[self._by_request]).tolist():
            one, other = options[codes[first[row]]], options[codes[self._by_request[row]]]
            if set(one) != set(other):
                identity = self._table["prompt_id"][int(first[row])].as_py()
                raise JudgeSenseError(
                    f"prompt {identity}: the same message allows {', '.join(one) or 'any text'} in "
                    f"one template and {', '.join(other) or 'any text'} in another; reword one of "
                    "them, or use --scoring generate"
                )

    def prompt_ids(self, part: Part) -> npt.NDArray[np.object_]:
        """The prompt ids of the rows of a part, in its order."""
        rows, _ = self.rows_of(part)
        return take_rows(self._table.select(["prompt_id"]), rows)["prompt_id"].to_numpy()  # type: ignore[no-any-return]

    def rows_of(self, part: Part) -> tuple[Indices, Indices]:
        """The rows of a part in its order, and for each the position of its request in the part."""
        requests = np.fromiter(part.requests, dtype=np.int64)
        starts, counts = self._starts[requests], self._starts[requests + 1] - self._starts[requests]
        # The row number that each row would have if the requests were consecutive.
        earlier_rows = np.cumsum(counts) - counts
        offsets = np.repeat(starts - earlier_rows, counts)
        rows = self._by_request[offsets + np.arange(len(offsets))]
        return rows, np.repeat(np.arange(len(requests)), counts)


def take_rows(table: pa.Table, rows: Indices) -> pa.Table:
    """The rows of a table at these indices, at a cost that does not grow with the table.

    Arrow's own ``take`` concatenates all chunks of a column first; this takes chunk by chunk.
    """
    if len(rows) and np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):
        return table.slice(int(rows[0]), len(rows))
    bounds = np.cumsum([0, *(len(chunk) for chunk in table.column(0).chunks)])
    chunk_of = np.searchsorted(bounds, rows, side="right") - 1
    by_chunk = np.argsort(chunk_of, kind="stable")
    pieces = []
    for chunk in np.unique(chunk_of):
        start, stop = int(bounds[chunk]), int(bounds[chunk + 1])
        local = rows[by_chunk][chunk_of[by_chunk] == chunk] - start
        pieces.append(table.slice(start, stop - start).take(pa.array(local)))
    taken = pa.concat_tables(pieces).combine_chunks() if pieces else table.slice(0, 0)
    original_order = np.empty_like(by_chunk)
    original_order[by_chunk] = np.arange(len(by_chunk))
    return taken.take(pa.array(original_order))


def plan_parts(
    judge: Judge,
    requests: Requests,
    scorings: frozenset[str],
    *,
    judge_index: int = 0,
    repeats: int = 1,
    seed: int = 0,
) -> list[Part]:
    """The part files of a judge's run.

    If each prompt is asked once, those in ``requests.again`` are asked a second time. Repeats after
    the first use other batch shapes, so that their disagreement with the first is the noise floor:
    the requests are shuffled and cut at random, and the judge plans each piece. A part holds enough
    requests to be worth a file and few enough that a kill loses little.

    Raises JudgeSenseError for ``options`` scoring if one message has several sets of options.
    """
    if "options" in scorings:
        requests.require_same_options()
    size = int(np.clip(len(requests) // 200, 64, 8192))
    parts: list[Part] = []
    repeated = requests.repeated if repeats > 1 else requests.again
    for repeat in range(max(repeats, 2) if len(requests.again) else repeats):
        if repeat == 0 or len(requests) < 2:
            batches = judge.plan(requests, scorings)
        else:
            rng = np.random.default_rng((seed, repeat))
            order = rng.permutation(repeated)
            n_cuts = min(len(order) - 1, 3 + int(np.sqrt(len(order))) // 8)
            cuts = np.sort(rng.choice(len(order) - 1, size=n_cuts, replace=False) + 1)
            batches = [
                piece[np.asarray(batch, dtype=np.int64)].tolist()
                for piece in np.split(order, cuts)
                for batch in judge.plan(requests.take(piece), scorings)
            ]
        part_batches: list[Sequence[int]] = []
        count = 0
        for number, batch in enumerate(batches):
            part_batches.append(batch)
            count += len(batch)
            if count >= size or number == len(batches) - 1:
                name = f"part-{judge_index:02d}-{repeat:03d}-{len(parts):06d}.parquet"
                parts.append(Part(name, repeat, tuple(part_batches)))
                part_batches, count = [], 0
    return parts


def plan_by_count(n: int, size: int) -> list[Sequence[int]]:
    """Batches of ``size`` consecutive requests, for judges whose answers do not depend on shapes.

    >>> plan_by_count(5, 2)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    return [range(start, min(start + size, n)) for start in range(0, n, size)]
