"""Answer a batch with a transformers model, and check that the model's own forward pass agrees.

``run_packed`` reads the token trie of the batch in one forward pass and continues all prompts
together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from local_judges.local.local_model import Decoding
from local_judges.local.option_scoring import ROOT, OptionTrie, build_trie, option_logprobs, path_to
from local_judges.local.packed_forward import Continuation, Layout, prefill, step, trie_attention

_NORM_ROWS = 32
"""Rows of logits that are held in float32 at once."""


@dataclass(slots=True)
class PromptState:
    """One prompt of a batch, with the results as they arrive.

    ``place`` is its index among the requests of the batch. ``stopped`` is true if the generated
    text ended with a stop token, which ``generated`` does not contain.
    """

    place: int
    prompt_id: str
    repeat: int
    tokens: list[int]
    trie: OptionTrie | None
    option_logprobs: tuple[float, ...] | None = None
    generated: list[int] = field(default_factory=list)
    stopped: bool = False


def run_packed(
    model: Any, rows: Sequence[PromptState], decoding: Decoding | None, stop_tokens: Sequence[int]
) -> Counter[str]:
    """Answer rows, sorted by their tokens, in one pass; returns the tokens read and written."""
    device = model.get_input_embeddings().weight.device
    layout = Layout(
        [row.tokens for row in rows], [row.trie for row in rows], device, decoding is not None
    )
    places: list[int] = []
    firsts: list[int] = []
    for n in range(len(rows)):
        firsts.append(len(places))
        places += [layout.last[n], *layout.nodes(n)]
    with trie_attention(model), torch.inference_mode():
        logits = prefill(model, layout, places)
        _score_options(rows, firsts, logits, stop_tokens)
        counts = Counter(forwards=1, prefilled_tokens=len(layout.tokens))
        if decoding is not None:
            logits = logits[torch.tensor(firsts, device=logits.device)]
            counts += _continue(model, layout, rows, logits, decoding, stop_tokens)
    return counts


def _score_options(
    rows: Sequence[PromptState],
    firsts: Sequence[int],
    logits: torch.Tensor,
    stop_tokens: Sequence[int],
) -> None:
    """Set each row's option log-probabilities from the logits at its root and inner nodes."""
    steps = [
        (first + 1 + node, token)
        for row, first in zip(rows, firsts, strict=True)
        if row.trie is not None
        for node, token in row.trie.steps
    ]
    if not steps:
        return
    # One pass over the vocabulary for the normaliser; then only the requested tokens.
    norm = torch.cat([part.float().logsumexp(dim=-1) for part in logits.split(_NORM_ROWS)])
    places, tokens = torch.tensor(steps, device=logits.device).T
    values = (logits[places, tokens].float() - norm[places]).tolist()
    stops = [float("-inf")] * len(logits)
    if stop_tokens:
        stop_logits = logits[:, torch.tensor(stop_tokens, device=logits.device)].float()
        stops = (torch.logsumexp(stop_logits, dim=-1) - norm).tolist()
    start = 0
    for row, first in zip(rows, firsts, strict=True):
        if row.trie is not None:
            count = len(row.trie.steps)
            row.option_logprobs = option_logprobs(
                row.trie, values[start : start + count], stops[first:]
            )
            start += count


def _continue(
    model: Any,
    layout: Layout,
    rows: Sequence[PromptState],
    logits: torch.Tensor,
    decoding: Decoding,
    stop_tokens: Sequence[int],
) -> Counter[str]:
    """Continue each row until a stop token or the cap; finished rows leave the batch."""
    cache = Continuation(layout, decoding.max_tokens, logits.device)
    seeds = [decoding.seed_of(row.prompt_id, row.repeat) for row in rows]
    generators = [np.random.default_rng(seed) for seed in seeds]
    active, counts = list(range(len(rows))), Counter[str]()
    while True:
        next_tokens = _choose(logits, decoding.temperature, [generators[n] for n in active])
        unfinished = []
        for n, token in enumerate(next_tokens):
            row = rows[active[n]]
            if token in stop_tokens:
                row.stopped = True
                continue
            row.generated.append(token)
            if len(row.generated) < decoding.max_tokens:
                unfinished.append(n)
        if not unfinished:
            return counts
        if len(unfinished) < len(active):
            unfinished = cache.keep(unfinished)
            active = [active[n] for n in unfinished]
        logits = step(model, cache, [next_tokens[n] for n in unfinished])
        counts += Counter(forwards=1, decoded_tokens=len(unfinished))


def _choose(
    logits: torch.Tensor, temperature: float, generators: Sequence[np.random.Generator]
) -> list[int]:
    """The next token of each row: the most probable one, or a sample by inverse transform."""
    if temperature == 0:
        if logits.device.type == "cpu":  # NumPy compares several values at once
            return [int(token) for token in logits.float().numpy().argmax(axis=-1)]
        return [int(token) for token in logits.argmax(dim=-1).tolist()]
    sums = torch.softmax(logits.float() / temperature, dim=-1).double().cumsum(dim=-1)
    uniform = torch.tensor([[generator.random()] for generator in generators], device=logits.device)
    sampled = torch.searchsorted(sums, uniform.double() * sums[:, -1:], right=True)
    return [min(int(token), logits.shape[-1] - 1) for token in sampled[:, 0].tolist()]


def difference(model: Any, probe: Sequence[list[int]]) -> str | None:
    """Why ``run_packed`` does not work for this model; None if it does.

    It scores arbitrary options after a few short prompts and writes two tokens. One plain pass over
    all these sequences gives the same scores, and says whether each token is the most probable one.
    For a model that ignores our attention, or needs more from it, they differ by whole nats.
    """
    a, b, c, d = sorted({token for tokens in probe for token in tokens})[:4]
    trie = build_trie([(a, b), (a, c), (d, a)], ())
    rows = [PromptState(n, "", 0, tokens, trie) for n, tokens in enumerate(sorted(probe))]
    try:
        run_packed(model, rows, Decoding(2), ())
    except torch.cuda.OutOfMemoryError:
        raise  # says nothing about the model's attention
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    endings = [path_to(trie, node) for node in (ROOT, *range(len(trie.nodes)))]
    sequences = [[*row.tokens, *ending] for row in rows for ending in (*endings, row.generated[:1])]
    # Padding on the right changes nothing: no token sees what follows it.
    width = max(map(len, sequences))
    ids = torch.tensor([[*tokens, *[tokens[-1]] * (width - len(tokens))] for tokens in sequences])
    device = model.get_input_embeddings().weight.device
    with torch.inference_mode():
        logits = model(input_ids=ids.to(device), use_cache=False).logits
    logits = logits[torch.arange(len(ids)), torch.tensor([len(tokens) - 1 for tokens in sequences])]
    size = len(endings) + 1
    plain = [PromptState(row.place, "", 0, row.tokens, trie) for row in rows]
    _score_options(plain, range(0, len(sequences), size), logits, ())
    gaps = [
        abs(one - other)
        for row, expected in zip(rows, plain, strict=True)
        for one, other in zip(
            row.option_logprobs or (), expected.option_logprobs or (), strict=True
        )
    ]
    for n, row in enumerate(rows):
        for place, token in zip((n * size, n * size + len(endings)), row.generated, strict=True):
            gaps.append(float(logits[place].max() - logits[place, token]))
    gap = float(np.max(gaps))
    allowed = 1e-3 if model.dtype == torch.float32 else 0.5
    return None if gap <= allowed else f"the log-probabilities differ by {gap:.3g} nats"
