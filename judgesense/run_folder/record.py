"""The shape of ``run.json``: what readers of a run's record may rely on."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from judgesense.files.documents import OwnShape


class JudgeRecord(OwnShape):
    """A judge or responder of a run."""

    name: str
    describe: dict[str, Any] | None = None
    counters: dict[str, int | float] | None = None
    failed: list[str] | None = None
    seconds: float | None = None


class TaskRecord(OwnShape):
    """A task of a run."""

    labels: Annotated[list[str], Field(min_length=2)]
    ordinal: bool | None = None
    comparative: bool | None = None
    templates: dict[str, Any] | None = None
    options: dict[str, str] | None = None
    wordings: dict[str, str] | None = None
    layouts: dict[str, str] | None = None


class AskedRecord(OwnShape):
    """What was asked for; a resumed run must ask for the same."""

    judges: list[dict[str, Any]] | None = None
    data: dict[str, Any] | None = None
    settings: dict[str, Any] | None = None


class RunRecord(OwnShape):
    """The whole record. Every key may be absent: versions and kinds of runs differ in them."""

    run_id: str | None = None
    asked: AskedRecord | None = None
    dataset: dict[str, Any] | None = None
    data_hash: str | None = None
    imported: dict[str, Any] | None = None
    tasks: dict[str, TaskRecord] | None = None
    aliases: dict[str, dict[str, Any]] | None = None
    reply_forms: list[str] | None = None
    judges: list[JudgeRecord] | None = None
    responder: JudgeRecord | None = None
    thresholds: dict[str, float] | None = None
    notes: list[str] | None = None
    versions: dict[str, str] | None = None
    hardware: dict[str, Any] | None = None
    parts: dict[str, int] | None = None
    digests: dict[str, str] | None = None
    started: str | None = None
    finished: str | None = None
