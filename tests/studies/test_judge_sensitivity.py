"""The judge-sensitivity study: its findings on known logs, its commands, and real judges."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from recipes import import_llmbar

import judgesense
from judgesense.errors import JudgeSenseError
from judgesense.published import paper_judges
from judgesense.run_folder.folder import read_run
from judgesense.studies.common.result import Result
from judgesense.studies.judge_sensitivity import judge_sensitivity
from judgesense.studies.judge_sensitivity.findings import findings, size_against_jss, size_of
from judgesense.studies.judge_sensitivity.log import Judged, read_judged
from judgesense.studies.judge_sensitivity.tables import published_figures

WORDINGS = """
tasks:
  fact:
    labels: [YES, NO]
    layout: "{instruction}\\n\\n{text}"
    templates:
      - {id: plain, text: "True? YES or NO."}
      - {id: other, text: "Is it so? YES or NO."}
      - {id: turned, text: "Is it false? YES or NO.", label_map: {YES: NO, NO: YES}}
"""


def right(prompt: str) -> str:
    """Always right: 'true' stands in true items, and the third wording asks for falsehood."""
    return "YES" if ("true fact" in prompt) != ("false?" in prompt) else "NO"


def says_yes(prompt: str) -> str:
    return "YES"


def unreadable(prompt: str) -> str:
    return "perhaps"


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three rules on six items, three true and three false, with an inverted wording."""
    folder = tmp_path_factory.mktemp("known")
    (folder / "w.yaml").write_text(WORDINGS)
    items = [
        {"item_id": f"i{n}", "text": f"{'true' if n % 2 else 'wrong'} fact {n}",
         "gold": "YES" if n % 2 else "NO"}
        for n in range(6)
    ]  # fmt: skip
    (folder / "i.jsonl").write_text("\n".join(map(json.dumps, items)))

    def answering(rule: Callable[[str], str]) -> Callable[[list[str]], list[str]]:
        def judge(prompts: list[str]) -> list[str]:
            return [rule(prompt) for prompt in prompts]

        judge.__name__ = rule.__name__
        return judge

    judgesense.run(
        [answering(rule) for rule in (right, says_yes, unreadable)],
        templates=folder / "w.yaml",
        items=folder / "i.jsonl",
        out=folder / "run",
    )
    return folder / "run"


@pytest.fixture(scope="module")
def judged(known: Path) -> Judged:
    return read_judged(known)


