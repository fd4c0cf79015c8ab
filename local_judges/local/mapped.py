"""Weights that stay in the model's file, and passes that hold few values at once.

A safetensors file is mapped into memory, and the system reads a page of it when it is first used.
A page counts as this process's memory until it is given back, although the system could drop it at
any time: it is unchanged, and whoever reads it again gets it from the file.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

ROWS = 512
"""Tokens that an MLP takes at once: its three intermediate tensors then fit into a cache, and need
9 MB each in a model of 1.5 billion weights instead of 110."""

_CHUNK_BYTES = 1 << 25


@functools.cache
def _libc() -> Any:
    return ctypes.CDLL(None)


class MappedFiles:
    """The address ranges that map safetensors files now; none where the system does not tell."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []
        if sys.platform == "linux":
            maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
            for line in maps.splitlines():
                if line.endswith(".safetensors"):
                    start, end = line.split(" ", 1)[0].split("-")
                    self._ranges.append((int(start, 16), int(end, 16)))

    def holds(self, weight: torch.Tensor) -> bool:
        """Whether a weight lies in such a range."""
        start, end = weight.data_ptr(), weight.data_ptr() + weight.nbytes
        return any(low <= start and end <= high for low, high in self._ranges)

    def forget(self, weight: torch.Tensor) -> None:
        """Let the system drop the pages of a weight, if it is mapped from a file."""
        if self.holds(weight):
            give_back(weight)


def give_back(mapped: torch.Tensor) -> None:
    """Let the system drop the whole pages of a tensor that is mapped from a file."""
    page = mmap.PAGESIZE
    start = -(-mapped.data_ptr() // page) * page
    end = (mapped.data_ptr() + mapped.nbytes) // page * page
    if start < end:
        _libc().madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED)


def trim() -> None:
    """Return the free memory of the C library's allocator to the system, where it can."""
    if sys.platform == "linux" and hasattr(_libc(), "malloc_trim"):
        _libc().malloc_trim(0)


class MappedHead(nn.Module):
    """An output layer whose weight stays in the file: read, multiplied and given back in parts.

    It runs once per pass, for few rows, so reading it again costs little. For a bfloat16 weight,
    PyTorch's own product of each part gives the bits of the reordered one.
    """

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.weight = layer.weight
        self.step = max(64, _CHUNK_BYTES // (layer.in_features * layer.weight.itemsize) // 64 * 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (..., out_features), from x of shape (..., in_features)."""
        out = x.new_empty(*x.shape[:-1], self.out_features)
        for start in range(0, self.out_features, self.step):
            rows = self.weight[start : start + self.step]
            out[..., start : start + len(rows)] = nn.functional.linear(x, rows)
            give_back(rows)
        return out


def release_looked_up(embedding: nn.Module) -> None:
    """Give back the pages of a mapped embedding after each lookup.

    Else they add up over a run: the system maps 16 pages at once for a row of one.
    """
    embedding.register_forward_hook(lambda layer, _, __: give_back(layer.weight))


def split_mlps(model: nn.Module) -> int:
    """Let the MLPs of a model take ROWS tokens at a time; returns how many do.

    Rows are multiplied independently, so the results stay the same to the last bit.

    >>> split_mlps(nn.Linear(2, 2))
    0
    """
    found = [
        module
        for module in model.modules()
        if {"gate_proj", "up_proj", "down_proj"} <= {name for name, _ in module.named_children()}
    ]
    for module in found:
        module.forward = functools.partial(_by_rows, module.forward)
    return len(found)


def _by_rows(forward: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    if x.shape[-2] <= ROWS:
        return forward(x)
    # Parts of equal size: a single row would be multiplied in another way.
    parts = x.tensor_split(-(-x.shape[-2] // ROWS), dim=-2)
    return torch.cat([forward(part) for part in parts], dim=-2)
