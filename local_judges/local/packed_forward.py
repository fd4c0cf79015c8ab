"""One forward pass over the token trie of many prompts, which reads every shared prefix once.

Prompts sorted by their tokens form a trie: each prompt adds the tokens after the prefix that it
shares with the previous one. The new tokens of all prompts form a single row of the model's input,
so that matrix products contain no padding, and each token keeps its own position number. Only
attention depends on the order: for each prompt it gathers the keys and values along the prompt's
path. The inner nodes of the options follow their prompt in the same pass, so that scoring needs no
second one.

Transformers calls this attention through its attention interface, during a pass only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from local_judges.local.devices import multiplies_slowly
from local_judges.local.option_scoring import ROOT, OptionTrie, shared_prefix

ATTENTION = "judgesense_trie"

_active: Layout | Continuation | None = None  # read by the attention of the current pass


class PrefixGroup:
    """Rows of a layout with similar numbers of new tokens: one attention call per layer."""

    def __init__(self, layout: Layout, rows: list[int], device: torch.device) -> None:
        new = [layout.ends[row] - layout.starts[row] for row in rows]
        paths = [layout.paths[row] for row in rows]
        q_length, k_length = max(new), max(map(len, paths))
        self.shape = (len(rows), q_length)
        queries = np.zeros((len(rows), q_length), np.int64)
        keys = np.zeros((len(rows), k_length), np.int64)
        real = np.zeros((len(rows), q_length), bool)
        seen = np.zeros((len(rows), q_length, k_length), bool)
        seen[:, :, 0] = True  # padding must see a key, or softmax divides by zero
        for n, (row, count) in enumerate(zip(rows, new, strict=True)):
            queries[n, :count] = np.arange(layout.starts[row], layout.ends[row])
            keys[n, : len(paths[n])] = paths[n]
            real[n, :count] = True
            seen[n, :count, : len(paths[n])] = layout.visible(row)
        self._positions = layout.positions[queries][:, :, None], layout.positions[keys][:, None, :]
        self._seen, self._masks = seen, {}  # type: tuple[np.ndarray, dict[Any, torch.Tensor]]
        self.queries = torch.from_numpy(queries).to(device)
        self.keys = torch.from_numpy(keys).to(device)
        self.real = torch.from_numpy(np.flatnonzero(real)).to(device)
        self.targets = self.queries.flatten()[self.real]

    def mask(self, like: torch.Tensor, window: int | None) -> torch.Tensor:
        """Additive, (rows, 1, queries, keys): 0 where a query sees a key, else -inf."""
        if window is not None and self.keys.shape[1] <= window:
            window = None
        key = (window, like.dtype, like.device)
        if key not in self._masks:
            seen = self._seen
            if window is not None:
                q_position, k_position = self._positions
                seen = seen & (q_position - k_position < window)
                seen[:, :, 0] |= ~seen.any(-1)
            mask = torch.zeros(seen.shape, dtype=like.dtype)
            mask[torch.from_numpy(~seen)] = -torch.inf
            self._masks[key] = mask[:, None].to(like.device)
        return self._masks[key]


class Layout:
    """The position of each token of a batch in the packed row, and the tokens that precede it.

    ``prompts`` are token lists in sorted order; ``tries`` are their options, or None. ``last[row]``
    is the packed position of a prompt's last token, ``nodes(row)`` are those of its option nodes,
    and ``paths[row]`` those of all its tokens.
    """

    def __init__(
        self,
        prompts: Sequence[Sequence[int]],
        tries: Sequence[OptionTrie | None],
        device: torch.device,
        keep_cache: bool = False,
    ) -> None:
        self.prompts, self.tries, self.attended = prompts, tries, False
        self.tokens: list[int] = []
        self.starts, self.ends, self.last = [], [], []  # type: tuple[list[int], ...]
        self.paths: list[np.ndarray] = []
        positions: list[int] = []
        before: Sequence[int] = ()
        for prompt, trie in zip(prompts, tries, strict=True):
            shared = shared_prefix(before, prompt)
            start = len(self.tokens)
            self.tokens.extend(prompt[shared:])
            positions.extend(range(shared, len(prompt)))
            inherited = self.paths[-1][:shared] if shared else np.zeros(0, np.int64)
            self.last.append(len(self.tokens) - 1 if shared < len(prompt) else int(inherited[-1]))
            if trie is not None:
                self.tokens.extend(token for token, _ in trie.nodes)
                positions.extend(len(prompt) + depth - 1 for depth in trie.depths)
            self.starts.append(start)
            self.ends.append(len(self.tokens))
            self.paths.append(np.concatenate([inherited, np.arange(start, len(self.tokens))]))
            before = prompt
        self.positions = np.asarray(positions, np.int64)
        self.cache: dict[int, tuple[torch.Tensor, torch.Tensor]] | None = {} if keep_cache else None
        self.groups = [PrefixGroup(self, rows, device) for rows in self._similar_rows()]

    def nodes(self, row: int) -> list[int]:
        """The packed positions of a row's option nodes."""
        trie = self.tries[row]
        return list(range(self.ends[row] - (len(trie.nodes) if trie else 0), self.ends[row]))

    def visible(self, row: int) -> np.ndarray:
        """Shape (new tokens, path): the tokens of the row's path that each new token sees."""
        path, new = self.paths[row], self.ends[row] - self.starts[row]
        seen = np.tri(new, len(path), len(path) - new, dtype=bool)
        trie, length = self.tries[row], len(self.prompts[row])
        if trie is not None and trie.nodes:
            below = seen[new - len(trie.nodes) :]
            below[:, length:] = False
            for node, (_, parent) in enumerate(trie.nodes):
                if parent != ROOT:
                    below[node, length:] = below[parent, length:]
                below[node, length + node] = True
        return seen

    def _similar_rows(self) -> list[list[int]]:
        """Rows with new tokens, in groups with at most a quarter of padding."""
        new = [end - start for start, end in zip(self.starts, self.ends, strict=True)]
        rows = sorted((row for row in range(len(new)) if new[row]), key=lambda row: new[row])
        groups: list[list[int]] = []
        total = 0
        for row in reversed(rows):
            if groups and (len(groups[-1]) + 1) * new[groups[-1][0]] <= 1.25 * (total + new[row]):
                groups[-1].append(row)
                total += new[row]
            else:
                groups.append([row])
                total = new[row]
        return groups

    def attend(self, module: Any, q: Any, k: Any, v: Any, options: dict[str, Any]) -> torch.Tensor:
        """Shape (1, tokens, heads, size), from q, k and v of shape (1, heads, tokens, size)."""
        q, k, v = (x[0].transpose(0, 1) for x in (q, k, v))
        if self.cache is not None:
            self.cache[module.layer_idx] = (k, v)
        out = q.new_empty(q.shape[0], q.shape[1], v.shape[-1])
        for group in self.groups:
            index, keys = group.queries.to(q.device), group.keys.to(q.device)
            mask = group.mask(q, options.get("sliding_window"))
            found = _attention(
                q[index].transpose(1, 2),
                k[keys].transpose(1, 2),
                v[keys].transpose(1, 2),
                mask,
                options,
            )
            flat = found.transpose(1, 2).reshape(-1, *out.shape[1:])
            out[group.targets.to(q.device)] = flat[group.real.to(q.device)]
        return out[None]


