"""Every command and snippet of the pages runs, or says on the page what it needs.

A line ``# needs ...`` marks the rest of its block; behind a command, it marks that command. Each
page is read in a folder with the files it talks about, from top to bottom.
"""

from __future__ import annotations

import csv
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from judgesense.checking.labelling import open_labelling

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
NEEDS = re.compile(r"# (.*; )?needs? |_API_KEY=")
SET_UP = ("pip", "git", "make", "mkdir", "cd", "cp", "vllm")
"""What a reader's own machine does."""
SERVERS = ("label", "leaderboard", "mcp", "view")
EXPORTS = {
    "phoenix_evals.csv": "b21_phoenix_evals.csv",
    "langfuse_scores.csv": "b30_langfuse_scores_export.csv",
    "braintrust_experiment.jsonl": "b32_braintrust_experiment.jsonl",
    "weave_calls.jsonl": "b33_weave_calls.jsonl",
    "label_studio.csv": "b34_label_studio.csv",
    "ragas_result.csv": "b36_ragas_result.csv",
    "promptfoo_results.csv": "b39_promptfoo_results.csv",
    "deepeval_run.json": "b40_deepeval_run.json",
}
"""Exports that the pages on platforms check."""
CHECKED_ELSEWHERE = {"docs/tutorial.md": "test_tutorial.py"}


def blocks(page: Path, *languages: str) -> list[str]:
    found = BLOCK.findall(page.read_text("utf-8"))
    return [text for language, text in found if language in languages]


def commands(page: Path) -> Iterator[tuple[str, bool]]:
    """Each command, a line each, and whether it is to be run."""
    for block in blocks(page, "sh", "bash"):
        marked = False
        heredoc = re.search(r"^cat > .*?^END\n", block, re.MULTILINE | re.DOTALL)
        if heredoc:
            yield heredoc[0], True
            block = block.replace(heredoc[0], "")
        for line in block.replace("\\\n", " ").splitlines():
            if not line.strip():
                marked = False
            elif line.startswith("#"):
                marked = bool(NEEDS.match(line))
            else:
                tool = line.split()[0]
                yield line, not (marked or NEEDS.search(line) or tool in SET_UP)


def names(pages: list[Path]) -> list[str]:
    return [str(page.relative_to(ROOT)) for page in pages]


WITH_COMMANDS = [
    page
    for page in PAGES
    if any(run for _, run in commands(page)) and names([page])[0] not in CHECKED_ELSEWHERE
]


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        sheet = csv.DictWriter(file, list(rows[0]))
        sheet.writeheader()
        sheet.writerows(rows)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the pages talk about: verdicts, labels, runs of two judges."""
    import judgesense

    folder = tmp_path_factory.mktemp("reader")
    rng = np.random.default_rng(3)
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("images"))
    for name, source in EXPORTS.items():
        shutil.copy(ROOT / "tests" / "door" / "files" / source, folder / name)
    gold = [("YES", "NO")[k % 2] for k in range(80)]

    def said(label: str, wrong: float) -> str:
        return {"YES": "NO", "NO": "YES"}[label] if rng.random() < wrong else label

    for name, wrong in (("verdicts", 0.1), ("old", 0.2), ("new", 0.1)):
        rows = [
            {
                "item_id": f"q{k}",
                "question": f"Question {k}?",
                "system_id": "xy"[k // 2 % 2],
                "verdict": said(label, wrong),
                "label": label,
            }
            for k, label in enumerate(gold)
        ]
        write_csv(folder / f"{name}.csv", rows)
    labelling, _ = open_labelling(folder / "verdicts.csv", verdict="verdict")
    for at in range(40):
        item = labelling._id(labelling._output(at))[0]
        labelling.put("ann", at, gold[int(item.removeprefix("q"))], "")
    people = [{"item_id": f"q{k}", "label": gold[k]} for k in range(40)]
    write_csv(folder / "people.csv", people)
    for name in ("a", "b", "old", "new"):
        rows = [
            {
                "judge": name,
                "task": "factuality",
                "item_id": f"q{k}",
                "template_id": wording,
                "repeat": repeat,
                "gold": label,
                "raw_decision": said(label, 0.1),
            }
            for k, label in enumerate(gold)
            for wording in "12"
            for repeat in (0, 1)
        ]
        write_csv(folder / "log.csv", rows)
        judgesense.import_log(folder / "log.csv", "table", folder / "runs" / name)
    demo = judgesense.demo(folder / "runs" / "demo")
    assert {card["trust"] for card in demo.trust} == {"avoid"}
    scores = [
        {"prompt": f"p{prompt}", "item": f"q{item}", "score": int(rng.random() < 0.6)}
        for prompt in range(4)
        for item in range(200)
    ]
    write_csv(folder / "my_scores.csv", scores)
    write_csv(
        folder / "answers.csv",
        [
            {"q": f"Question {k}?", "answer": f"Answer {k}.", "label": ("true", "false")[k % 2]}
            for k in range(20)
        ],
    )
    return folder


@pytest.fixture
def reader(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of those files, as the current folder, for one page."""
    folder = shutil.copytree(files, tmp_path / "reader")
    monkeypatch.chdir(folder)
    return folder


