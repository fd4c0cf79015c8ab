"""One run on a Ray cluster or in several processes: the log is that of one process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from test_runner import comparable

import judgesense
from judgesense.errors import JudgeSenseError
from judgesense.log.schema import read_log
from judgesense_dataset.embedded import embedded_items
from local_judges.api.judge import ApiJudge
from local_judges.ranks import join_ranks, take_a_gpu
from local_judges.ray_runner import RayCluster, RayJudge, cluster_of
from local_judges.registry import resolve

ROOT = Path(__file__).resolve().parents[2]
ASKED: dict[str, Any] = {
    "tasks": ["factuality"],
    "scoring": "options",
    "limit": 15,
    "repeats": 2,
}
"""148 judgements in three parts."""


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As many threads as an actor of one CPU has."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def alone_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process, on one thread."""
    import torch

    out, threads = tmp_path_factory.mktemp("alone"), torch.get_num_threads()
    torch.set_num_threads(1)
    judgesense.run("smollm2-135m", **ASKED, out=out)
    torch.set_num_threads(threads)
    return out


@pytest.fixture(scope="module")
def alone(alone_folder: Path) -> list[dict[str, object]]:
    """The log of one process."""
    return comparable(read_log(alone_folder))


@pytest.fixture(scope="module")
def ray() -> Iterator[None]:
    """Ray on this machine."""
    with RayCluster().connected():
        yield