@pytest.fixture(scope="module")
def measured(known: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return judge_sensitivity(log=known, out=tmp_path_factory.mktemp("measured"))


def test_the_judge_that_is_right_is_consistent_once_answers_are_mapped(measured: Result) -> None:
    rows = {row["judge"]: row for row in measured.table("table_3").rows}
    # Of three wording pairs two hold the inverted one: raw, a right judge agrees on the third.
    assert rows["right"]["jss_raw"] == pytest.approx(1 / 3)
    assert rows["right"]["jss"] == rows["right"]["jss_with_t4"] == 1.0
    assert rows["says_yes"]["jss_raw"] == rows["says_yes"]["jss_without_t4"] == 1.0
    assert rows["says_yes"]["jss"] == pytest.approx(1 / 3)
    assert (rows["right"]["n_pairs_without_t4"], rows["right"]["n_pairs_with_t4"]) == (6, 12)


def test_findings_name_who_falls_under_the_threshold_and_whose_answers_cannot_be_read(
    measured: Result,
) -> None:
    under = next(text for text in measured.findings if "below 0.8" in text)
    assert under.startswith("fact, generate scoring: 1 of 2 judges")
    assert "says_yes (0.333" in under
    assert "unreadable" not in under
    assert any("unreadable (100%)" in text for text in measured.findings)
    assert any("says_yes is the same" in text for text in measured.findings)


def test_a_negative_kappa_is_found(judged: Judged) -> None:
    # Raw, the right judge answers inverted pairs the other way round each time: p = 1/3, c = 1/2.
    said = [text for text in findings(judged, {}) if "κ is negative" in text]
    (text,) = said
    assert "fact, generate scoring" in text
    assert "right (−0.333)" in text


def test_flips_that_all_judges_share_lie_in_inverted_pairs_after_no_mapping(
    measured: Result,
) -> None:
    rows = measured.table("flip_overlap").rows
    raw = {row["n_judges_flipped"]: row for row in rows if row["decisions"] == "raw"}
    assert {count: row["n_pairs"] for count, row in raw.items()} == {0: 6, 1: 12}
    assert raw[1]["n_pairs_inverted"] == 12


def test_variance_tells_polarity_from_wording(measured: Result) -> None:
    rows = {row["judge"]: row for row in measured.table("variance").rows}
    assert rows["right"]["polarity"] == pytest.approx(2 / 3)
    assert rows["right"]["flips"] == 0.0
    # Always YES means NO under the inverted wording on all items: a shift of the wording alone.
    assert rows["says_yes"]["template_level"] == pytest.approx(2 / 3)
    assert rows["says_yes"]["wording_level"] == pytest.approx(0.0)
    assert rows["unreadable"]["n_items"] == 0


def test_judges_that_agree_with_themselves_need_not_agree_with_each_other(
    measured: Result,
) -> None:
    (row,) = measured.table("consensus").rows
    # right and says_yes agree where the truth is YES: half of the prompts.
    assert row["agreement"] == pytest.approx(0.5)
    assert row["n_prompts"] == 18


def test_size_is_correlated_with_jss_from_three_judges_on(judged: Judged) -> None:
    cases = list(judged.cases)
    assert size_against_jss(cases, {"right": 1e9, "says_yes": 7e9}) == (None, 2)
    everyone = {"right": 1e9, "says_yes": 7e9, "unreadable": 70e9}
    # The third has no JSS at all.
    assert size_against_jss(cases, everyone) == (None, 2)
    again = [*cases[:2], cases[0]]
    rho, n = size_against_jss(again, {"right": 1e9, "says_yes": 7e9})
    assert (rho, n) == (pytest.approx(-1.0), 3)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("smollm2-135m", 135e6),
        ("llama-3.1-70b-instruct", 70e9),
        ("qwen2.5-7b-instruct", 7e9),
        ("org/model-1.5b", 1.5e9),
        ("gpt-4o-mini", None),
        ("model-4bit", None),
    ],
)
def test_a_size_is_read_from_a_name_that_states_one(name: str, size: float | None) -> None:
    assert size_of(name, {}) == size
    assert size_of(name, {name: 3.0}) == 3.0


def test_published_figures_are_those_of_the_papers_nine_judges() -> None:
    assert len(paper_judges()) == 9
    leaders = [figure.judge for figure in published_figures("coherence")]
    assert (leaders[0], leaders[-1]) == ("claude-sonnet-4-5", "gemini-2.5-flash")


@pytest.fixture(scope="module")
def on_published_pairs(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """An oracle on the published factuality pairs: it is told what is true."""
    folder = tmp_path_factory.mktemp("published")
    lines = (published / "factuality.jsonl").read_text("utf-8").splitlines()
    (folder / "factuality.jsonl").write_text("\n".join(lines), "utf-8")
    rows = [json.loads(line) for line in lines]
    facts = {row["response_being_judged"]: row["ground_truth_label"] for row in rows}

    def oracle(prompts: list[str]) -> list[str]:
        found = []
        for prompt in prompts:
            right = facts[prompt.partition("Response: ")[2]] == "accurate"
            found.append("YES" if right != ("contain factual errors" in prompt) else "NO")
        return found

    judgesense.run([oracle], dataset=str(folder), out=folder / "run")
    return judge_sensitivity(log=folder / "run", out=folder / "study", questions=[])


def test_the_published_pairs_leave_out_the_papers_six(on_published_pairs: Result) -> None:
    here, paper = on_published_pairs.table("exclusion").rows
    assert (here["n_pairs"], here["n_pairs_validated"]) == (125, 119)
    assert (here["jss"], here["jss_validated"]) == (
        pytest.approx(75 / 125),
        pytest.approx(75 / 119),
    )
    assert (paper["jss"], paper["jss_validated"]) == (0.6, 0.63)


def test_the_published_pairs_show_the_disagreement_of_templates_3_and_4(
    on_published_pairs: Result,
) -> None:
    rows = {row["statement"]: row for row in on_published_pairs.table("claims").rows}
    assert rows["raw disagreement on pairs of templates 3 and 4"]["here"] == "100%"


def test_the_published_pairs_are_not_called_other_wordings(on_published_pairs: Result) -> None:
    note = on_published_pairs.table("table_1").note
    version_2, _, version_1 = note.partition("`published v1 (withdrawn)` rows")
    assert "other wordings" in version_2
    assert "same pairs" in version_1
    assert "other wordings" not in version_1
    assert not any("strategies" in text for text in on_published_pairs.limits)


def test_the_second_version_comes_before_the_withdrawn_first(on_published_pairs: Result) -> None:
    for name in ("table_1", "table_3", "parse_failures"):
        kinds = [row["measured"] for row in on_published_pairs.table(name).rows]
        assert list(dict.fromkeys(kinds)) == ["here", "published v2", "published v1 (withdrawn)"]
        assert "advise against using it" in on_published_pairs.table(name).note
    rows = {
        row["judge"]: row
        for row in on_published_pairs.table("table_1").rows
        if row["measured"] == "published v2"
    }
    assert (rows["claude-opus-4-7"]["jss"], rows["claude-opus-4-7"]["n_items"]) == (0.9796, 245)


def test_what_no_source_states_is_left_out_beside_a_log(measured: Result) -> None:
    assert all(row["measured"] == "here" for row in measured.table("table_1").rows)
    assert any("strategies" in text for text in measured.limits)


@pytest.mark.slow
def test_the_log_itself_is_not_changed_and_the_page_is_written(
    known: Path, measured: Result, tmp_path: Path
) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in known.rglob("*"))
    measured.write(tmp_path)
    assert sorted((path, path.stat().st_mtime_ns) for path in known.rglob("*")) == before
    page = (tmp_path / "study.md").read_text("utf-8")
    assert "Table 1: main results" in page
    for picture in measured.pictures:
        assert (tmp_path / "figures" / f"{picture.name}.png").stat().st_size > 1000
        assert f"figures/{picture.name}.png" in page