def serve(arguments: list[str]) -> None:
    """Start a server, fetch its page, stop it by Ctrl-C."""
    path = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "BROWSER": "true"}
    process = subprocess.Popen(
        [sys.executable, "-m", "judgesense", *arguments],
        env=os.environ | path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        lines = iter(process.stdout.readline, "")
        url = next(found[0] for line in lines if (found := re.search(r"http://[^\s,;)]+", line)))
        for tries in reversed(range(50)):
            try:
                assert urllib.request.urlopen(url, timeout=10).status == 200
                break
            except OSError:
                if not tries:
                    raise
                time.sleep(0.2)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: names([page])[0])
def test_the_commands_of_a_page_run_in_its_order(page: Path, reader: Path, command_line) -> None:
    for command, run in commands(page):
        if not run:
            continue
        if command.startswith("cat >"):
            subprocess.run(["bash", "-ec", command], check=True)
            continue
        tool, *arguments = shlex.split(command, comments=True)
        if tool == "python":
            path = os.environ | {"PYTHONPATH": str(ROOT)}
            subprocess.run([sys.executable, *arguments], env=path, check=True, timeout=120)
            continue
        assert tool == "judgesense", command
        if arguments[0] in SERVERS and "--out" not in arguments:
            serve(arguments)
            continue
        done = command_line(*arguments)
        # 1 and 3 are conclusions; an error is 2.
        assert done.returncode != 2, (command, done.stderr)
        assert "Traceback" not in done.stderr, (command, done.stderr)


def test_snippets_that_need_nothing_run(reader: Path) -> None:
    """Those with their output under them are compared with it by test_pages.py."""
    ran = 0
    for page in PAGES:
        for block in blocks(page, "python"):
            if not NEEDS.search(block) and page.name not in (
                "jss.md",
                "matching.md",
                "parsing.md",
                "tutorial.md",
            ):
                exec(compile(block, str(page), "exec"), {"__name__": "snippet"})
                ran += 1
    assert ran


def test_yaml_on_a_page_is_what_the_program_reads(reader: Path) -> None:
    from judgesense_dataset.attacks import load_attacks
    from judgesense_dataset.variants import load_variants

    read = {"attacks": 0, "variants": 0, "judges": 0, "jobs": 0}
    for page in PAGES:
        for block in blocks(page, "yaml"):
            given = yaml.safe_load(block.replace(", ...}", "}"))
            kind = next((name for name in read if name in given), None) if given else None
            if kind:
                read[kind] += 1
            path = reader / "given.yaml"
            path.write_text(block, "utf-8")
            if kind == "attacks":
                assert load_attacks(path)
            elif kind == "variants":
                assert load_variants(path)
            elif kind == "jobs":
                (step,) = [s for s in given["jobs"]["judge"]["steps"] if "judgesense" in s["uses"]]
                inputs = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["inputs"]
                assert set(step["with"]) <= set(inputs)
    assert min(read.values()) == 1
