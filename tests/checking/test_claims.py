"""Claims of `check` on data that tempt it: each is made, withheld or has its condition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judgesense
from judgesense.checking.result import CheckResult

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
    result = checked(tmp_path, with_people(judge, person, copies), human=PEOPLE)
    first = result.report.assessments[0].people[0]
    assert first.between_people is not None
    assert first.between_people.like_judge == named
    assert ("may replace a person" in str(result)) == may
