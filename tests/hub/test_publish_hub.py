"""Publishing to a Hub on the loopback with the real clients, and reading back."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile

import pytest
import yaml
from loopback_hub import READER, VISITOR, File
from rule_run import make_run

from hub_scripts.publications import build_wheel
from judgesense.reporting.report import write_report
from judgesense.version import __version__
from judgesense_dataset.build import build_dataset
from judgesense_dataset.sources.own import OwnData

pytest.importorskip("huggingface_hub")
pytest.importorskip("datasets")
pytestmark = pytest.mark.slow

TAG = f"v{__version__}"

LOAD_DATASET = """
from datasets import load_dataset
rows = load_dataset("org/pairs", "factuality", split="test")
print(len(rows), rows.features["label_map_a"].dtype, len(load_dataset("org/pairs", split="test")))
"""

LOAD_METRIC = """
import evaluate
print(evaluate.load("org/jss").compute(predictions=["A", "B"], references=["A", "A"])["jss"])
"""

LOAD_RESULTS = """
from datasets import load_dataset
print(len(load_dataset("org/results", "decisions", split="test")))
print(len(load_dataset("org/results", "pairs", split="test")))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A dataset folder that `dataset build` makes of thirty claims."""
    rows = [
        {"question": f"What is {n} plus {n}?", "response": f"It is {2 * n + n % 2}.", "gold": gold}
        for n, gold in enumerate(["YES", "NO"] * 15)
    ]
    return build(rows, tmp_path_factory.mktemp("built") / "pairs")


def build(rows, out, task="factuality"):
    path = out.with_suffix(".jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    own = OwnData(path=path, license="cc0-1.0")
    build_dataset(["own"], out, own=own, own_task=task, items=None, verdicts=False)
    return out


@pytest.fixture
def run_dir(tmp_path):
    return make_run(tmp_path / "run")


def refusal(done):
    """The one line on stderr of a command that was refused."""
    assert done.returncode == 2, (done.stdout, done.stderr[-3000:])
    (line,) = done.stderr.strip().splitlines()
    assert "hf_" not in line
    return line


def output(done):
    assert done.returncode == 0, done.stderr[-3000:]
    assert "hf_" not in done.stdout + done.stderr
    return done.stdout


def test_a_dataset_is_published_in_one_commit_and_loads_by_its_name(hub, publish, built, read_back):
    out = output(publish("dataset", built, "--repo", "org/pairs"))
    assert "+ factuality/test.parquet" in out
    repo = hub.repos["dataset", "org/pairs"]
    assert [message for _, message in repo.log][1:] == [
        f"Publish the dataset with judgesense {__version__}"
    ]
    assert repo.tags == {TAG: repo.head}
    tasks = yaml.safe_load(repo.files["eval.yaml"].content)["tasks"]
    assert [task["id"] for task in tasks] == ["factuality"]
    for path in ("README.md", "factuality/test.parquet", "prompts/test.parquet"):
        assert repo.files[path].content == (built / path).read_bytes()
    n = read_back(LOAD_DATASET).split()
    assert n[1] == "string"
    assert n[0] == n[2]
    assert int(n[0]) > 0

    again = output(publish("dataset", built, "--repo", "org/pairs"))
    assert "no changes: no commit" in again
    assert len(repo.log) == 2

    # A config that an earlier dataset had goes; what people put there stays.
    files = dict(repo.files)
    files["old/test.parquet"] = File(b"old", True)
    files["notes.md"] = File(b"notes", False)
    files["README.md"] = File(b"another", False)
    repo.commit(files, "by hand")
    shown = output(publish("dataset", built, "--repo", "org/pairs", "--dry-run"))
    assert "~ README.md" in shown
    assert "- old/test.parquet" in shown
    assert len(repo.log) == 3
    out = output(publish("dataset", built, "--repo", "org/pairs"))
    assert f"the tag {TAG} stays at commit" in out
    assert "notes.md" in repo.files
    assert "old/test.parquet" not in repo.files
    assert repo.files["README.md"].content == (built / "README.md").read_bytes()


def test_a_publication_that_broke_off_is_finished_by_the_same_command(hub, publish, built):
    # The large files have arrived, and the commit fails.
    hub.fail("POST", "/commit/", 500)
    line = refusal(publish("dataset", built, "--repo", "org/pairs"))
    assert "busy (500)" in line
    assert "rerun the command to resume" in line
    sent = [path for method, path in hub.requests if method == "PUT"]
    assert len(sent) == 2  # the Parquet files
    repo = hub.repos["dataset", "org/pairs"]
    # The commit is made, and its answer is lost on the way.
    hub.fail("POST", "/commit/", 502, after=True)
    assert "busy (502)" in refusal(publish("dataset", built, "--repo", "org/pairs"))
    assert len(repo.log) == 2
    assert repo.tags == {}
    out = output(publish("dataset", built, "--repo", "org/pairs"))
    assert "no commit" in out
    assert repo.tags == {TAG: repo.head}
    assert len(repo.log) == 2
    assert [path for method, path in hub.requests if method == "PUT"] == sent


def test_what_the_hub_refuses_is_told_in_one_line(hub, publish, run_dir, tmp_path):
    command = ("results", run_dir, "--repo", "org/results")
    empty = {"HF_TOKEN": None, "HF_HOME": str(tmp_path / "nobody")}
    assert "no Hub token; log in with `hf auth login`" in refusal(publish(*command, **empty))
    assert "rejects the token" in refusal(publish(*command, HF_TOKEN="hf_unknown"))
    assert "may not write" in refusal(publish(*command, HF_TOKEN=READER))
    assert "nothing to open a pull request in" in refusal(publish(*command, "--pull-request"))
    hub.fail("GET", "/api/datasets/org/results$", 429, times=20)
    assert "busy (429)" in refusal(publish(*command))
    hub.failures.clear()
    hub.create("space", "org/results")
    assert "taken by a repository of another type" in refusal(publish(*command))
    assert "HF_HUB_OFFLINE" in refusal(publish(*command, HF_HUB_OFFLINE="1"))
    nowhere = "http://127.0.0.1:9"
    assert f"{nowhere} cannot be reached" in refusal(publish(*command, HF_ENDPOINT=nowhere))
    assert ("dataset", "org/results") not in hub.repos


def test_a_repository_that_changes_meanwhile_is_not_overwritten(hub, publish, run_dir):
    hub.fail("POST", "/commit/", 412)
    line = refusal(publish("results", run_dir, "--repo", "org/results"))
    assert "dataset org/results changed during the upload" in line


@pytest.mark.parametrize(
    "settings", [{"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}]
)
def test_a_dry_run_works_without_hub_and_token(publish, run_dir, settings):
    out = output(
        publish("results", run_dir, "--repo", "org/results", "--dry-run", HF_TOKEN=None, **settings)
    )
    assert "cannot reach the Hub; every file is listed as new" in out
    assert "/report.json" in out
    assert "nothing was published" in out


def test_runs_lie_side_by_side_in_a_results_dataset(hub, publish, run_dir, tmp_path, read_back):
    other = make_run(tmp_path / "other", "rule@0002")
    output(publish("results", run_dir, "--repo", "org/results", "--private"))
    repo = hub.repos["dataset", "org/results"]
    assert repo.private
    card = {**repo.files, "README.md": File(repo.files["README.md"].content + b"\nOurs.\n", False)}
    repo.commit(card, "by hand")
    output(publish("results", other, "--repo", "org/results"))
    assert repo.files["README.md"].content.endswith(b"Ours.\n")
    assert len(repo.tags) == 2
    assert read_back(LOAD_RESULTS).split() == ["48", "24"]


@pytest.mark.parametrize("client", ["installed", "major version 1"])
def test_who_may_not_write_to_a_results_dataset_opens_one_pull_request(
    hub, publish, tmp_path, request, client
):
    settings = {"HF_TOKEN": VISITOR}
    if client != "installed":
        settings |= request.getfixturevalue("older_client")
    command = ("results", make_run(tmp_path / "run"))
    repo = hub.create("dataset", "judgesense/results")
    first = repo.head
    out = output(publish(*command, **settings))
    assert f"pull request {hub.url}/datasets/judgesense/results/discussions/1" in out
    (pull,) = repo.pulls
    assert (repo.head, repo.tags, pull.author) == (first, {}, "visitor")
    assert pull.title.startswith("Publish the run by-rule-")
    assert any(path.endswith("/report.json") for path in repo.commits[pull.head])
    if client != "installed":
        return

    # Given again it opens no second one; changed decisions go into the one that is open.
    offered = pull.head
    assert "no changes: no commit" in output(publish(*command, **settings))
    assert pull.head == offered
    changed = make_run(tmp_path / "changed", always="YES")
    assert "published as commit" in output(publish("results", changed, **settings))
    assert (repo.pulls, pull.head != offered) == ([pull], True)
    # Who may write can ask for one as well; merged, there is nothing left to offer.
    repo.commit(repo.commits[pull.head], "merged")
    pull.status = "merged"
    again = publish("results", changed, "--pull-request")
    assert "no changes: no commit" in output(again)
    assert len(repo.pulls) == 1
    other = publish("results", make_run(tmp_path / "other", "rule@2"), "--pull-request")
    assert "discussions/2" in output(other)


LARGE = """
import hub_scripts.leaderboard.runs as runs
runs.LARGEST_RUN = 10
found = runs.find_runs("org/results")
print(dict(found.folders), found.left_out)
"""


def test_the_leaderboard_of_a_results_dataset_becomes_a_static_space(
    hub, publish, run_dir, tmp_path, read_back
):
    other = make_run(tmp_path / "other", "rule@0002")
    for run in (run_dir, other):
        output(publish("results", run, "--repo", "org/results"))
    command = ("space", "--repo", "org/board", "--results", "org/results")
    out = output(publish(*command))
    assert "published as commit" in out
    repo = hub.repos["space", "org/board"]
    assert (repo.sdk, repo.tags, len(repo.log)) == ("static", {}, 2)
    board = json.loads(repo.files["board.json"].content)
    judges = {row["judge"] for row in board["rows"]}
    assert {name for name in judges if name.startswith("rule")} == {"rule@0001", "rule@0002"}
    revision = hub.repos["dataset", "org/results"].head
    page = next(path for path in repo.files if path.startswith("judges/rule"))
    address = f"{hub.url}/datasets/org/results/tree/{revision}/by-rule-"
    assert address in repo.files[page].content.decode()
    assert "no changes: no commit" in output(publish(*command))

    shown = read_back(LARGE)
    assert shown.startswith("{} (('by-rule-")
    assert shown.count("its files are too large (") == 2

    # A run whose figures were changed by hand goes from the board, with its pages.
    results = hub.repos["dataset", "org/results"]
    files = dict(results.files)
    path = next(path for path in files if path.endswith("/report.json"))
    report = json.loads(files[path].content)
    report["cells"][0]["jss"] = 0.99
    results.commit({**files, path: File(json.dumps(report).encode(), False)}, "by hand")
    repo.commit({**repo.files, "notes.md": File(b"ours", False)}, "by hand")
    done = publish(*command)
    assert f"left out {path.split('/')[0]}: " in done.stderr
    assert "jss is 0.99, but recomputed it is 0.83" in done.stderr
    assert "- judges/rule" in output(done)
    assert len([path for path in repo.files if path.startswith("judges/rule")]) == 1
    assert "notes.md" in repo.files
    for name in ("org/nothing", "org/pairs"):
        line = refusal(publish("space", "--repo", "org/board", "--results", name))
        assert f"cannot read the results dataset {name} (RepositoryNotFound" in line


def test_a_metric_becomes_a_space_that_evaluate_loads(hub, publish, read_back):
    pytest.importorskip("evaluate")
    pytest.importorskip("hatchling")
    out = output(publish("metrics", "--org", "org", "jss", "position_bias"))
    assert out.count("published as commit") == 2
    repo = hub.repos["space", "org/jss"]
    assert repo.sdk == "gradio"
    wheel = f"judgesense-{__version__}-py3-none-any.whl"
    address = f"{hub.url}/spaces/org/jss/resolve/main/{wheel}"
    digest = hashlib.sha256(repo.files[wheel].content).hexdigest()
    assert repo.files["requirements.txt"].content.decode().strip() == (
        f"judgesense[hub] @ {address}#sha256={digest}"
    )
    assert read_back(LOAD_METRIC).split() == ["0.5"]
    again = output(publish("metrics", "--org", "org", "jss"))
    assert "no changes: no commit" in again


def test_only_the_core_in_this_version_is_taken_as_a_wheel(publish, tmp_path):
    for name in ("other-1.0-py3-none-any.whl", "judgesense-9.0-py3-none-any.whl"):
        (tmp_path / name).write_bytes(b"PK")
        line = refusal(publish("metrics", "--org", "org", "--wheel", tmp_path / name))
        assert f"not a wheel of judgesense {__version__}" in line
    line = refusal(publish("metrics", "--org", "org", "--wheel", tmp_path / "absent.whl"))
    assert "build a wheel" in line


def test_what_is_no_dataset_folder_is_refused(publish, tmp_path, run_dir):
    for folder in (tmp_path, run_dir, tmp_path / "absent"):
        line = refusal(publish("dataset", folder, "--repo", "org/pairs"))
        assert "make one with: judgesense dataset build" in line


def test_a_dataset_whose_audit_finds_errors_is_refused(publish, tmp_path):
    rows = [{"question": f"Why {n}?", "response": "a", "gold": "YES"} for n in range(8)]
    build(rows, tmp_path / "cut")
    line = refusal(publish("dataset", tmp_path / "cut", "--repo", "org/pairs", "--dry-run"))
    assert "finds errors, the first in factuality" in line
    assert "judgesense dataset audit" in line


def test_the_client_of_major_version_1_publishes_and_reads_back(
    hub, publish, built, run_dir, read_back, older_client
):
    version = read_back("import huggingface_hub as h; print(h.__version__)", **older_client)
    assert version.startswith("1.")
    output(publish("dataset", built, "--repo", "org/pairs", **older_client))
    output(publish("results", run_dir, "--repo", "org/results", **older_client))
    command = ("results", run_dir, "--repo", "org/other")
    assert "may not write" in refusal(publish(*command, **{**older_client, "HF_TOKEN": READER}))
    nowhere = {**older_client, "HF_ENDPOINT": "http://127.0.0.1:9"}
    assert "cannot be reached" in refusal(publish(*command, **nowhere))
    assert int(read_back(LOAD_DATASET, **older_client).split()[0]) > 0
    assert read_back(LOAD_RESULTS, **older_client).split() == ["24", "12"]
    # What the one client has published is unchanged to the other.
    assert "no commit" in output(publish("dataset", built, "--repo", "org/pairs"))


def test_an_imported_log_without_pairs_can_be_read_back(hub, publish, run_dir, read_back):
    (run_dir / "pairs.parquet").unlink()
    write_report(run_dir)
    output(publish("results", run_dir, "--repo", "org/results"))
    assert read_back(LOAD_RESULTS.splitlines()[1] + "\n" + LOAD_RESULTS.splitlines()[2]) == "24\n"


def test_outside_a_checkout_the_wheel_has_to_be_given(publish, tmp_path):
    pytest.importorskip("hatchling")
    wheel = build_wheel(tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    # Run elsewhere: `python -m` puts the working directory first.
    there = {"PYTHONPATH": str(tmp_path / "site"), "PYTHONSAFEPATH": "1"}
    command = ("metrics", "--org", "org", "jss", "--dry-run")
    assert "installed wheel" in refusal(publish(*command, **there))
    assert f"+ {wheel.name}" in output(publish(*command, "--wheel", wheel, **there))


def test_a_dataset_is_judged_by_a_model_both_from_the_hub_and_the_run_is_published(
    hub, publish, env, tmp_path
):
    pytest.importorskip("transformers")
    rows = [
        {
            "query": f"How high is hill {n}?",
            "passage_a": f"Hill {n} is {37 * n % 91} metres high.",
            "passage_b": f"Hill {n} lies {53 * n % 97} miles from the sea.",
            "gold": "AB"[n % 2],
        }
        for n in range(12)
    ]
    folder = build(rows, tmp_path / "pairs", "relevance")
    output(publish("dataset", folder, "--repo", "org/pairs", "--no-audit"))
    model = hub.create("model", "org/model")
    files = {path.name: File(path.read_bytes(), True) for path in small_model(tmp_path / "model")}
    model.commit({**model.files, **files}, "weights")
    run = [sys.executable, "-m", "judgesense", "run", "--judge", "org/model", "--dataset"]
    run += ["org/pairs", "--scoring", "options", "--out", str(tmp_path / "run")]
    settings = {**env, "JUDGESENSE_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        run, env=settings, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    record = json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))
    assert record["judges"][0]["describe"]["weights"] == f"org/model@{model.head}"
    assert record["dataset"]["revision"] == hub.repos["dataset", "org/pairs"].head
    output(publish("results", tmp_path / "run", "--repo", "org/results"))
    # The judge's results are ready for its repository, as the Hub's client reads them.
    files = hub.repos["dataset", "org/results"].files
    (path,) = (path for path in files if path.endswith(".yaml"))
    assert path.endswith("/.eval_results/org--model.yaml")
    from huggingface_hub import parse_eval_result_entries

    (entry,) = parse_eval_result_entries(yaml.safe_load(files[path].content))
    assert (entry.dataset_id, entry.task_id) == ("org/pairs", "relevance")
    assert entry.dataset_revision == record["dataset"]["revision"]
    report = json.loads((tmp_path / "run" / "report.json").read_text("utf-8"))
    (card,) = report["trust"]
    assert entry.value == round(card["checks"]["right"]["details"]["accuracy"], 4)


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
