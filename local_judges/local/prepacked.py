"""Linear layers on a CPU: weights that are reordered once, or that stay in the model's file.

``torch.nn.functional.linear`` reorders a weight for oneDNN in every call. That costs most where a
judge writes text, with few rows per pass. For float32, it also calls MKL, which does not use
AVX-512 on a processor of another maker. A weight that is reordered once at loading avoids both: the
16-bit results are the same to the last bit, the float32 ones to about 1e-4.

A safetensors file is mapped into memory, and the system reads a page of it when it is first used.
A page counts as this process's memory until it is given back, although the system could drop it at
any time: it is unchanged, and whoever reads it again gets it from the file.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from local_judges.local.model_loading import multiplies_slowly

HEAD_BYTES = 1 << 27
"""Size from which a bfloat16 output layer stays in the model's file."""

KERNELS = 32
"""How many of oneDNN's compiled kernels are kept. A model has about six shapes of weights, and a
pass one or two numbers of rows. Compiling one again takes 0.3 ms."""

ROWS = 512
"""Tokens that an MLP takes at once: its three intermediate tensors then fit into a cache, and need
9 MB each in a model of 1.5 billion weights instead of 110."""

_CHUNK_BYTES = 1 << 25


class PrepackedLinear(nn.Module):  # type: ignore[misc]
    """A linear layer with a reordered weight, for inference on a CPU.

    ``in_features`` and ``out_features`` are those of the layer that it replaces; ``weight`` is
    opaque: it has a dtype and a shape, but cannot be read.
    """

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self.bias = layer.bias
        # Not a parameter, so that nothing tries to convert, move or save it.
        self.weight = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (..., out_features), from x of shape (..., in_features)."""
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")


def prepack(model: nn.Module) -> int:
    """Replace the linear layers of a model on a CPU; returns how many.

    Layers with hooks or on another device stay as they are, as do all on a processor that is not
    x86-64, without oneDNN, or that emulates the dtype's products. The memory of a replaced weight
    is freed at once, also if it is mapped from a file. A large bfloat16 output layer stays in the
    file, as do the input embeddings, and MLPs take a few rows at a time.

    >>> layer = nn.Sequential(nn.Linear(64, 32))
    >>> x = torch.ones(4, 64)
    >>> with torch.inference_mode():
    ...     before, count, after = layer(x), prepack(layer), layer(x)
    >>> bool(torch.allclose(before, after, atol=1e-4))
    True
    """
    if platform.machine() not in ("x86_64", "AMD64") or not torch.backends.mkldnn.is_available():
        return 0
    _keep_few_kernels()
    mapped, head, done = MappedFiles(), _of(model, "get_output_embeddings"), 0
    for parent in list(model.modules()):
        for name, layer in parent.named_children():
            if not _replaceable(layer):
                continue
            large = layer.bias is None and layer.weight.dtype == torch.bfloat16
            large &= layer.weight.nbytes >= HEAD_BYTES  # worth reading from the file in each pass
            stays = layer is head and large and mapped.holds(layer.weight)
            try:
                packed = MappedHead(layer) if stays else PrepackedLinear(layer)
            except (AttributeError, NotImplementedError, RuntimeError):
                return done  # this build of torch has no such operator
            setattr(parent, name, packed)
            if mapped.holds(layer.weight):
                give_back(layer.weight)
            done += 1
    table = _of(model, "get_input_embeddings")
    if done and isinstance(table, nn.Embedding) and mapped.holds(table.weight):
        # Else they add up over a run: the system maps 16 pages at once for a row of one.
        table.register_forward_hook(lambda layer, _, __: give_back(layer.weight))
    if done:
        split_mlps(model)
    return done


def _keep_few_kernels() -> None:
    """Keep KERNELS kernels in memory, instead of torch's and oneDNN's 1,024 each.

    Each number of rows has kernels of its own, of nearly a megabyte with their buffers, and hardly
    two passes of a judge have the same number of rows. oneDNN reads the variables at its first
    product, so this has no effect after one.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, str(KERNELS))


def _of(model: nn.Module, name: str) -> Any:
    """A layer of a transformers model; None in other models."""
    return getattr(model, name, lambda: None)()


def _replaceable(layer: nn.Module) -> bool:
    """Whether a layer is exactly a linear layer that oneDNN multiplies natively."""
    if type(layer) is not nn.Linear or layer._forward_hooks or layer._forward_pre_hooks:
        return False
    weight = layer.weight
    return (
        weight.device.type == "cpu"
        and weight.dtype in (torch.float32, torch.bfloat16)
        and not multiplies_slowly(weight.dtype, weight.device)
    )


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


class MappedHead(nn.Module):  # type: ignore[misc]
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


def split_mlps(model: nn.Module) -> int:
    """Let the MLPs of a model take ROWS tokens at a time; returns how many do.

    Rows are multiplied independently, so the results stay the same to the last bit.

    >>> split_mlps(nn.Linear(2, 2))
    0
    """
    mlps = [
        module
        for module in model.modules()
        if {"gate_proj", "up_proj", "down_proj"} <= {name for name, _ in module.named_children()}
    ]
    for module in mlps:
        module.forward = functools.partial(_by_rows, module.forward)
    return len(mlps)


def _by_rows(forward: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    if x.shape[-2] <= ROWS:
        return forward(x)
    # Parts of equal size: a single row would be multiplied in another way.
    parts = x.tensor_split(-(-x.shape[-2] // ROWS), dim=-2)
    return torch.cat([forward(part) for part in parts], dim=-2)