class Continuation:
    """The continuation of a layout's rows, one token per row and pass.

    Neighbouring rows with a common prefix form a run (:func:`shared_runs`), whose keys and values
    are held and read once. What follows in each row is one padded block a layer, of shape (rows,
    heads, length, size); each step appends to each row in place. ``share`` is false where attention
    returns no normaliser or does not see the whole prefix.
    """

    def __init__(self, layout: Layout, steps: int, device: torch.device, share: bool) -> None:
        assert layout.cache is not None
        self.attended = False
        prompts = layout.prompts
        self.runs = shared_runs(prompts) if share else [(0, len(prompts), 0)]
        common = [length for start, end, length in self.runs for _ in range(start, end)]
        self.lengths = torch.tensor([len(prompt) for prompt in prompts], device=device)
        self.common = torch.tensor(common, device=device)
        width = int((self.lengths - self.common).max()) + steps
        paths = np.zeros((len(prompts), width), np.int64)
        for row, (path, prompt) in enumerate(zip(layout.paths, prompts, strict=True)):
            own = path[common[row] : len(prompt)]
            paths[row, : len(own)] = own
        index = torch.from_numpy(paths)
        self._steps: dict[Any, tuple[torch.Tensor, ...]] = {}
        heads = [torch.from_numpy(layout.paths[start][:n]) for start, _, n in self.runs]
        self.cache: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.prefixes: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        for layer in list(layout.cache):
            # Popped, so that the keys of a layer are never held twice.
            k, v = layout.cache.pop(layer)
            places = index.to(k.device)
            self.cache[layer] = (
                k[places].transpose(1, 2).contiguous(),
                v[places].transpose(1, 2).contiguous(),
            )
            self.prefixes[layer] = [
                tuple(x[head.to(x.device)].transpose(0, 1)[None].contiguous() for x in (k, v))
                for head in heads
            ]

    def advance(self) -> None:
        """Go on to the next token, after all layers have appended one."""
        self.lengths += 1
        self._steps.clear()

    def keep(self, rows: torch.Tensor) -> None:
        """Continue only these rows, which are in ascending order."""
        self._steps.clear()
        self.lengths, self.common = self.lengths[rows], self.common[rows]
        bounds = torch.tensor([[start, end] for start, end, _ in self.runs], device=rows.device)
        self.runs = [
            (start, end, length)
            for (start, end), (_, _, length) in zip(
                torch.searchsorted(rows, bounds).tolist(), self.runs, strict=True
            )
        ]
        for layer, (k, v) in self.cache.items():
            self.cache[layer] = (k[rows.to(k.device)], v[rows.to(v.device)])

    def attend(self, module: Any, q: Any, k: Any, v: Any, options: dict[str, Any]) -> torch.Tensor:
        """Shape (1, rows, heads, size), for one new token per row."""
        keys, values = self.cache[module.layer_idx]
        rows, own, mask = self._step(q, options.get("sliding_window"))
        keys[rows, :, own] = k[0].transpose(0, 1)
        values[rows, :, own] = v[0].transpose(0, 1)
        longest = mask.shape[-1]
        keys, values, q = keys[:, :, :longest], values[:, :, :longest], q[0].transpose(0, 1)
        if not any(length for *_, length in self.runs):
            found = _attention(q[:, :, None], keys, values, mask, options)
            return found.transpose(1, 2).reshape(1, len(own), q.shape[1], -1)
        # The heads of one key head become more queries, as in _attention.
        q = q.reshape(len(own), keys.shape[1], -1, q.shape[-1])
        found, norm = _with_norm(q, keys, values, mask.expand(-1, -1, q.shape[2], -1), options)
        for run, prefix in zip(self.runs, self.prefixes[module.layer_idx], strict=True):
            part = slice(*run[:2])
            if not run[2] or part.start == part.stop:
                continue
            together = q[part].transpose(0, 1).flatten(1, 2)[None]
            other, other_norm = _with_norm(together, *prefix, None, options)
            shape = (q.shape[1], part.stop - part.start, q.shape[2])
            other_norm = other_norm[0].reshape(*shape, 1).transpose(0, 1)
            other = other[0].reshape(*shape, -1).transpose(0, 1)
            weight = torch.sigmoid(other_norm - norm[part, ..., None])
            found[part] = torch.lerp(found[part].float(), other.float(), weight).to(found.dtype)
        return found.flatten(1, 2)[None]

    def _step(self, q: torch.Tensor, window: int | None) -> tuple[torch.Tensor, ...]:
        """The rows, where each appends, and which slots it sees: the same in every layer."""
        key = (window, q.dtype, q.device)
        if key not in self._steps:
            own = (self.lengths - self.common).to(q.device)
            slots = torch.arange(int(own.max()) + 1, device=q.device)[None]
            seen = slots <= own[:, None]
            if window is not None:
                seen &= own[:, None] - slots < window
            mask = torch.zeros(seen.shape, dtype=q.dtype, device=q.device)
            mask = mask.masked_fill_(~seen, -torch.inf)[:, None, None]
            self._steps[key] = (torch.arange(len(own), device=q.device), own, mask)
        return self._steps[key]


