"""``judgesense mcp``: an agent's questions, answered by the server as a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

import judgesense
from judgesense.cli.mcp_server import server
from judgesense.errors import JudgeSenseError

ROWS = [
    {"reply": f"reply {n}", "verdict": "PASS" if n % 3 else "FAIL.", "human": "pass"}
    for n in range(30)
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    rows = [{**row, "human": "fail" if n == 0 else row["human"]} for n, row in enumerate(ROWS)]
    (root / "mine.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "secret.csv").write_text("id,verdict,label\n1,PASS,PASS\n")
    (root / "link.csv").symlink_to(tmp_path / "secret.csv")
    judgesense.check(rows, out=root / "run", note=str)
    return root


def answers(root: Path, *calls: tuple[str, Mapping[str, Any]]) -> list[Any]:
    """What the server answers to each call: its value, or the error's text."""

    async def ask() -> list[Any]:
        command = StdioServerParameters(
            command=sys.executable,
            args=["-c", "from judgesense.cli import main; main()", "mcp", str(root)],
            env={"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        async with Client(stdio_client(command)) as client:
            replies = [await client.call_tool(name, dict(values)) for name, values in calls]
        return [
            reply.content[0].text if reply.is_error else reply.structured_content
            for reply in replies
        ]

    return asyncio.run(asyncio.wait_for(ask(), 120))


@pytest.mark.slow
def test_an_agent_checks_a_file(folder: Path) -> None:
    before = sorted(path for path in folder.rglob("*"))
    files, reading, check, gate, report = answers(
        folder,
        ("files", {}),
        ("reading", {"file": "mine.jsonl"}),
        ("check", {"file": "mine.jsonl", "items": 2}),
        ("check", {"file": "mine.jsonl", "require": ["right=0.9"]}),
        ("report", {"folder": "run"}),
    )
    assert {"mine.jsonl", "run/"} <= set(files["result"])
    assert any("verdict" in line for line in reading["result"])
    (judge,) = check["judges"]
    assert judge["checks"]["readable"]["estimate"] == 1
    assert "70%" in judge["checks"]["right"]["text"]  # 20 of the 29 labels pass, and the one fail
    assert len(check["disagreements"]) == 2
    assert check["n_disagreements"] == 9
    assert check["decision"] is None
    assert gate["decision"] == "FAIL"
    assert report["judges"][0]["checks"] == judge["checks"]
    assert sorted(path for path in folder.rglob("*")) == before


@pytest.mark.slow
def test_an_agent_asks_whether_it_was_the_judge(folder: Path) -> None:
    for name, good in (("old", 20), ("new", 32)):
        rows = [
            {"item_id": n, "output": f"answer {n}", "verdict": "PASS" if n < good else "FAIL"}
            for n in range(40)
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    before = sorted(folder.rglob("*"))
    (found,) = answers(
        folder, ("compare", {"old": "old.jsonl", "new": "new.jsonl", "positive": "PASS"})
    )
    # No output changed, so the whole change is the judge's.
    assert found["split"]["n_anchors"] == 40
    assert found["split"]["judge"] == pytest.approx(0.3)
    assert found["split"]["system"] == pytest.approx(0)
    assert sorted(folder.rglob("*")) == before


def test_what_is_refused(folder: Path) -> None:
    outside, link, absent, column, judge = answers(
        folder,
        ("check", {"file": "../secret.csv"}),
        ("check", {"file": "link.csv"}),
        ("check", {"file": "none.csv"}),
        ("check", {"file": "mine.jsonl", "verdict": ["nothing"]}),
        ("reading", {"file": str(folder.parent / "secret.csv")}),
    )
    assert "outside the folder" in outside
    assert "outside the folder" in link
    assert "files()" in absent
    assert "nothing" in column
    assert "outside the folder" in judge
    with pytest.raises(JudgeSenseError, match="no folder"):
        server(folder / "none")
