"""Using an improved judge: in other commands, on awkward items, from an edited file."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from improved_trial import biased, edit, items, judged, options, stable
from typer.testing import CliRunner

import judgesense
from judgesense.cli import app
from judgesense.errors import JudgeSenseError
from judgesense.log.folder import read_record
from judgesense.log.schema import read_log
from judgesense.tasks import prompt_id
from local_judges.callable_judge import CallableJudge
from local_judges.improved_judge import read_improved
from local_judges.messages import Members, Messages
from local_judges.protocol import Request
from local_judges.recipe_judge import RecipeJudge
from local_judges.registry import JudgeSpec, load_writer, resolve
from local_judges.runner import ask_all

BIASED = options()


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged(tmp_path_factory.mktemp("use"))


def test_it_travels_to_other_processes(run_dir: Path, tmp_path: Path) -> None:
    spec = resolve(str(stable(run_dir, tmp_path / "s.yaml", "calibrated", model="smollm2-135m")))
    there = pickle.loads(pickle.dumps(spec))  # noqa: S301
    assert there.improved == spec.improved
    assert there.identity() == spec.identity()


def test_a_calibrated_judge_knows_every_wording_of_its_run(run_dir: Path, tmp_path: Path) -> None:
    path = stable(run_dir, tmp_path / "s.yaml", "calibrated", model="smollm2-135m")
    found = read_improved(path)
    assert set(found.recipe.offsets) == {"r1", "r2", "r3", "r4", "other wordings"}
    assert [t.template_id for t in found.entry.templates] == ["r1", "r2", "r3", "r4"]
    # It prefers A by 3 nats and is right by 2: the mean share of A is that of 5 and of 1 nat.
    share = (1 / (1 + np.exp(-5)) + 1 / (1 + np.exp(-1))) / 2
    assert found.recipe.offsets["r3"]["A"] == pytest.approx(
        np.log(share / (1 - share)) / 2, abs=1e-6
    )


def test_votes_keep_their_margin(tmp_path: Path) -> None:
    """2 of 3 votes are less sure than 3 of 3, in a file of verdicts and in Python."""

    def said(messages: list[str]) -> list[str]:
        # On new items it reads the wording r3 wrongly where B is right.
        found = []
        for message, told in zip(messages, biased(messages), strict=True):
            right = "A" if told["A"] > np.log(1 / (1 + np.exp(-3.0))) else "B"
            wrong = "Choose the passage" in message and right == "B" and "year 156" in message
            found.append("A" if wrong else right)
        return found

    who = CallableJudge(said, name="said")
    path = stable(judged(tmp_path, who), tmp_path / "s.yaml", "panel of 3")
    assert read_improved(path).recipe.wordings == ("r1", "r2", "r3")
    edit(path, ask_person={"max_error": 0.1, "threshold": 1.0})
    with judgesense.load_judge(path, judge=who) as own:
        sure, unsure = own(items(60, 62))
    assert (sure.verdict, sure.margin, sure.ask_person) == ("A", 1.0, False)
    assert (unsure.verdict, unsure.ask_person) == ("B", True)
    assert unsure.margin == pytest.approx(1 / 3)


AWKWARD = {
    "item_id": "odd",
    "query": "the year 1500",
    "gold": "A",
    "passage_a": "It happened in 1500.\nB: nothing",
    "passage_b": "It happened in 1700.",
}


def test_an_item_that_looks_like_the_layout_is_judged(run_dir: Path, tmp_path: Path) -> None:
    path = stable(run_dir, tmp_path / "s.yaml", model="smollm2-135m")
    asked: list[str] = []

    def noting(messages: list[str]) -> list[dict[str, float]]:
        asked.extend(messages)
        return biased(messages)

    with judgesense.load_judge(path, judge=options(noting)) as own:
        (found,) = own([AWKWARD])
    assert (found.verdict, found.error) == ("A", None)
    assert found.margin == pytest.approx(np.tanh(1.0))
    # The judge itself is asked in the wording of the file.
    assert len(asked) == 2
    assert all(text.startswith("Which passage answers the query?") for text in asked)


def test_a_split_that_does_not_matter_is_no_error(run_dir: Path, tmp_path: Path) -> None:
    text = "Which passage answers the query? Answer A or B.\n\nQuery: q\nA: one\nB: two\nB: three"
    request = Request(prompt_id(text), text, ("A", "B"))
    one = Messages(read_improved(stable(run_dir, tmp_path / "a.yaml", "calibrated")))
    both = Messages(read_improved(stable(run_dir, tmp_path / "b.yaml", "both orders")))
    members = one.members(request)
    assert isinstance(members, Members)
    assert members.requests[0][0][0].text == text
    assert "looks like the layout" in str(both.members(request))


def test_an_option_that_was_not_shown_counts_as_in_the_report(
    run_dir: Path, tmp_path: Path
) -> None:
    path = stable(run_dir, tmp_path / "s.yaml")

    def hidden(messages: list[str]) -> list[dict[str, float]]:
        # Sure of A in one order and rather for A in the other: a millionth for B decides.
        sure = [m.index("happened in 1500") < m.index("happened in 1700") for m in messages]
        return [{"A": 0.0, "B": -np.inf} if s else {"A": -0.1, "B": -2.35} for s in sure]

    with judgesense.load_judge(path, judge=options(hidden)) as own:
        (found,) = own(items(0, 1))
    assert found.verdict == "A"
    assert found.margin == pytest.approx(np.tanh((np.log(1e6) - 2.25) / 4), abs=0.001)


def test_an_edited_rule_runs_without_its_promises(
    run_dir: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = stable(run_dir, tmp_path / "s.yaml", "calibrated")
    before = read_improved(path)
    assert before.threshold is not None
    assert not caplog.records
    rule = yaml.safe_load(path.read_text())["rule"]
    rule["offsets"]["r1"] = {"A": 1.5, "B": -1.5}
    edit(path, rule=rule)
    after = read_improved(path)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert (after.edited, after.threshold) == (True, None)
    with judgesense.load_judge(path, judge=BIASED) as own:
        assert [verdict.ask_person for verdict in own(items(0, 2))] == [None, None]


def test_a_tie_asks_a_person_with_and_without_a_threshold(run_dir: Path, tmp_path: Path) -> None:
    for error, threshold in ((0.2, True), (0.01, False)):
        made = judgesense.stabilise(
            run_dir, out=tmp_path / "s.yaml", remedy="both orders", max_error=error
        )
        assert (made.threshold is not None) == threshold

        def tied(messages: list[str]) -> list[dict[str, float]]:
            return [{"A": -0.7, "B": -0.7} if "1501" in m else biased([m])[0] for m in messages]

        with judgesense.load_judge(made.where, judge=options(tied)) as judge:
            told = judge(items(0, 2))
        assert [verdict.verdict for verdict in told] == ["A", "A"]
        assert told[1].margin == 0.0
        assert [verdict.ask_person for verdict in told] == [False if threshold else None, True]


def test_variants_of_a_wording_are_written_with_their_texts(tmp_path: Path) -> None:
    judged(tmp_path, variants=["instruction-last", "separators", "casing"])
    made = judgesense.stabilise(tmp_path / "run", out=tmp_path / "s.yaml", remedy="panel of 3")
    assert [template.template_id for template in made.entry.templates] == [
        "r1",
        "r1+casing",
        "r1+instruction-last",
    ]
    assert made.entry.templates[2].layout.endswith("{instruction}")
    with judgesense.load_judge(tmp_path / "s.yaml", judge=BIASED) as judge:
        told = judge(items(60, 64))
    assert [verdict.margin for verdict in told] == pytest.approx([np.tanh(2.5), np.tanh(0.5)] * 2)


def test_columns_of_your_own(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = stable(run_dir, tmp_path / "s.yaml", model="smollm2-135m")
    monkeypatch.setattr(JudgeSpec, "_load", lambda self: BIASED)
    table = tmp_path / "items.parquet"
    rows = [{"question": item.pop("query"), **item} for item in items(60, 64)]
    pq.write_table(pa.Table.from_pylist(rows), table)
    call = ["judge", str(table), "--judge", str(path), "--out", str(tmp_path / "v.jsonl")]
    result = CliRunner().invoke(app, call)
    assert isinstance(result.exception, JudgeSenseError)
    assert "query" in str(result.exception)
    result = CliRunner().invoke(app, [*call, "--columns", "query=question"])
    assert result.exit_code == 0, result.output
    found = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert [row["verdict"] for row in found] == ["A", "B", "A", "B"]
    with pytest.raises(JudgeSenseError, match="columns: 'nothing'"):
        judgesense.judge_items(table, str(path), tmp_path / "w.csv", columns={"nothing": "x"})


def test_a_check_leads_to_a_file_that_passes_the_check(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a rubric of one's own: the run's folder has the texts, and text verdicts work too."""
    monkeypatch.setattr(JudgeSpec, "_load", lambda self: BIASED)
    (tmp_path / "rubric.txt").write_text(
        "Which passage answers the query? Answer A or B.\n\n"
        "Query: {query}\nA: {passage_a}\nB: {passage_b}"
    )
    (tmp_path / "wordings.txt").write_text(
        "Which passage is the relevant one, A or B?\n---\nA or B: which passage fits the query?"
    )
    notes: list[str] = []
    common = {
        "wordings": tmp_path / "wordings.txt",
        "repeats": 1,
        "note": notes.append,
        "options": {"A": "passage_a", "B": "passage_b"},
    }
    data = run_dir.parent / "items.jsonl"

    def check(judge: Any, out: str, **more: Any) -> Any:
        return judgesense.check(
            tmp_path / "rubric.txt", data, judge, out=tmp_path / out, **common, **more
        )

    assert not check("smollm2-135m", "before", scoring="options").passed
    assert "layouts" in (read_record(tmp_path / "before") or {})["tasks"]["rubric"]
    judgesense.stabilise(tmp_path / "before", out=tmp_path / "s.yaml", remedy="calibrated")
    # The default scoring of a check is text: the verdict is given as text.
    after = check(str(tmp_path / "s.yaml"), "after")
    assert after.passed
    assert any("applies its way of asking (calibrated) to each wording" in each for each in notes)
    assert set(read_log(tmp_path / "after")["scoring"].to_pylist()) == {"generate"}
    assert check(judgesense.load_judge(tmp_path / "s.yaml"), "loaded").passed


def test_a_files_model_proposes_wordings_without_its_rule(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = stable(run_dir, tmp_path / "s.yaml", model="smollm2-135m")
    monkeypatch.setattr(JudgeSpec, "_load", lambda self: BIASED)
    assert load_writer(str(path), temperature=0.7, max_tokens=512) is BIASED
    assert not caplog.records


def test_a_request_for_text_goes_to_the_judge_itself(run_dir: Path, tmp_path: Path) -> None:
    class Both(CallableJudge):
        def judge(self, batches: Any, scorings: frozenset[str]) -> Any:
            function = biased if "options" in scorings else lambda texts: ["Hello"] * len(texts)
            return CallableJudge(function, scoring=min(scorings)).judge(batches, scorings)

    inner = Both(biased, name="biased")
    inner.scorings = frozenset({"generate", "options"})
    judge = RecipeJudge(read_improved(stable(run_dir, tmp_path / "s.yaml")), inner)
    (answer,) = ask_all(judge, [Request("p", "Say hello", ())], judge.scorings)
    assert answer.text == "Hello"
