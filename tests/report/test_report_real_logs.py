"""Reports of other people's judges, through the importer."""

from __future__ import annotations

import csv
import importlib
import json
from pathlib import Path

import pytest
from recipes import import_flakyjudge, import_llmbar

import judgesense


@pytest.fixture(scope="module")
def llmbar(shared: Path, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("llmbar") / "run"
    import_llmbar(shared / "logs" / "llmbar" / "judgments.csv", out)
    return out


@pytest.mark.slow
def test_six_judges_of_llmbar_are_told_apart(llmbar: Path, make) -> None:
    report = judgesense.report(llmbar)
    json.dumps(report.to_dict(), allow_nan=False)
    gpt4, falcon = (make.cell(report, j, "mapped", order="both") for j in ("GPT-4", "Falcon"))
    assert gpt4["jss"] > 0.85 > falcon["jss"]
    # Consistent because it takes what is shown first, and hardly ever right.
    assert falcon["position_consistency"] < 0.5 < falcon["first_position_rate"]
    # 6% of GPT-4's pairs lack two verdicts; if all of them disagreed, it might not be steady.
    assert {card["judge"]: card["trust"] for card in report.trust} == {
        "GPT-4": "unknown",
        "PaLM2": "avoid",
        "ChatGPT": "avoid",
        "ChatGPT-0301": "avoid",
        "Falcon": "avoid",
        "LLaMA2": "avoid",
    }
    # With the items on which a judge is wrong or flips, of six judges.
    assert (llmbar / "report.html").stat().st_size < 2_000_000


@pytest.mark.slow
def test_two_judges_of_llmbar_are_compared_on_the_same_pairs(llmbar: Path) -> None:
    result = judgesense.compare(llmbar, llmbar)
    found = {
        (e["judge_a"], e["judge_b"]): e for e in result["comparisons"] if e["measure"] == "jss"
    }
    assert len(found) == 15
    against = found["Falcon", "GPT-4"]
    assert against["ci_low"] > 0
    assert "GPT-4 (generate) is steadier" in against["text"]
    assert any("prefer GPT-4" in text and "right more often" in text for text in result["advice"])


@pytest.mark.slow
def test_the_judge_of_flakyjudge_that_ignores_the_criterion_is_told(
    shared: Path, tmp_path: Path
) -> None:
    import_flakyjudge(shared / "logs" / "flakyjudge", tmp_path / "run")
    cards = {card["judge"]: card for card in judgesense.report(tmp_path / "run").trust}
    trust = {judge: card["trust"] for judge, card in cards.items() if "@" not in judge}
    assert trust == {
        "gpt-4o": "avoid",
        "gpt-4o-mini": "avoid",
        "gemini-flash": "avoid",
        "claude-haiku": "care",
        "claude-sonnet": "unknown",
        "llama-8b": "avoid",
    }
    # The negated criterion turns the verdicts of these three in 13 to 21% of items.
    assert cards["gpt-4o"]["because"] == ["responsive"]
    assert cards["llama-8b"]["because"] == ["responsive"]
    # People labelled a part of the items, and its verdicts on these differ from the others.
    right = cards["llama-8b"]["checks"]["right"]
    assert (right["state"], right["details"]) == ("unmeasured", {"picked_labels": True})
    assert cards["llama-8b"]["checks"]["steady"]["state"] == "pass"


@pytest.mark.slow
def test_every_figure_that_flakyjudge_prints_is_reproduced(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs"))
    program = importlib.import_module("make_flakyjudge")
    monkeypatch.setattr(program, "DOCS", tmp_path)
    (tmp_path / "images").mkdir()
    (tmp_path / "results").mkdir()
    program.write(shared / "logs" / "flakyjudge")

    def rows(name: str) -> list[dict[str, str]]:
        with (tmp_path / "results" / "data" / name).open(encoding="utf-8") as source:
            return list(csv.DictReader(source))

    assert [row["equal"] for row in rows("flakyjudge-published.csv")] == ["True"] * 72
    checks = rows("flakyjudge-variants.csv")
    assert {row["judge"]: (row["trust"], row["responsive, state"]) for row in checks} == {
        "gpt-4o": ("avoid", "fail"),
        "gpt-4o-mini": ("avoid", "fail"),
        "gemini-flash": ("avoid", "fail"),
        "claude-haiku": ("care", "open"),
        "claude-sonnet": ("unknown", "open"),
        "llama-8b": ("avoid", "fail"),
    }
