"""Answers to rows of the decision log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa

from judgesense.decisions import SCHEMA
from judgesense.tasks import ERROR, REFUSED, UNCLEAR, load_label_map
from local_judges.parsing import parse
from local_judges.plan import Part, Requests, options_of
from local_judges.protocol import Answer

_STATUS = {ERROR: "error", REFUSED: "refused", UNCLEAR: "unclear"}
_FROM_PROMPTS = (
    "prompt_id", "task", "item_id", "cluster_id", "template_id", "order", "gold", "system_id",
)  # fmt: skip


@lru_cache(maxsize=4096)
def _label_map(text: str) -> Mapping[str, str]:
    return load_label_map(text)


def decide(answer: Answer, scoring: str, options: tuple[str, ...]) -> str:
    """The raw decision in an answer: an option, or UNCLEAR, REFUSED or ERROR.

    ``options`` scoring takes the most probable option, the first of equals.
    """
    if answer.error is not None:
        return ERROR
    if answer.refused:
        return REFUSED
    if scoring == "generate":
        return parse(answer.text or "", options)
    if answer.option_logprobs is None:
        return UNCLEAR
    return options[int(np.argmax(answer.option_logprobs))]


def part_table(
    part: Part,
    answers: Mapping[int, Answer],
    requests: Requests,
    prompts: pa.Table,
    judge: str,
    scorings: Sequence[str],
) -> pa.Table:
    """The part's rows: its requests in planned order, for each the prompts it answers for, for
    each the scorings."""
    columns: dict[str, list[object]] = {
        name: []
        for name in SCHEMA.names
        if name not in (*_FROM_PROMPTS, "judge", "repeat", "option_logprobs")
    }
    logprobs: list[list[tuple[str, float]] | None] = []
    table_rows: list[int] = []
    label_maps = prompts["label_map"]
    for index in part.requests:
        answer = answers[index]
        rows = requests.rows(index)
        for row in rows.tolist():
            label_map = label_maps[row].as_py()
            options = options_of(label_map)
            for scoring in scorings:
                raw = decide(answer, scoring, options)
                table_rows.append(row)
                logprobs.append(_append(columns, answer, scoring, raw, options, label_map))
    taken = prompts.select(_FROM_PROMPTS).take(pa.array(table_rows, pa.int64()))
    arrays: dict[str, pa.Array | pa.ChunkedArray] = {
        **{name: taken[name] for name in _FROM_PROMPTS},
        **{name: pa.array(values, SCHEMA.field(name).type) for name, values in columns.items()},
        "judge": pa.repeat(judge, len(table_rows)),
        "repeat": pa.repeat(pa.scalar(part.repeat, pa.int32()), len(table_rows)),
        "option_logprobs": _nested(logprobs),
    }
    return pa.table({name: arrays[name] for name in SCHEMA.names}, schema=SCHEMA)


def _append(
    columns: dict[str, list[object]],
    answer: Answer,
    scoring: str,
    raw: str,
    options: tuple[str, ...],
    label_map: str,
) -> list[tuple[str, float]] | None:
    """Append one row's own columns; returns its option log-probabilities."""
    generated = scoring == "generate"
    values = None if generated else answer.option_logprobs
    best = sorted(values, reverse=True)[:2] if values else []
    row = {
        "scoring": scoring,
        "raw_text": answer.text if generated else None,
        "raw_decision": raw,
        "decision": _label_map(label_map).get(raw, raw),
        "status": _STATUS.get(raw, "ok"),
        "option_mass": answer.option_mass if values else None,
        "margin": best[0] - best[1] if len(best) == 2 else None,
        "input_tokens": answer.input_tokens,
        "output_tokens": answer.output_tokens if generated else None,
        "truncated": answer.truncated if generated else False,
        "latency_s": answer.latency_s,
        "cost_usd": answer.cost_usd,
        "error": answer.error,
    }
    for name, column in columns.items():
        column.append(row[name])
    return list(zip(options, values, strict=True)) if values else None


def _nested(rows: list[list[tuple[str, float]] | None]) -> pa.Array:
    kind = SCHEMA.field("option_logprobs").type
    offsets = np.zeros(len(rows) + 1, dtype=np.int32)
    np.cumsum([len(row) if row else 0 for row in rows], out=offsets[1:])
    flat = [pair for row in rows if row for pair in row]
    values = pa.StructArray.from_arrays(
        [pa.array([o for o, _ in flat], pa.string()), pa.array([v for _, v in flat], pa.float64())],
        fields=list(kind.value_type),
    )
    return pa.ListArray.from_arrays(
        pa.array(offsets), values, type=kind, mask=pa.array([row is None for row in rows])
    )
