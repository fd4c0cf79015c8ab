"""Turn the answers of a part into rows of the decision log, and describe a log in parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from judgesense.log.schema import OPTIONAL, SCHEMA, conform
from judgesense.tasks import ERROR, REFUSED, UNCLEAR, Aliases, load_label_map
from local_judges.plan import Part, Requests, options_of, take_rows
from local_judges.protocol import Answer

_STATUSES = {ERROR: "error", REFUSED: "refused", UNCLEAR: "unclear"}
_FROM_PROMPTS = (
    "prompt_id",
    "task",
    "item_id",
    "cluster_id",
    "template_id",
    "order",
    "gold",
    "system_id",
)


def decide(
    answer: Answer,
    scoring: str,
    options: tuple[str, ...],
    aliases: Aliases | None = None,
    field: str = "",
) -> str:
    """The raw decision of an answer: an option, or UNCLEAR, REFUSED or ERROR.

    A text may name an option by one of its ``aliases``, and a JSON reply may state it in ``field``.
    With ``options`` scoring it is the most probable option, and the first one of a tie.

    >>> decide(Answer(option_logprobs=(-2.0, -0.1)), "options", ("YES", "NO"))
    'NO'
    """
    if answer.error is not None:
        return ERROR
    if answer.refused:
        return REFUSED
    if scoring == "generate":
        if answer.text in options:
            return answer.text
        return read_reply(answer.text or "", options, aliases, field)
    if answer.option_logprobs is None:
        return UNCLEAR
    return options[answer.option_logprobs.index(max(answer.option_logprobs))]


def read_reply(
    text: str, options: tuple[str, ...], aliases: Aliases | None = None, field: str = ""
) -> str:
    """The option that a text concludes: what its JSON states in ``field``, or the whole text."""
    from judgesense.answers import parse
    from judgesense.answers.fields import in_field

    stated = in_field(text, field) if field else None
    return parse(text if stated is None else stated, options, aliases)


def part_table(
    part: Part,
    answers: Mapping[int, Answer],
    requests: Requests,
    prompts: pa.Table,
    judge: str,
    scorings: Sequence[str],
    aliases: Mapping[str, Aliases] | None = None,
    fields: Mapping[str, str] = MappingProxyType({}),
) -> pa.Table:
    """The rows of a part: by request in the planned order, then by prompt, then by scoring.

    ``aliases`` and ``fields`` are those of each template, by its id.
    """
    row_indices, answer_of = requests.rows_of(part)
    part_answers = [answers[index] for index in part.requests]
    variants = [name for name in OPTIONAL if name in prompts.column_names]
    prompt_columns = take_rows(
        prompts.select((*_FROM_PROMPTS, "label_map", *variants)), row_indices
    )
    label_maps = prompt_columns["label_map"].to_pylist()
    request_maps = _request_maps(answer_of, label_maps)
    aliases_of = aliases or {}
    templates = prompt_columns["template_id"].to_pylist()
    row_columns = {
        "judge": pa.repeat(judge, len(row_indices)),
        "repeat": pa.repeat(pa.scalar(part.repeat, pa.int32()), len(row_indices)),
        **dict.fromkeys(OPTIONAL, pa.nulls(len(row_indices), pa.string())),
        **{name: prompt_columns[name] for name in (*_FROM_PROMPTS, *variants)},
    }
    tables = []
    for scoring in scorings:
        # Rows that share an answer may differ in their label map and aliases, so each text is read
        # by its own; log-probabilities are in the order in which the options were asked for.
        maps = request_maps if scoring == "options" else label_maps
        raw_decisions, decisions = list[str](), list[str]()
        for number, request_map, label_map, template in zip(
            answer_of.tolist(), maps, label_maps, templates, strict=True
        ):
            reading = aliases_of.get(template), fields.get(template, "")
            raw = decide(part_answers[number], scoring, options_of(request_map), *reading)
            raw_decisions.append(raw)
            decisions.append(load_label_map(label_map).get(raw, raw))
        answer_columns = _answer_columns(part_answers, scoring).take(pa.array(answer_of))
        columns: dict[str, Any] = {
            **row_columns,
            "scoring": pa.repeat(scoring, len(row_indices)),
            "raw_decision": raw_decisions,
            "decision": decisions,
            "status": [_STATUSES.get(raw, "ok") for raw in raw_decisions],
            **dict(zip(answer_columns.column_names, answer_columns, strict=True)),
        }
        if scoring == "options":
            columns["option_logprobs"] = logprob_column(part_answers, answer_of, label_maps)
        nulls = pa.nulls(len(row_indices))
        tables.append(
            pa.table({name: columns.get(name, nulls) for name in SCHEMA.names}, schema=SCHEMA)
        )
    if len(tables) == 1:
        return tables[0]
    interleaved = np.arange(len(row_indices) * len(tables)).reshape(len(tables), -1).T.ravel()
    return pa.concat_tables(tables).take(pa.array(interleaved))


def _answer_columns(answers: Sequence[Answer], scoring: str) -> pa.Table:
    """The columns that depend on the answer alone, one row per answer."""
    names = ["input_tokens", "latency_s", "cost_usd", "error", "certificate"]
    if scoring == "generate":
        columns: dict[str, list[object]] = {"raw_text": [answer.text for answer in answers]}
        names += ["output_tokens", "truncated"]
    else:
        logprobs = [answer.option_logprobs for answer in answers]
        columns = {
            "truncated": [False] * len(answers),
            "option_mass": [a.option_mass if a.option_logprobs else None for a in answers],
            "margin": [_margin(values) if values else None for values in logprobs],
        }
    for name in names:
        columns[name] = [getattr(answer, name) for answer in answers]
    return pa.table({n: pa.array(v, SCHEMA.field(n).type) for n, v in columns.items()})


def _margin(logprobs: Sequence[float]) -> float:
    best, second = sorted(logprobs, reverse=True)[:2]
    return best - second


def logprob_column(
    answers: Sequence[Answer], answer_of: np.ndarray, label_maps: Sequence[str]
) -> pa.Array:
    """The options of each row with their log-probabilities, in the row's order; null if absent."""
    kind = SCHEMA.field("option_logprobs").type
    logprobs = [
        _reorder(answers[number].option_logprobs, request_map, row_map)
        for number, request_map, row_map in zip(
            answer_of.tolist(), _request_maps(answer_of, label_maps), label_maps, strict=True
        )
    ]
    names = [options_of(m) if v else () for m, v in zip(label_maps, logprobs, strict=True)]
    offsets = np.zeros(len(logprobs) + 1, dtype=np.int32)
    np.cumsum([len(row) for row in names], out=offsets[1:])
    flat = pa.StructArray.from_arrays(
        [
            pa.array([name for row in names for name in row], pa.string()),
            pa.array([value for row in logprobs for value in row or ()], pa.float64()),
        ],
        fields=list(kind.value_type),
    )
    absent = pa.array([value is None for value in logprobs])
    return pa.ListArray.from_arrays(pa.array(offsets), flat, type=kind, mask=absent)


