"""The response log: the answers of models in free text.

A log is an Arrow table with the columns of :data:`SCHEMA`, one row per question and repeat, stored
as ``responses/part-*.parquet`` in a run's folder. A matcher scores it.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import UNREADABLE, read_table
from judgesense.log.folder import changes, read_record
from judgesense.log.schema import SCHEMA as DECISIONS
from judgesense.log.schema import conform, part_files, read_part, require_parts

PARTS = "responses"

_REQUIRED = [
    ("model", pa.string()),
    ("prompt_id", pa.string()),
    ("item_id", pa.string()),
    ("template_id", pa.string()),
    ("text", pa.string()),
    ("finish_reason", pa.string()),
    ("tokens", pa.int32()),
]
_OPTIONAL = [
    ("repeat", pa.int32()),
    ("input_tokens", pa.int32()),
    ("option_logprobs", DECISIONS.field("option_logprobs").type),
    ("latency_s", pa.float64()),
    ("cost_usd", pa.float64()),
    ("error", pa.string()),
]

SCHEMA = pa.schema(_REQUIRED + _OPTIONAL)
"""Columns of the response log; a file may lack those from ``repeat`` on, which are then null.

``model`` is ``name@fingerprint``, ``prompt_id`` the hash of the message, and ``tokens`` the number
of generated tokens. ``finish_reason`` is ``stop``, ``length`` (cut off at the token cap),
``refusal`` (by the provider) or ``error``, with a null ``text`` and the reason in ``error``.
``option_logprobs`` are the log-probabilities in nats of each option's whole token sequence.
"""


def read_responses(path: str | Path) -> pa.Table:
    """A response log: a run's folder, or one file (``.parquet``, ``.jsonl``).

    Raises JudgeSenseError if the log does not exist, if the run is not finished, and if a part
    cannot be read or lacks a column.

    >>> import json, pathlib, tempfile
    >>> row = {"model": "m@1", "prompt_id": "p1", "item_id": "q1", "template_id": "t1"}
    >>> row |= {"text": "B", "finish_reason": "stop", "tokens": 1}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "answers.jsonl"
    ...     _ = path.write_text(json.dumps(row))
    ...     read_responses(path)["text"].to_pylist()
    ['B']
    """
    path = Path(path)
    if path.is_dir():
        require_finished(path)
        parts = require_parts(path, PARTS, "response log")
        return pa.concat_tables([conform_responses(read_part(part), str(part)) for part in parts])
    if not path.is_file():
        raise JudgeSenseError(f"no file or folder {path}")
    if path.suffix == ".parquet":
        return conform_responses(read_part(path), str(path))
    if path.suffix == ".jsonl":
        return conform_responses(_read_lines(path), str(path))
    raise JudgeSenseError(f"{path}: a response log is a folder, a .parquet or a .jsonl file")


def require_finished(folder: Path) -> None:
    """Raise JudgeSenseError if ``run.json`` shows that answers are missing or changed.

    A folder without ``run.json`` holds a log of another program, which counts as finished.
    """
    record = read_record(folder)
    if record is None:
        return
    is_whole = record.get("finished")
    if is_whole and (folder / PARTS).is_dir():
        names = {part.name for part in part_files(folder, PARTS)}
        is_whole = names.issuperset(record.get("parts", ()))
    if not is_whole:
        raise JudgeSenseError(f"the run in {folder} is not finished; rerun it to resume")
    if differences := changes(folder, record, PARTS):
        raise JudgeSenseError(
            f"{folder} has changed since the run finished: {'; '.join(differences.values())}. "
            "Rerun it to ask the missing questions again"
        )


def conform_responses(table: pa.Table, where: str) -> pa.Table:
    """The table with the schema's columns and types; absent optional columns are null.

    Raises JudgeSenseError naming ``where`` and the column that is missing or has the wrong type.
    """
    for name, kind in _OPTIONAL:
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(table.num_rows, kind))
    return conform(table, where, SCHEMA, "response log")


def _read_lines(path: Path) -> pa.Table:
    rows = []
    for record in read_table(path):
        if missing := [name for name, _ in _REQUIRED if name not in record.values]:
            raise JudgeSenseError(f"{record.place}: the response lacks {', '.join(missing)}")
        rows.append(record.values)
    try:
        return pa.Table.from_pylist(rows, schema=SCHEMA)
    except UNREADABLE as error:
        raise JudgeSenseError(f"{path}: a column has the wrong type ({error})") from error
