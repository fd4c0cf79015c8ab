"""Files of verdicts as people have them: columns, labels, and what is said about them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import (
    cohen_kappa_score,
)
from typer.testing import CliRunner

import judgesense
from judgesense.cli import app
from judgesense.errors import JudgeSenseError

PANDALM = Path(__file__).parent / "data" / "pandalm.csv"


def table(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_text(text, encoding)
    return path


GOOD = {
    "names": "id,verdict,label\n1,PASS,PASS\n2,FAIL,PASS\n3,PASS,PASS\n4,FAIL,FAIL\n",
    "case": "ID,Judge Verdict,Human Label\n1,pass,PASS\n2,Fail,Pass\n3,PASS,pass\n4,fail,FAIL\n",
    "polarity": "id,verdict,label\n1,PASS,1\n2,FAIL,1\n3,PASS,1\n4,FAIL,0\n",
    "semicolons": "id;verdict;label\n1;PASS;PASS\n2;FAIL;PASS\n3;PASS;PASS\n4;FAIL;FAIL\n",
    "columns of that name": "id,judge,human\n1,PASS,PASS\n2,FAIL,PASS\n3,PASS,PASS\n4,FAIL,FAIL\n",
    "no id": "verdict,label\nPASS,PASS\nFAIL,PASS\nPASS,PASS\nFAIL,FAIL\n",
    "another status": "id,status,verdict,label\n1,done,PASS,PASS\n2,done,FAIL,PASS\n"
    "3,done,PASS,PASS\n4,done,FAIL,FAIL\n",
    "vocabulary": "id,gpt,human_label\n1,PASS,PASS\n2,FAIL,PASS\n3,PASS,PASS\n4,FAIL,FAIL\n",
    "texts": "qid,judge_output,gold\n1,I say [[PASS]],PASS\n2,So [[FAIL]],PASS\n"
    "3,It is good: [[PASS]],PASS\n4,Verdict: [[FAIL]],FAIL\n",
    "verdict and score": "id,verdict,score,label\n1,PASS,.9,PASS\n2,FAIL,.1,PASS\n"
    "3,PASS,.8,PASS\n4,FAIL,.2,FAIL\n",
}


@pytest.mark.parametrize("kind", [*GOOD, "bom", "utf-16", "jsonl", "json", "datasets"])
def test_files_that_people_have_are_understood(kind: str, tmp_path: Path) -> None:
    text = GOOD.get(kind, GOOD["names"])
    if kind in ("jsonl", "json"):
        rows = [
            dict(zip(("id", "verdict", "label"), line.split(","), strict=True))
            for line in text.split()[1:]
        ]
        content = json.dumps(rows) if kind == "json" else "\n".join(map(json.dumps, rows))
        file = table(tmp_path / f"mine.{kind}", content)
    elif kind == "datasets":
        datasets = pytest.importorskip("datasets")
        file = tmp_path / "saved"
        lines = [line.split(",") for line in text.split()[1:]]
        columns = dict(zip(("id", "verdict", "label"), zip(*lines, strict=True), strict=True))
        datasets.DatasetDict(
            {"test": datasets.Dataset.from_dict({k: list(v) for k, v in columns.items()})}
        ).save_to_disk(str(file))
    else:
        encoding = {"bom": "utf-8-sig", "utf-16": "utf-16"}.get(kind, "utf-8")
        text = text.replace(",", "\t") if kind == "utf-16" else text
        file = table(tmp_path / "mine.csv", text, encoding)
    report = judgesense.check(file, out=tmp_path / "out", note=str).report
    (found,) = report.people
    assert found["confusion"] == {
        "FAIL": {"FAIL": 1, "PASS": 1},
        "PASS": {"FAIL": 0, "PASS": 2},
    } or list(found["confusion"]) == ["Fail", "PASS"]
    assert (found["n"], found["accuracy"]) == (4, 0.75)


BAD = {
    "verdicts or labels": (
        "id,Bewertung,Team label\n1,ja,ja\n2,nein,ja\n3,ja,nein\n4,nein,nein\n5,n/a,ja\n",
        {},
        "--verdict Bewertung --human 'Team label'",
    ),
    "a person's row with another verdict": (
        "id,verdict,rater,label\n1,A,x,A\n1,B,y,A\n2,B,x,B\n",
        {},
        "row 2: verdict is 'B'",
    ),
    "no verdicts": ("id,label\n1,PASS\n2,FAIL\n", {}, "--verdict COLUMN"),
    "a misspelt column": (
        "id,verdict,label\n1,A,A\n2,B,B\n",
        {"human": ["lable"]},
        "did you mean 'label'",
    ),
    "another vocabulary": (
        "id,verdict,label\n1,good,x\n2,poor,y\n3,good,x\n",
        {},
        "--map x=good,y=poor",
    ),
    "scores": (
        "id,score,label\n1,0.83,pass\n2,1.2,fail\n3,0.4,pass\n",
        {},
        "--map '>=0.6=pass,<0.6=fail'",
    ),
    "scores from 1 to 10": (
        "id,score,label\n1,8,pass\n2,3,fail\n3,8,pass\n",
        {},
        "--map '>=4=pass,<4=fail'",
    ),
    "scores of people": (
        "id,verdict,human_score\n1,PASS,0.83\n2,FAIL,0.12\n3,PASS,0.4\n",
        {},
        "--map '>=0.5=PASS",
    ),
    "a text for a label": (
        f"id,verdict,text\n1,A,{'long ' * 20}\n2,B,{'and ' * 20}\n",
        {"human": ["text"]},
        "name the labels: --human COLUMN",
    ),
    "the same id twice": (
        "id,verdict,label\n1,A,A\n1,B,B\n2,A,B\n",
        {},
        "item '1' has a verdict already",
    ),
    "rows without an item": (
        "wording,verdict,label\na,A,A\nb,B,A\na,A,B\n",
        {},
        "--columns item_id=COLUMN",
    ),
    "epsilon": ("id,verdict,label\n1,A,A\n2,B,B\n", {"epsilon": 2.0}, "from 0 to 1"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_told_is_said_in_one_line_with_the_flag(kind: str, tmp_path: Path) -> None:
    text, options, message = BAD[kind]
    with pytest.raises(JudgeSenseError) as caught:
        judgesense.check(table(tmp_path / "x.csv", text), out=tmp_path / "out", note=str, **options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


NOTED = {
    "not used": (
        "id,verdict,label,quality\n1,A,A,B\n2,B,B,A\n3,A,B,A\n",
        {},
        "--human quality",
    ),
    "two columns of labels": (
        "id,verdict,label,gold\n1,A,A,B\n2,B,B,B\n",
        {},
        "'label' may be labels, too",
    ),
    "empty": ("id,verdict,label\n1,A,A\n2,,B\n3,B,B\n", {}, "1 row without a verdict"),
    "swapped": (
        "id,verdict,label\n1,A,A\n2,B,B\n",
        {"verdict": ["label"], "human": ["verdict"]},
        "--verdict verdict --human label",
    ),
    "tasks": (
        "id,task,verdict,label\n" + "".join(f"{n},Do {n}.,{'AB'[n % 2]},A\n" for n in range(20)),
        {},
        "'task' has 20 values, too many for tasks",
    ),
    "vocabulary": ("id,verdict,label\n1,PASS,1\n2,FAIL,0\n", {}, "1=PASS"),
}


@pytest.mark.parametrize("kind", NOTED)
def test_what_is_done_with_a_column_is_said_first(kind: str, tmp_path: Path) -> None:
    text, options, message = NOTED[kind]
    notes: list[str] = []
    file = table(tmp_path / "x.csv", text)
    judgesense.check(file, out=tmp_path / "out", note=notes.append, **options)
    assert message in " ".join(notes)


def test_scores_become_verdicts_by_a_limit(tmp_path: Path) -> None:
    text = "id,score,label\n1,0.83,pass\n2,0.12,fail\n3,0.4,pass\n4,1,pass\n"
    mapping = {">=0.5": "pass", "<0.5": "fail"}
    file = table(tmp_path / "x.csv", text)
    (found,) = judgesense.check(file, map=mapping, out=tmp_path / "out", note=str).report.people
    assert found["confusion"] == {
        "fail": {"pass": 1, "fail": 1},
        "pass": {"pass": 2, "fail": 0},
    }


def test_a_tie_between_people_has_no_gold_label(tmp_path: Path) -> None:
    text = "id,verdict,rater_a,rater_b\n1,A,A,A\n2,B,A,B\n3,B,B,B\n4,A,,A\n"
    found = judgesense.check(table(tmp_path / "x.csv", text), out=tmp_path / "out", note=str)
    report, folder = found.report, found.out
    by_human = {entry["human"]: entry for entry in report.people}
    assert by_human["majority"]["n"] == 3
    assert by_human["majority"]["between_people"]["ties"] == 1
    assert by_human["rater_a"]["n"] == 3
    assert json.loads((folder / "run.json").read_text())["ties"] == 1
    assert by_human["majority"]["alt_test"] is None


@pytest.mark.parametrize(
    ("header", "yes", "no", "verdicts", "people"),
    [
        ("ticket,gpt_grade,Maria,Jon", "good", "bad", ["gpt_grade"], ["Maria", "Jon"]),
        ("uid,llama-guard,gpt-4o,staff", "safe", "unsafe", ["gpt-4o", "llama-guard"], ["staff"]),
        ("Id,GPT-4o says,is_new,by Ana", "yes", "no", ["GPT-4o says"], ["by Ana"]),
        ("id,verdict,is_new,urgent", "yes", "no", ["judge"], []),
        ("Essay No,AI score,Ms Kaya,Mr Lo", "5", "2", ["AI score"], ["Ms Kaya", "Mr Lo"]),
    ],
)
def test_columns_of_any_name_are_told_apart_by_models_and_words(
    tmp_path: Path, header: str, yes: str, no: str, verdicts: list[str], people: list[str]
) -> None:
    text = f"{header}\n" + "".join(
        f"T-{n},{yes if n % 3 else no},{yes if n % 2 else no},{yes if n % 5 else no}\n"
        for n in range(30)
    )
    report = judgesense.check(table(tmp_path / "x.csv", text), out=tmp_path / "a", note=str).report
    assert sorted({card["judge"] for card in report.trust}) == verdicts
    assert {entry["human"] for entry in report.people} - {"majority"} == {*people}


@pytest.mark.parametrize("scale", [False, True])
def test_the_first_line_is_the_answer(command_line, tmp_path: Path, scale: bool) -> None:
    words = ("4", "2", "3") if scale else ("pass", "fail", "pass")
    rows = [f"{n},{words[n % 2]},{words[2 if n % 10 == 0 else n % 2]}" for n in range(60)]
    file = table(tmp_path / "x.csv", "id,verdict,label\n" + "\n".join(rows) + "\n")
    done = command_line("check", file, "--out", tmp_path / "out")
    first = done.stdout.splitlines()[0]
    assert first.startswith(f"Judge matches {'90' if scale else '100'}% [")
    assert ("within one point on 100%" in first) is scale
    assert "JSS" not in done.stdout


@pytest.mark.parametrize("apart", [False, True])
def test_labels_with_one_row_a_person(tmp_path: Path, apart: bool) -> None:
    wide = "id,verdict,rater_a,rater_b\n1,A,A,A\n2,B,A,B\n3,B,B,B\n4,A,A,\n"
    rows = [
        ("1", "A", "rater_a", "A"),
        ("1", "A", "rater_b", "A"),
        ("2", "B", "rater_a", "A"),
        ("2", "B", "rater_b", "B"),
        ("3", "B", "rater_a", "B"),
        ("3", "B", "rater_b", "B"),
        ("4", "A", "rater_a", "A"),
    ]
    long = "".join(f"{i},{v},{who},{label},{who}'s note\n" for i, v, who, label in rows)
    verdicts = "id,verdict,annotator,label,comment\n" + long
    human = []
    if apart:
        verdicts = "id,verdict\n1,A\n2,B\n3,B\n4,A\n"
        labels = "id,annotator,label\n" + "".join(f"{i},{w},{y}\n" for i, _, w, y in rows)
        human = [str(table(tmp_path / "labels.csv", labels))]
    same = judgesense.check(table(tmp_path / "x.csv", wide), out=tmp_path / "wide", note=str).report
    report = judgesense.check(
        table(tmp_path / "y.csv", verdicts),
        human=human,
        out=tmp_path / "long",
        runs=tmp_path,
        note=str,
    ).report
    keys = ("human", "n", "accuracy", "confusion", "between_people")
    assert [[e[k] for k in keys] for e in report.people] == [
        [e[k] for k in keys] for e in same.people
    ]
    assert {entry["task"] for entry in report.people} == {"y"}


def test_labels_on_some_items_correct_the_share_of_all(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    truth = rng.random(600) < 0.45
    said = np.where(truth, rng.random(600) < 0.9, rng.random(600) < 0.35)
    lines = [
        f"{n},{'pass' if s else 'fail'},{('pass' if t else 'fail') if n < 150 else ''}"
        for n, (s, t) in enumerate(zip(said, truth, strict=True))
    ]
    file = table(tmp_path / "x.csv", "id,verdict,label\n" + "\n".join(lines) + "\n")
    report = judgesense.check(file, out=tmp_path / "out", note=str).report
    (found,) = report.people
    share = found["corrected"]["pass"]
    assert found["n"] == 150
    assert share["verdicts"] == pytest.approx(said.mean())
    assert share["ci_low"] < truth.mean() < share["ci_high"] < share["verdicts"]


def test_labels_picked_with_unequal_chances_are_weighted(tmp_path: Path) -> None:
    # Of 40 doubtful verdicts all are labelled and half are right; of 120 sure ones a quarter.
    verdicts = table(
        tmp_path / "v.csv",
        "item_id,verdict\n" + "".join(f"{n},{'pass' if n % 2 else 'fail'}\n" for n in range(160)),
    )
    rows = [(n, "pass" if n % 4 < 2 else "fail", "doubtful", 1.0) for n in range(40)]
    rows += [(n, "pass" if n % 2 else "fail", "sure", 0.25) for n in range(40, 70)]
    labels = table(
        tmp_path / "l.csv",
        "item_id,label,stratum,probability\n"
        + "".join(f"{n},{label},{stratum},{chance}\n" for n, label, stratum, chance in rows),
    )
    notes: list[str] = []
    found = judgesense.check(verdicts, human=[str(labels)], out=tmp_path / "out", note=notes.append)
    (entry,) = found.report.people
    assert entry["n"] == 70
    assert entry["accuracy"] == pytest.approx(0.25 * 0.5 + 0.75 * 1.0)
    assert entry["accuracy_ci_low"] < 0.875 < entry["accuracy_ci_high"] < 0.94
    assert entry["accuracy"] == found.report.trust[0]["checks"]["right"]["details"]["accuracy"]
    agree = [(label, "pass" if n % 2 else "fail") for n, label, _, _ in rows]
    weights = [1 / chance for *_, chance in rows]
    kappa = cohen_kappa_score(*zip(*agree, strict=True), sample_weight=weights)
    assert entry["kappa"] == pytest.approx(kappa)
    assert entry["corrected"] == {}
    assert "the figures are weighted" in " ".join(notes)


def test_a_file_is_compared_with_an_earlier_one_item_by_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without --out, the baseline's folder lies in the current one.
    monkeypatch.chdir(tmp_path)

    def verdicts(name: str, wrong: int) -> str:
        rows = [("pass", "pass") if n >= wrong else ("fail", "pass") for n in range(60)]
        rows += [("fail", "fail")] * 60
        text = "".join(f"{n},{ours},{label}\n" for n, (ours, label) in enumerate(rows))
        return str(table(tmp_path / name, f"id,verdict,label\n{text}"))

    old, new = verdicts("old.csv", 2), verdicts("new.csv", 20)
    for first, second, decision, code in (
        (old, new, "FAIL", 1),
        (new, old, "PASS", 0),
        (old, old, "PASS", 0),
    ):
        done = CliRunner().invoke(
            app,
            [
                "check",
                second,
                "--baseline",
                first,
                "--out",
                str(tmp_path / "out"),
                "--format",
                "json",
            ],
        )
        assert done.exit_code == code, done.output
        change = json.loads(done.stdout)["change"]
        assert change["decision"] == decision
        (right,) = (row for row in change["conclusions"] if row["figure"] == "right")
        assert right["n_items"] == 120
        assert len(change["moved"]) == (18 if first != second else 0)
        shutil.rmtree(tmp_path / "out")


def test_an_empty_verdict_is_a_loss_and_other_labels_are_other_items(tmp_path: Path) -> None:
    labels = ["pass", "fail"] * 60

    def verdicts(name: str, rows: list[tuple[str, str]]) -> Path:
        lines = [f"{n},{ours},{label}" for n, (ours, label) in enumerate(rows)]
        return table(tmp_path / name, "\n".join(["id,verdict,label", *lines]))

    old = verdicts("old.csv", [(label, label) for label in labels])
    judgesense.check(old, out=tmp_path / "old", note=str)
    blank = verdicts("new.csv", [("" if n < 24 else one, one) for n, one in enumerate(labels)])
    found = judgesense.check(blank, out=tmp_path / "new", note=str).against(tmp_path / "old")
    assert found.change is not None
    assert {row["figure"] for row in found.change.conclusions if row["conclusion"] == "worse"} == {
        "right",
        "readable",
    }
    assert [row["kind"] for row in found.change.moved] == ["broken"] * 24
    other = verdicts("other.csv", [(one, one) for one in [*labels[1:], "pass"]])
    shifted = judgesense.check(other, out=tmp_path / "other", note=str)
    with pytest.raises(JudgeSenseError, match="120 of 120 items have another label"):
        shifted.against(tmp_path / "old")


def test_the_command_says_what_it_understood_and_then_at_most_twenty_lines(
    command_line, tmp_path: Path
) -> None:
    done = command_line("check", PANDALM, "--out", tmp_path / "out", "--epsilon", "0.1")
    assert done.returncode == 0, done.stderr
    assert "annotator_1, annotator_2 and annotator_3" in done.stderr.splitlines()[2]
    assert len(done.stdout.splitlines()) <= 20
    assert "ε 0.1" in done.stdout
    for name in ("report.json", "report.md", "report.html"):
        text = (tmp_path / "out" / name).read_text("utf-8")
        assert "annotator_3" in text.replace("\\", "")  # Markdown escapes the underscore


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["verdict.csv"], "did you mean 'verdicts.csv'"),
        (["verdicts.csv", "--human", "lable"], "did you mean 'label'"),
        (["verdicts.csv", "--judge", "m"], "RUBRIC.txt --data"),
        (["verdicts.csv", "--data", "verdicts.csv", "--judge", "m"], "is a table, not a rubric"),
        (["verdicts.csv", "--columns", "answer=verdict"], "unknown column 'answer'"),
        (["verdicts.csv", "--map", "good"], "LEFT=RIGHT"),
        (["rubric.txt", "--verdict", "verdict"], "--verdict is for a FILE"),
        (["rubric.txt"], "--data is missing"),
    ],
)
def test_a_wrong_command_is_refused_in_one_line(
    command_line, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "verdicts.csv", GOOD["names"])
    table(tmp_path / "rubric.txt", "Is it good? {verdict}")
    done = command_line("check", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_wordings_and_repeats_of_a_table_are_measured(tmp_path: Path) -> None:
    rows = [
        f"{n},{wording},{n % 2 == 0 or wording == 'b'},{n % 2 == 0}"
        for n in range(40)
        for wording in "ab"
    ]
    file = table(tmp_path / "x.csv", "item,wording,verdict,human\n" + "\n".join(rows) + "\n")
    report = judgesense.check(file, out=tmp_path / "out", note=str).report
    assert report.trust[0]["checks"]["steady"]["estimate"] == 0.5
    assert (report.people[0]["n"], report.people[0]["n_items"]) == (80, 40)
    assert report.people[0]["accuracy"] == 0.75


def test_a_file_without_labels_takes_those_of_its_baseline(tmp_path: Path) -> None:
    rows = [(f"q{n}", "pass" if n % 3 else "fail") for n in range(60)]
    old = table(
        tmp_path / "old.csv",
        "id,verdict,human_label\n" + "".join(f"{i},pass,{label}\n" for i, label in rows),
    )
    new = table(
        tmp_path / "new.csv", "id,verdict\n" + "".join(f"{i},{label}\n" for i, label in rows)
    )
    notes: list[str] = []
    check = judgesense.check(new, baseline=old, out=tmp_path / "out", note=notes.append)
    assert any("old.csv" in note for note in notes)
    assert check.report.people[0]["accuracy"] == 1
    assert check.change is not None
    assert {row["conclusion"] for row in check.change.conclusions if row["figure"] == "right"} == {
        "better"
    }
    # What decides is said once.
    assert str(check).count("'right' is better") == 1


@pytest.mark.parametrize(
    "flags",
    [
        ["--threshold", "0.9"],
        ["--scoring", "options"],
        ["--repeats", "9"],
        ["--seed", "5"],
        ["--looks", "30"],
        ["--margin", "0.1"],
        ["--paraphrases", "0"],
    ],
)
def test_flags_that_a_file_has_no_use_for_are_refused(flags: list[str], tmp_path: Path) -> None:
    file = table(tmp_path / "mine.csv", GOOD["names"])
    result = CliRunner().invoke(app, ["check", str(file), *flags, "--out", str(tmp_path / "out")])
    assert isinstance(result.exception, JudgeSenseError)
    assert str(result.exception).startswith(flags[0])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("options", [{"max_cost": 3}, {"paraphrases": 0}, {"base_url": "x"}])
def test_options_of_a_judge_are_refused_for_verdicts(options, tmp_path: Path) -> None:
    file = table(tmp_path / "mine.csv", GOOD["names"])
    with pytest.raises(JudgeSenseError, match=f"{next(iter(options))}="):
        judgesense.check(file, out=tmp_path / "out", **options)


def test_requirements_do_not_replace_what_a_baseline_shows(tmp_path: Path) -> None:
    labels = ["pass" if n % 3 else "fail" for n in range(90)]
    heading = "id,verdict,human_label\n"
    rows = [f"q{n},{label},{label}\n" for n, label in enumerate(labels)]
    good = table(tmp_path / "good.csv", heading + "".join(rows))
    bad = table(
        tmp_path / "bad.csv",
        heading + "".join(f"q{n},pass,{label}\n" for n, label in enumerate(labels)),
    )
    options = {"runs": tmp_path / "runs", "require": ["readable=0.5"], "note": str}
    worse = judgesense.check(bad, baseline=good, **options)
    assert (worse.decision, worse.passed, worse.exit_code) == ("FAIL", False, 1)
    assert judgesense.check(good, baseline=good, **options).exit_code != 1
    measured = judgesense.check(good, runs=tmp_path / "runs", note=str)
    assert (measured.passed, measured.exit_code) == (None, 0)


def test_a_dry_run_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people = "".join(
        f"q{n},{name},{'pass' if n % 3 else 'fail'},pass\n" for n in range(20) for name in "ab"
    )
    file = table(tmp_path / "long.csv", "item_id,annotator,label,judge_verdict\n" + people)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["check", "long.csv", "--dry-run"])
    assert result.exit_code == 0
    assert "of long.csv" in result.output.replace("\n", " ")
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
