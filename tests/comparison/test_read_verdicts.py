"""One reader for verdict files, runs and tables of your own."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judgesense.comparison.estimate import estimate
from judgesense.comparison.verdicts import read_verdicts
from judgesense.errors import JudgeSenseError
from judgesense.files.tables import read_table
from judgesense.pipeline import run
from judgesense.pipeline.verdict_files import write_verdicts
from judgesense.pipeline.verdicts import judge_items, load_judge
from local_judges.callable_judge import CallableJudge


def quiet(_):
    return None


def test_a_file_of_judge_is_read_back_in_every_format(tmp_path):
    items = [
        {"item_id": f"i{n}", "cluster_id": "c", "system_id": "s", "summary": "a b", "gold": "4"}
        for n in range(3)
    ]

    def rate(messages):
        return [{str(label): -float(abs(label - 4)) for label in range(1, 6)} for _ in messages]

    judge = CallableJudge(rate, name="rater", scoring="options")
    told = judge_items(items, judge, tmp_path / "verdicts.csv", task="coherence", note=quiet)
    assert json.loads(json.dumps(told.to_dict()))["decided"] == 3
    with load_judge(judge, task="coherence") as loaded:
        verdicts = loaded(items)
    for suffix in ("jsonl", "parquet"):
        write_verdicts(verdicts, tmp_path / f"verdicts.{suffix}")
    for suffix in ("csv", "jsonl", "parquet"):
        read = read_verdicts(tmp_path / f"verdicts.{suffix}")
        first = read.to_pandas().to_dict("records")[0]
        assert (first["item"], first["cluster"], first["system"]) == ("i0", "c", "s")
        assert (read.judge.split("@")[0], read.task) == ("rater", "coherence")
        assert (first["wording"], first["order"]) == ("coherence-1", "-")
        assert (first["verdict"], first["gold"]) == ("4", "4")
        # Softmax of -|l - 4| over 1..5.
        assert first["score"] == pytest.approx(3.7813, abs=1e-3)
        assert read.values()[0] == first["score"]


def test_verdicts_keep_the_columns_and_the_ids_of_the_items(tmp_path):
    items = tmp_path / "items.csv"
    items.write_text(
        "id,query,passage_a,passage_b,team,verdict\nx7,sun,star,moon,red,B\nx9,sea,water,sand,,A\n"
    )
    judge = CallableJudge(lambda messages: ["A"] * len(messages), name="first")
    for suffix in ("csv", "jsonl", "parquet"):
        out = tmp_path / f"verdicts.{suffix}"
        judge_items(items, judge, out, task="relevance", scoring="generate", note=quiet)
        rows = [record.values for record in read_table(out)]
        assert [row["item_id"] for row in rows] == [row["id"] for row in rows] == ["x7", "x9"]
        assert [row["verdict"] for row in rows] == ["A", "A"]
        assert [row["input_verdict"] for row in rows] == ["B", "A"]
        assert rows[0]["team"] == "red"
        assert rows[1]["passage_b"] == "sand"
    items.write_text(items.read_text().replace("x9", "x7"))
    with pytest.raises(JudgeSenseError, match="row 2, column id: 'x7' is already the id"):
        judge_items(
            items, judge, tmp_path / "v.csv", task="relevance", scoring="generate", note=quiet
        )


def test_a_run_gives_every_wording_in_the_items_own_order(tmp_path):
    def first(messages):
        return [{"A": -0.1, "B": -2.4} for _ in messages]

    judge = CallableJudge(first, scoring="options", name="first")
    run([judge], tasks=["relevance"], limit=3, scoring="options", out=tmp_path / "run", note=quiet)
    read = read_verdicts(tmp_path / "run")
    assert read.labels == ("A", "B")
    assert len(set(read.wording)) == 4
    assert {*zip(read.order, read.verdict, strict=True)} == {("AB", "A"), ("BA", "B")}
    assert len({*zip(read.item, read.gold, strict=True)}) == 3


def test_labels_of_plain_tables(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("item_id,system_id,rating\n1,a,4.0\n1,b,2\n2,a,\n2,b,3.5\n")
    read = read_verdicts(file, columns={"verdict": "rating"})
    assert read.labels == ("2", "3.5", "4")
    assert read.verdict.tolist() == ["4", "2", "ERROR", "3.5"]
    assert read.item.tolist() == read.cluster.tolist() == ["1", "1", "2", "2"]
    assert read.values()[[0, 1, 3]].tolist() == [4.0, 2.0, 3.5]
    pq.write_table(pa.table({"item_id": [1, 2], "verdict": [True, False]}), tmp_path / "b.parquet")
    assert read_verdicts(tmp_path / "b.parquet").values(positive="true").tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("words", "labels"),
    [
        (("Passed", "Failed"), ("Failed", "Passed")),
        (("relevant", "irrelevant"), ("irrelevant", "relevant")),
        (("PASS", "PASS"), ("FAIL", "PASS")),
    ],
)
def test_usual_pairs_of_labels_say_which_is_good(words, labels, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text(f"item_id,verdict\n1,{words[0]}\n2,{words[1]}\n")
    read = read_verdicts(file)
    assert read.labels == labels
    assert read.values().tolist() == [float(word == words[0]) for word in words]


def test_comparisons_count_for_the_first_system(tmp_path):
    file = tmp_path / "pairs.jsonl"
    rows = [("1", "x|y", "A"), ("2", "x|y", "TIE"), ("3", "y|x", "B")]
    file.write_text(
        "".join(json.dumps({"item_id": i, "system_id": s, "verdict": v}) + "\n" for i, s, v in rows)
    )
    read = read_verdicts(file)
    assert read.is_comparison
    assert read.values().tolist() == [1.0, 0.5, 0.0]


def test_verdicts_of_a_table_are_in_the_items_own_order(tmp_path):
    file = tmp_path / "orders.csv"
    file.write_text("item_id,order,verdict,gold\n1,AB,A,A\n1,BA,A,A\n2,AB,B,A\n2,BA,A,A\n")
    read = read_verdicts(file)
    assert read.verdict.tolist() == ["A", "A", "B", "A"]
    assert set(read.gold) == {"A"}


def test_spelling_makes_no_label(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("item_id,verdict,gold\n1,PASS,pass\n2,pass,PASS\n3,Fail,fail\n4,n/a,fail\n")
    read = read_verdicts(file)
    assert sorted(label.casefold() for label in read.labels) == ["fail", "pass"]
    assert (read.verdict == read.gold).tolist() == [True, True, True, False]
    assert read.verdict[3] == "ERROR"


@pytest.mark.slow
def test_many_numbers_are_labels_and_texts_are_not(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("item_id,verdict\n" + "".join(f"{n},{n / 8}\n" for n in range(3000)))
    assert read_verdicts(file).values().tolist() == [n / 8 for n in range(3000)]
    text = "a reply that goes on for longer than any label does"
    file.write_text("item_id,verdict\n" + "".join(f"{n},{text} {n}\n" for n in range(30)))
    with pytest.raises(JudgeSenseError, match="--columns verdict="):
        read_verdicts(file)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("item_id,system_id\n1,a\n", ("mine.csv", "--columns verdict=COLUMN")),
        ("Prompt,Rating\n1,4\n", ("mine.csv", "'item_id'", "item_id=YOURS")),
        ("item_id,LLM,verdict\n1,a,YES\n1,b,NO\n", ("row 2", "row 1", "system_id=")),
        ("item_id,verdict,margin\n1,YES,0.1\n2,NO,wide\n", ("row 2", "margin")),
        ("item_id,system_id,verdict\n1,a,YES\n1,a,NO\n", ("row 2", "row 1")),
        ("item_id,verdict,judge\n1,YES,j\n2,NO,k\n", ("several judges", "--judge")),
        ("item_id,verdict\n1,\n2,ERROR\n", ("mine.csv",)),
        ("item_id,verdict\n,YES\n", ("row 1", "item_id")),
        ("id,gpt_verdict,claude_verdict\n1,y,n\n", ("--judge: gpt_verdict, claude_verdict",)),
    ],
)
def test_bad_tables_name_the_row_and_the_field(tmp_path, text, named):
    file = tmp_path / "mine.csv"
    file.write_text(text)
    with pytest.raises(JudgeSenseError) as told:
        read_verdicts(file)
    assert all(part in str(told.value) for part in named)


def test_columns_are_recognised_as_check_does(tmp_path):
    verdicts, people = tmp_path / "mine.csv", tmp_path / "people.csv"
    rows = ["1,x,pass", "2,x,fail", "3,x,pass", "1,y,fail", "2,y,fail", "3,y,pass"]
    verdicts.write_text("\n".join(["Question ID,Model,LLM verdict", *rows]))
    people.write_text("\n".join(["id,model,Human label", *rows]))
    named = {"item_id": "Question ID", "system_id": "Model", "verdict": "LLM verdict"}
    found = estimate(verdicts, people)
    assert found.systems == estimate(verdicts, people, columns=named).systems
    assert [each["labels_only"] for each in found.systems] == pytest.approx([2 / 3, 1 / 3])


def test_the_judge_is_found_without_its_fingerprint(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("item_id,verdict,judge\n1,YES,j@12\n2,NO,j@12\n1,NO,k@3\n")
    with pytest.raises(JudgeSenseError, match="'rating'"):
        read_verdicts(file, columns={"verdict": "rating"})
    read = read_verdicts(file, judge="j")
    assert (len(read), read.judge) == (2, "j@12")
    with pytest.raises(JudgeSenseError, match="j@12"):
        read_verdicts(file, judge="m")
    file.write_text("item_id,verdict,judge\n1,YES,j\n2,NO,j@T=1\n")
    assert read_verdicts(file, judge="j").judge == "j"
