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
from local_judges.options import VLLM_MEMORY, RayOptions, checked
from local_judges.parts import (
    Interrupted,
    JudgeOutcome,
    ask_parts,
    merge_outcomes,
    set_aside_unplanned,
)
from local_judges.plan import Part, Requests, plan_parts
from local_judges.progress import progress
from local_judges.protocol import Judge
from local_judges.registry import JudgeSpec
from local_judges.rows import decision_log
from local_judges.runner import require_scorings

LOSSES = 5
"""How many actors may be lost over the same parts before the run fails."""
_LIMITS = ("max_cost", "requests_per_minute", "tokens_per_minute", "batch")
_REACH_WITHIN_S = 5.0


class RayCluster(RayOptions):
    """The cluster that a run uses, and the resources of each actor.

    Without ``ray_address`` it is that of $RAY_ADDRESS, or else Ray started on this machine alone.
    """

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Connect to the cluster. Raises JudgeSenseError within seconds if it does not answer."""
        address = self.ray_address or os.environ.get("RAY_ADDRESS")
        alone = address in (None, "local")
        if not alone and address != "auto":
            _require_reachable(str(address))
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if alone:
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
            ray.init(address=address, include_dashboard=False if alone else None, **quiet)
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
        offered = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        if any(has.get("GPU", 0) >= gpus and has.get("CPU", 0) >= cpus for has in offered):
            return
        takes = f"an actor needs {gpus:g} GPUs and {cpus:g} CPUs"
        if (self.ray_address or os.environ.get("RAY_ADDRESS")) is None:
            raise JudgeSenseError(
                f"{takes}, but this machine has {offered[0].get('GPU', 0):g} GPUs "
                f"and {offered[0].get('CPU', 0):g} CPUs; set ray_gpus and ray_cpus"
            )
        note(f"{takes}, but no machine of the Ray cluster has them now; waiting for one to join")

    def shares(self) -> int:
        """The number of actors."""
        import ray

        gpus = self.resources()["num_gpus"]
        fit = int(ray.cluster_resources().get("GPU", 0) // gpus) if gpus else 1
        return self.ray_actors or max(fit, 1)


def cluster_of(options: Mapping[str, Any]) -> tuple[RayCluster | None, dict[str, Any]]:
    """The cluster that a judge's options describe, if any, and the remaining options.

    ``engine="ray"`` asks for one; ``actor_engine`` is then the engine of the actors. vLLM actors
    with a fraction of a GPU share its memory in proportion. Raises JudgeSenseError for options of
    Ray without ``engine="ray"``.
    """
    about_ray = {k: v for k, v in options.items() if k.startswith("ray_") or k == "actor_engine"}
    others = {key: value for key, value in options.items() if key not in about_ray}
    if others.get("engine") != "ray":
        if about_ray:
            raise JudgeSenseError(f"{min(about_ray)} needs --engine ray")
        return None, others
    del others["engine"]
    cluster = checked(RayCluster, about_ray, "", "option of the engine ray")
    if cluster.actor_engine is not None:
        others["engine"] = cluster.actor_engine
    share = cluster.ray_gpus or 1.0
    if cluster.actor_engine == "vllm" and share < 1:
        # Ray only counts fractions; each vLLM would still take 90% of the GPU that several share.
        others.setdefault("gpu_memory_utilization", round(VLLM_MEMORY * share, 4))
    return cluster, others


def _require_reachable(address: str) -> None:
    """Raise JudgeSenseError if HOST:PORT does not answer; Ray itself would try for a minute."""
    # Ray Data does not support the addresses of Ray's client (ray://).
    if not (parts := re.fullmatch(r"\[?([^\]/]+?)\]?:(\d+)", address)):
        raise JudgeSenseError(f"ray_address must be auto or HOST:PORT, got {address!r}")
    try:
        socket.create_connection((parts[1], int(parts[2])), _REACH_WITHIN_S).close()
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
        given = source.options if isinstance(source, JudgeSpec) else {}
        if limit := next((name for name in _LIMITS if given.get(name) is not None), None):
            raise JudgeSenseError(
                f"{limit} cannot be shared by the actors of a cluster; set a limit at the provider"
            )
        cluster.require_room(note)
        self._cluster, self._note = cluster, note
        self._home = _Home(source, folder.resolve())
        judge = self._on_a_machine(_described)
        self.name: str = judge["name"]
        self.price: tuple[float, float] | None = given.get("price")
        self.scorings = frozenset(judge["scorings"])
        self._describe: dict[str, Any] = judge["describe"]

    def describe(self) -> dict[str, Any]:
        """The description by the actor's judge, with the resources of the actors."""
        import ray

        cluster = {"actors": self._cluster.shares(), "ray": ray.__version__}
        return {**self._describe, "cluster": {**self._cluster.resources(), **cluster}}

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
        parts = self._on_a_machine(_planned, prompts, frozenset(scorings), options)
        begin()
        folder = self._home.folder / PARTS
        set_aside_unplanned(folder, parts, judge_index, self._note)
        aliases = {key: dict(each) for key, each in benchmark.aliases.items()}
        n = min(self._cluster.shares(), len(parts))
        started, outcomes = time.perf_counter(), [JudgeOutcome(self.name)]
        left = {part.name: sum(map(len, part.batches)) for part in parts}
        total = sum(left.values())
        asked = (self.name, prompts, tuple(scorings), aliases, dict(benchmark.fields))
        running = [self._task(_asked, *asked, parts[number::n]) for number in range(n)]
        try:
            with progress(self.name, total) as advance:
                while running:
                    done, running = ray.wait(running, timeout=1.0)
                    for name in [name for name in left if (folder / name).exists()]:
                        advance(left.pop(name))
                    for outcome, notes in map(self._value, done):
                        outcomes.append(outcome)
                        for line in notes:
                            self._note(line)
        except KeyboardInterrupt:
            raise Interrupted(total - sum(left.values()), total) from None
        finally:
            for task in running:
                ray.cancel(task, force=True)
        whole = merge_outcomes(outcomes)
        whole.seconds = time.perf_counter() - started
        return whole

    def _on_a_machine(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._value(self._task(function, *arguments))

    def _task(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Start a function of `_Home` on a machine; if that is lost, on another."""
        import ray

        remote = ray.remote(_caught).options(**self._cluster.resources(), max_retries=LOSSES)
        return remote.remote(function, self._home, *arguments)

    def _value(self, task: Any) -> Any:
        """What a task returns. Raises its error, and JudgeSenseError if its machines are lost."""
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
class _Home:
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


def _caught(function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
    """A function's value, or its error with the name of this machine."""
    try:
        return {"value": function(*arguments)}
    except JudgeSenseError as error:
        return {"error": f"{error} (on the machine {socket.gethostname()})"}


def _described(home: _Home) -> dict[str, Any]:
    judge = home.load()
    described = dict(judge.describe())
    return {"name": judge.name, "scorings": sorted(judge.scorings), "describe": described}


def _planned(
    home: _Home, prompts: pa.Table, scorings: frozenset[str], options: Mapping[str, int]
) -> list[Part]:
    return plan_parts(home.load(), Requests(prompts), scorings, **options)


def _asked(
    home: _Home,
    name: str,
    prompts: pa.Table,
    scorings: Sequence[str],
    aliases: Mapping[str, Aliases],
    fields: Mapping[str, str],
    parts: Sequence[Part],
) -> tuple[JudgeOutcome, list[str]]:
    """Judge the parts that are not in the log yet: all, or those that a lost machine left."""
    judge, requests, notes = home.load(), Requests(prompts), list[str]()
    if judge.name != name:
        raise JudgeSenseError(
            f"the judge is {judge.name} on this machine, but {name} where the run was planned; use "
            "machines with the same weights and the same kind of device"
        )
    log = decision_log(home.folder / PARTS, name, requests, prompts, scorings, aliases, fields)
    outcome = ask_parts(judge, requests, parts, frozenset(scorings), log, notes.append)
    judge.close()
    return outcome, notes
