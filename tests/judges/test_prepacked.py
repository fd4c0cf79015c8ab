"""Reordered weights: the same products."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from local_judges.local.model_loading import multiplies_slowly  # noqa: E402
from local_judges.local.prepacked import (  # noqa: E402
    ROWS,
    prepack,
)

needs_onednn = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or not torch.backends.mkldnn.is_available(),
    reason="needs oneDNN on x86-64",
)


@needs_onednn
@pytest.mark.parametrize(("dtype", "allowed"), [("float32", 1e-4), ("bfloat16", 0.0)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_reordered_layer_multiplies_as_before(dtype: str, allowed: float, bias: bool) -> None:
    kind = getattr(torch, dtype)
    if multiplies_slowly(kind, torch.device("cpu")):
        pytest.skip("this CPU emulates 16-bit products")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(70, 130, bias=bias), nn.Linear(130, 9, bias=bias)).to(kind)
    for rows in (1, 3, 40):
        x = torch.randn(2, rows, 70).to(kind)
        with torch.inference_mode():
            before = model(x)
            assert prepack(model) == (2 if rows == 1 else 0)
            assert torch.allclose(model(x), before, atol=allowed, rtol=0)
    assert (model[0].weight.dtype, model[0].weight.shape) == (kind, (130, 70))


GROWTH = """
import torch
from torch import nn
from local_judges.local.prepacked import prepack

def resident():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(1024, 512), nn.Linear(512, 1024)).eval()
prepack(model)
with torch.inference_mode():
    for rows in range(200, 520):
        model(torch.ones(rows, 1024))
        if rows == 300:
            before = resident()
print(resident() - before)
"""


@needs_onednn
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_batches_of_other_sizes_do_not_fill_memory_with_kernels() -> None:
    code = [sys.executable, "-c", GROWTH]
    done = subprocess.run(code, capture_output=True, text=True, check=True, timeout=120)
    assert int(done.stdout) < 40_000, f"{done.stdout} KB more after 220 other sizes"


@needs_onednn
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_mlp_that_takes_a_few_rows_at_a_time_gives_the_same_bits(dtype: torch.dtype) -> None:
    if multiplies_slowly(dtype, torch.device("cpu")):
        pytest.skip("this CPU emulates 16-bit products")
    torch.manual_seed(0)
    mlp = nn.Module()
    for name in ("gate_proj", "up_proj", "down_proj"):
        setattr(mlp, name, nn.Linear(64, 64, bias=False).to(dtype))
    mlp.forward = lambda x: mlp.down_proj(mlp.gate_proj(x).sigmoid() * mlp.up_proj(x))
    x = torch.randn(1, ROWS + 1, 64).to(dtype)
    with torch.inference_mode():
        assert prepack(mlp) == 3
        assert torch.equal(mlp(x), mlp.forward.args[0](x))
