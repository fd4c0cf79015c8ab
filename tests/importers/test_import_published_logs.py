"""Published logs through docs/recipes.py: every decision arrives, as shown, with its gold label."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow.compute as pc
import pytest
import recipes

from judgesense.errors import JudgeSenseError
from judgesense.importers.log import import_log
from judgesense.log.schema import read_log


def test_llmbars_winners_are_the_options_as_shown(tmp_path: Path) -> None:
    (tmp_path / "j.csv").write_text(
        "dataset,item,judge,prompt,label,winner_noswap,winner_swap,score_1,score_2\n"
        "d,0,j,Vanilla,1,1,1,,\n"  # the same output wins in both orders
        "d,1,j,Vanilla,2,1,2,,\n"  # always the one shown first
        "d,2,j,Vanilla,1,,2,,\n"  # unread, then the one shown first
        "d,3,j,Rating,2,2,1,8,8\n"  # a tie
        "d,4,j,Rating,2,2,2,3,8\n"
        "d,5,j,Rating,1,1,2,,0\n",  # one rating is missing
        "utf-8",
    )
    record = recipes.import_llmbar(tmp_path / "j.csv", tmp_path / "out")
    rows = read_log(tmp_path / "out").to_pylist()
    assert [(r["item_id"], r["order"], r["decision"], r["gold"]) for r in rows] == [
        ("d/0", "AB", "A", "A"),
        ("d/0", "BA", "B", "B"),
        ("d/1", "AB", "A", "B"),
        ("d/1", "BA", "A", "A"),
        ("d/2", "AB", "UNCLEAR", "A"),
        ("d/2", "BA", "A", "B"),
        ("d/3", "AB", "UNCLEAR", "B"),
        ("d/4", "AB", "B", "B"),
        ("d/5", "AB", "UNCLEAR", "A"),
    ]
    assert record["counts"] == {"preference": {"ok": 6, "unclear": 3}}


def test_flakyjudges_experiments_share_one_answer_to_the_original(
    shared: Path, tmp_path: Path
) -> None:
    record = recipes.import_flakyjudge(shared / "logs/flakyjudge", tmp_path / "out")
    assert record["counts"] == {"criterion": {"ok": 25274, "unclear": 370}}
    log = read_log(tmp_path / "out")
    # 28,644 rows, of which 600 + 600 (e2), 900 (e3) and 900 (e4) repeat an answer of e1.
    assert log.num_rows == 11976 + 7200 + 7584 + 1884 - 600 - 600 - 900 - 900
    assert {row["gold"] for row in log.to_pylist() if "/" in row["item_id"]} == {None}
    classes = log["variant_class"].value_counts().to_pylist()
    assert {c["values"]: c["counts"] for c in classes} == {
        "equivalent": 25644 - 5988 - 1800,
        "intervention": 5988,
        "contrast": 1800,
    }


def test_every_rating_of_a_wide_table_arrives_and_blanks_are_errors(
    shared: Path, tmp_path: Path
) -> None:
    source = shared / "logs/rag_eval_9judges/trec-rag-2024_wide.csv"
    with source.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    judges = list(rows[0])[4:]
    record = recipes.import_rag_eval(source, tmp_path / "out")
    log = read_log(tmp_path / "out")
    assert [judge["name"] for judge in record["judges"]] == judges
    blanks = sum(row[judge] == "" for row in rows for judge in judges)
    assert record["counts"] == {"relevance_rating": {"ok": 9 * len(rows) - blanks, "error": blanks}}
    assert record["tasks"]["relevance_rating"]["ordinal"] is True
    for judge in judges:
        arrived = log.filter(pc.equal(log["judge"], judge))["decision"].to_pylist()
        assert arrived == [row[judge] or "ERROR" for row in rows]
    assert len(pc.unique(log["cluster_id"])) == len({row["query_id"] for row in rows})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dataset,query_id,doc_id,human,J\nd,q,1,4,1\n", "row 1, gold: '4' is not one of"),
        ("dataset,query_id,doc_id,human\nd,q,1,2\n", "row 1: no column is left that names a judge"),
        ("dataset,query_id,human,J\nd,q,1,2\n", r"row 1: no column 'doc_id' \(for item_id\)"),
    ],
)
def test_a_damaged_wide_table_is_refused_with_row_and_column(
    text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(text, "utf-8")
    with pytest.raises(JudgeSenseError, match=message):
        import_log(
            tmp_path / "t.csv",
            "table",
            tmp_path / "out",
            columns=recipes.RAG_EVAL,
            labels=("0", "1", "2", "3"),
        )
