"""Submitted runs and comparisons are measured again in a process that cannot take others down."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from leaderboard_runs import make_runs
from rule_run import make_run

import judgesense
from hub_scripts.leaderboard import worker
from hub_scripts.leaderboard.checks import NAMES
from hub_scripts.leaderboard.pages.compare import comparison
from hub_scripts.leaderboard.pages.judge import key_of
from hub_scripts.leaderboard.pages.submit import submit
from hub_scripts.leaderboard.sources import open_results
from judgesense.decisions.log import SCHEMA, read_log
from judgesense.text import signed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return make_runs(tmp_path_factory.mktemp("runs"), ("steady-70b", "wavering-1.5b"))


@pytest.fixture
def run_dir(tmp_path):
    return make_run(tmp_path / "by-rule")


def last(lines):
    return lines[-1]["name"], lines[-1]["passed"], lines[-1]["said"]


def rewrite(run_dir, column, values, **options):
    """The run's only part with one column replaced."""
    table = read_log(run_dir)
    table = table.set_column(SCHEMA.get_field_index(column), column, values)
    pq.write_table(table, run_dir / "decisions" / "part-00-000.parquet", **options)


def test_a_run_as_it_was_made_passes_every_check(runs):
    lines = worker.check(runs / "steady-70b", "org/results")
    assert [line["name"] for line in lines] == list(NAMES)
    assert all(line["passed"] for line in lines)
    assert lines[-1]["tag"] in lines[-1]["said"]


def test_a_figure_that_the_decisions_do_not_give_is_refused(run_dir):
    path = run_dir / "report.json"
    report = json.loads(path.read_text("utf-8"))
    report["cells"][0]["jss"] = 0.99
    path.write_text(json.dumps(report), "utf-8")
    name, passed, said = last(worker.check(run_dir, "org/results"))
    assert (name, passed) == ("figures and signatures", False)
    assert "jss is 0.99, but recomputed it is 0.8333" in said
    assert str(run_dir) not in said


def test_a_changed_decision_is_refused(run_dir):
    changed = read_log(run_dir)["decision"].to_pylist()
    changed[0] = "YES" if changed[0] == "NO" else "NO"
    rewrite(run_dir, "decision", pa.array(changed))
    name, passed, _ = last(worker.check(run_dir, "org/results"))
    assert (name, passed) == ("figures and signatures", False)


def test_a_column_of_another_type_is_refused_by_name(run_dir):
    rewrite(run_dir, "decision", pa.array([1] * 24))
    assert last(worker.check(run_dir, "org/results")) == (
        "decisions",
        False,
        "part-00-000.parquet: the column 'decision' has type int64, not string",
    )


def test_a_file_that_is_no_parquet_is_refused(run_dir):
    (run_dir / "decisions" / "part-00-000.parquet").write_bytes(b"PAR1" + b"\0" * 64 + b"PAR1")
    name, passed, said = last(worker.check(run_dir, "org/results"))
    assert (name, passed) == ("decisions", False)
    assert "not a Parquet file" in said


def test_a_parquet_bomb_of_rows_is_refused_by_its_metadata(run_dir):
    one = read_log(run_dir).slice(0, 1)
    rows = one.take(pa.array([0] * 1_000_000))
    part = run_dir / "decisions" / "part-00-000.parquet"
    pq.write_table(rows, part, compression="zstd")
    assert part.stat().st_size < 200_000
    name, passed, said = last(worker.check(run_dir, "org/results"))
    assert (name, passed) == ("decisions", False)
    assert "1,000,000 rows" in said


def test_a_parquet_bomb_of_long_texts_is_refused_and_nothing_falls(run_dir):
    rows = read_log(run_dir)
    long = pa.DictionaryArray.from_arrays(
        pa.array([0] * len(rows), pa.int32()), ["x" * 200_000_000]
    )
    rows = rows.set_column(SCHEMA.get_field_index("raw_text"), "raw_text", long)
    parts = sorted((run_dir / "decisions").iterdir())
    for part in parts[1:]:
        part.unlink()
    # Without the Arrow schema the column reads as hundreds of long plain strings.
    pq.write_table(rows, parts[0], compression="zstd", store_schema=False)
    assert parts[0].stat().st_size < 200_000
    name, passed, said = last(worker.check(run_dir, "org/results"))
    assert (name, passed) == ("figures and signatures", False)
    assert "cannot be measured with" in said or "cannot be read" in said


def test_an_upload_is_told_line_by_line(run_dir, tmp_path):
    source = open_results(None)
    archive = shutil.make_archive(str(tmp_path / "up"), "zip", run_dir.parent, run_dir.name)
    shown = submit(source, [archive])
    assert "<b>Accepted.</b>" in shown
    assert "judgesense publish results DIR --repo ORG/NAME" in shown
    (tmp_path / "notes.zip").write_bytes(b"hello")
    shown = submit(source, [str(tmp_path / "notes.zip")])
    assert "<b>Refused.</b>" in shown
    assert "damaged" in shown
    assert shown.count("not checked</bdi>") == len(NAMES)


def test_an_accepted_run_is_written_where_that_is_allowed_and_once(run_dir, tmp_path):
    folder = tmp_path / "shown"
    folder.mkdir()
    source = open_results(str(folder), accept=True)
    archive = shutil.make_archive(str(tmp_path / "up"), "zip", run_dir.parent, run_dir.name)
    assert "Added as" in submit(source, [archive], keep=True)
    assert len(source.board().runs) == 1
    assert "exists already" in submit(source, [archive], keep=True)
    assert not list(folder.glob(".*"))


def test_two_judges_are_compared_as_the_command_compares_them(runs):
    source = open_results(str(runs))
    one, two = (key_of(n, f"{n}@callable") for n in ("steady-70b", "wavering-1.5b"))
    shown = comparison(source, one, two)
    expected = judgesense.compare(runs / "steady-70b", runs / "wavering-1.5b")
    entry = next(e for e in expected["comparisons"] if e["task"] == "coherence")
    assert signed(entry["difference"]) in shown
    assert "is steadier" in shown
    turned = comparison(source, two, one)
    assert signed(-entry["difference"]) in turned


def test_judges_without_decisions_are_shown_and_not_tested():
    source = open_results(None)
    demo = next(e for e in source.board().entries if not e.is_published)
    shown = comparison(source, key_of("published", "gpt-4o"), key_of(demo.run, demo.judge))
    assert "No paired test" in shown
    assert "Each by itself" in shown
    same = comparison(source, key_of("published", "gpt-4o"), key_of("published", "gpt-4o"))
    assert "the same judge" in same
