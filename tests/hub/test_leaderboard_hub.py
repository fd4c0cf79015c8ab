"""The leaderboard of a results dataset: read from a loopback Hub, and what it shows without one."""

from __future__ import annotations

import pytest
from rule_run import make_run

pytestmark = pytest.mark.slow

READ = """
import hub_scripts.leaderboard.sources as sources

source = sources.open_results("org/results")
board = source.board()
print(sorted(board.runs))
first = min(board.runs)
print(sorted(path.name for path in source.run_dir(first).rglob("*.parquet")))
print(board.where.startswith("org/results at "))
"""

LINKED = """
import re

from hub_scripts.leaderboard.pages.submit import submit

source = sources.open_results(None)
host = sources.hub_client().constants.ENDPOINT
run = f"org/results/tree/main/{first}"
for link in (first, run, f"{host}/datasets/{run}", "org/results",
             "https://elsewhere.example/org/results", "org/none"):
    shown = submit(source, None, link=link)
    print(("Accepted" in shown), re.sub(r"<[^>]+>|\\s+", " ", shown)[:160])
"""

WITHOUT = """
from hub_scripts.leaderboard.sources import open_results

board = open_results("org/nothing", or_embedded=True).board()
print(sorted(board.runs), len(board.notes))
try:
    open_results("org/nothing")
except ValueError as error:
    print(error)
"""


def test_a_results_dataset_is_read_and_its_decisions_fetched_when_asked(
    publish, read_back, tmp_path
):
    for name in ("rule@0001", "rule@0002"):
        run = make_run(tmp_path / name, name)
        assert publish("results", run, "--repo", "org/results").returncode == 0
    runs, decisions, named, *linked = read_back(READ + LINKED).strip().splitlines()
    assert runs.count("by-rule-") == 2
    assert decisions == "['pairs.parquet', 'part-00-000.parquet']"
    assert named == "True"
    assert [line.split()[0] for line in linked] == ["False", "True", "True", *["False"] * 3]
    told = ["is not a dataset on the Hub", "", "", "has 2 runs", "is not a dataset", "cannot read"]
    assert all(part in line for part, line in zip(told, linked, strict=True)), linked


def test_without_the_dataset_the_space_shows_what_is_embedded_and_says_so(read_back):
    shown, told = read_back(WITHOUT).strip().splitlines()
    assert shown == "['qwen2.5-coder-1.5b', 'smollm2-135m'] 1"
    assert told.startswith("cannot read the results dataset org/nothing (RepositoryNotFound")
