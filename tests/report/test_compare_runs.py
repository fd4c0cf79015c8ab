from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import judgesense
from judgesense.cli import app
from judgesense.errors import JudgeSenseError


def noisy(make, seed: int, share: float):
    rng = np.random.default_rng(seed)

    def decide(prompt) -> str:
        return str(rng.choice(["YES", "NO"])) if rng.random() < share else make.oracle(prompt)

    return decide


@pytest.fixture
def benchmark(make):
    return make.benchmark(make.YESNO, [make.PLAIN] * 4, ["YES", "NO"] * 20)


@pytest.fixture
def runs(make, benchmark, tmp_path: Path) -> list[Path]:
    return [
        make.folder(
            tmp_path / name, benchmark, make.log(benchmark, noisy(make, seed, share), f"{name}@1")
        )
        for seed, (name, share) in enumerate([("steady", 0.02), ("shaky", 0.6)])
    ]


def entry(result, measure: str):
    found = [e for e in result["comparisons"] if e["measure"] == measure]
    assert len(found) == 1
    return found[0]


def test_the_steadier_judge_is_preferred_in_words(runs) -> None:
    result = judgesense.compare(*runs)
    found = entry(result, "jss")
    assert found["ci_high"] < 0
    assert found["p_holm"] < 0.001
    assert found["p_holm"] >= found["p_value"]
    (advice,) = result["advice"]
    assert advice.startswith("factuality: prefer steady (generate)")
    assert entry(result, "accuracy")["n"] == 160
    assert result["n_tests"] == 2


def test_a_judge_against_itself_shows_no_difference(make, benchmark, tmp_path) -> None:
    log = make.log(benchmark, noisy(make, 5, 0.3))
    runs = [make.folder(tmp_path / name, benchmark, log) for name in "ab"]
    found = entry(judgesense.compare(*runs), "jss")
    assert (found["difference"], found["p_value"]) == (0.0, 1.0)
    assert "rule (A)" in found["text"]
    assert found["trust_a"] == found["trust_b"] == "unknown"


