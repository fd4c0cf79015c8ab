"""Training data from a run: TRL's formats, targets, and items that are kept for evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import judgesense
from judgesense.errors import JudgeSenseError
from judgesense.pipeline.training import export_training
from judgesense.run_folder import read_run


def judge(messages: list[str]) -> list[str]:
    """YES to everything, but NO to every wording that asks about errors of short messages."""
    return ["NO" if "error" in message and len(message) % 2 else "YES" for message in messages]


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training") / "run"
    judgesense.run(judge, tasks=["factuality"], out=folder, note=str)
    return folder


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_gold_targets_follow_the_label_maps(run_dir: Path, tmp_path: Path) -> None:
    found = export_training(run_dir, tmp_path / "t.jsonl", target="gold")
    prompts = read_run(run_dir).prompts.to_pylist()
    by_text = {row["text"]: row for row in prompts}
    for row in rows(found.out):
        user, said = row["messages"]
        prompt = by_text[user["content"]]
        maps = json.loads(prompt["label_map"])
        assert (user["role"], said["role"]) == ("user", "assistant")
        assert maps[said["content"]] == prompt["gold"]
    assert any(json.loads(p["label_map"]).get("YES") == "NO" for p in prompts)


def test_held_out_items_have_no_prompt_in_the_file(run_dir: Path, tmp_path: Path) -> None:
    found = export_training(run_dir, tmp_path / "t.jsonl", target="gold", holdout=0.4)
    held = json.loads((tmp_path / "t.jsonl.held-out.json").read_text())
    assert held == list(found.held_out)
    assert len(held) == 20
    texts = {row["messages"][0]["content"] for row in rows(found.out)}
    for prompt in read_run(run_dir).prompts.to_pylist():
        assert (prompt["item_id"] in held) != (prompt["text"] in texts)


def test_dpo_has_only_prompts_where_the_judge_differs(run_dir: Path, tmp_path: Path) -> None:
    found = export_training(run_dir, tmp_path / "d.jsonl", target="gold", format="dpo")
    for row in rows(found.out):
        assert set(row) == {"prompt", "chosen", "rejected"}
        assert row["chosen"][0]["content"] != row["rejected"][0]["content"]
        assert judge([row["prompt"][0]["content"]]) == [row["rejected"][0]["content"]]
    whole = export_training(run_dir, tmp_path / "s.jsonl", target="gold")
    assert 0 < found.examples < whole.examples


def test_consensus_needs_no_gold_and_leaves_ties_out(run_dir: Path, tmp_path: Path) -> None:
    found = export_training(run_dir, tmp_path / "c.jsonl")
    assert 0 < found.items <= 40
    labels = {row["messages"][1]["content"] for row in rows(found.out)}
    assert labels <= {"YES", "NO"}


@pytest.mark.parametrize(
    ("more", "said"),
    [({"judge": "nobody"}, "no judge 'nobody'"), ({"holdout": 1.0}, "holdout")],
)
def test_bad_input_is_refused(run_dir: Path, tmp_path: Path, more: Any, said: str) -> None:
    with pytest.raises(JudgeSenseError, match=said):
        export_training(run_dir, tmp_path / "t.jsonl", **more)
    assert not (tmp_path / "t.jsonl").exists()


@pytest.mark.slow
def test_a_small_lora_run_loads_the_file_and_lowers_the_loss(run_dir: Path, tmp_path: Path) -> None:
    """Adapters of rank 4 on queries and values of the last three layers; six steps."""
    import torch
    from torch import nn

    from local_judges.local.model_loading import (
        find_model,
        load_model,
        load_tokenizer,
        plain_folder,
    )

    found = export_training(run_dir, tmp_path / "t.jsonl", target="gold")
    folder = plain_folder(find_model("smollm2-135m"))
    tokenizer, model = load_tokenizer(folder), load_model(folder, "float32", "cpu")
    model.requires_grad_(False)

    class Adapted(nn.Module):
        def __init__(self, inner: nn.Linear) -> None:
            super().__init__()
            self.inner = inner
            self.down = nn.Linear(inner.in_features, 4, bias=False)
            self.up = nn.Linear(4, inner.out_features, bias=False)
            nn.init.zeros_(self.up.weight)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x) + self.up(self.down(x))

    torch.manual_seed(0)
    for layer in model.model.layers[-3:]:
        layer.self_attn.q_proj = Adapted(layer.self_attn.q_proj)
        layer.self_attn.v_proj = Adapted(layer.self_attn.v_proj)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=1e-2)
    losses = []
    examples = rows(found.out)[:2]
    for _ in range(6):
        total = torch.zeros(())
        for example in examples:
            whole = tokenizer.apply_chat_template(example["messages"], return_dict=False)
            asked = tokenizer.apply_chat_template(
                example["messages"][:-1], add_generation_prompt=True, return_dict=False
            )
            ids = torch.tensor([whole])
            labels = ids.clone()
            labels[:, : len(asked)] = -100
            total = total + model(input_ids=ids, labels=labels).loss / len(examples)
        optimiser.zero_grad()
        total.backward()
        optimiser.step()
        losses.append(total.item())
    assert losses[-1] < 0.7 * losses[0]
