"""Tables with any column names: the map, statuses, labels and bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from judgesense.answers import parse
from judgesense.errors import JudgeSenseError
from judgesense.importers import FORMATS
from judgesense.importers.columns import parse_columns
from judgesense.importers.log import import_log, importer_of
from judgesense.log.schema import SCHEMA, read_log
from judgesense.tasks import prompt_id

MAP = parse_columns(["judge=model, item_id=id, template_id=prompt", "raw_decision=verdict"])
CSV = """model,id,prompt,verdict,right
m1,1,p1,YES,YES
m1,1,p2,NO,YES
m1,2,p1,no,NO
m1,2,p2,,NO
"""


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_text(text, encoding)
    return path


def rows_of(out: Path) -> list[dict[str, Any]]:
    return read_log(out).to_pylist()


def test_a_csv_becomes_a_decision_log_with_every_row(tmp_path: Path) -> None:
    source = write(tmp_path / "log.csv", CSV)
    columns = {**MAP, "task": ":factuality", "gold": "right"}
    record = import_log(source, "table", tmp_path / "out", columns=columns)
    log = read_log(tmp_path / "out")
    assert log.schema.equals(SCHEMA)
    rows = log.to_pylist()
    assert [row["decision"] for row in rows] == ["YES", "NO", "NO", "ERROR"]
    assert [row["status"] for row in rows] == ["ok", "ok", "ok", "error"]
    assert [row["gold"] for row in rows] == ["YES", "YES", "NO", "NO"]
    assert rows[3]["error"] == "the log has no decision"
    assert {row["task"] for row in rows} == {"factuality"}
    assert {row["order"] for row in rows} == {"-"}
    assert [row["cluster_id"] for row in rows] == ["1", "1", "2", "2"]
    assert record["counts"] == {"factuality": {"ok": 3, "error": 1}}
    assert record["tasks"]["factuality"]["ordinal"] is False
    assert set(record["tasks"]["factuality"]["labels"]) == {"YES", "NO"}


def test_the_same_rows_from_csv_jsonl_and_parquet_give_the_same_log(tmp_path: Path) -> None:
    rows = [
        {"judge": "j", "task": "coherence", "item_id": i, "template_id": t, "raw_decision": r}
        for i, t, r in [(1, "a", 4), (1, "b", 5), (2, "a", 2), (2, "b", 2)]
    ]
    names = list(rows[0])
    text = [",".join(names), *(",".join(map(str, row.values())) for row in rows)]
    sources = [
        write(tmp_path / "log.csv", "\n".join(text)),
        write(tmp_path / "log.tsv", "\n".join(text).replace(",", "\t")),
        write(tmp_path / "log.jsonl", "\n\n".join(map(json.dumps, rows))),
        tmp_path / "log.parquet",
    ]
    pq.write_table(pa.Table.from_pylist(rows), sources[-1])
    logs = []
    for source in sources:
        record = import_log(source, "table", tmp_path / source.suffix[1:])
        assert record["tasks"]["coherence"] == {
            "labels": ["2", "3", "4", "5"],
            "ordinal": True,
            "comparative": False,
        }
        logs.append(rows_of(tmp_path / source.suffix[1:]))
    assert logs[0] == logs[1] == logs[2] == logs[3]


def test_free_text_is_parsed_and_what_names_no_label_is_unclear_and_counted(
    tmp_path: Path,
) -> None:
    source = write(
        tmp_path / "log.jsonl",
        "\n".join(
            json.dumps({"judge": "j", "task": "t", "item_id": n, "template_id": "a", "raw_text": t})
            for n, t in enumerate(["YES", "I say NO.", "INCORRECT", "perhaps", ""])
        ),
    )
    record = import_log(source, "table", tmp_path / "out", labels=["YES", "NO"], parse=parse)
    assert [row["decision"] for row in rows_of(tmp_path / "out")] == [
        "YES",
        "NO",
        "UNCLEAR",
        "UNCLEAR",
        "ERROR",
    ]
    assert record["not_labels"] == {"t": {"INCORRECT": 1, "perhaps": 1}}


def test_log_probabilities_decide_with_mass_and_margin(tmp_path: Path) -> None:
    row = {"judge": "j", "task": "t", "item_id": "1", "template_id": "a", "prompt": "Is it so?"}
    source = write(
        tmp_path / "log.jsonl",
        json.dumps({**row, "option_logprobs": {"YES": -2.0, "NO": -0.25}}),
    )
    import_log(source, "table", tmp_path / "out")
    (read,) = rows_of(tmp_path / "out")
    assert (read["scoring"], read["decision"]) == ("options", "NO")
    assert read["margin"] == pytest.approx(1.75)
    assert read["option_mass"] == pytest.approx(0.1353352832 + 0.7788007831)
    assert read["prompt_id"] == prompt_id("Is it so?")


def test_gold_of_the_order_ab_is_turned_for_rows_that_show_ba(tmp_path: Path) -> None:
    source = write(
        tmp_path / "log.csv",
        "judge,task,item_id,template_id,order,raw_decision,gold_ab\n"
        "j,preference,1,a,AB,A,A\nj,preference,1,a,BA,A,A\n",
    )
    record = import_log(source, "table", tmp_path / "out")
    assert [row["gold"] for row in rows_of(tmp_path / "out")] == ["A", "B"]
    assert record["tasks"]["preference"]["comparative"] is True


def test_a_mapped_decision_stands_beside_the_raw_one(tmp_path: Path) -> None:
    source = write(
        tmp_path / "log.csv",
        "judge,task,item_id,template_id,raw_decision,decision\n"
        "j,t,1,plain,YES,YES\nj,t,1,inverted,NO,YES\nj,t,2,inverted,YES,NO\n",
    )
    import_log(source, "table", tmp_path / "out")
    rows = rows_of(tmp_path / "out")
    assert [row["raw_decision"] for row in rows] == ["YES", "NO", "YES"]
    assert [row["decision"] for row in rows] == ["YES", "YES", "NO"]


def test_an_import_given_again_returns_at_once_and_another_is_refused(tmp_path: Path) -> None:
    source = write(tmp_path / "log.csv", CSV)
    columns = {**MAP, "task": ":t", "gold": "right"}
    first = import_log(source, "table", tmp_path / "out", columns=columns)
    assert import_log(source, "table", tmp_path / "out", columns=columns) == first
    with pytest.raises(JudgeSenseError, match="holds another run"):
        import_log(source, "table", tmp_path / "out", columns={**columns, "task": ":u"})


GOOD = {"judge": "j", "task": "t", "item_id": "1", "template_id": "a", "raw_decision": "YES"}
BAD_ROWS = [
    ({"order": "BC"}, "line 2, order: .*'AB'.* found 'BC'"),
    ({"status": "fine"}, "line 2, status: .* found 'fine'"),
    ({"scoring": "vibes"}, "line 2, scoring: .* found 'vibes'"),
    ({"repeat": "x"}, "line 2, repeat: .* found 'x'"),
    ({"latency_s": "-1"}, "line 2, latency_s: .* found '-1'"),
    ({"truncated": "often"}, "line 2, truncated: .* found 'often'"),
    ({"option_logprobs": "high"}, r"line 2, option_logprobs: expected an object"),
    ({"option_logprobs": {"YES": 0.5}}, r"line 2, option_logprobs: 0.5 for 'YES'"),
    ({"judge": None}, r"line 2: no judge"),
    ({"gold": "PERHAPS"}, r"line 2, gold: 'PERHAPS' is not one of the labels YES, NO"),
    ({}, r"line 2: .* already, in .*line 1"),
]


@pytest.mark.parametrize(("change", "said"), BAD_ROWS)
def test_a_bad_row_is_named_with_line_column_and_reason(
    change: dict[str, Any], said: str, tmp_path: Path
) -> None:
    other = {**GOOD, "item_id": "2"} if change else GOOD
    source = write(
        tmp_path / "log.jsonl", f"{json.dumps(GOOD)}\n{json.dumps({**other, **change})}\n"
    )
    with pytest.raises(JudgeSenseError, match=said):
        import_log(source, "table", tmp_path / "out", labels=["YES", "NO"])
    assert not (tmp_path / "out").exists()


def test_labels_that_the_log_does_not_show_are_asked_for(tmp_path: Path) -> None:
    source = write(tmp_path / "log.jsonl", json.dumps(GOOD))
    with pytest.raises(JudgeSenseError, match=r"task 't': .* labels \(1 found: 'YES'\)"):
        import_log(source, "table", tmp_path / "out")


def test_the_documentation_lists_every_format() -> None:
    page = (Path(__file__).parents[2] / "docs" / "import.md").read_text("utf-8")
    listed = re.findall(r"^\| `([\w-]+)` \| ([^|]+) \|", page, re.M)
    assert [row for row in listed if row[0] in FORMATS] == [
        (name, importer_of(name).summary) for name in FORMATS
    ]


def test_a_folder_of_tables_is_one_log(tmp_path: Path) -> None:
    head, *rows = CSV.strip().splitlines()
    for number, half in enumerate((rows[:2], rows[2:])):
        write(tmp_path / f"{number}.csv", "\n".join([head, *half]))
    columns = {**MAP, "task": ":t", "gold": "right"}
    # The folder that is written may be inside the one that is read.
    for _ in range(2):
        record = import_log(tmp_path, "table", tmp_path / "out", columns=columns)
        assert record["counts"] == {"t": {"ok": 3, "error": 1}}
    (tmp_path / "empty").mkdir()
    with pytest.raises(JudgeSenseError, match="inspect log"):
        import_log(tmp_path / "empty", "inspect", tmp_path / "out")


def test_an_unknown_format_or_target_lists_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(JudgeSenseError, match=f"'excel'; choose one of {', '.join(FORMATS)}"):
        import_log(tmp_path, "excel", tmp_path / "out")
    with pytest.raises(JudgeSenseError, match="no file or folder"):
        import_log(tmp_path / "absent.csv", "table", tmp_path / "out")
    with pytest.raises(JudgeSenseError, match="has no option pick"):
        import_log(tmp_path, "table", tmp_path / "out", pick="x")
    with pytest.raises(JudgeSenseError, match="'verdict'; choose one of judge, task"):
        parse_columns(["verdict=x"])
    with pytest.raises(JudgeSenseError, match="is not TARGET=COLUMN"):
        parse_columns(["judge"])
    with pytest.raises(JudgeSenseError, match="judge appears twice"):
        parse_columns(["judge=a", "judge=b"])


def test_a_constant_may_hold_commas_and_columns_may_be_nested(tmp_path: Path) -> None:
    assert parse_columns(["judge=:a, b,task=:t"]) == {"judge": ":a, b", "task": ":t"}
    source = write(
        tmp_path / "log.jsonl",
        "\n".join(
            json.dumps({"meta": {"id": n, "by": {"name": "j"}}, "v": v})
            for n, v in [(1, 1), (2, 3)]
        ),
    )
    columns = parse_columns(
        ["judge=meta.by.name,item_id=meta.id,raw_decision=v,task=:t,template_id=:a"]
    )
    import_log(source, "table", tmp_path / "out", columns=columns)
    assert [row["item_id"] for row in rows_of(tmp_path / "out")] == ["1", "2"]
