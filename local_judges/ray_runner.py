"""A run on a Ray cluster: each actor loads the judge once and judges one part after another.

An actor plans the parts, so that the settings that depend on the device (dtype, batch size) fit the
machines that judge. The parts then pass as a Ray dataset through a pool of actors, which write the
log and return only counts. Ray restarts a lost actor and gives its parts to another one; finished
parts are kept.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from judgesense.benchmark import Benchmark
from judgesense.decisions.log import PARTS
from judgesense.errors import JudgeSenseError, MissingExtraError
from judgesense.run_folder.folder import PROMPTS_FILE
from judgesense.tasks import Aliases
from judgesense.version import __version__
from local_judges.options import RayOptions, checked
from local_judges.plan import Part, Requests, plan_parts
from local_judges.protocol import Judge
from local_judges.registry import JudgeSpec
from local_judges.rows import decision_log
from local_judges.runner import (
    Interrupted,
    JudgeOutcome,
    ask_parts,
    progress,
    require_scorings,
    set_aside_unplanned,
    together,
)

PARTS_A_CALL, CALLS_AN_ACTOR = 16, 4
"""At most so many parts in one call, as engines work best when they can read ahead; and at least so
many calls per actor, if there are enough parts, which spreads the load."""
LOSSES_A_CALL = 5
"""How many actors may be lost over the same call before the run fails."""
_LIMITS = ("max_cost", "requests_per_minute", "tokens_per_minute")
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
            import ray.data
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
        """Note it if no machine of the cluster has room for an actor yet: one may join later.

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
                f"{takes}, but this machine has {offered[0].get('GPU', 0):g} and "
                f"{offered[0].get('CPU', 0):g}; set ray_gpus and ray_cpus"
            )
        note(f"{takes}, but no machine of the Ray cluster has them now; waiting for one to join")

    def pool(self) -> tuple[int, int]:
        """The minimum and the maximum number of actors."""
        import ray

        if self.ray_actors is not None:
            return self.ray_actors
        gpus = self.resources()["num_gpus"]
        fit = int(ray.cluster_resources().get("GPU", 0) // gpus) if gpus else 1
        return max(fit, 1), max(fit, 1)


def cluster_of(options: Mapping[str, Any]) -> tuple[RayCluster | None, dict[str, Any]]:
    """The cluster that a judge's options describe, if any, and the remaining options.

    ``engine="ray"`` asks for one; ``actor_engine`` is then the engine of the actors. Raises
    JudgeSenseError for options of Ray without ``engine="ray"``.
    """
    about_ray = {k: v for k, v in options.items() if k.startswith("ray_") or k == "actor_engine"}
    others = {key: value for key, value in options.items() if key not in about_ray}
    if others.get("engine") != "ray":
        if about_ray:
            raise JudgeSenseError(f"{min(about_ray)} is for --engine ray")
        return None, others
    del others["engine"]
    cluster = checked(RayCluster, about_ray, "", "option of the engine ray")
    return cluster, others | ({"engine": cluster.actor_engine} if cluster.actor_engine else {})


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

        pool = {"actors": [*self._cluster.pool()], "ray": ray.__version__}
        return {**self._describe, "cluster": {**self._cluster.resources(), **pool}}

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
        prompts = ray.put(benchmark.prompts)
        parts: list[Part] = self._on_a_machine(
            _planned, prompts, frozenset(scorings), judge_index, repeats, seed
        )
        begin()
        set_aside_unplanned(self._home.folder / PARTS, parts, judge_index, self._note)
        aliases = {key: dict(each) for key, each in benchmark.aliases.items()}
        shared = (self._home, self.name, prompts, ray.put(parts), tuple(scorings), aliases)
        outcomes = [JudgeOutcome(self.name)]
        total, started = len(Requests(benchmark.prompts)) * repeats, time.perf_counter()
        try:
            with progress(self.name, total) as advance:
                for reply in self._replies(len(parts), shared):
                    for line in reply["notes"]:
                        self._note(line)
                    outcomes.append(JudgeOutcome(**reply["outcome"]))
                    advance(outcomes[-1].planned)
        except KeyboardInterrupt:
            raise Interrupted(together(outcomes).planned, total) from None
        whole = together(outcomes)
        whole.seconds = time.perf_counter() - started
        return whole

    def _replies(self, n_parts: int, shared: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
        """What the actors reply, as it comes."""
        import ray

        least, most = self._cluster.pool()
        a_call = max(1, min(PARTS_A_CALL, n_parts // (CALLS_AN_ACTOR * most)))
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        # Its errors reach us as exceptions.
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        calls = ray.data.range(n_parts, override_num_blocks=-(-n_parts // a_call))
        with warnings.catch_warnings():
            # Before Ray 2.64 there is no other way to set these two limits.
            warnings.filterwarnings("ignore", "`ray_remote_args`")
            answered = calls.map_batches(
                _PartJudge, fn_constructor_args=shared, batch_size=None, batch_format="numpy",
                compute=ray.data.ActorPoolStrategy(min_size=least, max_size=most),
                max_restarts=-1, max_task_retries=LOSSES_A_CALL, **self._cluster.resources(),
            )  # fmt: skip
        try:
            for row in answered.iter_rows():
                yield _value(json.loads(row["reply"]))
        except ray.exceptions.RayActorError as error:
            raise JudgeSenseError(
                f"the Ray cluster lost {LOSSES_A_CALL + 1} actors over the same prompts "
                f"({' '.join(str(error).split())}); finished parts are kept. The model may need "
                "more memory than the machine has"
            ) from error

    def _on_a_machine(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a function of the loaded judge where an actor will run.

        Raises JudgeSenseError for its errors, and if every machine is lost that tries.
        """
        import ray

        task = ray.remote(_caught).options(**self._cluster.resources(), max_retries=LOSSES_A_CALL)
        try:
            return _value(ray.get(task.remote(function, self._home, *arguments)))
        except ray.exceptions.RayError as error:
            if isinstance(error, ray.exceptions.RayTaskError):
                raise
            raise JudgeSenseError(
                f"no actor of the Ray cluster could load the judge: {' '.join(str(error).split())}"
            ) from error

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
                f"{self.version}"
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


def _value(reply: Mapping[str, Any]) -> Any:
    """The value of a reply of `_caught`. Raises its error."""
    if "error" in reply:
        raise JudgeSenseError(reply["error"])
    return reply["value"]


def _described(home: _Home) -> dict[str, Any]:
    judge = home.load()
    described = dict(judge.describe())
    return {"name": judge.name, "scorings": sorted(judge.scorings), "describe": described}


def _planned(
    home: _Home, prompts: pa.Table, scorings: frozenset[str], index: int, repeats: int, seed: int
) -> list[Part]:
    options = {"judge_index": index, "repeats": repeats, "seed": seed}
    return plan_parts(home.load(), Requests(prompts), scorings, **options)


class _PartJudge:
    """An actor of the pool: judges parts and writes them."""

    def __init__(
        self, home: _Home, name: str, prompts: Any, parts: Any, scorings: tuple[str, ...],
        aliases: Mapping[str, Aliases],
    ) -> None:  # fmt: skip
        import ray

        self._parts: Sequence[Part] = ray.get(parts)
        self._home, self._name, self._scorings, self._aliases = home, name, scorings, aliases
        self._prompts: pa.Table = ray.get(prompts)
        self._requests = Requests(self._prompts)
        self._judge: Judge | None = None

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        """One row per call: the outcome and the notes, or the error that stops the run."""
        parts = [self._parts[number] for number in batch["id"]]
        return {"reply": [json.dumps(_caught(self._answer, parts))]}

    def _answer(self, parts: Sequence[Part]) -> dict[str, Any]:
        self._judge = judge = self._judge or self._home.load()
        if judge.name != self._name:
            raise JudgeSenseError(
                f"the judge is {judge.name} on this machine, but {self._name} where the run was "
                "planned; use machines with the same weights and the same kind of device"
            )
        log = decision_log(
            self._home.folder / PARTS, judge.name, self._requests, self._prompts, self._scorings,
            self._aliases,
        )  # fmt: skip
        notes: list[str] = []
        wanted = frozenset(self._scorings)
        outcome = ask_parts(judge, self._requests, parts, wanted, log, notes.append)
        return {"outcome": {**vars(outcome), "counters": {**outcome.counters}}, "notes": notes}
