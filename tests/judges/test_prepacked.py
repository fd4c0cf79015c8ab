"""Reordered weights: the same products, and the memory of the originals given back."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from local_judges.local.devices import multiplies_slowly  # noqa: E402
from local_judges.local.prepacked import PrepackedLinear, prepack  # noqa: E402

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


@needs_onednn
def test_only_plain_linear_layers_are_replaced() -> None:
    class Own(nn.Linear):
        pass

    hooked = nn.Linear(4, 4)
    hooked.register_forward_hook(lambda *_: None)
    model = nn.ModuleDict(
        {
            "own": Own(4, 4),
            "hooked": hooked,
            "wide": nn.Linear(4, 4).double(),
            "plain": nn.Linear(4, 4),
        }
    )
    assert prepack(model) == 1
    assert {name for name, m in model.items() if isinstance(m, PrepackedLinear)} == {"plain"}


@needs_onednn
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_mapped_weight_leaves_memory_and_a_tied_one_stays_readable(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    torch.manual_seed(0)
    path = tmp_path / "model.safetensors"
    save_file({"table": torch.randn(1000, 512), "rest": torch.randn(4)}, path)
    held = load_file(path)
    table = nn.Embedding(1000, 512, _weight=held["table"])
    tied = nn.Linear(512, 1000, bias=False)
    tied.weight = table.weight
    wanted = table.weight.clone()

    def resident() -> int:
        lines = Path("/proc/self/smaps").read_text().splitlines()
        at = next(n for n, line in enumerate(lines) if line.endswith(str(path)))
        return next(int(line.split()[1]) for line in lines[at:] if line.startswith("Rss:"))

    assert resident() >= 2000
    model = nn.ModuleDict({"table": table, "head": tied})
    assert prepack(model) == 1
    assert resident() < 200
    assert torch.equal(table.weight, wanted)


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