def cli(*arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "judgesense", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_told_before_a_model_is_loaded(tmp_path: Path) -> None:
    started = ("run", "--judge", "smollm2-135m", "--engine", "ray", "--out", tmp_path / "run")
    done = cli(*started, "--set", "ray_address=auto", RAY_TMPDIR=str(tmp_path))
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "cannot connect to the Ray cluster auto" in done.stderr
    assert not list(tmp_path.rglob("part-*"))


@pytest.mark.slow
def test_ray_that_is_started_here_listens_to_this_machine_alone(ray: None) -> None:
    started = psutil.Process().children(recursive=True)
    assert any(process.name() == "raylet" for process in started)
    heard = [
        socket.laddr.ip.removeprefix("::ffff:")
        for process in started
        for socket in process.net_connections(kind="inet")
        if socket.status == psutil.CONN_LISTEN
    ]
    assert set(heard) <= {"127.0.0.1", "::1"}


@pytest.mark.slow
def test_a_killed_actor_loses_and_doubles_nothing(
    ray: None, alone: list[dict[str, object]], tmp_path: Path
) -> None:
    killed: list[int] = []

    def kill_an_actor_once_a_part_is_written() -> None:
        until = time.monotonic() + 240
        while time.monotonic() < until and not killed:
            if list(tmp_path.glob("decisions/part-*.parquet")):
                for process in psutil.Process().children(recursive=True):
                    if process.name().startswith("ray::_value_or_error"):
                        os.kill(process.pid, signal.SIGKILL)
                        killed.append(process.pid)
            time.sleep(0.1)

    killer = threading.Thread(target=kill_an_actor_once_a_part_is_written)
    killer.start()
    judgesense.run("smollm2-135m", **ASKED, out=tmp_path, engine="ray", ray_actors=1)
    killer.join()
    assert len(killed) == 1
    assert comparable(read_log(tmp_path)) == alone
    assert not list(tmp_path.rglob("*.tmp"))
    (judge,) = json.loads((tmp_path / "run.json").read_text())["judges"]
    assert judge["counters"]["prompts"] == 148
    assert judge["describe"]["cluster"]["actors"] == 1


@pytest.mark.slow
def test_actors_ask_a_stabilised_judge(
    ray: None, one_thread: None, alone_folder: Path, tmp_path: Path
) -> None:
    stable = tmp_path / "stable.yaml"
    judgesense.stabilise(alone_folder, out=stable, remedy="calibrated, panel of 3")
    items = [item for item in embedded_items() if item.task == "factuality"][-6:]
    rows = [{"item_id": item.item_id, **item.fields} for item in items]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = []
    for name, options in (("ray", {"engine": "ray", "ray_actors": 1}), ("here", {})):
        out = tmp_path / f"{name}.jsonl"
        found = judgesense.judge_items(tmp_path / "items.jsonl", stable, out, **options)
        assert found.decided == 6
        told.append([json.loads(line) for line in out.read_text().splitlines()])
    assert told[0] == told[1]
    assert len({row["margin"] for row in told[0]}) == 6
    (judge,) = json.loads((tmp_path / "ray.jsonl.run" / "run.json").read_text())["judges"]
    assert judge["describe"]["cluster"]["actors"] == 1


@pytest.mark.slow
def test_what_stops_an_actor_stops_the_run_with_its_words(ray: None, tmp_path: Path) -> None:
    def too_few(prompts: list[str]) -> list[str]:
        return ["YES"]

    with pytest.raises(JudgeSenseError, match=r"returned 1 replies to .* \(on the machine "):
        judgesense.run(too_few, tasks=["coherence"], out=tmp_path, engine="ray", ray_actors=1)


@pytest.mark.slow
def test_actors_that_die_over_and_over_end_the_run(ray: None, tmp_path: Path) -> None:
    def dies(prompts: list[str]) -> list[str]:
        os.kill(os.getpid(), signal.SIGKILL)
        return []

    with pytest.raises(JudgeSenseError, match="lost 6 actors"):
        judgesense.run(dies, tasks=["coherence"], out=tmp_path, engine="ray", ray_actors=1)


@pytest.mark.slow
def test_an_actor_that_this_machine_has_no_room_for_is_refused(ray: None, tmp_path: Path) -> None:
    with pytest.raises(JudgeSenseError, match="0 GPUs and 4096 CPUs, but this machine has"):
        judgesense.run("smollm2-135m", out=tmp_path, engine="ray", ray_cpus=4096, ray_gpus=0)


@pytest.mark.slow
def test_two_processes_share_a_run(alone: list[dict[str, object]], tmp_path: Path) -> None:
    launch = [sys.executable, "-m", "accelerate.commands.accelerate_cli", "launch", "--multi_gpu"]
    launch += ["--num_processes", "2", "--main_process_port", "0", "-m", "judgesense", "run"]
    asked = ["--tasks", "factuality", "--scoring", "options", "--limit", "15"]
    asked += ["--repeats", "2", "--judge", "smollm2-135m", "--out", str(tmp_path / "run")]
    done = subprocess.run(
        [*launch, *asked],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert comparable(read_log(tmp_path / "run")) == alone
    assert done.stdout.count("report.html and disagreements.csv list the wrong verdicts") == 1
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["hardware"]["processes"] == 2
    assert record["judges"][0]["counters"]["prompts"] == 148
    again = cli("run", *asked)
    assert (again.returncode, again.stdout) == (0, done.stdout)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ray_actors": 2}, "ray_actors needs --engine ray"),
        ({"engine": "vllm", "actor_engine": "vllm"}, "actor_engine needs --engine ray"),
        ({"engine": "ray", "ray_actors": 0}, "greater than or equal to 1"),
        ({"engine": "ray", "ray_gpus": 1.5}, "fraction of one GPU"),
        ({"engine": "ray", "ray_disk": 1}, "ray_disk: unknown option"),
    ],
)
def test_options_of_ray_that_do_not_go_together_are_refused(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(JudgeSenseError, match=said):
        cluster_of(options)


@pytest.mark.parametrize("limit", ["max_cost", "requests_per_minute", "tokens_per_minute"])
def test_a_limit_is_not_given_to_each_actor(limit: str, tmp_path: Path) -> None:
    options = {limit: 60.0, "price": (1.0, 1.0), "base_url": "http://localhost/v1"}
    spec = resolve("m", engine="api", **options)
    with pytest.raises(JudgeSenseError, match=f"{limit} cannot be shared by the actors"):
        RayJudge(RayCluster(), spec, tmp_path, note=print)


@pytest.mark.slow
def test_a_loaded_judge_with_a_key_is_not_sent_to_a_cluster(
    ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_KEY", "sk-test-0123456789abcdef")
    held = ApiJudge("m", base_url="http://localhost:1/v1", key_variable="FAKE_KEY")
    with pytest.raises(JudgeSenseError, match="name and options"):
        judgesense.run(held, **ASKED, engine="ray", ray_actors=1, out=tmp_path)


def test_the_actors_engine_is_that_of_the_judge() -> None:
    given = {"engine": "ray", "actor_engine": "api", "ray_gpus": 0.5, "base_url": "http://x/v1"}
    cluster, left = cluster_of(given)
    assert cluster == RayCluster(actor_engine="api", ray_gpus=0.5)
    assert left == {"engine": "api", "base_url": "http://x/v1"}
    assert cluster_of({"engine": "ray"})[1] == {}
    shared = {"engine": "ray", "actor_engine": "vllm", "ray_gpus": 0.25}
    assert cluster_of(shared)[1] == {"engine": "vllm", "gpu_memory_utilization": 0.225}
    given = cluster_of({**shared, "gpu_memory_utilization": 0.1})[1]
    assert given["gpu_memory_utilization"] == 0.1
    assert cluster_of({**shared, "ray_gpus": 1})[1] == {"engine": "vllm"}


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1"),
        ("ray://127.0.0.1:10001", "auto or HOST:PORT"),
        ("somewhere", "auto or HOST:PORT"),
    ],
)
def test_an_address_without_a_cluster_is_refused_before_ray_is_loaded(
    address: str, said: str
) -> None:
    with pytest.raises(JudgeSenseError, match=said), RayCluster(ray_address=address).connected():
        pass


def test_processes_that_cannot_find_each_other_are_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(JudgeSenseError, match="torchrun"), join_ranks():
        pass


@pytest.mark.parametrize(("visible", "taken"), [(None, "1"), ("4,5", "5"), ("7", "7"), ("", "")])
def test_each_process_sees_one_gpu_of_those_visible(
    visible: str | None, taken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    take_a_gpu(1, 2)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == taken


def test_more_processes_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with pytest.raises(JudgeSenseError, match="names 2 GPUs"):
        take_a_gpu(2, 3)


@pytest.mark.parametrize("script", sorted((ROOT / "examples" / "slurm").glob("*.sbatch")))
def test_a_slurm_example_is_a_script_that_bash_can_read(script: Path) -> None:
    done = subprocess.run(["bash", "-n", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    text = script.read_text()
    assert text.startswith("#!/bin/bash\n#SBATCH ")
    # From 22.05 on, srun does not take the job's --cpus-per-task.
    named = text.find("export SRUN_CPUS_PER_TASK=")
    assert "srun " not in text[text.find("set -euo") :] or -1 < named < text.find("$(srun")
