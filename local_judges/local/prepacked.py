"""Linear layers whose weights are stored in the order in which oneDNN multiplies them.

``torch.nn.functional.linear`` reorders a weight again in every call. On a CPU that costs most where
a judge writes text, with few rows per pass. For float32, it also calls MKL, which does not use
AVX-512 on a processor of another maker. A weight that is reordered once at loading avoids both:
the 16-bit results are the same to the last bit, the float32 ones to about 1e-4.
"""

from __future__ import annotations

import os
import platform
from typing import Any

import torch
from torch import nn

from local_judges.local.devices import multiplies_slowly
from local_judges.local.mapped import MappedFiles, MappedHead, release_looked_up, split_mlps

HEAD_BYTES = 1 << 27
"""Size from which a bfloat16 output layer stays in the model's file."""

KERNELS = 32
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
            stays = layer is head and _large(layer) and mapped.holds(layer.weight)
            try:
                packed = MappedHead(layer) if stays else PrepackedLinear(layer)
            except (AttributeError, NotImplementedError, RuntimeError):
                return done  # this build of torch has no such operator
            setattr(parent, name, packed)
            mapped.forget(layer.weight)
            done += 1
    table = _of(model, "get_input_embeddings")
    if done and isinstance(table, nn.Embedding) and mapped.holds(table.weight):
        release_looked_up(table)
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


def _large(layer: nn.Linear) -> bool:
    """Whether an output layer is worth reading from the file in each pass."""
    weight = layer.weight
    return layer.bias is None and weight.dtype == torch.bfloat16 and weight.nbytes >= HEAD_BYTES


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
