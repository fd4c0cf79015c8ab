"""Inspect's logs, ``.eval`` (a zip file of JSON) and ``.json``, read without Inspect.

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

DEFAULTS: Mapping[str, str] = {
    "order": "metadata.order",
    "cluster_id": "metadata.cluster_id",
    "system_id": "metadata.system_id",
}
_ZSTD = 93
"""The zip compression method of newer Inspect versions, which Python's zipfile lacks."""


def files(source: Path) -> list[Path]:
    """The logs that ``source`` is or holds. Raises JudgeSenseError if there are none."""
    if not source.is_dir():
        return [source]
    found = sorted(path for path in source.rglob("*") if path.suffix in (".eval", ".json"))
    if not found:
        raise JudgeSenseError(f"{source} holds no .eval or .json logs")
    return found


def read(source: Path, *, pick: str | None = None, encoding: str = "utf-8") -> Iterator[Record]:
    """The samples of a log, or of all logs in a folder, with every epoch as a repeat.

    ``pick`` names the scorer whose answers to take where there are several; without one the
    completion itself is read. A sample that failed is an ERROR with its message. Raises
    JudgeSenseError for a file that is no Inspect log or has no samples.
    """
    for path in files(source):
        header, samples = _open(path)
        evaluation = header["eval"]
        count = 0
        for place, sample in samples:
            count += 1
            yield Record(_values(evaluation, sample, place, pick), place)
        if count == 0:
            raise JudgeSenseError(
                f"{path}: the log has no samples (its status: {header.get('status')}); was it "
                "written with log_samples off, or read with header_only?"
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
        raise JudgeSenseError(f"{path}: no Inspect log (it has no 'eval')")
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
    """A member's bytes as they lie in the file, after its local header."""
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
    status = None
    if error:
        status, error = (
            "error",
            str(error.get("message", error) if isinstance(error, dict) else error),
        )
    elif stop == "content_filter":
        status = "refused"
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
    """What a scorer read in the completion, if there is one scorer or one is picked."""
    scores = sample.get("scores") or {}
    if pick is not None and scores and pick not in scores:
        raise JudgeSenseError(f"{place}: no scorer {pick!r}; there are {', '.join(scores)}")
    if pick is None and len(scores) != 1:
        return None
    score = scores.get(pick) if pick is not None else next(iter(scores.values()))
    return (score or {}).get("answer") or None
