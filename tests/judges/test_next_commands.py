"""Every command that a next step prints is taken by the command line, and runs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import typer.main
from fake_endpoint import FakeEndpoint, serving
from typer.testing import CliRunner

from judgesense.cli import app
from judgesense.importers.log import import_log
from judgesense.measure.assessment import Chance, Outlook, Plan, RemedyFigures
from judgesense.measure.figures import WordingRow
from judgesense.measure.next import KINDS, RULES
from judgesense.measure.situation import Commands, Situation
from judgesense.reporting.report import report_runs, write_report

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests/importers/data"


def parsed(command: str) -> dict[str, Any]:
    """The parameters of a printed command; Click raises for one that it does not take."""
    program, *words = shlex.split(command)
    assert program == "judgesense"
    found: Any = typer.main.get_command(app)
    while hasattr(found, "commands"):
        found, words = found.commands[words[0]], words[1:]
    return found.make_context(found.name, words).params


def steps(folder: Path) -> list[dict[str, Any]]:
    """The next steps of a run's report, whose commands all parse."""
    found: list[dict[str, Any]] = json.loads((folder / "report.json").read_text("utf-8"))["next"]
    for step in found:
        assert step["kind"] in KINDS
        assert step["text"].endswith(":") == (step["command"] is not None) or step["command"]
        if step["command"] is not None:
            parsed(step["command"])
    return found


def run(*words: str) -> None:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code in (0, 1, 3), (done.output, done.exception)


@pytest.fixture
def knowing() -> FakeEndpoint:
    """A judge that knows the embedded factuality answers and every rude message."""
    rows = (ROOT / "judgesense_dataset/data/factuality.jsonl").read_text("utf-8").splitlines()
    gold = {row["response"]: row["gold"] for row in map(json.loads, rows)}

    def rule(text: str) -> str:
        known = next((label for said, label in gold.items() if said in text), None)
        if known is None:
            return "RUDE" if any(word in text for word in ("Did", "Deal", "Shut")) else "POLITE"
        opposite = "contain factual errors" in text
        return {"YES": "NO", "NO": "YES"}[known] if opposite else known

    return FakeEndpoint(rule)


def test_the_steps_of_a_dataset_run_lead_on_and_keep_what_the_run_was_told(
    knowing: FakeEndpoint, tmp_path: Path
) -> None:
    out, kinds = tmp_path / "run", []
    with serving(knowing) as url:
        words = [
            "run",
            "--judge",
            "m",
            "--set",
            f"base_url={url}",
            "--set",
            "max_tokens=5",
            "--tasks",
            "factuality",
            "--scoring",
            "generate",
            "--limit",
            "20",
        ]
        run(*words, "--out", str(out))
        for _ in range(4):
            (step,) = steps(out)
            kinds.append(step["kind"])
            if step["command"] is None or step["kind"] == "use":
                break
            asked = parsed(step["command"])
            assert {f"base_url={url}", "max_tokens=5"} <= set(asked["settings"])
            assert (asked["tasks"], asked["scoring"]) == ("factuality", "generate")
            assert asked["out"] not in ("", str(out))
            run(*shlex.split(step["command"])[1:])
            out = Path(asked["out"])
    assert kinds[0] == "add_items"
    assert len(kinds) > 1


def test_a_judge_of_own_files_is_written_and_used(knowing: FakeEndpoint, tmp_path: Path) -> None:
    entry = {
        "labels": ["POLITE", "RUDE"],
        "layout": "{instruction}\n\n{message}",
        "templates": [
            {"id": f"w{n}", "text": f"{lead} POLITE or RUDE?"}
            for n, lead in enumerate(("Is it", "Would you say this is", "Is the message"))
        ],
    }
    templates, items = tmp_path / "own wordings.yaml", tmp_path / "own items.jsonl"
    templates.write_text(json.dumps({"tasks": {"tone": entry}}))
    rows = [
        {
            "item_id": f"i{n}",
            "gold": ("RUDE", "POLITE")[n % 2],
            "message": f"{('Shut up', 'Thank you')[n % 2]}, {n}.",
        }
        for n in range(60)
    ]
    items.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "run"
    with serving(knowing) as url:
        run(
            "run",
            "--judge",
            "m",
            "--set",
            f"base_url={url}",
            "--templates",
            str(templates),
            "--items",
            str(items),
            "--scoring",
            "generate",
            "--out",
            str(out),
        )
        (step,) = steps(out)
        assert step["kind"] == "add_contrast"
        asked = parsed(step["command"])
        assert (asked["templates"], asked["items"]) == (templates, items)
        record = json.loads((out / "run.json").read_text("utf-8"))
        made = tmp_path / "stable.yaml"
        run("stabilise", str(out), "--remedy", "as asked", "--out", str(made))
        again = tmp_path / "again"
        run(
            "run",
            "--judge",
            str(made),
            "--templates",
            str(templates),
            "--items",
            str(items),
            "--out",
            str(again),
        )
        (step,) = steps(again)
        assert step["command"] is None or parsed(step["command"])["judge"] == [str(made)]
    assert record["invocation"]["options"]["judge"] == ["m"]


