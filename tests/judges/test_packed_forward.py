"""Continuing rows that share a prefix: the same attention as with a cache of their own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from local_judges.local.packed_forward import Continuation, Layout, shared_runs  # noqa: E402

CPU = torch.device("cpu")
HEAD = list(range(90))
PROMPTS = sorted(
    [[*HEAD, 500, n] for n in range(4)]
    + [[*HEAD, 600, *range(700, 700 + 3 * n)] for n in range(1, 5)]
    + [[3000], [3000, 1]]
)


def continued(share: bool, options: dict[str, Any]) -> tuple[list[Any], Continuation]:
    """Three steps of one layer with random queries, keys and values; rows leave after each."""
    draw = torch.Generator().manual_seed(0)
    layout = Layout(PROMPTS, [None] * len(PROMPTS), CPU, keep_cache=True)
    assert layout.cache is not None
    size = (len(layout.tokens), 2, 16)
    layout.cache[0] = (torch.randn(size, generator=draw), torch.randn(size, generator=draw))
    cache, out = Continuation(layout, 3, CPU, share), []
    for gone in ([], [0, 5], [2]):
        if gone:
            rows = [n for n in range(len(cache.lengths)) if n not in gone]
            cache.keep(torch.tensor(rows))
        n = len(cache.lengths)
        q, k, v = (torch.randn(1, heads, n, 16, generator=draw) for heads in (6, 2, 2))
        out.append(cache.attend(SimpleNamespace(layer_idx=0), q, k, v, options))
        cache.advance()
    return out, cache


@pytest.mark.parametrize("options", [{"scaling": 0.3}, {"scaling": 0.3, "softcap": 5.0}])
def test_a_shared_prefix_changes_no_attention(options: dict[str, Any]) -> None:
    alone, separate = continued(False, options)
    together, cache = continued(True, options)
    for one, other in zip(alone, together, strict=True):
        assert torch.allclose(one, other, atol=1e-5)
    assert [length for *_, length in cache.runs] == [90, 0]
    held = sum(x.numel() for x in cache.cache[0]) * 4
    assert held < sum(x.numel() for x in separate.cache[0])


def test_runs_are_cut_where_fewest_keys_are_read() -> None:
    assert shared_runs(PROMPTS) == [(0, 8, 90), (8, 10, 0)]
    assert shared_runs([[1, 2], [1, 3]]) == [(0, 2, 0)]
    assert shared_runs([[7]]) == [(0, 1, 0)]
    two = [[*HEAD, *range(1000, 1100), n] for n in range(7)]
    two += [[*HEAD, *range(2000, 2100), n] for n in range(7)]
    assert shared_runs(two) == [(0, 7, 190), (7, 14, 190)]
    assert shared_runs(two[:8]) == [(0, 7, 190), (7, 8, 0)]
    assert shared_runs([[5] * 100] * 8) == [(0, 8, 99)]
