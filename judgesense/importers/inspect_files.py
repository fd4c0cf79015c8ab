"""The files of Inspect's logs: header and samples, in each of the three layouts.

A log is JSON, or a zip archive with one JSON file per sample, or an archive with a folder per
sample (chunked: ``sample.json``, ``metadata.json`` and ``attachments/*.json``, beside events and
messages, which are not read).
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import Field

from judgesense.errors import JudgeSenseError
from judgesense.files.disk import require_file
from judgesense.files.documents import Shape, parse_json, read_json, validate
from judgesense.files.limits import MEMBER_BYTES, require_small

_ZSTD = 93
"""The zip compression method of newer Inspect versions, which Python's zipfile lacks."""

_DAMAGE = (
    OSError,
    EOFError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What zipfile and its decompressors raise for an archive with wrong bytes."""

_SAMPLE = re.compile(r"samples/.+_epoch_\d+(/sample)?\.json")
_ATTACHMENT = "attachment://"


class Scorer(Shape):
    """A scorer of the log's header."""

    name: str
    options: dict[str, Any] | None = None


class Evaluation(Shape):
    """What is read of a log's header."""

    model: str
    task: str
    task_args: dict[str, Any] | None = None
    model_roles: dict[str, Any] | None = None
    scorers: list[Scorer] | None = None


class Log(Shape):
    """A log; in an archive, its samples are apart."""

    eval: Evaluation
    samples: list[Any] | None = None


class Output(Shape):
    """The answer of the evaluated model."""

    completion: str = ""
    choices: list[dict[str, Any]] = Field(default_factory=list)
    usage: dict[str, Any] | None = None
    time: float | None = None
    error: str | None = None


class Score(Shape):
    """What a scorer said of a sample."""

    value: str | int | float | bool | list[Any] | dict[str, Any] | None = None
    answer: str | None = None
    explanation: str | None = None
    metadata: dict[str, Any] | None = None
    history: list[dict[str, Any]] = Field(default_factory=list)

    @property
    def original(self) -> Any:
        """The grader's value, if a person edited it later."""
        first = self.history[0].get("value", "UNCHANGED") if self.history else "UNCHANGED"
        return self.value if first == "UNCHANGED" else first

    @property
    def grading(self) -> list[Any]:
        """The grading conversation: the prompt, then the grader's message."""
        messages = (self.metadata or {}).get("grading")
        return messages if isinstance(messages, list) else []

    @property
    def prompt(self) -> str | None:
        """The grading prompt."""
        return _content(self.grading[0]) if self.grading else None

    @property
    def grader(self) -> str | None:
        """The model of the grader's message."""
        last = self.grading[-1] if self.grading else {}
        model = last.get("model") if isinstance(last, Mapping) else None
        return model if isinstance(model, str) else None

    @property
    def raw_text(self) -> str | None:
        """What the grader wrote."""
        return (_content(self.grading[-1]) if len(self.grading) > 1 else None) or self.explanation

    @property
    def votes(self) -> list[Any]:
        """The grades of a panel's members; empty for one grader."""
        panel = (self.metadata or {}).get("panel")
        votes = panel.get("votes") if isinstance(panel, Mapping) else None
        return votes if isinstance(votes, list) else []


class Sample(Shape):
    """What is read of a sample."""

    id: str | int
    epoch: int = 1
    input: Any = None
    target: str | list[str] | None = None
    output: Output = Output()
    scores: dict[str, Score | None] | None = None
    metadata: dict[str, Any] | None = None
    error: dict[str, Any] | str | None = None

    @property
    def message(self) -> str | None:
        """Why the sample failed."""
        error = self.error
        return str(error.get("message", error)) if isinstance(error, Mapping) else error


def open_log(path: Path) -> tuple[Evaluation, Iterator[tuple[str, Sample]]]:
    """A log's header, and its samples with their places, read as they are needed.

    Raises JudgeSenseError for a file that is not an Inspect log, is damaged or unfinished, and for
    a sample that does not have the shape of one.
    """
    require_file(path)
    if zipfile.is_zipfile(path):
        try:
            archive = zipfile.ZipFile(path)
        except _DAMAGE as error:
            raise JudgeSenseError(f"{path}: a damaged archive ({error})") from error
        require_small(archive, path)
        if "[Content_Types].xml" in archive.namelist():
            raise JudgeSenseError(f"{path}: an Excel workbook; name it with the suffix .xlsx")
        if "header.json" not in archive.namelist():
            raise JudgeSenseError(
                f"{path}: the log is unfinished (no header.json); recover it with: "
                "inspect log recover"
            )
        log = validate(Log, _read(path, archive, "header.json"), str(path), "an Inspect log")
        samples = _zipped(path, archive)
    else:
        log = validate(Log, read_json(path), str(path), "an Inspect log")
        listed = enumerate(log.samples or [], 1)
        samples = ((f"{path}, sample {n}", sample) for n, sample in listed)
    return log.eval, ((place, _sample(values, place)) for place, values in samples)


def _sample(values: Any, place: str) -> Sample:
    if isinstance(values, dict):
        needed = {name: values[name] for name in Sample.model_fields if name in values}
        attachments = values.get("attachments")
        values = _resolved(needed, attachments if isinstance(attachments, dict) else {})
    return validate(Sample, values, place, "a sample of an Inspect log")


def _resolved(value: Any, attachments: Mapping[str, Any]) -> Any:
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attachments.get(value.removeprefix(_ATTACHMENT), value)
    if isinstance(value, dict):
        return {key: _resolved(inner, attachments) for key, inner in value.items()}
    if isinstance(value, list):
        return [_resolved(inner, attachments) for inner in value]
    return value


def _zipped(path: Path, archive: zipfile.ZipFile) -> Iterator[tuple[str, Any]]:
    names = sorted(archive.namelist())
    for name in filter(_SAMPLE.fullmatch, names):
        values = _read(path, archive, name)
        folder, is_folder, _ = name.partition("/sample.json")
        if is_folder and isinstance(values, dict):
            if f"{folder}/metadata.json" in names:
                values["metadata"] = _read(path, archive, f"{folder}/metadata.json")
            chunks = [each for each in names if each.startswith(f"{folder}/attachments/")]
            texts: list[Any] = []
            for chunk in sorted(chunks, key=lambda each: (len(each), each)):
                if not isinstance(part := _read(path, archive, chunk), list):
                    raise JudgeSenseError(f"{path}, {chunk}: not a list of texts")
                texts += part
            values["attachments"] = {str(at): text for at, text in enumerate(texts)}
        yield f"{path}, {name}", values


def _read(path: Path, archive: zipfile.ZipFile, name: str) -> Any:
    """The value of a JSON file in an archive. Raises JudgeSenseError if it is damaged."""
    try:
        info = archive.getinfo(name)
        if info.compress_type != _ZSTD:
            content = archive.read(name)
        else:
            with path.open("rb") as source:
                # The compressed bytes follow a local header with the lengths of its two texts.
                source.seek(info.header_offset + 26)
                source.seek(sum(struct.unpack("<HH", source.read(4))), 1)
                compressed = pa.BufferReader(source.read(info.compress_size))
            # The size that the archive states may be wrong.
            content = pa.CompressedInputStream(compressed, "zstd").read(MEMBER_BYTES + 1)
            if len(content) > MEMBER_BYTES:
                raise ValueError(f"more than {MEMBER_BYTES:,} bytes, decompressed")
    except _DAMAGE as error:
        raise JudgeSenseError(f"{path}, {name}: damaged ({error})") from error
    return parse_json(content, f"{path}, {name}")


def _content(message: Any) -> str | None:
    content = message.get("content") if isinstance(message, Mapping) else message
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) and content else None
