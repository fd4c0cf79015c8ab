"""The Action: its inputs, its pages, and all its steps in a shell with the runner's files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from loopback import Loopback, section, serving

from judgesense.errors import JudgeSenseError
from judgesense.integrations import github
from judgesense.integrations.github import Inputs, Runner, read_inputs

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
RUDE = (
    "Deal with it",
    "Did nobody",
    "before you complain",
    "better things",
    "Shut",
    "child",
    "idiot",
    "be quick",
    "Move",
    "Learn",
)


def steady(text: str) -> str:
    """Reads the message alone."""
    return "RUDE" if any(word in text for word in RUDE) else "POLITE"


def moody(text: str) -> str:
    """Decides by the letters of the whole prompt, the wording included."""
    return "RUDE" if sum(text.encode()) % 7 < 3 else "POLITE"


def pull_request(head: str | None = "me/mine") -> dict[str, Any]:
    return {
        "pull_request": {
            "number": 7,
            "head": {"repo": head and {"full_name": head}},
            "base": {"repo": {"full_name": "me/mine"}},
        }
    }


def test_the_action_declares_the_inputs_that_are_read() -> None:
    assert set(ACTION["inputs"]) == {field.alias for field in Inputs.model_fields.values()}
    required = {name for name, entry in ACTION["inputs"].items() if entry.get("required")}
    assert required == {"rubric", "data", "judge"}


def test_no_input_is_pasted_into_a_script() -> None:
    scripts = [step["run"] for step in ACTION["runs"]["steps"] if "run" in step]
    assert len(scripts) == 4
    assert not [script for script in scripts if "${{" in script]


def test_inputs_become_arguments() -> None:
    told = {
        "rubric": " r.txt ",
        "data": "d.csv",
        "judge": "j",
        "threshold": "0.9",
        "repeats": "1",
        "answers": "A,B",
        "options": "A=one,B=two",
        "max-cost": "2.5",
        "settings": "base_url=http://h/v1\n\ntemperature=0.5\n",
        "limit": "",
        "seed": None,
    }
    given, options = read_inputs(json.dumps(told))
    assert given == {
        "rubric": "r.txt",
        "data": "d.csv",
        "judge": "j",
        "threshold": 0.9,
        "repeats": 1,
        "answers": ("A", "B"),
        "options": {"A": "one", "B": "two"},
    }
    assert options == {"max_cost": 2.5, "base_url": "http://h/v1", "temperature": 0.5}


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"judge": " "}, "inputs, judge: "),
        ({"repeats": "2.5"}, "found '2.5'"),
        ({"threshold": "high"}, "found 'high'"),
        ({"rubic": "x"}, "inputs, rubic: "),
        ({"settings": "max_tokens"}, "expected KEY=VALUE"),
        ([], "the Action's inputs: "),
    ],
)
def test_a_bad_input_is_named(changed: Any, named: str) -> None:
    told = changed and {"rubric": "r.txt", "data": "d.csv", "judge": "j", **changed}
    with pytest.raises(JudgeSenseError, match=re.escape(named)):
        read_inputs(json.dumps(told))


@pytest.mark.parametrize(
    ("event", "name", "actor", "none"),
    [
        (pull_request(), "pull_request", "ann", False),
        (pull_request("you/mine"), "pull_request", "ann", True),
        (pull_request(None), "pull_request", "ann", True),
        (pull_request(), "pull_request", "dependabot[bot]", True),
        (pull_request("you/mine"), "pull_request_target", "ann", False),
        ({"ref": "refs/heads/main"}, "push", "ann", False),
    ],
)
def test_who_gets_no_secrets(
    event: dict[str, Any], name: str, actor: str, none: bool, tmp_path: Path
) -> None:
    file = tmp_path / "event.json"
    file.write_text(json.dumps(event))
    told = {"GITHUB_EVENT_PATH": str(file), "GITHUB_EVENT_NAME": name, "GITHUB_ACTOR": actor}
    assert Runner(told).has_no_secrets is none


def test_outputs_and_annotations_cannot_be_forged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    Runner({"GITHUB_OUTPUT": str(out)}).tell(folder="a\ndecision=PASS\nb")
    assert outputs_of(out) == {"folder": "a\ndecision=PASS\nb"}
    github.annotate("error", "x,y::z", "one\n::set-output name=a::b")
    (line,) = capsys.readouterr().out.splitlines()
    assert line == "::error title=x%2Cy%3A%3Az::one%0A::set-output name=a::b"
    github._note("one\n::error::two")
    assert not [t for t in capsys.readouterr().out.splitlines() if t.startswith("::")]


@pytest.fixture
def server() -> Iterator[Loopback]:
    loopback = Loopback(steady)
    with serving(loopback):
        yield loopback


def test_text_of_others_calls_nobody_and_breaks_no_table() -> None:
    quiet = github.quiet("by @ann | <b> then `judgesense check @x | y` end")
    assert "@ann" not in quiet
    assert "\\|" in quiet
    assert " then `judgesense check @x | y` end" in quiet


def step(tmp_path: Path, head: str, inputs: dict[str, str], **more: str) -> tuple[int, str, Path]:
    """The step `check`: its exit code, its summary and the file of its outputs."""
    (tmp_path / "event.json").write_text(json.dumps(pull_request(head)))
    told = {
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "GITHUB_OUTPUT": str(tmp_path / "out"),
        "JUDGESENSE_INPUTS": json.dumps(inputs),
        **more,
    }
    code = github.check_step(told)
    return code, (tmp_path / "summary").read_text("utf-8"), tmp_path / "out"


def test_a_fork_is_skipped_where_a_secret_is_needed(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(repository)
    asked = {**TONE, "judge": "gpt-4o", "settings": "base_url=https://judge.invalid/v1"}
    code, summary, out = step(repository, "you/mine", asked)
    assert (code, outputs_of(out)) == (0, {"decision": "SKIPPED", "exit-code": "0"})
    assert "skipped" in summary
    assert "OPENAI\\_API\\_KEY" in summary
    assert "::notice" in capsys.readouterr().out
    # On a branch of the repository itself, the missing key is an error.
    code, summary, _ = step(repository, "me/mine", asked)
    assert code == 2
    assert "error" in summary
    assert "::error title=JudgeSense::" in capsys.readouterr().out


# The whole Action


def outputs_of(file: Path) -> dict[str, str]:
    """The outputs of a step, as the runner reads its file."""
    told: dict[str, str] = {}
    lines = iter(file.read_text("utf-8").splitlines())
    for line in lines:
        name, _, end = line.partition("<<")
        value = []
        for text in lines:
            if text == end:
                break
            value.append(text)
        told[name] = "\n".join(value)
    return told


@dataclass
class Job:
    """Runs the steps of action.yml as a runner does: expressions, conditions, files, exit codes."""

    home: Path
    python: Path
    event: dict[str, Any]
    secrets: dict[str, str] = field(default_factory=dict)
    exit_code: int = 0
    outputs: dict[str, str] = field(default_factory=dict)
    uploaded: list[str] = field(default_factory=list)
    summary: str = ""
    log: str = ""

    def value(self, text: str, inputs: dict[str, str]) -> str:
        """A text with its ${{ }} replaced."""
        known: dict[str, Callable[[], str]] = {
            "toJSON(inputs)": lambda: json.dumps(inputs, indent=2),
            "github.token": lambda: "token",
        }

        def one(found: re.Match[str]) -> str:
            asked = found[1].strip()
            if asked.startswith("inputs."):
                return inputs[asked.removeprefix("inputs.")]
            if asked.startswith("steps.check.outputs."):
                return self.outputs.get(asked.rpartition(".")[2], "")
            return known[asked]()

        return re.sub(r"\$\{\{(.*?)\}\}", one, text)

    def holds(self, condition: str, inputs: dict[str, str]) -> bool:
        parts = condition.strip().removeprefix("${{").removesuffix("}}").split("&&")
        for part in parts:
            left, sign, right = re.split(r"(==|!=)", part)
            same = self.value("${{" + left + "}}", inputs) == right.strip().strip("'")
            if same != (sign == "=="):
                return False
        return True

    def run(self, **given: str) -> Job:
        defaults = {name: entry.get("default", "") for name, entry in ACTION["inputs"].items()}
        inputs = {**defaults, **{name.replace("_", "-"): value for name, value in given.items()}}
        files = {name: self.home / f".{name}" for name in ("summary", "output", "event")}
        for name in ("summary", "output"):
            files[name].write_text("")
        files["event"].write_text(json.dumps(self.event))
        environment = {
            "PATH": f"{self.python.parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "PIP_NO_BUILD_ISOLATION": "0",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_ACTIONS": "true",
            "GITHUB_STEP_SUMMARY": str(files["summary"]),
            "GITHUB_OUTPUT": str(files["output"]),
            "GITHUB_EVENT_PATH": str(files["event"]),
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_REPOSITORY": "me/mine",
            "GITHUB_ACTOR": "ann",
            **self.secrets,
        }
        for step in ACTION["runs"]["steps"]:
            if (
                step.get("name") == "Install JudgeSense"
                and self.python.with_name("judgesense").exists()
            ):
                continue
            if self.exit_code or ("if" in step and not self.holds(step["if"], inputs)):
                continue
            if "uses" in step:
                if step["uses"].startswith("actions/upload-artifact@"):
                    told = self.value(step["with"]["path"], inputs).splitlines()
                    self.uploaded = [line for line in told if line]
                continue
            own = {key: self.value(text, inputs) for key, text in step.get("env", {}).items()}
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=self.home,
                env={**environment, **own},
                capture_output=True,
                text=True,
                timeout=400,
            )
            self.log += done.stdout + done.stderr
            self.exit_code = done.returncode
            self.outputs |= outputs_of(files["output"])
        self.summary = files["summary"].read_text("utf-8")
        return self


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment that borrows what the package and its extra `api` need."""
    home = tmp_path_factory.mktemp("runner") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    (site,) = (home / "lib").glob("python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    # The extra brings no sentence-transformers, whose import would take most of the time.
    absent = "raise ModuleNotFoundError(name=__name__)\n"
    (site / "sentence_transformers.py").write_text(absent)
    return home / "bin" / "python"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a rubric, three wordings of it, and 96 rows."""
    for name in ("tone.txt", "tone.wordings.txt"):
        (tmp_path / name).write_text((ROOT / "examples" / name).read_text("utf-8"), "utf-8")
    text = (ROOT / "examples/tone.jsonl").read_text("utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    text = ""
    for n in range(4):
        for row in rows:
            own = {key: f"{row[key]}-{n}" for key in ("item_id", "cluster_id")}
            told = f"{row['message']} (@ann | {n})"
            text += json.dumps({**row, **own, "message": told}) + "\n"
    (tmp_path / "tone.jsonl").write_text(text)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


PAGE = section("GitHub Actions")
(WORKFLOW,) = map(yaml.safe_load, re.findall(r"```yaml\n(name: .*?)```", PAGE, re.DOTALL))
(USED,) = [step for step in WORKFLOW["jobs"]["judge"]["steps"] if "judgesense@" in step["uses"]]
TONE = {**USED["with"], "judge": "rule", "repeats": "1"}


GH = """#!/usr/bin/env python3
import pathlib, sys
kept, given = pathlib.Path("comment-of-7"), sys.argv[1:]
if "--jq" in given:
    print("42" if kept.exists() else "")
else:
    place = "repos/me/mine/issues/" + ("comments/42" if kept.exists() else "7/comments")
    assert given[2:5] == ["--method", "PATCH" if kept.exists() else "POST", place], given
    kept.write_text(pathlib.Path(given[-1].removeprefix("body=@")).read_text())
"""
"""GitHub's own command, with one pull request."""


@pytest.mark.slow
def test_the_steps_of_the_action(repository: Path, python: Path, server: Loopback) -> None:
    def job(rule: Callable[[str], str], head: str = "me/mine", **inputs: str) -> Job:
        server.rule = rule
        made = Job(repository, python, pull_request(head))
        settings = "\n".join([f"base_url={server.url}/v1", inputs.pop("settings", "")])
        return made.run(**TONE, settings=settings, **inputs)

    good = job(steady)
    told = (good.exit_code, good.outputs.get("decision"), good.outputs.get("jss"))
    assert told == (0, "PASS", "1.000000"), good.log
    paths = [repository / path for path in good.uploaded]
    names = ["report.html", "badge.svg", "check", "run.json", "pairs.parquet", "decisions"]
    assert [path.name for path in paths] == names
    assert all(path.exists() for path in paths)
    assert ET.parse(paths[1]).getroot().tag.endswith("svg")
    assert good.summary.startswith("## JudgeSense: PASS for tone")

    # A judge that the wording sways.
    bad = job(moody, settings="model=moody")
    assert (bad.exit_code, bad.outputs["decision"]) == (1, "FAIL"), bad.log
    rows = [line for line in bad.summary.splitlines() if line.startswith("| rule | ")]
    flips = [row for row in rows if ": RUDE" in row and ": POLITE" in row]
    assert len(flips) == 3
    assert "@ann" not in re.sub(r"```text.*?```", "", bad.summary, flags=re.DOTALL)
    assert "::error title=JudgeSense%3A FAIL::" in bad.log

    # A fork's judge needs no secret.
    few = job(steady, head="you/mine", limit="12", inconclusive="fail")
    assert (few.exit_code, few.outputs["decision"]) == (1, "INCONCLUSIVE"), few.log
    asked = server.asked
    few = job(steady, limit="12")
    assert (few.exit_code, server.asked) == (0, asked), few.log
    assert "::warning title=JudgeSense%3A INCONCLUSIVE::" in few.log
    assert not (repository / "comment-of-7").exists()

    # One comment, kept up to date; without the permission, a warning.
    gh = python.with_name("gh")
    for rule, decision, settings in ((steady, "PASS", ""), (moody, "FAIL", "model=moody")):
        gh.write_text(GH)
        gh.chmod(0o755)
        job(rule, comment="true", settings=settings)
        mark, title, *rest = (repository / "comment-of-7").read_text("utf-8").splitlines()
        assert mark.startswith("<!-- judgesense ")
        assert title.startswith(f"## JudgeSense: {decision} for tone")
        assert not [line for line in rest if line.startswith("|")]
    gh.write_text("#!/bin/sh\nexit 1\n")
    refused = job(steady, comment="true")
    assert (refused.exit_code, "pull-requests: write" in refused.log) == (0, True), refused.log
