"""What a figure or a timing can depend on beside the data: versions, the machine and the time."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

from judgesense.version import __version__


def versions() -> dict[str, str]:
    """The versions of the packages that a figure can depend on."""
    found = {"judgesense": __version__, "python": platform.python_version()}
    for package in ("numpy", "pyarrow", "torch", "transformers", "vllm", "openai"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def hardware() -> dict[str, Any]:
    """The properties of this machine that a figure or a timing can depend on."""
    return {"machine": platform.machine(), "system": platform.system(), "cpus": os.cpu_count()}


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
