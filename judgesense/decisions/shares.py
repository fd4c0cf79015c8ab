"""Option probabilities of a decision log as arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from judgesense.decisions.frames import Log, Pairs, lookup
from judgesense.decisions.log import CONTENT_FREE
from judgesense.statistics.arrays import Codes, Floats

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
