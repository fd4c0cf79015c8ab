"""`judgesense.run` and `judgesense run`: what a person types, and what it tells them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import judgesense
from judgesense.errors import JudgeSenseError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OWN = {"templates": EXAMPLES / "politeness.yaml", "items": EXAMPLES / "politeness.jsonl"}


def says_rude(prompts: list[str]) -> list[str]:
    return ["NO" if "YES or NO" in prompt else "RUDE" for prompt in prompts]


def says_yes(prompts: list[str]) -> list[str]:
    return ["YES" for _ in prompts]


def test_a_function_and_two_files_are_enough(tmp_path: Path) -> None:
    report = judgesense.run(says_rude, **OWN, out=tmp_path)
    mapped = next(
        cell
        for cell in report["cells"]
        if cell["judge"].startswith("says_rude") and cell["labels"] == "mapped"
    )
    # RUDE under two wordings; NO under the third means POLITE: 1 of 3 pairs agrees.
    assert mapped["jss"] == pytest.approx(1 / 3)
    assert (mapped["n_pairs"], mapped["n_items"]) == (18, 6)
    for name in ("run.json", "pairs.parquet", "report.json", "report.md", "report.html"):
        assert (tmp_path / name).stat().st_size > 0


def test_the_same_run_again_asks_nothing(tmp_path: Path) -> None:
    first = judgesense.run(says_rude, **OWN, out=tmp_path)
    asked: list[str] = []

    def says_rude_again(prompts: list[str]) -> list[str]:
        asked.extend(prompts)
        return says_rude(prompts)

    says_rude_again.__name__ = "says_rude"
    stored = tmp_path / "report.json"
    stored.write_text(stored.read_text("utf-8").replace('"jss":', '"jss": 0.5, "old":'), "utf-8")
    assert judgesense.run(says_rude_again, **OWN, out=tmp_path) == first
    assert asked == []


def test_another_configuration_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    judgesense.run(says_rude, **OWN, out=tmp_path)
    with pytest.raises(JudgeSenseError, match="repeats was 1 and is now 2"):
        judgesense.run(says_rude, **OWN, out=tmp_path, repeats=2)
    with pytest.raises(JudgeSenseError, match="other settings: data"):
        judgesense.run(says_rude, out=tmp_path)


def test_a_changed_item_file_is_another_run(tmp_path: Path) -> None:
    items = tmp_path / "items.jsonl"
    items.write_bytes(OWN["items"].read_bytes())
    judgesense.run(says_rude, templates=OWN["templates"], items=items, out=tmp_path / "run")
    items.write_text(items.read_text().replace("Fix it.", "Mend it."))
    with pytest.raises(JudgeSenseError, match="data items sha256 was"):
        judgesense.run(says_rude, templates=OWN["templates"], items=items, out=tmp_path / "run")


def test_a_function_may_return_log_probabilities(tmp_path: Path) -> None:
    def unsure(prompts: list[str]) -> list[dict[str, float]]:
        binary = {"YES": -0.4, "NO": -1.2}
        return [binary if "YES or NO" in p else {"POLITE": -0.3, "RUDE": -1.5} for p in prompts]

    report = judgesense.run(unsure, **OWN, scoring="options", out=tmp_path)
    cells = [cell for cell in report["cells"] if cell["judge"].startswith("unsure")]
    assert {cell["scoring"] for cell in cells} == {"options"}
    assert all(0 <= cell["soft_jss"] <= 1 for cell in cells)


def test_a_judge_that_offers_one_scoring_is_scored_by_it_unless_both_are_asked_for(
    tmp_path: Path,
) -> None:
    heard: list[str] = []
    report = judgesense.run(says_rude, **OWN, out=tmp_path / "one", note=heard.append)
    assert {cell["scoring"] for cell in report["cells"]} == {"generate", "-"}
    assert heard == []
    judgesense.run(says_rude, tasks=["factuality"], limit=4, out=tmp_path / "b", note=heard.append)
    assert heard == ["says_rude@callable offers only generate scoring"]
    from local_judges.callable_judge import CallableJudge

    with pytest.raises(JudgeSenseError, match="options scoring"):
        judgesense.run(CallableJudge(says_rude), **OWN, scoring="both", out=tmp_path / "two")


def test_a_function_that_answers_too_little_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(JudgeSenseError, match="returned 1 replies to 3 prompts"):
        judgesense.run(lambda prompts: ["RUDE"], **OWN, out=tmp_path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--judge", "gtp-4"], "judgesense judges list"),
        (["--judge", "smollm2-135m", "--tasks", "coherance"], "factuality, coherence"),
        (["--judge", "smollm2-135m", "--dataset", "nowhere"], "unknown dataset"),
        (["--judge", "smollm2-135m", "--scoring", "vibes"], "'generate', 'options', 'both'"),
        (["--judge", "smollm2-135m", "--engin", "api"], "--engine"),
        (["--judge", "smollm2-135m", "--engine", "abacus"], "'vllm', 'api', 'systemone', 'ray'"),
        ([], "Missing option '--judge'"),
        (["--judge", "smollm2-135m", "--templates", "x.yaml"], "no file x.yaml"),
        (["--judge", "smollm2-135m", "--repeats", "0"], "--repeats"),
        (["--judge", "m", "--set", "base_url=https://example.org/v1"], "OPENAI_API_KEY"),
        (
            ["--judge", "m", "--set", "base_url=http://localhost:1/v1", "--max-cost", "1"],
            "--set price",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], said: str, tmp_path: Path, command_line: Any
) -> None:
    done = command_line("run", *arguments, "--out", tmp_path / "out", OPENAI_API_KEY="")
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.rglob("part-*"))


def test_an_out_that_cannot_be_written_is_refused_before_anything_is_loaded(
    tmp_path: Path, command_line: Any
) -> None:
    (tmp_path / "file").write_text("in the way")
    done = command_line("run", "--judge", "smollm2-135m", "--out", tmp_path / "file" / "run")
    assert done.returncode == 2
    assert "cannot write to" in done.stderr


@pytest.mark.slow
def test_a_full_disk_is_told_and_what_was_judged_is_kept(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=144k", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        with pytest.raises(JudgeSenseError, match="No space left on device; finished parts"):
            judgesense.run(says_yes, out=small / "run")
        assert list((small / "run/decisions").glob("part-*.parquet"))
        resize = ["mount", "-o", "remount,size=64m", str(small)]
        subprocess.run(resize, check=True)
        report = judgesense.run(says_yes, out=small / "run")
        assert report["cells"]
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_dry_run_says_what_would_be_judged_and_writes_nothing(
    tmp_path: Path, command_line: Any
) -> None:
    done = command_line("run", "--judge", "smollm2-135m", "--dry-run", "--out", tmp_path / "out")
    assert done.returncode == 0
    assert "factuality: 50 items, 250 pairs" in done.stdout
    assert "distinct prompts" in done.stdout
    assert not (tmp_path / "out").exists()


def test_the_help_of_run_fits_two_screens(command_line: Any) -> None:
    shown = command_line("run", "--help", COLUMNS="80").stdout
    assert len(shown.splitlines()) <= 49
    assert max(map(len, shown.splitlines())) <= 80
    options = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", shown, flags=re.MULTILINE)
    assert len(options) == len(set(options))
    assert len(set(options) - {"--help"}) <= 23
    for choices in ("generate|options|both", "AB|BA|AB,BA", "transformers|vllm|api|systemone|ray"):
        assert choices in shown


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, judgesense.cli\n"
        "try: judgesense.cli.app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'transformers', 'scipy', 'pandas', 'matplotlib', 'datasets', 'numpy',\n"
        "         'pyarrow', 'yaml', 'pydantic', 'local_judges.options'}\n"
        "print('loaded:', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "loaded: []" in done.stdout


@pytest.mark.slow
def test_a_real_judge_end_to_end_then_again_without_its_model(
    tmp_path: Path, command_line: Any
) -> None:
    command = [
        "run",
        "--judge",
        "smollm2-135m",
        "--tasks",
        "factuality,relevance",
        "--limit",
        "2",
        "--out",
        str(tmp_path),
    ]
    done = command_line(*command)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["judges"][0]["name"].startswith("smollm2-135m@")
    assert record["judges"][0]["describe"]["dtype"] == "float32"
    assert "report.html" in done.stdout
    # With transformers out of reach, a finished run still prints its table.
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "transformers.py").write_text("raise RuntimeError('loaded')")
    again = subprocess.run(
        [sys.executable, "-m", "judgesense", *command],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(blocked), *sys.path))},
        check=False,
    )
    assert again.returncode == 0, again.stderr
    assert again.stdout == done.stdout


@pytest.mark.slow
def test_a_prompt_longer_than_the_context_is_an_error_and_the_rest_go_on(
    tmp_path: Path, command_line: Any
) -> None:
    items = tmp_path / "items.jsonl"
    rows = [json.loads(line) for line in OWN["items"].read_text().splitlines()[:2]]
    rows[0]["message"] = "please " * 9000
    items.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = command_line(
        "run",
        "--judge",
        "smollm2-135m",
        "--scoring",
        "options",
        "--templates",
        OWN["templates"],
        "--items",
        items,
        "--out",
        tmp_path / "run",
    )
    assert done.returncode == 1
    assert "3 prompts have no answer" in done.stderr
    assert "8192" in done.stderr
    from judgesense.log.schema import read_log

    statuses = read_log(tmp_path / "run")["status"].to_pylist()
    assert sorted(statuses) == ["error"] * 3 + ["ok"] * 3
