"""Linear layers whose weights are stored in the order in which oneDNN multiplies them.

``torch.nn.functional.linear`` reorders a weight again in every call. On a CPU that costs most where
a judge writes text, with few rows per pass. For float32, it also calls MKL, which does not use
AVX-512 on a processor of another maker. A weight that is reordered once at loading avoids both:
the 16-bit results are the same to the last bit, the float32 ones to about 1e-4.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import sys
from pathlib import Path

import torch
from torch import nn

from local_judges.local.devices import multiplies_slowly

KERNELS = 64
"""How many of oneDNN's compiled kernels are kept. A model has about six shapes of weights, and a
pass one or two numbers of rows. Compiling one again takes 0.3 ms."""


class PrepackedLinear(nn.Module):
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
    is freed at once, also if it is mapped from a file.

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
    mapped, done = _mapped_files(), 0
    for parent in list(model.modules()):
        for name, layer in parent.named_children():
            if not _replaceable(layer):
                continue
            try:
                packed = PrepackedLinear(layer)
            except (AttributeError, NotImplementedError, RuntimeError):
                return done  # this build of torch has no such operator
            setattr(parent, name, packed)
            _forget(layer.weight, mapped)
            done += 1
    return done


def _keep_few_kernels() -> None:
    """Keep KERNELS kernels in memory, instead of torch's and oneDNN's 1,024 each.

    Each number of rows has kernels of its own, of nearly a megabyte with their buffers, and hardly
    two passes of a judge have the same number of rows. oneDNN reads the variables at its first
    product, so this has no effect after one.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, str(KERNELS))


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


def _mapped_files() -> list[tuple[int, int]]:
    """The address ranges that map safetensors files; empty where the system does not tell."""
    if sys.platform != "linux":
        return []
    lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    return [_range(line) for line in lines if line.endswith(".safetensors")]


def _range(line: str) -> tuple[int, int]:
    start, end = line.split(" ", 1)[0].split("-")
    return int(start, 16), int(end, 16)


def _forget(weight: torch.Tensor, mapped: list[tuple[int, int]]) -> None:
    """Let the system drop the pages of a weight that is mapped from a file.

    They would count as this process's memory as long as any other weight of the file is in use.
    The pages are unchanged, so whoever reads them again (a tied embedding) gets them from the file.
    """
    page = mmap.PAGESIZE
    start = -(-weight.data_ptr() // page) * page
    end = (weight.data_ptr() + weight.nbytes) // page * page
    if start < end and any(low <= start and end <= high for low, high in mapped):
        ctypes.CDLL(None).madvise(
            ctypes.c_void_p(start), ctypes.c_size_t(end - start), mmap.MADV_DONTNEED
        )