def _request_maps(answer_of: np.ndarray, label_maps: Sequence[str]) -> list[str]:
    """For each row the label map whose options were in the request: that of the first row that
    shares the answer, as in :class:`~local_judges.plan.Requests`."""
    firsts = np.searchsorted(answer_of, answer_of)
    return list(np.array(label_maps, dtype=object)[firsts])


def _reorder(
    values: tuple[float, ...] | None, request_map: str, row_map: str
) -> tuple[float, ...] | None:
    if values is None or request_map == row_map:
        return values
    by_name = dict(zip(options_of(request_map), values, strict=True))
    return tuple(by_name[option] for option in options_of(row_map))


@dataclass(frozen=True)
class PartLog:
    """A log in parts: their folder, and how answers become the rows of one.

    ``conform(table, where)`` gives a part the columns of the log or raises JudgeSenseError. Each
    row that a request answers becomes ``copies`` consecutive rows of the log.
    """

    folder: Path
    copies: int
    conform: Callable[[pa.Table, str], pa.Table]
    table_of: Callable[[Part, dict[int, Answer]], pa.Table]


def decision_log(
    folder: Path,
    judge: str,
    requests: Requests,
    prompts: pa.Table,
    scorings: Sequence[str],
    aliases: Mapping[str, Aliases] | None = None,
    fields: Mapping[str, str] = MappingProxyType({}),
) -> PartLog:
    """The decision log of a judge on these prompts; ``aliases`` and ``fields`` by template id."""
    settings = (requests, prompts, judge, scorings, aliases, fields)
    return PartLog(
        folder, len(scorings), conform, lambda part, answers: part_table(part, answers, *settings)
    )
