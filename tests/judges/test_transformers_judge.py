"""A judge on transformers, against the model's own unbatched and uncached forward."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from mixed_requests import mixed_requests

from judgesense.errors import JudgeSenseError
from local_judges.local.option_scoring import shared_prefix
from local_judges.local.transformers_judge import TransformersJudge
from local_judges.options import SYSTEM_PROMPT
from local_judges.protocol import Answer, Judge, Request
from local_judges.runner import ask_all

pytestmark = pytest.mark.slow
BOTH = ("generate", "options")


@pytest.fixture(scope="module")
def judge() -> Iterator[TransformersJudge]:
    judge = TransformersJudge("smollm2-135m", dtype="float32", device="cpu")
    yield judge
    judge.close()


@pytest.fixture(scope="module")
def stock(judge: TransformersJudge) -> Any:
    """The same weights as transformers loads them, with none of our layers."""
    import torch
    import transformers

    return transformers.AutoModelForCausalLM.from_pretrained(judge.folder, dtype=torch.float32)


def ask(judge: TransformersJudge, requests: Sequence[Request], *scorings: str) -> list[Answer]:
    return ask_all(judge, requests, scorings)


def reference(judge: TransformersJudge, stock: Any, request: Request) -> list[float]:
    """Option log-probabilities by the model's own forward, one whole sequence at a time."""
    import torch

    tokenizer = judge.tokenizer
    messages = [
        {"role": "system", "content": SYSTEM_PROMPT},
        {"role": "user", "content": request.text},
    ]
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    prompt = tokenizer(text, add_special_tokens=False).input_ids
    options = [
        tokenizer(text + option, add_special_tokens=False).input_ids[len(prompt) :]
        for option in request.options
    ]
    if "10" in request.options:  # an option begins another: all are scored up to their end
        options = [[*option, tokenizer.eos_token_id] for option in options]
    known: dict[tuple[int, ...], Any] = {}
    scores = []
    for option in sorted(options, key=len, reverse=True):
        read = tuple(option[:-1])
        # A longer option's forward has read this one too.
        of = next((other for other in known if other[: len(read)] == read), read)
        if of not in known:
            with torch.inference_mode():
                ids = torch.tensor([[*prompt, *read]])
                logits = stock(ids, use_cache=False, logits_to_keep=len(read) + 1).logits[0]
            known[of] = torch.log_softmax(logits.double(), dim=-1)
        score = sum(float(known[of][at, token]) for at, token in enumerate(option))
        scores.append((options.index(option), score))
    return [score for _, score in sorted(scores)]


def test_option_logprobs_equal_an_unbatched_uncached_forward(
    judge: TransformersJudge, stock: Any
) -> None:
    requests = mixed_requests(200)
    spelt = judge.tokenizer("YES", add_special_tokens=False).input_ids
    assert len(spelt) == 2  # several tokens an option are really met
    judge.counters.clear()
    answers = ask(judge, requests, "options")
    prompts = [judge.chat.render(request.text) for request in requests]
    tokens = sorted(judge.tokenizer(prompts, add_special_tokens=False).input_ids)
    # The nodes of the prompts' trie: the fewest tokens that a model must read.
    floor = sum(map(len, tokens)) - sum(shared_prefix(a, b) for a, b in pairwise(tokens))
    assert floor < judge.counters["prefilled_tokens"] <= 1.15 * floor
    some = list(zip(requests, answers, strict=True))[::9]
    assert {request.options for request, _ in some} == {each.options for each in requests}
    for request, answer in some:
        wanted = reference(judge, stock, request)
        assert answer.option_logprobs == pytest.approx(wanted, abs=1e-3), request
        assert answer.option_mass == pytest.approx(sum(map(math.exp, wanted)), rel=2e-3)
        assert answer.text is None


def test_greedy_text_equals_transformers_own_where_the_margin_allows(
    judge: TransformersJudge, stock: Any
) -> None:
    import torch

    requests = mixed_requests(12)
    answers = ask(judge, requests, *BOTH)
    equal = 0
    for request, answer in zip(requests, answers, strict=True):
        prompt = judge.tokenizer(judge.chat.render(request.text), add_special_tokens=False)
        ids = torch.tensor([prompt.input_ids])
        out = stock.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=20,
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
        )
        written = out.sequences[0, ids.shape[1] :]
        top = torch.stack(out.logits)[:, 0].topk(2).values
        if float((top[:, 0] - top[:, 1]).min()) < 1e-3:
            continue
        equal += 1
        assert answer.text == judge.tokenizer.decode(written, skip_special_tokens=True)
        assert answer.truncated == (int(written[-1]) not in judge.stop_tokens)
        assert answer.output_tokens == len(written) - (not answer.truncated)
        assert answer.input_tokens == ids.shape[1]
    assert equal >= 8


def test_the_two_scorings_together_say_what_each_says_alone(judge: TransformersJudge) -> None:
    requests = mixed_requests(12)
    both = ask(judge, requests, *BOTH)
    texts, options = ask(judge, requests, "generate"), ask(judge, requests, "options")
    assert [a.text for a in both] == [a.text for a in texts]
    for answer, alone in zip(both, options, strict=True):
        assert answer.option_logprobs == pytest.approx(alone.option_logprobs, abs=1e-3)


