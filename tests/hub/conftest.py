"""A loopback Hub, the command line that speaks to it, and things to publish."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from leaderboard_runs import make_runs
from leaderboard_site import HERE, HOSTILE, serve
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
    return _client(tmp_path_factory.mktemp("hub1"), "huggingface_hub>=1.0,<2")


@pytest.fixture(scope="session")
def first_client(tmp_path_factory):
    """The same for a release from before the Hub's evaluation results."""
    return _client(tmp_path_factory.mktemp("hub10"), "huggingface_hub==1.0.1")


def _client(folder, requirement):
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command = [*pip, "--no-deps", "--target", str(folder), requirement]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    if done.returncode:
        pytest.skip(f"{requirement} cannot be installed: {done.stderr.strip()[-200:]}")
    return {"PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))}


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """Three judges by rule, and one whose name and texts attack the page."""
    folder = make_runs(
        tmp_path_factory.mktemp("results"), ("steady-70b", "wavering-1.5b", "always-yes-360m")
    )
    report = json.loads((folder / "wavering-1.5b" / "report.json").read_text("utf-8"))
    text = json.dumps(report).replace('"wavering-1.5b@callable"', json.dumps(HOSTILE))
    made = json.loads(text)
    for example in made["examples"]:
        for side in "ab":
            example[side].update(text=HOSTILE * 40, answer=HOSTILE)
    (folder / "hostile").mkdir()
    (folder / "hostile" / "report.json").write_text(json.dumps(made), "utf-8")
    (folder / "broken").mkdir()
    (folder / "broken" / "report.json").write_text('{"schema": 1, "cells": [NaN]}', "utf-8")
    return folder


@pytest.fixture(scope="session")
def site(results, tmp_path_factory):
    watched = tmp_path_factory.mktemp("watched")
    server, url = serve(results, "--accept", watched=watched)
    yield url
    assert server.poll() is None, "the leaderboard fell"
    server.terminate()
    server.wait(20)
    asked = [line.split(" ", 1) for line in (watched / "asked").read_text("utf-8").splitlines()]
    # Gradio asks its own server once; runs in a folder need no network at all.
    assert asked
    assert {host for _, host in asked} <= HERE


LEFT = ("AbortError: signal is aborted", "Unexpected error Connection errored out")
"""What Gradio's client logs if a page is left before the stream of its events is open."""


@pytest.fixture
def visit(browser, site):
    """Open a page; errors, requests to elsewhere and scripts that others smuggled in fail."""
    wrong, contexts = [], []

    def opened(path="", *, width=1280, scheme="light", wait=".site"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        context.set_default_timeout(30_000)
        page = context.new_page()
        page.on("console", lambda m: m.type == "error" and logged(m.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda r: foreign(r.url) and wrong.append(f"asks {r.url}"))
        page.goto(site + path)
        page.wait_for_selector(wait, state="attached")
        if page.locator("#table").count():
            # Gradio has drawn the filters around the table.
            page.wait_for_selector("#table-place #table")
        return page

    def foreign(url):
        return not url.startswith((site, "data:", "blob:"))

    def logged(text):
        if not text.startswith(LEFT):
            wrong.append(text)

    yield opened
    for context in contexts:
        for page in context.pages:
            assert page.evaluate("window.hacked") is None
        context.close()
    assert wrong == []