def test_of_two_equals_either_will_do_only_if_both_can_be_trusted(make, tmp_path) -> None:
    for n_items, trust, either in [(120, "care", True), (10, "unknown", False)]:
        data = make.benchmark(make.YESNO, [make.PLAIN] * 4, ["YES", "NO"] * (n_items // 2))
        runs = [
            make.folder(
                tmp_path / f"{name}{n_items}", data, make.log(data, noisy(make, seed, 0.04))
            )
            for seed, name in enumerate("ab")
        ]
        result = judgesense.compare(*runs)
        found = entry(result, "jss")
        assert (found["trust_a"], found["trust_b"]) == (trust, trust)
        assert ("take either" in result["advice"][0]) == either


def test_a_judge_to_avoid_is_never_preferred(make, benchmark, tmp_path) -> None:
    def folder(name: str, decide) -> Path:
        return make.folder(tmp_path / name, benchmark, make.log(benchmark, decide, f"{name}@1"))

    flat, shaky = folder("flat", lambda p: "YES"), folder("shaky", noisy(make, 1, 0.9))
    result = judgesense.compare(flat, shaky)
    found = entry(result, "jss")
    assert found["ci_high"] < 0  # flat is clearly steadier
    assert (found["trust_a"], found["trust_b"]) == ("avoid", "avoid")
    assert "prefer" not in result["advice"][0]
    assert "avoid both" in result["advice"][0]

    steady = folder("steady", noisy(make, 2, 0.05))
    (advice,) = judgesense.compare(flat, steady)["advice"]
    assert "prefer steady (generate)" in advice
    assert "'avoid' for flat (generate) (because of right" in advice


def test_of_equals_the_one_to_avoid_is_not_preferred(make, tmp_path) -> None:
    # One is always right but mostly silent: what both decided shows no difference.
    benchmark = make.benchmark(make.YESNO, [make.PLAIN] * 4, ["YES", "NO"] * 20)
    rng = np.random.default_rng(0)

    def silent(prompt) -> str:
        return "UNCLEAR" if rng.random() < 0.5 else make.oracle(prompt)

    runs = [
        make.folder(tmp_path / name, benchmark, make.log(benchmark, decide, f"{name}@1"))
        for name, decide in [("silent", silent), ("clear", make.oracle)]
    ]
    result = judgesense.compare(*runs)
    assert [entry(result, m)["difference"] for m in ("jss", "accuracy")] == [0.0, 0.0]
    assert "prefer clear" in result["advice"][0]


def test_only_what_both_judged_is_compared_and_the_undecided_are_counted(
    make, benchmark, tmp_path
) -> None:
    half = make.benchmark(make.YESNO, [make.PLAIN] * 4, ["YES", "NO"] * 10)
    first = make.folder(tmp_path / "a", benchmark, make.log(benchmark, make.oracle, "a@1"))
    second = make.folder(
        tmp_path / "b",
        half,
        make.log(
            half,
            lambda p: (
                "UNCLEAR"
                if p["prompt_id"] == half.prompts["prompt_id"][0].as_py()
                else make.oracle(p)
            ),
            "b@1",
        ),
    )
    result = judgesense.compare(first, second)
    found = entry(result, "jss")
    assert (found["n"], found["n_items"], found["n_undecided"]) == (117, 20, 3)
    assert (entry(result, "accuracy")["n"], entry(result, "accuracy")["n_undecided"]) == (79, 1)
    assert "4 pairs and prompts are left out" in str(result)


def test_runs_with_other_gold_labels_are_refused(make, benchmark, tmp_path) -> None:
    swapped = make.benchmark(make.YESNO, [make.PLAIN] * 4, ["NO", "YES"] + ["YES", "NO"] * 19)
    runs = [
        make.folder(tmp_path / name, data, make.log(data, make.oracle, f"{name}@1"))
        for name, data in (("one", benchmark), ("two", swapped))
    ]
    with pytest.raises(JudgeSenseError, match="different gold labels for 8 of 160 prompts"):
        judgesense.compare(*runs)


def test_the_judges_of_one_run_are_compared_with_each_other(make, benchmark, tmp_path) -> None:
    logs = [make.log(benchmark, noisy(make, seed, 0.2), f"j{seed}@1") for seed in range(3)]
    folder = make.folder(tmp_path / "run", benchmark, *logs)
    result = judgesense.compare(folder, folder)
    couples = [(e["judge_a"], e["judge_b"]) for e in result["comparisons"] if e["measure"] == "jss"]
    assert couples == [("j0@1", "j1@1"), ("j0@1", "j2@1"), ("j1@1", "j2@1")]
    assert result["n_tests"] == 6
    (best,) = result["best"]
    assert best["n_judges"] == 3
    assert best["corrected"] <= best["kappa"] < best["ci_high"]
    assert best["ci_low"] < best["corrected"]


def test_runs_that_share_no_pairs_are_refused_politely(make, benchmark, tmp_path) -> None:
    other = make.benchmark(make.AB, [make.OPTIONS] * 2, "AB")
    first = make.folder(tmp_path / "a", benchmark, make.log(benchmark, make.oracle))
    second = make.folder(tmp_path / "b", other, make.log(other, make.oracle))
    with pytest.raises(JudgeSenseError, match=r"share no pairs.*240 pairs of factuality"):
        judgesense.compare(first, second)
    with pytest.raises(JudgeSenseError, match="holds only one judge"):
        judgesense.compare(first, first)
    with pytest.raises(JudgeSenseError, match="no folder"):
        judgesense.compare(first, tmp_path / "nowhere")


def test_the_command_prints_words_or_json(runs) -> None:
    words = CliRunner().invoke(app, ["compare", *map(str, runs)])
    assert words.exit_code == 0, words.output
    assert "prefer steady" in words.output.splitlines()[1]
    assert "corrected for 2 comparisons" in words.output
    data = CliRunner().invoke(app, ["compare", *map(str, runs), "--format", "json"])
    assert json.loads(data.output) == judgesense.compare(*runs)
