"""A loopback Hub, the command line that speaks to it, and things to publish."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from loopback_hub import WRITER, LoopbackHub

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def hub():
    server = LoopbackHub()
    yield server
    server.close()


@pytest.fixture
def env(hub, tmp_path):
    """The environment of a person who is logged in at the loopback Hub."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))}
    return {
        **kept,
        "HF_ENDPOINT": hub.url,
        "HF_HUB_OFFLINE": "0",
        "HF_HOME": str(tmp_path / "hf"),
        "HF_TOKEN": WRITER,
        # The loopback Hub stores large files by git-lfs's protocol.
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_UPDATE_DOWNLOAD_COUNTS": "0",
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "no_proxy": "127.0.0.1",
    }


@pytest.fixture
def publish(env):
    """``judgesense publish ...`` in a process of its own; some settings can be others."""

    def call(*arguments, **settings):
        whole = {**env, **settings}
        command = [sys.executable, "-m", "judgesense", "publish", *map(str, arguments)]
        return subprocess.run(
            command,
            env={key: value for key, value in whole.items() if value is not None},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    return call


@pytest.fixture
def read_back(env):
    """Run Python in a process that reads from the loopback Hub."""

    def call(code, **settings):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**env, **settings},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return call


@pytest.fixture(scope="session")
def older_client(tmp_path_factory):
    """Settings under which Python finds huggingface_hub 1.x before the one that is installed."""
    folder, requirement = tmp_path_factory.mktemp("hub1"), "huggingface_hub>=1.0,<2"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command = [*pip, "--no-deps", "--target", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    if done.returncode:
        pytest.skip(f"{requirement} cannot be installed: {done.stderr.strip()[-200:]}")
    return {"PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}
