"""Systems' scores and decisions from verdicts and people's labels; labels to add."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from judgesense.checking.labelling import open_labelling
from judgesense.cli import app
from judgesense.comparison.estimate import estimate
from judgesense.comparison.outputs import outputs_of, pick, strata_of
from judgesense.comparison.verdicts import read_verdicts
from judgesense.errors import JudgeSenseError
from judgesense.files.tables import csv_text


def write(path, header, rows):
    columns = header.split(",")
    text = csv_text(columns, [dict(zip(columns, row, strict=True)) for row in rows])
    path.write_text(text, encoding="utf-8")
    return path


def estimated(folder, verdicts, labels, **how):
    """The estimate from verdicts and labels, rows of item, system and word."""
    said = write(folder / "v.csv", "item_id,system_id,verdict", verdicts)
    return estimate(said, write(folder / "l.csv", "item_id,system_id,label", labels), **how)


@pytest.fixture
def biased(tmp_path):
    """A judge that likes x, on systems that are equally good; the first 80 items are labelled."""
    rng = np.random.default_rng(5)
    said, told = [], []
    for item in range(300):
        for system in ("x", "y"):
            good = rng.random() < 0.6
            for wording in ("w1", "w2", "w3"):
                yes = good if rng.random() < 0.8 else rng.random() < (0.95, 0.05)[system == "y"]
                said.append((item, system, wording, "YES" if yes else "NO"))
            if item < 80:
                told.append((item, system, "YES" if good else "NO"))
    return (
        write(tmp_path / "verdicts.csv", "item_id,system_id,wording,verdict", said),
        write(tmp_path / "labels.csv", "item_id,system_id,label", told),
    )


def test_labels_take_back_what_a_biased_judge_decides(biased):
    found = estimate(*biased)
    (pair,) = found.comparisons
    assert (pair["decision_naive"], pair["decision"], pair["changed"]) == ("x", None, True)
    assert pair["naive"] > 0.12
    assert pair["naive_ci_low"] > 0
    assert pair["ci_low"] < 0 < pair["ci_high"]
    assert pair["n_labels"] == 160
    for row in found.systems:
        assert row["ci_low"] < 0.6 < row["ci_high"]
        assert 0 < row["weight"] <= 1
        assert row["rg_ci_low"] < 0.6 < row["rg_ci_high"]
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["n_outputs"] == 600
    assert found.to_pandas().shape[0] == 2
    assert "<table>" in found._repr_html_()


def test_the_command_prints_the_same_as_json(biased):
    said, told = map(str, biased)
    done = CliRunner().invoke(app, ["estimate", said, "--labels", told, "--format", "json"])
    assert done.exit_code == 0
    assert json.loads(done.stdout) == json.loads(json.dumps(estimate(said, told).to_dict()))


def test_a_comparing_judge_gives_win_rates(tmp_path):
    rng = np.random.default_rng(0)
    said, told, chosen = [], [], []
    for item in range(200):
        better = "A" if rng.random() < 0.7 else "B"
        pair, verdict = ("x|y", better) if item % 2 else ("y|x", {"A": "B", "B": "A"}[better])
        said.append((item, pair, verdict))
        chosen.append(better)
        if item < 50:
            # People name the systems in one order throughout.
            told.append((item, "x|y", better))
    (pair,) = estimated(tmp_path, said, told).comparisons
    assert (pair["measure"], pair["system_a"], pair["system_b"]) == ("win_rate", "x", "y")
    assert pair["naive"] == pytest.approx(sum(label == "A" for label in chosen) / 200)
    assert pair["corrected"] == pytest.approx(pair["naive"], abs=0.02)
    assert (pair["decision"], pair["changed"]) == ("x", False)


def test_several_raters(tmp_path):
    rows = [(n, "YES" if n % 2 else "NO") for n in range(9)]
    said = write(tmp_path / "v.csv", "item_id,verdict", rows)
    votes = {0: "NNY", 1: "YYN", 2: "YN", 3: "Y"}
    rows = [
        (item, rater, {"Y": "YES", "N": "NO"}[vote])
        for item, cast in votes.items()
        for rater, vote in enumerate(cast)
    ]
    told = write(tmp_path / "l.csv", "item_id,rater,label", rows)
    found = estimate(said, told)
    assert (found.n_labels, found.n_raters, found.n_ties) == (4, 3, 1)
    assert found.systems[0]["labels_only"] == pytest.approx((0 + 1 + 0.5 + 1) / 4)
    assert estimate(said, told, raters="mean").systems[0]["labels_only"] == pytest.approx(
        (1 / 3 + 2 / 3 + 1 / 2 + 1) / 4
    )
    # From the package krippendorff.
    assert found.alpha == pytest.approx(-0.3125, abs=1e-9)
    assert any("no better than chance" in note for note in found.notes)


@pytest.mark.parametrize(("share", "decision"), [(0.9, None), (0.5, "y")])
def test_raters_of_other_systems_decide_nothing(tmp_path, share, decision):
    rng = np.random.default_rng(0)
    verdicts, labels = [], []
    for system, good in (("x", 0.5), ("y", 0.85)):
        for n in range(200):
            label = "YES" if rng.random() < good else "NO"
            verdicts.append((str(n), system, label if rng.random() < 0.9 else "NO"))
            of_ann = rng.random() < (share if system == "x" else 1 - share)
            labels.append((str(n), system, label, "ann" if of_ann else "ben"))
    said = write(tmp_path / "v.csv", "item_id,system_id,verdict", verdicts)
    told = write(tmp_path / "l.csv", "item_id,system_id,label,rater", labels)
    found = estimate(said, told)
    (row,) = found.comparisons
    assert row["corrected"] is not None
    assert row["decision"] == decision
    assert ("raters" in row["text"]) == (decision is None)
    assert "2 raters" in " ".join(found.notes)


def test_a_judge_worse_than_chance_and_labels_of_one_class(tmp_path):
    said = [(n, s, "YES" if n % 2 else "NO") for n in range(40) for s in ("x", "y")]
    rows = [(n, "x", "NO" if n % 2 else "YES") for n in range(12)]
    rows += [(n, "y", "YES") for n in range(12)]
    by_name = {row["system"]: row for row in estimated(tmp_path, said, rows).systems}
    assert by_name["x"]["rogan_gladen"] is None
    assert "chance" in by_name["x"]["degenerate"]
    assert by_name["x"]["weight"] == 0
    assert "one class" in by_name["y"]["degenerate"]
    assert by_name["y"]["corrected"] == 1.0


def test_a_few_labels_that_agree_decide_nothing(tmp_path):
    rows = [(n, s, "YES" if s == "x" else "NO") for n in range(30) for s in ("x", "y")]
    (pair,) = estimated(tmp_path, rows[:6], rows[:6]).comparisons
    assert (pair["naive"], pair["corrected"]) == (1.0, 1.0)
    assert (pair["decision_naive"], pair["decision"]) == (None, None)
    found = estimated(tmp_path, rows, rows)
    assert found.comparisons[0]["decision"] == "x"
    assert found.systems[0]["ci_high"] == 1.0
    # Wilson's interval for 30 of 30 begins at 0.886.
    assert found.systems[0]["ci_low"] == pytest.approx(0.886, abs=0.01)


VERDICTS = "item_id,system_id,verdict\n1,a,4\n1,b,2\n2,a,5\n2,b,1\n3,a,3\n3,b,3\n"


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        ("item_id,system_id,label\n9,a,4\n", "none of 1"),
        ("item_id,system_id,label\n1,a,4\n2,a,90\n", "row 2.*--map"),
        ("item_id,system_id,label\n1,a,1\n2,a,0\n", "row 1.*--map"),
        ("item_id,system_id,label\n1,a,4\n2,a,good\n", "row 2.*--map"),
        ("item_id,system_id,label\n1,a,4\n1,a,4\n", "row 2.*row 1.*rater"),
        ("item_id,system_id,label\n1,c,4\n", "row 1, system_id: 'c'"),
        ("item_id,label\n1,4\n", "row 1.*system_id"),
        ("system_id,label\na,4\n", "row 1.*'item_id'"),
        ("item_id,system_id,note\n1,a,4\n", "row 1.*'label'"),
        ("item_id,system_id,label\n1,a,\n", "none of 0"),
    ],
)
def test_bad_labels_name_the_row(tmp_path, labels, named):
    (tmp_path / "v.csv").write_text(VERDICTS)
    (tmp_path / "l.csv").write_text(labels)
    with pytest.raises(JudgeSenseError, match=named):
        estimate(tmp_path / "v.csv", tmp_path / "l.csv")


@pytest.mark.parametrize(
    ("verdicts", "how", "named"),
    [
        ("item_id,system_id,verdict\n1,a,YES\n2,,NO\n", {}, "row 2, system_id"),
        ("item_id,system_id,verdict\n1,a|b,A\n2,a,B\n", {}, "row 2, system_id"),
        ("item_id,system_id,verdict\n1,a,great\n2,a,fine\n", {}, "--positive.*fine"),
        (VERDICTS, {}, "no gold.*--labels"),
        (VERDICTS, {"systems": ["a", "z"]}, "'z'.*a, b"),
        (VERDICTS, {"confidence_level": 2.0}, "confidence_level"),
    ],
)
def test_bad_verdicts(tmp_path, verdicts, how, named):
    (tmp_path / "v.csv").write_text(verdicts)
    (tmp_path / "l.csv").write_text("item_id,system_id,label\n1,a,4\n")
    with pytest.raises(JudgeSenseError, match=named):
        estimate(tmp_path / "v.csv", tmp_path / "l.csv" if "systems" in how else None, **how)


def test_labels_without_a_verdict_are_counted_and_named(tmp_path):
    (tmp_path / "v.csv").write_text(VERDICTS)
    # As a spreadsheet writes it where a comma is the decimal point.
    (tmp_path / "l.csv").write_text("\ufeffitem_id;system_id;label\n1;a;4\n9;a;5\n8;b;5\n", "utf-8")
    found = estimate(tmp_path / "v.csv", tmp_path / "l.csv")
    assert found.n_labels == 1
    assert any(note.startswith("2 labels") and "row 2" in note for note in found.notes)


def test_people_may_use_other_words(tmp_path):
    (tmp_path / "v.csv").write_text("item_id,verdict\n1,YES\n2,NO\n3,YES\n4,NO\n")
    (tmp_path / "l.csv").write_text("item_id,grade\n1,ok\n2,poor\n3,ok\n")
    found = estimate(
        tmp_path / "v.csv",
        tmp_path / "l.csv",
        label_columns={"label": "grade"},
        map={"ok": "YES", "poor": "NO"},
    )
    assert found.systems[0]["labels_only"] == pytest.approx(2 / 3)


def picked(said, told, path, n):
    """A file of n more labels with their strata, as ``judgesense label`` writes one."""
    outputs = outputs_of(read_verdicts(said))
    known = labelled(told)
    keys = list(
        zip(outputs.items.tolist(), [outputs.systems[c] for c in outputs.system], strict=True)
    )
    given = np.array([1.0 if key in known else np.nan for key in keys])
    chosen, strata, weights, _ = pick(outputs, given, (0, 1), n, seed=1)
    rows = [(*keys[output], name, "YES") for output, name in zip(chosen, strata, strict=True)]
    return write(path, "item_id,system_id,stratum,label", rows), rows, weights


def test_picked_labels_come_back_through_people(biased, tmp_path):
    said, told = biased
    out, rows, weights = picked(said, told, tmp_path / "next.csv", 30)
    assert len(rows) == 30
    assert not {row[:2] for row in rows} & labelled(told)
    found = estimate(said, [told, out])
    assert (found.n_labels, found.picked) == (190, True)
    # The weight of each stratum is its number of outputs by label.
    strata = strata_of(outputs_of(read_verdicts(said)))
    for row, weight in zip(rows, weights, strict=True):
        labels = int((strata == row[2]).sum()) / weight
        assert labels == pytest.approx(round(labels))


def labelled(path):
    with path.open(encoding="utf-8") as source:
        return {(row["item_id"], row["system_id"]) for row in csv.DictReader(source)}


def test_picked_labels_need_the_verdicts_they_were_picked_from(biased, tmp_path):
    said, told = biased
    out, *_ = picked(said, told, tmp_path / "next.csv", 10)
    text = said.read_text().splitlines()
    said.write_text(
        "\n".join([text[0], *(line.replace("NO", "YES") for line in text[1:1200]), *text[1200:]])
    )
    with pytest.raises(JudgeSenseError, match=r"row .*stratum"):
        estimate(said, [told, out])


def test_the_example_of_the_page(tmp_path, monkeypatch):
    root = Path(__file__).parents[2]
    page = (root / "docs" / "label-and-estimate.md").read_text("utf-8")
    (shown,) = re.findall(r"```text\n\$ judgesense estimate.*?\n(.*?)\n```", page, re.S)
    monkeypatch.chdir(tmp_path)
    exec((root / "examples" / "two_systems.py").read_text("utf-8"), {})
    assert str(estimate("verdicts.csv", "people.csv")) == shown


def test_labels_that_the_page_did_not_pick_are_assumed_to_be_a_random_sample(
    tmp_path: Path,
) -> None:
    verdicts = tmp_path / "verdicts.csv"
    rows = [f"q{k},{'YES' if k % 3 else 'NO'}" for k in range(60)]
    verdicts.write_text("\n".join(["item_id,verdict", *rows]), "utf-8")
    labelling, _ = open_labelling(verdicts, verdict="verdict")
    for at in range(20):
        labelling.put("ann", at, "YES", "")
    with labelling.out.open(encoding="utf-8") as file:
        given = {row["item_id"] for row in csv.DictReader(file)}
    others = [f"q{k},NO" for k in range(60) if f"q{k}" not in given][:20]
    (tmp_path / "others.csv").write_text("\n".join(["item_id,label", *others]), "utf-8")

    def assumed(*files: Path) -> bool:
        return any("random sample" in note for note in estimate(verdicts, [*files]).notes)

    assert not assumed(labelling.out)
    assert assumed(tmp_path / "others.csv")
    assert assumed(labelling.out, tmp_path / "others.csv")


def test_labels_of_what_the_judge_failed_correct_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows, labels = [], []
    for n in range(300):
        good = rng.random() < 0.72
        verdict = good if rng.random() < 0.8 else not good
        rows.append({"item_id": f"i{n}", "verdict": "YES" if verdict else "NO"})
        if rng.random() < (0.05 if verdict else 0.6):
            labels.append({"item_id": f"i{n}", "label": "YES" if good else "NO"})
    (system,) = estimate(rows, labels).systems
    assert (system["corrected"], system["rogan_gladen"]) == (None, None)
    assert "no random part" in (system["degenerate"] or "")
    random = [{"item_id": row["item_id"], "label": row["verdict"]} for row in rows[::4]]
    assert estimate(rows, random).systems[0]["corrected"] is not None


def test_the_same_text_under_several_ids_counts_once():
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(["alas", "box", "cold", "door", "end"], 9)) for _ in range(40)]
    rows = [
        {"item_id": 4 * n + copy, "text": (text, text.upper())[copy % 2], "verdict": "YN"[n % 2]}
        for n, text in enumerate(texts)
        for copy in range(4)
    ]
    labels = [{"item_id": row["item_id"], "label": row["verdict"]} for row in rows]
    bare = [{"item_id": row["item_id"], "verdict": row["verdict"]} for row in rows]
    copied, apart = (estimate(each, labels, positive="Y").systems[0] for each in (rows, bare))
    widths = [each["naive_ci_high"] - each["naive_ci_low"] for each in (copied, apart)]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.1)


@pytest.mark.parametrize(("labelled", "is_said"), [(25, True), (150, False)])
def test_errors_that_no_label_shows_are_named(labelled, is_said):
    rng = np.random.default_rng(0)
    scores = rng.integers(1, 6, 300)
    rows = [{"item_id": n, "verdict": int(score)} for n, score in enumerate(scores)]
    labels = [{"item_id": n, "label": int(scores[n])} for n in range(labelled)]
    found = estimate(rows, labels)
    assert any("Larger errors" in note for note in found.notes) is is_said


@pytest.mark.parametrize(
    ("shared", "decision", "says"),
    [
        (60, "x", "prefers x to y, and the labels agree, if"),
        (40, "x", "On the 40 prompts that both answered"),
        (5, None, "answered other prompts (5 in common)"),
        (0, None, "answered other prompts (0 in common)"),
    ],
)
def test_systems_are_compared_on_prompts_that_both_answered(tmp_path, shared, decision, says):
    rng = np.random.default_rng(0)
    rows = [
        (str(n) if n < shared else f"{system}{n}", system, "YES" if rng.random() < good else "NO")
        for system, good in (("x", 0.95), ("y", 0.4))
        for n in range(60)
    ]
    (row,) = estimated(tmp_path, rows, rows[:45] + rows[60:105]).comparisons
    assert row["decision"] == decision
    assert says in row["text"]
    assert row["corrected"] is not None
