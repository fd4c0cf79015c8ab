"""One run by several processes, on one machine or more, started by ``accelerate launch``.

Of n processes each judges every n-th part of the plan; the first one keeps the record and reports.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from judgesense.errors import JudgeSenseError, MissingExtraError
from local_judges.plan import Part

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_PATIENCE = timedelta(days=30)
"""How long a process waits for the slower ones. One that dies is noticed at once."""


@dataclass(frozen=True)
class Ranks:
    """This process among those that share a run; ``rank`` 0 keeps the record and reports."""

    rank: int
    size: int

    def gather(self, value: Any) -> list[Any]:
        """The values of all processes in the order of their ranks; waits for all of them.

        Raises JudgeSenseError if one of them has ended.
        """
        import torch.distributed as dist

        values: list[Any] = [None] * self.size
        try:
            dist.all_gather_object(values, value)
        except RuntimeError as error:
            raise JudgeSenseError(
                f"process {self.rank} of {self.size}: another process ended early (see its error "
                "above); finished parts are kept. Rerun the same command to resume"
            ) from error
        return values

    def require_same(self, judge: str, parts: Sequence[Part]) -> None:
        """Raise JudgeSenseError if the processes loaded different judges or planned differently."""
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part.name.encode())
            for batch in part.batches:
                digest.update(np.asarray(batch, dtype=np.int64).tobytes())
        for what, value in (
            ("run different judges", judge),
            ("plan different batches", digest.hexdigest()),
        ):
            if len(values := set(self.gather(value))) > 1:
                names = f", {' and '.join(sorted(values))}" if value == judge else ""
                raise JudgeSenseError(
                    f"the processes {what}{names}; use machines with the same weights and the same "
                    "kind of device"
                )


def processes() -> int:
    """The number of processes that share a run, from the variable ``WORLD_SIZE``."""
    return _number("WORLD_SIZE", 1)


@contextmanager
def join_ranks() -> Iterator[Ranks | None]:
    """Join the processes that share this run, by the variables ``RANK`` and ``WORLD_SIZE``.

    ``accelerate launch`` and ``torchrun`` set them; None for a single process. Each process sees
    one GPU of its machine: of the visible ones, number ``LOCAL_RANK``. Raises JudgeSenseError for
    inconsistent variables.
    """
    size = processes()
    if size <= 1:
        yield None
        return
    rank = _number("RANK", -1)
    if not 0 <= rank < size or not os.environ.get("MASTER_ADDR"):
        raise JudgeSenseError(
            f"WORLD_SIZE is {size}, but RANK is {os.environ.get('RANK')!r} and MASTER_ADDR "
            f"{os.environ.get('MASTER_ADDR')!r}: start the processes with accelerate launch or "
            "torchrun, or unset WORLD_SIZE"
        )
    take_a_gpu(_number("LOCAL_RANK", rank), _number("LOCAL_WORLD_SIZE", 1))
    try:
        import torch.distributed as dist
    except ImportError as error:
        raise MissingExtraError("torch", "local", "a run by several processes") from error
    dist.init_process_group("gloo", rank=rank, world_size=size, timeout=_PATIENCE)
    try:
        yield Ranks(rank, size)
    finally:
        dist.destroy_process_group()


def take_a_gpu(local_rank: int, local_size: int) -> None:
    """Leave one GPU visible, before CUDA starts; a GPU that is already assigned is kept."""
    variable = os.environ.get(_VISIBLE)
    visible = [str(n) for n in range(local_size)] if variable is None else variable.split(",")
    if local_size == 1 or len(visible) == 1:
        return
    if local_rank >= len(visible):
        raise JudgeSenseError(
            f"{local_size} processes on this machine, but {_VISIBLE} names {len(visible)} GPUs; "
            "start one process per GPU"
        )
    os.environ[_VISIBLE] = visible[local_rank]


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    if text and not text.isdigit():
        raise JudgeSenseError(f"the environment variable {variable} is not a number: {text!r}")
    return int(text or default)