def test_a_check_of_an_own_rubric_names_its_files(knowing: FakeEndpoint, tmp_path: Path) -> None:
    for name in ("tone.txt", "tone.jsonl", "tone.wordings.txt"):
        (tmp_path / name).write_text((ROOT / "examples" / name).read_text("utf-8"), "utf-8")
    rubric, data, out = (tmp_path / name for name in ("tone.txt", "tone.jsonl", "out"))
    with serving(knowing) as url:
        run(
            "check",
            str(rubric),
            "--data",
            str(data),
            "--judge",
            "m",
            "--set",
            f"base_url={url}",
            "--wordings",
            str(tmp_path / "tone.wordings.txt"),
            "--out",
            str(out),
        )
        (step,) = steps(out)
        asked = parsed(step["command"])
    assert (asked["source"], asked["data"]) == (rubric, data)
    assert f"base_url={url}" in asked["settings"]
    assert asked["out"] == tmp_path / "out-2"


def test_a_failing_judge_of_a_rubric_is_to_be_improved(tmp_path: Path) -> None:
    rubric, data, out = (tmp_path / name for name in ("my rubric.txt", "rows.jsonl", "out"))
    rubric.write_text("Is the reply polite? {reply}")
    rows = [{"id": n, "reply": f"Reply {n}.", "mood": ("YES", "NO")[n % 2]} for n in range(40)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with serving(FakeEndpoint(lambda text: "YES")) as url:
        run(
            "check",
            str(rubric),
            "--data",
            str(data),
            "--judge",
            "m",
            "--set",
            f"base_url={url}",
            "--human",
            "mood",
            "--paraphrases",
            "0",
            "--out",
            str(out),
        )
        (step,) = steps(out)
        assert step["kind"] == "improve"
        asked = parsed(step["command"])
        assert (asked["source"], asked["data"], asked["judge"]) == (rubric, data, ["m"])
        assert (asked["human"], asked["settings"]) == ("mood", [f"base_url={url}"])
        run(*shlex.split(step["command"])[1:], "--dry-run")


def _row(kind: Any, **given: Any) -> Any:
    """A row of figures whose other fields are None."""
    return kind(**{**{each.name: None for each in fields(kind)}, **given})


def situations(folder: Path) -> Iterator[Situation]:
    """The cases of a run in which each advice has what it names: what settles it are items, labels
    or wordings."""
    report = report_runs(folder)
    record = json.loads((folder / "run.json").read_text("utf-8"))
    (entry, *_) = report.assessments
    row = {"remedy": "both orders", "trust": "care", "because": (), "text": "t", "n_items": 24}
    remedy = _row(RemedyFigures, **row, accuracy=0.9, accuracy_before=0.8, gain=0.1)
    wording = _row(WordingRow, template="w1", flag="inverted")
    needs = [
        {"items_needed": 90},
        {"labels_needed": 40, "items_needed": 90},
        {"wordings_needed": 9},
    ]
    for needed in [*needs, {}]:
        plan = _row(Plan, open=("right",), n_items=24, n_labels=24, chances=(Chance(50, 0.5, 0.5),))
        plan = replace(plan, **needed)
        outlook = replace(entry.outlook or Outlook(None, None), settles=plan)
        case = Situation(
            replace(entry, outlook=outlook), record, Commands(record, folder, entry.subject)
        )
        found = {"better_remedy": remedy, "wrong_wordings": [wording], "often_wrong": 9}
        vars(case).update(found, promising=(remedy, plan))
        yield case


@pytest.mark.parametrize(
    "kind",
    [
        "rubric",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("wordings", "run", "file")),
    ],
)
def test_every_step_of_the_table_runs_as_printed(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", lambda *_: True)
    rows = [
        {"id": f"m{n}", "message": f"{('Shut up', 'Thank you')[n % 2]}, {n}."} for n in range(24)
    ]
    labelled = [{**row, "human": ("RUDE", "POLITE")[n % 2]} for n, row in enumerate(rows)]
    judged = [{**row, "verdict": "RUDE" if n % 3 else "POLITE"} for n, row in enumerate(labelled)]
    rows = judged if kind == "file" else labelled
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    Path("tone.txt").write_text("Is it POLITE or RUDE?\n\n{message}")
    if kind == "wordings":
        Path("w.txt").write_text("Polite or rude? {message}\n---\nRUDE or POLITE? {message}")
    words = ("NO", "YES") if kind == "run" else ("RUDE", "POLITE")
    with serving(FakeEndpoint(lambda text: words["Shut" not in text])) as url:
        judge = ["--judge", "m", "--set", f"base_url={url}", "--out", "out"]
        if kind == "file":
            run("check", "rows.jsonl", "--out", "out")
        elif kind == "run":
            run("run", *judge, "--tasks", "factuality", "--scoring", "generate", "--limit", "4")
        else:
            more = ["--wordings", "w.txt"] if kind == "wordings" else ["--paraphrases", "0"]
            run("check", "tone.txt", "--data", "rows.jsonl", *judge, *more)
        commands = set[str]()
        for case in situations(Path("out")):
            for _, advice in RULES:
                if (found := advice(case)).command is not None:
                    commands.add(found.command)
        for command in sorted(commands):
            asked = parsed(command)
            if command.split()[1] != "label":  # It serves a page until it is stopped.
                done = CliRunner().invoke(app, shlex.split(command)[1:])
                assert done.exit_code in (0, 1, 3), (command, done.output, done.exception)
            assert asked
    assert commands


def _table(folder: Path) -> tuple[Path, dict[str, Any]]:
    rows = [f"m,t,{n},{w},{'YES' if n % 3 else 'NO'}" for n in range(30) for w in "ab"]
    (folder / "log.csv").write_text("who,task,item_id,template_id,raw_decision\n" + "\n".join(rows))
    return folder / "log.csv", {"columns": {"judge": "who"}, "labels": ["YES", "NO"]}


def _inspect(folder: Path) -> tuple[Path, dict[str, Any]]:
    grading = [{"role": "user", "content": "Is it so?"}, {"content": "C", "model": "m/g"}]
    samples = [
        {
            "id": n,
            "epoch": 1,
            "input": f"q{n}",
            "target": "t",
            "output": {"completion": "a"},
            "scores": {"g": {"value": "CI"[n % 2], "metadata": {"grading": grading}}},
        }
        for n in range(4)
    ]
    log = {"version": 2, "eval": {"model": "m/x", "task": "t"}, "samples": samples}
    (folder / "log.json").write_text(json.dumps(log))
    return folder / "log.json", {}


def _kept(name: str) -> Callable[[Path], tuple[Path, dict[str, Any]]]:
    return lambda _: (DATA / name, {})


@pytest.mark.parametrize(
    ("format", "make"),
    [
        ("table", _table),
        ("inspect", _inspect),
        ("promptfoo", _kept("promptfoo_results.json")),
        ("deepeval", _kept("deepeval_test_run.json")),
    ],
)
def test_an_imports_step_names_the_imported_file(format, make, tmp_path: Path) -> None:
    source, options = make(tmp_path)
    import_log(source, format, tmp_path / "out", **options)
    write_report(tmp_path / "out")
    commands = [step["command"] for step in steps(tmp_path / "out") if step["command"]]
    assert commands
    for command in commands:
        asked = parsed(command)
        assert asked["source"] == source
        assert asked["out"] in (None, tmp_path / "out-2")
    if format == "table":
        run(*shlex.split(commands[0])[1:])
