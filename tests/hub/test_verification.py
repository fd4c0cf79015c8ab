"""A run is held against its benchmark, and "measured here" only once a maintainer asked again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rule_run import make_judge, make_run
from typer.testing import CliRunner

import judgesense
from hub_scripts.leaderboard.runs import find_runs
from hub_scripts.leaderboard.site import write_site
from hub_scripts.results import results_publication
from hub_scripts.verification import VERIFIED, ask_again, is_verified, write_verification
from judgesense.errors import JudgeSenseError
from judgesense.log.folder import digests_of, read_record, save_run
from judgesense.log.schema import PARTS, part_files, read_log, write_part
from judgesense.reporting.report import write_report
from local_judges.callable_judge import CallableJudge

NAME = "steady-70b"
Row = dict[str, Any]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a judge by rule on the embedded benchmark."""
    out = tmp_path_factory.mktemp("honest") / "run"
    judgesense.run(make_judge(NAME), name=NAME, tasks=["factuality"], out=out, note=str)
    return out


@pytest.fixture
def run(honest: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(honest, tmp_path / "runs" / "run"))


def forged(run: Path, change: Callable[[Row], Row]) -> None:
    """Change the rows of a run, and make its record and report agree with them."""
    rows = [change(row) for row in read_log(run).to_pylist()]
    schema = read_log(run).schema
    for part in part_files(run):
        part.unlink()
    write_part(pa.Table.from_pylist(rows, schema=schema), run / PARTS, "part-00-000-000000.parquet")
    record = read_record(run) or {}
    record |= {"parts": {"part-00-000-000000.parquet": len(rows)}, "digests": digests_of(run)}
    save_run(run, record)
    write_report(run)


def always_right(row: Row) -> Row:
    """The verdict is the gold label; the reply beside it stays what it was."""
    return {**row, "raw_decision": row["gold"], "decision": row["gold"]}


def gold_is_verdict(row: Row) -> Row:
    return {**row, "gold": row["decision"]}


def no_replies(row: Row) -> Row:
    return {**row, "raw_text": None}


def another_prompt(row: Row) -> Row:
    return {**row, "prompt_id": "0" * 16}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (always_right, "decision is"),
        (gold_is_verdict, "gold is"),
        (no_replies, "decision is"),
        (another_prompt, "has no such prompt"),
        (lambda row: {**row, "item_id": f"{row['item_id']}-mine"}, "has no such prompt"),
    ],
)
def test_a_forged_run_is_not_published_and_not_shown(
    run: Path, tmp_path: Path, change: Callable[[Row], Row], reason: str
) -> None:
    forged(run, change)
    with pytest.raises(JudgeSenseError, match=reason):
        results_publication(run, "org/results")
    board = write_site(find_runs(str(run.parent)), tmp_path / "site", note=str)
    assert not board["rows"]
    assert reason in board["left_out"][0]["why"]


def kinds(run: Path, out: Path) -> set[str]:
    return {row["kind"] for row in write_site(find_runs(str(run.parent)), out, note=str)["rows"]}


def test_a_run_is_reported_until_it_was_asked_again(run: Path, tmp_path: Path) -> None:
    assert results_publication(run, "org/results").files
    assert kinds(run, tmp_path / "before") == {"reported"}
    found = ask_again(run, CallableJudge(make_judge(NAME), name=NAME, scoring="generate"), 20)
    assert (found.asked, found.same, found.holds) == (20, 20, True)
    assert write_verification(run, found) == run.parent / VERIFIED
    assert kinds(run, tmp_path / "after") == {"measured here"}
    # Not for other decisions, and not by a file inside the run.
    forged(run, lambda row: {**row, "latency_s": 0.0})
    (run / VERIFIED).write_text((run.parent / VERIFIED).read_text())
    assert not is_verified(run)
    assert kinds(run, tmp_path / "changed") == {"reported"}


def test_invented_replies_are_found_by_asking_again(run: Path) -> None:
    def invented(row: Row) -> Row:
        said = "YES" if row["raw_decision"] == "NO" else "NO"
        meant = "YES" if row["decision"] == "NO" else "NO"
        return {**row, "raw_text": said, "raw_decision": said, "decision": meant}

    forged(run, invented)
    found = ask_again(run, CallableJudge(make_judge(NAME), name=NAME, scoring="generate"), 20)
    assert (found.asked, found.same, found.holds) == (20, 0, False)
    write_verification(run, found)
    assert not is_verified(run)


def test_data_of_the_users_own_cannot_be_verified(tmp_path: Path) -> None:
    own = make_run(tmp_path / "runs" / "own")
    judge = CallableJudge(lambda texts: ["YES"] * len(texts), name="rule", scoring="generate")
    with pytest.raises(JudgeSenseError, match="data of its own"):
        ask_again(own, judge, 5)
    assert kinds(own, tmp_path / "site") == {"reported"}


def test_verify_is_a_command(run: Path) -> None:
    from judgesense.cli import app

    said = CliRunner().invoke(app, ["publish", "verify", str(run)])
    assert "--judge" in str(said.exception or said.output)
    (run.parent / VERIFIED).write_text(json.dumps({"run": {"digest": 5}}))
    assert not is_verified(run)
