"""LLMBar's and RAG-Eval's tables: every decision arrives, as shown, with its gold label."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from judgesense.decisions.log import read_log
from judgesense.errors import JudgeSenseError
from judgesense.importers import import_log


@pytest.fixture(scope="module")
def llmbar(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """LLMBar's rows of two datasets, all judges and strategies."""
    folder = tmp_path_factory.mktemp("llmbar")
    kept = ("LLMBar/Natural", "LLMBar/Adversarial/GPTInst")
    with (
        (shared / "logs/llmbar/judgments.csv").open(encoding="utf-8", newline="") as source,
        (folder / "judgments.csv").open("w", encoding="utf-8", newline="") as target,
    ):
        rows = csv.DictReader(source)
        writer = csv.DictWriter(target, rows.fieldnames or [])
        writer.writeheader()
        writer.writerows(row for row in rows if row["dataset"] in kept)
    import_log(folder / "judgments.csv", "llmbar", folder / "out")
    return folder


def judgments(folder: Path) -> list[dict[str, str]]:
    with (folder / "judgments.csv").open(encoding="utf-8", newline="") as source:
        return list(csv.DictReader(source))


def test_every_llmbar_row_arrives_in_both_orders_and_ratings_once(llmbar: Path) -> None:
    rows, log = judgments(llmbar), read_log(llmbar / "out")
    rated = sum(row["prompt"].startswith("Rating") for row in rows)
    assert rated
    assert log.num_rows == 2 * (len(rows) - rated) + rated
    orders = pc.value_counts(log["order"]).to_pylist()
    assert {entry["values"]: entry["counts"] for entry in orders} == {
        "AB": len(rows),
        "BA": len(rows) - rated,
    }


def test_llmbar_accuracy_in_each_order_is_that_of_the_source(llmbar: Path) -> None:
    rows, log = judgments(llmbar), read_log(llmbar / "out")
    for judge, prompt in (("GPT-4", "Vanilla"), ("PaLM2", "CoT"), ("Falcon", "Swap")):
        mine = [r for r in rows if (r["judge"], r["prompt"]) == (judge, prompt)]
        for order, winner in (("AB", "winner_noswap"), ("BA", "winner_swap")):
            expected = sum(row[winner] == row["label"] for row in mine)
            cell = log.filter(
                (pc.field("judge") == judge)
                & (pc.field("template_id") == prompt)
                & (pc.field("order") == order)
            )
            assert cell.num_rows == len(mine)
            assert pc.sum(pc.equal(cell["decision"], cell["gold"])).as_py() == expected


def test_a_winner_in_the_swapped_order_is_the_option_as_shown(tmp_path: Path) -> None:
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
    record = import_log(tmp_path / "j.csv", "llmbar", tmp_path / "out")
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


@pytest.mark.parametrize("name", ["beir-scifact", "trec-covid", "trec-rag-2024"])
def test_every_rating_of_a_wide_table_arrives_and_blanks_are_errors(
    name: str, shared: Path, tmp_path: Path
) -> None:
    source = shared / f"logs/rag_eval_9judges/{name}_wide.csv"
    with source.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened))
    judges = list(rows[0])[4:]
    record = import_log(source, "rag-eval", tmp_path / "out")
    log = read_log(tmp_path / "out")
    assert [judge["name"] for judge in record["judges"]] == judges
    assert log.num_rows == 9 * len(rows)
    blanks = sum(row[judge] == "" for row in rows for judge in judges)
    assert record["counts"]["relevance_rating"].get("error", 0) == blanks
    assert record["tasks"]["relevance_rating"] == {
        "labels": ["0", "1", "2", "3"],
        "ordinal": True,
        "comparative": False,
    }
    by_judge = pa.table({"judge": log["judge"], "decision": log["decision"]}).to_pylist()
    for judge in judges:
        arrived = [row["decision"] for row in by_judge if row["judge"] == judge]
        assert arrived == [row[judge] or "ERROR" for row in rows]
    assert len(pc.unique(log["cluster_id"])) == len({row["query_id"] for row in rows})


@pytest.mark.parametrize(
    ("format", "text", "said"),
    [
        ("llmbar", "dataset,item\nd,0\n", "judge: .*missing"),
        (
            "llmbar",
            "dataset,item,judge,prompt,label,winner_noswap,winner_swap,score_1,score_2\n"
            "d,0,j,p,1,3,1,,\n",
            "row 1, winner_noswap: '3' is neither 1 nor 2",
        ),
        (
            "rag-eval",
            "dataset,query_id,doc_id,human,J\nd,q,1,2,4\n",
            "row 1, J: '4' is not a rating",
        ),
        ("rag-eval", "dataset,query_id,doc_id,human,J\nd,q,1,,1\n", "row 1, human: ''"),
        ("rag-eval", "dataset,query_id,doc_id,human\nd,q,1,2\n", "no column of a judge"),
    ],
)
def test_a_damaged_table_is_refused_with_row_and_column(
    format: str, text: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(text, "utf-8")
    with pytest.raises(JudgeSenseError, match=said):
        import_log(tmp_path / "t.csv", format, tmp_path / "out")