def test_the_same_plan_gives_the_same_answers_to_the_last_bit(judge: TransformersJudge) -> None:
    requests = mixed_requests(12)
    assert judge.plan(requests, frozenset(BOTH)) == judge.plan(requests, frozenset(BOTH))
    first, second = ask(judge, requests, *BOTH), ask(judge, requests, *BOTH)
    assert [a.option_logprobs for a in first] == [a.option_logprobs for a in second]


def test_a_prompt_longer_than_the_context_is_an_error_and_the_rest_go_on(
    judge: TransformersJudge,
) -> None:
    long = Request("long", "word " * 9000, ("YES", "NO"))
    short = Request("short", "Is 7 prime? YES or NO.", ("YES", "NO"))
    refused, answered = ask(judge, [long, short], *BOTH)
    assert refused.text is None
    assert refused.option_logprobs is None
    assert "8192 tokens" in str(refused.error)
    assert answered.error is None
    assert answered.text


def test_a_gpu_without_memory_left_is_an_error_that_names_the_batch(
    judge: TransformersJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fake: no machine of the tests has a GPU to fill."""
    import torch

    def full(*_: object) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr("local_judges.local.forward.run_packed", full)
    with pytest.raises(JudgeSenseError, match="batch_tokens=3072"):
        ask(judge, mixed_requests(2), *BOTH)


def test_a_judge_says_what_fixes_its_answers(judge: TransformersJudge) -> None:
    assert isinstance(judge, Judge)
    described = json.loads(json.dumps(judge.describe()))
    assert described["dtype"] == "float32"
    assert described["system_prompt"] == SYSTEM_PROMPT
    assert described["decoding"]["max_tokens"] == 20
    assert judge.name.startswith("smollm2-135m@")
    again = TransformersJudge("smollm2-135m", dtype="float32", device="cpu")
    assert again.name == judge.name
    for other in ({"dtype": "bfloat16"}, {"system_prompt": "Be brief."}, {"max_tokens": 5}):
        assert TransformersJudge("smollm2-135m", device="cpu", **other).name != judge.name


def test_drawn_texts_depend_on_the_seed_and_not_on_the_batch() -> None:
    def texts(seed: int, requests: list[Request]) -> dict[str, str | None]:
        judge = TransformersJudge("smollm2-135m", temperature=1.0, seed=seed, max_tokens=8)
        answers = ask(judge, requests, "generate")
        return {r.prompt_id: a.text for r, a in zip(requests, answers, strict=True)}

    requests = mixed_requests(6)
    first = texts(0, requests)
    assert texts(0, requests[3:]) == {r.prompt_id: first[r.prompt_id] for r in requests[3:]}
    assert texts(1, requests) != first
    assert texts(0, [replace(request, repeat=1) for request in requests]) != first


def test_options_that_the_vocabulary_cannot_spell_are_refused_before_work(
    judge: TransformersJudge,
) -> None:
    with pytest.raises(JudgeSenseError, match="cannot spell the ' ' option"):
        judge.plan([Request("p", "text", ("A", " "))], frozenset({"options"}))


def tiny_model(folder: Path, tokenizer: Any, kind: str) -> Path:
    """A model of random weights with SmolLM2's tokenizer."""
    import torch
    import transformers

    torch.manual_seed(0)
    sizes = {"vocab_size": len(tokenizer), "hidden_size": 32, "num_hidden_layers": 2}
    if kind == "gemma2":  # sliding windows, and attention scores bounded by a tanh
        config: Any = transformers.Gemma2Config(
            **sizes,
            intermediate_size=64,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            sliding_window=16,
            attn_logit_softcapping=5.0,
            query_pre_attn_scalar=8,
        )
    elif kind == "bloom":  # positions by a bias inside its own attention
        config = transformers.BloomConfig(**sizes, n_head=4)
    else:  # no attention at all
        config = transformers.MambaConfig(**sizes, state_size=4)
    model = transformers.AutoModelForCausalLM.from_config(config)
    model.save_pretrained(folder)
    tokenizer.chat_template = None
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", ["bloom", "mamba"])
def test_a_model_with_attention_of_its_own_or_none_is_refused(kind: str, tmp_path: Path) -> None:
    tokenizer = TransformersJudge("smollm2-135m").tokenizer
    judge = TransformersJudge(tiny_model(tmp_path, tokenizer, kind), max_tokens=4)
    with pytest.raises(JudgeSenseError, match="use --set engine=vllm"):
        ask(judge, mixed_requests(10)[:4], *BOTH)


def test_another_architecture_is_judged_as_by_its_own_forward(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import torch

    tokenizer = TransformersJudge("smollm2-135m").tokenizer
    judge = TransformersJudge(tiny_model(tmp_path, tokenizer, "gemma2"), max_tokens=4)
    assert "no chat template" in caplog.text
    requests = mixed_requests(10)[:4]
    for request, answer in zip(requests, ask(judge, requests, *BOTH), strict=True):
        text = f"{SYSTEM_PROMPT}\n\n{request.text}\n"
        prompt = judge.tokenizer(text, add_special_tokens=False).input_ids
        for option, score in zip(request.options, answer.option_logprobs or (), strict=True):
            ids = judge.tokenizer(option, add_special_tokens=False).input_ids
            with torch.inference_mode():
                logits = judge.model(torch.tensor([prompt + ids]), use_cache=False).logits[0]
            after = torch.log_softmax(logits[len(prompt) - 1 : -1].double(), dim=-1)
            wanted = float(after.gather(1, torch.tensor(ids)[:, None]).sum())
            assert score == pytest.approx(wanted, abs=1e-3)
