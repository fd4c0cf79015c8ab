"""Labels of people beside verdicts: PandaLM, scikit-learn and the alternative annotator test."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pytest
from scipy.stats import ttest_1samp
from sklearn.metrics import (
    accuracy_score,
    cohen_kappa_score,
    confusion_matrix,
    precision_recall_fscore_support,
)

import judgesense
from judgesense.statistics.alternative_annotator import alternative_annotator

PANDALM = Path(__file__).parent / "data" / "pandalm.csv"
LABELS = ["1", "2", "TIE"]
PEOPLE = ["annotator_1", "annotator_2", "annotator_3"]


@pytest.fixture(scope="module")
def pandalm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    report = judgesense.check(
        PANDALM, out=tmp_path_factory.mktemp("pandalm") / "out", note=str
    ).report
    return report.to_dict()


def rows_of(judge: str) -> list[dict[str, str]]:
    with PANDALM.open(newline="") as file:
        return [row for row in csv.DictReader(file) if row[judge]]


def alternative_test(
    judge: list[str], people: list[list[str]], epsilon: float
) -> tuple[float, float, list[float]]:
    """The test as the paper defines it (section 3): W^f, W^h, d, one t test a person, BY.

    Ours is exact, so its p-values come near the t test's only with many items.
    """
    p_values, advantages = [], []
    for j, own in enumerate(people):
        others = [labels for k, labels in enumerate(people) if k != j]
        wins_f, wins_h = [], []
        for i, verdict in enumerate(judge):
            s_f = sum(labels[i] == verdict for labels in others) / len(others)
            s_h = sum(labels[i] == own[i] for labels in others) / len(others)
            wins_f.append(1 if s_f >= s_h else 0)
            wins_h.append(1 if s_h >= s_f else 0)
        d = np.array(wins_h) - np.array(wins_f)
        p_values.append(float(ttest_1samp(d, epsilon, alternative="less").pvalue))
        advantages.append(float(np.mean(wins_f)))
    m = len(p_values)
    harmonic = sum(1 / k for k in range(1, m + 1))
    ranked = sorted(p_values)
    passed = [k for k, p in enumerate(ranked, 1) if p <= k / (m * harmonic) * 0.05]
    return max(passed, default=0) / m, float(np.mean(advantages)), p_values


@pytest.mark.parametrize("judge", ["gpt_3.5_turbo", "pandalm_7b"])
@pytest.mark.parametrize("human", ["majority", *PEOPLE])
def test_figures_equal_those_of_scikit_learn(
    pandalm: dict[str, Any], judge: str, human: str
) -> None:
    rows = rows_of(judge)
    votes = [[row[name] for name in PEOPLE] for row in rows]
    truth = [
        max(LABELS, key=vote.count) if human == "majority" else vote[PEOPLE.index(human)]
        for vote in votes
    ]
    said = [row[judge] for row in rows]
    (found,) = [e for e in pandalm["people"] if e["judge"] == judge and e["human"] == human]
    assert found["n"] == len(rows)
    assert found["kappa"] == pytest.approx(cohen_kappa_score(truth, said, labels=LABELS))
    assert found["kappa_ci_low"] < found["kappa"] < found["kappa_ci_high"]
    assert found["accuracy"] == pytest.approx(accuracy_score(truth, said))
    assert found["constant_accuracy"] == max(truth.count(x) for x in LABELS) / len(truth)
    table = [[found["confusion"][verdict][label] for verdict in LABELS] for label in LABELS]
    assert table == confusion_matrix(truth, said, labels=LABELS).tolist()
    precision, recall, _, support = precision_recall_fscore_support(truth, said, labels=LABELS)
    for at, label in enumerate(LABELS):
        figures = found["per_label"][label]
        assert figures["n"] == support[at]
        assert figures["precision"] == pytest.approx(precision[at])
        assert figures["recall"] == pytest.approx(recall[at])
        corrected = found["corrected"][label]
        assert corrected["verdicts"] == pytest.approx(said.count(label) / len(said))
        # Every item has a label, so the corrected share is that of the labels.
        assert corrected["share"] == pytest.approx(truth.count(label) / len(truth))
        assert corrected["ci_low"] < corrected["share"] < corrected["ci_high"]


@pytest.mark.parametrize("judge", ["gpt_3.5_turbo", "pandalm_7b"])
def test_people_beside_each_other_and_the_alternative_annotator_test(
    pandalm: dict[str, Any], judge: str
) -> None:
    rows = rows_of(judge)
    columns = [[row[name] for row in rows] for name in PEOPLE]
    (found,) = [e for e in pandalm["people"] if e["judge"] == judge and e["human"] == "majority"]
    between = found["between_people"]
    for pair in between["pairs"]:
        sides = [columns[PEOPLE.index(pair[side])] for side in "ab"]
        assert pair["kappa"] == pytest.approx(cohen_kappa_score(*sides))
    codes = [[LABELS.index(label) for label in column] for column in columns]
    alpha = krippendorff.alpha(codes, level_of_measurement="nominal")
    assert between["alpha"] == pytest.approx(alpha)
    winning, advantage, p_values = alternative_test([r[judge] for r in rows], columns, 0.2)
    test = found["alt_test"]
    assert test["winning_rate"] == winning
    assert test["advantage_probability"] == pytest.approx(advantage)
    assert list(test["p_values"]) == PEOPLE
    assert list(test["p_values"].values()) == pytest.approx(p_values, abs=0.01)
    alone = [e for e in pandalm["people"] if e["human"] in PEOPLE]
    assert all(e["alt_test"] is None and "3 people" in e["alt_test_reason"] for e in alone)


@pytest.mark.parametrize("n", [200, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 0.15, 0.2, 0.6])
def test_the_alternative_annotator_test_on_drawn_labels(n: int, epsilon: float) -> None:
    rng = np.random.default_rng(n)
    truth = rng.integers(0, 3, n)
    drawn = [
        np.where(rng.random(n) < right, truth, rng.integers(0, 3, n))
        for right in (0.9, 0.5, 0.6, 0.7)
    ]
    judge, *people = [[LABELS[code] for code in column] for column in drawn]
    found = alternative_annotator(judge, people, epsilon=epsilon)
    winning, advantage, p_values = alternative_test(judge, people, epsilon)
    assert found is not None
    assert found.winning_rate == pytest.approx(winning)
    assert found.advantage_probability == pytest.approx(advantage)
    assert found.p_values == pytest.approx(p_values, abs=0.02)


def test_on_a_scale_the_smaller_distance_wins() -> None:
    people = [["1"] * 40, ["1"] * 40, ["5"] * 40]
    found = alternative_annotator(["3"] * 40, people, scale=["1", "2", "3", "4", "5"])
    nominal = alternative_annotator(["3"] * 40, people)
    assert found is not None
    assert nominal is not None
    assert (found.advantage_probability, found.winning_rate) == (1.0, 1.0)
    assert nominal.advantage_probability == pytest.approx(1 / 3)
    assert alternative_annotator(["1"] * 9, [["1"] * 9, ["1"] * 9]) is None


@pytest.mark.parametrize(("judge_right", "state"), [(0.66, "unmeasured"), (0.2, "fail")])
def test_peoples_own_agreement_is_the_ceiling(
    tmp_path: Path, judge_right: float, state: str
) -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 300)

    def drawn(right: float) -> list[str]:
        return [("NO", "YES")[t if rng.random() < right else 1 - t] for t in truth]

    columns = {"verdict": drawn(judge_right), **{f"p{n}": drawn(0.68) for n in range(3)}}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    result = judgesense.check(rows, human=["p0", "p1", "p2"], out=tmp_path / "out", note=str)
    (card,) = result.report.trust
    right = card["checks"]["right"]
    assert right["state"] == state
    assert (card["trust"] == "avoid") == (state == "fail")
    if state == "unmeasured":
        assert right["details"]["kappa_between_people"] < 0.4
        assert "people agree too little with each other" in right["text"]
        assert result.next[0]["kind"] == "label_more"


def test_a_majority_is_said_of_the_items_that_have_one(tmp_path: Path) -> None:
    rows = [
        {"id": n, "verdict": "YN"[n % 2], "p1": "YN"[n % 2], "p2": "YN"[(n + (n % 4 == 0)) % 2]}
        for n in range(40)
    ]
    found = judgesense.check(rows, human=["p1", "p2"], out=tmp_path / "out", runs=tmp_path)
    (card,) = found.report.trust
    assert "(30 of 40 items)" in card["checks"]["right"]["text"]


def test_the_first_of_many_judges_is_said_to_be_chosen(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, 40)
    judges = {f"j{n}": gold ^ (rng.random(40) >= 0.7) for n in range(12)}
    rows = [
        {"id": n, "label": "NY"[gold[n]]} | {name: "NY"[said[n]] for name, said in judges.items()}
        for n in range(40)
    ]
    found = judgesense.check(
        rows, verdict=[*judges], human="label", out=tmp_path / "out", runs=tmp_path
    )
    said = str(found).partition("would match about ")[2].partition("%")[0]
    most = max(each.people[0].accuracy for each in found.report.assessments)
    assert most > 0.78 > 0.75 >= int(said) / 100


def test_the_interval_is_that_of_texts_not_of_their_edits(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    base, rows = rng.integers(0, 2, 80), []
    for text in "abc":
        verdicts = base ^ (rng.random(80) < 0.08)
        rows += [
            {"item_id": n, "wording": f"{text}{edit}", "family": text, "verdict": "NY"[verdicts[n]]}
            for edit in range(4)
            for n in range(80)
        ]
    ends = {}
    for named in (True, False):
        own = [row if named else {**row, "family": ""} for row in rows]
        folder = tmp_path / str(named)
        (card,) = judgesense.check(own, out=folder / "out", runs=folder).report.trust
        ends[named] = card["checks"]["steady"]["ci_low"]
    assert card["checks"]["steady"]["details"].get("n_families") is None
    assert ends[True] < ends[False] - 0.05
