"""What all tests share: no Hub, the shared folder where it is there, the real models."""

from __future__ import annotations

import os
from pathlib import Path

# Before any library reads them: the tests never ask a Hub.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
from hypothesis import HealthCheck, settings

# A busy machine is no failure, and a check that passes must pass again.
settings.register_profile(
    "steady",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with public mirrors, published tables and foreign logs, beside a checkout."""
    folder = Path(os.environ.get("JUDGESENSE_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"needs the folder {folder} (set JUDGESENSE_SHARED to where it lies)")
    return folder


@pytest.fixture(scope="session")
def mirror(shared: Path) -> Path:
    """Public datasets in the schema of the Hub datasets of those names."""
    return shared / "hub_mirror"


@pytest.fixture(scope="session")
def published(shared: Path) -> Path:
    """The earlier benchmark's pairs and result tables."""
    return shared / "published"
