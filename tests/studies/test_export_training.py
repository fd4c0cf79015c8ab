"""Training data from a run: TRL's formats, targets, and items that are kept for evaluation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import judgesense
from judgesense.errors import JudgeSenseError
from judgesense.pipeline.training import export_training
from judgesense.run_folder.folder import read_run


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


def test_variants_are_no_examples(run_dir: Path, tmp_path: Path) -> None:
    judgesense.run(
        judge, tasks=["factuality"], limit=4, note=str, out=tmp_path / "run",
        variants=["rewording", "persona", "opposite-item", "json"],
    )  # fmt: skip
    found = export_training(tmp_path / "run", tmp_path / "t.jsonl", target="gold")
    plain = {row["text"] for row in read_run(run_dir).prompts.to_pylist()}
    assert {row["messages"][0]["content"] for row in rows(found.out)} <= plain
    assert found.examples == found.items * 5


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
    [
        ({"judge": "nobody"}, "no judge 'nobody'"),
        ({"holdout": 1.0}, "holdout"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_input_is_refused(run_dir: Path, tmp_path: Path, more: Any, said: str) -> None:
    with pytest.raises(JudgeSenseError, match=said):
        export_training(run_dir, tmp_path / "t.jsonl", **more)
    assert not (tmp_path / "t.jsonl").exists()


@pytest.mark.slow
def test_trl_reads_the_file_and_a_small_lora_run_lowers_the_loss(
    run_dir: Path, tmp_path: Path
) -> None:
    """The recipe of docs/remedies.md with the smallest model: adapters of rank 4, six steps."""
    from datasets import load_dataset
    from peft import LoraConfig
    from trl import SFTConfig, SFTTrainer

    from local_judges.local.model_loading import (
        find_model,
        load_model,
        load_tokenizer,
        plain_folder,
    )

    found = export_training(run_dir, tmp_path / "t.jsonl", target="gold")
    folder = plain_folder(find_model("smollm2-135m"))
    trainer = SFTTrainer(
        model=load_model(folder, "float32", "cpu"),
        args=SFTConfig(
            output_dir=str(tmp_path / "adapter"), max_steps=6, learning_rate=1e-2, seed=0,
            lr_scheduler_type="constant",
            per_device_train_batch_size=2, logging_steps=1, use_cpu=True, report_to="none",
            save_strategy="no", bf16=False, activation_checkpointing=False, disable_tqdm=True,
        ),
        train_dataset=load_dataset("json", data_files=str(found.out), split="train[:2]"),
        processing_class=load_tokenizer(folder),
        peft_config=LoraConfig(
            r=4, target_modules=["q_proj", "v_proj"], layers_to_transform=[27, 28, 29]
        ),
    )  # fmt: skip
    trainer.train()
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    assert len(losses) == 6
    assert losses[-1] < 0.8 * losses[0]
    trained = [name for name, own in trainer.model.named_parameters() if own.requires_grad]
    assert len(trained) == 12
    assert all("lora_" in name for name in trained)


@pytest.mark.slow
def test_trl_reads_the_file_for_dpo(run_dir: Path, tmp_path: Path) -> None:
    from datasets import load_dataset
    from trl.data_utils import is_conversational, maybe_apply_chat_template

    from local_judges.local.model_loading import find_model, load_tokenizer, plain_folder

    found = export_training(run_dir, tmp_path / "d.jsonl", target="gold", format="dpo")
    data = load_dataset("json", data_files=str(found.out), split="train")
    assert is_conversational(data[0])
    shown = maybe_apply_chat_template(
        data[0], load_tokenizer(plain_folder(find_model("smollm2-135m")))
    )
    assert shown["prompt"].endswith("<|im_start|>assistant\n")
    assert shown["chosen"].split("<")[0] == data[0]["chosen"][0]["content"]
    assert shown["rejected"].split("<")[0] == data[0]["rejected"][0]["content"]
