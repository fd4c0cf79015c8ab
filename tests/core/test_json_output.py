"""Every command prints its result as one JSON document on stdout if asked to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from typer.testing import CliRunner

from judgesense.cli import app

WITHOUT = {
    "demo": "shows a recorded run; judgesense report DIR prints it as JSON",
    "label": "serves a page until it is stopped",
    "leaderboard": "serves a site until it is stopped",
    "mcp": "speaks JSON-RPC until its client closes it",
    "serve": "serves a judge until it is stopped",
    "view": "serves pages until it is stopped",
}
OWN_FORMAT = {"import"}
"""Their --format is that of a file, so they have --json."""

LOG = "model,id,prompt,verdict,right\n" + "".join(
    f"m,{n},{prompt},{'YES' if n % 3 else 'NO'},{'YES' if n % 2 else 'NO'}\n"
    for n in range(12)
    for prompt in ("plain", "polite")
)
COLUMNS = "judge=model,item_id=id,template_id=prompt,raw_decision=verdict,gold=right,task=:claims"


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def test_every_command_can_print_json() -> None:
    root, lacking = typer.main.get_command(app), set()
    context = root.make_context("judgesense", ["--help"], resilient_parsing=True)
    for path, command in commands(root):
        choices = {
            flag: (param.get_help_record(context) or ("",))[0]  # a hidden one has none
            for param in command.params
            for flag in param.opts
        }
        if path[0] in OWN_FORMAT:
            assert "--json" in choices, path
        elif "--format" not in choices or "json" not in choices["--format"]:
            lacking.add(" ".join(path))
    assert lacking == set(WITHOUT)


def printed(*arguments: str | Path, code: int = 0, flag: str = "--format=json") -> Any:
    done = CliRunner().invoke(app, [*map(str, arguments), flag], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def test_what_is_printed_is_one_document(tmp_path: Path) -> None:
    run, log = tmp_path / "run", tmp_path / "log.csv"
    log.write_text(LOG, "utf-8")
    record = printed(
        "import", log, "--format", "table", "--out", run, "--columns", COLUMNS, flag="--json"
    )
    assert record["out"] == str(run)
    assert record["counts"]["claims"] == {"ok": 24}
    asked = (
        "run",
        "--judge",
        "gpt-4o",
        "--limit",
        "1",
        "--tasks",
        "factuality",
        "--scoring",
        "generate",
        "--out",
        tmp_path / "out",
    )
    dry = printed(*asked, "--dry-run")
    sizes = {name: dry["tasks"]["factuality"][name] for name in ("items", "pairs", "prompts")}
    assert sizes == {"items": 1, "pairs": 5, "prompts": 5}
    assert [(judge["prompts"], judge["repeats"]) for judge in dry["judges"]] == [(5, 1)]
    assert not (tmp_path / "out").exists()
    assert printed("judges", "show", "gpt-4o")["published"][0]["judge"] == "gpt-4o"
    options = printed("judges", "list", "--options")["options"]
    assert {"max_tokens", "temperature"} <= {row["key"] for row in options}
    shown = printed("dataset", "show", "--pairs", "1")
    assert shown["tasks"]["coherence"]["pairs"] == 250
    assert len(shown["tasks"]["coherence"]["shown"]) == 1
