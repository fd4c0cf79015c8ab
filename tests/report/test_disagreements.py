"""Where a judge is wrong: the rows, their kinds, the file, and groups that fare worse."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pyarrow as pa
import pytest
from reports import report_of
from scipy.stats import fisher_exact

import judgesense
from judgesense.measure.disagreements import KINDS, SPLIT, read_rows
from judgesense.reporting.html import render_html
from judgesense.reporting.report import report_runs
from judgesense.statistics.groups import compare_groups


def listed_of(make, log, benchmark, **more):
    rows: list = []
    report = report_of(
        log,
        benchmark.pairs,
        run=make.run(benchmark),
        prompts=benchmark.prompts,
        disagreements=rows,
        **more,
    )
    return report, {(row.item_id, row.order): row for row in rows if row.kinds}


def test_every_kind_is_counted_by_hand(make) -> None:
    benchmark = make.benchmark(make.AB, [make.OPTIONS] * 3, ["A"] * 6, orders=("AB", "BA"))

    def decide(prompt):
        item, order, right = prompt["item_id"], prompt["order"], prompt["gold"]
        other = "B" if right == "A" else "A"
        if item == "item-001":  # always the first option: wrong in BA, flipped by order
            return "A"
        if item == "item-002":  # one wording of three differs
            return other if prompt["template_id"] == "w2" else right
        if item == "item-003" and order == "AB":
            return "UNCLEAR" if prompt["template_id"] == "w1" else right
        if item == "item-004":
            return other
        return right

    def logprobs(prompt):
        close = prompt["item_id"] == "item-005"
        best = decide(prompt)
        first = 0.55 if close else 0.9
        shares = {"A": first, "B": 1 - first} if best != "B" else {"A": 1 - first, "B": first}
        return {label: math.log(share) for label, share in shares.items()}

    log = make.log(benchmark, decide, scoring="options", logprobs=logprobs)
    report, rows = listed_of(make, log, benchmark)
    wrong, by_wording, by_order, unreadable, near = KINDS
    kinds = {key: list(row.kinds) for key, row in rows.items()}
    assert kinds == {
        ("item-001", "AB"): [by_order],
        ("item-001", "BA"): [wrong, by_order],
        ("item-002", "AB"): [by_wording],
        ("item-002", "BA"): [by_wording],
        ("item-003", "AB"): [unreadable],
        ("item-004", "AB"): [wrong],
        ("item-004", "BA"): [wrong],
        ("item-005", "AB"): [near],
        ("item-005", "BA"): [near],
    }
    assert rows["item-005", "AB"].margin == pytest.approx(0.1)
    assert rows["item-004", "AB"].margin == pytest.approx(0.8)
    assert rows["item-002", "AB"].verdicts == {"w1": "A", "w2": "B", "w3": "A"}
    assert rows["item-001", "BA"].label == "B"
    assert rows["item-003", "AB"].verdict == "A"
    assert rows["item-002", "AB"].shares == pytest.approx({"w1": 0.9, "w2": 0.9, "w3": 0.9})
    assert "Text 4" in rows["item-004", "AB"].text
    (entry,) = report["where_wrong"]
    assert entry["n_listed"] == 9
    assert entry["n_judged"] == 12
    assert entry["kinds"] == {wrong: 3, by_wording: 2, by_order: 2, unreadable: 1, near: 2}


def test_a_label_that_nobody_gave_is_still_the_other_one(make) -> None:
    """An imported judge that always takes the first option, and no gold label: each one flips."""
    benchmark = make.benchmark(make.AB, [make.OPTIONS] * 2, ["A"] * 12, orders=("AB", "BA"))
    log = make.log(benchmark, lambda prompt: "A")
    at, rows = log.column_names.index("gold"), []
    log = log.set_column(at, "gold", pa.nulls(len(log), pa.string()))
    report = report_of(log, None, run=make.run(benchmark), disagreements=rows)
    assert {row.kinds for row in rows} == {(KINDS[2],)}
    assert report["trust"][0]["checks"]["fair"]["estimate"] == 0.0


def test_a_tie_between_wordings_is_split_and_wrong(make) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN, make.INVERTED], ["YES", "NO"])
    log = make.log(benchmark, lambda prompt: "YES")
    _, rows = listed_of(make, log, benchmark)
    assert {row.verdict for row in rows.values()} == {SPLIT}
    assert all(row.kinds == KINDS[:2] for row in rows.values())


def test_the_file_the_page_and_the_frame_have_the_same_rows(make, tmp_path) -> None:
    source = tmp_path / "mine.csv"
    lines = ["id,verdict,label,reason,channel,text"]
    for n in range(60):
        bad = n % 3 == 0
        channel = "chat" if bad else ("mail" if n % 2 else "phone")
        text = 'He said "no",\nthen <script>left</script>' if n == 3 else f"Text {n}"
        cell = text.replace('"', '""')
        lines.append(f'{n},{"NO" if bad else "YES"},YES,because {n},{channel},"{cell}"')
    lines.append("60,NO,NO,fine,chat,Text")
    source.write_text("\n".join(lines), "utf-8")
    found = judgesense.check(source, out=tmp_path / "out", note=str)
    report, folder = found.report, found.out
    (entry,) = report.where_wrong
    assert entry["n_listed"] == 20
    (worst,) = [group for group in entry["groups"] if group["by"] == "channel"]
    assert (worst["name"], worst["n"], worst["estimate"], worst["rest"]) == ("chat", 21, 1 / 21, 1)
    assert worst["ci_high"] < 0
    with (folder / "disagreements.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    assert [row["item_id"] for row in cells] == [str(n) for n in range(0, 60, 3)]
    assert cells[1]["text (item)"].endswith("<script>left</script>")
    assert json.loads(cells[0]["answers"]) == {"as judged": "because 0"}
    assert [row["channel"] for row in read_rows(folder)] == ["chat"] * 20
    frame = report.disagreements()
    assert list(frame["item_id"]) == [row["item_id"] for row in cells]
    assert list(frame["channel"]) == ["chat"] * 20
    assert "<script>left" not in (folder / "report.html").read_text("utf-8")
    assert len(json.dumps(report.to_dict())) < 60_000


def test_a_report_without_its_folder_refuses_and_says_what_to_run(make, tmp_path) -> None:
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 2, ["YES", "NO"] * 3)
    log = make.log(benchmark, lambda prompt: "YES")
    report = report_of(log, benchmark.pairs, run={})
    with pytest.raises(ValueError, match="judgesense report"):
        report.disagreements()
    assert "judgesense report DIR" in render_html(report.contents)
    folder = make.folder(tmp_path / "run", benchmark, log)
    assert len(report_runs(folder).disagreements()) == 3


def test_groups_match_a_test_of_two_shares() -> None:
    right = np.repeat([1.0, 0.0, 1.0, 0.0], [70, 10, 20, 20])
    (found,) = compare_groups(right, {"g": np.repeat(["a", "b"], [80, 40]).astype(object)})
    assert found["p_value"] == pytest.approx(fisher_exact([[70, 10], [20, 20]])[1], abs=1e-3)
    assert found["ci_low"] < found["difference"] < found["ci_high"] < 0
