"""Which Ray cluster, and what an actor there takes: options to a connection."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from judgesense.errors import JudgeSenseError, MissingExtraError

_REACH_WITHIN_S = 5.0


@dataclass(frozen=True)
class RayCluster:
    """Where a run's actors live, and what each of them takes.

    ``actors`` is their number, or the least and the most of a pool that grows; None is one for
    each ``gpus`` of the cluster, or one. ``gpus`` may be a fraction; None is one where the cluster
    has any. ``address`` is ``auto`` or ``HOST:PORT`` of a cluster that runs; None takes
    $RAY_ADDRESS or else starts Ray on this machine alone.
    """

    actors: int | tuple[int, int] | None = None
    gpus: float | None = None
    cpus: float = 1.0
    address: str | None = None

    def __post_init__(self) -> None:
        alone = 1 if self.actors is None else self.actors
        sizes = alone if isinstance(alone, tuple) else (alone, alone)
        if not 1 <= sizes[0] <= sizes[1]:
            raise JudgeSenseError(
                f"the actors must be a number, or the least and the most, got {self.actors}"
            )
        gpus = self.gpus or 0
        if gpus < 0 or self.cpus < 0 or (gpus > 1 and gpus != int(gpus)):
            raise JudgeSenseError(
                "an actor takes a share of one GPU or a whole number of them, and no less than 0 "
                f"CPUs, got {self.gpus} GPUs and {self.cpus} CPUs"
            )

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Connected to the cluster. Raises JudgeSenseError within seconds if it is not there."""
        address = self.address or os.environ.get("RAY_ADDRESS")
        _require_reachable(address)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if address in (None, "local"):
            # Who reaches Ray's ports may run code. Told that there are no clusters on this system,
            # it listens on 127.0.0.1 alone; giving it that address does not do so.
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        # What goes wrong in Ray reaches us as an exception; its own log would go to our terminal.
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
        try:
            import ray
            import ray.data
        except ImportError as error:
            raise MissingExtraError("ray", "ray", "--engine ray") from error
        if ray.is_initialized():
            yield
            return
        try:
            ray.init(
                address=address,
                log_to_driver=False,
                logging_level=logging.ERROR,
                include_dashboard=False if address in (None, "local") else None,
            )
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
        """What one actor takes, as Ray names it."""
        import ray

        gpus = self.gpus
        if gpus is None:
            gpus = 1.0 if ray.cluster_resources().get("GPU") else 0.0
        return {"num_cpus": self.cpus, "num_gpus": gpus}

    def require_room(self, note: Callable[[str], None]) -> None:
        """Say that no machine of the cluster has what an actor takes, if so: one may yet join.

        Raises JudgeSenseError where none can, on this machine alone.
        """
        import ray

        gpus, cpus = self.resources()["num_gpus"], self.cpus
        offered = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        if any(has.get("GPU", 0) >= gpus and has.get("CPU", 0) >= cpus for has in offered):
            return
        takes = f"an actor takes {gpus:g} GPUs and {cpus:g} CPUs"
        if (self.address or os.environ.get("RAY_ADDRESS")) is None:
            raise JudgeSenseError(
                f"{takes}, and this machine has {offered[0].get('GPU', 0):g} and "
                f"{offered[0].get('CPU', 0):g}; give --ray-gpus and --ray-cpus"
            )
        note(f"{takes}, and no machine of the Ray cluster has these now; waiting for one to join")

    def pool(self) -> tuple[int, int]:
        """The least and the most actors."""
        if isinstance(self.actors, tuple):
            return self.actors
        if self.actors is not None:
            return self.actors, self.actors
        import ray

        gpus = self.resources()["num_gpus"]
        fit = int(ray.cluster_resources().get("GPU", 0) // gpus) if gpus else 1
        return max(fit, 1), max(fit, 1)


def cluster_of(options: Mapping[str, Any]) -> tuple[RayCluster | None, dict[str, Any]]:
    """The cluster that a judge's options name, if any, and the options that are left.

    ``engine="ray"`` asks for one; ``actor_engine`` then names what runs the model there.
    Raises JudgeSenseError for options of Ray without it.
    """
    left = dict(options)
    asked = {
        name: left.pop(name)
        for name in list(left)
        if name.startswith("ray_") or name == "actor_engine"
    }
    if left.get("engine") != "ray":
        if asked:
            raise JudgeSenseError(f"--{min(asked).replace('_', '-')} is for --engine ray")
        return None, left
    del left["engine"]
    if engine := asked.pop("actor_engine", None):
        left["engine"] = engine
    fields = {name.removeprefix("ray_"): value for name, value in asked.items()}
    if unknown := sorted(set(fields) - set(RayCluster.__dataclass_fields__)):
        raise JudgeSenseError(f"unknown option ray_{unknown[0]} of the engine ray")
    return RayCluster(**fields), left


def _require_reachable(address: str | None) -> None:
    """Raise JudgeSenseError if nobody answers at HOST:PORT; Ray itself would try for a minute."""
    if address is None or address in ("auto", "local"):
        return
    if address.startswith("ray://"):
        raise JudgeSenseError(
            f"{address} is a Ray client's address, through which Ray Data does not work: give "
            "--ray-address auto on a machine of the cluster (ray job submit runs a command there)"
        )
    if not (parts := re.fullmatch(r"\[?([^\]]+?)\]?:(\d+)", address)):
        raise JudgeSenseError(f"--ray-address must be auto or HOST:PORT, got {address!r}")
    try:
        socket.create_connection((parts[1], int(parts[2])), _REACH_WITHIN_S).close()
    except OSError as error:
        raise JudgeSenseError(
            f"no Ray cluster answers at {address} ({error}); start one with: ray start --head"
        ) from error
