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

FILES = Path(__file__).parent / "files"
TRUTH = json.loads((FILES / "truth.json").read_text("utf-8"))


@pytest.mark.parametrize("truth", TRUTH, ids=lambda truth: truth["file"])
def test_the_figures_are_true_or_a_question_is_asked(truth: dict[str, Any], tmp_path: Path) -> None:
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
    if "spearman" in truth:
        (scores,) = result.scores
        assert scores["spearman"] == pytest.approx(truth["spearman"], abs=1e-4)
