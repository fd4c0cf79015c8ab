"""The Ray cluster of a run: the options for it, and the connection to it."""

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
from local_judges.options import RayOptions, check

_REACH_WITHIN_S = 5.0


@dataclass(frozen=True)
class RayCluster:
    """The cluster that a run uses, and the resources of each actor.

    ``actors`` is their number, or the minimum and maximum of a pool that grows; None means one
    for each ``gpus`` of the cluster, or one. ``gpus`` may be a fraction; None means one if the
    cluster has any. ``address`` is ``auto`` or the ``HOST:PORT`` of a running cluster; None uses
    $RAY_ADDRESS, or else starts Ray on this machine alone.

    >>> RayCluster(actors=(1, 4)).pool()
    (1, 4)
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
                f"actors must be a number, or a minimum and a maximum, got {self.actors}"
            )
        gpus = self.gpus or 0
        if gpus < 0 or self.cpus < 0 or (gpus > 1 and gpus != int(gpus)):
            raise JudgeSenseError(
                "an actor needs a fraction of one GPU or a whole number of GPUs, and at least 0 "
                f"CPUs, got {self.gpus} GPUs and {self.cpus} CPUs"
            )

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Connect to the cluster. Raises JudgeSenseError within seconds if it does not answer."""
        address = self.address or os.environ.get("RAY_ADDRESS")
        _require_reachable(address)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if address in (None, "local"):
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
        """The resources of one actor, in Ray's names."""
        import ray

        gpus = self.gpus
        if gpus is None:
            gpus = 1.0 if ray.cluster_resources().get("GPU") else 0.0
        return {"num_cpus": self.cpus, "num_gpus": gpus}

    def require_room(self, note: Callable[[str], None]) -> None:
        """Note it if no machine of the cluster has room for an actor yet: one may join later.

        Raises JudgeSenseError if none can, because Ray runs on this machine alone.
        """
        import ray

        gpus, cpus = self.resources()["num_gpus"], self.cpus
        offered = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        if any(has.get("GPU", 0) >= gpus and has.get("CPU", 0) >= cpus for has in offered):
            return
        takes = f"an actor needs {gpus:g} GPUs and {cpus:g} CPUs"
        if (self.address or os.environ.get("RAY_ADDRESS")) is None:
            raise JudgeSenseError(
                f"{takes}, but this machine has {offered[0].get('GPU', 0):g} and "
                f"{offered[0].get('CPU', 0):g}; set ray_gpus and ray_cpus"
            )
        note(f"{takes}, but no machine of the Ray cluster has them now; waiting for one to join")

    def pool(self) -> tuple[int, int]:
        """The minimum and the maximum number of actors."""
        if isinstance(self.actors, tuple):
            return self.actors
        if self.actors is not None:
            return self.actors, self.actors
        import ray

        gpus = self.resources()["num_gpus"]
        fit = int(ray.cluster_resources().get("GPU", 0) // gpus) if gpus else 1
        return max(fit, 1), max(fit, 1)


def cluster_of(options: Mapping[str, Any]) -> tuple[RayCluster | None, dict[str, Any]]:
    """The cluster that a judge's options describe, if any, and the remaining options.

    ``engine="ray"`` asks for one; ``actor_engine`` is then the engine of the actors. Raises
    JudgeSenseError for options of Ray without ``engine="ray"``.

    >>> cluster_of({"engine": "ray", "ray_actors": 2, "dtype": "float32"})[1]
    {'dtype': 'float32'}
    """
    left = dict(options)
    asked = {
        name: left.pop(name)
        for name in list(left)
        if name.startswith("ray_") or name == "actor_engine"
    }
    if left.get("engine") != "ray":
        if asked:
            raise JudgeSenseError(f"{min(asked)} is for --engine ray")
        return None, left
    check(RayOptions, asked, "", "option of the engine ray")
    del left["engine"]
    if engine := asked.pop("actor_engine", None):
        left["engine"] = engine
    if isinstance(actors := asked.get("ray_actors"), list):
        asked["ray_actors"] = tuple(actors)
    return RayCluster(**{name.removeprefix("ray_"): value for name, value in asked.items()}), left


def _require_reachable(address: str | None) -> None:
    """Raise JudgeSenseError if HOST:PORT does not answer; Ray itself would try for a minute."""
    if address is None or address in ("auto", "local"):
        return
    if address.startswith("ray://"):
        raise JudgeSenseError(
            f"{address} is the address of a Ray client, which does not support Ray Data; run with "
            "ray_address=auto on a machine of the cluster (ray job submit runs a command there)"
        )
    if not (parts := re.fullmatch(r"\[?([^\]]+?)\]?:(\d+)", address)):
        raise JudgeSenseError(f"ray_address must be auto or HOST:PORT, got {address!r}")
    try:
        socket.create_connection((parts[1], int(parts[2])), _REACH_WITHIN_S).close()
    except OSError as error:
        raise JudgeSenseError(
            f"no Ray cluster answers at {address} ({error}); start one with: ray start --head"
        ) from error
