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
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from local_judges.local.model_loading import multiplies_slowly
from local_judges.local.option_scoring import ROOT, OptionTrie, shared_prefix

ATTENTION = "judgesense_trie"

_active: Layout | Continuation | None = None  # read by the attention of the current pass


class PrefixGroup:
    """Rows of a layout with similar numbers of new tokens: one attention call per layer."""

    def __init__(self, layout: Layout, rows: list[int], device: torch.device) -> None:
        n_new = [layout.ends[row] - layout.starts[row] for row in rows]
        paths = [layout.paths[row] for row in rows]
        q_length, k_length = max(n_new), max(map(len, paths))
        self.shape = (len(rows), q_length)
        queries = np.zeros((len(rows), q_length), np.int64)
        keys = np.zeros((len(rows), k_length), np.int64)
        is_token = np.zeros((len(rows), q_length), bool)
        is_visible = np.zeros((len(rows), q_length, k_length), bool)
        is_visible[:, :, 0] = True  # padding must see a key, or softmax divides by zero
        for n, (row, count) in enumerate(zip(rows, n_new, strict=True)):
            queries[n, :count] = np.arange(layout.starts[row], layout.ends[row])
            keys[n, : len(paths[n])] = paths[n]
            is_token[n, :count] = True
            is_visible[n, :count, : len(paths[n])] = layout.visible(row)
        self._positions = layout.positions[queries][:, :, None], layout.positions[keys][:, None, :]
        self._seen, self._masks = is_visible, {}  # type: tuple[np.ndarray, dict[Any, torch.Tensor]]
        self.queries = torch.from_numpy(queries).to(device)
        self.keys = torch.from_numpy(keys).to(device)
        self.real = torch.from_numpy(np.flatnonzero(is_token)).to(device)
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
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.last: list[int] = []
        self.paths: list[np.ndarray] = []
        positions: list[int] = []
        previous: Sequence[int] = ()
        for prompt, trie in zip(prompts, tries, strict=True):
            shared = shared_prefix(previous, prompt)
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
            previous = prompt
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
            attended = _attention(
                q[index].transpose(1, 2),
                k[keys].transpose(1, 2),
                v[keys].transpose(1, 2),
                mask,
                options,
            )
            flat = attended.transpose(1, 2).reshape(-1, *out.shape[1:])
            out[group.targets.to(q.device)] = flat[group.real.to(q.device)]
        return out[None]


class Continuation:
    """The continuation of a layout's rows, one token per row and pass.

    The keys and values of a layer are one padded block of shape (rows, heads, length, size), filled
    from the layout's cache; each step appends to each row in place. Rows that end stay in it.
    """

    def __init__(self, layout: Layout, steps: int, device: torch.device) -> None:
        assert layout.cache is not None
        self.attended = False
        self.lengths = torch.tensor([len(prompt) for prompt in layout.prompts], device=device)
        width = int(self.lengths.max()) + steps
        paths = np.zeros((len(layout.prompts), width), np.int64)
        for row, (path, prompt) in enumerate(zip(layout.paths, layout.prompts, strict=True)):
            paths[row, : len(prompt)] = path[: len(prompt)]
        index = torch.from_numpy(paths)
        self.cache: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._step: dict[Any, tuple[Any, Any, Any]] = {}
        for layer in list(layout.cache):
            # Popped, so that the keys of a layer are never held twice.
            k, v = layout.cache.pop(layer)
            places = index.to(k.device)
            # Gathered by head, so that the positions of a row lie together without another copy.
            self.cache[layer] = (
                k.transpose(0, 1)[:, places].transpose(0, 1),
                v.transpose(0, 1)[:, places].transpose(0, 1),
            )

    def keep(self, rows: Sequence[int]) -> list[int]:
        """Continue only these rows; returns them in their new order.

        The last rows move into the places of those that left, so that few keys are copied.
        """
        count, kept = len(rows), set(rows)
        free = [row for row in range(count) if row not in kept]
        moved = [row for row in rows if row >= count]
        order = list(range(count))
        for place, row in zip(free, moved, strict=True):
            order[place] = row
        if free:
            for keys_or_values in (pair for layer in self.cache.values() for pair in layer):
                keys_or_values[free] = keys_or_values[moved]
        self.lengths = self.lengths[order]
        return order

    def next(self) -> None:
        """Count the token that each row has just read."""
        self.lengths += 1
        self._step = {}

    def _places(self, like: torch.Tensor, window: int | None) -> tuple[Any, Any, torch.Tensor]:
        """Row numbers, lengths and the additive mask (rows, 1, 1, keys): made once per step."""
        key = (like.device, like.dtype, window)
        if key not in self._step:
            lengths = self.lengths.to(like.device)
            slots = torch.arange(int(self.lengths.max()) + 1, device=like.device)[None]
            seen = slots <= lengths[:, None]
            if window is not None:
                seen &= lengths[:, None] - slots < window
            mask = torch.zeros(seen.shape, dtype=like.dtype, device=like.device)
            mask = mask.masked_fill_(~seen, -torch.inf)[:, None, None]
            self._step[key] = torch.arange(len(lengths), device=like.device), lengths, mask
        return self._step[key]

    def attend(self, module: Any, q: Any, k: Any, v: Any, options: dict[str, Any]) -> torch.Tensor:
        """Shape (1, rows, heads, size), for one new token per row."""
        keys, values = self.cache[module.layer_idx]
        rows, lengths, mask = self._places(q, options.get("sliding_window"))
        count, longest = len(rows), mask.shape[-1]
        keys[rows, :, lengths] = k[0].transpose(0, 1)
        values[rows, :, lengths] = v[0].transpose(0, 1)
        attended = _attention(
            q[0].transpose(0, 1)[:, :, None],
            keys[:count, :, :longest],
            values[:count, :, :longest],
            mask,
            options,
        )
        return attended.transpose(1, 2).reshape(1, count, q.shape[1], -1)


def _attention(q: Any, k: Any, v: Any, mask: Any, options: dict[str, Any]) -> torch.Tensor:
    """Attention of shape (batch, heads, queries, size); query heads may share a key head.

    The query heads of one key head are concatenated as more queries, so that no keys are copied.
    """
    batch, heads, length, size = q.shape
    share = heads // k.shape[1]
    if share > 1:
        q = q.reshape(batch, k.shape[1], share * length, size)
        mask = mask.repeat(1, 1, share, 1) if length > 1 else mask.expand(-1, -1, share, -1)
    scale, softcap = options.get("scaling"), options.get("softcap")
    if softcap is not None:
        scores = (q @ k.transpose(-1, -2)) * (size**-0.5 if scale is None else scale)
        scores = torch.tanh(scores / softcap) * softcap + mask
        attended = torch.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype) @ v
    else:
        attended = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    return attended.reshape(batch, heads, length, v.shape[-1])


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


class Float32Products(TorchFunctionMode):  # type: ignore[misc]
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
    rows.next()
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