BAD: list[tuple[Mapping[str, Any], str]] = [
    ({}, "at least 1 judge"),
    ({"judges": ["smollm2-135"]}, "did you mean smollm2-135m"),
    ({"judges": ["smollm2-135m"], "questions": ["token"]}, "unknown question 'token'"),
    ({"judges": ["smollm2-135m"], "questions": ["consensus"]}, "at least 2 judges"),
    ({"judges": ["smollm2-135m"], "validators": ["nobody"]}, "unknown judge 'nobody'"),
    ({"judges": ["smollm2-135m"], "tasks": ["fluency"]}, "unknown task 'fluency'"),
    ({"judges": ["smollm2-135m"], "dataset": "a/b", "questions": ["scale"]}, "--dataset"),
    ({"judges": ["smollm2-135m"], "scoring": "options", "questions": ["tokens"]}, "generated text"),
    ({"judges": ["smollm2-135m"], "long_tokens": 10}, "--long-tokens must be at least 21"),
    ({"judges": ["smollm2-135m"], "draws": 1}, "--draws must be at least 2"),
    ({"log": "nowhere"}, "no folder nowhere"),
    ({"log": ".", "judges": ["smollm2-135m"]}, "leave out --log"),
    ({"log": ".", "questions": ["temperature"]}, "--only temperature needs further judging"),
]


@pytest.mark.parametrize(("asked", "said"), BAD, ids=[said for _, said in BAD])
def test_bad_input_is_refused_before_anything_is_judged(
    asked: Mapping[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(JudgeSenseError, match=said):
        judge_sensitivity(**{"questions": [], **asked}, out=tmp_path / "out")
    assert not list(tmp_path.rglob("part-*.parquet"))


def test_a_folder_that_is_no_log_is_refused_with_the_command_that_makes_one(tmp_path: Path) -> None:
    (tmp_path / "judgments.csv").write_text("a\n")
    with pytest.raises(JudgeSenseError, match=r"judgesense import .*judgments\.csv --format"):
        judge_sensitivity(log=tmp_path, out=tmp_path / "out")


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "judgesense", "study", "judge-sensitivity", *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=850, env=dict(os.environ),
    )  # fmt: skip


QUICK = ("--quick", "--scoring", "options", "--only", "orders,consensus,sampled")
JUDGES = ("-j", "smollm2-135m", "-j", "gemma3-270m")


@pytest.mark.slow
def test_two_real_judges_quick_and_again_without_a_model(tmp_path: Path) -> None:
    first = command(*JUDGES, *QUICK, "--out", tmp_path)
    assert first.returncode == 0, first.stderr
    for title in (
        "Table 1",
        "Table 2",
        "Table 3",
        "Cross-judge consensus",
        "Position against wording",
    ):
        assert f"## {title}" in first.stdout
    assert "gemma3-270m" in first.stdout
    assert "measured with other wordings" in first.stdout
    parts = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("part-*.parquet")}
    # A model that cannot be loaded any more: measuring again must not need one.
    code = (
        "import sys\nfor name in ('torch', 'transformers'): sys.modules[name] = None\n"
        "from judgesense.cli import main\nmain()"
    )
    again = subprocess.run(
        [sys.executable, "-c", code, "study", "judge-sensitivity", *JUDGES, *QUICK,
         "--out", tmp_path],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    assert again.stdout == first.stdout
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("part-*.parquet")} == parts


