from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import judgesense
from judgesense.cli import app
from judgesense.errors import JudgeSenseError


@pytest.fixture
def noisy(make):
    def call(seed: int, share: float, other=("YES", "NO")):
        rng = np.random.default_rng(seed)
        return lambda p: str(rng.choice(other)) if rng.random() < share else make.oracle(p)

    return call


@pytest.fixture
def benchmark(make):
    return make.benchmark(make.YESNO, [make.PLAIN] * 4, ["YES", "NO"] * 20)


@pytest.fixture
def run(make, benchmark, tmp_path: Path):
    """The folder of a run: ``rules`` give each judge's decision on a prompt."""

    def call(name: str, *rules, data=benchmark, judge: str = "") -> Path:
        names = [f"{judge or name}@{n}" for n in range(len(rules))]
        logs = [make.log(data, *each) for each in zip(rules, names, strict=True)]
        return make.folder(tmp_path / name, data, *logs)

    return call


@pytest.fixture
def runs(run, noisy) -> list[Path]:
    return [run("steady", noisy(0, 0.02)), run("shaky", noisy(1, 0.6))]


def entry(result, measure: str):
    (found,) = (e for e in result["comparisons"] if e["measure"] == measure)
    return found


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


def test_a_judge_against_itself_shows_no_difference(run, noisy) -> None:
    runs = [run(name, noisy(5, 0.3), judge="rule") for name in "ab"]
    found = entry(judgesense.compare(*runs), "jss")
    assert (found["difference"], found["p_value"]) == (0.0, 1.0)
    assert "rule (A)" in found["text"]
    assert found["trust_a"] == found["trust_b"] == "unknown"


@pytest.mark.parametrize(("n", "trust", "either"), [(120, "care", True), (10, "unknown", False)])
def test_of_two_equals_either_will_do_only_if_both_can_be_trusted(
    make, run, noisy, n, trust, either
) -> None:
    data = make.benchmark(make.YESNO, [make.PLAIN] * 4, ["YES", "NO"] * (n // 2))
    result = judgesense.compare(
        *(run(name, noisy(seed, 0.04), data=data) for seed, name in enumerate("ab"))
    )
    found = entry(result, "jss")
    assert (found["trust_a"], found["trust_b"]) == (trust, trust)
    assert ("take either" in result["advice"][0]) == either


def test_a_judge_to_avoid_is_never_preferred(make, run, noisy) -> None:
    flat, shaky = run("flat", lambda p: "YES"), run("shaky", noisy(1, 0.9))
    result = judgesense.compare(flat, shaky)
    found = entry(result, "jss")
    assert found["ci_high"] < 0  # flat is clearly steadier
    assert (found["trust_a"], found["trust_b"]) == ("avoid", "avoid")
    assert "prefer" not in result["advice"][0]
    assert "avoid both" in result["advice"][0]
    (advice,) = judgesense.compare(flat, run("steady", noisy(2, 0.05)))["advice"]
    assert "prefer steady (generate)" in advice
    assert "'avoid' for flat (generate) (because of the 'right' check)" in advice
    # One is always right but mostly silent: what both decided shows no difference.
    silent = run("silent", noisy(0, 0.5, ["UNCLEAR"]))
    result = judgesense.compare(silent, run("clear", make.oracle))
    assert [entry(result, m)["difference"] for m in ("jss", "accuracy")] == [0.0, 0.0]
    assert "prefer clear" in result["advice"][0]


def test_only_what_both_judged_is_compared_and_the_undecided_are_counted(make, run) -> None:
    half = make.benchmark(make.YESNO, [make.PLAIN] * 4, ["YES", "NO"] * 10)
    unclear = half.prompts["prompt_id"][0].as_py()
    rule = lambda p: "UNCLEAR" if p["prompt_id"] == unclear else make.oracle(p)  # noqa: E731
    result = judgesense.compare(run("a", make.oracle), run("b", rule, data=half))
    found = entry(result, "jss")
    assert (found["n"], found["n_items"], found["n_undecided"]) == (117, 20, 3)
    assert (entry(result, "accuracy")["n"], entry(result, "accuracy")["n_undecided"]) == (79, 1)
    assert "4 pairs and prompts are left out" in str(result)


def test_the_judges_of_one_run_are_compared_with_each_other(run, noisy) -> None:
    folder = run("run", *(noisy(seed, 0.2) for seed in range(3)), judge="j")
    result = judgesense.compare(folder, folder)
    couples = [(e["judge_a"], e["judge_b"]) for e in result["comparisons"] if e["measure"] == "jss"]
    assert couples == [("j@0", "j@1"), ("j@0", "j@2"), ("j@1", "j@2")]
    assert result["n_tests"] == 6
    (best,) = result["best"]
    assert best["n_judges"] == 3
    assert best["corrected"] <= best["kappa"] < best["ci_high"]
    assert best["ci_low"] < best["corrected"]


def test_judges_of_a_file_with_one_wording_are_compared_by_accuracy(tmp_path) -> None:
    lines = ["id,model_a,model_b,human"]
    for n in range(60):
        gold = "yes" if n % 2 else "no"
        lines.append(f"{n},{gold},{'yes' if n % 3 else 'no'},{gold}")
    file = tmp_path / "verdicts.csv"
    file.write_text("\n".join(lines))
    folder = tmp_path / "check"
    judgesense.check(file, out=folder)
    result = judgesense.compare(folder, folder)
    (found,) = result["comparisons"]
    assert (found["measure"], found["a"], found["b"], found["n"]) == ("accuracy", 1.0, 0.5, 60)
    assert "prefer model_a" in result.advice[0]


def test_what_cannot_be_compared_is_refused(make, run, tmp_path) -> None:
    other = make.benchmark(make.AB, [make.OPTIONS] * 2, "AB")
    swapped = make.benchmark(make.YESNO, [make.PLAIN] * 4, ["NO", "YES"] + ["YES", "NO"] * 19)
    first = run("a", make.oracle)
    for second, message in (
        (
            run("b", make.oracle, data=other),
            r"share neither pairs.*judged factuality, and .* judged preference",
        ),
        (run("c", make.oracle, data=swapped), "different gold labels for 8 of 160 prompts"),
        (first, "holds only one judge"),
        (tmp_path / "nowhere", "no file"),
    ):
        with pytest.raises(JudgeSenseError, match=message):
            judgesense.compare(first, second)


def test_the_command_prints_words_or_json(runs, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = CliRunner().invoke(app, ["compare", *map(str, runs)])
    assert words.exit_code == 0, words.output
    assert "prefer steady" in words.output.splitlines()[1]
    assert "corrected for 2 comparisons" in words.output
    data = CliRunner().invoke(app, ["compare", *map(str, runs), "--format", "json"])
    printed = json.loads(data.output)
    assert Path(printed.pop("page")).is_file()
    found = json.loads(json.dumps(judgesense.compare(*runs).to_dict()))
    assert found.pop("page") is None
    assert printed == found
