"""Inspect's logs, ``.eval`` (a zip archive of JSON) and ``.json``, read without Inspect.

Each sample is a judgement: the model's completion, what a scorer read in it (``answer``) and the
target. ``metadata`` and ``task_args`` stay in the record, so that a column map can reach into
them (``template_id=task_args.template``).
"""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from judgesense.errors import JudgeSenseError
from judgesense.importers.files import Record, read_json, require_file
from judgesense.importers.protocol import Importer, ReadOptions

_ZSTD = 93
"""The zip compression method of newer Inspect versions, which Python's zipfile lacks."""


def read(path: Path, options: ReadOptions) -> Iterator[Record]:
    """The samples of a log, with every epoch as a repeat.

    ``pick`` names the scorer whose answers to take if there are several; by default the completion
    itself is read then. A failed sample is an ERROR with its message. Raises JudgeSenseError for a
    file that is not an Inspect log or has no samples.
    """
    header, samples = _open(path)
    count = 0
    for place, sample in samples:
        count += 1
        yield Record(_values(header["eval"], sample, place, options.pick), place)
    if count == 0:
        raise JudgeSenseError(
            f"{path}: the log has no samples (status: {header.get('status')}); was it written with "
            "log_samples off, or read with header_only?"
        )


def _open(path: Path) -> tuple[dict[str, Any], Iterator[tuple[str, dict[str, Any]]]]:
    require_file(path)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if "header.json" not in names:
                raise JudgeSenseError(
                    f"{path}: the log is unfinished (no header.json); recover it with: "
                    "inspect log recover"
                )
            header = _member(archive, path, "header.json")
        samples = (name for name in names if name.startswith("samples/"))
        return header, _zipped(path, sorted(samples))
    log = read_json(path)
    if not isinstance(log, dict) or "eval" not in log:
        raise JudgeSenseError(f"{path}: not an Inspect log (it has no 'eval')")
    listed = log.get("samples") or []
    return log, ((f"{path}, sample {n}", sample) for n, sample in enumerate(listed, 1))


def _zipped(path: Path, names: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    with zipfile.ZipFile(path) as archive:
        for name in names:
            yield f"{path}, {name}", _member(archive, path, name)


def _member(archive: zipfile.ZipFile, path: Path, name: str) -> dict[str, Any]:
    info = archive.getinfo(name)
    try:
        if info.compress_type == _ZSTD:
            content = pa.CompressedInputStream(
                pa.BufferReader(_compressed(path, info)), "zstd"
            ).read()
        else:
            content = archive.read(name)
        values: dict[str, Any] = json.loads(content)
    except (OSError, zipfile.BadZipFile, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise JudgeSenseError(f"{path}, {name}: damaged ({error})") from error
    return values


def _compressed(path: Path, info: zipfile.ZipInfo) -> bytes:
    """The compressed bytes of a member, which follow its local header."""
    with path.open("rb") as source:
        source.seek(info.header_offset + 26)
        name_length, extra_length = struct.unpack("<HH", source.read(4))
        source.seek(name_length + extra_length, 1)
        return source.read(info.compress_size)


def _values(
    evaluation: Mapping[str, Any], sample: Mapping[str, Any], place: str, pick: str | None
) -> dict[str, Any]:
    output = sample.get("output") or {}
    usage = output.get("usage") or {}
    choices = output.get("choices") or [{}]
    stop = choices[0].get("stop_reason")
    error = sample.get("error")
    status = "error" if error else "refused" if stop == "content_filter" else None
    if error:
        error = str(error.get("message", error) if isinstance(error, dict) else error)
    target = sample.get("target")
    return {
        "judge": evaluation.get("model"),
        "task": evaluation.get("task"),
        "template_id": evaluation.get("task"),
        "item_id": str(sample.get("id")),
        "repeat": int(sample.get("epoch") or 1) - 1,
        "raw_text": output.get("completion") or None,
        "raw_decision": _answer(sample, place, pick),
        "gold": (target[0] if target else None) if isinstance(target, list) else target,
        "status": status,
        "error": error or output.get("error"),
        "input_tokens": usage.get("input_tokens"),
        "output_tokens": usage.get("output_tokens"),
        "latency_s": output.get("time"),
        "truncated": stop in ("max_tokens", "model_length"),
        "metadata": sample.get("metadata") or {},
        "task_args": evaluation.get("task_args") or {},
        "input": sample.get("input"),
    }


def _answer(sample: Mapping[str, Any], place: str, pick: str | None) -> str | None:
    """What the picked or only scorer read in the completion; None if it is not clear which."""
    scores = sample.get("scores") or {}
    if pick is not None and scores and pick not in scores:
        raise JudgeSenseError(
            f"{place}: unknown scorer {pick!r}; choose one of {', '.join(scores)}"
        )
    if pick is None and len(scores) != 1:
        return None
    score = scores.get(pick) if pick is not None else next(iter(scores.values()))
    return (score or {}).get("answer") or None


IMPORTER = Importer(
    name="inspect",
    summary="Inspect .eval or .json logs, or their folder",
    patterns=("*.eval", "*.json"),
    read=read,
    options=("pick",),
    columns={
        "order": "metadata.order",
        "cluster_id": "metadata.cluster_id",
        "system_id": "metadata.system_id",
    },
)
