"""Claims of `check` on data that tempt it: each is made, withheld or has its condition."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judgesense
from judgesense.checking.result import CheckResult
from judgesense.errors import JudgeSenseError
from judgesense.reporting.sentences import UNSEEN

PEOPLE = ("ann", "ben", "cat")
Row = dict[str, Any]


def word(is_good: Any) -> str:
    return "pass" if is_good else "fail"


def checked(folder: Path, rows: list[Row], **options: Any) -> CheckResult:
    return judgesense.check(rows, out=folder / "out", runs=folder, note=lambda _: None, **options)


def with_people(
    judge: float, person: float, copies: tuple[float, ...] = (0, 0, 0), seed: int = 0
) -> list[Row]:
    """300 items, a judge and three people who are right with some chance; some copy the judge."""
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    for truth in rng.random(300) < 0.6:
        verdict = truth == (rng.random() < judge)
        row: Row = {"item_id": len(rows), "verdict": word(verdict)}
        for name, copied in zip(PEOPLE, copies, strict=True):
            own = truth == (rng.random() < person)
            row[name] = word(verdict if rng.random() < copied else own)
        rows.append(row)
    return rows


@pytest.mark.parametrize(
    ("judge", "person", "copies", "named", "may"),
    [
        (0.9, 0.9, (0, 0, 0), (), True),
        (0.99, 0.8, (0, 0, 0), (), True),  # Better than people, who agree with it more.
        (0.65, 0.9, (0, 0, 0.9), ("cat",), False),
    ],
)
def test_a_person_who_copied_the_judge_is_named(
    tmp_path: Path, judge: float, person: float, copies: Any, named: tuple[str, ...], may: bool
) -> None:
    result = checked(
        tmp_path, with_people(judge, person, copies), human=PEOPLE, require=["right=0.5"]
    )
    first = result.report.assessments[0].people[0]
    assert first.between_people is not None
    assert first.between_people.like_judge == named
    assert (f"may replace a person, {UNSEEN}" in str(result)) == may
    assert result.verdict.startswith("PASS")
    assert result.verdict.endswith(UNSEEN)


def in_both_orders(sticks: float, gold: str, reads_own: bool) -> list[Row]:
    """80 items in both orders; a judge that takes the first option with a chance, else is right."""
    rng = np.random.default_rng(int(10 * sticks))
    rows: list[Row] = []
    for item in range(80):
        own = str(rng.choice(["A", "B"]))
        for order in ("AB", "BA"):
            shown = own if order == "AB" else "AB"["AB".index(own) - 1]
            verdict = "A" if rng.random() < sticks else shown
            if reads_own and order == "BA":
                verdict = "AB"["AB".index(verdict) - 1]
            row = {"item_id": item, "order": order, "verdict": verdict}
            rows.append(row | {"own": {"label": own}, "shown": {"label": shown}}.get(gold, {}))
    return rows


@pytest.mark.parametrize("gold", ["own", "shown"])
@pytest.mark.parametrize("reads_own", [False, True])
def test_people_show_what_a_letter_names(tmp_path: Path, gold: str, reads_own: bool) -> None:
    (entry,) = checked(tmp_path, in_both_orders(0, gold, reads_own)).report.assessments
    assert entry.card.checks["fair"].estimate == 1
    assert entry.people[0].accuracy == 1


@pytest.mark.parametrize("gold", ["own", "shown", "none"])
def test_letters_in_both_orders_are_a_question(tmp_path: Path, gold: str) -> None:
    rows = in_both_orders(1, gold, reads_own=False)
    with pytest.raises(JudgeSenseError, match=r"A=first,B=second .* A=model_a,"):
        checked(tmp_path, rows)
    for mapping, fair in (("first second", 0), ("model_a model_b", 1)):
        words = dict(zip("AB", mapping.split(), strict=True))
        (entry,) = checked(tmp_path / str(fair), rows, map=words).report.assessments
        assert entry.card.checks["fair"].estimate == fair


def test_an_item_on_which_two_people_tie_is_half_right(tmp_path: Path) -> None:
    agreed = [("pass", "fail")[n % 2] for n in range(20)]
    people = [(word, word) for word in agreed] + [("pass", "fail")] * 10
    verdicts = [*agreed[:16], *reversed(agreed[16:])] + ["pass"] * 10
    rows = [
        {"item_id": n, "verdict": verdict, "ann": ann, "ben": ben, "half": f"h{n // 20}"}
        for n, (verdict, (ann, ben)) in enumerate(zip(verdicts, people, strict=True))
    ]
    result = checked(tmp_path, rows, human=["ann", "ben"], require=["right=0.6"])
    (entry,) = result.report.assessments
    first, *persons = entry.people
    assert (first.n, first.accuracy) == (20, 0.8)
    assert first.accuracy_with_ties == pytest.approx((16 + 5) / 30)
    by_person = [row.accuracy or 0.0 for row in persons]
    assert first.accuracy_with_ties == pytest.approx(np.mean(by_person))
    assert entry.where_wrong is not None
    shares = {share.name: share.estimate for share in entry.where_wrong.shares}
    assert (shares["h0"], shares["h1"]) == (0.8, 0.5)
    assert result.decision == "INCONCLUSIVE"


@pytest.mark.parametrize(("picked", "state"), [(False, "pass"), (True, "unmeasured")])
def test_labels_of_what_the_judge_failed_measure_nothing(
    tmp_path: Path, picked: bool, state: str
) -> None:
    rng = np.random.default_rng(1)
    rows: list[Row] = []
    for truth in rng.random(400) < 0.5:
        verdict = truth == (rng.random() < 0.85)
        chance = (0.1 if verdict else 0.9) if picked else 0.5
        row: Row = {"item_id": len(rows), "verdict": word(verdict)}
        rows.append(row | {"label": word(truth) if rng.random() < chance else None})
    result = checked(tmp_path, rows, require=["right=0.95"])
    (entry,) = result.report.assessments
    assert entry.card.checks["right"].state == state
    assert result.decision == ("INCONCLUSIVE" if picked else "FAIL")
    assert entry.card.trust == "unknown"


@pytest.mark.parametrize("state", ["pass", "unmeasured"])
def test_labels_of_what_two_judges_contest_measure_nothing(tmp_path: Path, state: str) -> None:
    rng = np.random.default_rng(2)
    rows: list[Row] = []
    for truth in rng.random(400) < 0.5:
        one, two = (truth == (rng.random() < 0.85) for _ in range(2))
        row: Row = {"item_id": len(rows), "verdict": word(one), "verdict_b": word(two)}
        is_labelled = rng.random() < (0.4 if state == "pass" or one == two else 1.0)
        rows.append(row | {"label": word(truth) if is_labelled else None})
    result = checked(tmp_path, rows, verdict=["verdict", "verdict_b"])
    states = [entry.card.checks["right"].state for entry in result.report.assessments]
    assert states == [state, state]


IDS = {
    "conv{c}-turn{t}": "beginning of the id",
    "t-{c:04d}_q{t}": "beginning of the id",
    "dlg/{c}/{t}": "beginning of the id",
    "c{c}t{t}": "beginning of the id",
    "q{n}": None,
    "item-{n:04d}": None,
    "{language}-{n}": None,
}


@pytest.mark.parametrize("form", IDS)
def test_turns_of_a_conversation_are_a_cluster(tmp_path: Path, form: str) -> None:
    rows: list[Row] = []
    for n in range(100):
        name = form.format(c=n // 5, t=n % 5, n=n, language=["en", "de", "fr", "es"][n % 4])
        # Whole conversations are right or wrong.
        verdict = word(n % 2 == (n // 5 % 4 > 0))
        rows.append({"item_id": name, "verdict": verdict, "label": word(n % 2)})
    notes: list[str] = []
    file = tmp_path / "rows.csv"
    with file.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    found = judgesense.check(file, out=tmp_path / "out", runs=tmp_path, note=notes.append)
    alone = {"cluster_id": "item_id"}
    undone = judgesense.check(
        file, out=tmp_path / "alone", runs=tmp_path, note=notes.append, columns=alone
    )
    ends = [
        (row.accuracy_ci_low or 0.0, row.accuracy_ci_high or 0.0)
        for result in (found, undone)
        for row in result.report.assessments[0].people
    ]
    widths = [high - low for low, high in ends]
    if IDS[form]:
        assert "--columns cluster_id=item_id" in notes[0]
        assert widths[0] > 1.5 * widths[1]
    else:
        assert widths[0] == pytest.approx(widths[1])


def test_a_column_of_conversations_is_a_cluster(tmp_path: Path) -> None:
    rows = [
        {"id": n, "session_id": f"s{n // 5}", "verdict": word(n % 3), "label": word(n % 2)}
        for n in range(60)
    ]
    result = checked(tmp_path, rows)
    assert result.report.runs[0]["imported"]["columns"]["cluster_id"] == "session_id"