RUN_COST = 512
"""What one more run costs a step, in keys read for one row: a call of attention and a merge take
about as long as attention to 512 keys."""


def shared_runs(prompts: Sequence[Sequence[int]]) -> list[tuple[int, int, int]]:
    """Cut sorted prompts into runs (start, end, length of the common prefix).

    The cut minimises the keys that a step reads: a run's common prefix once, the rest of each
    prompt, and RUN_COST for a run with a prefix. A prefix is shorter than its prompts, so that each
    row keeps a key of its own.

    >>> head = list(range(100))
    >>> shared_runs([*([*head, n] for n in range(9)), [200, 3], [300]])
    [(0, 9, 100), (9, 11, 0)]
    """
    sizes = [len(prompt) for prompt in prompts]
    joint = [min(shared_prefix(a, b), len(a) - 1, len(b) - 1) for a, b in pairwise(prompts)]
    costs, froms = [0], [(0, 0)]
    for end in range(1, len(prompts) + 1):
        cost, where = costs[end - 1] + sizes[end - 1], (end - 1, 0)
        common, total = sizes[end - 1], sizes[end - 1]
        for start in range(end - 2, -1, -1):
            common, total = min(common, joint[start]), total + sizes[start]
            if common == 0:
                break
            found = costs[start] + total - (end - start - 1) * common + RUN_COST
            if found < cost:
                cost, where = found, (start, common)
        costs.append(cost)
        froms.append(where)
    runs: list[tuple[int, int, int]] = []
    end = len(prompts)
    while end:
        start, common = froms[end]
        if runs and not common and not runs[-1][2]:  # rows without a prefix go together
            runs[-1] = (start, runs[-1][1], 0)
        else:
            runs.append((start, end, common))
        end = start
    return runs[::-1]


