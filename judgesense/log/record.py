"""``run.json``: the shape that readers may rely on, and the machine and versions in it."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib import metadata
from typing import Annotated, Any

from pydantic import Field

from judgesense.files.documents import OwnShape
from judgesense.version import __version__


class JudgeRecord(OwnShape):
    """A judge or responder of a run."""

    name: str
    describe: dict[str, Any] | None = None
    counters: dict[str, int | float] | None = None
    failed: list[str] | None = None
    retried: int = 0
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


class SettingsRecord(OwnShape):
    """How the prompts were asked; other keys are compared, not read."""

    repeats: int = 1


class AskedRecord(OwnShape):
    """The request for a run; a resumed run must repeat it."""

    judges: list[dict[str, Any]] | None = None
    data: dict[str, Any] | None = None
    settings: SettingsRecord | None = None


class DamageRecord(OwnShape):
    """The kinds of damage that were tried and what they do, or why none was."""

    kinds: dict[str, str] | None = None
    why: str | None = None


class RunRecord(OwnShape):
    """The whole record. Every key may be absent: versions and kinds of runs differ in them."""

    run_id: str | None = None
    asked: AskedRecord | None = None
    dataset: dict[str, Any] | None = None
    data_hash: str | None = None
    imported: dict[str, Any] | None = None
    invocation: dict[str, Any] | None = None
    tasks: dict[str, TaskRecord] | None = None
    aliases: dict[str, dict[str, Any]] | None = None
    reply_forms: list[str] | None = None
    judges: list[JudgeRecord] | None = None
    responder: JudgeRecord | None = None
    thresholds: dict[str, float] | None = None
    epsilon: float = 0.2
    label_chances: dict[str, float] | None = None
    copies: dict[str, str] | None = None
    shared: dict[str, int] | None = None
    bursts: dict[str, Any] | None = None
    families: dict[str, str] | None = None
    attacks: dict[str, dict[str, str | None]] | None = None
    damage: DamageRecord | None = None
    notes: list[str] | None = None
    versions: dict[str, str] | None = None
    hardware: dict[str, Any] | None = None
    parts: dict[str, int] | None = None
    digests: dict[str, str] | None = None
    started: str | None = None
    finished: str | None = None


def versions() -> dict[str, str]:
    """The versions of the packages that a figure can depend on."""
    packages = {"judgesense": __version__, "python": platform.python_version()}
    for package in ("numpy", "pyarrow", "torch", "transformers", "vllm", "openai"):
        try:
            packages[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return packages


def hardware() -> dict[str, Any]:
    """The properties of this machine that a figure or a timing can depend on."""
    return {"machine": platform.machine(), "system": platform.system(), "cpus": os.cpu_count()}


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
