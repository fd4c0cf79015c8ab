"""Linear layers on a CPU, with weights that are reordered once.

``torch.nn.functional.linear`` reorders a weight for oneDNN in every call. That costs most where a
judge writes text, with few rows per pass. For float32, it also calls MKL, which does not use
AVX-512 on a processor of another maker. A weight that is reordered once at loading avoids both: the
16-bit results are the same to the last bit, the float32 ones to about 1e-4.
"""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Callable

import torch
from torch import nn

from local_judges.local.model_loading import multiplies_slowly

KERNELS = 32
"""How many of oneDNN's compiled kernels are kept. A model has about six shapes of weights, and a
pass one or two numbers of rows. Compiling one again takes 0.3 ms."""

ROWS = 512
"""Tokens that an MLP takes at once: its three intermediate tensors then fit into a cache, and need
9 MB each in a model of 1.5 billion weights instead of 110."""


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
    x86-64, without oneDNN, or that emulates the dtype's products. MLPs take a few rows at a time.

    >>> layer = nn.Sequential(nn.Linear(64, 32))
    >>> x = torch.ones(4, 64)
    >>> with torch.inference_mode():
    ...     before, count, after = layer(x), prepack(layer), layer(x)
    >>> bool(torch.allclose(before, after, atol=1e-4))
    True
    """
    if platform.machine() not in ("x86_64", "AMD64") or not torch.backends.mkldnn.is_available():
        return 0
    _limit_kernels()
    n_replaced = 0
    for parent in list(model.modules()):
        for name, layer in parent.named_children():
            if _is_replaceable(layer):
                try:
                    setattr(parent, name, PrepackedLinear(layer))
                except (AttributeError, NotImplementedError, RuntimeError):
                    return n_replaced  # this build of torch has no such operator
                n_replaced += 1
    if n_replaced:
        split_mlps(model)
    return n_replaced


def _limit_kernels() -> None:
    """Keep KERNELS kernels in memory, instead of torch's and oneDNN's 1,024 each.

    Each number of rows has kernels of its own, of nearly a megabyte with their buffers, and hardly
    two passes of a judge have the same number of rows. oneDNN reads the variables at its first
    product, so this has no effect after one.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, str(KERNELS))


def _is_replaceable(layer: nn.Module) -> bool:
    """Whether a layer is exactly a linear layer that oneDNN multiplies natively."""
    if type(layer) is not nn.Linear or layer._forward_hooks or layer._forward_pre_hooks:
        return False
    weight = layer.weight
    return (
        weight.device.type == "cpu"
        and weight.dtype in (torch.float32, torch.bfloat16)
        and not multiplies_slowly(weight.dtype, weight.device)
    )


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
