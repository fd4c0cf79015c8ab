"""A run on a Ray cluster: each of n actors loads the judge once and judges every n-th part.

An actor plans the parts, so that the settings that depend on the device (dtype, batch size) fit the
machines that judge. The actors write the log and return only counts. Ray gives the parts of a lost
actor to another one; finished parts are kept. An actor for which no machine has room yet waits.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from judgesense.benchmark import Benchmark
from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.log.folder import PROMPTS_FILE
from judgesense.log.schema import PARTS
from judgesense.tasks import Aliases
from judgesense.version import __version__
from local_judges.options import VLLM_MEMORY, RayOptions, validate_settings
from local_judges.outcome import JudgeOutcome, merge_outcomes
from local_judges.parts import Interrupted, ask_parts, set_aside_unplanned
from local_judges.plan import Part, Requests, plan_parts
from local_judges.progress import progress
from local_judges.protocol import Judge
from local_judges.registry import JudgeSpec
from local_judges.rows import decision_log
from local_judges.runner import require_scorings

LOSSES = 5
"""How many actors may be lost over the same parts before the run fails."""
_UNSHARED_LIMITS = ("max_cost", "requests_per_minute", "tokens_per_minute", "batch")
_REACH_WITHIN_S = 5.0


class RayCluster(RayOptions):
    """The cluster that a run uses, and the resources of each actor.

    Without ``ray_address`` it is that of $RAY_ADDRESS, or else Ray started on this machine alone.
    """

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Connect to the cluster. Raises JudgeSenseError within seconds if it does not answer."""
        address = self.ray_address or os.environ.get("RAY_ADDRESS")
        is_local = address in (None, "local")
        if not is_local and address != "auto":
            _require_reachable(str(address))
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if is_local:
            # Whoever reaches Ray's ports can run code. Without clusters on this system it listens
            # only on 127.0.0.1; setting that address would not do so.
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        # Errors in Ray reach us as exceptions; its own log would go to the user's terminal.
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        try:
            import ray
        except ImportError as error:
            raise MissingExtraError("ray", "ray", "--engine ray") from error
        if ray.is_initialized():
            yield
            return
        quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            ray.init(address=address, include_dashboard=False if is_local else None, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise JudgeSenseError(
                f"cannot connect to the Ray cluster {address or 'of this machine'}: "
                f"{' '.join(str(error).split())}"
            ) from error
        try:
            yield
        finally:
            ray.shutdown()

    def resources(self) -> dict[str, float]:
        """The resources of one actor, in Ray's names."""
        import ray

        gpus = self.ray_gpus
        if gpus is None:
            gpus = 1.0 if ray.cluster_resources().get("GPU") else 0.0
        return {"num_cpus": self.ray_cpus, "num_gpus": gpus}

    def require_room(self, note: Callable[[str], None]) -> None:
        """Note if no machine of the cluster has room for an actor yet: one may join later.

        Raises JudgeSenseError if none can, because Ray runs on this machine alone.
        """
        import ray

        gpus, cpus = self.resources()["num_gpus"], self.ray_cpus
        machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        if any(node.get("GPU", 0) >= gpus and node.get("CPU", 0) >= cpus for node in machines):
            return
        needs = f"an actor needs {gpus:g} GPUs and {cpus:g} CPUs"
        if (self.ray_address or os.environ.get("RAY_ADDRESS")) is None:
            raise JudgeSenseError(
                f"{needs}, but this machine has {machines[0].get('GPU', 0):g} GPUs "
                f"and {machines[0].get('CPU', 0):g} CPUs; set ray_gpus and ray_cpus"
            )
        note(f"{needs}, but no machine of the Ray cluster has them now; waiting for one to join")

    def n_actors(self) -> int:
        """The number of actors."""
        import ray

        gpus = self.resources()["num_gpus"]
        n_fitting = int(ray.cluster_resources().get("GPU", 0) // gpus) if gpus else 1
        return self.ray_actors or max(n_fitting, 1)


def cluster_of(options: Mapping[str, Any]) -> tuple[RayCluster | None, dict[str, Any]]:
    """The cluster that a judge's options describe, if any, and the remaining options.

    ``engine="ray"`` asks for one; ``actor_engine`` is then the engine of the actors. vLLM actors
    with a fraction of a GPU share its memory in proportion. Raises JudgeSenseError for options of
    Ray without ``engine="ray"``.
    """
    ray_options = {k: v for k, v in options.items() if k.startswith("ray_") or k == "actor_engine"}
    engine_options = {key: value for key, value in options.items() if key not in ray_options}
    if engine_options.get("engine") != "ray":
        if ray_options:
            raise JudgeSenseError(f"{min(ray_options)} needs --engine ray")
        return None, engine_options
    del engine_options["engine"]
    cluster = validate_settings(RayCluster, ray_options, "", "option of the engine ray")
    if cluster.actor_engine is not None:
        engine_options["engine"] = cluster.actor_engine
    share = cluster.ray_gpus or 1.0
    if cluster.actor_engine == "vllm" and share < 1:
        # Ray only counts fractions; each vLLM would still take 90% of the GPU that several share.
        engine_options.setdefault("gpu_memory_utilization", round(VLLM_MEMORY * share, 4))
    return cluster, engine_options


def _require_reachable(address: str) -> None:
    """Raise JudgeSenseError if HOST:PORT does not answer; Ray itself would try for a minute."""
    # Ray Data does not support the addresses of Ray's client (ray://).
    if not (match := re.fullmatch(r"\[?([^\]/]+?)\]?:(\d+)", address)):
        raise JudgeSenseError(f"ray_address must be auto or HOST:PORT, got {address!r}")
    try:
        socket.create_connection((match[1], int(match[2])), _REACH_WITHIN_S).close()
    except OSError as error:
        raise JudgeSenseError(
            f"no Ray cluster answers at {address} ({error}); start one with: ray start --head"
        ) from error


class RayJudge:
    """A judge on a cluster; an actor there reports its name, scorings and description.

    ``folder`` is the run's, which every machine must see. Raises JudgeSenseError for an option that
    actors cannot share, and if an actor cannot load the judge.
    """

    def __init__(
        self,
        cluster: RayCluster,
        source: JudgeSpec | Judge,
        folder: Path,
        *,
        note: Callable[[str], None],
    ) -> None:
        options = source.options if isinstance(source, JudgeSpec) else {}
        if limits := [name for name in _UNSHARED_LIMITS if options.get(name) is not None]:
            raise JudgeSenseError(
                f"{limits[0]} cannot be shared by the actors of a cluster; set a limit at the "
                "provider"
            )
        cluster.require_room(note)
        self._cluster, self._note = cluster, note
        self._job = _Job(source, folder.resolve())
        judge = self._run_remotely(_describe_judge)
        self.name: str = judge["name"]
        self.price: tuple[float, float] | None = options.get("price")
        self.scorings = frozenset(judge["scorings"])
        self._description: dict[str, Any] = judge["describe"]

    def describe(self) -> dict[str, Any]:
        """The description by the actor's judge, with the resources of the actors."""
        import ray

        cluster = {"actors": self._cluster.n_actors(), "ray": ray.__version__}
        return {**self._description, "cluster": {**self._cluster.resources(), **cluster}}

    def run(
        self,
        benchmark: Benchmark,
        scorings: Sequence[str],
        *,
        judge_index: int,
        repeats: int,
        seed: int,
        begin: Callable[[], None],
    ) -> JudgeOutcome:
        """Judge the prompts that are not judged yet; the actors write the log.

        ``begin`` is called once the parts are planned, before the first prompt is asked. Raises
        Interrupted after Ctrl-C, which keeps the finished parts, and JudgeSenseError for errors
        of an actor.
        """
        import ray

        require_scorings(self.name, self.scorings, scorings)
        prompts = ray.put(benchmark.asked)
        options = {"judge_index": judge_index, "repeats": repeats, "seed": seed}
        parts = self._run_remotely(_plan, prompts, frozenset(scorings), options)
        begin()
        folder = self._job.folder / PARTS
        set_aside_unplanned(folder, parts, judge_index, self._note)
        aliases = {template: dict(names) for template, names in benchmark.aliases.items()}
        n_shares = min(self._cluster.n_actors(), len(parts))
        started, outcomes = time.perf_counter(), [JudgeOutcome(self.name)]
        open_parts = {part.name: sum(map(len, part.batches)) for part in parts}
        total = sum(open_parts.values())
        arguments = (self.name, prompts, tuple(scorings), aliases, dict(benchmark.fields))
        shares = [parts[number::n_shares] for number in range(n_shares)]
        running = [self._start(_ask_share, *arguments, share) for share in shares]
        try:
            with progress(self.name, total) as advance:
                while running:
                    finished, running = ray.wait(running, timeout=1.0)
                    for name in [name for name in open_parts if (folder / name).exists()]:
                        advance(open_parts.pop(name))
                    for outcome, notes in map(self._value, finished):
                        outcomes.append(outcome)
                        for line in notes:
                            self._note(line)
        except KeyboardInterrupt:
            raise Interrupted(total - sum(open_parts.values()), total) from None
        finally:
            for task in running:
                ray.cancel(task, force=True)
        whole = merge_outcomes(outcomes)
        whole.seconds = time.perf_counter() - started
        return whole

    def _run_remotely(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._value(self._start(function, *arguments))

    def _start(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Start a function of `_Home` on a machine; if that is lost, on another."""
        import ray

        remote = ray.remote(_value_or_error).options(
            **self._cluster.resources(), max_retries=LOSSES
        )
        return remote.remote(function, self._job, *arguments)

    def _value(self, task: Any) -> Any:
        """The value of a task. Raises its error, and JudgeSenseError if its machines are lost."""
        import ray

        try:
            reply = ray.get(task)
        except ray.exceptions.RayTaskError:
            raise
        except ray.exceptions.RayError as error:
            raise JudgeSenseError(
                f"the Ray cluster lost {LOSSES + 1} actors over the same prompts "
                f"({' '.join(str(error).split())}); finished parts are kept. The model may need "
                "more memory than the machine has"
            ) from error
        if "error" in reply:
            raise JudgeSenseError(reply["error"])
        return reply["value"]

    def close(self) -> None:
        """Nothing to free: the actors end with the run."""


@dataclass(frozen=True)
class _Job:
    """Everything that an actor needs to load the judge and write the log."""

    source: JudgeSpec | Judge
    folder: Path
    version: str = __version__

    def load(self) -> Judge:
        """The judge. Raises JudgeSenseError if this machine cannot take part in the run."""
        if self.version != __version__:
            raise JudgeSenseError(
                f"this machine has judgesense {__version__}, but the run was started with "
                f"{self.version}; install that version"
            )
        # The run wrote this file before it started the actors.
        if not (self.folder / PROMPTS_FILE).exists() or not os.access(self.folder, os.W_OK):
            raise JudgeSenseError(
                f"this machine cannot read and write the run in {self.folder}; set --out to a "
                "folder that all machines share"
            )
        return self.source.load() if isinstance(self.source, JudgeSpec) else self.source


def _value_or_error(function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """A function's value, or its error with the name of this machine."""
    try:
        return {"value": function(*arguments)}
    except JudgeSenseError as error:
        return {"error": f"{error} (on the machine {socket.gethostname()})"}


def _describe_judge(job: _Job) -> dict[str, Any]:
    judge = job.load()
    description = dict(judge.describe())
    return {"name": judge.name, "scorings": sorted(judge.scorings), "describe": description}


def _plan(
    job: _Job, prompts: pa.Table, scorings: frozenset[str], options: Mapping[str, int]
) -> list[Part]:
    return plan_parts(job.load(), Requests(prompts), scorings, **options)


def _ask_share(
    job: _Job,
    name: str,
    prompts: pa.Table,
    scorings: Sequence[str],
    aliases: Mapping[str, Aliases],
    fields: Mapping[str, str],
    parts: Sequence[Part],
) -> tuple[JudgeOutcome, list[str]]:
    """Judge the parts that are not in the log yet: all, or those that a lost machine left."""
    judge, requests, notes = job.load(), Requests(prompts), list[str]()
    if judge.name != name:
        raise JudgeSenseError(
            f"the judge is {judge.name} on this machine, but {name} where the run was planned; use "
            "machines with the same weights and the same kind of device"
        )
    log = decision_log(job.folder / PARTS, name, requests, prompts, scorings, aliases, fields)
    outcome = ask_parts(judge, requests, parts, frozenset(scorings), log, notes.append)
    judge.close()
    return outcome, notes
