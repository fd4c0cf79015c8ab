"""The leaderboard's Space, and scores offered to a model's page, on a Hub on the loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile

import pytest
import yaml
from loopback_hub import VISITOR, WRITER, File
from rule_run import make_run
from test_eval_results import RECORD

from judgesense.version import __version__
from judgesense_dataset.build import build_dataset
from judgesense_dataset.sources.own import OwnData

pytest.importorskip("huggingface_hub")
pytestmark = pytest.mark.slow

WHEEL = f"judgesense-{__version__}-py3-none-any.whl"
PATH = ".eval_results/org_pairs.yaml"


def told(done):
    assert done.returncode == 2, (done.stdout, done.stderr[-3000:])
    (line,) = done.stderr.strip().splitlines()
    return line


def done_well(done):
    assert done.returncode == 0, done.stderr[-3000:]
    assert "hf_" not in done.stdout + done.stderr
    return done.stdout


def test_the_leaderboard_becomes_a_space_whose_requirements_install_its_own_wheel(
    hub, publish, env, tmp_path
):
    pytest.importorskip("hatchling")
    out = done_well(publish("space", "--repo", "org/board"))
    assert "published as commit" in out
    repo = hub.repos["space", "org/board"]
    assert repo.sdk == "gradio"
    assert repo.tags == {f"v{__version__}": repo.head}
    assert {"README.md", "app.py", "requirements.txt", WHEEL} <= set(repo.files)
    lines = repo.files["requirements.txt"].content.decode().splitlines()
    (core,) = [line for line in lines if line.startswith("judgesense")]
    # As the Space's builder does it, but for what else is required.
    (tmp_path / "requirements.txt").write_text(core, "utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    install = [*pip, "--no-deps", "--no-cache-dir", "--target", str(tmp_path / "site"), "-r"]
    subprocess.run([*install, str(tmp_path / "requirements.txt")], env=env, check=True)
    assert (tmp_path / "site" / "judgesense" / "version.py").is_file()
    assert (tmp_path / "site" / "hub_scripts" / "leaderboard" / "app.py").is_file()
    assert "no commit" in done_well(publish("space", "--repo", "org/board"))

    # Another wheel of the same name and version is another requirement.
    files = {**repo.files, "notes.md": File(b"ours", False)}
    repo.commit(files, "by hand")
    other = tmp_path / WHEEL
    other.write_bytes(repo.files[WHEEL].content)
    with zipfile.ZipFile(other, "a") as archive:
        archive.writestr("judgesense/added.txt", "another build")
    out = done_well(publish("space", "--repo", "org/board", "--wheel", other))
    assert "~ requirements.txt" in out
    assert f"~ {WHEEL}" in out
    assert core not in repo.files["requirements.txt"].content.decode()
    assert "notes.md" in repo.files


@pytest.mark.parametrize("client", ["installed", "major version 1"])
def test_scores_are_offered_in_one_pull_request(hub, publish, tmp_path, request, client):
    settings = {"HF_TOKEN": VISITOR}
    if client != "installed":
        settings |= request.getfixturevalue("older_client")
    run_dir = make_run(tmp_path / "run", record=RECORD, scoring="options")
    command = ("eval-results", run_dir, "--repo", "org/model")
    assert "no model org/model" in told(publish(*command, **settings))
    repo = hub.create("model", "org/model")
    first = repo.head
    assert f"+ {PATH}" in done_well(publish(*command, "--dry-run", **settings))
    assert repo.pulls == []
    out = done_well(publish(*command, **settings))
    assert f"pull request {hub.url}/org/model/discussions/1" in out
    assert repo.head == first
    (pull,) = repo.pulls
    assert (pull.title, pull.author) == ("Add evaluation results on org/pairs", "visitor")
    (entry,) = yaml.safe_load(repo.commits[pull.head][PATH].content)
    assert entry["dataset"]["task_id"] == "factuality"
    if client != "installed":
        return

    # Given again it opens no second one; another run's scores go into the one that is open.
    offered = pull.head
    assert "no changes: no commit" in done_well(publish(*command, **settings))
    assert pull.head == offered
    later = {**RECORD, "finished": "2026-11-22T08:00:00+00:00"}
    run_dir = make_run(tmp_path / "later", record=later, scoring="options")
    command = ("eval-results", run_dir, "--repo", "org/model", "--results", "org/results")
    assert "offered as commit" in done_well(publish(*command, **settings))
    assert repo.pulls == [pull]
    (entry,) = yaml.safe_load(repo.commits[pull.head][PATH].content)
    assert entry["date"] == later["finished"]
    assert entry["source"]["url"].startswith(f"{hub.url}/datasets/org/results/tree/main/by-rule-")
    # Merged, there is nothing left to offer.
    repo.commit(repo.commits[pull.head], "merged")
    pull.status = "merged"
    assert "no changes: no commit" in done_well(publish(*command, **settings))
    assert len(repo.pulls) == 1


def test_a_client_from_before_the_format_is_told_to_upgrade(publish, tmp_path, first_client):
    run_dir = make_run(tmp_path / "run", record=RECORD, scoring="options")
    line = told(publish("eval-results", run_dir, "--repo", "org/model", **first_client))
    assert "huggingface_hub 1.0.1 does not know the Hub's evaluation results; upgrade it" in line


def test_a_hub_model_that_judged_a_hub_dataset_gets_its_scores(hub, publish, env, tmp_path):
    """The whole way: publish a dataset, judge it with a model, both from the Hub, and offer."""
    pytest.importorskip("transformers")
    pytest.importorskip("datasets")
    rows = [
        {
            "query": f"How high is hill {n}?",
            "passage_a": f"Hill {n} is {37 * n % 91} metres high.",
            "passage_b": f"Hill {n} lies {53 * n % 97} miles from the sea.",
            "gold": "A",
        }
        for n in range(12)
    ]
    items = tmp_path / "hills.jsonl"
    items.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    own = OwnData(path=items, license="cc0-1.0")
    folder = tmp_path / "pairs"
    build_dataset(["own"], folder, own=own, own_task="relevance", items=None, verdicts=False)
    command = ("dataset", folder, "--repo", "org/pairs", "--no-audit", "--benchmark", "Hills")
    done_well(publish(*command))
    pairs = hub.repos["dataset", "org/pairs"]
    (task,) = yaml.safe_load(pairs.files["eval.yaml"].content)["tasks"]
    assert {key: task.pop(key) for key in ("id", "config", "split")} == {
        "id": "relevance", "config": "relevance", "split": "test"
    }  # fmt: skip
    # What Inspect needs to run it.
    assert set(task) == {"field_spec", "solvers", "scorers"}
    assert task["scorers"][0]["args"] == {"pattern": r"(?<!\w)(A|B)(?!\w)", "ignore_case": False}

    model = hub.create("model", "org/model")
    files = {path.name: File(path.read_bytes(), True) for path in small_model(tmp_path / "model")}
    model.commit({**model.files, **files}, "weights")
    out = tmp_path / "run"
    run = [sys.executable, "-m", "judgesense", "run", "--judge", "org/model"]
    run += ["--dataset", "org/pairs", "--scoring", "options", "--out", str(out)]
    settings = {**env, "HF_TOKEN": WRITER, "JUDGESENSE_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        run, env=settings, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    done_well(publish("eval-results", out, "--repo", "org/model"))
    (pull,) = model.pulls
    (entry,) = yaml.safe_load(model.commits[pull.head][PATH].content)
    assert entry["dataset"] == {
        "id": "org/pairs",
        "task_id": "relevance",
        "revision": pairs.head,
    }
    cells = json.loads((out / "report.json").read_text("utf-8"))["cells"]
    (cell,) = [
        cell
        for cell in cells
        if (cell["scoring"], cell["order"], cell["labels"]) == ("options", "both", "mapped")
    ]
    assert entry["value"] == pytest.approx(cell["jss"], abs=5e-5)


def small_model(folder):
    """A model of large random weights over bytes, so that its choice changes with the text."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    torch.manual_seed(1)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(["<end>", *letters])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    config = transformers.LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        initializer_range=0.7,
        bos_token_id=None,
        eos_token_id=0,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")
    fast.save_pretrained(folder)
    return sorted(path for path in folder.iterdir() if os.path.getsize(path))
