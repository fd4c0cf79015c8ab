"""A real server with a real model behind the API judge, and faults in between."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fake_endpoint import FaultProxy, serving

from judgesense.benchmark import Benchmark
from judgesense.decisions import read_log
from judgesense_dataset.embedded import load_embedded
from local_judges.api_call import Retry
from local_judges.api_judge import ApiJudge
from local_judges.runner import run_judge
from local_judges.transformers_judge import TransformersJudge

pytestmark = pytest.mark.slow
MAX_TOKENS = 5
"""Few, because the server answers one question at a time, a token a forward."""


def few() -> Benchmark:
    return load_embedded().select(["factuality", "coherence"], limit=3)


@pytest.fixture(scope="module")
def local() -> TransformersJudge:
    return TransformersJudge("smollm2-135m", name="local", max_tokens=MAX_TOKENS)


@pytest.fixture(scope="module")
def data() -> Benchmark:
    return few()


@pytest.fixture(scope="module")
def server(local: TransformersJudge) -> Iterator[tuple[str, str]]:
    """(base URL, model name) of `transformers serve` with SmolLM2 on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        Path(sys.executable).with_name("transformers"), "serve", local.folder, "--port", str(port),
    ]  # fmt: skip
    process = subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    try:
        for _ in range(120):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2)
                break
            except (urllib.error.URLError, OSError):
                assert process.poll() is None, "transformers serve ended at once"
                time.sleep(0.5)
        else:
            pytest.fail("transformers serve did not come up in a minute")
        yield f"http://127.0.0.1:{port}/v1", str(local.folder)
    finally:
        process.kill()
        process.wait()


def decisions(out: Path) -> dict[str, tuple[str, str]]:
    return {
        row["prompt_id"]: (row["raw_text"].strip(), row["decision"])
        for row in read_log(out).to_pylist()
    }


@pytest.fixture(scope="module")
def locally(
    local: TransformersJudge, data: Benchmark, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[str, str]]:
    out = tmp_path_factory.mktemp("local")
    run_judge(local, data, out, ["generate"])
    return decisions(out)


def test_decisions_equal_the_local_judges(
    server: tuple[str, str], data: Benchmark, locally: dict[str, tuple[str, str]], tmp_path: Path
) -> None:
    url, model = server
    judge = ApiJudge(model, base_url=url, logprobs=False, concurrency=2, max_tokens=MAX_TOKENS)
    outcome = run_judge(judge, data, tmp_path, ["generate"])
    assert outcome.failed == []
    assert decisions(tmp_path) == locally


def test_kills_and_faults_lose_nothing_and_change_nothing(
    server: tuple[str, str], data: Benchmark, locally: dict[str, tuple[str, str]], tmp_path: Path
) -> None:
    url, model = server
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_api_real_server import once\nonce(*sys.argv[2:])"
    )
    rng = np.random.default_rng(1)
    proxy = FaultProxy(url, fault_rate=0.3)
    with serving(proxy) as spoiled:
        command = [
            sys.executable, "-c", script, str(Path(__file__).parent), spoiled, model, str(tmp_path),
        ]  # fmt: skip
        for _ in range(3):
            process = subprocess.Popen(command)
            time.sleep(float(rng.uniform(5, 8)))
            process.kill()
            process.wait()
        subprocess.run(command, check=True)
    assert proxy.faults.total() > 10
    log = read_log(tmp_path)
    assert log.num_rows == data.prompts.num_rows
    assert decisions(tmp_path) == locally


def once(url: str, model: str, out: str) -> None:
    """One start of the run, in a process of its own."""
    judge = ApiJudge(
        model,
        base_url=url,
        logprobs=False,
        concurrency=2,
        max_tokens=MAX_TOKENS,
        timeout_s=2.5,
        retry=Retry(attempts=30, budget_s=60, first_s=0.02, most_s=0.5),
    )
    run_judge(judge, few(), Path(out), ["generate"])
