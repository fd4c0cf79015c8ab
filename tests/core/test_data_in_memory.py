"""Python's door: data in memory, results without a folder named, and what results print."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import judgesense
from judgesense.errors import JudgeSenseError
from judgesense.files.data import materialise

pandas = pytest.importorskip("pandas")
datasets = pytest.importorskip("datasets")

ROWS = [{"message": f"text {n}", "gold": "RUDE" if n % 3 else "POLITE"} for n in range(12)]
TASK = {
    "tasks": {
        "tone": {
            "labels": ["POLITE", "RUDE"],
            "layout": "{instruction}\n\n{message}",
            "templates": [
                {"id": "1", "text": "Polite or rude?"},
                {"id": "2", "text": "Rude or polite?"},
            ],
        }
    }
}


class Polars:
    """What the door uses of a polars DataFrame, which is no test dependency."""

    def __init__(self, rows):
        self.to_dicts = lambda: rows


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def by_number(messages):
    return ["RUDE" if int(text.split()[-1]) % 3 else "POLITE" for text in messages]


KINDS = {
    "list": list,
    "tuple": tuple,
    "pandas": pandas.DataFrame,
    "polars": Polars,
    "datasets": datasets.Dataset.from_list,
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_every_kind_of_data_is_the_same_file(make):
    assert materialise(make(ROWS), Path("x"), "data") == materialise(ROWS, Path("x"), "data")
    (file,) = Path("x").iterdir()
    assert [json.loads(line) for line in file.read_text().splitlines()] == ROWS


def test_a_frame_keeps_whole_numbers_beside_missing_cells_and_writes_times():
    frame = pandas.DataFrame(
        {
            "label": [1, None],
            "score": [0.5, math.nan],
            "flag": [True, None],
            "at": pandas.to_datetime(["2026-01-02", None]),
            "tags": [["a"], None],
        }
    )
    first, second = materialise(frame, Path(), "data").read_text().splitlines()
    assert json.loads(first) == {
        "label": 1,
        "score": 0.5,
        "flag": True,
        "at": "2026-01-02 00:00:00",
        "tags": ["a"],
    }
    assert '"label": 1,' in first
    assert set(json.loads(second).values()) == {None}


REFUSED = {
    "number": (3, "data is a int"),
    "columns": ({"a": [1]}, "data is a dict"),
    "splits": (datasets.DatasetDict({"train": datasets.Dataset.from_list(ROWS)}), "'train'"),
    "values": ([{"a": 1}, 2], "data, row 2: .* got int"),
    "series": (pandas.Series([1]), "row 1"),
    "empty": ([], "no rows"),
    "bytes": ([{"a": b"x"}], "row 1: a cell holds bytes"),
    "infinite": ([{"a": math.inf}], "row 1"),
    "surrogate": ([{"a": "\ud800"}], "row 1"),
}


@pytest.mark.parametrize(("data", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_data_is_refused_with_its_row(data, message):
    with pytest.raises(JudgeSenseError, match=message):
        materialise(data, Path(), "data")
    assert not list(Path().iterdir())


def test_a_run_takes_rows_and_a_task_and_names_its_folder():
    report = judgesense.run(by_number, templates=TASK, items=ROWS, note=str)
    assert report.out is not None
    assert report.out.parent == Path("runs")
    assert (report.out / "report.html").is_file()
    again = judgesense.run(by_number, templates=TASK, items=pandas.DataFrame(ROWS), note=str)
    assert again.out == report.out

    def other(messages):
        return ["RUDE"] * len(messages)

    other.__name__ = by_number.__name__
    # A changed function of the same name is another judge: its folder is another one.
    assert judgesense.run(other, templates=TASK, items=ROWS, note=str).out != report.out


def test_a_report_prints_short_and_has_a_row_per_card():
    report = judgesense.run(by_number, templates=TASK, items=ROWS, note=str)
    (row,) = report.to_pandas().to_dict("records")
    (card,) = report.trust
    assert row["trust"] == card["trust"]
    assert (row["jss"], row["right"], row["kappa"], row["readable"]) == (1.0, 1.0, 1.0, 1.0)
    assert row["fair"] is None or math.isnan(row["fair"])
    assert row["next"] == report.next[0]["kind"]
    assert (row["ci_low"], row["ci_high"]) == tuple(
        card["checks"]["steady"][name] for name in ("ci_low", "ci_high")
    )
    assert len(report.cells_frame()) == len(report.cells)
    text = repr(report)
    assert "\n" not in text
    assert len(text) < 200
    for part in ("by_number", "tone", card["trust"], "12 items", str(report.out)):
        assert part in text
    assert len(str(report).splitlines()) <= 20
    assert str(report.out) in str(report)
    assert "<table>" in report._repr_html_()
    assert "oracle" not in report._repr_html_()
    assert report.plot().get_axes()


VERDICTS = [
    {"id": n, "verdict": "RUDE" if n % 2 else "POLITE", "label": row["gold"] if n < 10 else None}
    for n, row in enumerate(ROWS)
]
RUBRIC = "Is this polite or rude?\n\n{message}"
WORDINGS = "Rude or polite?\n---\nPolite or not? Say POLITE or RUDE.\n"


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_verdicts_in_memory_are_checked_beside_labels(make):
    found = judgesense.check(make(VERDICTS), note=str)
    (people,) = [each for each in found.report.people if each["human"] == "label"]
    assert people["n"] == 10
    assert people["confusion"]["RUDE"] == {"POLITE": 2, "RUDE": 3}
    assert found.out.parent == Path("runs/check")
    assert found.out == found.report.out
    assert found.next == found.report.next
    assert [card["trust"] for card in found.trust] == [found.card["trust"]]
    assert len(found.disagreements()) == len(found.report.disagreements()) > 0
    assert repr(found).startswith("<CheckResult ")
    assert "\n" not in repr(found)


def test_a_rubric_as_text_judges_rows_and_keeps_what_repeats_it():
    Path("wordings.txt").write_text(WORDINGS)
    asked = {"judge": by_number, "wordings": "wordings.txt", "repeats": 1, "note": str}
    found = judgesense.check(RUBRIC, pandas.DataFrame(ROWS), **asked)
    assert isinstance(found, judgesense.CheckResult)
    assert (found.jss, found.card["checks"]["right"]["details"]["accuracy"]) == (1.0, 1.0)
    again = judgesense.check(rubric=found.result.settings["rubric"], data=ROWS, **asked)
    assert again.out == found.out
    assert str(found).startswith(found.verdict)
    assert found.to_pandas()["trust"].tolist() == [found.card["trust"]]


def test_a_baseline_in_memory_decides_the_gate():
    worse = [{**row, "verdict": "RUDE", "label": row["label"] or "POLITE"} for row in VERDICTS]
    right = [{**row, "verdict": row["label"]} for row in worse]
    found = judgesense.check(worse, baseline=right, note=str)
    assert found.change is not None
    assert found.decision == found.change.gate.decision == "FAIL"
    assert judgesense.check(right, baseline=worse, note=str).decision == "PASS"


NEITHER = {
    "a judge": (lambda: judgesense.check(by_number, ROWS), "third argument"),
    "nothing": (lambda: judgesense.check(human=["label"]), "nothing to check"),
    "a number": (lambda: judgesense.check(3), "data is a int"),
    "rubric alone": (lambda: judgesense.check(RUBRIC), "data= and judge="),
    "no judge": (lambda: judgesense.check(RUBRIC, ROWS), "judge= is missing"),
    "no data": (lambda: judgesense.check(RUBRIC, judge=by_number), "data= is missing"),
    "rows as a rubric": (lambda: judgesense.check(ROWS, ROWS, by_number), "has the type list"),
    "of the other": (lambda: judgesense.check(VERDICTS, limit=3), "limit= is for a rubric"),
    "of verdicts": (
        lambda: judgesense.check(RUBRIC, ROWS, by_number, verdict=["v"]),
        "verdict= is for verdicts",
    ),
    "misspelt": (lambda: judgesense.check(VERDICTS, colums={}), "did you mean 'columns'"),
    "a file": (lambda: judgesense.check("data-.csv"), "no file data-.csv"),
    "a rubric's file": (lambda: judgesense.check("rubric.txt", ROWS, by_number), "no file rubric"),
}


@pytest.mark.parametrize(("call", "message"), NEITHER.values(), ids=NEITHER)
def test_check_says_what_its_arguments_are(call, message):
    with pytest.raises(JudgeSenseError, match=message):
        call()


def test_items_and_verdicts_in_memory_are_judged_and_estimated():
    told = judgesense.judge_items(
        pandas.DataFrame(ROWS), by_number, task="tone", templates=TASK, scoring="generate", note=str
    )
    assert told.out.parent == Path("runs")
    assert (told.items, told.decided) == (12, 12)
    judged = pandas.read_csv(told.out)
    assert judged["verdict"].tolist() == [row["gold"] for row in ROWS]
    assert judged["margin"].tolist() == [1.0] * 12
    verdicts = [
        {"item_id": n, "system_id": system, "verdict": "YES" if n % k else "NO"}
        for system, k in (("x", 4), ("y", 2))
        for n in range(40)
    ]
    labels = [{**row, "label": row["verdict"]} for row in verdicts[:20] + verdicts[40:60]]
    found = judgesense.estimate(pandas.DataFrame(verdicts), labels)
    assert [(each["system"], each["corrected"]) for each in found.systems] == [
        ("x", 0.75),
        ("y", 0.5),
    ]
    with judgesense.load_judge(by_number, task="factuality", scoring="generate") as judge:
        items = pandas.DataFrame([{"question": "Is it?", "response": "text 3"}])
        assert judge(items)[0].verdict in ("YES", "NO", "UNCLEAR")