def _answers(run: Path) -> dict[str, dict[str, Any]]:
    """The log's rows by prompt, those in the order AB."""
    return {row["prompt_id"]: row for row in read_run(run).log.to_pylist() if row["order"] == "AB"}


@pytest.mark.slow
def test_a_stopped_study_goes_on_and_sets_each_question_beside_the_main_run(
    tmp_path: Path,
) -> None:
    asked: dict[str, Any] = {
        "judges": ["smollm2-135m"], "out": tmp_path, "quick": True, "scoring": "generate",
        "tasks": ["preference"], "long_tokens": 24,
    }  # fmt: skip

    class StoppedError(Exception):
        pass

    def stop(message: str) -> None:
        raise StoppedError(message)

    try:
        judge_sensitivity(**asked, questions=["tokens", "temperature"], note=stop)
    except StoppedError:
        assert not (tmp_path / "runs" / "temperature").exists()
    notes: list[str] = []
    judge_sensitivity(**asked, questions=[], note=notes.append)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "runs" / "main").rglob("part-*")}
    further = ["tokens", "temperature", "scale", "language"]
    result = judge_sensitivity(**asked, questions=further, note=notes.append)
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "runs" / "main").rglob("part-*")} == before
    (tokens,) = result.table("tokens").rows
    assert (tokens["tokens"], tokens["n_prompts"]) == ("20 → 24", 10)
    short, long = (_answers(tmp_path / "runs" / name) for name in ("main", "tokens"))
    assert len(long) == 10
    for prompt, later in long.items():
        first = short[prompt]
        # Greedy answers: the longer ones begin with the shorter, and only those cut off go on.
        # Four tokens more can complete a verdict, or turn "A: ..." into a list of both.
        assert later["raw_text"].startswith(first["raw_text"])
        assert first["truncated"] or later["status"] == first["status"]
    for side, answers in (("few", short), ("many", long)):
        rows = [answers[prompt] for prompt in long]
        assert tokens[f"undecided_{side}"] == sum(row["status"] != "ok" for row in rows) / 10
        assert tokens[f"cut_{side}"] == sum(row["truncated"] for row in rows) / 10
    (drawn,) = result.table("temperature").rows
    assert drawn["n_items"] <= 2
    assert drawn["undecided"] == tokens["undecided_few"], "the same prompts' greedy answers"
    # Ten pairs, drawn twice each.
    assert 0 < drawn["n_pairs_t1"] <= 20
    assert 0 <= drawn["same_prompt"] <= 1
    (scale,) = result.table("scale").rows
    (german,) = result.table("language").rows
    assert scale["task"] == german["task"] == "preference"
    assert 0 < german["n_pairs_english"] <= 10
    assert 0 < scale["n_pairs"] <= 10
    with pytest.raises(JudgeSenseError, match="limit was 2 and is now 3"):
        judge_sensitivity(**{**asked, "limit": 3}, questions=[], note=notes.append)


@pytest.mark.slow
def test_llmbars_log_gives_a_page(shared: Path, tmp_path: Path) -> None:
    source = shared / "logs" / "llmbar" / "judgments.csv"
    import_llmbar(source, tmp_path / "log")
    result = judge_sensitivity(log=tmp_path / "log", out=tmp_path / "out")
    rows = {row["judge"]: row for row in result.table("table_1").rows}
    assert next(iter(rows)) == "GPT-4"
    assert rows["GPT-4"]["jss"] == pytest.approx(0.903, abs=5e-4)
    assert rows["LLaMA2"]["jss"] == pytest.approx(0.768, abs=5e-4)
    under = next(text for text in result.findings if "below 0.8" in text)
    assert "LLaMA2" in under
    orders = {row["judge"]: row for row in result.table("orders").rows}
    assert orders["Falcon"]["flips_swapped"] > 0.5 > orders["GPT-4"]["flips_swapped"]
    assert any("strategies" in text for text in result.limits)
