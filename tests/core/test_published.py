"""Published figures: as their sources have them, each with its place."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from judgesense import published as figures
from judgesense.studies.common.study import published as stated

NAMES = {figure.published_as: figure.judge for figure in figures.figures()}


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_raw_figures_are_those_of_the_result_file(published: Path) -> None:
    source = json.loads((published / "metrics_summary.json").read_text("utf-8"))
    raw = {(f.published_as, f.task): f for f in figures.figures() if f.labels == "raw"}
    assert set(raw) == {(judge, task) for judge, tasks in source.items() for task in tasks}
    for (judge, task), figure in raw.items():
        stated = source[judge][task]
        assert (figure.jss, figure.ci_low, figure.ci_high, figure.n_pairs) == (
            stated["jss"],
            stated["ci_lower"],
            stated["ci_upper"],
            stated["n_pairs"],
        )
        if figure.kappa is not None:
            assert figure.kappa == stated["cohens_kappa"]


def test_a_kappa_written_as_one_for_an_undefined_one_is_none_and_says_why(published: Path) -> None:
    source = json.loads((published / "metrics_summary.json").read_text("utf-8"))
    for figure in figures.figures():
        if figure.labels == "raw":
            stated = source[figure.published_as][figure.task]
            assert (figure.kappa is None) == (stated["cohens_kappa"] == 1.0)
            assert (figures.UNDEFINED_KAPPA in figure.notes) == (figure.kappa is None)


def test_mapped_figures_are_those_of_the_corrected_file(published: Path) -> None:
    mapped = {f.published_as: f for f in figures.figures() if f.labels == "mapped"}
    rows = rows_of(published / "factuality_jss_fixed.csv")
    assert {row["model"]: (float(row["JSS_fixed"]), int(row["N"])) for row in rows} == {
        judge: (figure.jss, figure.n_pairs) for judge, figure in mapped.items()
    }


def test_figures_by_template_are_those_of_the_result_files(published: Path) -> None:
    for row in rows_of(published / "factuality_T4_vs_noT4.csv"):
        assert tuple(figures.published_data()["template_4"][NAMES[row["model"]]]) == (
            float(row["JSS_no_T4"]),
            int(row["N_no_T4"]),
            float(row["JSS_with_T4_corrected"]),
            int(row["N_with_T4"]),
        )
    flips = rows_of(published / "factuality_pair_flip_overlap.csv")
    assert figures.published_data()["pair_flips"] == {
        row["pair_id"]: int(row["flip_count"]) for row in flips
    }


def test_a_judge_is_found_by_its_logged_name() -> None:
    found = figures.to_show("claude-sonnet-4-5@0123abcd")
    assert {f.task for f in found} == {"factuality", "coherence", "relevance", "preference"}
    assert figures.to_show("smollm2-135m") == figures.to_show("claude-sonnet") == ()


def test_every_judge_with_figures_is_a_named_judge() -> None:
    from local_judges.judge_files import entries

    assert {figure.judge for figure in figures.figures()} <= set(entries())


def test_where_text_and_file_differ_the_figure_says_so() -> None:
    coherence = {f.task: f for f in figures.to_show("deepseek-r1") if f.labels == "raw"}
    assert coherence["coherence"].jss == 0.5253
    assert "0.653" in " ".join(coherence["coherence"].notes)


PAPER_FILES = {
    "judge-sensitivity": "judgesense.txt",
    "paraphrase-robustness": "all_prompts_created_equal.txt",
    "answer-matching": "artifact_or_flaw.txt",
    "prompt-ranking": "prompt_ranking_stability.txt",
}


@pytest.mark.parametrize("paper", PAPER_FILES)
def test_every_stated_number_stands_in_the_papers_text(paper: str, shared: Path) -> None:
    text = (shared / "papers" / PAPER_FILES[paper]).read_text("utf-8").replace("\\", "")
    missing = [
        (key, figure.value)
        for key, figure in stated(paper).items()
        if not any(form in text for form in forms(figure.value))
    ]
    assert not missing


def forms(value: float) -> set[str]:
    """How a text may write a number: plain, with closing zeros, as a percentage."""
    decimals = {f"{abs(value):.{places}f}" for places in (0, 1, 2, 3, 4)}
    decimals = decimals | {f"{abs(value):,.0f}"} if value > 999 else decimals
    near = {form for form in decimals if float(form.replace(",", "")) == abs(value)}
    return near | {f"{form}%" for form in (f"{abs(value) * 100:.0f}", f"{abs(value) * 100:.1f}")}


def test_the_tables_of_the_second_version_are_those_of_its_authors(published: Path) -> None:
    for name, source in (("cells", "sweep"), ("pooled", "pooled")):
        ours = (figures.V2_FOLDER / f"{name}.csv").read_bytes()
        assert ours == (published / "v2" / f"v2_{source}.csv").read_bytes()
    haiku = next(f for f in figures.v2_figures() if f.published_as == "claude-haiku")
    assert (haiku.judge, haiku.vendor, haiku.task) == ("claude-haiku-4-5", "anthropic", "coherence")
    assert (haiku.jss, haiku.jss_repeat, haiku.delta_jss) == (0.792, 0.998, -0.206)


def test_every_figure_of_the_first_version_says_that_it_is_withdrawn() -> None:
    assert all(figures.WITHDRAWN in figure.notes for figure in figures.figures())
    found = figures.to_show("claude-haiku-4-5")
    assert [figure.version for figure in found] == ["v2"] * 4 + ["v1"] * 5
    assert not any(figures.WITHDRAWN in figure.notes for figure in found[:4])


def test_the_excluded_pairs_are_those_that_the_paper_did_not_validate(published: Path) -> None:
    lines = (published / "factuality_paraphrase.jsonl").read_text("utf-8").splitlines()
    rejected = {
        row["pair_id"] for row in map(json.loads, lines) if row["validation_decision"] != "YES"
    }
    assert set(figures.published_data()["excluded_pairs"]) == rejected
    assert not rejected & set(figures.published_data()["pair_flips"])
