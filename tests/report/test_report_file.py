"""report.json: written from assessments and read into them, today's files and earlier ones."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from reports import report_of

import judgesense
from judgesense.errors import JudgeSenseError
from judgesense.measure.report_file import contents_of, load_report, merge, report_json
from judgesense.reporting.documents import render_badge, render_latex, render_markdown
from judgesense.reporting.html import render_html
from judgesense.reporting.terminal import render_brief, render_terminal

RENDERERS = (
    render_badge,
    render_brief,
    render_html,
    render_latex,
    render_markdown,
    render_terminal,
)


def texts(contents) -> list[str]:
    return [render(contents) for render in RENDERERS]


def written(report) -> str:
    return json.dumps(report_json(report), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> Path:
    """Remedies, contrasts, repeats and examples of three judges."""
    folder = tmp_path_factory.mktemp("demo") / "run"
    judgesense.demo(folder)
    return folder


@pytest.fixture(scope="module")
def labelled(tmp_path_factory) -> Path:
    """Three people's labels."""
    folder = tmp_path_factory.mktemp("labelled")
    lines = ["id,verdict,ann,bob,cem"]
    for n in range(90):
        labels = ["YES" if (n + k) % (k + 3) else "NO" for k in range(3)]
        lines.append(f"{n},{'YES' if n % 4 else 'NO'},{','.join(labels)}")
    (folder / "verdicts.csv").write_text("\n".join(lines), "utf-8")
    judgesense.check(
        folder / "verdicts.csv", human=["ann", "bob", "cem"], out=folder / "run", note=str
    )
    return folder / "run"


def attacked(make):
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 2, ["YES", "NO"] * 12)
    rows = make.log(benchmark, make.oracle).to_pylist()
    attacks = [
        {**row, "variant": "authority#1", "variant_class": "attack", "decision": "YES"}
        for row in rows
        if row["gold"] == "NO"
    ]
    log = pa.Table.from_pylist([*rows, *attacks], schema=make.log(benchmark, make.oracle).schema)
    return report_of(log, benchmark.pairs, run=make.run(benchmark)).contents


@pytest.mark.parametrize("name", ["demo", "labelled"])
def test_what_is_read_is_written_byte_for_byte(name, request) -> None:
    folder = request.getfixturevalue(name)
    assert written(load_report(folder)) == (folder / "report.json").read_text("utf-8")


def test_attacks_are_read_as_they_were_measured(make) -> None:
    contents = attacked(make)
    assert contents.assessments[0].attacks[0].turned_items
    assert contents_of(json.loads(written(contents))) == contents


def test_a_file_of_an_earlier_version_is_read_and_shown(demo) -> None:
    whole = load_report(demo)
    report = json.loads((demo / "report.json").read_text("utf-8"))
    for name in ("people", "where_wrong", "variants", "attacks", "damage", "next", "plan"):
        del report[name]
    for card in report["trust"]:
        del card["remedy"], card["checks"]["resistant"], card["checks"]["notices"]
        for check in card["checks"].values():
            check.pop("details")
    for cell in report["cells"]:
        del cell["accuracy_ci_low"], cell["jss_repeat"]
        cell["verdict"] = "steady"
    report["to_settle"] = []
    earlier = contents_of(report)
    assert [entry.card.trust for entry in earlier.assessments] == [
        entry.card.trust for entry in whole.assessments
    ]
    assert [entry.mapped.jss for entry in earlier.measured] == [
        entry.mapped.jss for entry in whole.measured
    ]
    assert earlier.assessments[0].next_step is None
    assert all(texts(earlier))


@pytest.mark.parametrize(
    ("name", "key", "value", "place"),
    [
        ("trust", "trust", "perhaps", r"trust\[0\], trust"),
        ("cells", "jss", "high", r"cells\[0\], jss"),
        ("wordings", "template", None, r"wordings\[0\], template"),
        ("next", "kind", 3, r"next\[0\], kind"),
        ("findings", "judge", [], r"findings\[0\], judge"),
    ],
)
def test_a_value_of_another_type_is_named_with_its_place(demo, name, key, value, place) -> None:
    report = json.loads((demo / "report.json").read_text("utf-8"))
    report[name][0][key] = value
    with pytest.raises(JudgeSenseError, match=f"report.json, {place}: "):
        contents_of(report)


def test_a_run_that_is_named_twice_counts_once(demo) -> None:
    contents = load_report(demo)
    assert merge([contents, contents]) == contents
    assert str(judgesense.report(demo, demo)) == render_brief(contents)
