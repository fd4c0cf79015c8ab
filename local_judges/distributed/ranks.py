"""One run by several processes of one machine or more, as ``accelerate launch`` starts them.

Each process takes every so-many-th part of the plan; the first one keeps the record and reports.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from judgesense.errors import JudgeSenseError, MissingExtraError

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_PATIENCE = timedelta(days=30)
"""A process that dies is noticed at once; this is for those that have more to judge."""


@dataclass(frozen=True)
class Ranks:
    """This process among all that share a run; ``rank`` 0 keeps the record."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this process keeps the record and reports."""
        return self.rank == 0

    def gather(self, value: Any) -> list[Any]:
        """Every process's value, in the order of their ranks; waits for all.

        Raises JudgeSenseError if one of them has ended.
        """
        if self.size == 1:
            return [value]
        import torch.distributed as dist

        values: list[Any] = [None] * self.size
        try:
            dist.all_gather_object(values, value)
        except RuntimeError as error:
            raise JudgeSenseError(
                f"process {self.rank} of {self.size}: another one has ended early and said why; "
                "what was judged is kept: give the same command again"
            ) from error
        return values


def processes() -> int:
    """How many processes share a run, from the variable ``WORLD_SIZE``."""
    return _number("WORLD_SIZE", 1)


def keeps_the_record() -> bool:
    """Whether this process is the only one, or the first of those that share a run."""
    return processes() <= 1 or _number("RANK", 0) == 0


@contextmanager
def joined() -> Iterator[Ranks]:
    """The processes that share this run, from the variables ``RANK`` and ``WORLD_SIZE``.

    ``accelerate launch`` and ``torchrun`` set these. Each process sees one GPU of its machine,
    the ``LOCAL_RANK``-th of those visible. Raises JudgeSenseError for variables that do not go
    together.
    """
    size = processes()
    if size <= 1:
        yield Ranks()
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
    """Leave one GPU visible, before anything has looked; one that is assigned already stays."""
    named = os.environ.get(_VISIBLE)
    visible = [str(n) for n in range(local_size)] if named is None else named.split(",")
    if local_size == 1 or len(visible) == 1:
        return
    if local_rank >= len(visible):
        raise JudgeSenseError(
            f"{local_size} processes on this machine, but {_VISIBLE} names {len(visible)} GPUs: "
            "start one process a GPU"
        )
    os.environ[_VISIBLE] = visible[local_rank]


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    if not text:
        return default
    if not text.isdigit():
        raise JudgeSenseError(f"the environment variable {variable} is no number: {text!r}")
    return int(text)
