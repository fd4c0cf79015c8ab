"""Reordered weights: the same products, and the memory of the originals given back."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from local_judges.local import prepacked  # noqa: E402
from local_judges.local.model_loading import multiplies_slowly  # noqa: E402
from local_judges.local.packed_forward import Continuation, Layout  # noqa: E402
from local_judges.local.prepacked import (  # noqa: E402
    ROWS,
    MappedHead,
    PrepackedLinear,
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
    assert resident(path) >= 2000
    model = nn.ModuleDict({"table": table, "head": tied})
    assert prepack(model) == 1
    assert resident(path) < 200
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


def resident(path: Path) -> int:
    """The kilobytes of a mapped file that count as this process's memory."""
    lines = Path("/proc/self/smaps").read_text().splitlines()
    at = next(n for n, line in enumerate(lines) if line.endswith(str(path)))
    return next(int(line.split()[1]) for line in lines[at:] if line.startswith("Rss:"))


class Model(nn.Module):
    """An embedding, one MLP and an output layer, named as transformers' models name them."""

    def __init__(self, table: torch.Tensor, head: torch.Tensor) -> None:
        super().__init__()
        self.table = nn.Embedding(*table.shape, _weight=table)
        self.mlp = nn.Module()
        size = table.shape[1]
        for name in ("gate_proj", "up_proj", "down_proj"):
            setattr(self.mlp, name, nn.Linear(size, size, bias=False).to(table.dtype))
        mlp = self.mlp
        mlp.forward = lambda x: mlp.down_proj(mlp.gate_proj(x).sigmoid() * mlp.up_proj(x))
        self.head = nn.Linear(size, len(head), bias=False)
        self.head.weight = nn.Parameter(head, requires_grad=False)

    def get_input_embeddings(self) -> nn.Module:
        return self.table

    def get_output_embeddings(self) -> nn.Module:
        return self.head

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.mlp(self.table(ids))[:, -70:])


@needs_onednn
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_large_bfloat16_head_stays_in_the_file_and_gives_the_same_bits(
    dtype: torch.dtype, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors.torch import load_file, save_file

    if multiplies_slowly(dtype, torch.device("cpu")):
        pytest.skip("this CPU emulates 16-bit products")
    torch.manual_seed(0)
    path = tmp_path / "model.safetensors"
    values = {name: torch.randn(9000, 128).to(dtype) for name in ("table", "head")}
    save_file(values, path)
    ids = torch.randint(9000, (1, ROWS + 1))
    model, usual = Model(**load_file(path)), Model(**values)
    usual.mlp.load_state_dict(model.mlp.state_dict())
    monkeypatch.setattr(prepacked, "HEAD_BYTES", 1 << 20)
    monkeypatch.setattr("local_judges.local.prepacked._CHUNK_BYTES", 1 << 20)
    with torch.inference_mode():
        assert prepack(model) == prepack(usual) == 4
        wanted = usual(ids)
        assert torch.equal(model(ids), wanted)
        # Whole MLPs: the model's own forward.
        usual.mlp.forward = usual.mlp.forward.args[0]
        assert torch.equal(usual(ids), wanted)
    assert type(model.head) is (MappedHead if dtype == torch.bfloat16 else PrepackedLinear)
    assert isinstance(usual.head, PrepackedLinear)
    assert resident(path) < 100


def test_rows_that_end_leave_the_others_with_their_keys() -> None:
    prompts = [[5, 6], [5, 7, 8], [9], [9, 3]]
    layout = Layout(prompts, [None] * 4, torch.device("cpu"), keep_cache=True)
    assert layout.cache is not None
    held = torch.arange(float(len(layout.tokens))).view(-1, 1, 1).expand(-1, 2, 3)
    layout.cache[0] = held, -held
    going = Continuation(layout, 2, torch.device("cpu"))
    before = going.cache[0][0].clone()
    assert before.shape == (4, 2, 5, 3)
    assert going.keep([1, 3]) == [3, 1]
    assert going.lengths.tolist() == [2, 3]
    keys, values = going.cache[0]
    assert torch.equal(keys[:2], before[[3, 1]])
    assert torch.equal(values[:2], -before[[3, 1]])
    assert going.keep([0, 1]) == [0, 1]
