"""Files that somebody else made, with a truth of their own: the figures, or the question.

``files/truth.json`` has for each file people's items, accuracy and κ (quadratic on a scale) by task
or judge, and the words of the question with the options that settle it. In files of choices, each
verdict counts, in either order; of reruns, the first.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import judgesense
from judgesense.errors import JudgeSenseError
from judgesense.tasks import UNDECIDED

FILES = Path(__file__).parent / "files"
TRUTH = json.loads((FILES / "truth.json").read_text("utf-8"))


def _require_same_figures(path: Path, people: list[dict[str, Any]]) -> None:
    """The other commands, which read verdicts, have the labels and the agreement of the check, or
    ask for the column of items or labels."""
    try:
        verdicts = judgesense.read_verdicts(path)
    except JudgeSenseError:
        return  # It asks for the column of items, or of labels.
    firsts = [*verdicts.first_rows("item", "system", "order").values()]
    both = [
        (verdicts.verdict[row], verdicts.gold[row])
        for row in firsts
        if verdicts.gold[row] and verdicts.verdict[row] not in UNDECIDED
    ]
    if both:
        assert len(both) == people[0]["n"]
        same = sum(verdict == gold for verdict, gold in both) / len(both)
        assert same == pytest.approx(people[0]["accuracy"])


@pytest.mark.parametrize("truth", TRUTH, ids=lambda truth: truth["file"])
def test_the_figures_are_true_or_a_question_is_asked(
    truth: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def check(**options: Any) -> Any:
        path = FILES / truth["file"]
        return judgesense.check(path, out=tmp_path / "out", runs=tmp_path, note=str, **options)

    options = truth.get("settled_by", {})
    if "asks" in truth:
        with pytest.raises(JudgeSenseError) as caught:
            check()
        assert truth["asks"] in str(caught.value)
        if not options:
            return
    result = check(**options)
    found = {}
    for entry in reversed(result.people):  # The majority of several people is the first.
        for key in (entry["task"], entry["judge"].removesuffix(".verdict"), ""):
            found[key] = entry
    assert bool(result.people) == bool(truth["people"])
    for key, (n, accuracy, kappa) in truth["people"].items():
        assert found[key]["n"] == n
        assert found[key]["accuracy"] == pytest.approx(accuracy, abs=1e-4)
        if kappa is not None:
            assert found[key]["kappa"] == pytest.approx(kappa, abs=1e-4)
    if len(result.report.assessments) == 1 and not options:
        _require_same_figures(FILES / truth["file"], result.people)
    if "spearman" in truth:
        (scores,) = result.scores
        assert scores["spearman"] == pytest.approx(truth["spearman"], abs=1e-4)
