"""Every variant asked of a real model, and what it reads under a system message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import judgesense
from judgesense.pipeline.data import data_reference
from judgesense.pipeline.settings import Settings
from judgesense_dataset.variants import load_variants
from local_judges.local.transformers_judge import TransformersJudge
from local_judges.options import SYSTEM_PROMPT
from local_judges.plan import Requests

pytestmark = pytest.mark.slow
TASKS = ["factuality", "relevance"]


@pytest.fixture(scope="module")
def judge() -> Iterator[TransformersJudge]:
    judge = TransformersJudge("smollm2-135m", dtype="float32", device="cpu")
    yield judge
    judge.close()


def test_every_variant_is_asked_of_a_real_model(judge: TransformersJudge, tmp_path: Path) -> None:
    report = judgesense.run(
        judge,
        tasks=TASKS,
        limit=2,
        scoring="options",
        variants=["all"],
        note=str,
        out=tmp_path / "run",
    )
    rows = {(row["task"], row["variant"]): row for row in report.to_dict()["variants"]}
    known = load_variants()
    for task in TASKS:
        asked = {name for of, name in rows if of == task} - {None, "rewording"}
        left_out = {name for name, own in known.items() if own.effort}
        other = {name for name in known if name.startswith("labels-")}
        left_out |= other if task == "factuality" else {"stricter", "laxer"}
        # A single sentence cannot be shortened.
        assert asked | {"shorter"} == set(known) - left_out
    assert {row["unreadable"] for row in rows.values()} == {0}
    orders = {"factuality": 1, "relevance": 2}
    for (task, name), row in rows.items():
        if name not in (None, "rewording", "longer", "shorter"):
            assert row["n_prompts"] == 2 * orders[task], name


def test_the_system_message_holds_the_judges_prompt_and_the_instruction(
    judge: TransformersJudge,
) -> None:
    settings = Settings.of(tasks=["relevance"], limit=1)
    data = data_reference(None, None, None, ["system-message"])
    asked = [r for r in Requests(data.selected(settings).prompts) if r.system]
    assert len(asked) == 2
    for request, tokens in zip(asked, judge.encode(asked), strict=True):
        messages = [
            {"role": "system", "content": f"{SYSTEM_PROMPT}\n\n{request.system}"},
            {"role": "user", "content": request.text},
        ]
        text = judge.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        assert tokens == judge.tokenizer(text, add_special_tokens=False).input_ids


def test_json_is_scored_at_the_place_of_its_value(judge: TransformersJudge) -> None:
    settings = Settings.of(tasks=["factuality", "coherence"], limit=1)
    data = data_reference(None, None, None, ["json"])
    asked = [r for r in Requests(data.selected(settings).prompts) if r.reply_form]
    asked += [replace(asked[0], options=("1", "2", "10"))]
    ((_, answers),) = judge.judge([(0, asked)], frozenset({"generate", "options"}))
    for request, answer in zip(asked, answers, strict=True):
        start, found = judge.chat.render(request.text) + '{"verdict": "', []
        ends = '"}' if "10" in request.options else ""
        before = judge.tokenizer(start, add_special_tokens=False).input_ids
        for option in request.options:
            whole = judge.tokenizer(f"{start}{option}{ends}", add_special_tokens=False).input_ids
            assert whole[: len(before)] == before
            with torch.inference_mode():
                logits = judge.model(torch.tensor([whole])).logits[0].float()
            logprobs = torch.log_softmax(logits, dim=-1)
            places = range(len(before), len(whole))
            found.append(sum(logprobs[at - 1, whole[at]].item() for at in places))
        assert answer.option_logprobs == pytest.approx(found, abs=1e-4)