def _with_norm(
    q: Any, k: Any, v: Any, mask: Any, options: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention on a CPU, and the logarithm of its normaliser of shape (batch, heads, queries).

    Two parts of one softmax are merged by their normalisers, as in FlashAttention (Dao et al.
    2022, section 3.1).
    """
    scale, softcap = options.get("scaling"), options.get("softcap")
    if softcap is None:
        return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            q, k, v, attn_mask=mask, scale=scale
        )
    scores = (q @ k.transpose(-1, -2)) * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = (torch.tanh(scores / softcap) * softcap).float()
    if mask is not None:
        scores = scores + mask
    norm = torch.logsumexp(scores, dim=-1)
    return torch.exp(scores - norm[..., None]).to(q.dtype) @ v, norm


def _attention(q: Any, k: Any, v: Any, mask: Any, options: dict[str, Any]) -> torch.Tensor:
    """Attention of shape (batch, heads, queries, size); query heads may share a key head.

    The query heads of one key head are concatenated as more queries, so that no keys are copied.
    """
    batch, heads, length, size = q.shape
    share = heads // k.shape[1]
    if share > 1:
        q = q.reshape(batch, k.shape[1], share * length, size)
        mask = mask.repeat(1, 1, share, 1)
    scale, softcap = options.get("scaling"), options.get("softcap")
    if softcap is not None:
        scores = (q @ k.transpose(-1, -2)) * (size**-0.5 if scale is None else scale)
        scores = torch.tanh(scores / softcap) * softcap + mask
        found = torch.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype) @ v
    else:
        found = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    return found.reshape(batch, heads, length, v.shape[-1])


def _attend(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **options: Any
) -> tuple[torch.Tensor, None]:
    assert _active is not None
    _active.attended = True
    return _active.attend(module, query, key, value, options), None


@contextmanager
def trie_attention(model: Any) -> Iterator[None]:
    """Replace the model's attention by ours."""
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION, _attend)
    before = model.config._attn_implementation
    model.set_attn_implementation(ATTENTION)
    try:
        yield
    finally:
        model.set_attn_implementation(before)


class Float32Products(TorchFunctionMode):
    """Compute 16-bit linear layers as float32 matrix products, then round to 16 bits.

    16-bit instructions compute the same (exact products, float32 sums); on a CPU without them this
    is several times faster than emulation. With few rows, converting the weights costs more.
    """

    MIN_ROWS = 16

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Intercept ``linear``; leave everything else as it is."""
        kwargs = kwargs or {}
        if func is functional.linear and len(args) >= 2 and not kwargs:
            x = args[0]
            if x.dtype != torch.float32 and x.numel() >= self.MIN_ROWS * x.shape[-1]:
                wide = [None if arg is None else arg.float() for arg in args]
                return functional.linear(*wide).to(x.dtype)
        return func(*args, **kwargs)


def prefill(model: Any, layout: Layout, places: Sequence[int]) -> torch.Tensor:
    """Read a layout's tokens; returns logits (places, vocabulary) after these packed positions."""
    return _forward(model, layout, layout.tokens, layout.positions, list(places))


def step(model: Any, rows: Continuation, tokens: Sequence[int]) -> torch.Tensor:
    """Append one token to each row; returns logits (rows, vocabulary) after it."""
    positions = rows.lengths.cpu().numpy()
    logits = _forward(model, rows, list(tokens), positions, list(range(len(tokens))))
    rows.advance()
    return logits


def _forward(
    model: Any, active: Layout | Continuation, tokens: list[int], positions: Any, places: list[int]
) -> torch.Tensor:
    global _active
    device = model.get_input_embeddings().weight.device
    wide = multiplies_slowly(model.dtype, device)
    _active = active
    try:
        with torch.inference_mode(), Float32Products() if wide else nullcontext():
            logits = model(
                input_ids=torch.tensor([tokens], device=device),
                position_ids=torch.as_tensor(positions, device=device)[None],
                use_cache=False,
                logits_to_keep=torch.tensor(places, device=device),
            ).logits[0]
        if not active.attended:
            raise RuntimeError("the model does not use transformers' attention interface")
        return logits
    finally:
        _active = None
